/* SPDX-License-Identifier: MIT */
/* Totals of epochs. The run's totals only grow, and a base holds their values at the newest epoch boundary. An epoch's
 * totals are the difference, so recording a call costs nothing for them. An epoch keeps the most important regions in
 * rows; all others share its rest. The sums of an epoch equal those of its rows and rest. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/memory/memory.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

enum { ROWS_SHARE = 16 }; /* the rows of all epochs of a location take a 16th of its memory */
enum { BLOCK_LEAST = 512, BLOCK_MOST = FDRI_ARENA_EPOCH_ROWS_MOST };
enum { PARTLY = 1, INDEX = 128, ROWS_MOST = 128 };

uint32_t fdri_strategy_epoch_room(const struct fdri_arena_epoch_rows *b)
{
    uint32_t places = (uint32_t)((b->head.bytes - sizeof *b) / sizeof b->row[0]);
    return b->traffic == FDRI_ARENA_EPOCH_TRAFFIC_TOLD ? places - FDRI_ARENA_TRAFFICS : places;
}
static uint64_t time_of(const struct fdri_arena_epoch_row *r) { return r->inclusive + r->exclusive; }
static struct fdri_arena_epoch_rows *rows_at(struct fdri_thread *t, uint32_t off)
{
    return off ? fdri_thread_at(t, off) : NULL;
}

/* ---- blocks of rows ---- */

uint32_t fdri_strategy_epoch_block(struct fdri_thread *t, struct fdri_arena_epochs *e)
{
    uint32_t off = e->spare_rows_off;
    if (!off) return e->row_bytes ? fdri_memory_meta(t, FDRI_ARENA_META_EPOCHROWS, e->row_bytes) : 0;
    struct fdri_arena_epoch_rows *b = fdri_thread_at(t, off);
    e->spare_rows_off = b->count;
    memset(&b->head + 1, 0, sizeof *b - sizeof b->head);
    return off;
}

void fdri_strategy_epoch_block_give(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t off)
{
    if (!off) return;
    rows_at(t, off)->count = e->spare_rows_off;
    e->spare_rows_off = off;
}

/* ---- which rows a block keeps ---- */

static void sift_down(struct fdri_arena_epoch_rows *b, uint32_t i)
{
    struct fdri_arena_epoch_row it = b->row[i];
    for (uint32_t child; (child = 2 * i + 1) < b->count; i = child) {
        if (child + 1 < b->count && time_of(&b->row[child + 1]) < time_of(&b->row[child])) child++;
        if (time_of(&b->row[child]) >= time_of(&it)) break;
        b->row[i] = b->row[child];
    }
    b->row[i] = it;
}

static void to_rest(struct fdri_arena_epoch_rows *b, const struct fdri_arena_epoch_row *r)
{
    b->rest_calls += r->calls;
    b->rest_inclusive += r->inclusive;
    b->rest_exclusive += r->exclusive;
}

/* Rows are appended while there is room. Then they become a heap with the least important row on top. */
void fdri_strategy_epoch_offer(struct fdri_arena_epoch_rows *b, bool *heap, const struct fdri_arena_epoch_row *r)
{
    if (r->key == FDRI_ARENA_ROW_KEY_REST) {
        to_rest(b, r);
        return;
    }
    if (b->count < fdri_strategy_epoch_room(b)) {
        b->row[b->count++] = *r;
        return;
    }
    for (uint32_t i = *heap ? 0 : b->count / 2; i-- > 0;) sift_down(b, i);
    *heap = true;
    if (time_of(r) <= time_of(&b->row[0])) {
        to_rest(b, r);
    } else {
        to_rest(b, &b->row[0]);
        b->row[0] = *r;
        sift_down(b, 0);
    }
}

/* ---- messages and collectives ---- */

static struct fdri_arena_epoch_row *traffic_of(struct fdri_arena_epoch_rows *b)
{
    return &b->row[fdri_strategy_epoch_room(b)];
}

/* Takes the places at the end of the block. If rows stood there, the least important ones go to the rest. */
static void tell_traffic(struct fdri_arena_epoch_rows *b)
{
    if (b->traffic == FDRI_ARENA_EPOCH_TRAFFIC_TOLD) return;
    b->traffic = FDRI_ARENA_EPOCH_TRAFFIC_TOLD;
    for (uint32_t i = b->count > fdri_strategy_epoch_room(b) ? b->count / 2 : 0; i-- > 0;) sift_down(b, i);
    while (b->count > fdri_strategy_epoch_room(b)) {
        to_rest(b, &b->row[0]);
        b->row[0] = b->row[--b->count];
        sift_down(b, 0);
    }
    memset(traffic_of(b), 0, FDRI_ARENA_TRAFFICS * sizeof b->row[0]);
}

