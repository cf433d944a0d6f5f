/* SPDX-License-Identifier: MIT */
/* Model of one bin under the copier: fdri_bins_part_open, a record, fdri_bins_part_pop (bins/partition.c) against copy_bin
 * (export/snapshot/arena_copy.c). Checked by tests/house/test_models.sh.
 *
 * The owner's core has a buffer of stores that become visible in any order that its barriers allow: a release store after
 * everything before it, everything behind a fence after it, stores to one cell in order, and nothing else. So this is
 * weaker than x86-64 and as weak as aarch64 in what matters here. The copier's plain loads happen in any order
 * between its acquires. Not modelled: loads of the owner (it is alone), torn words (all are aligned), compilers.
 *
 * Claim: what the copier accepts has the header of one partition and only records of that partition, all of them that
 * the commit word covers.
 *
 * mutants: 1 no_second_look    the generation is not compared after the copy
 *          2 no_take_fence     header stores may be seen before the generation is even
 *          3 plain_commit      the commit word is no release
 *          4 no_copier_fence   the second reading of the generation may come before the copy
 *          5 odd_at_take       the generation is odd already when the bin was taken, before its header stands
 *          6 commit_last       the copier reads the commit word after the payload
 *          7 even_bins_too     the copier also takes bins that are nobody's */
#define GEN 0
#define COMMIT 1
#define HEADER 2
#define RECORD0 3
#define RECORD1 4
#define ROUNDS 2
#define PLAIN 0
#define RELEASE 1
#define FENCE 2
#define SLOTS 4

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

/* The bin begins as partition 1's, with two records and generation 1. */
proctype owner()
{
    byte gen = 1, part = 1;
    do
    :: part <= ROUNDS ->
        gen++;
        put(GEN, gen, RELEASE); /* fdri_bins_part_pop: G:give */
        part++;
        if
        :: mutant == 5 -> gen++; put(GEN, gen, RELEASE)
        :: else
        fi;
        if
        :: mutant == 2
        :: else -> put(0, 0, FENCE) /* fdri_bins_part_open: G:take */
        fi;
        put(COMMIT, 0, PLAIN);
        put(HEADER, part, PLAIN);
        if
        :: mutant == 5
        :: else -> gen++; put(GEN, gen, RELEASE) /* G:open */
        fi;
        put(RECORD0, part, PLAIN); /* recorder/record/call.c */
        if
        :: mutant == 3 -> put(COMMIT, 1, PLAIN)
        :: else -> put(COMMIT, 1, RELEASE) /* R:commit */
        fi;
        put(RECORD1, part, PLAIN);
        if
        :: mutant == 3 -> put(COMMIT, 2, PLAIN)
        :: else -> put(COMMIT, 2, RELEASE)
        fi
    :: else -> break
    od
}

proctype copier()
{
    byte g, g2, c, h, r0, r1;
    bool hh, rr0, rr1, gg2, cc;
    g = mem[GEN];                          /* G:check, acquire */
    if
    :: g % 2 == 1 || mutant == 7
    :: else -> goto nobodys
    fi;
    if
    :: mutant != 6 -> c = mem[COMMIT]; cc = true /* A:commit, acquire */
    :: else
    fi;
    do
    :: !hh -> h = mem[HEADER]; hh = true
    :: !rr0 -> r0 = mem[RECORD0]; rr0 = true
    :: !rr1 -> r1 = mem[RECORD1]; rr1 = true
    :: !gg2 && mutant == 4 -> g2 = mem[GEN]; gg2 = true
    :: hh && rr0 && rr1 && (gg2 || mutant != 4) -> break
    od;
    if
    :: !cc -> c = mem[COMMIT]
    :: else
    fi;
    if
    :: mutant != 4 -> g2 = mem[GEN]        /* G:check, behind a fence */
    :: else
    fi;
    if
    :: g == g2 || mutant == 1 ->
        assert(h >= 1);
        assert(c < 1 || r0 == h);
        assert(c < 2 || r1 == h)
    :: else
    fi;
nobodys:
    skip
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic {
        mem[GEN] = 1; mem[COMMIT] = 2; mem[HEADER] = 1; mem[RECORD0] = 1; mem[RECORD1] = 1;
        cell[0] = 255; cell[1] = 255; cell[2] = 255; cell[3] = 255;
        run core(); run owner(); run copier()
    }
}
