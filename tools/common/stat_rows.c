/* SPDX-License-Identifier: MIT */
/* Gathers the rows of fdr stats, from the exact totals or from the kept events. */
#include "tools/common/stat_rows.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/progress.h"
#include "tools/common/short_names.h"

static bool wants_location(const struct fdr_select *s, uint32_t location)
{
    for (size_t i = 0; i < s->location_count; i++)
        if (s->locations[i] == location) return true;
    return s->locations == NULL;
}

static bool wants_region(const struct fdr_select *s, uint32_t id)
{
    return !s->regions || (id < s->region_count && s->regions[id]);
}

/* Locations with a rest that may contain a selected region without an exact row. */
struct rests {
    /* by the index of the location, because a damaged file may give it any id; the last: locations not listed */
    bool *has_rest;
    uint32_t count;
};

static uint32_t key_of(const struct fdr_total *t, enum stat_by by) { return by == BY_LOCATION ? t->location : t->id; }

/* The folded regions of a table by region come last, in one row. */
static bool is_rest(const struct fdr_total *t, enum stat_by by) { return by == BY_REGION && t->rest; }

static int compare(const struct fdr_total *x, const struct fdr_total *y, enum stat_by by)
{
    if (x->class_ != y->class_) return x->class_ < y->class_ ? -1 : 1;
    if (is_rest(x, by) != is_rest(y, by)) return is_rest(x, by) ? 1 : -1;
    if (is_rest(x, by)) return 0;
    if (key_of(x, by) != key_of(y, by)) return key_of(x, by) < key_of(y, by) ? -1 : 1;
    if (by == BY_LOCATION || x->operation == y->operation) return 0;
    return x->operation < y->operation ? -1 : 1;
}

static int by_region(const void *a, const void *b)
{
    return compare(*(const struct fdr_total *const *)a, *(const struct fdr_total *const *)b, BY_REGION);
}

static int by_location(const void *a, const void *b)
{
    return compare(*(const struct fdr_total *const *)a, *(const struct fdr_total *const *)b, BY_LOCATION);
}

/* The selected totals, equal keys adjacent. With a selection of regions it includes a rest that may contain more of
 * them. NULL: out of memory. */
static const struct fdr_total **sorted(const struct fdr_file *file, const struct fdr_select *select, enum stat_by by,
                                       const struct rests *rests, size_t *count)
{
    bool regions = rests != NULL;
    const struct fdr_total *all;
    size_t n = fdr_totals(file, &all), used = 0;
    const struct fdr_total **list = malloc((n + 1) * sizeof *list);
    for (size_t i = 0; list && i < n; i++) {
        bool is_region = all[i].class_ == FDR_IN_REGION;
        if (is_region != regions || !wants_location(select, all[i].location)) continue;
        bool rest = all[i].rest && regions && rests->has_rest[location_index(file, all[i].location)];
        if (!is_region || (all[i].rest ? rest : wants_region(select, all[i].id))) list[used++] = &all[i];
    }
    if (list) qsort(list, used, sizeof *list, by == BY_LOCATION ? by_location : by_region);
    *count = used;
    return list;
}

static void add_histogram(uint64_t *to, const uint64_t *from)
{
    for (size_t i = 0; i < HISTOGRAM_BINS; i++) to[i] += from[i];
}

double percentile(const uint64_t histogram[HISTOGRAM_BINS], double share)
{
    uint64_t all = 0, sum = 0;
    for (int b = 0; b < 64; b++) all += histogram[b];
    double wanted = share * (double)all;
    for (int b = 0; b < 63; b++) {
        if (!histogram[b] || (double)(sum + histogram[b]) < wanted) {
            sum += histogram[b];
            continue;
        }
        double part = (wanted - (double)sum) / (double)histogram[b];
        return (double)(1ull << b) * (1 + (part < 0 ? 0 : part));
    }
    return 0;
}

bool add_time(uint64_t *sum, uint64_t ns)
{
    bool fits = ns <= UINT64_MAX - *sum;
    *sum = fits ? *sum + ns : UINT64_MAX;
    return fits;
}

/* The reader's `calls` are the timed calls. Here `calls` is all, and `untimed` the part without a time. */
static void add_total(struct stat_row *r, const struct fdr_total *t)
{
    bool first = r->calls == r->untimed;
    r->calls += t->calls + t->untimed;
    r->untimed += t->untimed;
    r->saturated |= t->saturated;
    r->saturated |= !add_time(&r->inclusive_ns, t->inclusive_ns);
    r->saturated |= !add_time(&r->exclusive_ns, t->exclusive_ns);
    if (t->calls == 0) return;
    if (first || t->min_ns < r->min_ns) r->min_ns = t->min_ns;
    if (t->max_ns > r->max_ns) r->max_ns = t->max_ns;
    r->has_histogram = r->has_histogram && t->has_histogram;
    if (r->has_histogram) add_histogram(r->histogram, t->histogram);
}

