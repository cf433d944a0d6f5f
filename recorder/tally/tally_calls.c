/* SPDX-License-Identifier: MIT */
/* The public functions of fdr/tally.h. In an attached thread each is an operation like others: fdr_finalize waits for
 * it, and the next operation mends what a longjmp left. Other threads hold the recording meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <fdr/tally.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/system/signal_mask.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/tally/tally.h"
#include "recorder/thread/thread.h"

/* How the recording is kept from ending. */
struct hold {
    struct fdri_thread *t; /* by an operation of this thread; NULL: by a hold */
    sigset_t mask;
};

/* False: recording `number` is over. A longjmp out of a hold would keep the recording for ever, so signals are blocked
 * during one. */
static bool begin(struct hold *h, uint32_t number)
{
    h->t = fdri_thread_begin_attached();
    if (h->t) {
        if (h->t->recording == number) return true;
        fdri_thread_end(h->t);
        return false;
    }
    fdri_system_signals_block(&h->mask);
    if (fdri_thread_hold_recording(number)) return true;
    fdri_system_signals_restore(&h->mask);
    return false;
}

static void end(const struct hold *h)
{
    if (h->t) {
        fdri_thread_end(h->t);
        return;
    }
    fdri_thread_release_recording();
    fdri_system_signals_restore(&h->mask);
}

/* {recording:32, off:32} */
static uint64_t name_of(uint32_t on, const struct fdri_arena_tally *row)
{
    return (uint64_t)on << 32 | (uint32_t)((const uint8_t *)row - fdri_life_recording.arena.base);
}

int fdr_tally_make(uint32_t kind, const void *key, fdr_tally *tally)
{
    struct hold h;
    uint32_t on = fdri_atomic_load_relaxed(&fdr_switch_.on);
    *tally = 0;
    if (!kind || kind >= FDR_TALLY_KIND_END || !key) return -EINVAL;
    if (!on || !begin(&h, on)) return -ESRCH;
    const struct fdri_arena_tally *row = fdri_tally_row(kind, key);
    if (row) *tally = name_of(on, row);
    end(&h);
    return row ? 0 : -ENOSPC;
}

/* Begins an operation on one counter. 0, or the error that the caller returns. */
static int open_counter(struct hold *h, fdr_tally tally, unsigned counter, uint64_t **word)
{
    uint32_t on = (uint32_t)(tally >> 32);
    if (counter >= FDR_TALLY_COUNTERS) return -EINVAL;
    if (!on || on != fdri_atomic_load_relaxed(&fdr_switch_.on) || !begin(h, on)) return -ESTALE;
    struct fdri_arena_tally *row = fdri_bins_at(&fdri_life_recording.arena, (uint32_t)tally);
    *word = &row->counter[counter];
    return 0;
}

int fdr_tally_add(fdr_tally tally, unsigned counter, uint64_t more, uint64_t *before)
{
    struct hold h;
    uint64_t *word;
    int e = open_counter(&h, tally, counter, &word);
    if (e) return e;
    uint64_t was = fdri_atomic_add_relaxed(word, more);
    end(&h);
    if (before) *before = was;
    return 0;
}

int fdr_tally_set(fdr_tally tally, unsigned counter, uint64_t value)
{
    struct hold h;
    uint64_t *word;
    int e = open_counter(&h, tally, counter, &word);
    if (e) return e;
    fdri_atomic_store_relaxed(word, value);
    end(&h);
    return 0;
}

int fdr_tally_set_all(const fdr_tally *tally, size_t count, const uint64_t *value)
{
    struct hold h;
    uint64_t *word;
    int e = count ? open_counter(&h, tally[0], 0, &word) : -EINVAL;
    if (e) return e;
    for (size_t t = 0; t < count && tally[t] >> 32 == tally[0] >> 32; t++) {
        struct fdri_arena_tally *row = fdri_bins_at(&fdri_life_recording.arena, (uint32_t)tally[t]);
        for (unsigned i = 0; i < FDR_TALLY_COUNTERS; i++)
            fdri_atomic_store_relaxed(&row->counter[i], value[t * FDR_TALLY_COUNTERS + i]);
    }
    end(&h);
    return 0;
}

int fdr_tally_read(fdr_tally tally, unsigned counter, uint64_t *value)
{
    struct hold h;
    uint64_t *word;
    int e = open_counter(&h, tally, counter, &word);
    if (e) return e;
    *value = fdri_atomic_load_relaxed(word);
    end(&h);
    return 0;
}

int fdr_tally_compare_set(fdr_tally tally, unsigned counter, uint64_t *expected, uint64_t desired)
{
    struct hold h;
    uint64_t *word;
    int e = open_counter(&h, tally, counter, &word);
    if (e) return e;
    bool done = fdri_atomic_cas_acq_rel_u64(word, expected, desired); /* L:tally */
    end(&h);
    return done;
}
