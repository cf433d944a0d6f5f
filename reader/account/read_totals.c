/* SPDX-License-Identifier: MIT */
/* Exact totals: the rows of each location's table. If a table is damaged: the rows that a scan of the slabs finds
 * and that agree with everything else. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/classes/class_table.h"
#include "reader/account/account.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KEY_ID(key) ((key)&0xffffffu)

static uint64_t histogram_calls(const struct fdr_total *t)
{
    uint64_t in = 0;
    for (int i = 0; i < 64; i++) in += t->histogram[i];
    return in;
}

/* Counts the newest call into its bucket, if it is one of this row's and in no bucket yet. The location names the
 * counter. */
static void count_newest(const struct fdri_file_location *l, const struct fdri_arena_row *r, struct fdr_total *t)
{
    uint32_t bucket = (l->raw.pending_counter_off - (uint32_t)r->histogram) / (uint32_t)sizeof(uint64_t);
    uint32_t first = fdri_arena_histogram_first(r->histogram), n = fdri_arena_histogram_count(r->histogram) & 0xff;
    if (!l->raw.pending_counter_off || bucket < first || bucket >= first + n || histogram_calls(t) >= r->calls) return;
    t->histogram[bucket]++;
}

/* Reads the counts of buckets first .. first + n - 1. Returns false if the row's link to them is wrong. Damaged
 * counts are left out. */
static bool histogram(const struct fdr_file *f, const struct fdri_arena_row *r, struct fdr_total *t)
{
    uint64_t off = fdri_arena_histogram_off(r->histogram);
    uint32_t first = fdri_arena_histogram_first(r->histogram), n = fdri_arena_histogram_count(r->histogram) & 0xff;
    const void *counts = off % 8 || off < f->sb.bins_off ? NULL : fdri_file_at(f, off, n * sizeof(uint64_t));
    if (!counts || first + n > 64) return false;
    if (fdri_file_is_suspect(f, off, n * sizeof(uint64_t))) return true;
    memcpy(&t->histogram[first], counts, n * sizeof(uint64_t));
    t->has_histogram = true;
    return true;
}

static void set_sums(const struct fdri_file_location *l, const struct fdri_arena_row *r, struct fdr_total *t)
{
    /* a kill came between the two stores: the first call has no min yet */
    uint64_t min = r->min < r->max ? r->min : r->max;
    if (t->class_ == FDR_IN_REGION) {
        t->inclusive_ns = fdri_file_duration_ns(&l->clock, r->sum);
        /* the sum is stored last */
        t->exclusive_ns = fdri_file_duration_ns(&l->clock, fdri_bits_min(r->exclusive, r->sum));
        t->min_ns = r->calls ? fdri_file_duration_ns(&l->clock, min) : 0;
        t->max_ns = fdri_file_duration_ns(&l->clock, r->max);
    } else {
        const struct fdri_classes_class *c = &fdri_classes[t->class_];
        t->operation = KEY_ID(r->key) >> c->value_shift & c->value_mask;
        t->inclusive_ns = fdri_file_duration_ns(&l->clock, c->timed ? r->exclusive : 0);
        t->sum_u = r->sum;
        t->min_u = r->calls ? r->min : 0; /* in the metric's own type, so the values cannot be compared here */
        t->max_u = r->max;
    }
}

static void leave_out(struct fdr_file *f, struct fdr_total *t)
{
    t->has_histogram = false;
    memset(t->histogram, 0, sizeof t->histogram);
    f->info.histograms_left_out++;
}

static void add_row(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_row *r)
{
    /* more rows than the file has room for: slots name some of them repeatedly */
    if (f->total_count > f->end / sizeof *r) return;
    if (!fdri_account_row_wanted(r) || !fdri_file_grow(&f->total, f->total_count, &f->total_room, sizeof *f->total))
        return;
    struct fdr_total *t = &f->total[f->total_count++];
    memset(t, 0, sizeof *t);
    t->location = l->id;
    t->class_ = fdri_account_row_class(r->key);
    t->rest = r->key == FDRI_ARENA_ROW_KEY_REST;
    t->id = t->rest ? 0 : KEY_ID(r->key) >> fdri_classes[t->class_].id_shift;
    /* For one ended thread, a row is exact or is in its rest. For all ended threads together, that is unknown. */
    uint64_t without = t->class_ == FDR_IN_REGION ? l->raw.rows_folded : l->raw.points_without_row;
    t->at_least = l->raw.flags & FDRI_ARENA_LOCATION_ENDED && ((!t->rest && without) || f->info.threads_gone);
    t->calls = r->calls;
    t->untimed = r->untimed;
    t->saturated = r->flags & FDRI_ARENA_ROW_SATURATED;
    set_sums(l, r, t);
    if (r->histogram && !histogram(f, r, t)) {
        if (!l->settled) leave_out(f, t); /* it moved to a place that the copy had passed already */
        else fdri_file_damage(f, "location %u: the histogram of row %08x is damaged", l->id, r->key);
    }
    if (t->has_histogram) count_newest(l, r, t);
    if (t->has_histogram && !fdri_account_counts_plausible(f, l, histogram_calls(t), t->calls)) leave_out(f, t);
}

static void say_damaged(struct fdr_file *f, const struct fdri_file_location *l)
{
    fdri_file_damage(f, "location %u: the table of totals is damaged", l->id);
}

