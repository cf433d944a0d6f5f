/* SPDX-License-Identifier: MIT */
/* Model of recorder/record/rewind.c and of the pin (bins/claims.c, also recorder/pressure/aside.c): the owner of a partition stores, marks,
 * rewinds; claimers of other locations take its oldest bin; and at any moment all may be killed. Checked by tests/house/test_models.sh.
 *
 * Interleavings of single loads and stores are complete. Whoever claimed a bin writes its own into it. A seq comes back
 * when a rewind went back behind it, so a claimer that read an old head or an old link must not win with them. The owner
 * looks twice whether the claimers are gone, not 16 times. Not modelled: stores out of order, pieces, reductions by the owner (both
 * bins/partition.pml).
 *
 * Claims: while the owner is alone no claimer is inside (all that recorder/pressure/aside.c needs); a bin has one holder, a claimer
 * gets the oldest bin and leaves the list whole; at every moment, so also after a kill, what was stored = given back + records listed + forgotten and counted + what `rewind_records` says, at most.
 *
 * mutants: 1 no_pin         a rewind does not keep claimers out
 *          2 no_wait        a rewind does not look who is inside
 *          3 cut_anyway     a claimer stays inside, and the list is cut as if it were not
 *          4 seq_back       it is taken off whole, with a seq that was used before
 *          5 late_word      a claimer looks for the pin before its word stands
 *          6 no_forgets     nothing says that records go before they are counted
 *          7 count_first    they are counted before they go
 *          8 seq_of_bin     the marked bin's number is read from its header when the list is taken off, not from the mark */
#define BINS 3
#define GARBAGE 9

byte mutant;
byte head_seq = 1, head_off;     /* one word in the code */
byte inside;                     /* words of claimers that name it */
bool pinned;
byte open_off, open_seq, total, filtered, rewind_records;
byte seq[BINS + 1], first[BINS + 1], recs[BINS + 1], next[BINS + 1];
byte holder[BINS + 1];           /* 0 free, 1 the owner's partition, else a claimer */
byte stored, entered;            /* of the proof */

inline take(b)
{
    if
    :: holder[1] == 0 -> b = 1; holder[1] = 1
    :: holder[2] == 0 -> b = 2; holder[2] = 1
    :: holder[3] == 0 -> b = 3; holder[3] = 1
    :: else -> b = 0
    fi
}

/* A new bin behind the newest, with one record in it: bins/partition.pml has it in steps. */
inline store_one()
{
    atomic {
        take(b);
        if
        :: b != 0 ->
            if
            :: open_off != 0 -> total = first[open_off] + recs[open_off]
            :: else
            fi;
            open_seq++;
            seq[b] = open_seq; first[b] = total; recs[b] = 1; next[b] = 0;
            stored++;
            if
            :: head_off == 0 -> head_seq = open_seq; head_off = b
            :: else -> next[open_off] = b
            fi;
            open_off = b
        :: else
        fi;
        b = 0
    }
}

/* From b on, which nobody else sees any more. */
inline give_from()
{
    do
    :: b != 0 -> atomic { assert(holder[b] == 1); holder[b] = 0; nx = next[b]; next[b] = GARBAGE; recs[b] = 0; b = nx; nx = 0 }
    :: else -> break
    od
}

inline announce(n)
{
    if
    :: mutant != 6 -> rewind_records = n
    :: else
    fi;
    if
    :: mutant == 7 -> filtered = filtered + n
    :: else
    fi
}

