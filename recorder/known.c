/* SPDX-License-Identifier: MIT */
/* The functions a thread calls, remembered by the thread: see fdri_known. The table starts empty and small with the
 * first function; it grows while it forgets much and the buffer is large enough. */
#include <string.h>

#include "recorder/recorder.h"

enum { FIRST_LOG2 = 6, LAST_LOG2 = 10, BYTES_SHARE = 1024 };

uint32_t fdri_address_version;

/* What no function has; it does not belong into slot 0 either, where address 0, which a free slot holds, would be looked for. */
enum { NO_ADDRESS = 1 };
static struct fdri_known nothing[2] = {{.address = NO_ADDRESS}, {.address = NO_ADDRESS}};

void fdri_known_start(struct fdri_thread *t)
{
    t->known = nothing;
    t->known_shift = 63;
    t->known_misses = 0;
    t->known_version = fdr_load_relaxed(&fdri_address_version);
}

static uint32_t log2_of(const struct fdri_thread *t) { return t->known == nothing ? 0 : 64 - t->known_shift; }

/* An old table is given back to the location's other meta blocks. */
static void make(struct fdri_thread *t, uint32_t log2)
{
    const uint32_t head = sizeof(struct fdr_meta_head), bytes = (uint32_t)sizeof(struct fdri_known) << log2;
    struct fdri_known *old = t->known == nothing ? NULL : t->known;
    uint32_t off = bytes <= fdri_rec.arena.super->arena_bytes / BYTES_SHARE
                       ? fdri_meta_calm(t, FDR_META_TABLE, head + bytes)
                       : 0;
    t->known_misses = 0;
    if (!off) return;
    t->known = (void *)((uint8_t *)fdri_off(t, off) + head);
    t->known_shift = 64 - log2;
    t->known[0].address = NO_ADDRESS;
    if (old) fdri_meta_give(t, fdri_off_of(t, old) - head);
}

void fdri_known_add(struct fdri_thread *t, uint64_t address, fdr_region region, const struct fdr_row *row)
{
    uint32_t version = fdr_load_relaxed(&fdri_address_version), log2 = log2_of(t);
    if (t->known_version != version) {
        if (log2) memset(t->known, 0, sizeof *t->known << log2), t->known[0].address = NO_ADDRESS;
        t->known_version = version;
    }
    if (!log2) make(t, FIRST_LOG2);
    else if (++t->known_misses > 8u << log2 && log2 < LAST_LOG2) make(t, log2 + 2);
    if (!log2_of(t) || row->flags & FDR_ROW_GATED || row->key == FDR_ROW_KEY_REST || !address) return;
    t->known[fdri_known_slot(t, address)] = (struct fdri_known){address, fdri_off_of(t, row), region};
}

void fdri_known_drop(struct fdri_thread *t, uint32_t row_off)
{
    for (uint32_t i = 0, log2 = log2_of(t); log2 && i < 1u << log2; i++)
        if (t->known[i].row_off == row_off) t->known[i] = (struct fdri_known){.address = i ? 0 : NO_ADDRESS};
}
