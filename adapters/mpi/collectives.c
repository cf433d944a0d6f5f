/* SPDX-License-Identifier: MIT */
/* Collective operations: bytes that this process gives and takes, the root as a world rank, the communicator. A
 * non-blocking one begins when it is posted and ends with its request. */
#include "adapters/mpi/collective.h"
#include "adapters/mpi/state.h"

static uint64_t bytes(const struct fdri_mpi_call *c, enum fdri_mpi_role count, enum fdri_mpi_role type)
{
    return fdri_mpi_bytes(fdri_mpi_count(c, count), fdri_mpi_handle(c, type, FDRI_MPI_TYPE));
}

/* Of arrays with a count, and maybe a type, for each member. */
static uint64_t sum(const struct fdri_mpi_call *c, enum fdri_mpi_role counts, enum fdri_mpi_role type, int size)
{
    bool each = type == FDRI_MPI_sendtypes || type == FDRI_MPI_recvtypes;
    int64_t elements = 0;
    uint64_t total = 0;
    for (int i = 0; i < size; i++)
        if (each)
            total += fdri_mpi_bytes(fdri_mpi_count_at(c, counts, i), fdri_mpi_handle_at(c, type, FDRI_MPI_TYPE, i));
        else elements += fdri_mpi_count_at(c, counts, i);
    return each ? total : fdri_mpi_bytes(elements, fdri_mpi_handle(c, type, FDRI_MPI_TYPE));
}

/* The data lie in the receive buffer: with MPI_IN_PLACE the arguments of the send side mean nothing. */
static bool own_data_in_place(const struct fdri_mpi_call *c)
{
    return fdri_mpi_has(c, FDRI_MPI_sendbuf) && fdri_mpi_in_place(c, FDRI_MPI_sendbuf);
}

static void reduction(const struct fdri_mpi_call *c, struct fdri_mpi_collective *o)
{
    int size = o->group->size;
    switch (c->f->operation) {
    case FDRI_MPI_OP_Reduce_scatter:
        o->sent = sum(c, FDRI_MPI_recvcounts, FDRI_MPI_datatype, size);
        o->received = o->group->inter ? 0
                                      : fdri_mpi_bytes(fdri_mpi_count_at(c, FDRI_MPI_recvcounts, o->group->rank),
                                                       fdri_mpi_handle(c, FDRI_MPI_datatype, FDRI_MPI_TYPE));
        break;
    case FDRI_MPI_OP_Reduce_scatter_block:
        o->received = bytes(c, FDRI_MPI_recvcount, FDRI_MPI_datatype);
        o->sent = o->received * (uint64_t)size;
        break;
    default: o->sent = o->received = bytes(c, FDRI_MPI_count, FDRI_MPI_datatype);
    }
}

static void to_all(const struct fdri_mpi_call *c, struct fdri_mpi_collective *o)
{
    uint64_t size = (uint64_t)o->group->size;
    bool in_place = own_data_in_place(c);
    switch (c->f->operation) {
    case FDRI_MPI_OP_Allgather:
        o->received = bytes(c, FDRI_MPI_recvcount, FDRI_MPI_recvtype) * size;
        o->sent = in_place ? o->received / size : bytes(c, FDRI_MPI_sendcount, FDRI_MPI_sendtype);
        break;
    case FDRI_MPI_OP_Allgatherv:
        o->received = sum(c, FDRI_MPI_recvcounts, FDRI_MPI_recvtype, (int)size);
        o->sent = in_place ? fdri_mpi_bytes(fdri_mpi_count_at(c, FDRI_MPI_recvcounts, o->group->rank),
                                            fdri_mpi_handle(c, FDRI_MPI_recvtype, FDRI_MPI_TYPE))
                           : bytes(c, FDRI_MPI_sendcount, FDRI_MPI_sendtype);
        break;
    case FDRI_MPI_OP_Alltoall:
        o->received = bytes(c, FDRI_MPI_recvcount, FDRI_MPI_recvtype) * size;
        o->sent = in_place ? o->received : bytes(c, FDRI_MPI_sendcount, FDRI_MPI_sendtype) * size;
        break;
    case FDRI_MPI_OP_Alltoallv:
        o->received = sum(c, FDRI_MPI_recvcounts, FDRI_MPI_recvtype, (int)size);
        o->sent = in_place ? o->received : sum(c, FDRI_MPI_sendcounts, FDRI_MPI_sendtype, (int)size);
        break;
    default: /* Alltoallw */
        o->received = sum(c, FDRI_MPI_recvcounts, FDRI_MPI_recvtypes, (int)size);
        o->sent = in_place ? o->received : sum(c, FDRI_MPI_sendcounts, FDRI_MPI_sendtypes, (int)size);
    }
}

