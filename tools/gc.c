/* SPDX-License-Identifier: MIT */
/* fdr gc removes crash bundles by the rule of running processes, then recordings that are too old or too many. It never
 * removes one that a process writes or that nobody has read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/verbs.h"
#include "tools/common/found_recordings.h"
#include "tools/common/live_files.h"

struct arguments {
    char **directories;
    int count;
    uint64_t age_ns, size;
    struct fdr_bundle_rule bundles;
    bool no_bundles;
    bool unread, dry_run, json, limited;
};

static const struct argp_option options[] = {
    {"age", 'a', "TIME", 0, "Remove what is older: 90s, 30min, 12h, 7d (7d where --size is not given)", 0},
    {"size", 's', "BYTES", 0, "Then remove the oldest until the rest has at most this size: 500M, 2G", 0},
    {"crash-total", 'T', "LIMIT", 0,
     "Most bytes of all crash bundles: 10% of the file system, 2G, off (FDR_CRASH_TOTAL)", 0},
    {"crash-free", 'F', "LIMIT", 0, "Least unused part of the file system: 15%, 20G (FDR_CRASH_FREE)", 0},
    {"crash-age", 'A', "TIME", 0, "Longest age of a crash bundle: 14d, 0 for none (FDR_CRASH_AGE)", 0},
    {"unread", 'u', 0, 0, "Also recordings that were never read (mode 0600)", 0},
    {"dry-run", 'n', 0, 0, "Only print the files that would be removed", 0},
    {"json", 'j', 0, 0, "As JSON", 0},
    {0}};

static bool parse_days(const char *text, uint64_t *ns)
{
    char *end;
    double days = strtod(text, &end);
    if (end == text || strcmp(end, "d") != 0 || !(days >= 0) || days > 36500) return parse_duration(text, ns);
    *ns = (uint64_t)(days * 86400e9);
    return true;
}

static bool parse_bytes(const char *text, uint64_t *bytes)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || !(v >= 0) || v > 1e15) return false;
    static const struct {
        const char *name;
        double scale;
    } units[] = {{"", 1}, {"K", 1024}, {"M", 1048576}, {"G", 1073741824}};
    for (size_t i = 0; i < 4; i++)
        if (strcmp(end, units[i].name) == 0) {
            double scaled = v * units[i].scale;
            *bytes = scaled < 0x1p64 ? (uint64_t)scaled : UINT64_MAX; /* beyond 64 bits: no limit */
            return true;
        }
    return false;
}

static bool parse_limit(const char *text, struct fdr_bundle_limit *limit)
{
    char *end;
    double percent = strtod(text, &end);
    bool is_share = end != text && strcmp(end, "%") == 0;
    limit->share = is_share ? percent / 100 : -1;
    return is_share ? percent >= 0 && percent <= 100 : parse_bytes(text, &limit->bytes);
}

/* One setting of the rule about bundles: T, F or A. False: not a value of it. */
static bool parse_rule(struct arguments *a, int key, const char *text)
{
    if (key == 'A') return parse_days(text, &a->bundles.age_ns);
    if (key == 'F') return parse_limit(text, &a->bundles.unused);
    a->no_bundles = strcmp(text, "off") == 0;
    return a->no_bundles || parse_limit(text, &a->bundles.most);
}