void fdri_strategy_epoch_traffic_cut(struct fdri_thread *t, struct fdri_arena_epoch *epoch)
{
    struct fdri_arena_epoch_rows *b = rows_at(t, epoch->rows_off);
    if (t->traffic_off == FDRI_THREAD_NO_TRAFFIC) return; /* not known */
    if (b) b->traffic = FDRI_ARENA_EPOCH_TRAFFIC_NONE;
    if (!t->traffic_off) return;
    struct fdri_thread_traffic *traffic = fdri_thread_at(t, t->traffic_off);
    if (b && memcmp(traffic->all, traffic->cut, sizeof traffic->all)) {
        tell_traffic(b);
        for (uint32_t i = 0; i < FDRI_ARENA_TRAFFICS; i++) {
            struct fdri_arena_epoch_row *r = &traffic_of(b)[i];
            r->calls = traffic->all[i][0] - traffic->cut[i][0];
            r->inclusive = traffic->all[i][1] - traffic->cut[i][1];
            r->exclusive = traffic->all[i][2] - traffic->cut[i][2];
        }
    }
    memcpy(traffic->cut, traffic->all, sizeof traffic->all);
}

static void add_traffic(struct fdri_arena_epoch_rows *b, struct fdri_arena_epoch_rows *other)
{
    if (!b->traffic || !other->traffic) b->traffic = FDRI_ARENA_EPOCH_TRAFFIC_UNKNOWN;
    if (!b->traffic || other->traffic == FDRI_ARENA_EPOCH_TRAFFIC_NONE) return;
    tell_traffic(b);
    for (uint32_t i = 0; i < FDRI_ARENA_TRAFFICS; i++) {
        struct fdri_arena_epoch_row *r = &traffic_of(b)[i], *o = &traffic_of(other)[i];
        r->calls += o->calls;
        r->inclusive += o->inclusive;
        r->exclusive += o->exclusive;
    }
}

/* ---- the base ---- */

static struct fdri_arena_epoch_base *base_with_room(struct fdri_thread *t, struct fdri_arena_epochs *e)
{
    struct fdri_arena_epoch_base *b = e->base_last ? fdri_thread_at(t, e->base_last) : NULL;
    if (b && sizeof *b + (b->count + 1) * sizeof b->row[0] <= b->head.bytes) return b;
    uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_EPOCHBASE, (uint32_t)fdri_bits_max(e->row_bytes, BLOCK_LEAST));
    if (!off && e->row_bytes > BLOCK_LEAST) off = fdri_memory_meta(t, FDRI_ARENA_META_EPOCHBASE, BLOCK_LEAST);
    if (!off) return NULL;
    if (b) b->next = off;
    else e->base_first = off;
    e->base_last = off;
    return fdri_thread_at(t, off);
}

static void track_row(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t row_off)
{
    const struct fdri_arena_row *r = fdri_thread_at(t, row_off);
    if (!fdri_arena_row_of_calls(r->key)) return;
    struct fdri_arena_epoch_base *b = base_with_room(t, e);
    if (!b) {
        e->untracked++;
        return;
    }
    b->row[b->count].row_off = row_off;
    e->tracked++; /* count first, so that it is never too low */
    fdri_atomic_signal_fence();
    b->count++;
}

void fdri_strategy_epoch_row(struct fdri_thread *t, uint32_t row_off)
{
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    if (e) track_row(t, e, row_off);
}

bool fdri_strategy_epoch_row_fits(struct fdri_thread *t, uint32_t key)
{
    struct fdri_arena_epochs *e = fdri_strategy_epochs(t);
    return !e || !fdri_arena_row_of_calls(key) || base_with_room(t, e);
}

/* The largest block that fits a piece of a bin together with its slab: pieces are there when all memory is in use. */
static uint32_t block_bytes(uint64_t most)
{
    uint32_t bytes = 1u << fdri_bits_log2_floor((uint32_t)fdri_bits_max(most, BLOCK_LEAST));
    return bytes > BLOCK_LEAST ? bytes - (uint32_t)sizeof(struct fdri_arena_slab) : bytes;
}

/* Rows get a share of the location's fair share at this moment; if that is too little, epochs have only sums. The first
 * epoch begins where the totals do. */
void fdri_strategy_epoch_rows_start(struct fdri_thread *t, struct fdri_arena_epochs *e)
{
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    uint64_t fair = s->arena_bytes / fdri_bits_max(fdri_atomic_load_relaxed(&fdri_life_recording.shares.live), 1);
    uint64_t bytes = fdri_bits_min(fair / ROWS_SHARE / FDRI_ARENA_EPOCHS_MAX, fdri_bits_min(BLOCK_MOST, s->bin_bytes));
    e->row_bytes = bytes < BLOCK_LEAST / 2 ? 0 : block_bytes(bytes);
    const struct fdri_arena_rowtable *table = fdri_thread_at(t, t->loc->rows_table_off);
    const uint32_t *slot = (const void *)(table + 1), rest = t->loc->rest_row_off;
    track_row(t, e, rest); /* first: row_eviction.c looks for it there */
    for (uint32_t i = 0; i < 1u << table->log2; i++)
        if (slot[i] && slot[i] != rest) track_row(t, e, slot[i]);
}

/* ---- an operation was broken off ---- */

static bool is_spare(struct fdri_thread *t, const struct fdri_arena_epochs *e, uint32_t off)
{
    uint32_t spare = e->spare_rows_off;
    while (spare && spare != off) spare = rows_at(t, spare)->count;
    return spare;
}