static void to_root(const struct fdri_mpi_call *c, struct fdri_mpi_collective *o)
{
    int size = o->group->size;
    bool v = c->f->operation == FDRI_MPI_OP_Gatherv, in_place = o->is_root && own_data_in_place(c);
    if (o->is_root)
        o->received = v ? sum(c, FDRI_MPI_recvcounts, FDRI_MPI_recvtype, size)
                        : bytes(c, FDRI_MPI_recvcount, FDRI_MPI_recvtype) * (uint64_t)size;
    if (o->is_root && o->group->inter) return;
    if (!in_place) o->sent = bytes(c, FDRI_MPI_sendcount, FDRI_MPI_sendtype);
    else if (v)
        o->sent = fdri_mpi_bytes(fdri_mpi_count_at(c, FDRI_MPI_recvcounts, o->group->rank),
                                 fdri_mpi_handle(c, FDRI_MPI_recvtype, FDRI_MPI_TYPE));
    else o->sent = bytes(c, FDRI_MPI_recvcount, FDRI_MPI_recvtype);
}

static void from_root(const struct fdri_mpi_call *c, struct fdri_mpi_collective *o)
{
    int size = o->group->size;
    bool v = c->f->operation == FDRI_MPI_OP_Scatterv, in_place = o->is_root && fdri_mpi_in_place(c, FDRI_MPI_recvbuf);
    if (o->is_root)
        o->sent = v ? sum(c, FDRI_MPI_sendcounts, FDRI_MPI_sendtype, size)
                    : bytes(c, FDRI_MPI_sendcount, FDRI_MPI_sendtype) * (uint64_t)size;
    if (o->is_root && o->group->inter) return;
    if (!in_place) o->received = bytes(c, FDRI_MPI_recvcount, FDRI_MPI_recvtype);
    else if (v)
        o->received = fdri_mpi_bytes(fdri_mpi_count_at(c, FDRI_MPI_sendcounts, o->group->rank),
                                     fdri_mpi_handle(c, FDRI_MPI_sendtype, FDRI_MPI_TYPE));
    else o->received = bytes(c, FDRI_MPI_sendcount, FDRI_MPI_sendtype);
}

static void volume(const struct fdri_mpi_call *c, struct fdri_mpi_collective *o)
{
    switch (c->f->operation) {
    case FDRI_MPI_OP_Barrier: break;
    case FDRI_MPI_OP_Bcast:
        *(o->is_root ? &o->sent : &o->received) = bytes(c, FDRI_MPI_count, FDRI_MPI_datatype);
        break;
    case FDRI_MPI_OP_Reduce: {
        uint64_t n = bytes(c, FDRI_MPI_count, FDRI_MPI_datatype);
        if (!o->is_root || !o->group->inter) o->sent = n;
        if (o->is_root) o->received = n;
        break;
    }
    case FDRI_MPI_OP_Gather:
    case FDRI_MPI_OP_Gatherv: to_root(c, o); break;
    case FDRI_MPI_OP_Scatter:
    case FDRI_MPI_OP_Scatterv: from_root(c, o); break;
    case FDRI_MPI_OP_Allreduce:
    case FDRI_MPI_OP_Scan:
    case FDRI_MPI_OP_Exscan:
    case FDRI_MPI_OP_Reduce_scatter:
    case FDRI_MPI_OP_Reduce_scatter_block: reduction(c, o); break;
    case FDRI_MPI_OP_Neighbor_allgather:
    case FDRI_MPI_OP_Neighbor_allgatherv:
    case FDRI_MPI_OP_Neighbor_alltoall:
    case FDRI_MPI_OP_Neighbor_alltoallv:
    case FDRI_MPI_OP_Neighbor_alltoallw: fdri_mpi_neighborhood_volume(c, o); break;
    default: to_all(c, o);
    }
}

