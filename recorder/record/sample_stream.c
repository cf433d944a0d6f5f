/* SPDX-License-Identifier: MIT */
/* Opens and closes streams of samples. A stream's memory is never given back, because its samples stay. Short-lived
 * threads shall not use up the arena. So from some number of streams on a new thread continues the stream of an ended
 * one. Its number, accounts and levels continue, and the stream belongs to no single thread any more. */
#define _GNU_SOURCE
#include "base/atomic.h"
#include "base/bits.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "bins/bins.h"
#include "bins/slabs.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/record/sample_stream.h"
#include "recorder/strategy/reduce.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"

#include <fdr/fdr.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The streams of ended threads, in the order of their ends. They are used again in turn, so each has its part of the
 * run and of the samples' memory. */
static struct {
    uint32_t lock;        /* atomic: process id, 0 free */
    uint32_t recording;   /* the recording of these streams */
    uint32_t first, last; /* offsets; last is valid if first is not 0 */
    uint32_t count, most; /* number of streams; from `most` on they are used again */
} streams;

/* Takes the lock. It names the process that holds it, so a forked child does not wait for a thread of its parent. */
static void lock(uint32_t recording)
{
    uint32_t me = (uint32_t)fdri_export_pid(), held = 0;
    for (int i = 0; !fdri_atomic_cas_acq_rel_u32(&streams.lock, &held, me);) { /* L:streams */
        if (held != me) continue;
        held = 0;
        fdri_system_wait(i++);
    }
    if (streams.recording == recording) return;
    uint64_t bytes = fdri_life_recording.arena.super->arena_bytes;
    streams.recording = recording;
    streams.first = streams.count = 0;
    streams.most = (uint32_t)fdri_bits_max(16, bytes >> 17); /* or earlier, if make() finds no room */
}
static void unlock(void) { fdri_atomic_store_release(&streams.lock, 0u); /* L:streams */ }

/* ---- a new stream ---- */

static void set_name(struct fdri_arena_location *l, const char *name)
{
    char text[sizeof l->name] = "";
    snprintf(text, sizeof text, "%.20s (samples)", name ? name : "");
    memcpy(l->name, text, sizeof text);
}

static bool build(struct fdr_sampled *d, uint32_t off, const char *name, int clock, uint64_t period)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_arena_location *l = fdri_bins_at(a, off);
    uint32_t zero = fdri_bins_meta_take(a, FDRI_ARENA_META_LEVELS, 64 + sizeof(struct fdri_arena_level), UINT32_MAX);
    uint32_t samples = zero ? fdri_bins_meta_take(a, FDRI_ARENA_META_SAMPLES, sizeof(struct fdri_arena_samples),
                                                  UINT32_MAX)
                            : 0;
    if (!samples) return false;
    l->id = fdri_atomic_add_relaxed(&a->super->location_count, 1u);
    l->head.location = l->id;
    ((struct fdri_arena_meta_head *)fdri_bins_at(a, zero))->location = l->id;
    ((struct fdri_arena_meta_head *)fdri_bins_at(a, samples))->location = l->id;
    l->level0_off = zero + 64;
    l->samples_off = samples;
    l->tid = d->tid;
    l->parent = UINT32_MAX;
    l->flags = FDRI_ARENA_LOCATION_LIVE | FDRI_ARENA_LOCATION_SAMPLES;
    set_name(l, name);
    d->s = fdri_bins_at(a, samples);
    d->s->clock = (uint32_t)clock;
    d->s->period = period;
    d->t.loc = l;
    d->t.base = a->base;
    d->t.no_event_yet = true;
    fdri_thread_set_clock(&d->t, false);
    l->start_tick = fdri_thread_tick_live(&d->t) >> d->t.shift;
    fdri_thread_link_location(l, off);
    return true;
}

enum {
    BINS_EACH = 8,
    STREAM_BYTES = 64 + sizeof(struct fdr_sampled) + sizeof(struct fdri_arena_location) + 64 +
                   sizeof(struct fdri_arena_level) + sizeof(struct fdri_arena_samples) + 4 * FDRI_ARENA_META_ALIGN
};

static struct fdr_sampled *make(uint32_t tid, const char *name, int by, uint64_t period)
{
    struct fdri_bins_arena *a = &fdri_life_recording.arena;
    /* Keeps the reserve for new threads and half of the bins: a stream takes four bins, and no other location gets them
     * again. */
    if (!fdri_bins_meta_spares(a, &fdri_life_recording.slabs, FDRI_BINS_SPARE_STREAMS, STREAM_BYTES) ||
        streams.count >= a->super->bins_total / BINS_EACH)
        return NULL;
    uint32_t own = fdri_bins_meta_take(a, FDRI_ARENA_META_FREE, 64 + sizeof(struct fdr_sampled), UINT32_MAX);
    uint32_t off = own ? fdri_bins_meta_take(a, FDRI_ARENA_META_LOCATION, sizeof(struct fdri_arena_location),
                                             UINT32_MAX)
                       : 0;
    struct fdr_sampled *d = own ? fdri_bins_at(a, own + 64) : NULL;
    if (d) d->tid = tid;
    if (off && build(d, off, name, by, period)) return d;
    /* no reader may find the location */
    if (off) ((struct fdri_arena_meta_head *)fdri_bins_at(a, off))->kind = FDRI_ARENA_META_FREE;
    return NULL;
}

