/* SPDX-License-Identifier: MIT */
/* Model of bins/claims.c: claimers enter one of two locations, take something there, and leave. The owner pins the
 * first location. A longjmp may end a claimer at any point: its word stays until its owner's next operation, or its
 * end. Checked by tests/house/test_models.sh.
 *
 * All interleavings are examined. A claimer's stores, of its word and of its work inside, stay in its core's buffer
 * until they leave it by themselves or a release makes them visible. A read-modify-write sees the newest value of its
 * own word and orders no load of another. Not modelled: more than two words.
 *
 * Claims: while the owner is alone, no claimer is inside, and all stores of claimers there are visible. The owner looks
 * a bounded number of times. In the end all words are free.
 *
 * mutants: 1 plain_look    a claimer reads the pin by a load: its word may not be visible yet
 *          2 look_first    a claimer reads the pin before it stores its word
 *          3 no_look       a claimer does not read the pin
 *          4 plain_leave   a claimer's word becomes 0 by a store that is no release
 *          5 word_by_store a claimer takes a word that it found free without checking again
 *          6 keeps_word    a claimer that finds the pin set does not take its word back
 *          7 ends_any      a returning claimer also clears the words of others
 *          8 ends_none     a returning claimer clears nothing
 *          9 no_scan       the owner sets the pin and does not look at the words */
#define CLAIMERS 2
#define WORDS 2
#define OPS 2
#define PINS 1
#define WORD(who, where) (1 + 2 * (who) + (where))
#define who_of(w) (((w) - 1) / 2)
#define in_first(w) ((w) != 0 && ((w) - 1) % 2 == 0)

byte mutant;
bool pinned, alone;            /* of the first location */
byte word[WORDS], shown[WORDS]; /* the newest value of the word, and the value that loads of other cores see */
byte late[CLAIMERS];           /* 1 + index of this claimer's word that is not visible yet */
bool inside[CLAIMERS];         /* at work in the first location */
bool unseen[CLAIMERS];         /* its stores there are not visible yet */
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

/* fdri_bins_claim_pin of the first location; the work alone; fdri_bins_claim_unpin */
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
