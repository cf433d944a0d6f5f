/* SPDX-License-Identifier: MIT */
/* Detail by age: the epochs of a location, the events kept of each, and their totals. */
#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/events/events.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sums of rows in ticks, as recorded. */
struct sums {
    uint64_t calls, inclusive, exclusive;
};

static void add_to(struct sums *s, uint64_t calls, uint64_t inclusive, uint64_t exclusive)
{
    s->calls += calls;
    s->inclusive += inclusive;
    s->exclusive += exclusive;
}

static struct fdr_epoch_info *new_epoch(struct fdr_file *f)
{
    if (!fdri_file_grow(&f->epoch, f->epoch_count, &f->epoch_room, sizeof *f->epoch)) return NULL;
    return memset(&f->epoch[f->epoch_count++], 0, sizeof *f->epoch);
}

static void add_total(struct fdr_file *f, const struct fdri_file_location *l, uint32_t index, uint32_t key,
                      bool at_least, const struct sums *s)
{
    if (!s->calls ||
        !fdri_file_grow(&f->epoch_total, f->epoch_total_count, &f->epoch_total_room, sizeof *f->epoch_total))
        return;
    bool rest = key == FDRI_ARENA_ROW_KEY_REST;
    f->epoch_total[f->epoch_total_count++] = (struct fdr_epoch_total){
        .location = l->id,
        .epoch = index,
        .region = rest ? 0 : key & 0xffffffu,
        .rest = rest,
        .at_least = at_least,
        .calls = s->calls,
        .inclusive_ns = fdri_file_duration_ns(&l->clock, s->inclusive),
        .exclusive_ns = fdri_file_duration_ns(&l->clock, s->exclusive)};
}

/* ---- totals ---- */

static bool is_damaged(const struct fdr_file *f, const void *p, uint64_t bytes)
{
    return fdri_file_is_suspect(f, (uint64_t)((const uint8_t *)p - f->bytes), bytes);
}

bool fdri_account_epoch_rows_lost(const struct fdr_file *f, const struct fdri_arena_epoch *e)
{
    const struct fdri_arena_epoch_rows *b = e->rows_off ? fdri_file_at(f, e->rows_off, sizeof *b) : NULL;
    return b && is_damaged(f, b, fdri_bits_max(b->head.bytes, sizeof *b));
}

/* Rows and remainder of an ended epoch. `rows` NULL: everything is in the remainder. */
struct told {
    const struct fdri_arena_epoch_rows *rows;
    struct sums rest;
};

/* Returns false if rows and remainder do not add up to the epoch's sums. */
static bool add_epoch_rows(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_epoch *e,
                           struct told *out)
{
    const struct fdri_arena_epoch_rows *b = NULL;
    *out = (struct told){.rest = {e->calls, e->inclusive, e->exclusive}};
    if (e->rows_off && !fdri_account_epoch_rows_lost(f, e)) {
        b = (const void *)fdri_file_meta_at(f, e->rows_off, FDRI_ARENA_META_EPOCHROWS, l->id, sizeof *b);
        if (!b || b->head.bytes < sizeof *b || b->head.bytes > FDRI_ARENA_EPOCH_ROWS_MOST ||
            b->count > (b->head.bytes - sizeof *b) / sizeof b->row[0] || !fdri_file_at(f, e->rows_off, b->head.bytes))
            return false; /* a block without a valid end would be walked for each row of the totals */
        *out = (struct told){b, {b->rest_calls, b->rest_inclusive, b->rest_exclusive}};
    }
    struct sums all = out->rest;
    for (uint32_t i = 0; b && i < b->count; i++)
        add_to(&all, b->row[i].calls, b->row[i].inclusive, b->row[i].exclusive);
    return all.calls == e->calls && all.inclusive == e->inclusive && all.exclusive == e->exclusive;
}

static bool rows_of(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_epoch *e,
                    uint32_t index)
{
    struct told told;
    if (!add_epoch_rows(f, l, e, &told)) return false;
    for (uint32_t i = 0; told.rows && i < told.rows->count; i++) {
        const struct fdri_arena_epoch_row *r = &told.rows->row[i];
        add_total(f, l, index, r->key, r->flags & 1, &(struct sums){r->calls, r->inclusive, r->exclusive});
    }
    add_total(f, l, index, FDRI_ARENA_ROW_KEY_REST, false, &told.rest);
    return true;
}

