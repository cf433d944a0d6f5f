/* SPDX-License-Identifier: MIT */
/* An MPI program that hangs, or dies, in the way of its argument, after some healthy rounds. Rank 1 is the one to
 * blame. With a C++ compiler a thread of it throws. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static volatile long turns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void all(void)
{
    int in = 1, out;
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void message_round(void)
{
    int x = 0;
    MPI_Request r;
    MPI_Irecv(&x, 1, MPI_INT, (rank + size - 1) % size, 3, MPI_COMM_WORLD, &r);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void read_for_ever(void)
{
    int ends[2];
    char c;
    if (pipe(ends) || read(ends[0], &c, 1) < 0) abort();
}

static void receive(int from)
{
    int x;
    MPI_Recv(&x, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void wait_all(int from)
{
    int x[2];
    MPI_Request r[2];
    MPI_Status done[2];
    MPI_Irecv(&x[0], 1, MPI_INT, from, 8, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(&x[1], 1, MPI_INT, from, 9, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, done);
}

static void *throws(void *unused)
{
#ifdef __cplusplus
    throw "lost";
#endif
    return unused;
}

/* The others have waited for a while when it dies. */
static void die_late(const char *how)
{
    pthread_t t;
    sleep(1);
    if (!strcmp(how, "segv")) *(int *volatile)16 = 1;
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "kill")) raise(SIGKILL);
    if (!strcmp(how, "throw")) pthread_create(&t, NULL, throws, NULL), pthread_join(t, NULL);
}

static void poll_for_ever(void)
{
    for (int there = 0; !there;) MPI_Iprobe(0, 99, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
}

/* Rounds in which rank 1 takes a second longer than the others. */
static void go_slowly(void)
{
    for (;;) {
        if (rank == 1) sleep(1);
        all();
    }
}

static void split_and_spin(void)
{
    MPI_Comm other;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &other);
    while (rank == 1) turns++;
    MPI_Barrier(other);
}

static void *serve(void *unused)
{
    int x;
    MPI_Recv(&x, 1, MPI_INT, 0, 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return unused;
}

/* A thread of each rank waits for a request that comes at the end only, if at all. */
static void serve_and_pause(void)
{
    pthread_t t;
    pthread_create(&t, NULL, serve, NULL);
    for (int i = 0; i < 20; i++) all(), message_round();
    while (rank == 1) pause();
}

/* The faults in which more than one rank takes part. */
static void go_wrong_together(const char *how)
{
    int x = 0;
    if (!strcmp(how, "healthy"))
        for (;;) all(), message_round();
    if (!strcmp(how, "slow")) go_slowly();
    if (!strcmp(how, "circle")) receive((rank + 1) % size);
    if (!strcmp(how, "waitall") && rank < 2) wait_all(1 - rank);
    if (!strcmp(how, "pair") && rank < 2) receive(1 - rank);
    if (!strcmp(how, "mismatch") && rank == 1) MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(how, "root")) MPI_Reduce(&rank, &x, 1, MPI_INT, MPI_SUM, rank == 1 ? 1 : 0, MPI_COMM_WORLD);
    if (!strcmp(how, "omit")) {
        if (rank != 1) all();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!strcmp(how, "split")) split_and_spin();
    if (!strcmp(how, "service")) serve_and_pause();
}

__attribute__((noinline)) static void go_wrong(const char *how)
{
    go_wrong_together(how);
    if (rank != 1) return;
    if (!strcmp(how, "compute"))
        for (;;) turns++;
    if (!strcmp(how, "poll")) poll_for_ever();
    if (!strcmp(how, "pause"))
        for (;;) pause();
    if (!strcmp(how, "stop")) raise(SIGSTOP);
    if (!strcmp(how, "lock")) pthread_mutex_lock(&lock), pthread_mutex_lock(&lock);
    if (!strcmp(how, "io")) read_for_ever();
    if (!strcmp(how, "skip")) MPI_Finalize(), exit(0);
    die_late(how);
}

int main(int argc, char **argv)
{
    int threads;
    if (!strcmp(argv[1], "service")) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    else MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 5; i++) all(), message_round();
    go_wrong(argv[1]);
    all();
    MPI_Finalize();
    return 0;
}
