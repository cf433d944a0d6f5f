/* SPDX-License-Identifier: MIT */
/* Counts the messages of each envelope and the collectives of each communicator. A counter holds, in one word, how many
 * there are and how many are being posted now. So two threads that post to one envelope at once see each other: MPI may
 * take them in either order, and both ordinals are ambiguous. */
#include <stdio.h>
#include <string.h>
#include "adapters/mpi/adapter_parts.h"
#include "adapters/mpi/state.h"
#include "base/atomic.h"

#define ONE_POSTING ((uint64_t)1 << 48)
#define COUNT(word) ((word) & (ONE_POSTING - 1))
enum { COUNTED = 0, BYTES = 1, HOLE = 2 };    /* counters of an envelope; HOLE: 1 + number of a cancelled send */
#define UNSURE ((uint64_t)1 << 63)            /* with HOLE: nothing is sure from there on */
enum { BEGUN = 0, ENDED = 1, UNDER_WAY = 2 }; /* of a communicator */
enum { VOLUME_SENT = 0, VOLUME_RECEIVED = 1, VOLUME_ENDED = 2 };
enum { OPERATION_SHIFT = 56, ROOT_SHIFT = 36, ROOT_NONE = 0xfffff, TIME_CUT = 20 };

static fdr_tally all;       /* of the recording in which counting began; 0: nothing is counted */
static fdr_tally uncounted; /* what `all` leaves out; 0: nothing so far */
static uint64_t made;       /* rows of communicators that the program made */
static bool threads;
static uint32_t stops;    /* 1: some envelope is not sure any more */
enum { COLLECTIVES = 2 }; /* counter of `all`; the others are the directions */

/* A session has a level of its own: it counts as several threads. */
void fdri_mpi_numbers_start(bool by_session)
{
    int (*query)(int *) = (int (*)(int *))fdri_mpi_find("PMPI_Query_thread");
    const uint8_t key[FDR_TALLY_KEY_BYTES] = "messages";
    int level = 0;
    /* MPI_THREAD_MULTIPLE is 3, or larger where levels have other values: some lower ones count as several threads */
    threads = by_session || !query || query(&level) || level >= 3;
    fdr_tally_make(FDR_TALLY_MPI, key, &all);
}

bool fdri_mpi_numbers_threads(void) { return threads; }

uint64_t fdri_mpi_numbers_buffer(void)
{
    static uint64_t bytes;
    if (!fdri_atomic_load_relaxed(&bytes)) fdri_atomic_store_relaxed(&bytes, fdr_usage().buffer_bytes);
    return fdri_atomic_load_relaxed(&bytes);
}

bool fdri_mpi_numbers_count(const struct fdri_mpi_members *group) { return group && group->order->identity && all; }

/* Half of the larger table (docs/CAPACITY.md): the other half is for the world and for threads. */
bool fdri_mpi_numbers_full(void)
{
    enum { BYTES_OF_A_ROW = 64, LARGER_SHARE = 64, HALF = 2 };
    return fdri_atomic_load_relaxed(&made) >= fdri_mpi_numbers_buffer() / LARGER_SHARE / BYTES_OF_A_ROW / HALF;
}

static void count_made(const struct fdri_mpi_members *group)
{
    if (!group->order->lasting) fdri_atomic_add_relaxed(&made, (uint64_t)1);
}

void fdri_mpi_numbers_uncounted(int what)
{
    const uint8_t key[FDR_TALLY_KEY_BYTES] = "not counted";
    fdr_tally row = fdri_atomic_load_relaxed(&uncounted);
    uint64_t counted;
    if (fdr_tally_read(all, 0, &counted) || (!row && fdr_tally_make(FDR_TALLY_MPI, key, &row))) return;
    fdri_atomic_store_relaxed(&uncounted, row);
    if (what >= 0) fdr_tally_add(row, (unsigned)what, 1, NULL);
}

struct key {
    uint64_t identity;
    uint32_t peer;
    int32_t tag;
    uint8_t rest[8];
};
_Static_assert(sizeof(struct key) == FDR_TALLY_KEY_BYTES, "key of a tally");

