/* SPDX-License-Identifier: MIT */
/* Accounts of a file: ledger, totals, epochs, reductions, and how far each location reaches.
 *
 *   file_info.c      what the file is                ledger.c         presented = kept + filtered + reduced + lost
 *   kept_records.c   which records count as kept     read_totals.c    exact totals of every region
 *   totals_rows.c    the rows of a table             row_plausible.c  does a row agree with all else?
 *   age_detail.c     epochs and their totals         reductions.c     the log of what was given back
 *   memory_balance.c how evenly memory is used
 *
 * Neighbours: file/ below, events/ for what decoding finds. */
#ifndef FDRI_READER_ACCOUNT_ACCOUNT_H
#define FDRI_READER_ACCOUNT_ACCOUNT_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "reader/file/file.h"

/* What left up to here does not count as kept, as the location says; 0: all does, or that is not believed. */
uint64_t fdri_account_floor(const struct fdri_file_location *l);
void fdri_account_keep_rule(struct fdri_file_location *l);
/* Calls of this depth that were ever stored, or counted as left out; UINT64_MAX: not known. */
uint64_t fdri_account_stored_ever(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth);
void fdri_account_reach(struct fdr_file *f, struct fdri_file_location *l);

/* The row that calls without a level are in; 0: there are none. */
uint32_t fdri_account_without_level_from(const struct fdri_file_location *l);

void fdri_account_info(struct fdr_file *f);
void fdri_account_balance(struct fdr_file *f);

/* One block of what the current epoch is counted from; NULL: damaged. *most: rows that may still come, at first as many
 * as the file has room for. */
const struct fdri_arena_epoch_base *
fdri_account_epoch_base(const struct fdr_file *f, const struct fdri_file_location *l, uint64_t off, size_t *most);
/* How many epochs are told: the last two are one where the first of them has not got all of its totals yet. */
static inline uint32_t fdri_account_epochs_shown(const struct fdri_arena_epochs *e)
{
    return e->count - (e->walking && e->count > 1);
}
/* Are the rows of this epoch, which is over, in bytes that are damaged? Then all of it is in its rest. */
bool fdri_account_epoch_rows_lost(const struct fdr_file *f, const struct fdri_arena_epoch *e);

/* Does the line say something, in bytes that are not damaged? */
bool fdri_account_reduction_good(const struct fdr_file *f, const struct fdri_arena_reduction *r);

#define FDRI_ACCOUNT_ROW_NO_CLASS UINT32_MAX
uint32_t fdri_account_row_class(uint32_t key); /* FDR_IN_*; NO_CLASS: of no row that totals are read from */
/* Is this a row that the totals show? */
bool fdri_account_row_wanted(const struct fdri_arena_row *r);
const struct fdri_arena_row *fdri_account_row_at(const struct fdr_file *f, uint64_t off); /* NULL: none can lie there */
/* Is any of its bytes in a damaged stretch? */
bool fdri_account_row_suspect(const struct fdr_file *f, const struct fdri_arena_row *r);
enum fdri_account_slot {
    FDRI_ACCOUNT_SLOT_END = 0,
    FDRI_ACCOUNT_SLOT_ROW,
    FDRI_ACCOUNT_SLOT_FOREIGN, /* what the copy found there is none of this table's */
    FDRI_ACCOUNT_SLOT_LOST     /* damaged: the row, or what led to it */
};
struct fdri_account_rows { /* a walk through the table of a location */
    const uint32_t *slot;
    const struct fdri_arena_row *row; /* of slot `at` */
    uint32_t log2, at, run;           /* run: slots before it that are taken */
    bool lost;                        /* so far: of some rows nobody knows, or that there were any */
    bool doubted;                     /* it leads to what is no row, and no check says that this is damage */
};
/* false: the table that the location has is damaged. *looked: slots so far, of all locations. */
bool fdri_account_rows_begin(struct fdr_file *f, const struct fdri_file_location *l, uint64_t *looked,
                             struct fdri_account_rows *t);
/* The next slot that is taken. */
enum fdri_account_slot fdri_account_rows_next(struct fdr_file *f, const struct fdri_file_location *l,
                                              struct fdri_account_rows *t);
/* Whatever its table says: rows of it may be gone. */
bool fdri_account_rows_doubted(const struct fdri_file_location *l);

/* Does everything that it says agree with itself, with its counters, definitions and the ledger? */
bool fdri_account_row_plausible(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_row *r);
/* Do these bytes lie in memory for rows of this location? */
bool fdri_account_among_rows(struct fdr_file *f, const struct fdri_file_location *l, uint64_t off, uint64_t bytes);
/* Every call is in a bucket. In a copy made beside its thread the row may be older or newer than its histogram, by what
 * happened meanwhile; by more only where the histogram had moved, and its old place serves others. One without any
 * count is not there: it moved to a place that was copied before, and the row that leads there behind that. */
bool fdri_account_counts_plausible(const struct fdr_file *f, const struct fdri_file_location *l, uint64_t counted,
                                   uint64_t calls);

#endif
