/* SPDX-License-Identifier: MIT */
/* deaths HOW: two ranks exchange 20 messages; then rank 1 ends as HOW says, and rank 0 waits for it in MPI_Recv. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end(const char *how)
{
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "abort")) MPI_Abort(MPI_COMM_WORLD, 9);
    if (!strcmp(how, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(how, "exit")) exit(0);
    if (!strcmp(how, "_exit")) _exit(5);
    puts("hangs");
    fflush(stdout);
    for (;;) pause();
}

int main(int argc, char **argv)
{
    int rank, token = 0;
    const char *how = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 20; i++) {
        if (rank == 0) MPI_Send(&i, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
        else MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1) end(how);
    MPI_Recv(&token, 1, MPI_INT, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
