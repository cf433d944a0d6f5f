/* SPDX-License-Identifier: MIT */
/* Gives memory back. What goes is decided in policies/; here it is carried out, bin by bin, and written into the
 * ledger. No step looks at single events. */
#include <string.h>

#include "recorder/recorder.h"

enum { EPOCHS_WANTED = 8 };

void fdri_reserve_ledger(struct fdri_thread *t)
{
    struct fdr_location *l = t->loc;
    if (!l->reductions_off)
        l->reductions_off = fdri_meta_take(&fdri_rec.arena, FDR_META_REDUCTIONS, sizeof(struct fdr_reductions_block), l->id);
}

static struct fdr_reduction *new_line(struct fdri_thread *t)
{
    struct fdr_location *l = t->loc;
    fdri_reserve_ledger(t);
    if (!l->reductions_off) return NULL;
    struct fdr_reductions_block *b = fdri_off(t, l->reductions_off);
    struct fdr_reduction *line = &b->line[l->reduction_count % FDR_REDUCTION_LINES];
    if (l->reduction_count >= FDR_REDUCTION_LINES) {
        l->reductions_dropped_events += line->events;
        l->reductions_dropped_bytes += line->bytes;
    }
    memset(line, 0, sizeof *line);
    return line;
}

/* One step of the ledger; steps of the same kind on the same partition share a line. */
static void note(struct fdri_thread *t, uint8_t step, uint8_t reason, const struct fdr_part *p,
                 const struct fdri_given *g, bool closed)
{
    struct fdr_location *l = t->loc;
    bool whole_store = step == FDR_STEP_EPOCH || step == FDR_STEP_STOP;
    uint8_t class_ = whole_store ? 255 : p->class_, band = whole_store ? 0 : p->band;
    uint32_t depth = whole_store ? 0 : p->depth;
    struct fdr_reduction *line = NULL;
    if (l->reduction_count && l->reductions_off) {
        struct fdr_reductions_block *b = fdri_off(t, l->reductions_off);
        line = &b->line[(l->reduction_count - 1) % FDR_REDUCTION_LINES];
        if (line->step != step || line->class_ != class_ || line->band != band || line->depth != depth) line = NULL;
    }
    if (!line) {
        line = new_line(t);
        if (!line) {
            l->reductions_dropped_events += g->events;
            l->reductions_dropped_bytes += g->bytes;
            return;
        }
        *line = (struct fdr_reduction){.tick = l->last_tick >> t->shift, .from_tick = UINT64_MAX, .step = step,
                                       .class_ = class_, .band = band, .reason = reason, .depth = depth};
        l->reduction_count++;
    }
    line->events += g->events;
    line->bytes += g->bytes;
    line->steps++;
    line->closed |= closed;
    if (g->from_tick < line->from_tick) line->from_tick = g->from_tick;
    if (g->to_tick > line->to_tick) line->to_tick = g->to_tick;
}

/* ---- the escalation chain (strategy `whole`) ---- */

static struct fdri_part_view view_of(const struct fdr_part *p, const uint64_t *class_bytes)
{
    uint32_t head = (uint32_t)p->list_head;
    return (struct fdri_part_view){
        .depth = p->depth, .class_ = p->class_, .band = p->band, .class_bytes = class_bytes[p->class_],
        .oldest = head ? fdri_bin(&fdri_rec.arena, head)->base_tick : UINT64_MAX};
}

static struct fdr_part *next_part(struct fdri_thread *t, uint32_t off) { return off ? fdri_off(t, off) : NULL; }

/* The partition worth least. `asking` counts although it may hold nothing yet. */
static struct fdr_part *least_valuable(struct fdri_thread *t, const struct fdr_part *asking)
{
    uint64_t class_bytes[FDR_CLASS_COUNT] = {0};
    struct fdr_part *best = NULL;
    struct fdri_part_view best_view = {0};
    const struct fdri_chain *chain = &fdri_rec.set.chain;
    for (struct fdr_part *p = next_part(t, t->loc->parts_first); p; p = next_part(t, p->next))
        class_bytes[p->class_] += p->bytes;
    for (struct fdr_part *p = next_part(t, t->loc->parts_first); p; p = next_part(t, p->next)) {
        if (p->flags & 1 || (!(uint32_t)p->list_head && p != asking)) continue;
        struct fdri_part_view v = view_of(p, class_bytes);
        enum fdri_reason why;
        if (best && !fdri_policy_before(chain, &v, &best_view, &why)) continue;
        best = p;
        best_view = v;
    }
    if (best) {
        uint32_t index;
        struct fdri_verdict v = fdri_policy_step(chain, &best_view, &index);
        t->victim_step = (uint8_t)v.step;
        t->victim_reason = (uint8_t)v.reason;
    }
    return best;
}

