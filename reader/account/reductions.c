/* SPDX-License-Identifier: MIT */
/* Reads the log of reductions: when the recorder gave memory back, from which partition, and why; oldest first. */
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *step_name(uint32_t step)
{
    switch (step) {
    case FDRI_ARENA_STEP_DURATION: return "duration";
    case FDRI_ARENA_STEP_DEPTH: return "depth";
    case FDRI_ARENA_STEP_CLASS: return "class";
    case FDRI_ARENA_STEP_EPOCH: return "epoch";
    case FDRI_ARENA_STEP_STOP: return "stop";
    case FDRI_ARENA_STEP_CLAIM: return "claim";
    case FDRI_ARENA_STEP_THIN: return "thin";
    default: return NULL;
    }
}

/* The shortest band whose calls may lie in this one, as bands may be joined. */
static uint32_t from_band(const struct fdri_file_location *l, uint32_t band)
{
    uint32_t flags = l->raw.flags;
    if (band == FDRI_ARENA_BANDS - 1 && flags & FDRI_ARENA_LOCATION_JOINED_ALL) return 0;
    if (band == FDRI_ARENA_BANDS - 1 && flags & FDRI_ARENA_LOCATION_JOINED_LONG) return 1;
    return band == 2 && flags & FDRI_ARENA_LOCATION_JOINED ? 1 : band;
}

/* Writes "< 256 ns", "256 ns .. 4.096 us" or ">= 65.536 us". */
static void duration_text(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t band, char *text,
                          size_t bytes)
{
    const struct fdri_file_clock *c = &f->clock;
    char edge[2][24];
    uint32_t edges = f->sb.band_edge_count, from = from_band(l, band);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t which = i ? band + 1 : from; /* edge[0] is below the band, edge[1] above */
        edge[i][0] = 0;
        if (which == 0 || which > edges) continue;
        uint64_t stored = f->sb.band_edge[which - 1];
        double ns = (double)(stored << c->shift) * (double)c->num / (double)c->den;
        if (ns < 1e3) snprintf(edge[i], sizeof edge[i], "%.4g ns", ns);
        else if (ns < 1e6) snprintf(edge[i], sizeof edge[i], "%.4g us", ns / 1e3);
        else snprintf(edge[i], sizeof edge[i], "%.4g ms", ns / 1e6);
    }
    if (edge[0][0] && edge[1][0]) snprintf(text, bytes, " of %s .. %s", edge[0], edge[1]);
    else if (edge[1][0]) snprintf(text, bytes, " < %s", edge[1]);
    else if (edge[0][0]) snprintf(text, bytes, " >= %s", edge[0]);
    else text[0] = 0;
}

static void describe_reduction(const struct fdr_file *f, const struct fdri_file_location *l,
                               const struct fdri_arena_reduction *r, struct fdr_reduction_info *out)
{
    char duration[60] = "";
    if (r->step == FDRI_ARENA_STEP_STOP) {
        snprintf(out->what, sizeof out->what, "nothing is stored from here on");
    } else if (r->step == FDRI_ARENA_STEP_CLAIM) {
        snprintf(out->what, sizeof out->what, "taken from location %u, which held more than its share", r->depth);
    } else if (r->class_ >= FDRI_ARENA_CLASS_COUNT) {
        snprintf(out->what, sizeof out->what, "everything of the oldest epoch");
    } else if (r->class_ == FDRI_ARENA_CLASS_REGION) {
        duration_text(f, l, r->band, duration, sizeof duration);
        snprintf(out->what, sizeof out->what, "region calls%s at depth %u", duration, r->depth);
    } else if (r->class_ == FDRI_ARENA_CLASS_SAMPLE) {
        snprintf(out->what, sizeof out->what, "samples of level %u", r->depth);
    } else if (fdri_events_is_reading(l, r->class_, r->depth)) {
        snprintf(out->what, sizeof out->what, "readings of level %u", FDRI_ARENA_READING_DEPTHS - r->depth);
    } else {
        snprintf(out->what, sizeof out->what, "%s events at depth %u", fdr_class_name(r->class_), r->depth);
    }
}