const struct fdri_arena_epoch_base *
fdri_account_epoch_base(const struct fdr_file *f, const struct fdri_file_location *l, uint64_t off, size_t *most)
{
    const struct fdri_arena_epoch_base *b = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_EPOCHBASE, l->id,
                                                                            sizeof *b);
    if (!b || b->head.bytes < sizeof *b || b->count > (b->head.bytes - sizeof *b) / sizeof b->row[0] ||
        !fdri_file_at(f, off, b->head.bytes) || b->count > *most || is_damaged(f, b, b->head.bytes))
        return NULL;
    *most -= b->count ? b->count : 1; /* a cyclic chain ends here */
    return *most ? b : NULL;
}

/* Adds one region's totals of the current epoch. They are its gain since the base, and its part of `before`, the epoch
 * that is shown together with the current one. */
static void add_gained(struct fdr_file *f, const struct fdri_file_location *l, uint32_t index, uint32_t key,
                       struct sums gained, const struct told *before)
{
    bool rest = key == FDRI_ARENA_ROW_KEY_REST, found = false;
    if (rest) add_to(&gained, before->rest.calls, before->rest.inclusive, before->rest.exclusive);
    for (uint32_t i = 0; before->rows && !found && !rest && i < before->rows->count; i++) {
        const struct fdri_arena_epoch_row *r = &before->rows->row[i];
        if (!(found = r->key == key)) continue;
        add_to(&gained, r->calls, r->inclusive, r->exclusive);
    }
    add_total(f, l, index, key, !rest && !found && before->rest.calls, &gained);
}

/* The totals of the current epoch: the gain of all rows over the base, plus `before`. Returns false after damage. */
static bool rows_since(struct fdr_file *f, struct fdri_file_location *l, const struct fdri_arena_epochs *e,
                       uint32_t index, const struct told *before, struct sums *sum)
{
    size_t most = f->end / sizeof(struct fdri_arena_row);
    for (uint64_t off = e->base_first; off;) {
        const struct fdri_arena_epoch_base *b = fdri_account_epoch_base(f, l, off, &most);
        if (!b) return false;
        for (uint32_t i = 0; i < b->count; i++) {
            uint64_t at = b->row[i].row_off;
            const struct fdri_arena_row *r = fdri_account_row_at(f, at);
            if (!r) return false;
            bool damaged = fdri_account_row_suspect(f, r);
            l->epoch_rows_lost |= damaged;
            if (damaged) continue;
            /* the row of a region that went to [rest] now counts a kind of points */
            if (!fdri_arena_row_of_calls(r->key)) continue;
            if (r->calls < b->row[i].calls) return false;
            /* its making was interrupted: another row has its region */
            if (!r->calls && r->key != FDRI_ARENA_ROW_KEY_REST) continue;
            struct sums d = {r->calls - b->row[i].calls, r->sum - b->row[i].sum, r->exclusive - b->row[i].exclusive};
            /* the sum is stored last, so after a kill it may be lower */
            d.exclusive = fdri_bits_min(d.exclusive, d.inclusive);
            add_to(sum, d.calls, d.inclusive, d.exclusive);
            add_gained(f, l, index, r->key, d, before);
        }
        off = b->next;
    }
    return true;
}

/* Sets *out to the earlier one of the last two epochs if they are shown as one; else to nothing. */
static bool epoch_before_pending(struct fdr_file *f, const struct fdri_file_location *l,
                                 const struct fdri_arena_epochs *e, uint32_t index, struct told *out)
{
    *out = (struct told){0};
    return index + 1 == e->count || add_epoch_rows(f, l, &e->epoch[index], out);
}

static void set_totals(struct fdr_file *f, struct fdri_file_location *l, const struct fdri_arena_epochs *e,
                       uint32_t index, struct fdr_epoch_info *out)
{
    const struct fdri_arena_epoch *raw = &e->epoch[index];
    struct sums s = {0}; /* the current epoch has everything in rows */
    struct told begun;
    if (index + 1 < e->count) s = (struct sums){raw->calls, raw->inclusive, raw->exclusive};
    size_t before = f->epoch_total_count;
    if (is_damaged(f, raw, sizeof *raw)) return; /* its sums are in damaged bytes */
    /* the next epoch's begin is this one's end */
    bool ends = index + 1 == e->count || !is_damaged(f, raw + 1, sizeof *raw);
    out->exact = ends && !e->untracked && !(out->current && !l->settled);
    bool good = out->current ? epoch_before_pending(f, l, e, index, &begun) && rows_since(f, l, e, index, &begun, &s)
                             : rows_of(f, l, raw, index);
    if (good) {
        out->exact = out->exact && !(out->current && l->epoch_rows_lost);
        out->calls = s.calls;
        out->inclusive_ns = fdri_file_duration_ns(&l->clock, s.inclusive);
        out->exclusive_ns = fdri_file_duration_ns(&l->clock, s.exclusive);
        return;
    }
    f->epoch_total_count = before;
    out->exact = false;
    if (l->settled) fdri_file_damage(f, "location %u: the totals of epoch %u are damaged", l->id, index);
}

