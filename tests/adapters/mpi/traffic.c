/* SPDX-License-Identifier: MIT */
/* Two or more ranks exchange messages in every way that MPI has. They print the number of messages and of their bytes.
 * fdr must have recorded the same numbers. The partner is the rank beside. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 300, MOST = 1000 };
static int rank, size, partner;
static long sent, sent_bytes, received, received_bytes, collectives, given, taken;
static int buffer[MOST * 4], other[MOST * 4];

static void out(int count) { sent++, sent_bytes += count * (long)sizeof(int); }
static void in(int count) { received++, received_bytes += count * (long)sizeof(int); }
static void together(long give, long take) { collectives++, given += give, taken += take; }

static void blocking(void)
{
    MPI_Status status;
    int count;
    for (int i = 0; i < 5; i++) {
        if (rank % 2 == 0) MPI_Send(buffer, i, MPI_INT, partner, i, MPI_COMM_WORLD), out(i);
        else
            MPI_Recv(other, MOST, MPI_INT, i % 2 ? MPI_ANY_SOURCE : partner, MPI_ANY_TAG, MPI_COMM_WORLD,
                     i % 3 ? MPI_STATUS_IGNORE : &status),
                in(i);
    }
    MPI_Sendrecv(buffer, 7, MPI_INT, partner, 1, other, MOST, MPI_INT, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    out(7), in(7);
    MPI_Sendrecv_replace(buffer, 9, MPI_INT, partner, 2, partner, 2, MPI_COMM_WORLD, &status);
    out(9), in(9);
    MPI_Get_count(&status, MPI_INT, &count);
    if (count != 9 || status.MPI_SOURCE != partner || status.MPI_TAG != 2) exit(3);
    MPI_Send(buffer, 5, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD); /* no message */
    MPI_Recv(buffer, 5, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(MPI_Request *request, int count, int bytes_each)
{
    for (int i = 0; i < count; i++) {
        MPI_Irecv(other + i, bytes_each, MPI_INT, partner, i, MPI_COMM_WORLD, &request[i]);
        MPI_Isend(buffer, bytes_each, MPI_INT, partner, i, MPI_COMM_WORLD, &request[count + i]);
        out(bytes_each), in(bytes_each);
    }
}

static void open_requests(void)
{
    MPI_Request request[2 * MANY];
    static MPI_Status statuses[2 * MANY];
    static int indices[2 * MANY];
    int flag = 0, index, done = 0, ready;
    exchange(request, 3, 1);
    for (int i = 0; i < 6; i++) MPI_Wait(&request[i], i % 2 ? MPI_STATUS_IGNORE : &statuses[0]);
    exchange(request, 4, 1);
    MPI_Waitall(8, request, MPI_STATUSES_IGNORE);
    exchange(request, MANY, 1);
    MPI_Waitall(2 * MANY, request, MPI_STATUSES_IGNORE);
    exchange(request, 4, 1);
    MPI_Waitall(8, request, statuses);
    if (statuses[2].MPI_SOURCE != partner || statuses[2].MPI_TAG != 2) exit(4);
    exchange(request, 4, 1);
    for (int i = 0; i < 8; i++) MPI_Waitany(8, request, &index, MPI_STATUS_IGNORE);
    exchange(request, 4, 1);
    for (done = 0; done < 8; done += ready) MPI_Waitsome(8, request, &ready, indices, MPI_STATUSES_IGNORE);
    exchange(request, 4, 1);
    for (done = 0; done < 8; done += ready) {
        MPI_Testsome(8, request, &ready, indices, statuses);
        if (ready == MPI_UNDEFINED) exit(5);
    }
    exchange(request, 4, 1);
    for (done = 0; done < 8;)
        if (MPI_Testany(8, request, &index, &flag, MPI_STATUS_IGNORE), flag && index != MPI_UNDEFINED) done++;
    exchange(request, 4, 1);
    do MPI_Testall(8, request, &flag, MPI_STATUSES_IGNORE);
    while (!flag);
    exchange(request, 1, 1);
    for (int i = 0; i < 2; i++) do
            MPI_Test(&request[i], &flag, MPI_STATUS_IGNORE);
        while (!flag);
    MPI_Irecv(other, 1, MPI_INT, partner, 4711, MPI_COMM_WORLD, &request[0]); /* nobody sends */
    MPI_Cancel(&request[0]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
}

static void persistent_and_matched(void)
{
    MPI_Request request[2];
    MPI_Message message;
    MPI_Status status;
    int flag = 0;
    MPI_Send_init(buffer, 3, MPI_INT, partner, 5, MPI_COMM_WORLD, &request[0]);
    MPI_Recv_init(other, 3, MPI_INT, partner, 5, MPI_COMM_WORLD, &request[1]);
    for (int i = 0; i < 4; i++) {
        if (i % 2) MPI_Startall(2, request);
        else MPI_Start(&request[0]), MPI_Start(&request[1]);
        out(3), in(3);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE); /* inactive ones */
    }
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Isend(buffer, 6, MPI_INT, partner, 6, MPI_COMM_WORLD, &request[0]);
        out(6), in(6);
        if (i) MPI_Mprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &message, &status);
        else do
                MPI_Improbe(partner, 6, MPI_COMM_WORLD, &flag, &message, &status);
            while (!flag);
        if (i) MPI_Mrecv(other, 6, MPI_INT, &message, MPI_STATUS_IGNORE);
        else MPI_Imrecv(other, 6, MPI_INT, &message, &request[1]), MPI_Wait(&request[1], MPI_STATUS_IGNORE);
        MPI_Wait(&request[0], &status);
    }
}

