/* SPDX-License-Identifier: MIT */
/* The calls in which the threads of an MPI process are, and the collectives under way: FORMAT.md, 13.4. */
#include <fdr/reader.h>
#include <stdlib.h>
#include <string.h>

#include "format/arena/tally_block.h"
#include "reader/account/account.h"

#define ORDINAL_UNKNOWN 0xffffffffffffu
enum { TIME_CUT = 20, ROOT_SHIFT = 36, ROOT_NONE = 0xfffff, OPERATION_SHIFT = 56 };
enum { CALLS_SHIFT = 20, REGION_NONE = 0xfffff, COMM_SHIFT = 40, COMM_NONE = 0xffffff, NUMBER = 0xffff };

bool fdr_mpi_comm_state(const struct fdr_tally_row *row, struct fdr_mpi_comm_state *s)
{
    memset(s, 0, sizeof *s);
    if (row->kind != FDRI_ARENA_TALLY_COLLECTIVES) return false;
    uint64_t word = row->counter[2], root = word >> ROOT_SHIFT & ROOT_NONE;
    memcpy(&s->identity, row->key, sizeof s->identity);
    memcpy(&s->comm, row->key + 8, sizeof s->comm);
    s->begun = row->counter[0], s->ended = row->counter[1];
    s->operation = (uint32_t)(word >> OPERATION_SHIFT);
    s->root = root == ROOT_NONE || !word ? UINT32_MAX : (uint32_t)root;
    s->since_ns = (word & (((uint64_t)1 << ROOT_SHIFT) - 1)) << TIME_CUT;
    return true;
}

static int by_key(const void *x, const void *y)
{
    const struct fdr_tally_row *a = x, *b = y;
    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : memcmp(a->key, b->key, sizeof a->key);
}

/* The row of another kind with the key of this one. */
static const struct fdr_tally_row *row_beside(const struct fdr_file *file, const struct fdr_tally_row *row,
                                              uint32_t kind)
{
    const struct fdr_tally_row *rows;
    struct fdr_tally_row key = *row;
    size_t count = fdr_tallies(file, &rows);
    key.kind = kind;
    return count ? bsearch(&key, rows, count, sizeof key, by_key) : NULL;
}

bool fdr_mpi_comm_bytes(const struct fdr_file *file, const struct fdr_tally_row *row, struct fdr_mpi_comm_bytes *bytes)
{
    memset(bytes, 0, sizeof *bytes);
    if (row->kind != FDRI_ARENA_TALLY_COLLECTIVES) return false;
    const struct fdr_tally_row *b = row_beside(file, row, FDRI_ARENA_TALLY_COLLECTIVE_BYTES);
    if (b) *bytes = (struct fdr_mpi_comm_bytes){b->counter[0], b->counter[1], b->counter[2]};
    return b != NULL;
}

static void take_wait(struct fdr_mpi_thread_state *s, const uint64_t *word)
{
    uint64_t ordinal = word[1] >> 16;
    s->tag = (int32_t)(word[0] >> 32);
    s->ordinal = ordinal == ORDINAL_UNKNOWN ? UINT64_MAX : ordinal;
    s->peer = (uint32_t)(word[2] >> 32);
    s->operation = word[2] >> 16 & 0xffff;
}

bool fdr_mpi_thread_state(const struct fdr_file *file, const struct fdr_tally_row *row, struct fdr_mpi_thread_state *s)
{
    memset(s, 0, sizeof *s);
    s->region = s->comm = s->peer = UINT32_MAX;
    s->ordinal = UINT64_MAX;
    if (row->kind != FDRI_ARENA_TALLY_CALL) return false;
    const uint64_t *word = row->counter;
    const struct fdr_tally_row *wait = row_beside(file, row, FDRI_ARENA_TALLY_WAIT);
    uint32_t region = word[0] & REGION_NONE, comm = (uint32_t)(word[2] >> COMM_SHIFT);
    memcpy(&s->tid, row->key, sizeof s->tid);
    s->calls = word[0] >> CALLS_SHIFT;
    s->in_call = region != 0;
    if (!s->in_call) return true;
    uint64_t number = s->calls & NUMBER;
    uint32_t kind = word[2] >> 32 & 0xff;
    bool waits = kind != FDR_MPI_WAIT_UNKNOWN && kind != FDR_MPI_WAIT_NOTHING;
    s->torn = (waits && !wait) || (word[1] & NUMBER) != number || (word[2] & NUMBER) != number;
    for (int i = 0; i < 3 && waits && wait; i++) s->torn |= (wait->counter[i] & NUMBER) != number;
    if (s->torn) return true;
    if (region != REGION_NONE) s->region = region;
    s->since_ns = word[1] & ~(uint64_t)NUMBER;
    s->wait = kind < FDR_MPI_WAIT_KINDS ? kind : FDR_MPI_WAIT_UNKNOWN;
    if (comm != COMM_NONE) s->comm = comm;
    s->pending = word[2] >> 16 & 0xffff;
    if (waits) take_wait(s, wait->counter);
    return true;
}
