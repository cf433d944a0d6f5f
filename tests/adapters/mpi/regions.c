/* SPDX-License-Identifier: MIT */
/* Two ranks exchange messages from three regions of their own. They count the messages and bytes of each function of
 * MPI, of each region and of each communicator, and print them. fdr must say the same, whatever it has given back.
 *
 *     regions ROUNDS [kill]     rank 0 ends by SIGKILL, and rank 1 waits for its launcher's signal */
#include <fdr/fdr.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>

enum { MOST = 512, NAMES = 64 };
static int rank, partner, out_buffer[MOST * 2], in_buffer[MOST * 2];
static MPI_Comm second;

static struct counted {
    const char *kind, *name;
    long long sends, sent, receives, received, collectives, given, taken;
} counted[NAMES];

static struct counted *row(const char *kind, const char *name)
{
    int i = 0;
    while (counted[i].name && (strcmp(counted[i].kind, kind) || strcmp(counted[i].name, name))) i++;
    counted[i].kind = kind, counted[i].name = name;
    return &counted[i];
}

static const char *region = "[no region]"; /* of this program, under way */
static struct counted *place[3];
static int places(const char *function, const char *comm)
{
    place[0] = row("in", function), place[1] = row("caller", region), place[2] = comm ? row("comm", comm) : NULL;
    return comm ? 3 : 2;
}

static void out(const char *function, int ints)
{
    for (int i = places(function, NULL); i-- > 0;) place[i]->sends++, place[i]->sent += ints * 4;
}
static void in(const char *function, int ints)
{
    for (int i = places(function, NULL); i-- > 0;) place[i]->receives++, place[i]->received += ints * 4;
}
static void together(const char *function, const char *comm, int give, int take)
{
    for (int i = places(function, comm); i-- > 0;)
        place[i]->collectives++, place[i]->given += give * 4, place[i]->taken += take * 4;
}

/* A collective of either communicator. */
static MPI_Comm comm_of(int i) { return i % 3 ? MPI_COMM_WORLD : second; }
static const char *name_of(int i) { return i % 3 ? "world" : "second"; }

static void halo(int i)
{
    MPI_Request r[4];
    int n = i % MOST;
    MPI_Irecv(in_buffer, MOST, MPI_INT, partner, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(in_buffer + MOST, MOST, MPI_INT, MPI_ANY_SOURCE, 2, second, &r[1]);
    MPI_Isend(out_buffer, n, MPI_INT, partner, 1, MPI_COMM_WORLD, &r[2]), out("MPI_Isend", n);
    MPI_Issend(out_buffer, 1, MPI_INT, partner, 2, second, &r[3]), out("MPI_Issend", 1);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE), in("MPI_Waitall", n), in("MPI_Waitall", 1);
}

static void blocking(int i)
{
    int n = i * 7 % MOST;
    if (rank == 0) MPI_Send(out_buffer, n, MPI_INT, partner, 3, MPI_COMM_WORLD), out("MPI_Send", n);
    else MPI_Recv(in_buffer, MOST, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE), in("MPI_Recv", n);
    MPI_Sendrecv(out_buffer, 3, MPI_INT, partner, 4, in_buffer, MOST, MPI_INT, partner, 4, second, MPI_STATUS_IGNORE);
    out("MPI_Sendrecv", 3), in("MPI_Sendrecv", 3);
}

static void all(int i)
{
    MPI_Request r;
    int n = i % 9;
    MPI_Allreduce(out_buffer, in_buffer, n, MPI_INT, MPI_SUM, comm_of(i));
    together("MPI_Allreduce", name_of(i), n, n);
    MPI_Bcast(out_buffer, 5, MPI_INT, 1, comm_of(i));
    together("MPI_Bcast", name_of(i), rank == 1 ? 5 : 0, rank == 1 ? 0 : 5);
    MPI_Iallreduce(out_buffer, in_buffer, n + 1, MPI_INT, MPI_SUM, comm_of(i + 1), &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE), together("MPI_Wait", name_of(i + 1), n + 1, n + 1);
    MPI_Alltoall(out_buffer, 2, MPI_INT, in_buffer, 2, MPI_INT, comm_of(i));
    together("MPI_Alltoall", name_of(i), 4, 4);
}

static void persistent(int rounds)
{
    MPI_Request r[2];
    MPI_Send_init(out_buffer, 11, MPI_INT, partner, 5, MPI_COMM_WORLD, &r[0]);
    MPI_Recv_init(in_buffer, 11, MPI_INT, partner, 5, MPI_COMM_WORLD, &r[1]);
    for (int i = 0; i < rounds; i++) {
        MPI_Startall(2, r), out("MPI_Startall", 11);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE), in("MPI_Waitall", 11);
    }
    MPI_Request_free(&r[0]), MPI_Request_free(&r[1]);
#if MPI_VERSION >= 4
    MPI_Allreduce_init(out_buffer, in_buffer, 6, MPI_INT, MPI_SUM, second, MPI_INFO_NULL, &r[0]);
    for (int i = 0; i < rounds; i++) {
        MPI_Start(&r[0]);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE), together("MPI_Wait", "second", 6, 6);
    }
    MPI_Request_free(&r[0]);
#endif
}

static void within(fdr_region id, const char *name, void (*act)(int), int i)
{
    fdr_enter(id), region = name;
    act(i);
    fdr_leave(id), region = "[no region]";
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, kills = argc > 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    MPI_Comm_set_name(second, "second");
    partner = 1 - rank;
    fdr_region exchange = fdr_region_define("exchange", "regions.c", 1),
               wait = fdr_region_define("in_turn", "regions.c", 2), sums = fdr_region_define("sums", "regions.c", 3),
               work = fdr_region_define("work", "regions.c", 4);
    for (int i = 0; i < rounds; i++) {
        within(exchange, "exchange", halo, i);
        within(wait, "in_turn", blocking, i);
        within(sums, "sums", all, i);
        for (int k = 0; k < 30; k++) fdr_enter(work), fdr_leave(work);
    }
    persistent(20);
    for (int i = 0; i < NAMES && counted[i].name; i++)
        printf("%d %s %s %lld %lld %lld %lld %lld %lld %lld\n", rank, counted[i].kind,
               strcmp(counted[i].name, "[no region]") ? counted[i].name : "-", counted[i].sends, counted[i].sent,
               counted[i].receives, counted[i].received, counted[i].collectives, counted[i].given, counted[i].taken);
    fflush(stdout);
    if (kills && rank == 0) raise(SIGKILL);
    while (kills) pause();
    MPI_Comm_free(&second);
    MPI_Finalize();
    return 0;
}