static void collective(MPI_Comm comm)
{
    int members, me, counts[16], places[16], i4 = 4 * sizeof(int);
    MPI_Comm_size(comm, &members);
    MPI_Comm_rank(comm, &me);
    for (int i = 0; i < members; i++) counts[i] = i + 1, places[i] = i * 20;
    int all = members * (members + 1) / 2 * (int)sizeof(int), mine = (me + 1) * (int)sizeof(int), last = members - 1;
    MPI_Barrier(comm), together(0, 0);
    MPI_Bcast(buffer, 4, MPI_INT, last, comm), together(me == last ? i4 : 0, me == last ? 0 : i4);
    MPI_Reduce(buffer, other, 4, MPI_INT, MPI_SUM, 0, comm), together(i4, me == 0 ? i4 : 0);
    MPI_Allreduce(MPI_IN_PLACE, other, 4, MPI_INT, MPI_SUM, comm), together(i4, i4);
    MPI_Scan(buffer, other, 4, MPI_INT, MPI_SUM, comm), together(i4, i4);
    MPI_Exscan(buffer, other, 4, MPI_INT, MPI_SUM, comm), together(i4, i4);
    MPI_Gather(buffer, 4, MPI_INT, other, 4, MPI_INT, 0, comm), together(i4, me == 0 ? i4 * members : 0);
    MPI_Scatter(buffer, 4, MPI_INT, other, 4, MPI_INT, 0, comm), together(me == 0 ? i4 * members : 0, i4);
    MPI_Allgather(buffer, 4, MPI_INT, other, 4, MPI_INT, comm), together(i4, i4 * members);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, other, 4, MPI_INT, comm), together(i4, i4 * members);
    MPI_Alltoall(buffer, 4, MPI_INT, other, 4, MPI_INT, comm), together(i4 * members, i4 * members);
    MPI_Gatherv(buffer, me + 1, MPI_INT, other, counts, places, MPI_INT, 0, comm), together(mine, me == 0 ? all : 0);
    MPI_Scatterv(buffer, counts, places, MPI_INT, other, me + 1, MPI_INT, 0, comm), together(me == 0 ? all : 0, mine);
    MPI_Allgatherv(buffer, me + 1, MPI_INT, other, counts, places, MPI_INT, comm), together(mine, all);
    MPI_Reduce_scatter(buffer, other, counts, MPI_INT, MPI_SUM, comm), together(all, mine);
    MPI_Reduce_scatter_block(buffer, other, 4, MPI_INT, MPI_SUM, comm), together(i4 * members, i4);
    for (int i = 0; i < members; i++) counts[i] = 2;
    MPI_Alltoallv(buffer, counts, places, MPI_INT, other, counts, places, MPI_INT, comm);
    together(2 * members * (long)sizeof(int), 2 * members * (long)sizeof(int));
}

static void posted_collectives(void)
{
    MPI_Request request[2];
    MPI_Ibarrier(MPI_COMM_WORLD, &request[0]), together(0, 0);
    MPI_Iallreduce(buffer, other, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request[1]), together(16, 16);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
}

/* A persistent collective is one operation each time that it starts. */
static void persistent_collectives(void)
{
#if MPI_VERSION >= 4
    MPI_Request request[2];
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request[0]);
    MPI_Allreduce_init(buffer, other, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, request), together(0, 0), together(16, 16);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        MPI_Wait(&request[0], MPI_STATUS_IGNORE); /* not started: nothing ends */
    }
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
#endif
}

/* Messages on communicators that come and go: ranks in them are others than in the world. */
static void communicators(void)
{
    for (int i = 0; i < 20; i++) {
        MPI_Comm half, copy;
        MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &half); /* in reverse order */
        MPI_Comm_dup(half, &copy);
        int to = size - 1 - partner;
        MPI_Sendrecv(buffer, 1, MPI_INT, to, 0, other, 1, MPI_INT, to, 0, copy, MPI_STATUS_IGNORE), out(1), in(1);
        MPI_Comm_free(&copy);
        MPI_Comm_free(&half);
    }
}

int main(int argc, char **argv)
{
    int flag;
    MPI_Initialized(&flag);
    if (flag) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    partner = rank ^ 1;
    blocking();
    open_requests();
    persistent_and_matched();
    collective(MPI_COMM_WORLD);
    collective(MPI_COMM_SELF);
    posted_collectives();
    persistent_collectives();
    MPI_Pcontrol(2, "more", 3.0);
    communicators();
    MPI_Finalize();
    MPI_Finalized(&flag);
    printf("rank %d sent %ld %ld received %ld %ld collectives %ld %ld\n", rank, sent, sent_bytes, received,
           received_bytes, collectives, given + taken);
    return flag ? 0 : 2;
}
