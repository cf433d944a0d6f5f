/* SPDX-License-Identifier: MIT */
/* Two ranks make and free communicators again and again. Every 8th has a barrier, and a receive that is completed only
 * after the communicator is freed. The others are unused. Between them messages on the world, each tag used by few. At
 * the end 1,500 are there at once. With `hang` rank 0 then waits on the last one for ever. Prints the messages sent on
 * the world, and bytes that malloc gave out in the second half of the rounds. */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { AT_ONCE = 1500 };
static int rank, partner;

static void use(MPI_Comm comm, int i)
{
    MPI_Request r;
    int in;
    MPI_Irecv(&in, 1, MPI_INT, partner, 1, comm, &r);
    MPI_Send(&i, 1, MPI_INT, partner, 1, comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (in != i) exit(3);
}

static void on_the_world(int i)
{
    int in;
    MPI_Sendrecv(&i, 1, MPI_INT, partner, i % 16, &in, 1, MPI_INT, partner, i % 16, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void a_round(int i)
{
    MPI_Comm comm;
    if (i % 3) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    on_the_world(i);
    if (i % 8 == 0) use(comm, i);
    else MPI_Comm_free(&comm);
}

static long in_use(void) { return (long)mallinfo2().uordblks + (long)mallinfo2().hblkhd; }

static void many_at_once(void)
{
    static MPI_Comm comm[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) MPI_Comm_dup(MPI_COMM_SELF, &comm[i]);
    for (int i = 0; i < AT_ONCE; i++) MPI_Barrier(comm[i]);
    for (int i = 0; i < AT_ONCE; i++) MPI_Comm_free(&comm[i]);
}

int main(int argc, char **argv)
{
    int rounds = atoi(argv[1]);
    long half = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    partner = rank ^ 1;
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 2) half = in_use();
        a_round(i);
    }
    printf("rank %d world %d\n", rank, rounds);
    fprintf(stderr, "grown %d %ld\n", rank, in_use() - half);
    if (argc > 2) {
        MPI_Comm last;
        MPI_Comm_dup(MPI_COMM_WORLD, &last);
        if (rank) pause();
        MPI_Barrier(last);
    }
    many_at_once();
    MPI_Finalize();
    return 0;
}
