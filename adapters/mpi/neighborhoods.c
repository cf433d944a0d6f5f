/* SPDX-License-Identifier: MIT */
/* Neighborhood collectives: bytes that this process gives to its neighbors and takes from them. A neighbor outside of a
 * grid that is not periodic moves nothing. */
#include "adapters/mpi/collective.h"
#include "base/atomic.h"

static struct {
    int (*dims)(word, int *);
    int (*shift)(word, int, int, int *, int *);
    int (*degree)(word, int, int *);
    int (*degrees)(word, int *, int *, int *);
} ask;

static void look_up(void)
{
    if (fdri_atomic_load_relaxed(&ask.degrees)) return;
    ask.dims = (int (*)(word, int *))fdri_mpi_find("PMPI_Cartdim_get");
    ask.shift = (int (*)(word, int, int, int *, int *))fdri_mpi_find("PMPI_Cart_shift");
    ask.degree = (int (*)(word, int, int *))fdri_mpi_find("PMPI_Graph_neighbors_count");
    ask.degrees = (int (*)(word, int *, int *, int *))fdri_mpi_find("PMPI_Dist_graph_neighbors_count");
}

struct neighbors {
    word comm;
    bool grid;
    int in, out; /* places in the buffers */
};

static struct neighbors neighbors_of(const struct fdri_mpi_call *c, const struct fdri_mpi_collective *o)
{
    struct neighbors n = {.comm = fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM)};
    int dims = 0, weighted;
    look_up();
    switch (o->group->order->topology) {
    case FDRI_MPI_CART:
        n.grid = ask.dims && ask.shift && !ask.dims(n.comm, &dims);
        n.in = n.out = n.grid ? 2 * dims : 0;
        break;
    case FDRI_MPI_GRAPH:
        if (ask.degree && !ask.degree(n.comm, o->group->rank, &n.in)) n.out = n.in;
        break;
    case FDRI_MPI_DIST_GRAPH:
        if (!ask.degrees || ask.degrees(n.comm, &n.in, &n.out, &weighted)) n.in = n.out = 0;
        break;
    default: break;
    }
    return n;
}

/* Neighbor i of a grid: before (even i) or behind this process in dimension i / 2. */
static bool is_there(const struct neighbors *n, int i)
{
    int peer[2] = {0, 0};
    if (!n->grid || ask.shift(n->comm, i / 2, 1, &peer[0], &peer[1])) return !n->grid;
    return peer[i % 2] != fdri_mpi_library()->proc_null;
}

enum amount { EACH, COUNTS, COUNTS_AND_TYPES };

static uint64_t sum(const struct fdri_mpi_call *c, const struct neighbors *n, bool sends, enum amount amount)
{
    enum fdri_mpi_role count = amount == EACH ? (sends ? FDRI_MPI_sendcount : FDRI_MPI_recvcount)
                                              : (sends ? FDRI_MPI_sendcounts : FDRI_MPI_recvcounts);
    enum fdri_mpi_role type = amount == COUNTS_AND_TYPES ? (sends ? FDRI_MPI_sendtypes : FDRI_MPI_recvtypes)
                                                         : (sends ? FDRI_MPI_sendtype : FDRI_MPI_recvtype);
    uint64_t total = 0;
    for (int i = 0, end = sends ? n->out : n->in; i < end; i++) {
        if (!is_there(n, i)) continue;
        int64_t elements = amount == EACH ? fdri_mpi_count(c, count) : fdri_mpi_count_at(c, count, i);
        total += fdri_mpi_bytes(elements, amount == COUNTS_AND_TYPES ? fdri_mpi_handle_at(c, type, FDRI_MPI_TYPE, i)
                                                                     : fdri_mpi_handle(c, type, FDRI_MPI_TYPE));
    }
    return total;
}

void fdri_mpi_neighborhood_volume(const struct fdri_mpi_call *c, struct fdri_mpi_collective *o)
{
    const struct neighbors n = neighbors_of(c, o);
    enum amount sent = EACH, received = EACH;
    switch (c->f->operation) {
    case FDRI_MPI_OP_Neighbor_allgatherv: received = COUNTS; break;
    case FDRI_MPI_OP_Neighbor_alltoallv: sent = received = COUNTS; break;
    case FDRI_MPI_OP_Neighbor_alltoallw: sent = received = COUNTS_AND_TYPES; break;
    default: break;
    }
    o->sent = sum(c, &n, true, sent);
    o->received = sum(c, &n, false, received);
}
