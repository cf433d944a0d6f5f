/* SPDX-License-Identifier: MIT */
/* Exact totals: the rows of each location's table; where the table is damaged, the rows a scan of the slabs finds. */
#include "reader/reader.h"

#include <stdlib.h>
#include <string.h>

#define KEY_ID(key)   ((key)&0xffffffu)
#define KEY_KIND(key) ((key) >> 24)
#define NO_CLASS      UINT32_MAX

static uint32_t class_of(uint32_t key)
{
    if (key == FDR_ROW_KEY_REST) return FDR_IN_REGION;
    switch (KEY_KIND(key)) {
    case 0: return KEY_ID(key) == 1 || KEY_ID(key) == 2 ? FDR_IN_MESSAGE : NO_CLASS;
    case FDR_DEF_REGION: return FDR_IN_REGION;
    case FDR_DEF_METRIC: return FDR_IN_METRIC;
    case FDR_DEF_MARKER: return FDR_IN_MARKER;
    case FDR_DEF_EVENT: return FDR_IN_USER;
    case FDR_DEF_COLLECTIVE: return FDR_IN_COLLECTIVE;
    default: return NO_CLASS;
    }
}

bool fdri_reader_row_known(uint32_t key) { return class_of(key) != NO_CLASS; }

/* Is this a key the recorder writes? A collective's begins are skipped: its ends stand for the operation. */
static bool wanted(const struct fdr_row *r)
{
    uint32_t class_ = class_of(r->key);
    if (class_ == NO_CLASS || !(r->calls | r->untimed)) return false;
    return class_ != FDR_IN_COLLECTIVE || (r->key & 1);
}

/* Found without a table, a row must look like one in everything. */
static bool plausible(const struct fdr_row *r)
{
    if (!wanted(r) || r->calls == 0 || r->histogram >> 48 || r->flags & 0xf8u) return false;
    if (class_of(r->key) != FDR_IN_REGION) return true;
    return KEY_ID(r->key) <= FDR_ID_MAX && r->min <= r->max && r->exclusive <= r->sum && r->max <= r->sum;
}

static uint64_t counted(const struct fdr_total *t)
{
    uint64_t in = 0;
    for (int i = 0; i < 64; i++) in += t->histogram[i];
    return in;
}

/* The newest call, if it is of this row and in no counter yet: as it says which one. */
static void count_newest(const struct fdri_reader_location *l, const struct fdr_row *r, struct fdr_total *t)
{
    uint32_t bucket = (l->raw.counting - (uint32_t)r->histogram) / (uint32_t)sizeof(uint64_t);
    uint32_t first = fdr_histogram_first(r->histogram), n = fdr_histogram_count(r->histogram) & 0xff;
    if (!l->raw.counting || bucket < first || bucket >= first + n || counted(t) >= r->calls) return;
    t->histogram[bucket]++;
}

/* Counts of buckets first .. first + n - 1. false: they are not where the row says. */
static bool histogram(const struct fdr_file *f, const struct fdr_row *r, struct fdr_total *t)
{
    uint64_t off = fdr_histogram_off(r->histogram);
    uint32_t first = fdr_histogram_first(r->histogram), n = fdr_histogram_count(r->histogram) & 0xff;
    const void *counts = off % 8 || off < f->sb.bins_off ? NULL : fdri_reader_at(f, off, n * sizeof(uint64_t));
    if (!counts || first + n > 64) return false;
    memcpy(&t->histogram[first], counts, n * sizeof(uint64_t));
    t->has_histogram = true;
    return true;
}

/* Every call is in a bucket. In a copy made beside its thread the row may be older or newer than its histogram, by what
 * happened meanwhile; by more only where the histogram had moved, and its old place serves others. One without any
 * count is not there: it moved to a place that was copied before, and the row that leads there behind that. */
