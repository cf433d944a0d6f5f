/* SPDX-License-Identifier: MIT */
/* Recovers totals: believable rows stay as they are, exact. A flag says if others are missing. */
#include "base/bits.h"
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/file/file.h"
#include "reader/recover/recover_image.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_inside_image(const struct fdri_recover_image *m, uint64_t off, uint64_t bytes)
{
    return off >= FDRI_ARENA_SUPERBLOCK_BYTES && off <= m->file->end && bytes <= m->file->end - off;
}

/* Drops a histogram if its offset is invalid or its bytes are damaged. */
static void clean_row(const struct fdri_recover_image *m, struct fdri_arena_row *r)
{
    uint64_t off = fdri_arena_histogram_off(r->histogram);
    uint32_t first = fdri_arena_histogram_first(r->histogram), n = fdri_arena_histogram_count(r->histogram) & 0xff;
    if (!r->histogram || (off % 8 == 0 && off >= m->file->sb.bins_off && is_inside_image(m, off, n * 8ull) &&
                          first + n <= 64 && !fdri_file_is_suspect(m->file, off, n * 8ull)))
        return;
    r->histogram = 0;
    r->flags |= FDRI_ARENA_ROW_NO_HISTOGRAM;
}

/* A search ends at the first free slot. So after the removal of rows, the table is filled anew. */
static void fill_anew(struct fdri_recover_image *m, uint32_t *slot, uint32_t log2, const uint32_t *row, uint32_t count)
{
    uint32_t mask = (1u << log2) - 1;
    memset(slot, 0, sizeof *slot << log2);
    for (uint32_t k = 0; k < count; k++) {
        const struct fdri_arena_row *r = fdri_recover_image_at(m, row[k]);
        uint32_t i = (uint32_t)((uint64_t)(r->key * 0x9E3779B1u) >> (32 - log2));
        while (slot[i]) i = (i + 1) & mask;
        slot[i] = row[k];
    }
}

static void recover_table(struct fdri_recover_image *m, const struct fdri_file_location *l, struct fdri_account_rows *t,
                          struct fdri_arena_rowtable *w)
{
    enum fdri_account_slot is;
    uint32_t kept = 0, taken = 0, *row = fdri_file_malloc(sizeof *row << t->log2);
    while (row && (is = fdri_account_rows_next(m->file, l, t)) != FDRI_ACCOUNT_SLOT_END) {
        taken++;
        if (is != FDRI_ACCOUNT_SLOT_ROW || fdri_account_row_class(t->row->key) == FDRI_ACCOUNT_ROW_NO_CLASS) continue;
        clean_row(m, fdri_recover_image_at(m, t->slot[t->at]));
        row[kept++] = t->slot[t->at];
    }
    if (row && kept != taken) fill_anew(m, (void *)(w + 1), t->log2, row, w->used = kept);
    free(row);
}

void fdri_recover_totals(struct fdri_recover_image *m, const struct fdri_file_location *l,
                         struct fdri_arena_location *raw)
{
    bool lost = fdri_account_rows_doubted(l);
    const struct fdri_arena_row *rest = raw->rest_row_off ? fdri_account_row_at(m->file, raw->rest_row_off) : NULL;
    if (!rest || l->block_damaged || fdri_account_row_suspect(m->file, rest)) raw->rest_row_off = 0;
    struct fdri_account_rows t = {.lost = raw->rows_table_off};
    if (t.lost && fdri_account_rows_begin(m->file, l, &m->table_slots, &t))
        recover_table(m, l, &t, fdri_recover_image_at(m, raw->rows_table_off));
    else raw->rows_table_off = 0;
    if (lost || t.lost) raw->flags |= FDRI_ARENA_LOCATION_TOTALS_LOST;
}

/* ---- epochs ---- */

/* Drops damaged rows from the base of the current epoch. `untracked` then marks the epoch's totals as incomplete.
 * Only the names of the rows go: their bytes may belong to another block that is in use. Returns false if the base
 * itself is damaged. */
static bool leave_out_of_epochs(struct fdri_recover_image *m, const struct fdri_file_location *l, uint32_t epochs_off)
{
    struct fdri_arena_epochs *w = fdri_recover_image_at(m, epochs_off);
    size_t most = m->file->end / sizeof(struct fdri_arena_row);
    const struct fdri_arena_epoch_base *b;
    if (!w->untracked) w->untracked = 1;
    for (uint64_t off = w->base_first; off; off = b->next) {
        if (!(b = fdri_account_epoch_base(m->file, l, off, &most))) return false;
        struct fdri_arena_epoch_base *named = fdri_recover_image_at(m, off);
        named->count = 0;
        for (uint32_t i = 0; i < b->count; i++) {
            const struct fdri_arena_row *r = fdri_account_row_at(m->file, b->row[i].row_off);
            if (!r || !fdri_account_row_suspect(m->file, r)) named->row[named->count++] = b->row[i];
        }
    }
    return true;
}

static void leave_out_rows(struct fdri_recover_image *m, const struct fdri_arena_epochs *e, uint32_t epochs_off)
{
    struct fdri_arena_epochs *w = fdri_recover_image_at(m, epochs_off);
    for (uint32_t i = 0; i + 1 < e->count; i++)
        if (fdri_account_epoch_rows_lost(m->file, &e->epoch[i])) w->epoch[i].rows_off = 0;
}

/* Drops the location's epochs if the reader would call them damaged, or if their rows do not add up to their sums. */
void fdri_recover_epochs(struct fdri_recover_image *m, const struct fdri_file_location *l,
                         struct fdri_arena_location *raw)
{
    const struct fdri_arena_epochs *e = (const void *)fdri_file_meta_at(m->file, raw->epochs_off,
                                                                        FDRI_ARENA_META_EPOCHS, l->id, sizeof *e);
    const struct fdr_epoch_info *r;
    bool any = false, wrong = false;
    size_t n = fdr_epochs(m->file, &r);
    size_t i = fdri_recover_first_of(r, n, sizeof *r, offsetof(struct fdr_epoch_info, location), l->id);
    for (; e && i < n && r[i].location == l->id; i++) {
        any = true;
        wrong |= l->settled &&
                 (e->untracked || (r[i].current && l->epoch_rows_lost) ? !r[i].calls && e->epoch[r[i].index].calls
                                                                       : !r[i].exact);
    }
    wrong |= e && fdri_file_is_suspect(m->file, raw->epochs_off, sizeof *e);
    if (!any || wrong || (l->epoch_rows_lost && !leave_out_of_epochs(m, l, raw->epochs_off))) raw->epochs_off = 0;
    else leave_out_rows(m, e, raw->epochs_off);
}
