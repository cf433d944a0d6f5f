/* SPDX-License-Identifier: MIT */
/* Memory for what is recorded: partitions and accounts, what is free, what others have, what is given back. */
#ifndef FDR_RECORDER_MEMORY_H
#define FDR_RECORDER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/state.h"

/* ---- store.c ---- */
/* A partition with room for one more record, or NULL: then the event was accounted as reduced or lost through
 * `reduced` and `lost`. *slot is the level's word for it. */
struct fdr_part *fdri_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_, uint32_t band,
                           uint64_t *reduced, uint64_t *lost);
/* Has the slot of a point class a partition that can be written into, or a closed gate? Made where there is none;
 * false: no room. */
bool fdri_part_ready(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_);
/* May this location take a free bin? The last ones serve locations that have next to nothing. */
bool fdri_may_take(const struct fdri_thread *t);
/* A piece of what is free: its own, or of a bin. Who has next to nothing takes first what lies unused elsewhere, once
 * bins are short. */
uint32_t fdri_take_free(struct fdri_thread *t, uint32_t size_log2);
bool fdri_pieces_wait(const struct fdri_thread *t); /* may free pieces wait until they are larger ones? */
void fdri_close_gate(struct fdri_thread *t, struct fdr_part *p);
struct fdr_part *fdri_make_part(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band);
uint32_t *fdri_slot_of(struct fdri_thread *t, const struct fdr_part *p);
/* The table of p's encoder, given back for another one or for none, 0. */
void fdri_give_table(struct fdri_thread *t, struct fdr_part *p, uint32_t instead);
/* After an operation that was given up in the middle, or partitions set aside: each partition that is stored in has its
 * slot, and counts. */
void fdri_find_slots(struct fdri_thread *t);

/* A whole bin for who asks next, when the last one that was ready has gone. */
void fdri_find_ahead(struct fdri_thread *t);

/* ---- later.c ---- */
/* False: it was left before, or nobody will come by who does it. */
bool fdri_leave_for_later(struct fdri_thread *t, uint32_t what);
void fdri_do_later(void); /* one of those things, by a thread that is in no operation */

/* ---- aside.c ---- */
/* FDR_PIN: are the first moments over, or have they used up their share? */
void fdri_aside_look(struct fdri_thread *t);
/* They are, and a call enters at `tick`: where that is a new one partitions are set aside. Where records go is new
 * then: slots are 0. */
void fdri_aside(struct fdri_thread *t, uint64_t tick);
void fdri_aside_left(struct fdri_thread *t); /* an operation was left by longjmp: does what is left of it */
/* The partition of this kind that was set aside, or NULL. */
struct fdr_part *fdri_aside_of(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t band);

/* ---- join.c ---- */
/* Where there is little for many partitions bands become one: then slots of those joined are 0, and lead to partitions
 * of the longer one from now on. */
void fdri_join_look(struct fdri_thread *t);
uint64_t fdri_join_room(const struct fdri_thread *t); /* bytes that it may come to hold */
/* It takes the place of others, which counted for it since they were joined. */
bool fdri_join_expected(const struct fdri_thread *t, const struct fdr_part *p);
bool fdri_joined_away(const struct fdri_thread *t, const struct fdr_part *p); /* nothing more is stored in it */
/* All bands are one: what p's next bin begins to count from is not before the newest call of length 0, which another
 * band may have. */
void fdri_join_zero(struct fdri_thread *t, struct fdr_part *p);
/* The slot that the band shares with a longer one, which *band is then; or NULL: it has its own. */
uint32_t *fdri_joined_slot(struct fdri_thread *t, uint32_t depth, uint32_t class_, uint32_t *band);
void fdri_leave_slots(struct fdri_thread *t, const struct fdr_part *p); /* no slot leads to p any more */

/* ---- meta.c ---- */
/* A zeroed meta block of this location: from the meta end, else in a piece of a bin for which something may be given
 * back; 0: no room. Blocks larger than a bin come from the meta end only. */