static bool adds_up(const struct fdr_file *f, const struct fdri_reader_location *l, const struct fdr_total *t)
{
    uint64_t in = counted(t), before, after, most = 1ull + l->raw.abandoned;
    uint64_t apart = in > t->calls ? in - t->calls : t->calls - in;
    if (apart <= most) return true;
    if (!in) return false;
    fdr_ledger_bounds(f, l->id, &before, &after);
    return after > before && apart <= most + (after - before);
}

static void set_sums(const struct fdri_reader_location *l, const struct fdr_row *r, struct fdr_total *t)
{
    uint64_t min = r->min < r->max ? r->min : r->max; /* killed between the two: the first call has no min yet */
    if (t->class_ == FDR_IN_REGION) {
        t->inclusive_ns = fdri_reader_duration_ns(&l->clock, r->sum);
        t->exclusive_ns = fdri_reader_duration_ns(&l->clock, r->exclusive);
        t->min_ns = r->calls ? fdri_reader_duration_ns(&l->clock, min) : 0;
        t->max_ns = fdri_reader_duration_ns(&l->clock, r->max);
    } else {
        t->sum_u = r->sum;
        t->min_u = r->calls ? r->min : 0; /* of the metric's type: not ours to compare */
        t->max_u = r->max;
    }
}

static void leave_out(struct fdr_file *f, struct fdr_total *t)
{
    t->has_histogram = false;
    memset(t->histogram, 0, sizeof t->histogram);
    f->info.histograms_left_out++;
}

static void add_row(struct fdr_file *f, const struct fdri_reader_location *l, const struct fdr_row *r)
{
    if (f->total_count > f->end / sizeof *r) return; /* more rows than fit: some are named many times */
    if (!wanted(r) || !fdri_reader_room(&f->total, f->total_count, &f->total_room, sizeof *f->total)) return;
    struct fdr_total *t = &f->total[f->total_count++];
    memset(t, 0, sizeof *t);
    t->location = l->id;
    t->class_ = class_of(r->key);
    t->rest = r->key == FDR_ROW_KEY_REST;
    t->id = t->rest ? 0 : t->class_ == FDR_IN_COLLECTIVE ? KEY_ID(r->key) >> 1 : KEY_ID(r->key);
    /* of each thread that ended a row is exact or in its rest; of all of them together nobody knows */
    uint64_t without = t->class_ == FDR_IN_REGION ? l->raw.rows_folded : l->raw.points_without_row;
    t->at_least = l->raw.flags & FDR_LOCATION_ENDED && ((!t->rest && without) || f->info.threads_gone);
    t->calls = r->calls;
    t->untimed = r->untimed;
    t->saturated = r->flags & FDR_ROW_SATURATED;
    set_sums(l, r, t);
    if (r->histogram && !histogram(f, r, t)) {
        if (!l->settled) leave_out(f, t); /* it moved to where the copy had been already */
        else fdri_reader_damage(f, "location %u: the histogram of row %08x is damaged", l->id, r->key);
    }
    if (t->has_histogram) count_newest(l, r, t);
    if (t->has_histogram && !adds_up(f, l, t)) leave_out(f, t);
}

/* Is slot `at`, with `run` slots before it that are taken, where a search for the key would come? */
static bool reachable(uint32_t key, uint32_t log2, uint32_t at, uint32_t run)
{
    uint32_t home = (uint32_t)((uint64_t)(key * 0x9E3779B1u) >> (32 - log2));
    return ((at - home) & ((1u << log2) - 1)) <= run;
}

/* Where a row was to come the copy may have been already: what stands there is none of this table's. */
static bool foreign(const struct fdri_reader_location *l, const struct fdr_row *r, uint32_t log2, uint32_t at,
                    uint32_t run)
{
    if (l->settled || !l->in_tail) return false;
    return r->calls + r->untimed > l->tail.presented || !reachable(r->key, log2, at, run);
}

/* Slots that are taken at the table's end: a search goes on at its beginning. */
static uint32_t taken_at_end(const uint32_t *slot, uint32_t count)
{
    uint32_t n = 0;
    while (n < count && slot[count - 1 - n]) n++;
    return n;
}