static void add_line(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_reduction *r)
{
    if (!fdri_file_grow(&f->reduction, f->reduction_count, &f->reduction_room, sizeof *f->reduction)) return;
    struct fdr_reduction_info *out = &f->reduction[f->reduction_count++];
    uint64_t most = l->clock.stored_max, from = r->from_tick > r->to_tick ? r->to_tick : r->from_tick;
    memset(out, 0, sizeof *out);
    out->location = l->id;
    out->step = step_name(r->step);
    out->time_ns = fdri_file_ns(&l->clock, r->tick < most ? r->tick : most);
    out->events = r->events;
    out->bytes = r->bytes;
    out->from_ns = fdri_file_ns(&l->clock, from < most ? from : most);
    out->to_ns = fdri_file_ns(&l->clock, r->to_tick < most ? r->to_tick : most);
    out->steps = r->steps;
    out->gone = r->gate_closed != 0;
    describe_reduction(f, l, r, out);
}

static uint64_t newest_tick(const struct fdri_file_location *l)
{
    uint64_t last = l->raw.last_tick >> l->clock.shift;
    return fdri_bits_max(last <= l->clock.stored_max ? last : 0, l->end_tick);
}

bool fdri_account_reduction_good(const struct fdr_file *f, const struct fdri_arena_reduction *r)
{
    bool of_a_class = r->class_ < FDRI_ARENA_CLASS_COUNT || r->step >= FDRI_ARENA_STEP_EPOCH;
    return step_name(r->step) && of_a_class && r->band < FDRI_ARENA_BANDS &&
           !fdri_file_is_suspect(f, (uint64_t)((const uint8_t *)r - f->bytes), sizeof *r);
}

/* Adds one line for the steps whose lines found no room or no block. */
static void add_dropped(struct fdr_file *f, const struct fdri_file_location *l, uint64_t oldest_tick)
{
    if (!l->raw.reductions_dropped_events && !l->raw.reductions_dropped_bytes) return;
    if (l->block_damaged) {
        fdri_file_damage(f, "location %u: its reductions before the oldest line are unknown", l->id);
        return;
    }
    struct fdri_arena_reduction none = {.tick = oldest_tick,
                                        .step = FDRI_ARENA_STEP_EPOCH,
                                        .events = l->raw.reductions_dropped_events,
                                        .bytes = l->raw.reductions_dropped_bytes,
                                        .from_tick = l->raw.start_tick,
                                        .to_tick = newest_tick(l)};
    size_t before = f->reduction_count;
    add_line(f, l, &none);
    if (f->reduction_count == before) return;
    struct fdr_reduction_info *out = &f->reduction[before];
    out->step = "earlier";
    snprintf(out->what, sizeof out->what, "earlier steps, whose lines found no room");
}

/* The time of the first readable line. All steps without a line came before it. */
static uint64_t oldest_tick(const struct fdr_file *f, const struct fdri_file_location *l,
                            const struct fdri_arena_reductions_block *b, uint32_t first)
{
    for (uint32_t i = first; i < l->raw.reduction_count; i++) {
        const struct fdri_arena_reduction *r = &b->line[i % FDRI_ARENA_REDUCTION_LINES];
        if (fdri_account_reduction_good(f, r)) return r->tick;
    }
    return newest_tick(l);
}

static void collect_reductions(struct fdr_file *f, const struct fdri_file_location *l)
{
    uint64_t off = l->raw.reductions_off;
    uint32_t count = l->raw.reduction_count;
    if (!off || !count) {
        add_dropped(f, l, newest_tick(l));
        return;
    }
    const struct fdri_arena_reductions_block *b = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_REDUCTIONS,
                                                                                  l->id, sizeof *b);
    if (!b) {
        fdri_file_damage(f, "location %u: the lines of its reductions are missing", l->id);
        return;
    }
    uint32_t first = count > FDRI_ARENA_REDUCTION_LINES ? count - FDRI_ARENA_REDUCTION_LINES : 0;
    add_dropped(f, l, oldest_tick(f, l, b, first));
    for (uint32_t i = first; i < count; i++) {
        const struct fdri_arena_reduction *r = &b->line[i % FDRI_ARENA_REDUCTION_LINES];
        if (fdri_account_reduction_good(f, r)) add_line(f, l, r);
        else if (l->settled && i + 1 < count) fdri_file_damage(f, "location %u: a reduction line is damaged", l->id);
    }
}

size_t fdr_reductions(const struct fdr_file *file, const struct fdr_reduction_info **rows)
{
    struct fdr_file *f = (struct fdr_file *)(uintptr_t)file; /* computed on first use */
    pthread_mutex_lock(&f->lock);
    if (!f->has_reductions && !fdri_account_job_reductions(f))
        for (size_t i = 0; i < f->location_count; i++) collect_reductions(f, &f->location[i]);
    f->has_reductions = true;
    pthread_mutex_unlock(&f->lock);
    *rows = f->reduction;
    return f->reduction_count;
}