/* Messages and collectives of an epoch. `known` and `before` are of the epochs before it. */
static void set_traffic(const struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_epoch *e,
                        bool *known, struct fdr_traffic *before, struct fdr_epoch_info *out)
{
    if (out->current) {
        out->traffic_known = *known && fdri_account_traffic_since(f, l, before, &out->traffic);
    } else {
        /* an operation that was broken off may have counted a message half */
        out->traffic_known = !is_damaged(f, e, sizeof *e) && !l->raw.abandoned &&
                             fdri_account_epoch_traffic(f, l, e, &out->traffic);
        *known = *known && out->traffic_known && fdri_account_epoch_traffic(f, l, e, before);
    }
    if (!out->traffic_known) out->traffic = (struct fdr_traffic){0};
}

/* ---- events kept ---- */

static uint32_t epoch_of(const struct fdri_arena_epochs *e, uint64_t tick)
{
    uint32_t i = fdri_account_epochs_shown(e) - 1;
    while (i && e->epoch[i].from_tick >= tick) i--;
    return i;
}

/* Adds the bin's kept records to the epochs in which they left. Records after the cut do not count. */
static void count_bin(struct fdr_file *f, struct fdri_file_location *l, const struct fdri_file_part *p,
                      struct fdri_file_bin *b, const struct fdri_arena_epochs *e, struct fdr_epoch_info *out)
{
    uint64_t gone, before, newest, shown = b->records;
    if (!fdri_file_bin_read(f, l, b, p->min_leave, &gone, &newest) || !b->records) return;
    if (l->moving && newest > l->cut) shown = fdri_file_bin_up_to(f, b, l->cut, &newest);
    if (shown < gone || !shown) return;
    uint32_t last = epoch_of(e, newest), weight = p->class_ == FDRI_ARENA_CLASS_REGION ? 2 : 1;
    out[last].bytes += 1u << b->size_log2;
    for (uint32_t i = epoch_of(e, b->base_tick); i < last; i++) {
        uint64_t end = e->epoch[i + 1].from_tick + 1;
        if (!fdri_file_bin_read(f, l, b, end, &before, &newest) || before <= gone) continue;
        out[i].kept_events += weight * (before - gone);
        gone = before;
    }
    out[last].kept_events += weight * (shown - gone);
}

/* May a damaged or missing bin of the partition have held records of this stretch? */
static bool may_lack_records(const struct fdri_file_part *p, uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < p->bin_count; i++) {
        const struct fdri_file_bin *b = &p->bin[i];
        bool bad = fdri_atomic_load_relaxed(&b->state) == FDRI_FILE_BIN_BAD;
        uint64_t begin = b->gap ? i ? b[-1].base_tick : 0 : b->base_tick;
        uint64_t end = !bad ? b->base_tick : i + 1 < p->bin_count ? b[1].base_tick : UINT64_MAX;
        if ((bad || b->gap) && begin <= to && end >= from) return true;
    }
    return p->tail_gap && !p->tail_after_cut && (!p->bin_count || p->bin[p->bin_count - 1].base_tick <= to);
}

/* Sets, for each band, the depth down to which every call of the epoch is kept. A kept call needs all shallower
 * calls of its band or longer. */
static void set_complete(const struct fdri_file_location *l, uint64_t from, uint64_t to, struct fdr_epoch_info *out)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < l->part_count && l->part[i].class_ == FDRI_ARENA_CLASS_REGION; i++)
        deepest = l->part[i].depth;
    out->deepest = deepest;
    /* the epoch began during the snapshot, so only a part of it is there */
    if (l->moving && from >= l->end_tick) return;
    if (l->parts_missing) return;
    for (uint32_t b = 0; b < FDRI_ARENA_BANDS; b++) out->complete_depth[b] = deepest;
    for (size_t i = 0; i < l->part_count && l->part[i].class_ == FDRI_ARENA_CLASS_REGION; i++) {
        const struct fdri_file_part *p = &l->part[i];
        if (p->floor <= from && !p->floor_unknown && !may_lack_records(p, from, to)) continue;
        for (uint32_t b = 0; b <= p->band; b++)
            if (out->complete_depth[b] >= p->depth) out->complete_depth[b] = p->depth - 1u;
    }
}