/* The rows of envelopes that this thread used last: looking for a row costs as much as all that is done with it. */
enum { REMEMBERED = 32 };
static __thread struct remembered {
    struct key key;
    uint32_t kind;
    fdr_tally row;
} remembered[REMEMBERED];

static fdr_tally find_row(uint32_t kind, const struct key *key)
{
    uint64_t hash = (key->identity ^ key->peer ^ (uint64_t)(uint32_t)key->tag << 32 ^ kind) * 0x9e3779b97f4a7c15u;
    struct remembered *at = &remembered[hash >> 59];
    if (at->row && at->kind == kind && memcmp(&at->key, key, sizeof *key) == 0) return at->row;
    *at = (struct remembered){.key = *key, .kind = kind};
    return fdr_tally_make(kind, key, &at->row) ? 0 : at->row;
}

/* A row that begins in a later recording would count from 0. Counting in `all` shows that the recording is the first
 * one. */
static fdr_tally row_of(uint32_t kind, unsigned counter, const struct key *key)
{
    return fdr_tally_add(all, counter, 1, NULL) ? 0 : find_row(kind, key);
}

static bool is_stopped(fdr_tally row)
{
    uint64_t hole;
    return fdri_atomic_load_relaxed(&stops) && (fdr_tally_read(row, HOLE, &hole) || hole & UNSURE);
}

struct fdri_mpi_number fdri_mpi_number_take(int direction, const struct fdri_mpi_members *group, uint32_t peer, int tag,
                                            bool posting)
{
    struct fdri_mpi_number number = {.state = FDRI_MPI_UNNUMBERED};
    uint64_t before;
    if (!fdri_mpi_numbers_count(group)) fdri_mpi_numbers_uncounted(direction);
    if (!fdri_mpi_numbers_count(group) || peer == UINT32_MAX) return number;
    const struct key key = {.identity = group->order->identity, .peer = peer, .tag = tag};
    number.posting = posting && threads;
    number.row = row_of(direction == FDRI_MPI_SENT ? FDR_TALLY_SENT : FDR_TALLY_RECEIVED, (unsigned)direction, &key);
    if (!number.row || fdr_tally_add(number.row, COUNTED, number.posting ? ONE_POSTING + 1 : 1, &before) ||
        is_stopped(number.row))
        return (struct fdri_mpi_number){.state = FDRI_MPI_UNNUMBERED};
    if (!before) count_made(group);
    number.n = COUNT(before);
    number.state = before >= ONE_POSTING ? FDRI_MPI_AMBIGUOUS : FDRI_MPI_NUMBERED;
    return number;
}

void fdri_mpi_number_posted(struct fdri_mpi_number *number)
{
    uint64_t before;
    if (!number->posting) return;
    number->posting = false;
    if (fdr_tally_add(number->row, COUNTED, 0 - ONE_POSTING, &before)) number->state = FDRI_MPI_UNNUMBERED;
    else if (COUNT(before) != number->n + 1) number->state = FDRI_MPI_AMBIGUOUS;
}

void fdri_mpi_number_undo(struct fdri_mpi_number *number)
{
    uint64_t expected = number->n + 1;
    if (number->state == FDRI_MPI_UNNUMBERED) return;
    fdri_mpi_number_posted(number);
    if (fdr_tally_compare_set(number->row, COUNTED, &expected, number->n) != 1) fdri_mpi_number_stop(number);
    number->state = FDRI_MPI_UNNUMBERED;
}

uint64_t fdri_mpi_number_ordinal(const struct fdri_mpi_number *number)
{
    if (number->state == FDRI_MPI_UNNUMBERED) return FDR_ORDINAL_UNKNOWN;
    return number->n | (number->state == FDRI_MPI_AMBIGUOUS ? FDR_ORDINAL_AMBIGUOUS : 0);
}

void fdri_mpi_number_bytes(const struct fdri_mpi_number *number, uint64_t bytes)
{
    if (number->row) fdr_tally_add(number->row, BYTES, bytes, NULL);
}

