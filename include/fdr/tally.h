/* SPDX-License-Identifier: MIT */
/* Tallies: counters of the process, for libraries and adapters that record through fdr. A tally is found by a key and
 * has three counters of 64 bits. It lies in the buffer and is never given back. So it is in every snapshot, in every
 * crash bundle and in the file after SIGKILL, whatever became of the events. `fdr info` shows all of them.
 *
 *     enum { SENT = FDR_TALLY_YOURS + 17 };          // a kind of your own
 *     static fdr_tally tally;
 *     uint64_t before;
 *     if (fdr_tally_make(SENT, key, &tally) == 0)    // key: 24 bytes
 *         fdr_tally_add(tally, 0, 1, &before);       // before: the ordinal of this message
 *
 * fdr makes room for a stated number of keys (docs/CAPACITY.md). A key that finds none finds none later either, in this
 * recording. So nothing counts half: a caller that hears -ENOSPC says that its events have no numbers.
 *
 * Signals and threads: all functions are [record] (fdr/fdr.h) in a thread that has recorded an event. In other threads
 * they block signals for a moment, by two system calls. They never attach a thread. */
#ifndef FDR_TALLY_H
#define FDR_TALLY_H

#include <fdr/fdr.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FDR_TALLY_KEY_BYTES = 24, FDR_TALLY_COUNTERS = 3 };
enum fdr_tally_kind {
    FDR_TALLY_TRIGGER = 1, /* fdr's own: a trigger, by name; seen, dropped, snapshots */
    FDR_TALLY_MPI,         /* the messages sent and received, and the collectives, of the process */
    FDR_TALLY_SENT,        /* messages of an envelope; docs/FORMAT.md has the keys of this and the next ones */
    FDR_TALLY_RECEIVED,
    FDR_TALLY_COLLECTIVES,      /* of a communicator */
    FDR_TALLY_CALL,             /* of a thread: calls of MPI that ended, the one it is in, and since when */
    FDR_TALLY_WAIT,             /* the message or collective that this call waits for */
    FDR_TALLY_COLLECTIVE_BYTES, /* of a communicator: sent and received in collectives, and how many these were */
    /* the rule `iterations` of FDR_FILTER, by its pattern */
    FDR_TALLY_ITERATIONS = 16, /* kept, removed, undecided (kept without a decision) */
    FDR_TALLY_DIFFERING = 17,  /* kept as first of a class, kept for their duration, reduced before they ended */
    FDR_TALLY_YOURS = 0x8000,  /* from here on kinds are free for others */
    FDR_TALLY_KIND_END = 0x10000
};

/* The place of a tally. It holds for one recording: later, and in a forked child, the functions say -ESTALE. */
typedef uint64_t fdr_tally;

/* Finds the tally of this kind and key, or makes it with all counters 0. key: FDR_TALLY_KEY_BYTES bytes. Returns 0, or
 *   -ENOSPC   no room for the key, in this recording
 *   -EINVAL   kind is 0 or not below FDR_TALLY_KIND_END, or the key is NULL
 *   -ESRCH    nothing records
 * *tally is set if the result is 0, else it becomes 0. */
FDR_API int fdr_tally_make(uint32_t kind, const void *key, fdr_tally *tally);
/* Each of these works on one counter (0 to 2), atomically, without any order between counters. They return 0, or
 *   -ESTALE   the tally is 0, or of another recording
 *   -EINVAL   there is no such counter
 * fdr_tally_add sets *before, unless it is NULL, to the value before. */
FDR_API int fdr_tally_add(fdr_tally tally, unsigned counter, uint64_t more, uint64_t *before);
FDR_API int fdr_tally_set(fdr_tally tally, unsigned counter, uint64_t value);
/* Sets all counters of `count` tallies of one recording by one operation; three values for each. A copy of the
 * recording may have some of them only, so words that belong together carry a number that says so. */
FDR_API int fdr_tally_set_all(const fdr_tally *tally, size_t count, const uint64_t *value);
FDR_API int fdr_tally_read(fdr_tally tally, unsigned counter, uint64_t *value);
/* Sets the counter to `desired` if it is *expected. Returns 1 if so; 0 if not, and *expected becomes its value. */
FDR_API int fdr_tally_compare_set(fdr_tally tally, unsigned counter, uint64_t *expected, uint64_t desired);

#ifdef __cplusplus
}
#endif
#endif