static struct fdri_mpi_collective describe(const struct fdri_mpi_call *c)
{
    struct fdri_mpi_collective o = {.root = -1, .takes_part = true};
    o.group = fdri_mpi_members(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
    if (!o.group) return o;
    if (fdri_mpi_has(c, FDRI_MPI_root)) {
        const struct fdri_mpi_library *l = fdri_mpi_library();
        int root = (int)fdri_mpi_int(c, FDRI_MPI_root);
        o.is_root = o.group->inter ? root == l->root : root == o.group->rank;
        o.takes_part = !o.group->inter || root != l->proc_null;
        if (o.takes_part) o.root = (int32_t)(o.is_root ? o.group->own_world : fdri_mpi_world_rank(o.group, root));
    }
    if (o.takes_part) volume(c, &o);
    return o;
}

/* root: world rank; UINT32_MAX: none. */
static void begin(const struct fdri_mpi_members *group, uint32_t operation, uint32_t root, uint64_t *ordinal)
{
    *ordinal = fdri_mpi_collective_begins(group, operation, root);
    fdr_collective_begin_nth(operation, group ? group->id : 0, *ordinal);
}

void fdri_mpi_collectives_begin(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p)
{
    const struct fdri_mpi_members *group = fdri_mpi_members_known(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
    begin(group, c->f->operation, fdri_mpi_root_of(c, group), &p->ordinal);
}

void fdri_mpi_collectives_end(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *p, int error)
{
    struct fdri_mpi_collective o = {.root = -1};
    if (!error) o = describe(c);
    else o.group = fdri_mpi_members_known(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
    fdr_collective_end_nth(c->f->operation, o.group ? o.group->id : 0, o.root, o.sent, o.received, p->ordinal);
    fdri_mpi_collective_bytes(o.group, o.sent, o.received);
    if (p->ordinal != FDR_ORDINAL_UNKNOWN) fdri_mpi_collective_ended(o.group);
}

/* MPI matches persistent ones by their initialisation, so the order of starts gives them no ordinal. */
void fdri_mpi_collectives_started(struct fdri_mpi_pending *p)
{
    if (p->persistent) {
        p->ordinal = FDR_ORDINAL_UNKNOWN;
        fdr_collective_begin_nth(p->operation, p->group ? p->group->id : 0, p->ordinal);
        return;
    }
    bool one_group = p->group && !p->group->inter;
    begin(p->group, p->operation, one_group ? (uint32_t)p->root : UINT32_MAX, &p->ordinal);
}

void fdri_mpi_collectives_posted(const struct fdri_mpi_call *c, int error)
{
    if (error) return;
    struct fdri_mpi_collective o = describe(c);
    struct fdri_mpi_pending p = {.kind = FDRI_MPI_PENDING_COLL,
                                 .persistent = c->f->kind == FDRI_MPI_coll_init,
                                 .operation = c->f->operation,
                                 .group = o.group,
                                 .root = o.root,
                                 .sent = o.sent,
                                 .received = o.received};
    if (!p.persistent) fdri_mpi_collectives_started(&p);
    fdri_mpi_requests_open(FDRI_MPI_OF_REQUESTS, fdri_mpi_handle_at(c, FDRI_MPI_request, FDRI_MPI_REQUEST, 0), &p);
}
