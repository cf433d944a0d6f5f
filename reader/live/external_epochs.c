/* SPDX-License-Identifier: MIT */
/* Epochs, copied from outside: a table with its rows, as they were at one moment. Like
 * export/snapshot/snapshot_locations.c. */
#include <assert.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/live/external_copy.h"

enum { EPOCH_TRIES = 16, ROWS_MOST = 4096 };
static_assert(FDRI_ARENA_EPOCHS_MAX * ROWS_MOST <= BATCH, "rows of all epochs fit");

/* False if the offset of the rows is damaged. Reading again would not help, so the copy gets the damaged table. */
static bool has_rows(const struct copy *c, const struct fdri_arena_epochs *e, uint32_t i)
{
    uint64_t off = e->epoch[i].rows_off;
    return off >= FDRI_ARENA_SUPERBLOCK_BYTES && e->row_bytes <= ROWS_MOST && off <= c->bytes - e->row_bytes;
}

static uint32_t count_of(const struct fdri_arena_epochs *e)
{
    return (uint32_t)fdri_bits_min(e->count, FDRI_ARENA_EPOCHS_MAX);
}

/* Reads the table, and the rows of epoch i to place i of c->first. False: they changed meanwhile. */
static bool read_epochs(struct copy *c, uint64_t off, struct fdri_arena_epochs *e)
{
    uint32_t after = 0;
    if (!fdri_live_external_get(c, off, e, sizeof *e) || e->version & 1) return false;
    for (uint32_t i = 0; i < count_of(e); i++)
        if (has_rows(c, e, i)) fdri_live_external_get(c, e->epoch[i].rows_off, c->first + i * ROWS_MOST, e->row_bytes);
    return GET_FIELD(c, off, struct fdri_arena_epochs, version, &after) && after == e->version;
}

void fdri_live_external_copy_epochs(struct copy *c, const struct fdri_arena_location *l)
{
    struct fdri_arena_epochs e = {0};
    uint64_t off = l->epochs_off;
    bool good = false;
    if (off < FDRI_ARENA_SUPERBLOCK_BYTES || off > c->bytes - sizeof e) return;
    for (int i = 0; i < EPOCH_TRIES && !good && !c->error; i++) good = read_epochs(c, off, &e);
    if (!fdri_live_external_is(off, &e.head, FDRI_ARENA_META_EPOCHS, l->id)) return;
    if (!good) {
        e.version = 1; /* odd: the reader ignores the table */
        if (!c->error) fdri_live_external_put(c, off, &e, offsetof(struct fdri_arena_epochs, epoch));
        return;
    }
    fdri_live_external_put(c, off, &e, sizeof e);
    for (uint32_t i = 0; i < count_of(&e); i++)
        if (has_rows(c, &e, i) && fdri_live_external_is(e.epoch[i].rows_off, (const void *)(c->first + i * ROWS_MOST),
                                                        FDRI_ARENA_META_EPOCHROWS, l->id))
            fdri_live_external_put(c, e.epoch[i].rows_off, c->first + i * ROWS_MOST, e.row_bytes);
}