static uint32_t reduce_whole(struct fdri_thread *t, struct fdr_part *asking, uint32_t size_log2, uint32_t *got)
{
    struct fdri_arena *a = &fdri_rec.arena;
    for (;;) { /* ends: each round gives a bin or closes a partition for good */
        struct fdr_part *v = t->victim ? t->victim : least_valuable(t, asking);
        if (!v) return 0;
        bool closes = fdri_policy_closes((enum fdri_step)t->victim_step), closed = false;
        if (!fdri_part_has_sealed(v)) {
            if (v == asking || !closes) fdri_part_seal(a, v);
            if (closes) {
                fdri_part_seal(a, v);
                fdri_close_gate(t, v);
                closed = true;
            }
        }
        struct fdri_given given = {0, 0, UINT64_MAX, 0};
        uint32_t have, off = fdri_part_pop(a, t->loc, v, &have, &given);
        t->victim = closes && !closed ? v : NULL;
        if (off || closed) note(t, t->victim_step, t->victim_reason, v, &given, closed);
        if (off) {
            if (have > size_log2) fdri_piece_split(a, t->loc, off, have, size_log2);
            *got = have < size_log2 ? have : size_log2;
            if (v == asking && closed) { /* nobody may ask for a place in what was just closed */
                fdri_piece_give(a, t->loc, off, *got);
                return 0;
            }
            return off;
        }
        if (v == asking || !closes) return 0;
    }
}

/* ---- cyclic epochs (strategy `last`) ---- */

void fdri_maybe_cut(struct fdri_thread *t, uint64_t tick)
{
    struct fdr_location *l = t->loc;
    if (fdri_rec.set.strategy != FDR_STRATEGY_LAST) return;
    if (l->epoch - l->epoch_floor >= FDR_EPOCH_CUTS - 1) return;
    if (!fdri_policy_cut(l->epoch_bins, fdr_max(l->bins_held, fdri_rec.arena.super->bins_total / 16), EPOCHS_WANTED)) return;
    l->cut_tick[(l->epoch + 1) % FDR_EPOCH_CUTS] = tick;
    fdr_signal_fence();
    l->epoch++;
    l->epoch_bins = 0;
}

static void drop_older(struct fdri_thread *t, struct fdr_part *p, uint64_t floor, struct fdri_given *given)
{
    struct fdri_arena *a = &fdri_rec.arena;
    if (p->open_off && p->last_tick <= floor) fdri_part_seal(a, p);
    while (fdri_part_older(a, p, floor)) {
        uint32_t size, off = fdri_part_pop(a, t->loc, p, &size, given);
        if (!off) return;
        fdri_piece_give(a, t->loc, off, size);
    }
}

/* The partition whose oldest bin is oldest; where none holds a full one, the one that wrote longest ago. */
static struct fdr_part *oldest_part(struct fdri_thread *t, const struct fdr_part *asking)
{
    static const struct fdri_chain by_age = {{0}, {0}};
    const uint64_t none[FDR_CLASS_COUNT] = {0};
    struct fdr_part *best = NULL, *idle = NULL;
    struct fdri_part_view best_view = {0};
    for (struct fdr_part *p = next_part(t, t->loc->parts_first); p; p = next_part(t, p->next)) {
        enum fdri_reason why;
        if (!(uint32_t)p->list_head) continue;
        if (p != asking && (!idle || p->last_tick < idle->last_tick)) idle = p;
        struct fdri_part_view v = view_of(p, none);
        if (!fdri_part_has_sealed(p) || (best && !fdri_policy_before(&by_age, &v, &best_view, &why))) continue;
        best = p;
        best_view = v;
    }
    if (!best && idle) fdri_part_seal(&fdri_rec.arena, idle);
    return best ? best : idle;
}