/* After a broken-off change a block may belong to an epoch and be spare, or belong to two epochs. */
void fdri_strategy_epoch_rows_anew(struct fdri_thread *t, struct fdri_arena_epochs *e)
{
    if (!is_spare(t, e, t->walk.old_values_off)) fdri_strategy_epoch_block_give(t, e, t->walk.old_values_off);
    for (uint32_t i = 0; i < e->count; i++)
        if (!is_spare(t, e, e->epoch[i].rows_off)) fdri_strategy_epoch_block_give(t, e, e->epoch[i].rows_off);
    for (uint32_t off = e->base_first; off;) {
        struct fdri_arena_epoch_base *b = fdri_thread_at(t, off);
        for (uint32_t k = 0; k < b->count; k++) /* row_off stays right all the time */
            b->row[k].calls = b->row[k].sum = b->row[k].exclusive = 0;
        off = b->next;
    }
    t->walk.block = t->walk.old_values_off = e->totals_pending = 0;
    if (t->traffic_off > FDRI_THREAD_NO_TRAFFIC) {
        struct fdri_thread_traffic *traffic = fdri_thread_at(t, t->traffic_off);
        memset(traffic->cut, 0, sizeof traffic->cut);
    }
    fdri_thread_update_soft(t);
}

/* ---- merge ---- */

/* Index of a block's rows by key; of rows with the same hash the newest comes first. */
struct finder {
    uint8_t head[INDEX], next[ROWS_MOST]; /* index + 1; 0: none */
};
static_assert((BLOCK_MOST - sizeof(struct fdri_arena_epoch_rows)) / sizeof(struct fdri_arena_epoch_row) <= ROWS_MOST,
              "rows of a block");

static uint32_t place_of(uint32_t key) { return key * 0x9E3779B1u >> 25; }

static void index_rows(struct finder *f, const struct fdri_arena_epoch_rows *b)
{
    memset(f->head, 0, sizeof f->head);
    for (uint32_t i = 0; i < b->count; i++) {
        uint8_t *head = &f->head[place_of(b->row[i].key)];
        f->next[i] = *head;
        *head = (uint8_t)(i + 1);
    }
}

static struct fdri_arena_epoch_row *find(const struct finder *f, struct fdri_arena_epoch_rows *b, uint32_t key)
{
    for (uint32_t i = f->head[place_of(key)]; i; i = f->next[i - 1])
        if (b->row[i - 1].key == key) return &b->row[i - 1];
    return NULL;
}

/* Adds the rows of `other` to those of `b`. A row in only one of them may have calls in the other's rest: it is marked
 * PARTLY. */
static void merge_rows(struct fdri_arena_epoch_rows *b, struct fdri_arena_epoch_rows *other)
{
    bool b_rest = b->rest_calls != 0, other_rest = other->rest_calls != 0;
    struct finder f;
    index_rows(&f, other);
    b->rest_calls += other->rest_calls;
    b->rest_inclusive += other->rest_inclusive;
    b->rest_exclusive += other->rest_exclusive;
    for (uint32_t i = 0; i < b->count; i++) {
        struct fdri_arena_epoch_row *r = &b->row[i], *o = find(&f, other, r->key);
        if (!o) {
            if (other_rest) r->flags |= PARTLY;
            continue;
        }
        r->flags |= o->flags;
        r->calls += o->calls;
        r->inclusive += o->inclusive;
        r->exclusive += o->exclusive;
        o->key = 0; /* done */
    }
    bool heap = false;
    for (uint32_t i = 0; i < other->count; i++) {
        if (!other->row[i].key) continue;
        if (b_rest) other->row[i].flags |= PARTLY;
        fdri_strategy_epoch_offer(b, &heap, &other->row[i]);
    }
}

/* Adds an epoch without rows to the rest of the other. */
static void merge_sums(struct fdri_arena_epoch_rows *rows, const struct fdri_arena_epoch *without)
{
    struct fdri_arena_epoch_row all = {0, 0, without->calls, without->inclusive, without->exclusive};
    if (!all.calls) return;
    to_rest(rows, &all);
    for (uint32_t i = 0; i < rows->count; i++) rows->row[i].flags |= PARTLY;
}

void fdri_strategy_epoch_rows_merge(struct fdri_thread *t, struct fdri_arena_epochs *e, uint32_t i)
{
    struct fdri_arena_epoch *a = &e->epoch[i], *b = a + 1;
    struct fdri_arena_epoch_rows *x = rows_at(t, a->rows_off), *y = rows_at(t, b->rows_off);
    if (x && y) add_traffic(x, y), merge_rows(x, y);
    else if (x) merge_sums(x, b);
    else if (y) merge_sums(y, a);
    if (!x != !y) (x ? x : y)->traffic = FDRI_ARENA_EPOCH_TRAFFIC_UNKNOWN; /* the other one told nothing */
    if (x) fdri_strategy_epoch_block_give(t, e, b->rows_off);
    else a->rows_off = b->rows_off;
    a->calls += b->calls;
    a->inclusive += b->inclusive;
    a->exclusive += b->exclusive;
}