/* ---- a location ---- */

static bool table_plausible(const struct fdri_file_location *l, const struct fdri_arena_epochs *e)
{
    if (!e->count || e->count > FDRI_ARENA_EPOCHS_MAX) return false;
    for (uint32_t i = 0; i < e->count; i++)
        if (e->epoch[i].from_tick > l->clock.stored_max || e->epoch[i].tier >= 32 ||
            (i && e->epoch[i].from_tick < e->epoch[i - 1].from_tick))
            return false;
    return true;
}

/* The totals include everything up to the newest event, also events that are not kept. */
static uint64_t newest_of(const struct fdri_file_location *l)
{
    uint64_t last = l->raw.last_tick >> l->clock.shift;
    return l->moving || last <= l->end_tick || last > l->clock.stored_max ? l->end_tick : last;
}

static void collect_epochs(struct fdr_file *f, struct fdri_file_location *l)
{
    uint64_t off = l->raw.epochs_off;
    if (!l->off || !off) return;
    const struct fdri_arena_epochs *e = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_EPOCHS, l->id,
                                                                        sizeof *e);
    if (e && e->version & 1) return; /* a kill or the copy interrupted their rearrangement */
    if (!e || is_damaged(f, e, offsetof(struct fdri_arena_epochs, epoch)) || !table_plausible(l, e)) {
        fdri_file_damage(f, "location %u: its epochs are damaged", l->id);
        return;
    }
    size_t first = f->epoch_count;
    uint32_t count = fdri_account_epochs_shown(e);
    bool known = true;
    struct fdr_traffic before = {0};
    for (uint32_t i = 0; i < count; i++) {
        struct fdr_epoch_info *out = new_epoch(f);
        if (!out) return;
        out->location = l->id;
        out->index = i;
        out->tier = e->epoch[i].tier;
        out->current = i + 1 == count;
        uint64_t to = out->current ? newest_of(l) : e->epoch[i + 1].from_tick;
        out->from_ns = fdri_file_ns(&l->clock, e->epoch[i].from_tick);
        out->to_ns = fdri_file_ns(&l->clock, to > e->epoch[i].from_tick ? to : e->epoch[i].from_tick);
        set_totals(f, l, e, i, out);
        set_traffic(f, l, &e->epoch[i], &known, &before, out);
    }
    for (size_t i = 0; i < l->part_count; i++)
        for (uint32_t b = 0; b < l->part[i].bin_count; b++)
            count_bin(f, l, &l->part[i], &l->part[i].bin[b], e, &f->epoch[first]);
    for (uint32_t i = 0; i < count; i++) /* needs to know which bins are damaged */
        set_complete(l, i ? e->epoch[i].from_tick : 0, i + 1 < count ? e->epoch[i + 1].from_tick : UINT64_MAX,
                     &f->epoch[first + i]);
    fdri_events_find_unplaced(f, l);
    for (size_t i = 0; i < l->unplaced_count; i++) {
        struct fdr_epoch_info *of = &f->epoch[first + epoch_of(e, l->unplaced[i].leave)];
        of->kept_events -= fdri_bits_min(of->kept_events, 2);
    }
}

static void collect_once(struct fdr_file *f)
{
    const struct fdr_total *totals;
    fdr_totals(f, &totals); /* what the current epoch has is the totals less the epochs before it */
    pthread_mutex_lock(&f->lock);
    if (!f->has_epochs && !fdri_account_job_epochs(f))
        for (size_t i = 0; i < f->location_count; i++) collect_epochs(f, &f->location[i]);
    f->has_epochs = true;
    pthread_mutex_unlock(&f->lock);
}

size_t fdr_epochs(struct fdr_file *f, const struct fdr_epoch_info **rows)
{
    collect_once(f);
    *rows = f->epoch;
    return f->epoch_count;
}

size_t fdr_epoch_totals(struct fdr_file *f, const struct fdr_epoch_total **rows)
{
    collect_once(f);
    *rows = f->epoch_total;
    return f->epoch_total_count;
}