/* Later sends are recorded with one too many. Readers know of one hole. */
void fdri_mpi_number_hole(const struct fdri_mpi_number *number)
{
    uint64_t none = 0;
    if (number->state == FDRI_MPI_UNNUMBERED) return;
    if (fdr_tally_compare_set(number->row, HOLE, &none, number->n + 1) != 1) fdri_mpi_number_stop(number);
}

void fdri_mpi_number_stop(const struct fdri_mpi_number *number)
{
    uint64_t hole = 0;
    if (!number->row || fdr_tally_read(number->row, HOLE, &hole)) return;
    fdri_atomic_store_relaxed(&stops, 1);
    hole &= ~UNSURE;
    fdr_tally_set(number->row, HOLE, (hole && hole <= number->n ? hole : number->n + 1) | UNSURE);
}

/* ---- collectives ---- */

/* known: where the communicator keeps the row; 0: it was not looked for. */
static fdr_tally row_of_comm(const struct fdri_mpi_members *group, uint32_t kind, fdr_tally *known)
{
    const struct key key = {.identity = group->order->identity, .peer = group->id};
    fdr_tally row = fdri_atomic_load_relaxed(known);
    if (row) return row;
    if (fdr_tally_make(kind, &key, &row)) return 0;
    count_made(group);
    fdri_atomic_store_relaxed(known, row);
    return row;
}

static fdr_tally row_of_collectives(const struct fdri_mpi_members *group)
{
    return row_of_comm(group, FDR_TALLY_COLLECTIVES, &group->order->collectives);
}

/* The operation under way, its root and its time, in one word. */
static uint64_t word_of(uint32_t operation, uint32_t root)
{
    uint64_t short_root = root < ROOT_NONE ? root : ROOT_NONE;
    return (uint64_t)operation << OPERATION_SHIFT | short_root << ROOT_SHIFT |
           (fdri_mpi_state_now() >> TIME_CUT & (((uint64_t)1 << ROOT_SHIFT) - 1));
}

uint64_t fdri_mpi_collective_begins(const struct fdri_mpi_members *group, uint32_t operation, uint32_t root)
{
    uint64_t before = FDR_ORDINAL_UNKNOWN;
    if (!fdri_mpi_numbers_count(group)) fdri_mpi_numbers_uncounted(COLLECTIVES);
    if (!fdri_mpi_numbers_count(group) || fdr_tally_add(all, COLLECTIVES, 1, NULL)) return before;
    fdr_tally row = row_of_collectives(group);
    if (!row || fdr_tally_add(row, BEGUN, 1, &before)) return FDR_ORDINAL_UNKNOWN;
    fdr_tally_set(row, UNDER_WAY, word_of(operation, root));
    return before;
}

void fdri_mpi_collective_ended(const struct fdri_mpi_members *group)
{
    if (!fdri_mpi_numbers_count(group)) return;
    fdr_tally row = row_of_collectives(group);
    uint64_t begun = 0, ended = 0;
    if (fdr_tally_add(row, ENDED, 1, &ended)) return;
    if (!fdr_tally_read(row, BEGUN, &begun) && begun == ended + 1) fdr_tally_set(row, UNDER_WAY, 0);
}

/* A row that begins in a later recording would count from 0. */
void fdri_mpi_collective_bytes(const struct fdri_mpi_members *group, uint64_t sent, uint64_t received)
{
    uint64_t counted;
    if (!fdri_mpi_numbers_count(group)) return;
    if (!fdri_atomic_load_relaxed(&group->order->volume)) {
        if (fdr_tally_read(all, COLLECTIVES, &counted)) return;
        row_of_collectives(group); /* readers begin there, also if all of them are persistent */
    }
    fdr_tally row = row_of_comm(group, FDR_TALLY_COLLECTIVE_BYTES, &group->order->volume);
    if (!row) return;
    if (sent) fdr_tally_add(row, VOLUME_SENT, sent, NULL);
    if (received) fdr_tally_add(row, VOLUME_RECEIVED, received, NULL);
    fdr_tally_add(row, VOLUME_ENDED, 1, NULL);
}