size_t chosen_regions(const struct fdr_select *select)
{
    size_t chosen = 0;
    for (size_t id = 0; select->regions && id < select->region_count; id++) chosen += select->regions[id] != 0;
    return select->regions ? chosen : SIZE_MAX;
}

static bool find_rests(struct rests *r, const struct fdr_file *file, const struct fdr_select *select)
{
    const struct fdr_total *all;
    size_t count = fdr_totals(file, &all), chosen = chosen_regions(select), room = fdr_location_count(file) + 1;
    r->has_rest = calloc(room, sizeof *r->has_rest);
    size_t *exact = calloc(room, sizeof *exact); /* number of exact rows of selected regions */
    for (size_t i = 0; exact && i < count; i++) {
        const struct fdr_total *t = &all[i];
        exact[location_index(file, t->location)] += t->class_ == FDR_IN_REGION && !t->rest && !t->at_least &&
                                                    wants_region(select, t->id);
    }
    for (size_t i = 0; r->has_rest && exact && i < count; i++) {
        size_t at = location_index(file, all[i].location);
        if (!all[i].rest || !wants_location(select, all[i].location) || exact[at] >= chosen) continue;
        r->has_rest[at] = true;
        r->count++;
    }
    bool good = r->has_rest && exact;
    free(exact);
    return good;
}

/* The same for kinds of points: a point that found no row, or lost it, is in no sum. */
static bool find_folded(struct rests *r, const struct fdr_file *file, const struct fdr_select *select)
{
    size_t count = fdr_location_count(file);
    r->has_rest = calloc(count + 1, sizeof *r->has_rest);
    for (size_t i = 0; r->has_rest && i < count; i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (!(l->points_without_row || l->totals_lost) || !wants_location(select, l->id)) continue;
        r->has_rest[i] = true;
        r->count++;
    }
    return r->has_rest != NULL;
}

/* True if sums over all locations are incomplete: threads that ended during the copy are missing, and so are events
 * that belong to no location. */
static bool threads_lack(const struct fdr_file *file, const struct fdr_select *select)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    return (info->threads_gone || info->lost_unattached) && wants_location(select, UINT32_MAX);
}

static void set_certainty(struct stat_rows *rows, const struct rests *rests, enum stat_by by, bool lack)
{
    for (size_t i = 0; by == BY_REGION && i < rows->count; i++)
        rows->row[i].at_least |= lack || (!rows->row[i].rest && rows->row[i].beside_rest < rests->count);
}

bool rows_from_totals(struct stat_rows *rows, const struct fdr_file *file, const struct fdr_select *select,
                      enum stat_by by)
{
    size_t count = 0;
    struct rests rests = {0};
    const struct fdr_total **list = find_rests(&rests, file, select) ? sorted(file, select, by, &rests, &count) : NULL;
    *rows = (struct stat_rows){list ? calloc(count + 1, sizeof *rows->row) : NULL, 0};
    for (size_t i = 0; rows->row && i < count; i++) {
        if (i == 0 || compare(list[i - 1], list[i], by) != 0) {
            struct stat_row *fresh = &rows->row[rows->count++];
            fresh->id = is_rest(list[i], by) ? 0 : key_of(list[i], by);
            fresh->rest = is_rest(list[i], by);
            fresh->has_histogram = true;
        }
        struct stat_row *r = &rows->row[rows->count - 1];
        r->at_least |= list[i]->at_least;
        r->beside_rest += rests.has_rest[location_index(file, list[i]->location)] && !list[i]->at_least;
        if (by == BY_LOCATION && list[i]->rest && select->regions) r->at_least = true;
        else add_total(r, list[i]);
    }
    if (rows->row) set_certainty(rows, &rests, by, threads_lack(file, select));
    free(rests.has_rest);
    free(list);
    return rows->row != NULL;
}

static void join_row(struct stat_row *to, const struct stat_row *r)
{
    bool to_timed = to->calls > to->untimed, timed = r->calls > r->untimed;
    if (timed && (!to_timed || r->min_ns < to->min_ns)) to->min_ns = r->min_ns;
    if (timed && r->max_ns > to->max_ns) to->max_ns = r->max_ns;
    to->calls += r->calls;
    to->untimed += r->untimed;
    to->at_least |= r->at_least;
    to->saturated |= r->saturated;
    to->saturated |= !add_time(&to->inclusive_ns, r->inclusive_ns);
    to->saturated |= !add_time(&to->exclusive_ns, r->exclusive_ns);
    to->has_histogram = to->has_histogram && r->has_histogram;
    if (to->has_histogram) add_histogram(to->histogram, r->histogram);
}

