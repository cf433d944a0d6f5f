/* SPDX-License-Identifier: MIT */
/* A job in five lines: who died first, by what evidence, how the others ended, what they did meanwhile, who has no
 * recording. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/job_ranks.h"
#include "tools/deaths/deaths.h"
#include "tools/unseen_end.h"

enum { GROUPS_MOST = 3 };

const char *who_died(const struct death *d, char *text, size_t bytes)
{
    const struct fdr_file_info *i = fdr_file_info(d->file);
    if (i->rank >= 0) snprintf(text, bytes, "rank %d", i->rank);
    else snprintf(text, bytes, "pid %u on %s", i->pid, plain_name(i->host));
    return text;
}

const char *short_end(const struct death *d, char *text, size_t bytes)
{
    struct fdr_crash_cause_info c = main_cause(d->file);
    char name[HUMAN_BYTES];
    switch (d->kind) {
    case KILLED: return unseen_end(fdr_file_info(d->file), text, bytes);
    case ALIVE: return "still running";
    case NO_DEATH: return "a snapshot, not a death";
    case UNNEEDED_LIVE_FILE: return "over: the rest of a live file, not a death";
    default: break;
    }
    if (!c.signal) return describe_cause(d->file, &c, text, bytes);
    snprintf(text, bytes, "%s", signal_name(c.signal, name));
    return text;
}

static uint64_t apart(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* ---- the first, and the evidence --------------------------------------------------------------------------------- */

static void print_first(const struct deaths *d)
{
    char who[160], end[256], place[300];
    struct fdr_crash_cause_info c;
    if (!d->first && d->perhaps_first)
        printf("first      not known: one of %zu that were killed unseen within 2 s\n", d->perhaps_first);
    else if (!d->first) printf("first      none of these processes died\n");
    if (!d->first) return;
    c = main_cause(d->first->file);
    printf("first      %s: %s%s; it was %s\n", who_died(d->first, who, sizeof who),
           d->first->kind == KILLED ? short_end(d->first, end, sizeof end)
                                    : describe_cause(d->first->file, &c, end, sizeof end),
           place_of_death(d->first, place, sizeof place), d->doing[d->first - d->death].text);
}

/* The death that follows the first: of this kind, or of any (UNNEEDED_LIVE_FILE). NULL: there is none. */
static const struct death *next_death(const struct deaths *d, int kind)
{
    const struct death *next = NULL;
    for (size_t i = 0; i < d->count; i++) {
        const struct death *one = &d->death[i];
        bool fits = one != d->first && one->kind <= KILLED && (kind == UNNEEDED_LIVE_FILE || (int)one->kind == kind);
        if (fits && (!next || one->realtime_ns < next->realtime_ns)) next = one;
    }
    return next;
}

static size_t of_kind(const struct deaths *d, int kind)
{
    size_t n = 0;
    for (size_t i = 0; i < d->count; i++) n += (int)d->death[i].kind == kind;
    return n;
}

static const char *clock_of(const struct death *a, const struct death *b)
{
    bool same = !strcmp(fdr_file_info(a->file)->host, fdr_file_info(b->file)->host);
    return same ? "" : ", by the clocks of two hosts";
}

