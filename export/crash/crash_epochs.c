/* SPDX-License-Identifier: MIT */
/* Epochs in a bundle that is a copy: each table with its rows, as they were at one moment. Recording is off by then and
 * the other threads wait in fdr's handler. But a thread that blocks the signal finishes its operation. Fatal path: see
 * crash_path.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "export/crash/crash_path.h"
#include "export/snapshot/snapshot.h"
#include "format/arena/arena.h"

enum { EPOCH_TRIES = 16, ROWS_MOST = 4096 };

static const void *at(uint64_t off, uint64_t bytes)
{
    return off >= FDRI_ARENA_SUPERBLOCK_BYTES && off % 8 == 0 && bytes <= fdri_snapshot_view.bytes &&
                   off <= fdri_snapshot_view.bytes - bytes
               ? fdri_snapshot_view.base + off
               : NULL;
}

FDRI_RACY static const struct fdri_arena_epochs *epochs_of(const struct fdri_arena_location *l)
{
    return at(l->epochs_off, sizeof(struct fdri_arena_epochs));
}

/* The next location. NULL at the end, and after as many as fit into the arena: the program may have overwritten the
 * list. */
FDRI_RACY static const struct fdri_arena_location *next_of(const struct fdri_arena_location *l, uint64_t *most)
{
    const struct fdri_arena_superblock *s = (const void *)fdri_snapshot_view.base;
    return (*most)-- ? at(l ? l->next : s->location_first, sizeof *l) : NULL;
}

FDRI_RACY uint64_t fdri_crash_epochs_changes(void)
{
    uint64_t sum = 0, most = fdri_snapshot_view.bytes / sizeof(struct fdri_arena_location);
    for (const struct fdri_arena_location *l = NULL; (l = next_of(l, &most));) {
        const struct fdri_arena_epochs *e = epochs_of(l);
        if (e) sum += fdri_atomic_load_acquire(&e->version); /* A:epochs - pairs with R:epochs */
    }
    return sum;
}

/* Writes table and rows directly to their places. *good: they did not change meanwhile. */
FDRI_RACY static int put_once(int fd, const struct fdri_arena_epochs *e, bool *good)
{
    uint32_t version = fdri_atomic_load_acquire(&e->version), bytes = e->row_bytes; /* A:epochs */
    *good = false;
    if (version & 1) return 0;
    int error = fdri_crash_bundle_put(fd, e, sizeof *e, (uint64_t)((const uint8_t *)e - fdri_snapshot_view.base));
    for (uint32_t i = 0; i < fdri_bits_min(e->count, FDRI_ARENA_EPOCHS_MAX) && bytes <= ROWS_MOST && !error; i++) {
        uint64_t off = e->epoch[i].rows_off;
        const void *rows = at(off, bytes);
        if (rows) error = fdri_crash_bundle_put(fd, rows, bytes, off);
    }
    fdri_atomic_fence_acquire(); /* A:epochs - the copy was read before this */
    *good = fdri_atomic_load_relaxed(&e->version) == version;
    return error;
}

FDRI_RACY int fdri_crash_epochs_put(int fd, uint64_t changes)
{
    static const uint32_t moving = 1; /* odd: the reader ignores the table */
    uint64_t most = fdri_snapshot_view.bytes / sizeof(struct fdri_arena_location);
    int error = 0;
    if (fdri_crash_epochs_changes() == changes) return 0; /* the usual case */
    for (const struct fdri_arena_location *l = NULL; !error && (l = next_of(l, &most));) {
        const struct fdri_arena_epochs *e = epochs_of(l);
        bool good = !e;
        for (int i = 0; i < EPOCH_TRIES && !good && !error; i++) error = put_once(fd, e, &good);
        if (!good && !error)
            error = fdri_crash_bundle_put(fd, &moving, sizeof moving,
                                          (uint64_t)((const uint8_t *)&e->version - fdri_snapshot_view.base));
    }
    return error;
}
