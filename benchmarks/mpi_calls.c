/* SPDX-License-Identifier: MIT */
/* Times a wrapped MPI call beside the call itself and beside a recorded region. For mpi.py, which compiles it with the
 * MPI library's own compiler and preloads libfdr-mpi.
 *
 *     mpi_calls WHAT CALLS     prints ns a call
 *
 * WHAT:
 * - direct, wrapped: MPI_Comm_rank
 * - region: fdr_enter and fdr_leave around nothing
 * - send-direct, send-wrapped: an MPI_Sendrecv of 8 bytes with itself
 * - poll-direct, poll-wrapped: an MPI_Testany of two receives that do not end
 * - put-direct, put-wrapped: an MPI_Put of 8 bytes to itself */
#include <fdr/fdr.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void puts_to_itself(int wrapped, long n)
{
    static double memory;
    double out = 2;
    MPI_Win w;
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_SELF, &w);
    MPI_Win_lock_all(0, w);
    if (wrapped)
        for (long i = 0; i < n; i++) MPI_Put(&out, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, w);
    else
        for (long i = 0; i < n; i++) PMPI_Put(&out, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, w);
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
}

static void polls(int wrapped, long n)
{
    double in[2];
    MPI_Request r[2];
    int index, flag;
    for (int i = 0; i < 2; i++) MPI_Irecv(&in[i], 1, MPI_DOUBLE, 0, i, MPI_COMM_SELF, &r[i]);
    if (wrapped)
        for (long i = 0; i < n; i++) MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE);
    else
        for (long i = 0; i < n; i++) PMPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++) MPI_Cancel(&r[i]);
    for (int i = 0; i < 2; i++) MPI_Wait(&r[i], MPI_STATUS_IGNORE);
}

static void calls(const char *what, long n)
{
    int rank;
    double in = 1, out = 2;
    MPI_Comm self = MPI_COMM_SELF;
    fdr_region region = fdr_region_define("region", "mpi_calls.c", 1);
    if (!strcmp(what, "direct"))
        for (long i = 0; i < n; i++) PMPI_Comm_rank(self, &rank);
    else if (!strcmp(what, "wrapped"))
        for (long i = 0; i < n; i++) MPI_Comm_rank(self, &rank);
    else if (!strcmp(what, "region"))
        for (long i = 0; i < n; i++) fdr_enter(region), fdr_leave(region);
    else if (!strcmp(what, "send-direct"))
        for (long i = 0; i < n; i++)
            PMPI_Sendrecv(&out, 1, MPI_DOUBLE, 0, 1, &in, 1, MPI_DOUBLE, 0, 1, self, MPI_STATUS_IGNORE);
    else if (!strcmp(what, "send-wrapped"))
        for (long i = 0; i < n; i++)
            MPI_Sendrecv(&out, 1, MPI_DOUBLE, 0, 1, &in, 1, MPI_DOUBLE, 0, 1, self, MPI_STATUS_IGNORE);
    else if (!strcmp(what, "poll-direct") || !strcmp(what, "poll-wrapped")) polls(!strcmp(what, "poll-wrapped"), n);
    else if (!strcmp(what, "put-direct") || !strcmp(what, "put-wrapped"))
        puts_to_itself(!strcmp(what, "put-wrapped"), n);
}

int main(int argc, char **argv)
{
    if (argc != 3) return 64;
    long n = atol(argv[2]);
    MPI_Init(&argc, &argv);
    calls(argv[1], n / 10 + 1);
    double from = now();
    calls(argv[1], n);
    printf("%.2f\n", (now() - from) / (double)n);
    MPI_Finalize();
    return 0;
}
