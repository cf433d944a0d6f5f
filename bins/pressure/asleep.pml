/* SPDX-License-Identifier: MIT */
/* Model of bins/pressure/asleep.c: the owner of a partition records, opens bins, gives back; claimers take its newest bin while it
 * sleeps; and at any moment all may be killed. Checked by tests/house/test_models.sh.
 *
 * Interleavings of single loads and stores are complete. The kernel's barrier makes them so in the code: the owner's fast path has no
 * fence of its own. Whoever took a bin writes its own into it. The owner's record is in two steps, look and write, as in the code:
 * what it found open it writes into. Once it may be left by longjmp at any store of waking up: its next operation begins with that.
 * Not modelled: fdri_bins_part_mend, lists of several bins (bins/partition.pml), and that a piece, which goes to those its owner had
 * returned, changes hands there (bins/pressure/strewn.pml).
 *
 * Claims: nobody but its holder writes into a bin; a bin has one holder; the owner never waits; at every moment, so also after a kill,
 * what was stored = given back, as fdri_codec_part_given says where the list is empty, + the records of the listed bin.
 *
 * variants: -DCLAIMERS=2,-DCLAIMS=1,-DOWNER_OPS=3
 * mutants: 1 no_close       open bins are not closed before the owner is looked for
 *          2 no_look        nobody looks whether the owner is in the middle of a record
 *          3 no_awake       the owner does not look whether it is asleep
 *          4 no_help        it is awake while a bin is being taken from it
 *          5 no_tag         sleeps, and takings, are not told apart
 *          6 total_at_once  the records of what was taken come to `total` without a word before
 *          7 any_bin        the one that is found closed need not be the one that was closed
 *          8 adds_twice     what had come to `total` when it was left comes to it once more
 *          9 no_second_look when it was left, what it had not yet accounted for is forgotten
 *         10 mend_looks     after that it wakes up only if it is found asleep */
#define BINS 3

byte mutant;
byte state, tag, what;               /* one word in the code: 0 AWAKE, 1 ASLEEP, 2 TAKEN */
bool busy, open;                     /* open: limit is not 0 */
byte head_seq = 1, head_off;         /* one word */
byte open_off, open_seq, total, progress, intent;
byte recs[BINS + 1], first[BINS + 1];
bool was_left;
byte holder[BINS + 1];               /* 0 free, 1 the owner's partition, else a claimer */
byte stored;

inline take(b)
{
    if
    :: holder[1] == 0 -> b = 1; holder[1] = 1
    :: holder[2] == 0 -> b = 2; holder[2] = 1
    :: holder[3] == 0 -> b = 3; holder[3] = 1
    :: else -> b = 0
    fi
}

/* At the next of these it may be left, once. */
inline may_be_left()
{
    if
    :: !was_left -> was_left = true; goto left
    :: true
    fi
}

/* What a reader takes to be given back where the list is empty. */
#define GIVEN (total + (open_off != 0 && !open && (intent == 0 || intent != total) -> progress : 0))

/* fdri_awake. account() reads and writes what only the owner writes, one store at a time as a kill sees it. */
inline awake(s, always)
{
    if
    :: (state != 0 || (always && mutant != 10)) && mutant != 3 ->
        do
        :: true ->
            if
            :: state == 2 && mutant != 4 -> s = head_off;
                if
                :: s != 0 -> atomic { if :: head_off == s -> head_seq++; head_off = 0 :: else fi }
                :: else
                fi
            :: else
            fi;
            atomic {
                if
                :: state != 2 || head_off == 0 || mutant == 4 -> state = 0; tag = (mutant == 5 -> tag : tag + 1); break
                :: else
                fi
            }
        od;
        may_be_left();
        if
        :: open_off == 0 -> intent = 0
        :: open_off != 0 && head_off == 0 ->
            if
            :: mutant == 6 -> total = total + progress
            :: mutant == 8 -> intent = total + progress; may_be_left(); total = intent
            :: else -> intent = GIVEN; may_be_left(); total = intent
            fi;
            may_be_left();
            atomic { progress = 0; open = false };
            may_be_left();
            open_off = 0;
            may_be_left();
            intent = 0
        :: else
        fi
    :: else
    fi;
    s = 0
}

