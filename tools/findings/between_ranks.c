/* SPDX-License-Identifier: MIT */
/* Ranks of one job beside each other: one that works longer, one that comes last, and waiting. From exact totals, so
 * clocks of different hosts play no part. Regions are the same if their names are. */
#include "tools/findings/run_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/job_files.h"
#include "tools/common/job_ranks.h"

#define LEAST_SHARE 0.02 /* of the run that the slow ranks cost the others */
#define LEAST_WAIT  0.10 /* of the run, over all ranks */

/* A region in one rank, over all its threads. */
struct rank_row {
    const char *name;
    uint32_t part; /* index of the recording */
    uint32_t region;
    uint64_t calls, own_ns;
    bool waits;
};
struct rank_facts {
    size_t part;
    int rank;
    double length_ns, waiting_ns;
};
struct ranks_facts {
    const struct job_part *part;
    struct rank_facts *rank; /* ascending */
    size_t ranks;
    struct rank_row *row; /* by name, then by recording */
    size_t rows, room;
    double length_ns; /* of the longest run */
};

/* ---- facts ---- */

static bool add_row(struct ranks_facts *f, const struct rank_row *row)
{
    if (f->rows == f->room) {
        size_t room = f->room ? 2 * f->room : 256;
        struct rank_row *wider = realloc(f->row, room * sizeof *wider);
        if (!wider) return false;
        f->row = wider;
        f->room = room;
    }
    f->row[f->rows++] = *row;
    return true;
}

static bool add_rank(struct ranks_facts *f, size_t part)
{
    struct run_facts run;
    struct fdr_file *file = f->part[part].file;
    if (!run_facts_of(file, f->part[part].path, &run)) return false;
    struct rank_facts *r = &f->rank[f->ranks++];
    *r = (struct rank_facts){.part = part, .rank = rank_of_file(file, f->part[part].path), .length_ns = run.length_ns};
    bool whole = true;
    for (uint32_t id = 1; whole && id < run.regions; id++) {
        const struct region_facts *own = &run.region[id];
        if (!own->calls) continue;
        whole = add_row(f, &(struct rank_row){region_name(file, id), (uint32_t)part, id, own->calls, own->exclusive_ns,
                                              own->waits});
        if (own->waits) r->waiting_ns += (double)own->exclusive_ns;
    }
    if (r->length_ns > f->length_ns) f->length_ns = r->length_ns;
    run_facts_free(&run);
    return whole;
}

static int by_name(const void *x, const void *y)
{
    const struct rank_row *a = x, *b = y;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->part > b->part) - (a->part < b->part);
}

/* Copies of one function in a recording are one row. */
static void join_rows(struct ranks_facts *f)
{
    size_t used = 0;
    for (size_t i = 0; i < f->rows; i++) {
        struct rank_row *last = used ? &f->row[used - 1] : NULL;
        if (last && last->part == f->row[i].part && !strcmp(last->name, f->row[i].name)) {
            last->calls += f->row[i].calls;
            last->own_ns += f->row[i].own_ns;
        } else {
            f->row[used++] = f->row[i];
        }
    }
    f->rows = used;
}