/* ---- the stream of an ended thread ---- */

static uint32_t offset_of(const struct fdr_sampled *d)
{
    return (uint32_t)((const uint8_t *)d - fdri_life_recording.arena.base);
}

static bool of_name(const struct fdri_arena_location *l, const char *name)
{
    char text[sizeof l->name];
    snprintf(text, sizeof text, "%.20s (samples)", name ? name : "");
    return !strcmp(text, l->name);
}

/* Takes the stream of the same clock and period that ended first off the list; one of the same name goes first. NULL:
 * none. */
static struct fdr_sampled *choose(const char *name, int by, uint64_t period)
{
    struct fdr_sampled *best = NULL, *best_before = NULL, *before = NULL;
    for (uint32_t off = streams.first; off; off = before->next) {
        struct fdr_sampled *d = fdri_bins_at(&fdri_life_recording.arena, off);
        bool same = d->s->clock == (uint32_t)by && d->s->period == period, named = same && of_name(d->t.loc, name);
        if (named || (same && !best)) {
            best = d;
            best_before = before;
        }
        if (named) break;
        before = d;
    }
    if (!best) return NULL;
    *(best_before ? &best_before->next : &streams.first) = best->next;
    if (!best->next && best_before) streams.last = offset_of(best_before);
    return best;
}

static struct fdr_sampled *reuse_stream(uint32_t tid, const char *name, int by, uint64_t period)
{
    struct fdr_sampled *d = choose(name, by, period);
    if (!d) return NULL;
    struct fdri_arena_location *l = d->t.loc;
    if (!of_name(l, name)) snprintf(l->name, sizeof l->name, "several threads (samples)");
    d->several = true;
    d->tid = tid;
    d->watched_off = d->searched = 0;
    l->tid = 0;
    l->parent = UINT32_MAX;
    l->end_tick = 0;
    fdri_atomic_store_relaxed(&l->flags, l->flags | FDRI_ARENA_LOCATION_LIVE);
    return d;
}

/* ---- open and close: signals are blocked, or a longjmp would leave the lock taken and fdr_finalize waiting ---- */

static struct fdr_sampled *open_stream(uint32_t on, uint32_t tid, const char *name, int by, uint64_t period)
{
    lock(on);
    struct fdr_sampled *d = streams.count >= streams.most ? reuse_stream(tid, name, by, period) : NULL;
    if (!d && (d = make(tid, name, by, period))) streams.count++;
    if (!d) d = reuse_stream(tid, name, by, period);
    if (!d) fdri_thread_count_no_room(tid, false);
    unlock();
    if (!d) return NULL;
    fdri_atomic_store_relaxed(&fdri_life_recording.sample_share, fdri_life_recording.arena.super->bins_total / 16);
    fdri_atomic_store_relaxed(&d->recording, on);
    return d;
}

struct fdr_sampled *fdr_sampled_open(uint32_t tid, const char *name, enum fdr_sampled_by by, uint64_t period)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    struct fdr_sampled *d = NULL;
    sigset_t old;
    if (!on) return NULL;
    fdri_system_signals_block(&old);
    if (fdri_thread_hold_recording(on)) {
        d = open_stream(on, tid, name, (int)by, period ? period : 1);
        fdri_thread_release_recording();
    }
    fdri_system_signals_restore(&old);
    return d;
}

static void name_stream(struct fdr_sampled *d, uint32_t on, const char *name)
{
    if (fdri_atomic_load_relaxed(&d->recording) != on || d->several) return;
    struct fdri_arena_location *l = fdri_atomic_load_relaxed(&d->t.loc);
    if (l && !of_name(l, name)) set_name(l, name);
}

void fdr_sampled_name(struct fdr_sampled *d, const char *name)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    sigset_t old;
    if (!on || !d) return;
    fdri_system_signals_block(&old);
    if (fdri_thread_hold_recording(on)) {
        name_stream(d, on, name);
        fdri_thread_release_recording();
    }
    fdri_system_signals_restore(&old);
}

static void close_stream(struct fdr_sampled *d, uint32_t on)
{
    struct fdri_arena_location *l = d->t.loc;
    fdri_atomic_store_relaxed(&d->recording, 0u);
    l->end_tick = fdri_bits_max(l->last_tick >> d->t.shift, 1);
    fdri_atomic_store_relaxed(&l->flags, l->flags & ~(uint32_t)FDRI_ARENA_LOCATION_LIVE);
    lock(on);
    d->next = 0;
    *(streams.first ? &((struct fdr_sampled *)fdri_bins_at(&fdri_life_recording.arena, streams.last))->next
                    : &streams.first) = offset_of(d);
    streams.last = offset_of(d);
    unlock();
}

void fdr_sampled_close(struct fdr_sampled *d)
{
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    sigset_t old;
    if (!on || !d) return;
    fdri_system_signals_block(&old);
    if (fdri_thread_hold_recording(on)) {
        if (fdri_atomic_load_relaxed(&d->recording) == on) close_stream(d, on);
        fdri_thread_release_recording();
    }
    fdri_system_signals_restore(&old);
}
