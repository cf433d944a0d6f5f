/* SPDX-License-Identifier: MIT */
/* Two ranks exchange data among neighbors, on a grid with and without a border and on graphs, and in partitions, where
 * the library has them. See traffic.c. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };
static int rank, size, partner;
static long sent, sent_bytes, received, received_bytes, collectives, given, taken;
static int buffer[MOST], other[MOST];

static void together(long give, long take) { collectives++, given += give, taken += take; }

/* in, out: neighbors that data comes from, and goes to; each has its place in the buffers. */
static void all_kinds(MPI_Comm comm, int places, int in, int out)
{
    int count[] = {3, 3, 3, 3}, at[] = {0, 3, 6, 9};
    MPI_Aint byte[] = {0, 12, 24, 36};
    MPI_Datatype type[] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    MPI_Request r;
    if (places > 4) exit(3);
    MPI_Neighbor_allgather(buffer, 2, MPI_INT, other, 2, MPI_INT, comm), together(out * 8, in * 8);
    MPI_Neighbor_allgatherv(buffer, 3, MPI_INT, other, count, at, MPI_INT, comm), together(out * 12, in * 12);
    MPI_Neighbor_alltoall(buffer, 4, MPI_INT, other, 4, MPI_INT, comm), together(out * 16, in * 16);
    MPI_Neighbor_alltoallv(buffer, count, at, MPI_INT, other, count, at, MPI_INT, comm), together(out * 12, in * 12);
    MPI_Neighbor_alltoallw(buffer, count, byte, type, other, count, byte, type, comm), together(out * 12, in * 12);
    MPI_Ineighbor_alltoall(buffer, 5, MPI_INT, other, 5, MPI_INT, comm, &r), together(out * 20, in * 20);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Ineighbor_allgather(buffer, 1, MPI_INT, other, 1, MPI_INT, comm, &r), together(out * 4, in * 4);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void on_grids_and_graphs(void)
{
    MPI_Comm ring, line, again, graph;
    int periodic = 1, open = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    all_kinds(ring, 2, 2, 2);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &open, 0, &line);
    MPI_Comm_dup(line, &again);
    all_kinds(again, 2, 1, 1);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &partner, MPI_UNWEIGHTED, 1, &partner, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    all_kinds(graph, 1, 1, 1);
    MPI_Comm_free(&ring), MPI_Comm_free(&line), MPI_Comm_free(&again), MPI_Comm_free(&graph);
}

#if MPI_VERSION >= 4
/* Two requests of one envelope, started in the other order than they were made. */
static void partitions(void)
{
    enum { REQUESTS = 2, PARTS = 4, EACH = 3 };
    static int in[REQUESTS][PARTS * EACH], out[REQUESTS][PARTS * EACH];
    MPI_Request r[2 * REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        MPI_Precv_init(in[i], PARTS, EACH, MPI_INT, partner, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &r[i]);
        MPI_Psend_init(out[i], PARTS, EACH, MPI_INT, partner, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &r[REQUESTS + i]);
    }
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 2 * REQUESTS - 1; i >= 0; i--) MPI_Start(&r[i]);
        for (int i = 0; i < REQUESTS; i++)
            for (int p = 0; p < PARTS; p++) {
                out[i][p * EACH] = 100 * turn + 10 * i + p;
                MPI_Pready(p, r[REQUESTS + i]);
            }
        MPI_Waitall(2 * REQUESTS, r, MPI_STATUSES_IGNORE);
        for (int i = 0; i < REQUESTS; i++) {
            sent++, received++, sent_bytes += sizeof out[i], received_bytes += sizeof in[i];
            for (int p = 0; p < PARTS; p++)
                if (in[i][p * EACH] != 100 * turn + 10 * i + p) exit(4);
        }
    }
    for (int i = 0; i < 2 * REQUESTS; i++) MPI_Request_free(&r[i]);
}
#else
static void partitions(void) {}
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    partner = rank ^ 1;
    on_grids_and_graphs();
    MPI_Sendrecv(buffer, 7, MPI_INT, partner, 8, other, MOST, MPI_INT, partner, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sent++, received++, sent_bytes += 28, received_bytes += 28;
    partitions();
    MPI_Finalize();
    printf("rank %d sent %ld %ld received %ld %ld collectives %ld %ld\n", rank, sent, sent_bytes, received,
           received_bytes, collectives, given + taken);
    return 0;
}
