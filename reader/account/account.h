/* SPDX-License-Identifier: MIT */
/* Accounts of a file: ledger, totals, epochs, reductions, and how far each location reaches.
 *
 *   file_info.c      properties of the file          ledger.c         presented = kept + filtered + reduced + lost
 *   kept_records.c   which records count as kept     read_totals.c    exact totals of every region
 *   totals_rows.c    walks the rows of a table       row_plausible.c  compares a row with everything else
 *   age_detail.c     epochs and their totals         reductions.c     the log of what was given back
 *   memory_balance.c how evenly memory is used       muted_regions.c  the governor: which, when, their cost
 *   tallies.c        counters of the process, by key mpi_state.c      what threads of MPI are in
 *   job_rows.c       the rows of joined files        read_traffic.c   messages and collectives of regions
 *
 * Neighbours: file/ below, events/ for what decoding finds. */
#ifndef FDRI_READER_ACCOUNT_ACCOUNT_H
#define FDRI_READER_ACCOUNT_ACCOUNT_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/tallies/tally_table.h"
#include "reader/file/file.h"

/* The location's own floor, in stored ticks: events that left up to here do not count as kept. 0: no floor, or its
 * value is not believable. */
uint64_t fdri_account_floor(const struct fdri_file_location *l);
/* Sets min_leave of all partitions of the location. */
void fdri_account_keep_rule(struct fdri_file_location *l);
/* Number of calls of this depth that were ever stored, or counted as not stored; UINT64_MAX: unknown. */
uint64_t fdri_account_stored_ever(const struct fdr_file *f, const struct fdri_file_location *l, uint32_t depth);
/* Sets the range of kept events, the open calls that count, and `careful`. */
void fdri_account_reach(struct fdr_file *f, struct fdri_file_location *l);

/* The depth whose ledger row also counts the calls that found no level; 0: there are none. */
uint32_t fdri_account_without_level_from(const struct fdri_file_location *l);

/* Fills f->info and the info of all locations. */
void fdri_account_info(struct fdr_file *f);
/* Sets the memory balance in f->info. */
void fdri_account_balance(struct fdr_file *f);

/* One block of the base of the current epoch; NULL: damaged. *most: rows that may still follow; at first as many as
 * fit into the file. */
const struct fdri_arena_epoch_base *
fdri_account_epoch_base(const struct fdr_file *f, const struct fdri_file_location *l, uint64_t off, size_t *most);
/* Number of epochs to show. While the last but one has not yet got all of its totals, the last two show as one. */
static inline uint32_t fdri_account_epochs_shown(const struct fdri_arena_epochs *e)
{
    return e->count - (e->totals_pending && e->count > 1);
}
/* Does damage cover the rows of this ended epoch? If so, its remainder holds all of it. */
bool fdri_account_epoch_rows_lost(const struct fdr_file *f, const struct fdri_arena_epoch *e);

/* A table of tallies with all of its rows; NULL: damaged. */
const struct fdri_arena_tallies *fdri_account_tallies(const struct fdr_file *f, uint64_t off);
/* The contents of this place of a table: its state, its key and counters. */
enum fdri_tallies_state fdri_account_tally(const struct fdr_file *f, const struct fdri_arena_tally *row,
                                           struct fdr_tally_row *to);

/* Of a joined file: takes the rows of its files, and returns true. False: `f` is no joined one. */
bool fdri_account_job_totals(struct fdr_file *f);
bool fdri_account_job_ledger(struct fdr_file *f);
bool fdri_account_job_reductions(struct fdr_file *f);
bool fdri_account_job_epochs(struct fdr_file *f);
/* Of a joined file: was the region muted in one of its files? The worst verdict of its files. */
bool fdri_account_job_muted(const struct fdr_file *f, uint32_t region);
enum fdr_verdict fdri_account_job_verdict(struct fdr_file *f, enum fdr_verdict (*verdict_of)(struct fdr_file *));

/* Is this line of the log used, and free of damage? */
bool fdri_account_reduction_good(const struct fdr_file *f, const struct fdri_arena_reduction *r);

/* Takes a row of messages or collectives of a region. */
void fdri_account_traffic_row(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_row *r);
/* Sorts the rows so far. */
void fdri_account_traffic_done(struct fdr_file *f);
/* Adds the messages and collectives of an ended epoch. False: they are not known. */
bool fdri_account_epoch_traffic(const struct fdr_file *f, const struct fdri_file_location *l,
                                const struct fdri_arena_epoch *e, struct fdr_traffic *sum);
/* Those of the location that are not in `before`. False: they are not known. After fdr_totals. */
bool fdri_account_traffic_since(const struct fdr_file *f, const struct fdri_file_location *l,
                                const struct fdr_traffic *before, struct fdr_traffic *sum);

#define FDRI_ACCOUNT_ROW_NO_CLASS UINT32_MAX
uint32_t fdri_account_row_class(uint32_t key); /* FDR_IN_*; NO_CLASS: a row that totals are not read from */
/* Do the totals show this row? */
bool fdri_account_row_wanted(const struct fdri_arena_row *r);
/* NULL: no row can lie there */
const struct fdri_arena_row *fdri_account_row_at(const struct fdr_file *f, uint64_t off);
/* Does a damaged stretch overlap the row? */
bool fdri_account_row_suspect(const struct fdr_file *f, const struct fdri_arena_row *r);
enum fdri_account_slot {
    FDRI_ACCOUNT_SLOT_END = 0,
    FDRI_ACCOUNT_SLOT_ROW,
    FDRI_ACCOUNT_SLOT_FOREIGN, /* no row of this table: the copy found older bytes there */
    FDRI_ACCOUNT_SLOT_LOST     /* damage took the row, or the link to it */
};
struct fdri_account_rows { /* a walk through the table of a location */
    const uint32_t *slot;
    const struct fdri_arena_row *row; /* of slot `at` */
    uint32_t log2, at, run;           /* run: used slots before it */
    bool lost;                        /* so far: damage took rows, or may have */
    bool doubted;                     /* a slot leads to bytes that are no row, but no check calls this damage */
};
/* Starts a walk. Returns false if the location's table is damaged. *looked: slots read so far, over all locations. */
bool fdri_account_rows_begin(struct fdr_file *f, const struct fdri_file_location *l, uint64_t *looked,
                             struct fdri_account_rows *t);
/* Goes to the next used slot. */
enum fdri_account_slot fdri_account_rows_next(struct fdr_file *f, const struct fdri_file_location *l,
                                              struct fdri_account_rows *t);
/* May rows be missing, whatever the table says? */
bool fdri_account_rows_doubted(const struct fdri_file_location *l);

/* Does the row agree with itself, its counters, the definitions and the ledger? */
bool fdri_account_row_plausible(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_row *r);
/* Do these bytes lie in memory for rows of this location? */
bool fdri_account_among_rows(struct fdr_file *f, const struct fdri_file_location *l, uint64_t off, uint64_t bytes);
/* Is the number of calls in the buckets plausible? At rest, every call is in one bucket. In a copy made while the
 * thread ran, row and histogram may differ by the calls during the copy. They differ by more only if the histogram
 * moved and other rows now use its old place. A histogram without any count is missing: it moved to a place that was
 * copied earlier than the row that links to it. */
bool fdri_account_counts_plausible(const struct fdr_file *f, const struct fdri_file_location *l, uint64_t counted,
                                   uint64_t calls);

#endif
