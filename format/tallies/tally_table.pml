/* SPDX-License-Identifier: MIT */
/* Model of the making of keys of tallies (fdri_tallies_row of format/tallies/tally_table.c). Checked by
 * tests/house/test_models.sh.
 *
 * Three threads make keys of three words in a table of two places, which all visit in the same order. Threads 0 and 1
 * have the same key. That of thread 2 begins alike, as if hashes were equal. Each thread may stop for ever at any step,
 * as one does that is killed or leaves by longjmp. A word that was set never changes again, so it does not matter in
 * which order words become visible.
 *
 * Claims: a complete key is one that somebody makes; a key is in one place at most; a thread that went to the end found
 * its own key; two keys find room in two places, whoever stopped.
 *
 * mutants: 1 plain_store     a word that was 0 at the look is set without a further look
 *          2 no_comparison   a word that is there already is taken for one's own
 *          3 half_is_full    a place whose key is in the making counts as another's
 *          4 not_in_order    a thread begins at the second place if the first one is in the making */
#define WORDS 3
#define PLACES 2
#define THREADS 3
#define REFUSED 255
#define at(p, w) word[(p) * WORDS + (w)]
#define key(i, w) ((i) == 2 && (w) > 0 -> 7 + (w) : 1 + (w))
#define half(p) (at(p, 0) != 0 && at(p, 2) == 0)
#define whole(p) (at(p, 0) != 0 && at(p, 1) != 0 && at(p, 2) != 0)
#define has(p, i) (at(p, 0) == key(i, 0) && at(p, 1) == key(i, 1) && at(p, 2) == key(i, 2))

byte mutant;
byte word[6];
byte found[THREADS]; /* 1 + place */
byte ended;

proctype maker(byte i)
{
    byte p, w, there;
    atomic {
        if
        :: mutant == 4 && half(0) -> p = 1
        :: else
        fi
    };
    do
    :: p == PLACES -> found[i] = REFUSED; break
    :: p < PLACES ->
        w = 0;
        atomic {
            if
            :: mutant == 3 && half(p) -> w = WORDS + 1
            :: else
            fi
        };
        do
        :: w >= WORDS -> break
        :: w < WORDS ->
            there = at(p, w);
            if
            :: there == 0 && mutant == 1 -> at(p, w) = key(i, w); there = key(i, w)
            :: there == 0 && mutant != 1 ->
                atomic {
                    there = at(p, w);
                    if
                    :: there == 0 -> at(p, w) = key(i, w); there = key(i, w)
                    :: else
                    fi
                }
            :: else
            fi;
            if
            :: there == key(i, w) || mutant == 2 -> w++
            :: else -> break
            fi
        :: w < WORDS -> goto stopped
        od;
        if
        :: w == WORDS -> found[i] = 1 + p; break
        :: else -> p++
        fi
    od;
stopped:
    ended++
}

init
{
    byte i;
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic { run maker(0); run maker(1); run maker(2) };
    ended == THREADS;
    assert(!whole(0) || has(0, 0) || has(0, 2));
    assert(!whole(1) || has(1, 0) || has(1, 2));
    assert(!(has(0, 0) && has(1, 0)) && !(has(0, 2) && has(1, 2)));
    do
    :: i == THREADS -> break
    :: i < THREADS ->
        assert(found[i] != REFUSED);
        if
        :: found[i] != 0 -> assert(has(found[i] - 1, i))
        :: else
        fi;
        i++
    od
}
