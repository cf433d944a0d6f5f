/* SPDX-License-Identifier: MIT */
/* Threads that stand inside a call at the end of the recording, and are not idle. Where that is not known nobody is
 * accused. */
#include "tools/findings/run_facts.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/common/short_names.h"

uint64_t stood_ns(struct fdr_file *file, size_t index)
{
    const struct fdr_location_info *l = fdr_location_info(file, index);
    uint64_t end = newest_moment(file), ns = end > l->moved_ns ? end - l->moved_ns : 0;
    if (!l->live || !l->open_count || l->samples || times_are_given(file) || ns < 1000000000u) return 0;
    return fdr_location_idle(file, index) == 1 ? 0 : ns;
}

static uint32_t innermost(const struct fdr_location_info *l) { return l->open[l->open_count - 1].region; }

struct standing {
    size_t first, same; /* threads that stand in the same region */
    uint64_t ns;
};

static struct standing standing_of(const struct run_facts *f, size_t first, const uint64_t *stood)
{
    struct standing s = {.first = first, .ns = stood[first]};
    uint32_t region = innermost(fdr_location_info(f->file, first));
    for (size_t k = first, n = fdr_location_count(f->file); k < n; k++)
        s.same += stood[k] && innermost(fdr_location_info(f->file, k)) == region;
    return s;
}

/* "worker and 2 more threads have not moved for 24 s: inside work"; text[STANDING_BYTES]. */
enum { STANDING_BYTES = 400 };
static const char *standing_text(const struct run_facts *f, const struct standing *s, char *text)
{
    const struct fdr_location_info *l = fdr_location_info(f->file, s->first);
    char since[HUMAN_BYTES], thread[LABEL_BYTES], others[48] = "";
    if (s->same > 1) snprintf(others, sizeof others, " and %zu more threads", s->same - 1);
    snprintf(text, STANDING_BYTES, "%s%s %s not moved for %s: inside %.120s", thread_label(f->file, l->id, thread),
             others, s->same > 1 ? "have" : "has", human_time(since, s->ns), plain_shown(f->file, innermost(l)));
    return text;
}

/* Threads that stand in the same region are one finding. A thread that stands alone may be the one that others wait
 * for: it comes first. stood: of each location. */
static void add_standing(const struct run_facts *f, struct findings *to, const struct standing *s,
                         const uint64_t *stood)
{
    const struct fdr_location_info *l = fdr_location_info(f->file, s->first);
    char text[STANDING_BYTES], since[HUMAN_BYTES];
    struct finding *row = add_finding(to, FINDING_HANG, 0);
    if (!row) return;
    for (size_t k = s->first, n = fdr_location_count(f->file); k < n; k++) {
        const struct fdr_location_info *other = fdr_location_info(f->file, k);
        if (stood[k] && innermost(other) == innermost(l)) add_location(row, other->id);
    }
    row->share = (double)s->ns / f->length_ns;
    row->weight = 10 + row->share + 1.0 / (double)s->same;
    row->region = innermost(l);
    row->from_ns = l->moved_ns;
    row->to_ns = f->end_ns;
    row->value = (double)s->ns;
    row->unit = "ns";
    row->sure = 0.8;
    say(row, "%s.", standing_text(f, s, text));
    add_evidence(row, "no event of %s for %s before the end", s->same > 1 ? "these threads" : "this thread",
                 human_time(since, s->ns));
}

/* A thread that waits for work looks like one that hangs, unless its state or its stack is known. */
static void leave_open(const struct run_facts *f, struct findings *to, const struct standing *s)
{
    char text[STANDING_BYTES];
    cannot_judge(to, "threads that stand", "%s; whether they wait for work is not known, without state and stack",
                 standing_text(f, s, text));
}

static bool is_first(const struct run_facts *f, size_t index, const uint64_t *stood)
{
    uint32_t region = innermost(fdr_location_info(f->file, index));
    for (size_t k = 0; k < index; k++)
        if (stood[k] && innermost(fdr_location_info(f->file, k)) == region) return false;
    return true;
}

void find_standing(const struct run_facts *f, struct findings *to)
{
    size_t count = fdr_location_count(f->file);
    uint64_t *stood = calloc(count + 1, sizeof *stood);
    to->failed |= !stood;
    for (size_t i = 0; stood && i < count; i++) stood[i] = stood_ns(f->file, i);
    for (size_t i = 0; stood && i < count; i++) {
        if (!stood[i] || !is_first(f, i, stood)) continue;
        struct standing s = standing_of(f, i, stood);
        if (fdr_location_idle(f->file, i) == 0) add_standing(f, to, &s, stood);
        else leave_open(f, to, &s);
    }
    free(stood);
}
