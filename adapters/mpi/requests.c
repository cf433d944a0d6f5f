/* SPDX-License-Identifier: MIT */
/* The table of open requests: a bounded hash table in buckets of one cache line of handles. A handle lies in one of two
 * buckets. A slot belongs to one thread from the swap that takes it to the store that publishes its handle. A call that
 * may complete a request claims its slot: to hide the handle takes one store, and the request stays in its place. */
#include <stdio.h>
#include "adapters/mpi/adapter_parts.h"
#include "base/atomic.h"

enum { BUCKETS = 8192, WAYS = 8 };
enum { TAKEN = 1 }; /* no handle has this value: NULL handles and small constants are not put in */

static struct {
    uint64_t key[WAYS];
} keys[BUCKETS] __attribute__((aligned(64)));
static struct fdri_mpi_pending payload[BUCKETS][WAYS];
static uint64_t held; /* handles in the table */

static uint64_t key_of(enum fdri_mpi_space space, word handle)
{
    return (uint64_t)handle ^ (space == FDRI_MPI_OF_MESSAGES ? UINT64_C(1) << 63 : 0);
}

static unsigned bucket(uint64_t key, int which)
{
    return (unsigned)((key * 0x9e3779b97f4a7c15u) >> 40) + (unsigned)which * 5003u;
}

/* MPICH gives all that is complete at once one handle; one of them is enough here. */
static bool is_known(uint64_t key, const struct fdri_mpi_pending *p)
{
    if ((p->kind != FDRI_MPI_PENDING_SEND || p->persistent) && p->kind != FDRI_MPI_PENDING_RMA) return false;
    for (int i = 0; i < 2 * WAYS; i++)
        if (fdri_atomic_load_relaxed(&keys[bucket(key, i / WAYS) % BUCKETS].key[i % WAYS]) == key) return true;
    return false;
}

static const struct fdri_mpi_members *group_of(const struct fdri_mpi_pending *p)
{
    return p->kind == FDRI_MPI_PENDING_RECV ? p->receive.group : p->group;
}

static bool find_room(uint64_t key, const struct fdri_mpi_pending *p)
{
    for (int i = 0; i < 2 * WAYS; i++) {
        unsigned b = bucket(key, i / WAYS) % BUCKETS;
        uint64_t empty = 0;
        if (fdri_atomic_load_relaxed(&keys[b].key[i % WAYS])) continue;
        if (!fdri_atomic_cas_acq_rel_u64(&keys[b].key[i % WAYS], &empty, TAKEN)) continue; /* L:request */
        payload[b][i % WAYS] = *p;
        fdri_atomic_add_relaxed(&held, 1);
        fdri_atomic_store_release(&keys[b].key[i % WAYS], key); /* R:request */
        return true;
    }
    return false;
}

void fdri_mpi_requests_put(enum fdri_mpi_space space, word handle, struct fdri_mpi_pending *p)
{
    uint64_t key = key_of(space, handle);
    bool known = is_known(key, p);
    if (!known && find_room(key, p)) return;
    if (!known) fdri_mpi_requests_unseen(1);
    if (!known && p->kind == FDRI_MPI_PENDING_RECV) fdri_mpi_receive_forgotten(&p->receive);
    fdri_mpi_requests_end(p);
}

void fdri_mpi_requests_open(enum fdri_mpi_space space, word handle, struct fdri_mpi_pending *p)
{
    fdri_mpi_members_use(group_of(p));
    fdri_mpi_requests_put(space, handle, p);
}

void fdri_mpi_requests_end(struct fdri_mpi_pending *p)
{
    if (p->kind != FDRI_MPI_PENDING_NONE) fdri_mpi_members_leave(group_of(p));
    p->kind = FDRI_MPI_PENDING_NONE;
}

/* Two threads may complete requests of one handle at once: see is_known. */
static bool take_slot(uint64_t *slot, uint64_t key)
{
    return fdri_atomic_load_relaxed(slot) == key && fdri_atomic_cas_acq_rel_u64(slot, &key, TAKEN); /* L:request */
}

bool fdri_mpi_requests_take(enum fdri_mpi_space space, word handle, struct fdri_mpi_pending *p)
{
    uint64_t key = key_of(space, handle);
    for (int i = 0; i < 2 * WAYS; i++) {
        unsigned b = bucket(key, i / WAYS) % BUCKETS;
        if (!take_slot(&keys[b].key[i % WAYS], key)) continue;
        *p = payload[b][i % WAYS];
        fdri_atomic_sub_relaxed(&held, 1);
        fdri_atomic_store_release(&keys[b].key[i % WAYS], 0); /* R:request */
        return true;
    }
    return false;
}

struct fdri_mpi_pending *fdri_mpi_requests_claim(word handle)
{
    uint64_t key = key_of(FDRI_MPI_OF_REQUESTS, handle);
    for (int i = 0; i < 2 * WAYS; i++) {
        unsigned b = bucket(key, i / WAYS) % BUCKETS;
        if (take_slot(&keys[b].key[i % WAYS], key)) return &payload[b][i % WAYS];
    }
    return NULL;
}

static uint64_t *key_of_slot(const struct fdri_mpi_pending *p)
{
    size_t slot = (size_t)(p - payload[0]);
    return &keys[slot / WAYS].key[slot % WAYS];
}

void fdri_mpi_requests_give_back(word handle, const struct fdri_mpi_pending *p)
{
    fdri_atomic_store_release(key_of_slot(p), key_of(FDRI_MPI_OF_REQUESTS, handle)); /* R:request */
}

void fdri_mpi_requests_end_claimed(struct fdri_mpi_pending *p)
{
    fdri_mpi_requests_end(p);
    fdri_atomic_sub_relaxed(&held, 1);
    fdri_atomic_store_release(key_of_slot(p), 0); /* R:request */
}

bool fdri_mpi_requests_any(void) { return fdri_atomic_load_relaxed(&held) != 0; }

void fdri_mpi_requests_unseen(int count)
{
    static uint32_t said;
    if (count > 0 && !fdri_atomic_swap_relaxed(&said, 1))
        fprintf(stderr,
                "fdr: MPI: no room for %d of the open requests (%d at most, %d in one call): messages and collectives "
                "that they complete are not recorded\n",
                count, BUCKETS * WAYS, FDRI_MPI_MANY);
}

void fdri_mpi_requests_forget(void)
{
    for (int b = 0; b < BUCKETS && fdri_mpi_requests_any(); b++)
        for (int i = 0; i < WAYS; i++) {
            uint64_t key = fdri_atomic_load_acquire(&keys[b].key[i]); /* A:request */
            if (key <= TAKEN) continue;
            fdri_atomic_sub_relaxed(&held, 1);
            fdri_atomic_store_release(&keys[b].key[i], 0); /* R:request */
        }
}

void fdri_mpi_requests_move_down(const struct fdri_mpi_number *number)
{
    for (int b = 0; b < BUCKETS && fdri_mpi_requests_any(); b++)
        for (int i = 0; i < WAYS; i++) {
            struct fdri_mpi_pending *p = &payload[b][i];
            if (fdri_atomic_load_acquire(&keys[b].key[i]) <= TAKEN) continue; /* A:request */
            if (p->kind == FDRI_MPI_PENDING_RECV) fdri_mpi_receive_move_down(&p->receive, number);
        }
}
