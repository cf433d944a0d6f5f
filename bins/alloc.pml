/* SPDX-License-Identifier: MIT */
/* Model of bins/alloc.c: stacks of free bins, one per NUMA node, each a word {tag, top}; the word with both ends of
 * untouched memory; taking (own stack, untouched memory, other stacks), giving, meta blocks. Checked by
 * tests/house/test_models.sh.
 *
 * Each thread does OPS operations of its choice, then gives all bins back. All interleavings are examined. The store of
 * a bin's `next` stays in its core's buffer until any step makes it visible; a release does so at once. Loads are not
 * reordered: the one load that matters depends on the load before it. Not modelled: more than FDRI_BINS_TRIES lost
 * races, after which the caller sees "none"; 2^32 operations during one try.
 *
 * Claim: the ends never cross, no bin has two holders, none is lost, and a stack holds bins of its node only.
 *
 * variants: -DNODES=1,-DTHREADS=3,-DOPS=2,-DBINS=2 -DNODES=1,-DTHREADS=2,-DOPS=4,-DBINS=3 -DNODES=2,-DTHREADS=2,-DOPS=3,-DBINS=3
 * mutants: 1 no_tag         the tag does not rise: a head popped, reused and pushed again passes for the old one
 *          2 plain_push     the push is no release: the bin's `next` may become visible after the bin
 *          3 two_words      the ends of untouched memory are two words, read together but changed apart
 *          4 push_by_store  the push stores the head without checking whether it moved
 *          5 pop_by_store   the pop stores the head without checking whether it moved */
#define NONE 0
#define IN_USE 99 /* the value of `next` while the bin is in use */
#define node_of(b) (((b) - 1) % NODES)

byte mutant;
byte lo = 0, hi = BINS;         /* one word in the code */
byte top[NODES], tag[NODES];    /* one word in the code */
byte next[BINS + 1];
byte holder[BINS + 1];
byte done;

/* Bins are 1 .. BINS: index + 1. `late` is the bin whose `next` is still in this core's buffer, `late_val` its value. */
inline flush()
{
    if
    :: late != NONE -> next[late] = late_val; late = NONE
    :: else
    fi
}

inline pop(n)
{
    do
    :: atomic { h = top[n]; t = tag[n]; bin = h };
        if
        :: h == NONE -> break
        :: else
        fi;
        nx = (late == h -> late_val : next[h]);
        atomic {
            if
            :: (top[n] == h && tag[n] == t) || mutant == 5 ->
                flush();
                assert(nx != IN_USE);
                top[n] = nx;
                if
                :: mutant != 1 -> tag[n]++
                :: else
                fi;
                break
            :: else
            fi
        }
    od
}

inline push(b)
{
    do
    :: atomic { h = top[node_of(b)]; t = tag[node_of(b)] };
        atomic { flush(); late = b; late_val = h };
        atomic {
            if
            :: (top[node_of(b)] == h && tag[node_of(b)] == t) || mutant == 4 ->
                if
                :: mutant != 2 -> flush()
                :: else
                fi;
                top[node_of(b)] = b;
                if
                :: mutant != 1 -> tag[node_of(b)]++
                :: else
                fi;
                break
            :: else
            fi
        }
    od
}

/* Takes an untouched bin, or NONE. */
inline virgin()
{
    do
    :: atomic { h = lo; t = hi; bin = NONE };
        if
        :: h + 1 > t -> break
        :: else
        fi;
        atomic {
            if
            :: lo == h && (hi == t || mutant == 3) ->
                flush();
                lo = h + 1;
                bin = h + 1;
                assert(lo <= hi);
                break
            :: else
            fi
        }
    od
}

inline give(b)
{
    assert(holder[b] == _pid);
    holder[b] = 0;
    push(b)
}

proctype thread()
{
    byte late, late_val, h, t, nx, bin, ops, mine[2], other;
    byte node = _pid % NODES;
    do
    :: ops < OPS && mine[1] == NONE -> /* fdri_bins_take */
        ops++;
        pop(node);
        if
        :: bin == NONE ->
            do
            :: virgin();
                if
                :: bin == NONE || node_of(bin) == node -> break
                :: else -> push(bin)
                fi
            od
        :: else
        fi;
        if
        :: bin == NONE && NODES == 2 -> other = 1 - node; pop(other)
        :: else
        fi;
        atomic {
            if
            :: bin != NONE ->
                assert(holder[bin] == 0);
                holder[bin] = _pid;
                if
                :: late == bin -> late = NONE
                :: else
                fi;
                next[bin] = IN_USE;
                mine[1] = mine[0];
                mine[0] = bin
            :: else
            fi;
            bin = NONE; h = 0; t = 0; nx = 0
        }
    :: ops < OPS && mine[0] != NONE -> /* fdri_bins_give */
        ops++;
        atomic { bin = mine[0]; mine[0] = mine[1]; mine[1] = NONE };
        give(bin);
        bin = NONE; h = 0; t = 0
    :: ops < OPS -> /* fdri_bins_meta_take */
        ops++;
        do
        :: atomic { h = lo; t = hi };
            if
            :: t == 0 || t - 1 < h -> break
            :: else
            fi;
            atomic {
                if
                :: hi == t && (lo == h || mutant == 3) -> flush(); hi = t - 1; assert(lo <= hi); break
                :: else
                fi
            }
        od;
        h = 0; t = 0
    :: ops == OPS && mine[0] != NONE ->
        atomic { bin = mine[0]; mine[0] = mine[1]; mine[1] = NONE };
        give(bin);
        bin = NONE; h = 0; t = 0
    :: ops == OPS && mine[0] == NONE -> break
    :: late != NONE -> atomic { flush() }
    od;
    atomic { flush(); done++ }
}

/* All threads are done: every bin that was handed out lies once on the stack of its node. */
proctype census()
{
    byte b, n, count;
    atomic {
        done == THREADS;
        do
        :: n < NODES ->
            b = top[n];
            do
            :: b != NONE ->
                assert(b <= lo && node_of(b) == n && holder[b] == 0);
                holder[b] = 100;
                count++;
                b = next[b]
            :: else -> break
            od;
            n++
        :: else -> break
        od;
        assert(count == lo)
    }
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic {
        run thread(); run thread();
#if THREADS == 3
        run thread();
#endif
        run census()
    }
}