/* One epoch fills everything: the oldest bin of anything goes. */
static uint32_t pop_oldest(struct fdri_thread *t, const struct fdr_part *asking, uint32_t size_log2, uint32_t *got)
{
    struct fdr_location *l = t->loc;
    struct fdri_given given = {0, 0, UINT64_MAX, 0};
    struct fdr_part *p = oldest_part(t, asking);
    uint32_t have, off = p ? fdri_part_pop(&fdri_rec.arena, l, p, &have, &given) : 0;
    if (!off) return 0;
    note(t, FDR_STEP_EPOCH, FDRI_REASON_OLDEST, p, &given, false);
    if (have > size_log2) fdri_piece_split(&fdri_rec.arena, l, off, have, size_log2);
    *got = have < size_log2 ? have : size_log2;
    return off;
}

static uint32_t reduce_last(struct fdri_thread *t, struct fdr_part *asking, uint32_t size_log2, uint32_t *got)
{
    struct fdr_location *l = t->loc;
    struct fdri_arena *a = &fdri_rec.arena;
    while (l->epoch_floor < l->epoch) {
        struct fdri_given given = {0, 0, UINT64_MAX, 0};
        uint64_t floor = l->cut_tick[(l->epoch_floor + 1) % FDR_EPOCH_CUTS];
        l->floor_tick = fdr_max(l->floor_tick, floor);
        fdr_signal_fence();
        l->epoch_floor++;
        for (struct fdr_part *p = next_part(t, l->parts_first); p; p = next_part(t, p->next))
            drop_older(t, p, floor, &given);
        note(t, FDR_STEP_EPOCH, FDRI_REASON_OLDEST, asking, &given, false);
        uint32_t off = fdri_piece_take(a, l, size_log2);
        *got = size_log2;
        if (!off) off = fdri_piece_any(a, l, size_log2, got);
        if (off) return off;
    }
    return pop_oldest(t, asking, size_log2, got);
}

/* ---- keep the beginning (strategy `first`) ---- */

static void freeze(struct fdri_thread *t, uint64_t tick)
{
    struct fdr_location *l = t->loc;
    uint32_t n = l->depth, count = 0;
    uint32_t off = fdri_meta_take(&fdri_rec.arena, FDR_META_FROZEN, (uint32_t)sizeof(struct fdr_frozen) + n * 16, l->id);
    struct fdr_frozen *f = off ? fdri_off(t, off) : NULL;
    for (uint32_t d = 1; d <= n; d++) {
        struct fdr_level *v = fdri_level(t, d);
        if (v->flags & FDR_LEVEL_UNTIMED) continue;
        v->flags |= FDR_LEVEL_SETTLED;
        if (!f) {
            fdr_bump_relaxed(&v->reduced_gate, 1);
            continue;
        }
        f->frame[count].enter_tick = v->enter_tick;
        f->frame[count++].region = v->region;
    }
    if (!f) return;
    f->tick = tick;
    f->count = count;
    fdr_signal_fence();
    l->frozen_off = off;
}

void fdri_stop(struct fdri_thread *t, uint64_t tick)
{
    struct fdr_location *l = t->loc;
    if (l->flags & FDR_LOCATION_STOPPED) return;
    struct fdri_given none = {0, 0, tick >> t->shift, tick >> t->shift};
    note(t, FDR_STEP_STOP, FDRI_REASON_OLDEST, NULL, &none, true);
    freeze(t, tick);
    l->flags |= FDR_LOCATION_STOPPED;
    l->class_closed = UINT32_MAX;
    for (uint32_t d = 0; d <= l->level_blocks * FDR_LEVELS_PER_BLOCK; d++) {
        struct fdr_level *v = fdri_level(t, d);
        for (int b = 0; b < FDR_BANDS; b++) v->part[b] = FDRI_GATE_CLOSED;
        if (!v->points_off) continue;
        struct fdr_level_points *points = fdri_off(t, v->points_off);
        for (int c = 0; c < FDR_CLASS_COUNT; c++) points->by_class[c].part = FDRI_GATE_CLOSED;
    }
    fdri_set_soft(t);
}

uint32_t fdri_reduce(struct fdri_thread *t, struct fdr_part *p, uint32_t size_log2, uint32_t *got_log2)
{
    switch (fdri_rec.set.strategy) {
    case FDR_STRATEGY_FIRST: return 0; /* the caller stops */
    case FDR_STRATEGY_LAST: return reduce_last(t, p, size_log2, got_log2);
    default: return reduce_whole(t, p, size_log2, got_log2);
    }
}