uint32_t fdri_meta(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes);
/* The same, instead of a smaller one that does, too: little of what is stored is given back for it. */
uint32_t fdri_meta_larger(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes);
uint32_t fdri_meta_calm(struct fdri_thread *t, enum fdr_meta_kind kind,
                        uint32_t bytes);     /* nothing is given back for it */
void fdri_meta_ahead(struct fdri_thread *t); /* room for some small blocks, while there is any */
/* Where there is much too little memory for all threads a search takes a hundred times as long as recording an event,
 * each event begins one, and what it finds another thread takes away before it is used. So
 *   after FDRI_PATIENCE in a row that found nothing the next one is made 2, 4, .. 1024 requests later, or with the
 *   second event after FDRI_PAUSE_NS by the times it records: who records rarely does not miss what is there after a
 *   burst of others;
 *   where its share, and what it holds, is less than its levels need a search for a bin costs credit, which the
 *   records stored in bins bring in again: without any only each FDRI_POOR_PAUSE-th request is followed by one.
 * What the others would have found is lost, and counted, and the thread goes on at its own speed. */
enum {
    FDRI_PATIENCE = 8,
    FDRI_PAUSE_LOG2 = 10,
    FDRI_PAUSE_NS = 10000000,
    FDRI_CREDIT = 4096, /* records */
    FDRI_SEARCH_COST = 16,
    FDRI_POOR_PAUSE = 64
};
static inline uint32_t fdri_search_weary(const struct fdri_search *s)
{
    return s->failed > FDRI_PATIENCE ? s->failed - FDRI_PATIENCE : 0;
}
/* now: in the unit of fdri_search_over's `until`. */
static inline bool fdri_search_pauses(struct fdri_search *s, uint64_t now)
{
    if (FDR_LIKELY(!s->pause)) return false;
    s->pause = now < s->until ? s->pause - 1 : 0;
    return now < s->until;
}
/* The bin looked for before is full, or gone. */
static inline void fdri_search_yields(struct fdri_search *s, uint32_t records)
{
    int32_t credit = s->credit + (int32_t)records;
    s->credit = credit < FDRI_CREDIT ? credit : FDRI_CREDIT;
}
/* until: a pause that begins now ends then at the latest. */
static inline void fdri_search_over(struct fdri_search *s, bool found, uint64_t until)
{
    s->until = until;
    if (found) s->failed = 0;
    else if (s->failed < FDRI_PATIENCE + FDRI_PAUSE_LOG2) s->failed++;
    uint32_t weary = fdri_search_weary(s);
    if (weary) s->pause = 1u << weary;
    if (s->credit >= 0) return;
    s->credit += FDRI_SEARCH_COST;
    s->pause = (uint32_t)fdr_max(s->pause, FDRI_POOR_PAUSE);
}

void fdri_meta_give(struct fdri_thread *t, uint32_t off); /* not needed any more */
bool fdri_meta_reusable(uint32_t bytes);                  /* does one of that size, given back, serve again? */
void fdri_meta_release(struct fdri_thread *t);            /* all of it: the location is no more */
uint64_t fdri_meta_bytes(void);                           /* in use by all */

/* ---- ended.c ---- */
/* Looks after the oldest location that ended: gives some of its bins back, or folds some of its accounts. true: there
 * may be room now. Not before its last moments have aged, but for a location that has next to nothing, or for accounts.
 * Bounded; does nothing where another thread does it. */
enum fdri_urgency {
    FDRI_IF_AGED,
    FDRI_POOR,
    FDRI_ACCOUNTS,       /* wants what no bin is: memory of accounts */
    FDRI_ATTACHING,      /* wants bins; waits for others, 20 ms in all */
    FDRI_ATTACHING_WHOLE /* the same; wants all memory of one that ended, accounts and all */
};
bool fdri_ended_room(struct fdri_thread *t, enum fdri_urgency urgency);
/* A thread that comes makes room for accounts of its own where there is little: it may wait for others, which it must
 * not once it records. */