/* Adds all believable rows that the table names. Returns false if there is no table. */
static bool from_table(struct fdr_file *f, struct fdri_file_location *l)
{
    struct fdri_account_rows t;
    enum fdri_account_slot slot;
    if (!l->raw.rows_table_off) return true;
    if (!fdri_account_rows_begin(f, l, &f->total_slots, &t)) return false;
    while ((slot = fdri_account_rows_next(f, l, &t)) != FDRI_ACCOUNT_SLOT_END)
        if (slot == FDRI_ACCOUNT_SLOT_ROW && fdri_arena_row_of_traffic(t.row->key))
            fdri_account_traffic_row(f, l, t.row);
        else if (slot == FDRI_ACCOUNT_SLOT_ROW) add_row(f, l, t.row);
    l->rows_lost |= t.lost;
    if (t.doubted) say_damaged(f, l);
    return true;
}

/* Adds a row that no table names. It counts only with plausible counters. It is a lower bound: its region may have
 * another row. */
static void add_found(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_row *r)
{
    size_t before = f->total_count;
    if (!r->histogram || fdri_account_row_suspect(f, r) || !fdri_account_row_plausible(f, l, r)) return;
    add_row(f, l, r);
    if (f->total_count > before) f->total[before].at_least = true;
}

static void from_slabs(struct fdr_file *f, const struct fdri_file_location *l)
{
    size_t count;
    const struct fdri_file_meta *m = fdri_file_meta_scan(f, FDRI_ARENA_META_ROWS, l->id, &count);
    for (size_t i = 0; i < count; i++) {
        const struct fdri_arena_meta_head *h = fdri_file_at(f, m[i].off, sizeof *h);
        for (uint64_t at = 64; h && at + 64 <= h->bytes; at += 64) {
            if (f->total_row_reads++ > f->end / 64) return; /* the blocks overlap: no recorder wrote them */
            const struct fdri_arena_row *r = fdri_file_at(f, m[i].off + at, sizeof *r);
            if (!r) break;
            add_found(f, l, r);
        }
    }
}

static int by_place(const void *x, const void *y)
{
    const struct fdr_total *a = x, *b = y;
    if (a->location != b->location) return a->location < b->location ? -1 : 1;
    if (a->class_ != b->class_) return a->class_ < b->class_ ? -1 : 1;
    if (a->rest != b->rest) return a->rest ? 1 : -1;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return a->operation < b->operation ? -1 : a->operation > b->operation;
}

/* Drops duplicates: slots may name a row twice. */
static void drop_duplicates(struct fdr_file *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->total_count; i++)
        if (kept == 0 || by_place(&f->total[kept - 1], &f->total[i])) f->total[kept++] = f->total[i];
    f->total_count = kept;
}

/* Marks that rows of regions and points may be missing, as if they were in a rest of unknown size. */
static void lack_rows(struct fdr_file *f, struct fdri_file_location *l, size_t before)
{
    if (!l->info.totals_lost) f->info.totals_lost++;
    l->info.totals_lost = true;
    for (size_t i = before; i < f->total_count; i++) {
        if (!f->total[i].rest) continue;
        f->total[i].at_least = true;
        return;
    }
    if (!fdri_file_grow(&f->total, f->total_count, &f->total_room, sizeof *f->total)) return;
    f->total[f->total_count++] = (struct fdr_total){
        .location = l->id, .class_ = FDR_IN_REGION, .rest = true, .at_least = true};
}

static void add_rest(struct fdr_file *f, const struct fdri_file_location *l, size_t before)
{
    const struct fdri_arena_row *r = l->raw.rest_row_off ? fdri_account_row_at(f, l->raw.rest_row_off) : NULL;
    for (size_t i = before; i < f->total_count; i++)
        if (f->total[i].rest) return;
    if (!r || r->key != FDRI_ARENA_ROW_KEY_REST || l->block_damaged || fdri_account_row_suspect(f, r)) return;
    if (!l->rows_lost || fdri_account_row_plausible(f, l, r)) add_row(f, l, r);
}

static void collect_totals(struct fdr_file *f, struct fdri_file_location *l)
{
    size_t before = f->total_count;
    l->rows_lost = fdri_account_rows_doubted(l);
    if (l->off && !from_table(f, l)) {
        say_damaged(f, l);
        l->rows_lost = true;
        from_slabs(f, l);
    }
    if (l->off) add_rest(f, l, before);
    if (l->rows_lost) lack_rows(f, l, before);
}

size_t fdr_totals(const struct fdr_file *file, const struct fdr_total **rows)
{
    struct fdr_file *f = (struct fdr_file *)(uintptr_t)file; /* computed on first use */
    pthread_mutex_lock(&f->lock);
    if (!f->has_totals && !fdri_account_job_totals(f)) {
        for (size_t i = 0; i < f->location_count; i++) collect_totals(f, &f->location[i]);
        if (f->total_count) qsort(f->total, f->total_count, sizeof *f->total, by_place);
        drop_duplicates(f);
    }
    if (!f->has_totals) fdri_account_traffic_done(f);
    f->has_totals = true;
    pthread_mutex_unlock(&f->lock);
    *rows = f->total;
    return f->total_count;
}