proctype owner()
{
    byte ops, b, s;
    bool found;
    do
    :: ops < OWNER_OPS ->
        ops++;
        busy = true;
        found = open && open_off != 0;
        if
        :: found -> /* the fast path: it writes into what it found open */
            b = open_off;
            assert(holder[b] == 1);
            atomic { recs[b]++; progress++; stored++ }
        :: else -> /* fdri_memory_room */
            awake(s, false);
            if
            :: open_off != 0 -> /* fdri_bins_part_seal, and the oldest goes: a list of one bin here */
                assert(holder[open_off] == 1);
                b = open_off;
                assert(head_off == b);
                atomic { total = total + progress; progress = 0; open = false };
                atomic { if :: head_off == b -> head_seq++; head_off = 0; open_off = 0 :: else -> assert(false) fi };
                atomic { recs[b] = 0; holder[b] = 0 }
            :: else
            fi;
            atomic { take(b) };
            if
            :: b == 0
            :: else ->
                atomic { recs[b] = 0; first[b] = total; progress = 0 };
                atomic { head_seq = open_seq + 1; head_off = b };
                atomic { open_off = b; open_seq = head_seq; open = true; recs[b]++; progress++; stored++ }
            fi
        fi;
        atomic { b = 0; found = false };
        busy = false
    :: was_left && busy && false -> /* never chosen: it stands here for its label, which may_be_left() goes to */
left: /* repair_after_longjmp(): the next operation finds itself left */
        s = 0;
        if
        :: mutant == 9 -> atomic { if :: head_off == 0 -> progress = 0; open = false; open_off = 0 :: else fi }
        :: else
        fi;
        awake(s, true);
        atomic { b = 0; found = false };
        busy = false
    :: else -> break
    od
}

proctype claimer(byte me)
{
    byte tries, mine, off, seq, bin;
    bool quiet;
    do
    :: tries < CLAIMS ->
        tries++;
        atomic { mine = 0; quiet = false; bin = 0; off = 0; seq = 0 };
        if
        :: state == 0 -> /* fdri_fall_asleep */
            atomic { if :: state == 0 -> state = 1; tag = (mutant == 5 -> tag : tag + 1) :: else fi }
        :: else
        fi;
        atomic { quiet = state == 1; mine = tag };
        atomic { seq = head_seq; off = head_off };
        if
        :: quiet && off != 0 && off == open_off && progress != 0 -> /* fdri_part_claim_newest */
            if
            :: mutant != 1 -> open = false
            :: else
            fi;
            quiet = !busy || mutant == 2;
            quiet = quiet && (!open || mutant == 1);
            if
            :: quiet && (mutant == 7 || (head_off == off && head_seq == seq)) && off == open_off && progress != 0 ->
                atomic {
                    if
                    :: state == 1 && tag == mine -> state = 2; bin = off
                    :: else
                    fi
                };
                if
                :: bin != 0 ->
                    atomic { if :: head_off == off && head_seq == seq -> head_seq++; head_off = 0 :: else fi };
                    atomic { if :: state == 2 && tag == mine -> state = 1; tag = (mutant == 5 -> tag : tag + 1) :: else fi };
                    atomic { assert(holder[bin] == 1); holder[bin] = me; recs[bin] = 0; first[bin] = 0 };
                    atomic { assert(holder[bin] == me && recs[bin] == 0); holder[bin] = 0 }
                :: else
                fi
            :: else
            fi
        :: else
        fi
    :: else -> break
    od
}

/* What a reader finds after a kill at this moment: the listed bin, or fdri_codec_part_given. A record is one step here. */
proctype autopsy()
{
    atomic {
        if
        :: head_off != 0 -> assert(holder[head_off] == 1 && stored == first[head_off] + recs[head_off])
        :: head_off == 0 -> assert(stored == GIVEN)
        fi
    }
}

init
{
    c_code { const char *m = getenv("MUTANT"); now.mutant = m ? atoi(m) : 0; };
    atomic {
        run autopsy(); run owner(); run claimer(2);
#if CLAIMERS == 2
        run claimer(3)
#endif
    }
}
