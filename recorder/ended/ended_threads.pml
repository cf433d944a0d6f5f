/* SPDX-License-Identifier: MIT */
/* Model of recorder/ended/ended_threads.c: threads end and append their locations to a queue. Under a try-lock other
 * threads take off the oldest location, fold its accounts, and let its memory become another thread's location.
 * Claimers (recorder/shares/claim_bin.c) may come to any location at any time, by an old hint. Checked by
 * tests/house/test_models.sh.
 *
 * All interleavings of single loads and stores are examined. A location's newest accounts stay in its core's buffer
 * until a release makes them visible. The link of a free location belongs to the stack of free ones. Not modelled: bins
 * and their lists (bins/partition.pml), the way accounts move (recorder/ended/fold_accounts.pml), the stack of free
 * locations (like the stack of bins, bins/alloc.pml), waiting for the lock.
 *
 * Claims: a location is in the queue once, from its end until it is taken off, and none is lost there. A link is
 * written only into a location in the queue. The folding thread finds all of the accounts. While a claimer is inside,
 * the location is neither folded nor used by another thread.
 *
 * mutants: 1 swap_by_store   an ending thread reads the queue's end and stores the new one in two steps
 *          2 last_by_store   the last location is taken off without checking whether it still is the last
 *          3 no_wait         a location is taken off although another is being appended behind it
 *          4 plain_append    neither swap nor link is a release: the accounts may become visible later
 *          5 no_pin          the folding thread does not check whether a claimer is inside
 *          6 late_word       a claimer reads the pin before it stores its word
 *          7 drop_first      the location's memory is given back before it is taken off
 *          8 no_lock         two threads fold at the same time */
#define LOCATIONS 2
#define LOOK 2
#define STACKED 9 /* the link of a free location, which belongs to the stack of free ones */
#define FREE 0
#define LIVE 1
#define QUEUED 2
#define OFF 3

byte mutant;
byte last, in, first; /* ended_last, ended_first_new, ended_first */
byte lock;
byte link[LOCATIONS + 1];
byte inside[LOCATIONS + 1]; /* words of claimers that name it (bins/claims.c) */
bool pinned[LOCATIONS + 1];
bool folding[LOCATIONS + 1];
byte accounts[LOCATIONS + 1];
byte presented, folded, done;
byte state[LOCATIONS + 1]; /* for the proof only, like presented, folded, done and accounts */

/* Appends l; other threads may use it from here on. `late`: the accounts in this core's buffer. */
inline append(l)
{
    link[l] = 0;
    if
    :: mutant == 1 -> before = last; last = l; state[l] = QUEUED
    :: else ->
        atomic {
            before = last;
            last = l;
            state[l] = QUEUED;
            if
            :: mutant != 4 -> accounts[l] = accounts[l] + late; late = 0
            :: else
            fi
        }
    fi;
    atomic {
        if
        :: before == 0 -> in = l
        :: else -> assert(state[before] == QUEUED); link[before] = l
        fi;
        before = 0
    }
}

proctype ender(byte ends)
{
    byte l, before, late;
    do
    :: ends > 0 ->
        ends--;
        atomic { /* a slot becomes a location; until here it is pinned and unused */
            if
            :: state[1] == FREE -> l = 1
            :: state[2] == FREE -> l = 2
            :: else -> l = 0
            fi;
            if
            :: l != 0 -> assert(accounts[l] == 0); state[l] = LIVE; folding[l] = false
            :: else
            fi
        };
        if
        :: l != 0 ->
            atomic { pinned[l] = false; presented++; late = 1 }; /* fdri_thread_location_publish; its event */
            append(l);
            if
            :: mutant == 4 -> atomic { accounts[l] = accounts[l] + late; late = 0; l = 0 }
            :: else -> l = 0
            fi
        :: else
        fi
    :: else -> atomic { done++; break }
    od
}

/* Takes l off the queue. taken: true if that succeeded. */
inline take_off(l)
{
    taken = true;
    next = link[l];
    if
    :: next == 0 ->
        atomic {
            if
            :: last == l || mutant == 2 -> last = 0; state[l] = OFF
            :: else -> taken = false
            fi
        };
        if
        :: !taken ->
            atomic {
                next = link[l];
                if
                :: next != 0 || mutant == 3 -> taken = true; state[l] = OFF
                :: else
                fi
            }
        :: else
        fi
    :: else -> state[l] = OFF
    fi;
    if
    :: taken -> first = next
    :: else
    fi;
    next = 0
}

inline drop(l)
{
    atomic {
        assert(inside[l] == 0 || pinned[l]);
        link[l] = STACKED;
        state[l] = FREE
    }
}

proctype folder(byte folds)
{
    byte looks, l, next, before, late;
    bool mine, taken;
    do
    :: folds > 0 ->
        folds--;
        atomic {
            if
            :: lock == 0 || mutant == 8 -> lock = _pid; mine = true
            :: else -> mine = false
            fi
        };
        do
        :: mine && looks < LOOK ->
            looks++;
            if
            :: first == 0 -> /* oldest */
                first = in;
                if
                :: first != 0 -> in = 0
                :: else
                fi
            :: else
            fi;
            l = first;
            if
            :: l == 0 -> break
            :: else
            fi;
            mine = folding[l]; /* alone */
            if
            :: !mine ->
                pinned[l] = true;
                if
                :: inside[l] == 0 || mutant == 5 -> folding[l] = true; mine = true
                :: else -> pinned[l] = false
                fi
            :: else
            fi;
            if
            :: mine ->
                atomic { folded = folded + accounts[l]; accounts[l] = 0 };
                if
                :: mutant == 7 -> drop(l)
                :: else
                fi;
                take_off(l);
                if
                :: taken && mutant != 7 -> drop(l)
                :: else
                fi;
                break
            :: else -> mine = true
            fi;
            take_off(l);
            if
            :: taken -> append(l)
            :: else -> break
            fi
        :: else -> break
        od;
        atomic {
            if
            :: lock == _pid -> lock = 0
            :: else
            fi;
            mine = false; looks = 0; l = 0; next = 0; taken = false
        }
    :: else -> atomic { done++; break }
    od
}

proctype claimer()
{
    byte l;
    bool out;
    if
    :: l = 1
    :: l = 2
    fi;
    if
    :: mutant == 6 -> out = pinned[l]; inside[l]++
    :: else -> inside[l]++; out = pinned[l] /* fdri_bins_claim_enter: its word, then the pin */
    fi;
    if
    :: !out ->
        assert((state[l] == LIVE || state[l] == QUEUED || state[l] == OFF) && !folding[l]);
        assert((state[l] == LIVE || state[l] == QUEUED || state[l] == OFF) && !folding[l])
    :: else
    fi;
    atomic { inside[l]--; done++ }
}

/* All threads are done: the queue and the folded locations are all that ended. */
proctype census()
{
    byte l, queued, sum, newest;
    atomic {
        done == 5;
        sum = folded;
        l = (first != 0 -> first : in);
        assert(first == 0 || in == 0);
        do
        :: l != 0 ->
            assert(l <= LOCATIONS && state[l] == QUEUED);
            state[l] = 100;
            sum = sum + accounts[l];
            newest = l;
            l = link[l]
        :: else -> break
        od;
        assert(newest == last);
        assert(state[1] != QUEUED && state[2] != QUEUED);
        assert(sum == presented)
    }
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic {
        pinned[1] = true; pinned[2] = true;
        link[1] = STACKED; link[2] = STACKED;
        run ender(2); run ender(1); run folder(1); run folder(1); run claimer();
        run census()
    }
}
