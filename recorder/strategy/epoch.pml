/* SPDX-License-Identifier: MIT */
/* Model of data copied under a version word, as with a sequence lock. It covers a location's epochs (begin_change and
 * end_change of recorder/strategy/epoch.c against read_epochs of export/snapshot/snapshot_locations.c and put_once of
 * export/crash/crash_epochs.c). It also covers the value of a note (set_value of recorder/names/note.c against read_note of
 * export/snapshot/snapshot_notes.c), which is written into the half that is not valid. Checked by
 * tests/house/test_models.sh.
 *
 * The writer's core has a buffer of stores, and the copier's loads may be reordered, as in
 * export/snapshot/arena_copy.pml. The copied data are two cells, which change to the same number. Not modelled: more
 * than one writer (there is one: a location's owner, or a lock's holder), repeated tries.
 *
 * Claim: the copier accepts only two cells as they stood together, at the word that it read.
 *
 * variants: -DEPOCHS -DNOTE
 * mutants: 1 no_second_look   the word is not compared after the copy
 *          2 no_writer_fence  changed cells may be visible before the word that was stored before them
 *          3 plain_end        the store of the word after the change is no release
 *          4 no_copier_fence  the second load of the word may come before the copy
 *          5 under_way        the copier takes cells during a change: at an odd version, or from the other half */
#define WORD 0
#define PLAIN 0
#define RELEASE 1
#define FENCE 2
#define SLOTS 4
#define CHANGES 3

#ifdef EPOCHS
#define FIRST(number) 1
#define WORD_OF(number) (2 * (number))
#else
#define FIRST(number) (1 + 2 * ((number) % 2)) /* first cell of the valid half */
#define WORD_OF(number) (number)
#endif

byte mutant;
byte mem[5];
byte cell[SLOTS], val[SLOTS], kind[SLOTS]; /* stores that are not visible yet, oldest first */
byte n;

inline put(c, v, k)
{
    atomic { n < SLOTS; cell[n] = c; val[n] = v; kind[n] = k; n++ }
}

#define passes(i, j) (i > j -> (kind[j] != FENCE && cell[j] != cell[i]) : true)
#define may(i) (n > i && (i == 0 || (kind[i] == PLAIN && passes(i, 0) && passes(i, 1) && passes(i, 2))))

inline appear(i)
{
    if
    :: kind[i] != FENCE -> mem[cell[i]] = val[i]
    :: else
    fi;
    k = i;
    do
    :: k + 1 < n -> cell[k] = cell[k + 1]; val[k] = val[k + 1]; kind[k] = kind[k + 1]; k++
    :: else -> break
    od;
    n--;
    cell[n] = 255; val[n] = 0; kind[n] = 0;
    k = 0
}

proctype core()
{
    byte k;
end:
    do
    :: atomic { may(0) -> appear(0) }
    :: atomic { may(1) -> appear(1) }
    :: atomic { may(2) -> appear(2) }
    :: atomic { may(3) -> appear(3) }
    od
}

proctype writer()
{
    byte number = 1;
    do
    :: number <= CHANGES ->
#ifdef EPOCHS
        put(WORD, 2 * number - 1, RELEASE);
#endif
        if
        :: mutant == 2
        :: else -> put(255, 0, FENCE)
        fi;
        put(FIRST(number), number, PLAIN);
        put(FIRST(number) + 1, number, PLAIN);
        if
        :: mutant == 3 -> put(WORD, WORD_OF(number), PLAIN)
        :: else -> put(WORD, WORD_OF(number), RELEASE)
        fi;
        number++
    :: else -> break
    od
}

proctype copier()
{
    byte w, w2, a, b, from;
    bool aa, bb, ww2;
    w = mem[WORD]; /* acquire */
#ifdef EPOCHS
    from = 1;
    if
    :: w % 2 == 0 || mutant == 5
    :: else -> goto moves
    fi;
#else
    from = (mutant == 5 -> FIRST(w + 1) : FIRST(w));
#endif
    do
    :: !aa -> a = mem[from]; aa = true
    :: !bb -> b = mem[from + 1]; bb = true
    :: !ww2 && mutant == 4 -> w2 = mem[WORD]; ww2 = true
    :: aa && bb && (ww2 || mutant != 4) -> break
    od;
    if
    :: mutant != 4 -> w2 = mem[WORD] /* after a fence */
    :: else
    fi;
    if
    :: w == w2 || mutant == 1 -> assert(a == b && WORD_OF(a) == w)
    :: else
    fi;
moves:
    skip
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic {
        cell[0] = 255; cell[1] = 255; cell[2] = 255; cell[3] = 255;
        run core(); run writer(); run copier()
    }
}
