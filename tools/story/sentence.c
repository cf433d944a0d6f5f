/* SPDX-License-Identifier: MIT */
/* One sentence: what happened, to whom, when, and how sure that is. */
#include "tools/story/story.h"

#include <string.h>
#include <time.h>

#include "tools/common/short_names.h"
#include "tools/findings/run_facts.h"
#include "tools/unseen_end.h"

struct story story_of(struct death *death, size_t files)
{
    struct death *first = first_of(death, files);
    return (struct story){.death = first ? first : death, .died = first != NULL, .files = files};
}

void story_who(const struct fdr_file *file, char *text, size_t bytes)
{
    const struct fdr_file_info *i = fdr_file_info(file);
    const char *slash = strrchr(i->exe, '/'), *exe = slash ? slash + 1 : i->exe;
    if (i->rank >= 0) snprintf(text, bytes, "%.80s, rank %d", *exe ? exe : "program", i->rank);
    else snprintf(text, bytes, "%.80s, pid %u", *exe ? exe : "program", i->pid);
}

static const char *moment(uint64_t realtime_ns, char *text, size_t bytes)
{
    time_t s = (time_t)(realtime_ns / 1000000000u);
    struct tm t;
    char day[48] = "";
    if (gmtime_r(&s, &t)) strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &t);
    snprintf(text, bytes, "%s.%03u UTC", day, (unsigned)(realtime_ns % 1000000000u / 1000000));
    return text;
}

/* " in thread 17 worker, inside lookup"; "": nothing is known. */
static void where(const struct fdr_file *file, uint32_t tid, char *text, size_t bytes)
{
    const struct fdr_location_info *l = location_of_thread(file, tid);
    text[0] = 0;
    if (!l) return;
    int used = snprintf(text, bytes, " in thread %.60s", l->name[0] ? l->name : "without a name");
    if (l->open_count && used > 0 && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, ", inside %.120s",
                 region_name(file, l->open[l->open_count - 1].region));
}

static void of_death(const struct story *story, const char *who, char *text, size_t bytes)
{
    const struct death *d = story->death;
    const struct fdr_file_info *i = fdr_file_info(d->file);
    struct fdr_crash_cause_info c = main_cause(d->file);
    char cause[256], place[256], when[64];
    moment(d->realtime_ns, when, sizeof when);
    if (d->kind == KILLED) {
        snprintf(text, bytes, "%s ended without a word after %s: %s.", who, when, unseen_end(i, cause, sizeof cause));
        return;
    }
    where(d->file, c.tid, place, sizeof place);
    snprintf(text, bytes, "%s %s %s%s at %s%s.", who, d->kind == BY_REQUEST ? "was asked to end by" : "died of",
             describe_cause(d->file, &c, cause, sizeof cause), place, when,
             story->files > 1 ? ", before all others" : "");
}

/* "Nothing died.", or how many threads stood. */
static void of_standing(struct fdr_file *file, char *text, size_t bytes)
{
    uint64_t least = UINT64_MAX;
    size_t standing = 0, live = 0;
    char time[HUMAN_BYTES];
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        uint64_t ns = stood_ns(file, i);
        live += l->live && !l->samples && l->parent == UINT32_MAX;
        standing += ns != 0;
        if (ns && ns < least) least = ns;
    }
    if (!standing) snprintf(text, bytes, "Nothing died.");
    else
        snprintf(text, bytes, "%zu of its %zu threads had stood for %s or more.", standing, live,
                 human_time(time, least));
}

static void of_snapshot(const struct death *d, const char *who, char *text, size_t bytes)
{
    const struct fdr_file_info *i = fdr_file_info(d->file);
    char run[HUMAN_BYTES], when[64], value[HUMAN_BYTES], standing[128];
    uint64_t start = run_start(d->file), end = newest_moment(d->file);
    human_time(run, end > start ? end - start : 0);
    of_standing(d->file, standing, sizeof standing);
    moment(i->taken_ns ? i->taken_ns + (uint64_t)i->realtime_offset_ns : d->realtime_ns, when, sizeof when);
    if (i->has_trigger && !strcmp(i->reason_kind, "watchdog"))
        snprintf(text, bytes, "A thread of %s had not moved for %s when the watchdog took this at %s.", who,
                 human_time(value, i->trigger_value), when);
    else if (i->has_trigger)
        snprintf(text, bytes, "Trigger %.80s fired in %s; this snapshot was taken at %s.", i->trigger_name, who, when);
    else if (!strcmp(i->reason, "replay"))
        snprintf(text, bytes, "A replay of recorded streams: %s of them. Nothing of this machine.", run);
    else if (d->kind == ALIVE) snprintf(text, bytes, "%s is running; it was recorded for %s.", who, run);
    else if (d->kind == UNNEEDED_LIVE_FILE)
        snprintf(text, bytes, "%s no longer needed this file: it is the rest of a live recording.", who);
    else if (!strcmp(i->reason_kind, "finalize"))
        snprintf(text, bytes, "%s ended well at %s, after %s.", who, when, run);
    else
        snprintf(text, bytes, "%s was running, for %s, when this snapshot was taken at %s. %s", who, run, when,
                 standing);
}

void story_sentence(const struct story *story, char *text, size_t bytes)
{
    char who[128];
    story_who(story->death->file, who, sizeof who);
    if (story->died) of_death(story, who, text, bytes);
    else of_snapshot(story->death, who, text, bytes);
}

void story_sure(const struct story *story, char *text, size_t bytes)
{
    const struct death *d = story->death;
    const char *why = d->kind == BY_FAULT || d->kind == BY_REQUEST
                          ? "Certain: the process itself wrote the cause as it died."
                      : d->kind == KILLED && fdr_file_info(d->file)->has_end
                          ? "Certain: `fdr run` saw how the process ended."
                      : d->kind == KILLED
                          ? "The end itself was not seen: no handler ran, and nobody wrote down the wait status."
                          : "Certain: it is what the file says of itself.";
    snprintf(text, bytes, "%s%s", why, story->files > 1 && story->died ? " First by the clocks of the hosts." : "");
}
