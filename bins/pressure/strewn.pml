/* SPDX-License-Identifier: MIT */
/* Model of bins/pressure/strewn.c and of the parts of bins/pressure/returned.c and bins/partition.c that pieces change owners by: one bin
 * of three pieces. At first all of it is one location's, two pieces of it on its stack; others adopt them, use them,
 * return them, take the whole; everybody ends at some moment, and what was given back then is taken again. Who adopts
 * may also leave the bin as it is: so `strew` of fdri_piece_adopt is any. Checked by tests/house/test_models.sh.
 *
 * Not modelled: the stack itself, which is swapped whole (L:return), and sizes.
 *
 * Claims: the bin is given back once, when nobody has any piece of it; and it counts for one location until it is strewn
 * or given back, and for none afterwards.
 *
 * mutants: 1 no_mark      who adopts does not say so
 *          2 no_leave     who ends keeps the pieces that it has of strewn bins
 *          3 any_whole    the whole out of what was returned is taken of strewn bins, too
 *          4 no_pin       who ends does not wait for those inside
 *          5 any_join     who has all pieces in its own list does not look whether the bin is strewn
 *          6 mask_twice   the word is read and written, not changed at once
 *          7 take_last    a piece is taken of a bin the last of which was given back */
#define LOCATIONS 3
#define OPS (me == 0 -> 3 : 2)
#define ALL 7

byte mutant;
byte list[LOCATIONS], stack[LOCATIONS], held[LOCATIONS]; /* sets of pieces */
byte counts[LOCATIONS];                                  /* bins_held */
byte inside[LOCATIONS];
bool pinned[LOCATIONS];
bool strewn;
byte mask, freed, done;

inline free_bin()
{
    assert(freed == 0);
    freed++;
    assert((list[0] | list[1] | list[2] | stack[0] | stack[1] | stack[2] | held[0] | held[1] | held[2]) == 0)
}

/* fdri_bins_piece_give of the pieces in a set, which are nowhere else. */
inline give(these)
{
    list[me] = list[me] | these;
    these = 0;
    if
    :: list[me] == ALL ->
        list[me] = 0;
        if
        :: strewn && mutant != 5 -> atomic { strewn = false; mask = 0; free_bin() }
        :: else -> atomic { counts[me]--; free_bin() }
        fi
    :: else
    fi
}

inline some_of(set, one)
{
    if
    :: set & 1 -> one = 1
    :: set & 2 -> one = 2
    :: set & 4 -> one = 4
    fi
}

inline collect()
{
    atomic { s = stack[me]; stack[me] = 0 };
    if
    :: s != 0 -> give(s)
    :: else
    fi
}

inline enter(from) { atomic { if :: !pinned[from] -> inside[from]++; in = true :: else -> in = false fi } }

/* fdri_piece_adopt */
inline adopt(from)
{
    enter(from);
    if
    :: in ->
        atomic { s = stack[from]; stack[from] = 0 };
        if
        :: s != 0 ->
            if
            :: some_of(s, piece)
            :: (s & 3) == 3 -> piece = 3 /* take_part: two that are a part, as one */
            fi;
            s = s & ~piece;
            stack[from] = stack[from] | s;
            s = 0;
            held[me] = held[me] | piece;
            piece = 0;
            atomic {
                if
                :: !strewn && mutant != 1 -> strewn = true; first = true
                :: else -> first = false
                fi
            };
            if
            :: first -> assert(counts[from] > 0); counts[from]--
            :: else
            fi;
            first = false
        :: else
        fi;
        inside[from]--;
        in = false
    :: else
    fi
}

/* fdri_piece_whole; what is taken is given back at once. */
inline take_whole(from)
{
    enter(from);
    if
    :: in ->
        atomic { s = stack[from]; stack[from] = 0 };
        if
        :: s == ALL && (!strewn || mutant == 3) -> s = 0; assert(counts[from] > 0); counts[from]--; free_bin()
        :: else -> stack[from] = stack[from] | s; s = 0
        fi;
        inside[from]--;
        in = false
    :: else
    fi
}

/* fdri_strewn_give */
inline give_for_good(one)
{
    if
    :: mutant != 6 -> atomic { mask = mask | one; s = mask }
    :: else -> s = mask; mask = s | one; s = s | one
    fi;
    if
    :: s == ALL -> atomic { strewn = false; mask = 0; free_bin() }
    :: else
    fi;
    s = 0
}

/* fdri_strewn_take */
inline take_given()
{
    atomic {
        if
        :: mask != 0 && (mask != ALL || mutant == 7) ->
            some_of(mask, piece);
            mask = mask & ~piece;
            held[me] = held[me] | piece;
            piece = 0
        :: else
        fi
    }
}

proctype location(byte me)
{
    byte ops, s, piece, other;
    bool in, first;
    do
    :: ops < OPS ->
        ops++;
        if
        :: held[me] != 0 -> some_of(held[me], s); held[me] = held[me] & ~s; give(s)
        :: held[me] != 0 -> some_of(held[me], s); atomic { held[me] = held[me] & ~s; stack[me] = stack[me] | s; s = 0 }
        :: list[me] != 0 -> some_of(list[me], s); atomic { list[me] = list[me] & ~s; held[me] = held[me] | s; s = 0 }
        :: stack[me] != 0 -> collect()
        :: stack[(me + 1) % LOCATIONS] != 0 -> other = (me + 1) % LOCATIONS; adopt(other); other = 0
        :: stack[(me + 2) % LOCATIONS] != 0 -> other = (me + 2) % LOCATIONS; adopt(other); other = 0
        :: mask != 0 -> take_given()
        :: stack[(me + 1) % LOCATIONS] == ALL -> other = (me + 1) % LOCATIONS; take_whole(other); other = 0
        :: stack[(me + 2) % LOCATIONS] == ALL -> other = (me + 2) % LOCATIONS; take_whole(other); other = 0
        :: true
        fi
    :: true -> break
    od;
    do
    :: held[me] != 0 -> some_of(held[me], s); held[me] = held[me] & ~s; give(s)
    :: else -> break
    od;
    atomic { inside[me] == 0 || mutant == 4; pinned[me] = true };
    collect();
    do
    :: list[me] != 0 && strewn && mutant != 2 ->
        some_of(list[me], piece);
        list[me] = list[me] & ~piece;
        give_for_good(piece);
        piece = 0
    :: else -> break
    od;
    atomic {
        done++;
        if
        :: done == LOCATIONS -> assert(freed == 1 && !strewn && counts[0] + counts[1] + counts[2] == 0)
        :: else
        fi
    }
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic {
        held[0] = 1;
        stack[0] = 6;
        counts[0] = 1;
        run location(0);
        run location(1);
        run location(2)
    }
}