proctype owner()
{
    byte b, nx, mark_off, mark_seq, mark_recs, n, h, s, looks;
    bool alone, held;
    store_one();
    store_one();
    atomic { mark_off = open_off; mark_seq = open_seq }; /* fdr_rewind_mark */
    store_one();
    /* fdr_rewind: fdri_bins_claim_pin */
    if
    :: mutant != 1 -> pinned = true
    :: else
    fi;
    alone = inside == 0 || mutant == 1 || mutant == 2;
    do
    :: !alone && looks < 2 -> atomic { looks++; alone = inside == 0 }
    :: else -> break
    od;
    atomic { looks = 0; h = head_off; s = head_seq; held = h != 0 && mark_seq >= s };
    n = (open_off != 0 -> first[open_off] + recs[open_off] : total);
    if
    :: h == 0 -> skip
    :: h != 0 && (alone || mutant == 3) && mark_seq >= s -> /* cut_to */
        b = next[mark_off];
        atomic { n = n - first[mark_off] - recs[mark_off] };
        announce(n);
        atomic { open_off = mark_off; open_seq = mark_seq };
        next[mark_off] = 0;
        total = first[mark_off] + recs[mark_off];
        give_from()
    :: h != 0 && (alone || mutant == 3) && mark_seq < s -> /* cut_all */
        b = h;
        atomic { n = n - first[h] };
        announce(n);
        atomic { open_off = 0; open_seq = s - 1 };
        atomic { head_seq = s; head_off = 0 };
        total = first[h];
        give_from()
    :: h != 0 && !alone && mutant != 3 -> /* cut_beside_claimer */
        total = n;
        announce(n);
        do
        :: atomic {
                if
                :: head_off == h && head_seq == s -> head_off = 0; head_seq = (mutant == 4 -> s : open_seq + 1); break
                :: else -> h = head_off; s = head_seq
                fi
            }
        od;
        atomic {
            b = h;
            looks = (h != 0 -> first[h] : n);
            if
            :: h != 0 && held && (mutant == 8 -> seq[mark_off] : mark_seq) >= s -> looks = first[mark_off] + recs[mark_off]
            :: else
            fi;
            n = n - looks;
            open_off = 0
        };
        total = looks;
        if
        :: mutant == 4 -> open_seq = s - 1
        :: else
        fi;
        give_from()
    fi;
    if
    :: h != 0 && mutant != 7 -> filtered = filtered + n
    :: else
    fi;
    rewind_records = 0;
    assert(!alone || entered == 0);
    pinned = false;
    atomic { looks = 0; n = 0; h = 0; s = 0; mark_off = 0; mark_seq = 0; alone = false; held = false };
    store_one();
    store_one()
}

/* fdri_bins_claim_enter, fdri_bins_part_claim, fdri_bins_claim_leave; then the bin is its own for good. */
proctype claimer()
{
    byte s, o, nx;
    bool out;
    if
    :: mutant == 5 -> out = pinned; inside++
    :: else -> inside++; out = pinned
    fi;
    if
    :: !out ->
        atomic { entered++; s = head_seq; o = head_off };
        if
        :: o != 0 -> nx = next[o]
        :: else
        fi;
        if
        :: nx == 0 -> skip
        :: else ->
            atomic {
                if
                :: head_off == o && head_seq == s ->
                    assert(holder[o] == 1 && nx <= BINS && nx == next[o] && holder[nx] == 1);
                    holder[o] = _pid;
                    head_seq = s + 1;
                    head_off = nx
                :: else -> o = 0
                fi
            };
            if
            :: o != 0 -> atomic { assert(holder[o] == _pid); seq[o] = GARBAGE; first[o] = GARBAGE; next[o] = GARBAGE; recs[o] = GARBAGE }
            :: else
            fi
        fi;
        entered--
    :: else
    fi;
    atomic { inside--; s = 0; o = 0; nx = 0 }
}

/* What a reader finds after a kill at this moment. */
proctype autopsy()
{
    byte o, s, sum, steps;
    atomic {
        o = head_off;
        s = head_seq;
        sum = (o == 0 -> total : first[o]);
        do
        :: o != 0 ->
            assert(o <= BINS && holder[o] == 1 && seq[o] == s && first[o] == sum);
            sum = sum + recs[o];
            s++;
            steps++;
            assert(steps <= BINS);
            o = next[o]
        :: else -> break
        od;
        assert(sum + filtered <= stored && stored <= sum + filtered + rewind_records)
    }
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic {
        run autopsy(); run owner(); run claimer(); run claimer()
    }
}