bool rows_join_copies(struct stat_rows *rows, const struct fdr_file *file)
{
    size_t regions = fdr_definition_count(file, FDR_REGION_DEFINITION), used = 0;
    uint32_t *same = same_functions(file),
             *row_of = calloc(regions + 1, sizeof *row_of); /* number of the row, from 1 */
    for (size_t i = 0; same && row_of && i < rows->count; i++) {
        const struct stat_row r = rows->row[i];
        uint32_t *row = !r.rest && r.id && r.id <= regions ? &row_of[same[r.id]] : NULL;
        if (row && *row) {
            join_row(&rows->row[*row - 1], &r);
            continue;
        }
        rows->row[used++] = r;
        if (row) *row = (uint32_t)used;
    }
    bool good = same && row_of;
    if (good) rows->count = used;
    free(same);
    free(row_of);
    return good;
}

void rows_free(struct stat_rows *rows)
{
    free(rows->row);
    *rows = (struct stat_rows){0};
}

/* ---- from events ------------------------------------------------------------------------------------------------ */

struct gather {
    struct stat_rows rows; /* row i stands for id i; one more for undefined ids */
    enum stat_by by;
    size_t index; /* BY_LOCATION: of the current location */
    const struct fdr_file *file;
    bool failed;
    struct progress progress;
    uint64_t *whole_ns; /* of each open call */
    size_t depth, room;
};

static unsigned histogram_bin(uint64_t ns)
{
    unsigned bin = 0;
    while (ns >>= 1) bin++;
    return bin;
}

/* Of a call at the edge of a time window the part inside counts as time; min, max and histogram take the whole call. */
static void add_call(struct stat_row *r, const struct fdr_call *c, uint64_t whole_ns)
{
    if (r->calls == 0 || whole_ns < r->min_ns) r->min_ns = whole_ns;
    if (whole_ns > r->max_ns) r->max_ns = whole_ns;
    r->calls++;
    r->saturated |= !add_time(&r->inclusive_ns, c->duration_ns);
    r->saturated |= !add_time(&r->exclusive_ns, c->exclusive_ns);
    r->histogram[histogram_bin(whole_ns)]++;
}

/* Grows the rows: depths are known only when they are met. */
static bool room_for(struct gather *g, size_t index)
{
    if (index < g->rows.count) return true;
    size_t more = index * 2 + 64;
    struct stat_row *row = realloc(g->rows.row, more * sizeof *row);
    if (!row) return false;
    memset(row + g->rows.count, 0, (more - g->rows.count) * sizeof *row);
    g->rows = (struct stat_rows){row, more};
    return true;
}

static size_t index_of(const struct gather *g, const struct fdr_call *c)
{
    if (g->by == BY_DEPTH) return c->depth < DEPTHS_MOST ? c->depth : DEPTHS_MOST;
    if (g->by == BY_LOCATION) return g->index;
    return c->region < g->rows.count ? c->region : 0;
}

static bool on_enter(void *context, const struct fdr_read_event *e)
{
    struct gather *g = context;
    if (g->depth == g->room) {
        size_t room = g->room ? g->room * 2 : 256;
        uint64_t *grown = realloc(g->whole_ns, room * sizeof *grown);
        g->failed = g->failed || !grown;
        if (!grown) return false;
        g->whole_ns = grown;
        g->room = room;
    }
    g->whole_ns[g->depth++] = e->duration_ns;
    return true;
}

static void on_leave(void *context, const struct fdr_call *c)
{
    struct gather *g = context;
    uint64_t whole_ns = g->depth ? g->whole_ns[--g->depth] : c->duration_ns;
    if (c->open || c->reduced) return;
    size_t index = index_of(g, c);
    g->failed = g->failed || !room_for(g, index);
    if (!g->failed) add_call(&g->rows.row[index], c, whole_ns > c->duration_ns ? whole_ns : c->duration_ns);
}

static void on_location(void *context, uint32_t location)
{
    struct gather *g = context;
    g->depth = 0;
    for (size_t i = 0; i < fdr_location_count(g->file); i++)
        if (fdr_location_info(g->file, i)->id == location) g->index = i;
}

static void on_progress(void *context, uint64_t events)
{
    struct gather *g = context;
    progress_at(&g->progress, events);
}

static void keep_used(struct gather *g)
{
    size_t used = 0;
    for (size_t i = 0; i < g->rows.count; i++) {
        if (g->rows.row[i].calls == 0) continue;
        if (used != i) g->rows.row[used] = g->rows.row[i];
        g->rows.row[used].id = g->by == BY_LOCATION ? fdr_location_info(g->file, i)->id : (uint32_t)i;
        g->rows.row[used++].has_histogram = true;
    }
    g->rows.count = used;
}