static void print_evidence(const struct deaths *d)
{
    char who[160], time[HUMAN_BYTES];
    size_t faults = of_kind(d, BY_FAULT);
    if (d->perhaps_first > 1)
        printf("evidence   no handler saw their ends, and signs of life each second do not order them\n");
    if (!d->first) return;
    const struct death *fault = next_death(d, BY_FAULT), *next = next_death(d, UNNEEDED_LIVE_FILE);
    printf("evidence   ");
    if (d->first->kind == BY_REQUEST) {
        printf("none of these died by itself: the first was asked to end before the others\n");
    } else if (d->first->kind == KILLED && next) {
        printf("no handler saw its end; its last sign of life is %s before the end of %s%s\n",
               human_time(time, apart(next->realtime_ns, d->first->realtime_ns)), who_died(next, who, sizeof who),
               clock_of(d->first, next));
    } else if (d->first->kind == KILLED) {
        printf("no handler saw its end, and no other one died\n");
    } else if (fault) {
        printf("%zu faulted; its fault came %s before that of %s%s\n", faults,
               human_time(time, apart(fault->realtime_ns, d->first->realtime_ns)), who_died(fault, who, sizeof who),
               clock_of(d->first, fault));
    } else {
        printf("it is the only one that died by itself; its handler wrote the cause\n");
    }
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

static bool is_other_death(const struct deaths *d, size_t i)
{
    return &d->death[i] != d->first && d->death[i].kind <= ALIVE;
}

static bool end_alike(const struct deaths *d, size_t a, size_t b)
{
    char one[256], other[256];
    return d->death[a].kind == d->death[b].kind &&
           !strcmp(short_end(&d->death[a], one, sizeof one), short_end(&d->death[b], other, sizeof other));
}

static bool do_alike(const struct deaths *d, size_t a, size_t b) { return !strcmp(d->doing[a].text, d->doing[b].text); }

static int by_size(const void *x, const void *y)
{
    const struct alike_death *a = x, *b = y;
    return a->count != b->count ? (a->count < b->count ? 1 : -1) : (a->one > b->one) - (a->one < b->one);
}

/* "12.3 ms later" */
static void print_apart(const struct deaths *d, uint64_t realtime_ns)
{
    char time[HUMAN_BYTES];
    uint64_t first = d->first->realtime_ns;
    printf("%s %s", human_time(time, apart(realtime_ns, first)), realtime_ns < first ? "before" : "later");
}

static void print_end(const struct deaths *d, const struct alike_death *a)
{
    char end[256], ranks[120];
    const struct death *one = &d->death[a->one], *last = &d->death[a->last];
    const struct fdr_file_info *i = fdr_file_info(one->file);
    bool unseen = one->kind == KILLED && !i->has_end;
    printf("%zu %s%s%s", a->count, one->kind <= BY_REQUEST ? "by " : "",
           unseen ? "killed unseen" : short_end(one, end, sizeof end), ranks_of(a, ranks, sizeof ranks));
    if (!d->first || one->kind > KILLED) return;
    printf(one->kind == KILLED ? ", last seen " : ", ");
    print_apart(d, one->realtime_ns);
    if (a->count > 1) printf(" to "), print_apart(d, last->realtime_ns);
}

static void print_doing(const struct deaths *d, const struct alike_death *a)
{
    char ranks[120];
    printf("%zu %s%s", a->count, d->doing[a->one].text, ranks_of(a, ranks, sizeof ranks));
}

/* How many had events after the first death, and for how long at most. */
static void print_gone_on(const struct deaths *d)
{
    size_t count = 0;
    uint64_t longest = 0;
    char time[HUMAN_BYTES];
    for (size_t i = 0; d->first && i < d->count; i++) {
        if (!is_other_death(d, i) || d->doing[i].moved_ns <= d->first->realtime_ns) continue;
        uint64_t on = d->doing[i].moved_ns - d->first->realtime_ns;
        count++;
        if (on > longest) longest = on;
    }
    if (count) printf("; %zu of them went on for %s%s", count, count > 1 ? "up to " : "", human_time(time, longest));
}

static void print_groups(const struct deaths *d, const char *label, alike_fn *alike,
                         void (*print)(const struct deaths *, const struct alike_death *))
{
    size_t count;
    struct alike_death *a = group_deaths(d, alike, is_other_death, &count);
    if (a && count) qsort(a, count, sizeof *a, by_size);
    if (a && count) printf("%-10s ", label);
    for (size_t k = 0; a && k < count && k < GROUPS_MOST; k++) {
        if (k) printf("; ");
        print(d, &a[k]);
    }
    if (a && count > GROUPS_MOST) printf("; and %zu other kinds", count - GROUPS_MOST);
    if (a && count && print == print_doing) print_gone_on(d);
    if (a && count) putchar('\n');
    free_alike_deaths(a, a ? count : 0);
}

/* ---- ranks without a recording ----------------------------------------------------------------------------------- */

static void print_missing(const struct ranks *r)
{
    enum { TOLD = 8 };
    int64_t from, end, missing = 0;
    size_t told = 0;
    for (size_t i = 0; i <= r->count; i++)
        if (missing_ranks(r, i, &from, &end)) missing += end - from;
    if (!missing) return;
    printf("missing    %lld of %d ranks %s no recording:", (long long)missing, r->world, missing == 1 ? "has" : "have");
    for (size_t i = 0; i <= r->count && told <= TOLD; i++) {
        if (!missing_ranks(r, i, &from, &end)) continue;
        if (++told > TOLD) printf(", ...");
        else if (end - from == 1) printf("%s %lld", told > 1 ? "," : "", (long long)from);
        else printf("%s %lld-%lld", told > 1 ? "," : "", (long long)from, (long long)end - 1);
    }
    putchar('\n');
}

static void print_without_recording(const struct deaths *d)
{
    struct ranks r = {.rank = calloc(d->count + 1, sizeof *r.rank)};
    for (size_t i = 0; r.rank && i < d->count; i++) {
        int rank = fdr_file_info(d->death[i].file)->rank, world = world_size(d->death[i].file);
        if (rank >= 0) r.rank[r.count++] = rank;
        if (world > r.world) r.world = world;
    }
    sort_ranks(&r);
    print_missing(&r);
    free(r.rank);
}

void print_five_lines(const struct deaths *d)
{
    print_first(d);
    print_evidence(d);
    print_groups(d, "the others", end_alike, print_end);
    print_groups(d, "meanwhile", do_alike, print_doing);
    print_without_recording(d);
}