/* As of processes that start with this environment. */
static void rule_of_environment(struct arguments *a)
{
    static const struct {
        int key;
        const char *name, *usual;
    } settings[] = {{'T', "FDR_CRASH_TOTAL", "10%"}, {'F', "FDR_CRASH_FREE", "15%"}, {'A', "FDR_CRASH_AGE", "14d"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *text = getenv(settings[i].name);
        if (text && *text && parse_rule(a, settings[i].key, text)) continue;
        if (text && *text) complain("%s=%s: not a limit; using %s", settings[i].name, text, settings[i].usual);
        parse_rule(a, settings[i].key, settings[i].usual);
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case 'T':
    case 'F':
    case 'A':
        if (!parse_rule(a, key, text)) argp_error(state, "not a limit of crash bundles: '%s'", text);
        return 0;
    case 'a':
        if (!parse_days(text, &a->age_ns)) argp_error(state, "--age: not a time: '%s'", text);
        a->limited = true;
        return 0;
    case 's':
        if (!parse_bytes(text, &a->size)) argp_error(state, "--size: not a size: '%s'", text);
        a->limited = true;
        return 0;
    case 'u': a->unread = true; return 0;
    case 'n': a->dry_run = true; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARGS:
        a->directories = state->argv + state->next;
        a->count = state->argc - state->next;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static uint64_t bytes_of(const struct found_recording *l) { return (uint64_t)l->stat.st_blocks * 512; }

#define PART_NS 600000000000u
/* A recently written temporary file is spared: its writer may be a process that this user cannot inspect. */
static bool is_spared(const struct arguments *a, const struct found_recording *l, uint64_t age_ns)
{
    if (l->temporary) return l->live || age_ns < PART_NS;
    return l->live || !l->readable || (is_unread(&l->stat) && !a->unread && !l->unneeded);
}

/* ---- crash bundles ---- */

struct bundles {
    const struct arguments *a;
    const char *directory;
    json_t *list;
};

static void bundle_gone(void *argument, const char *name, uint64_t bytes, enum fdr_bundle_end end)
{
    static const char *const why[] = {[FDR_BUNDLE_ALIKE] = "counted by the first one of its cause, place and build",
                                      [FDR_BUNDLE_OLD] = "too old",
                                      [FDR_BUNDLE_TOO_MUCH] = "beyond the limit of space"};
    const struct bundles *b = argument;
    char path[4352], size[HUMAN_BYTES];
    snprintf(path, sizeof path, "%.4000s/%.255s", b->directory, name);
    if (b->a->json) {
        json_t *o = json_object();
        json_object_set_new(o, "path", json_text(path));
        json_object_set_new(o, "bytes", json_u64(bytes));
        json_object_set_new(o, "why", json_text(why[end]));
        json_object_set_new(o, "removed", json_boolean(!b->a->dry_run));
        json_array_append_new(b->list, o);
    } else {
        printf("%s %s (%s): %s\n", b->a->dry_run ? "would remove" : "removed", plain_name(path),
               human_bytes(size, bytes), why[end]);
    }
}

static int tidy_bundles(const struct arguments *a, const char *directory, json_t *list)
{
    struct bundles b = {a, directory, list};
    int e = a->no_bundles ? 0 : fdr_bundles_tidy(directory, &a->bundles, a->dry_run, bundle_gone, &b);
    if (e > 0) complain("%s: %d crash bundles that the rule lets go stay: another process works on them", directory, e);
    return e > 0 ? COULD_NOT : DONE; /* a directory that is not there is said by recordings_find */
}

/* *whole: bytes of all recordings; decreases if this one was removed. */
static int remove_it(const struct arguments *a, const struct found_recording *l, json_t *list, uint64_t *whole)
{
    char size[HUMAN_BYTES];
    int e = a->dry_run ? 0 : recording_remove(l);
    if (e && !recording_vanished(l)) {
        complain("%s: %s", l->path, strerror(-e));
        return COULD_NOT;
    }
    *whole -= bytes_of(l);
    if (e) return DONE; /* another process removed it */
    if (a->json) {
        json_t *o = json_object();
        json_object_set_new(o, "path", json_text(l->path));
        json_object_set_new(o, "bytes", json_u64(bytes_of(l)));
        json_object_set_new(o, "removed", json_boolean(!a->dry_run));
        json_array_append_new(list, o);
    } else {
        printf("%s %s (%s)\n", a->dry_run ? "would remove" : "removed", plain_name(l->path),
               human_bytes(size, bytes_of(l)));
    }
    return DONE;
}

static uint64_t age_of(const struct found_recording *l)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double s = (double)now.tv_sec - (double)l->stat.st_mtim.tv_sec; /* a file may have any time */
    if (s > 9e9) return UINT64_MAX - 1;
    int64_t ns = (int64_t)(s > -1 ? s : -1) * 1000000000 + now.tv_nsec - l->stat.st_mtim.tv_nsec;
    return ns > 0 ? (uint64_t)ns : 0;
}

/* Goes from the oldest on: removes first those that are too old, then those beyond the size. */
static int collect_garbage(const struct arguments *a, const struct found_list *list, json_t *removed)
{
    int status = DONE;
    uint64_t whole = 0;
    for (size_t i = 0; i < list->count; i++) whole += list->entry[i]->live ? 0 : bytes_of(list->entry[i]);
    for (size_t i = 0; i < list->count; i++) {
        const struct found_recording *l = list->entry[i];
        uint64_t age = age_of(l);
        bool old = a->age_ns != UINT64_MAX && age >= a->age_ns;
        if (is_spared(a, l, age) || (!old && whole <= a->size)) continue;
        status = worse(status, remove_it(a, l, removed, &whole));
    }
    return status;
}

int verb_gc(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "[DIRECTORY...]",
        "Removes crash bundles by the rule that every process goes by: of one cause, place and build the first, the "
        "newest and the one of the longest run stay, for 14 days, in a tenth of the file system (docs/CRASH.md). Then "
        "removes recordings by age and by total size, from the live directory or from the directories given. A "
        "recording that a process writes always stays, as does a file that is no recording. A recording that was never "
        "read stays without --unread. Unfinished files of killed processes (.part) go, too.",
        NULL,
        NULL,
        NULL};
    struct arguments a = {.age_ns = UINT64_MAX, .size = UINT64_MAX};
    struct found_list list = {.temporaries = true};
    int status = DONE;
    rule_of_environment(&a);
    parse_arguments(&argp, argc, argv, &a);
    list.named = a.count > 0;
    if (!a.limited) a.age_ns = 7 * 86400ull * 1000000000u;
    setenv("FDR_SYMBOLS", "0", 0);
    json_t *removed = json_array();
    if (a.count == 0) status = tidy_bundles(&a, live_directory(), removed);
    for (int i = 0; i < a.count; i++) status = worse(status, tidy_bundles(&a, a.directories[i], removed));
    if (a.count == 0) status = worse(status, recordings_find(live_directory(), RECORDINGS_ANY_OWNER, &list));
    for (int i = 0; i < a.count; i++)
        status = worse(status, recordings_find(a.directories[i], RECORDINGS_ANY_OWNER, &list));
    status = worse(status, collect_garbage(&a, &list, removed));
    if (!a.dry_run) recordings_remove_empty_folders(&list);
    recordings_free(&list);
    if (a.json) return worse(status, print_json(removed));
    json_decref(removed);
    return worse(status, finish_output());
}
