/* SPDX-License-Identifier: MIT */
/* Model of bins/claims.c: claimers enter a location, which of two is any, take something there and leave; another
 * thread wants the first one alone. A claimer may be left in the middle, by longjmp: its word stays until its owner's
 * next operation, or its end. Checked by tests/house/test_models.sh.
 *
 * Interleavings are complete. A claimer's stores, of its word and of what it does inside, stay in its core's buffer
 * until they leave it by themselves or a release makes them visible; a read-modify-write sees the newest value of its
 * own word and orders no load of another. Not modelled: more than two words.
 *
 * Claims: alone means that no claimer is inside, and that all is visible that one did there; who wants to be alone
 * looks so often and no more; in the end all words are free.
 *
 * mutants: 1 plain_look    a claimer looks at the bit by a load: its word may not be seen yet
 *          2 look_first    it looks before its word stands
 *          3 no_look       it does not look
 *          4 plain_leave   its word is 0 again by a store that is no release
 *          5 word_by_store it takes a word that it found free without looking again
 *          6 keeps_word    who finds the bit set does not take its word back
 *          7 ends_any      who comes back ends what others have in these words, too
 *          8 ends_none     who comes back ends nothing
 *          9 no_scan       who sets the bit does not look at the words */
#define CLAIMERS 2
#define WORDS 2
#define OPS 2
#define PINS 1
#define WORD(who, where) (1 + 2 * (who) + (where))
#define who_of(w) (((w) - 1) / 2)
#define in_first(w) ((w) != 0 && ((w) - 1) % 2 == 0)

byte mutant;
bool pinned, alone;            /* of the first location */
byte word[WORDS], shown[WORDS]; /* the word as it is changed, and as loads of other cores see it */
byte late[CLAIMERS];           /* 1 + the word of this one that is not visible yet */
bool inside[CLAIMERS];         /* the first location, and at work there */
bool unseen[CLAIMERS];         /* what it did there is not visible yet */
byte done;

inline appears(c)
{
    if
    :: late[c] != 0 -> shown[late[c] - 1] = word[late[c] - 1]; late[c] = 0
    :: else
    fi;
    unseen[c] = false
}

proctype core(byte c)
{
end:
    do
    :: atomic { late[c] != 0 -> shown[late[c] - 1] = word[late[c] - 1]; late[c] = 0 }
    :: atomic { unseen[c] -> unseen[c] = false }
    od
}

/* fdri_bins_claim_leave */
inline leave(i)
{
    atomic {
        if
        :: mutant != 4 -> appears(me)
        :: else
        fi;
        if
        :: late[me] == i + 1 -> late[me] = 0
        :: else
        fi;
        word[i] = 0;
        shown[i] = 0
    }
}

/* fdri_bins_claim_abandoned */
inline come_back()
{
    i = 0;
    do
    :: i < WORDS ->
        if
        :: mutant != 8 && word[i] != 0 && (who_of(word[i]) == me || mutant == 7) -> leave(i)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    was_left = false
}

proctype claimer(byte me)
{
    byte ops, i, where;
    bool was_left, ok, free;
    do
    :: ops < OPS ->
        ops++;
        if
        :: was_left -> come_back()
        :: else
        fi;
        if
        :: where = 0
        :: where = 1
        fi;
        ok = !(pinned && where == 0);
        i = 0;
        do
        :: i < WORDS ->
            free = word[i] == 0;
            atomic {
                if
                :: free && (word[i] == 0 || mutant == 5) -> word[i] = WORD(me, where); late[me] = i + 1; break
                :: else -> i++
                fi
            }
        :: else -> break
        od;
        free = false;
        if
        :: i == WORDS
        :: i < WORDS -> was_left = true
        :: i < WORDS ->
            atomic {
                if
                :: mutant == 1 -> ok = !(pinned && where == 0)
                :: mutant == 2 -> appears(me)
                :: mutant == 3 -> appears(me); ok = true
                :: else -> appears(me); ok = !(pinned && where == 0)
                fi
            };
            if
            :: ok ->
                atomic { assert(!(alone && where == 0)); inside[me] = where == 0 };
                unseen[me] = where == 0;
                inside[me] = false;
                if
                :: leave(i)
                :: was_left = true
                fi
            :: !ok && mutant == 6
            :: !ok && mutant != 6 -> leave(i)
            fi
        fi;
        atomic { i = 0; where = 0; ok = false }
    :: else -> break
    od;
    if
    :: was_left -> come_back()
    :: else
    fi;
    done++
}

/* fdri_bins_claim_pin, of the first location; what is done alone; fdri_bins_claim_unpin */
proctype owner()
{
    byte pins, looks, i;
    bool found;
    do
    :: pins < PINS ->
        pins++;
        pinned = true;
        looks = 0;
        do
        :: looks < 2 ->
            looks++;
            found = false;
            i = 0;
            do
            :: i < WORDS && mutant != 9 -> found = found || in_first(shown[i]); i++
            :: else -> break
            od;
            if
            :: !found ->
                atomic { alone = true; assert(!inside[0] && !inside[1] && !unseen[0] && !unseen[1]) };
                atomic { assert(!inside[0] && !inside[1]); alone = false };
                break
            :: else
            fi
        :: else -> break
        od;
        pinned = false
    :: else -> break
    od;
    done++
}

proctype census()
{
    atomic { done == CLAIMERS + 1; assert(word[0] == 0 && word[1] == 0) }
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic { run core(0); run core(1); run claimer(0); run claimer(1); run owner(); run census() }
}
