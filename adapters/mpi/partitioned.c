/* SPDX-License-Identifier: MIT */
/* Partitioned communication. MPI matches the requests of an envelope by the order of their initialisation, apart from
 * all other messages. So each request has an envelope of its own. Both sides derive its identity alike: from the
 * communicator's, and from the number of requests made before for this peer and tag. Each start is a message of it. */
#include "adapters/mpi/adapter_parts.h"
#include "base/atomic.h"

/* Threads that make requests at once: nobody knows in which order MPI takes them. */
static uint32_t turns, under_way;

static bool sends(const struct fdri_mpi_call *c) { return c->f->kind == FDRI_MPI_psend_init; }

static int peer_of(const struct fdri_mpi_call *c)
{
    return (int)fdri_mpi_int(c, sends(c) ? FDRI_MPI_dest : FDRI_MPI_source);
}

static uint32_t world_peer(const struct fdri_mpi_call *c, const struct fdri_mpi_members *group)
{
    int peer = peer_of(c);
    return peer < 0 ? UINT32_MAX : fdri_mpi_world_rank(group, peer);
}

/* Of the requests of an envelope, alike on both sides but for the direction. */
static uint64_t key_of(const struct fdri_mpi_call *c, const struct fdri_mpi_members *group)
{
    uint64_t envelope = (uint64_t)world_peer(c, group) << 32 | (uint32_t)fdri_mpi_int(c, FDRI_MPI_tag);
    return fdri_mpi_mix(fdri_mpi_mix(group->order->identity, envelope), sends(c));
}

void fdri_mpi_partitioned_begin(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p)
{
    const struct fdri_mpi_members *group = fdri_mpi_members_known(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
    p->turn = fdri_atomic_add_relaxed(&turns, 1u) + 1;
    if (fdri_atomic_add_relaxed(&under_way, 1u)) p->turn = 0;
    bool known = group && group->order->identity && fdri_mpi_identities_made_before(key_of(c, group), &p->ordinal);
    if (!known) p->ordinal = FDR_ORDINAL_UNKNOWN;
}

static bool ends_alone(const struct fdri_mpi_posting *p)
{
    bool alone = p->turn && fdri_atomic_load_relaxed(&turns) == p->turn;
    fdri_atomic_sub_relaxed(&under_way, 1u);
    return alone;
}

/* 0: not known. */
static uint64_t identity_of(const struct fdri_mpi_members *group, const struct fdri_mpi_posting *p)
{
    enum { PARTITIONED = 4711 }; /* other than what makes communicators of a communicator */
    if (p->ordinal == FDR_ORDINAL_UNKNOWN || fdri_mpi_numbers_full()) return 0;
    return fdri_mpi_mix(fdri_mpi_mix(~group->order->identity, PARTITIONED), p->ordinal);
}

void fdri_mpi_partitioned_prepared(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *posting, int error)
{
    struct fdri_mpi_pending p = {.persistent = true, .partitioned = true};
    bool sure = ends_alone(posting) && !error;
    word comm = fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM);
    const struct fdri_mpi_members *group = error ? fdri_mpi_members_known(comm) : fdri_mpi_members(comm);
    if (group && !sure) fdri_mpi_identities_unsure(key_of(c, group));
    if (error || !group || peer_of(c) == fdri_mpi_library()->proc_null) return;
    p.group = fdri_mpi_members_of_request(comm, group, sure ? identity_of(group, posting) : 0);
    if (!p.group) return;
    p.sent = p.received = (uint64_t)fdri_mpi_int(c, FDRI_MPI_partitions) *
                          fdri_mpi_bytes(fdri_mpi_wide(c, FDRI_MPI_count),
                                         fdri_mpi_handle(c, FDRI_MPI_datatype, FDRI_MPI_TYPE));
    p.kind = sends(c) ? FDRI_MPI_PENDING_SEND : FDRI_MPI_PENDING_RECV;
    p.tag = (int32_t)fdri_mpi_int(c, FDRI_MPI_tag), p.peer = (int32_t)world_peer(c, group);
    p.receive = (struct fdri_mpi_receive){.group = p.group, .peer = (uint32_t)p.peer, .tag = p.tag};
    fdri_mpi_requests_open(FDRI_MPI_OF_REQUESTS, fdri_mpi_handle_at(c, FDRI_MPI_request, FDRI_MPI_REQUEST, 0), &p);
    fdri_mpi_members_leave(p.group);
}