void fdri_ended_ahead(struct fdri_thread *t);
/* Bins that make a place for the accounts of l, which ended, if bins can hold it at all: who claims more than is fair
 * leaves these. */
uint32_t fdri_ended_keeps(const struct fdr_location *l);
void fdri_ended_prepare(struct fdri_thread *t);     /* a place for its accounts; waits 10 ms at most */
void fdri_ended_push(struct fdr_location *l);       /* its thread ended: it is not the caller's any more */
bool fdri_ended_look(uint32_t who, uint32_t tries); /* keeps everybody from folding */
bool fdri_ended_lock(uint32_t who, uint32_t tries); /* the same, to move accounts: not beside a snapshot */
void fdri_ended_unlock(void);
/* For a snapshot: accounts stay where they are until it goes on; bins do not. Waits that long at most for who moves
 * some. */
bool fdri_ended_still(uint64_t ns);
void fdri_ended_go_on(void);
void fdri_ended_unlock_of(uint32_t who);
void fdri_ended_abandoned(const struct fdr_location *l); /* an operation of l was given up in the middle */

/* ---- fold.c ---- */
bool fdri_fold_start(void); /* room for the words under way */
/* Moves some of the accounts of t's location, which holds no bin, to `into`. 1: all are moved; 0: some; -1: no room. */
int fdri_fold(struct fdri_thread *into, struct fdri_thread *t);
/* A place for each of them there, before t's location has given its bins away. 1: all have one; 0: some; -1: no
 * room. */
int fdri_fold_prepare(struct fdri_thread *into, struct fdri_thread *t);
/* Adds row r to the rest of the same location, and what stands for it in the epochs' base (or NULL, both) to the
 * rest's place there. r is left without calls. Under the lock. */
void fdri_fold_to_rest(struct fdri_thread *t, struct fdr_row *r, struct fdr_base_row *from, struct fdr_base_row *to);
void fdri_fold_undo(void);

/* ---- reduce.c ---- */
/* A bin or piece of at most 1 << size_log2 bytes for partition p by giving something else back; 0: nothing to give,
 * or p itself was closed. */
uint32_t fdri_reduce(struct fdri_thread *t, struct fdr_part *p, uint32_t size_log2, uint32_t *got_log2);
void fdri_reserve_ledger(struct fdri_thread *t); /* lines for reductions, while there is room */
void fdri_note_claim(struct fdri_thread *t, uint32_t giver, const struct fdri_given *given); /* a line of the ledger */

/* ---- first.c, cyclic.c ---- */
/* Strategy `first`: room to tell which calls are open when storing stops, on so many levels; false: there is none. */
bool fdri_frozen_ahead(struct fdri_thread *t, uint32_t levels);
bool fdri_was_frozen(const struct fdri_thread *t, uint32_t depth); /* a call stands in that list for this depth */
void fdri_stop(struct fdri_thread *t, uint64_t tick);              /* strategy `first`: store nothing from now on */
void fdri_maybe_cut(struct fdri_thread *t, uint64_t tick);         /* strategy `last`: is it time for a new epoch? */

/* ---- ready.c: bins given back ahead ---- */
/* How many bins to take off a list at once for who asks; below 2: only one. */
uint32_t fdri_ready_run(const struct fdri_thread *t, const struct fdr_part *asking);
uint32_t fdri_ready_take(struct fdri_thread *t, uint32_t size_log2); /* one of them, or a part of it; 0: none is left */
/* One more; of small ones larger ones become. */
void fdri_ready_keep(struct fdri_thread *t, uint32_t off, uint32_t size_log2);
void fdri_ready_release(struct fdri_thread *t); /* the thread ends: they go to all */
void fdri_ready_look(struct fdri_thread *t);    /* what goes next is looked at by one bin more */
void fdri_ready_forget(struct fdri_thread *t);  /* lists are about to go back to what they were */

