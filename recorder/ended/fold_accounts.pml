/* SPDX-License-Identifier: MIT */
/* Model of recorder/ended/fold_accounts.c and of the lock of recorder/ended/ended_threads.c: the accounts of an ended
 * location are added to another's, one number at a time. The changes are first written to a list with the old values,
 * so that a reader after a kill can undo them. Threads fold; a longjmp breaks one of them off, and its next operation
 * undoes the change. A snapshot walks the accounts meanwhile. Checked by tests/house/test_models.sh.
 *
 * All interleavings of single loads and stores are examined. All threads may be killed at any moment, which leaves
 * stores in program order. Not modelled: histograms and rows (the same list, other words), a list that is too short.
 *
 * Claims: at every moment, so also after a kill, each number is in one of two places, and each location's accounts
 * balance (presented = reduced + the partition's count). The same holds for the sums of a snapshot, word by word.
 *
 * mutants: 1 count_first    the count says that words hold before they are written
 *          2 change_first   a word changes before the count says so
 *          3 count_early    the count is 0 again before the last word changed
 *          4 left_in_place  the mending thread releases the lock, and the list stays
 *          5 unlock_first   the mending thread releases the lock before the words have their old values
 *          6 no_lock        a thread folds without checking whether another does
 *          7 walk_anyway    a snapshot walks although a thread folds */
#define WORDS 4
#define FROM_PRESENTED 0
#define FROM_TOTAL 1 /* the count of the partition, all of whose bins were given back */
#define TO_PRESENTED 2
#define TO_REDUCED 3
#define EVENTS 2

byte mutant;
byte lock;
byte account[WORDS], was[WORDS], count;
bool leave;

/* The value of a word for a reader: its old value while the list is valid. */
#define left(word) (count > 0 -> was[word] : account[word])

inline unlock() { lock = 0 }

/* Moves half of the partition's number, so that two folds have work. The reads are under the lock. */
inline fold()
{
    atomic {
        value[FROM_PRESENTED] = account[FROM_PRESENTED];
        value[FROM_TOTAL] = account[FROM_TOTAL];
        value[TO_PRESENTED] = account[TO_PRESENTED];
        value[TO_REDUCED] = account[TO_REDUCED];
        if
        :: value[FROM_TOTAL] > 0 ->
            value[FROM_PRESENTED]--; value[FROM_TOTAL]--; value[TO_PRESENTED]++; value[TO_REDUCED]++
        :: else
        fi;
        i = 0
    };
    if
    :: mutant == 1 -> count = WORDS
    :: else
    fi;
    do
    :: i < WORDS -> atomic { was[i] = account[i]; i++ }
    :: else -> break
    od;
    i = 0;
    if
    :: mutant == 2 -> atomic { account[0] = value[0]; i = 1 }
    :: else
    fi;
    count = WORDS;
    do
    :: i == WORDS - 1 && mutant == 3 && count != 0 -> count = 0
    :: i < WORDS && !(i == WORDS - 1 && mutant == 3 && count != 0) -> atomic { account[i] = value[i]; i++ }
    :: else -> break
    od;
    atomic { count = 0; i = 0 }
}

inline undo()
{
    i = count;
    do
    :: i > 0 -> atomic { i--; account[i] = was[i] }
    :: else -> break
    od;
    count = 0
}

/* A signal handler that leaves by longjmp. */
proctype handler() { leave = true }

/* rounds: number of folds. A thread with `jumps` may be broken off anywhere in its first fold. */
proctype thread(byte rounds; bool jumps)
{
    byte i, value[WORDS];
    bool mine;
    do
    :: rounds > 0 ->
        rounds--;
        atomic {
            if
            :: lock == 0 || mutant == 6 -> lock = _pid; mine = true
            :: else -> mine = false
            fi
        };
        if
        :: !mine -> skip
        :: mine ->
            if
            :: jumps ->
                { fold(); unlock() } unless { leave };
                if
                :: leave && lock == _pid -> /* the next operation: fdri_ended_abandoned */
                    if
                    :: mutant == 4 -> unlock()
                    :: mutant == 5 -> unlock(); undo()
                    :: else -> undo(); unlock()
                    fi
                :: else
                fi;
                jumps = false
            :: else -> fold(); unlock()
            fi
        fi;
        atomic { i = 0; value[0] = 0; value[1] = 0; value[2] = 0; value[3] = 0; mine = false }
    :: else -> break
    od
}

proctype snapshot()
{
    byte p, q, r, t;
    atomic {
        if
        :: lock == 0 || mutant == 7 -> lock = _pid; p = 100
        :: else
        fi
    };
    if
    :: p == 100 ->
        p = account[FROM_PRESENTED];
        q = account[FROM_TOTAL];
        r = account[TO_PRESENTED];
        t = account[TO_REDUCED];
        assert(p == q && r == t && p + r == EVENTS);
        unlock()
    :: else
    fi
}

/* The view of a reader after a kill at this moment: it undoes the listed changes. */
proctype autopsy()
{
    atomic {
        assert(left(FROM_PRESENTED) == left(FROM_TOTAL) && left(TO_PRESENTED) == left(TO_REDUCED));
        assert(left(FROM_PRESENTED) + left(TO_PRESENTED) == EVENTS)
    }
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic {
        account[FROM_PRESENTED] = EVENTS; account[FROM_TOTAL] = EVENTS;
        run thread(2, true); run thread(1, false); run handler(); run snapshot(); run autopsy()
    }
}