/* All rows the table names. */
static bool from_table(struct fdr_file *f, const struct fdri_reader_location *l)
{
    uint64_t off = l->raw.rows_table_off;
    if (!off) return true;
    const struct fdr_rowtable *t = (const void *)fdri_reader_meta_at(f, off, FDR_META_ROWTABLE, l->id, sizeof *t);
    if (!t || t->log2 > 24) return false;
    const uint32_t *slot = fdri_reader_at(f, off + sizeof *t, sizeof *slot << t->log2);
    f->total_slots += 1u << t->log2;
    if (!slot || f->total_slots > f->end) return false; /* tables that overlap: no recorder wrote them */
    uint32_t run = taken_at_end(slot, 1u << t->log2);
    for (uint32_t i = 0; i < 1u << t->log2; i++, run++) {
        if (!slot[i]) {
            run = UINT32_MAX; /* none behind this one */
            continue;
        }
        const struct fdr_row *r = slot[i] % 64 || slot[i] < f->sb.bins_off ? NULL
                                                                           : fdri_reader_at(f, slot[i], sizeof *r);
        if (!r || (class_of(r->key) == NO_CLASS && l->settled)) return false;
        if (!foreign(l, r, t->log2, i, run)) add_row(f, l, r);
    }
    return true;
}

/* Rows and histograms lie mixed in the slabs; a row is told by its key and its sums. */
static void from_slabs(struct fdr_file *f, const struct fdri_reader_location *l)
{
    size_t count;
    const struct fdri_reader_meta *m = fdri_reader_meta_scan(f, FDR_META_ROWS, l->id, &count);
    for (size_t i = 0; i < count; i++) {
        const struct fdr_meta_head *h = fdri_reader_at(f, m[i].off, sizeof *h);
        for (uint64_t at = 64; h && at + 64 <= h->bytes; at += 64) {
            if (f->total_looks++ > f->end / 64) return; /* blocks that overlap: no recorder wrote them */
            const struct fdr_row *r = fdri_reader_at(f, m[i].off + at, sizeof *r);
            if (!r) break;
            if (plausible(r)) add_row(f, l, r);
        }
    }
}

static int by_place(const void *x, const void *y)
{
    const struct fdr_total *a = x, *b = y;
    if (a->location != b->location) return a->location < b->location ? -1 : 1;
    if (a->class_ != b->class_) return a->class_ < b->class_ ? -1 : 1;
    if (a->rest != b->rest) return a->rest ? 1 : -1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Rows named twice count once. */
static void drop_twins(struct fdr_file *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->total_count; i++)
        if (kept == 0 || by_place(&f->total[kept - 1], &f->total[i])) f->total[kept++] = f->total[i];
    f->total_count = kept;
}

static void collect(struct fdr_file *f, const struct fdri_reader_location *l)
{
    size_t before = f->total_count;
    bool had_rest = false;
    if (!l->off) return;
    if (!from_table(f, l)) {
        fdri_reader_damage(f, "location %u: the table of totals is damaged", l->id);
        f->total_count = before;
        from_slabs(f, l);
    }
    for (size_t i = before; i < f->total_count; i++) had_rest |= f->total[i].rest;
    uint64_t off = l->raw.rest_row_off;
    const struct fdr_row *r = had_rest || !off || off % 64 || off < f->sb.bins_off ? NULL
                                                                                   : fdri_reader_at(f, off, sizeof *r);
    if (r && r->key == FDR_ROW_KEY_REST) add_row(f, l, r);
}

size_t fdr_totals(const struct fdr_file *file, const struct fdr_total **rows)
{
    struct fdr_file *f = (struct fdr_file *)(uintptr_t)file; /* computed on first use */
    pthread_mutex_lock(&f->lock);
    if (!f->has_totals) {
        for (size_t i = 0; i < f->location_count; i++) collect(f, &f->location[i]);
        if (f->total_count) qsort(f->total, f->total_count, sizeof *f->total, by_place);
        drop_twins(f);
    }
    f->has_totals = true;
    pthread_mutex_unlock(&f->lock);
    *rows = f->total;
    return f->total_count;
}