/* ---- sample.c ---- */
uint32_t fdri_sample_bins_due(void); /* bins of the samples' share that are not theirs yet: not for others */

/* ---- share.c ---- */
/* Bins it holds, those counted that it has in pieces beside others. */
uint32_t fdri_share_held(const struct fdr_location *l);
bool fdri_poor(const struct fdri_thread *t);        /* beside its accounts it has next to nothing */
uint32_t fdri_fair_share(void);                     /* bins for each live location, of those in use */
uint32_t fdri_full_share(void);                     /* the same when all will be */
enum { FDRI_MANY_THREADS = 8 };                     /* more live ones than that are many */
bool fdri_crowded(void);                            /* that is little, and they are many */
bool fdri_share_alone(const struct fdri_thread *t); /* nobody else is there, or was */
bool fdri_share_rich(const struct fdri_thread *t);  /* it holds more than live ones do on average */
void fdri_share_note(const struct fdri_thread *t);  /* this location took a bin */

/* ---- claim.c ---- */
/* The part of a whole bin that is `size_log2` large, from a location that holds more; 0: nobody does. */
uint32_t fdri_share_piece(struct fdri_thread *t, uint32_t size_log2);
/* A piece that was taken off the lists of another, who does not collect it, or of a strewn bin, given back; 0: there is
 * none among those looked at, or no need. */
uint32_t fdri_share_returned(struct fdri_thread *t, uint32_t size_log2);
/* What is looked for, as log2 of bytes; least: what will do, where no more is found; must: even if others do not keep
 * their share then. */
struct fdri_size {
    uint32_t want, least;
    uint32_t must;
};
/* Room for a location when nothing is free: from ended ones that have aged, from richer ones; where it has much less
 * than a fair share from all ended ones, and where next to nothing from any that hold more than what all can have. 0:
 * there is none. */
uint32_t fdri_share_any(struct fdri_thread *t, struct fdri_size size, uint32_t *got_log2);

/* ---- telescope.c, epoch.c, epoch_rows.c, epoch_walk.c: nothing under other strategies ---- */
void fdri_telescope_part(struct fdri_thread *t, struct fdr_part *p);   /* a partition was made */
void fdri_telescope_sealed(struct fdri_thread *t, struct fdr_part *p); /* its newest bin takes no more records */
void fdri_telescope_opened(struct fdri_thread *t, struct fdr_part *p); /* a bin was put behind it: time for a cut? */
void fdri_telescope_epoch(struct fdri_thread *t);                      /* the next step of its epochs */
void fdri_telescope_recount(struct fdri_thread *t);                    /* partitions went by another way */
void fdri_telescope_cut(struct fdri_thread *t);                        /* lists may have gone back to where they were */
/* The oldest bin of p, which may have been its newest, is gone; its last record left at `end`. */
void fdri_telescope_popped(struct fdri_thread *t, struct fdr_part *p, bool newest, uint64_t end, uint32_t size_log2);
/* Bins of p from `off` on, which is still in its list, go or become the newest: no epoch counts them any more. */
void fdri_telescope_uncount(struct fdri_thread *t, struct fdr_part *p, uint32_t off);
void fdri_telescope_aside(struct fdri_thread *t);              /* partitions were set aside */
void fdri_telescope_mend(struct fdri_thread *t);               /* an operation ended in the middle */
void fdri_epochs_early(struct fdri_thread *t);                 /* there are many rows: they begin, if they have not */
void fdri_epoch_row(struct fdri_thread *t, uint32_t row_off);  /* a row of totals is made */
bool fdri_epoch_row_fits(struct fdri_thread *t, uint32_t key); /* makes room for one; false: the sums would lack it */
void fdri_epochs_abandoned(struct fdri_thread *t);             /* an operation ended in the middle */
/* While rows are walked (t->walk.block): a call of that row enters. */
void fdri_epoch_enters(struct fdri_thread *t, const struct fdr_row *row);

#endif
