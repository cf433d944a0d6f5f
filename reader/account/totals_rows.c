/* SPDX-License-Identifier: MIT */
/* Walks the rows in the table of a location, and decides which of them are believable. */
#include <assert.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/classes/class_table.h"
#include "reader/account/account.h"
#include "reader/file/file.h"

#define KEY_ID(key) ((key)&0xffffffu)

uint32_t fdri_account_row_class(uint32_t key)
{
    static_assert(FDRI_ACCOUNT_ROW_NO_CLASS == UINT32_MAX, "what the table answers");
    return fdri_classes_of_row(key);
}

bool fdri_account_row_wanted(const struct fdri_arena_row *r)
{
    uint32_t class_ = fdri_account_row_class(r->key);
    if (class_ == FDRI_ACCOUNT_ROW_NO_CLASS || !(r->calls | r->untimed)) return false;
    return fdri_classes_kind(class_, KEY_ID(r->key))->totals == FDRI_CLASSES_ROW;
}

const struct fdri_arena_row *fdri_account_row_at(const struct fdr_file *f, uint64_t off)
{
    return off % 64 || off < f->sb.bins_off ? NULL : fdri_file_at(f, off, sizeof(struct fdri_arena_row));
}

static bool damaged(const struct fdr_file *f, const void *p, uint64_t bytes)
{
    return fdri_file_is_suspect(f, (uint64_t)((const uint8_t *)p - f->bytes), bytes);
}

bool fdri_account_row_suspect(const struct fdr_file *f, const struct fdri_arena_row *r)
{
    return damaged(f, r, sizeof *r);
}

/* ---- the table ---- */

/* Would a search for the key reach slot `at`, which has `run` used slots before it? */
static bool reachable(const struct fdri_account_rows *t, uint32_t key)
{
    uint32_t home = (uint32_t)((uint64_t)(key * 0x9E3779B1u) >> (32 - t->log2));
    return ((t->at - home) & ((1u << t->log2) - 1)) <= t->run;
}

/* The snapshot may have copied a row's place before the row was there. Then the bytes there are no row of this
 * table. */
static bool not_of_table(const struct fdri_file_location *l, const struct fdri_arena_row *r,
                         const struct fdri_account_rows *t)
{
    if (l->settled || !l->in_tail) return false;
    bool anew = l->raw.flags & FDRI_ARENA_LOCATION_ANEW; /* then the number presented is a lower bound */
    return (!anew && r->calls + r->untimed > l->tail.presented) || !reachable(t, r->key);
}

/* Number of used slots at the table's end. A search continues from there at the beginning. */
static uint32_t used_run_at_end(const uint32_t *slot, uint32_t count)
{
    uint32_t n = 0;
    while (n < count && slot[count - 1 - n]) n++;
    return n;
}

/* For a slot t->at in damaged bytes or a damaged table: does it lead to a row of this table? It may lead to another
 * thread's row, or to counters. */
static bool leads_to_own_row(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_account_rows *t)
{
    return t->row && reachable(t, t->row->key) && fdri_account_among_rows(f, l, t->slot[t->at], sizeof *t->row) &&
           fdri_account_row_plausible(f, l, t->row);
}

/* Goes to the next used slot. Returns false if there is none. */
static bool next_used_slot(struct fdr_file *f, struct fdri_account_rows *t)
{
    uint32_t count = 1u << t->log2;
    for (t->at++, t->run++; t->at < count && !t->slot[t->at]; t->at++, t->run = 0)
        ;
    t->row = t->at < count ? fdri_account_row_at(f, t->slot[t->at]) : NULL;
    return t->at < count;
}

/* Does a slot lead to bytes that cannot be its row, though no check reports damage? Then each row of the table needs
 * confirmation. */
static bool any_wrong(struct fdr_file *f, const struct fdri_file_location *l, struct fdri_account_rows t)
{
    while (l->settled && next_used_slot(f, &t)) {
        if (damaged(f, &t.slot[t.at], sizeof t.slot[0]) || (t.row && fdri_account_row_suspect(f, t.row))) continue;
        if (!t.row || fdri_account_row_class(t.row->key) == FDRI_ACCOUNT_ROW_NO_CLASS || !reachable(&t, t.row->key))
            return true;
    }
    return false;
}

bool fdri_account_rows_begin(struct fdr_file *f, const struct fdri_file_location *l, uint64_t *looked,
                             struct fdri_account_rows *t)
{
    uint64_t off = l->raw.rows_table_off;
    const struct fdri_arena_rowtable *head = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_ROWTABLE, l->id,
                                                                             sizeof *head);
    if (!head || head->log2 > 24) return false;
    uint32_t count = 1u << head->log2;
    const uint32_t *slot = fdri_file_at(f, off + sizeof *head, count * (uint64_t)sizeof *slot);
    *looked += count;
    if (!slot || *looked > f->end) return false; /* the tables overlap: no recorder wrote them */
    *t = (struct fdri_account_rows){.slot = slot, .log2 = head->log2, .at = UINT32_MAX};
    t->run = used_run_at_end(slot, count) - 1;
    t->doubted = any_wrong(f, l, *t);
    /* a damaged slot that reads 0 may have led to a row */
    t->lost = t->doubted || damaged(f, head, sizeof *head + count * sizeof *slot);
    return true;
}

enum fdri_account_slot fdri_account_rows_next(struct fdr_file *f, const struct fdri_file_location *l,
                                              struct fdri_account_rows *t)
{
    if (!next_used_slot(f, t)) return FDRI_ACCOUNT_SLOT_END;
    bool doubt = t->doubted || damaged(f, &t->slot[t->at], sizeof t->slot[0]);
    t->doubted |= !t->row && !doubt; /* a copy beside a running thread does not explain this */
    if (!t->row || fdri_account_row_suspect(f, t->row) || (doubt && !leads_to_own_row(f, l, t))) {
        t->lost = true;
        return FDRI_ACCOUNT_SLOT_LOST;
    }
    return not_of_table(l, t->row, t) ? FDRI_ACCOUNT_SLOT_FOREIGN : FDRI_ACCOUNT_SLOT_ROW;
}

/* ---- missing rows ---- */

/* Locations of samples have no totals. */
static bool has_totals(const struct fdri_file_location *l)
{
    bool samples = l->raw.flags & FDRI_ARENA_LOCATION_SAMPLES;
    for (size_t i = 0; !l->off && i < l->part_count; i++) samples |= l->part[i].class_ == FDRI_ARENA_CLASS_SAMPLE;
    return !samples;
}

bool fdri_account_rows_doubted(const struct fdri_file_location *l)
{
    return has_totals(l) && (!l->off || l->block_damaged || l->raw.flags & FDRI_ARENA_LOCATION_TOTALS_LOST);
}
