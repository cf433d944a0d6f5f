/* SPDX-License-Identifier: MIT */
/* Model of one partition's list (bins/partition.c, bins/bin_run.c): its owner appends, records, and gives back.
 * Claimers of other locations take the oldest bin and use it. All may be killed at any moment. Checked by
 * tests/house/test_models.sh.
 *
 * All interleavings of single loads and stores are examined. The holder of a claimed bin overwrites its fields, so
 * later reads of them are wrong. Not modelled: stores out of order, rewinding, pieces, operations broken off by
 * longjmp. (The release stores R:link and L:claim order what the list needs; export/snapshot/arena_copy.pml has bins
 * under weak memory.)
 *
 * Claims: a bin has one holder. The list is contiguous in seq and in records. At every moment, so also after a kill,
 * the number of stored records = first_index of the oldest bin + the records of the listed bins.
 *
 * variants: -DCLAIMERS=1,-DCLAIMS=2,-DOWNER_OPS=5 -DCLAIMERS=2,-DCLAIMS=1,-DOWNER_OPS=4
 * mutants: 1 newest_too      a claimer takes a bin that has no successor
 *          2 no_seq          the head is compared without its seq: the bin may have left and come back
 *          3 pop_by_store    the owner moves the head without checking whether it moved
 *          4 late_record     the owner writes a record into a bin that has a successor
 *          5 next_first      the list leads to the new bin before its header is complete
 *          6 short_run       the head moves by two bins and its seq by one */
#define BINS 3
#define RECORDS 1   /* records of a full bin */
#define GARBAGE 9

byte mutant;
byte head_seq = 1, head_off = 0;    /* one word in the code */
byte open_off, open_seq, total;
byte seq[BINS + 1], first[BINS + 1], recs[BINS + 1], next[BINS + 1];
byte holder[BINS + 1];              /* 0 free, 1 the owner's partition, else a claimer */
byte stored, done;

inline take(b)
{
    if
    :: holder[1] == 0 -> b = 1; holder[1] = 1
    :: holder[2] == 0 -> b = 2; holder[2] = 1
    :: holder[3] == 0 -> b = 3; holder[3] = 1
    :: else -> b = 0
    fi
}

proctype owner()
{
    byte ops, b, s, o, nx, late;
    bool sealed = true;
    do
    :: ops < OWNER_OPS -> /* fdri_memory_room, fdri_bins_part_open */
        ops++;
        if
        :: open_off != 0 -> /* fdri_bins_part_seal */ total = first[open_off] + recs[open_off]; sealed = true
        :: else
        fi;
        atomic { take(b) };
        if
        :: b == 0 -> skip
        :: else ->
            if
            :: mutant == 5 && head_off != 0 -> next[open_off] = b
            :: else
            fi;
            /* no other thread sees it yet */
            atomic { recs[b] = 0; seq[b] = open_seq + 1; first[b] = total; next[b] = 0; o = head_off };
            if
            :: o == 0 -> atomic { head_seq = open_seq + 1; head_off = b }
            :: else -> next[open_off] = b
            fi;
            /* only the owner reads these */
            atomic { late = open_off; open_off = b; open_seq = seq[b]; sealed = false };
            if
            :: mutant == 4 && o != 0 && recs[late] < RECORDS + 1 -> atomic { recs[late]++; stored++ }
            :: else
            fi
        fi;
        atomic { b = 0; s = 0; o = 0; late = 0 }
    :: ops < OWNER_OPS && !sealed && recs[open_off] < RECORDS -> /* a record */
        ops++;
        atomic { recs[open_off]++; stored++ }
    :: ops < OWNER_OPS && head_off != 0 -> /* fdri_bins_part_pop */
        ops++;
        atomic { s = head_seq; o = head_off };
        if
        :: o == 0 || (o == open_off && !sealed && recs[o] < RECORDS) -> skip
        :: else ->
            if
            :: o == open_off -> total = first[o] + recs[o]; sealed = true; nx = 0
            :: else -> nx = next[o]
            fi;
            atomic {
                if
                :: (head_off == o && (head_seq == s || mutant == 2)) || mutant == 3 ->
                    assert(holder[o] == 1);
                    head_seq = s + 1;
                    head_off = nx;
                    if
                    :: o == open_off -> open_off = 0
                    :: else
                    fi;
                    holder[o] = 0;
                    recs[o] = 0
                :: else
                fi
            }
        fi;
        atomic { s = 0; o = 0; nx = 0 }
    :: ops < OWNER_OPS && head_off != 0 -> /* bins/bin_run.c: a run of two bins */
        ops++;
        atomic { s = head_seq; o = head_off };
        if
        :: o == 0 || o == open_off -> skip
        :: else ->
            nx = next[o];
            if
            :: nx == 0 || nx > BINS || nx == open_off -> skip
            :: else ->
                late = next[nx];
                if
                :: late == 0 || late > BINS -> skip
                :: else ->
                    atomic {
                        if
                        :: (head_off == o && (head_seq == s || mutant == 2)) || mutant == 3 ->
                            assert(holder[o] == 1 && holder[nx] == 1);
                            head_seq = (mutant == 6 -> s + 1 : s + 2);
                            head_off = late;
                            holder[o] = 0;
                            recs[o] = 0;
                            holder[nx] = 0;
                            recs[nx] = 0
                        :: else
                        fi
                    }
                fi
            fi
        fi;
        atomic { s = 0; o = 0; nx = 0; late = 0 }
    :: ops == OWNER_OPS -> break
    od;
    done++
}

proctype claimer()
{
    byte tries, s, o, nx;
    do
    :: tries < CLAIMS ->
        tries++;
        atomic { s = head_seq; o = head_off }; /* fdri_bins_part_claim */
        if
        :: o == 0 -> skip
        :: else ->
            nx = next[o];
            if
            :: nx == 0 && mutant != 1 -> skip
            :: else ->
                atomic {
                    if
                    :: head_off == o && (head_seq == s || mutant == 2) ->
                        assert(holder[o] == 1);
                        assert(nx <= BINS);
                        holder[o] = _pid;
                        head_seq = s + 1;
                        head_off = nx
                    :: else -> o = 0
                    fi
                };
                if
                :: o != 0 -> /* now another location holds it */
                    atomic { seq[o] = GARBAGE; next[o] = GARBAGE; recs[o] = GARBAGE; assert(holder[o] == _pid) };
                    atomic { holder[o] = 0; recs[o] = 0 }
                :: else
                fi
            fi
        fi;
        atomic { s = 0; o = 0; nx = 0 }
    :: else -> break
    od;
    done++
}

/* The view of a reader after a kill at this moment. */
proctype autopsy()
{
    byte o, s, sum, steps;
    atomic {
        o = head_off; s = head_seq;
        sum = (o == 0 -> total : first[o]);
        do
        :: o != 0 ->
            assert(o <= BINS && holder[o] == 1);
            assert(seq[o] == s && first[o] == sum);
            sum = sum + recs[o];
            s++;
            steps++;
            assert(steps <= BINS);
            o = next[o]
        :: else -> break
        od;
        assert(sum == stored)
    }
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic {
        run autopsy(); run owner(); run claimer();
#if CLAIMERS == 2
        run claimer()
#endif
    }
}