bool rows_from_events(struct stat_rows *rows, struct fdr_file *file, const struct fdr_select *select, enum stat_by by)
{
    struct gather g = {.by = by, .file = file, .progress = {.what = "stats"}};
    const struct fdr_call_visitor visitor = {&g, on_location, on_enter, on_leave, on_progress};
    size_t count = 64;
    if (by == BY_REGION) count = fdr_definition_count(file, FDR_REGION_DEFINITION) + 1;
    if (by == BY_LOCATION) count = fdr_location_count(file) + 1;
    g.rows = (struct stat_rows){calloc(count, sizeof *g.rows.row), count};
    progress_now(&g.progress, 0);
    bool good = g.rows.row && fdr_visit_calls(file, select, &visitor) == 0 && !g.failed;
    progress_end(&g.progress);
    free(g.whole_ns);
    if (good) keep_used(&g);
    else rows_free(&g.rows);
    *rows = g.rows;
    return good;
}

/* ---- events without duration ------------------------------------------------------------------------------------ */

static uint32_t value_type_of(const struct fdr_file *file, const struct fdr_total *t)
{
    if (t->class_ != FDR_IN_METRIC || t->rest) return 0;
    return fdr_metric_info(file, t->id)->type;
}

static double real_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool less(uint32_t type, uint64_t a, uint64_t b)
{
    if (type == 2) return real_of(a) < real_of(b);
    return type == 1 ? (int64_t)a < (int64_t)b : a < b;
}

/* False: the sum does not fit and becomes the bound that it would have passed. */
static bool add_value(uint32_t type, uint64_t *sum, uint64_t value)
{
    int64_t both;
    if (type == 2) {
        double real = real_of(*sum) + real_of(value);
        memcpy(sum, &real, sizeof real);
        return true;
    }
    if (type == 0) return add_time(sum, value);
    bool fits = !__builtin_add_overflow((int64_t)*sum, (int64_t)value, &both);
    *sum = (uint64_t)(fits ? both : (int64_t)value < 0 ? INT64_MIN : INT64_MAX);
    return fits;
}

static void add_sum(struct point_row *r, const struct fdr_total *t)
{
    if (r->saturated) return;
    r->saturated = t->saturated;
    if (t->saturated || !r->events) r->sum = t->sum_u;
    else r->saturated = !add_value(r->value_type, &r->sum, t->sum_u);
}

static void add_point(struct point_row *r, const struct fdr_total *t)
{
    if (t->calls == 0) return;
    if (r->events == 0 || less(r->value_type, t->min_u, r->min)) r->min = t->min_u;
    if (r->events == 0 || less(r->value_type, r->max, t->max_u)) r->max = t->max_u;
    add_sum(r, t);
    r->events += t->calls;
    r->saturated |= !add_time(&r->time_ns, t->inclusive_ns);
    r->has_histogram = r->has_histogram && t->has_histogram;
    if (r->has_histogram) add_histogram(r->histogram, t->histogram);
}

bool points_from_totals(struct point_row **rows, size_t *count, const struct fdr_file *file,
                        const struct fdr_select *select)
{
    size_t n;
    const struct fdr_total **list = sorted(file, select, BY_REGION, NULL, &n);
    struct rests folded = {0};
    *rows = list && find_folded(&folded, file, select) ? calloc(n + 1, sizeof **rows) : NULL;
    *count = 0;
    for (size_t i = 0; *rows && i < n; i++) {
        const struct fdr_total *t = list[i];
        if (i == 0 || compare(list[i - 1], t, BY_REGION) != 0)
            (*rows)[(*count)++] = (struct point_row){.class_ = t->class_,
                                                     .id = t->id,
                                                     .operation = t->operation,
                                                     .value_type = value_type_of(file, t),
                                                     .has_histogram = true,
                                                     .rest = t->rest};
        (*rows)[*count - 1].at_least |= t->at_least;
        (*rows)[*count - 1].beside_rest += folded.has_rest[location_index(file, t->location)];
        add_point(&(*rows)[*count - 1], t);
    }
    bool lack = threads_lack(file, select);
    for (size_t i = 0; *rows && i < *count; i++) (*rows)[i].at_least |= lack || (*rows)[i].beside_rest < folded.count;
    free(folded.has_rest);
    free(list);
    return *rows != NULL;
}

uint64_t points_without_row(const struct fdr_file *file, const struct fdr_select *select)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (wants_location(select, l->id)) sum += l->points_without_row;
    }
    return sum;
}

const char *operation_name(uint32_t operation)
{
    const char *const *word = fdr_kind_info(FDR_IO_END)->field[0].word;
    for (uint32_t i = 0; word[i]; i++)
        if (i == operation) return word[i];
    return "other";
}

const char *point_name(const struct fdr_file *file, const struct point_row *row)
{
    if (row->rest) return "[rest]";
    return fdr_id_name(file, row->class_, row->id);
}