static int by_rank(const void *x, const void *y)
{
    const struct rank_facts *a = x, *b = y;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* False: these are not the ranks of one job, or memory is out. */
static bool facts_of(const struct job_part *part, size_t count, struct ranks_facts *f, bool *failed)
{
    *f = (struct ranks_facts){.part = part, .rank = calloc(count + 1, sizeof *f->rank)};
    bool whole = f->rank != NULL;
    for (size_t i = 0; whole && i < count; i++)
        if (rank_of_file(part[i].file, part[i].path) >= 0) whole = add_rank(f, i);
    *failed = !whole;
    if (!whole) return false;
    qsort(f->rank, f->ranks, sizeof *f->rank, by_rank);
    for (size_t i = 1; i < f->ranks; i++)
        if (f->rank[i].rank == f->rank[i - 1].rank) return false;
    if (f->rows) qsort(f->row, f->rows, sizeof *f->row, by_name);
    join_rows(f);
    return f->ranks > 1;
}

static int rank_of_part(const struct ranks_facts *f, size_t part)
{
    for (size_t i = 0; i < f->ranks; i++)
        if (f->rank[i].part == part) return f->rank[i].rank;
    return -1;
}

/* "rank 2", "ranks 2, 3 and 5 more" */
static const char *ranks_text(const struct finding *row, char text[96])
{
    size_t used = (size_t)snprintf(text, 96, row->ranks == 1 ? "rank %d" : "ranks %d", row->rank[0]);
    for (size_t i = 1; i < row->ranks && i < 4; i++)
        used += (size_t)snprintf(text + used, 96 - used, ", %d", row->rank[i]);
    if (row->ranks_in_all > 4) snprintf(text + used, 96 - used, " and %zu more", row->ranks_in_all - 4);
    return text;
}

static void add_ranks(struct finding *row, int rank)
{
    row->ranks_in_all++;
    if (row->ranks < FINDING_LOCATIONS) row->rank[row->ranks++] = rank;
}

/* ---- ranks that work longer ---- */

struct unlike {
    const struct rank_row **row; /* of one region, the longest first */
    size_t count, slow;          /* the first `slow` of them are unlike the others */
    double usual_ns, extra_ns;
};

static int by_own(const void *x, const void *y)
{
    const struct rank_row *a = *(const struct rank_row *const *)x, *b = *(const struct rank_row *const *)y;
    return a->own_ns < b->own_ns ? 1 : a->own_ns > b->own_ns ? -1 : 0;
}

/* Ranks that never call the region count as 0. A group of at most half of the ranks is slow on two conditions. A gap of
 * 1.3 times divides it from the others, and it takes 1.5 times the middle rank. */
static bool is_unlike(const struct ranks_facts *f, struct unlike *u)
{
    size_t middle = f->ranks / 2;
    u->usual_ns = middle < u->count ? (double)u->row[middle]->own_ns : 0;
    for (u->slow = 1; u->slow <= f->ranks / 2; u->slow++) {
        double least = (double)u->row[u->slow - 1]->own_ns;
        double next = u->slow < u->count ? (double)u->row[u->slow]->own_ns : 0;
        u->extra_ns = least - u->usual_ns;
        if (least < 1.5 * u->usual_ns || u->extra_ns < LEAST_SHARE * f->length_ns) return false;
        if (least >= 1.3 * next) return true;
        if (u->slow == u->count) return false;
    }
    return false;
}

/* The region in which the others wait longer than the slow rank, by about as much as it is slow. */
static const struct rank_row *waited_in(const struct ranks_facts *f, size_t slow_part, double extra_ns, double *longer)
{
    const struct rank_row *best = NULL;
    *longer = 0;
    for (size_t i = 0, end; i < f->rows; i = end) {
        double own = 0, others = 0;
        for (end = i; end < f->rows && !strcmp(f->row[end].name, f->row[i].name); end++) {
            if (f->row[end].part == slow_part) own = (double)f->row[end].own_ns;
            else others += (double)f->row[end].own_ns;
        }
        double more = others / (double)(f->ranks - 1) - own;
        if (!f->row[i].waits || more < *longer || more < 0.2 * extra_ns) continue;
        *longer = more;
        best = &f->row[i];
    }
    return best;
}

static void say_pace(struct finding *row, const struct unlike *u)
{
    char slow[HUMAN_BYTES], usual[HUMAN_BYTES];
    const struct rank_row *most = u->row[0], *other = u->count > u->slow ? u->row[u->slow] : NULL;
    if (!other) return;
    double calls = (double)most->calls, others = (double)other->calls;
    if (calls > 1.2 * others || others > 1.2 * calls)
        add_evidence(row, "%.0f calls there, %.0f in rank %d", calls, others, row->rank[0]);
    add_evidence(row, "exact totals: a call takes %s on average there, %s in the next rank",
                 human_time(slow, most->own_ns / most->calls), human_time(usual, other->own_ns / other->calls));
}

static void add_unlike(const struct ranks_facts *f, struct findings *to, const struct unlike *u)
{
    char slow[HUMAN_BYTES], usual[HUMAN_BYTES], wait[HUMAN_BYTES], who[96];
    double longer, share = u->extra_ns / f->length_ns;
    struct finding *row = add_finding(to, FINDING_IMBALANCE, share);
    if (!row) return;
    const struct rank_row *most = u->row[0], *wait_row = waited_in(f, most->part, u->extra_ns, &longer);
    row->file = most->part;
    row->region = most->region;
    for (size_t i = 0; i < u->slow; i++) add_ranks(row, rank_of_part(f, u->row[i]->part));
    row->value = (double)most->own_ns / (u->usual_ns > 0 ? u->usual_ns : (double)most->own_ns);
    row->unit = "times";
    row->share = share;
    row->sure = f->ranks > 2 ? 0.9 : 0.7;
    say(row, "%.100s takes %s in %s, %s in the middle rank", plain_name(most->name), human_time(slow, most->own_ns),
        ranks_text(row, who), human_time(usual, (uint64_t)u->usual_ns));
    if (wait_row)
        say(row, "; the others wait %s longer in %.80s.", human_time(wait, (uint64_t)longer),
            plain_name(wait_row->name));
    else say(row, ".");
    say_pace(row, u);
}

/* True: some finding is about this rank. */
static bool is_told(const struct findings *to, int rank)
{
    for (size_t i = 0; i < to->count; i++)
        for (size_t k = 0; to->row[i].kind == FINDING_IMBALANCE && k < to->row[i].ranks; k++)
            if (to->row[i].rank[k] == rank) return true;
    return false;
}

static void find_unlike(const struct ranks_facts *f, struct findings *to)
{
    const struct rank_row **row = calloc(f->ranks + 1, sizeof *row);
    to->failed |= !row;
    for (size_t i = 0, end; row && i < f->rows; i = end) {
        struct unlike u = {.row = row};
        for (end = i; end < f->rows && !strcmp(f->row[end].name, f->row[i].name); end++) row[u.count++] = &f->row[end];
        if (f->row[i].waits || !strncmp(f->row[i].name, "MPI_", 4)) continue;
        qsort(row, u.count, sizeof *row, by_own);
        if (is_unlike(f, &u)) add_unlike(f, to, &u);
    }
    free(row);
}

/* ---- who comes last, and waiting ---- */

static int by_waiting(const void *x, const void *y)
{
    const struct rank_facts *a = x, *b = y;
    return a->waiting_ns < b->waiting_ns ? -1 : a->waiting_ns > b->waiting_ns;
}

/* A rank that waits far less than the others comes last where they meet. Why, no recorded region tells. */
static void find_last(const struct ranks_facts *f, struct findings *to, const struct rank_facts *sorted)
{
    char own[HUMAN_BYTES], usual[HUMAN_BYTES];
    const struct rank_facts *last = &sorted[0], *middle = &sorted[f->ranks / 2];
    double less = middle->waiting_ns - last->waiting_ns, longer;
    if (less < LEAST_SHARE * f->length_ns || middle->waiting_ns < 1.5 * last->waiting_ns) return;
    if (sorted[1].waiting_ns < 1.3 * last->waiting_ns || is_told(to, last->rank)) return;
    const struct rank_row *where = waited_in(f, last->part, less, &longer);
    struct finding *row = add_finding(to, FINDING_IMBALANCE, less / f->length_ns);
    if (!row) return;
    row->file = last->part;
    add_ranks(row, last->rank);
    row->value = less;
    row->unit = "ns";
    row->share = less / f->length_ns;
    row->sure = 0.7;
    say(row, "rank %d comes last: it waits %s for others, the middle rank %s", last->rank,
        human_time(own, (uint64_t)last->waiting_ns), human_time(usual, (uint64_t)middle->waiting_ns));
    if (where) say(row, "; the difference is largest in %.80s", plain_name(where->name));
    say(row, ".");
    add_evidence(row, "exact totals; by their names these regions wait. No other recorded region takes longer there");
}

static const struct rank_row *most_waited(const struct ranks_facts *f, double *ns)
{
    const struct rank_row *best = NULL;
    *ns = 0;
    for (size_t i = 0, end; i < f->rows; i = end) {
        double sum = 0;
        for (end = i; end < f->rows && !strcmp(f->row[end].name, f->row[i].name); end++)
            sum += (double)f->row[end].own_ns;
        if (f->row[i].waits && sum > *ns) *ns = sum, best = &f->row[i];
    }
    return best;
}

static void find_waits(const struct ranks_facts *f, struct findings *to, const struct rank_facts *sorted)
{
    double all = 0, waiting = 0, most_ns;
    for (size_t i = 0; i < f->ranks; i++) all += f->rank[i].length_ns, waiting += f->rank[i].waiting_ns;
    const struct rank_row *most = most_waited(f, &most_ns);
    if (!most || waiting < LEAST_WAIT * all) return;
    double weight = 0.1 * waiting / all; /* its reason, if there is one, comes before it */
    for (size_t i = 0; i < to->count; i++)
        if (0.9 * to->row[i].weight < weight) weight = 0.9 * to->row[i].weight;
    struct finding *row = add_finding(to, FINDING_WAIT, weight);
    if (!row) return;
    row->file = SIZE_MAX;
    row->region = UINT32_MAX;
    row->value = waiting / all;
    row->unit = "of the time";
    row->share = waiting / all;
    row->sure = 0.6;
    say(row, "The %zu ranks wait %.0f %% of their time, most in %.80s (%.0f %%).", f->ranks, 100 * waiting / all,
        plain_name(most->name), 100 * most_ns / all);
    char least[HUMAN_BYTES], longest[HUMAN_BYTES];
    add_evidence(row, "exact totals; rank %d waits least, %s, and rank %d most, %s", sorted[0].rank,
                 human_time(least, (uint64_t)sorted[0].waiting_ns), sorted[f->ranks - 1].rank,
                 human_time(longest, (uint64_t)sorted[f->ranks - 1].waiting_ns));
    add_evidence(row, "by their names these regions wait; calls of MPI also move data");
}

static void find_waiting_ranks(const struct ranks_facts *f, struct findings *to)
{
    struct rank_facts *sorted = calloc(f->ranks, sizeof *sorted);
    to->failed |= !sorted;
    if (!sorted) return;
    memcpy(sorted, f->rank, f->ranks * sizeof *sorted);
    qsort(sorted, f->ranks, sizeof *sorted, by_waiting);
    find_last(f, to, sorted);
    find_waits(f, to, sorted);
    free(sorted);
}

static void tell_missing_ranks(const struct ranks_facts *f, struct findings *to)
{
    int world = 0;
    for (size_t i = 0; i < f->ranks; i++) {
        int size = world_size(f->part[f->rank[i].part].file);
        if (size > world) world = size;
    }
    if ((size_t)world > f->ranks)
        cannot_judge(to, "imbalance between ranks", "%zu of %d ranks have no recording", (size_t)world - f->ranks,
                     world);
}

static int by_weight(const void *x, const void *y)
{
    double a = ((const struct finding *)x)->weight, b = ((const struct finding *)y)->weight;
    return a < b ? 1 : a > b ? -1 : 0;
}

void job_findings_of(const struct job_part *part, size_t count, struct findings *to)
{
    struct ranks_facts f;
    *to = (struct findings){0};
    if (facts_of(part, count, &f, &to->failed)) {
        find_unlike(&f, to);
        find_waiting_ranks(&f, to);
        tell_missing_ranks(&f, to);
    }
    if (to->count) qsort(to->row, to->count, sizeof *to->row, by_weight);
    free(f.rank);
    free(f.row);
}
