/* SPDX-License-Identifier: MIT */
/* Ranks stand outside of MPI for ever: even ones in a sleep, odd ones in a read. The last rank waits for them in MPI.
 * With the argument "apart" each stands in regions of its own. */
#include <fdr/fdr.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int rank, size;

static fdr_region region(const char *name) { return fdr_region_define(name, NULL, 0); }

__attribute__((noinline)) static void relax(void)
{
    int ends[2];
    char c;
    fdr_enter(region("relax"));
    if (rank % 2 == 0) sleep(100000);
    else if (pipe(ends) || read(ends[0], &c, 1) < 0) abort();
    fdr_leave(region("relax"));
}

__attribute__((noinline)) static void solve(void)
{
    fdr_enter(region("solve"));
    relax();
    fdr_leave(region("solve"));
}

static void solve_apart(void)
{
    char name[32];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "rank %d, step %d", rank, i);
        fdr_enter(region(name));
    }
    relax();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1) solve_apart();
    else solve();
    return MPI_Finalize();
}
