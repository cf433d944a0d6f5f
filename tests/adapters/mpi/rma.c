/* SPDX-License-Identifier: MIT */
/* Two ranks use one-sided communication in every way. They print how often they did each operation and how many bytes
 * moved, by world rank of the target: fdr must have recorded the same. `rma windows N`: they make and free windows
 * instead, and print the bytes that malloc gave out in the second half. `rma flushes N`: many operations in one
 * window; recording is paused in some of its flushes. */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUT = 1, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, COMPLETED = 8, CREATED, FREED };
enum { LOCK = 11, LOCK_SHARED, LOCK_ALL, WIN_SYNC };
enum { FENCE = 16, COMPLETE, UNLOCK, UNLOCK_ALL, FLUSH, FLUSH_ALL, FLUSH_LOCAL, FLUSH_LOCAL_ALL, WHATS };
enum { MOST = 4096, I = sizeof(int), MANY = 40 };
static int world_rank, in[MOST], out[MOST], memory[MOST];
static struct {
    long times, sent, received;
} did[WHATS][3]; /* by world rank of the target; the last one: no target */

static void count(int what, int target, int sent, int received)
{
    did[what][target].times++, did[what][target].sent += sent, did[what][target].received += received;
}

static void plain(MPI_Win w, int to, int world)
{
    MPI_Datatype every_other;
    MPI_Type_vector(5, 1, 2, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    MPI_Put(out, 10, MPI_INT, to, 0, 10, MPI_INT, w), count(PUT, world, 10 * I, 0);
    MPI_Put(out, 3, every_other, to, 100, 15, MPI_INT, w), count(PUT, world, 15 * I, 0);
    MPI_Get(in, 11, MPI_INT, to, 200, 11, MPI_INT, w), count(GET, world, 0, 11 * I);
    MPI_Accumulate(out, 12, MPI_INT, to, 300, 12, MPI_INT, MPI_SUM, w), count(ACCUMULATE, world, 12 * I, 0);
    MPI_Type_free(&every_other);
}

static void fetching(MPI_Win w, int to, int world)
{
    MPI_Get_accumulate(out, 13, MPI_INT, in, 13, MPI_INT, to, 400, 13, MPI_INT, MPI_SUM, w);
    count(GET_ACCUMULATE, world, 13 * I, 13 * I);
    MPI_Get_accumulate(out, 14, MPI_INT, in + 100, 14, MPI_INT, to, 500, 14, MPI_INT, MPI_NO_OP, w);
    count(GET_ACCUMULATE, world, 0, 14 * I);
    MPI_Fetch_and_op(out, in + 200, MPI_INT, to, 600, MPI_SUM, w), count(FETCH_AND_OP, world, I, I);
    MPI_Fetch_and_op(out, in + 201, MPI_INT, to, 601, MPI_NO_OP, w), count(FETCH_AND_OP, world, 0, I);
    MPI_Compare_and_swap(out, out + 1, in + 202, MPI_INT, to, 602, w), count(COMPARE_AND_SWAP, world, I, I);
}

static void requests(MPI_Win w, int to, int world)
{
    MPI_Request r[MANY];
    int done = 0;
    MPI_Rput(out, 20, MPI_INT, to, 700, 20, MPI_INT, w, &r[0]), count(PUT, world, 20 * I, 0);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Rget(in, 21, MPI_INT, to, 800, 21, MPI_INT, w, &r[0]), count(GET, world, 0, 21 * I);
    while (!done) MPI_Test(&r[0], &done, MPI_STATUS_IGNORE);
    MPI_Raccumulate(out, 22, MPI_INT, to, 900, 22, MPI_INT, MPI_SUM, w, &r[0]), count(ACCUMULATE, world, 22 * I, 0);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Rget_accumulate(out, 23, MPI_INT, in, 23, MPI_INT, to, 1000, 23, MPI_INT, MPI_SUM, w, &r[0]);
    count(GET_ACCUMULATE, world, 23 * I, 23 * I);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY; i++)
        MPI_Rput(out, 1, MPI_INT, to, 1100 + i, 1, MPI_INT, w, &r[i]), count(PUT, world, I, 0);
    MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
}

static void large_counts(MPI_Win w, int to, int world)
{
#if MPI_VERSION >= 4
    MPI_Request r[2];
    MPI_Put_c(out, 30, MPI_INT, to, 1200, 30, MPI_INT, w), count(PUT, world, 30 * I, 0);
    MPI_Get_c(in, 31, MPI_INT, to, 1300, 31, MPI_INT, w), count(GET, world, 0, 31 * I);
    MPI_Accumulate_c(out, 32, MPI_INT, to, 1400, 32, MPI_INT, MPI_SUM, w), count(ACCUMULATE, world, 32 * I, 0);
    MPI_Get_accumulate_c(out, 33, MPI_INT, in + 100, 33, MPI_INT, to, 1500, 33, MPI_INT, MPI_SUM, w);
    count(GET_ACCUMULATE, world, 33 * I, 33 * I);
    MPI_Rput_c(out, 34, MPI_INT, to, 1600, 34, MPI_INT, w, &r[0]), count(PUT, world, 34 * I, 0);
    MPI_Rget_c(in + 200, 35, MPI_INT, to, 1700, 35, MPI_INT, w, &r[1]), count(GET, world, 0, 35 * I);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
#else
    (void)w, (void)to, (void)world;
#endif
}

/* Neither is recorded: nothing moves. */
static void nothing(MPI_Win w)
{
    MPI_Put(out, 10, MPI_INT, MPI_PROC_NULL, 0, 10, MPI_INT, w);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    if (MPI_Put(out, 10, MPI_INT, 77, 0, 10, MPI_INT, w) == MPI_SUCCESS) exit(3);
    MPI_Win_set_errhandler(w, MPI_ERRORS_ARE_FATAL);
}

static void fences(MPI_Win w, int to, int world)
{
    MPI_Win_fence(MPI_MODE_NOPRECEDE, w), count(FENCE, 2, 0, 0);
    plain(w, to, world);
    fetching(w, to, world);
    nothing(w);
    MPI_Win_fence(0, w), count(FENCE, 2, 0, 0);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w), count(FENCE, 2, 0, 0);
}

static void locks(MPI_Win w, int to, int world)
{
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w), count(LOCK_SHARED, world, 0, 0);
    plain(w, to, world);
    MPI_Win_flush_local(to, w), count(FLUSH_LOCAL, world, 0, 0);
    MPI_Win_flush(to, w), count(FLUSH, world, 0, 0);
    requests(w, to, world);
    MPI_Win_unlock(to, w), count(UNLOCK, world, 0, 0);
    MPI_Win_lock_all(0, w), count(LOCK_ALL, 2, 0, 0);
    fetching(w, to, world);
    MPI_Win_sync(w), count(WIN_SYNC, world_rank, 0, 0);
    MPI_Win_flush_local_all(w), count(FLUSH_LOCAL_ALL, 2, 0, 0);
    large_counts(w, to, world);
    MPI_Win_flush_all(w), count(FLUSH_ALL, 2, 0, 0);
    MPI_Win_unlock_all(w), count(UNLOCK_ALL, 2, 0, 0);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w), count(LOCK, world, 0, 0);
    MPI_Win_flush(to, w), count(FLUSH, world, 0, 0); /* of nothing */
    MPI_Put(out, 10, MPI_INT, to, 0, 10, MPI_INT, w), count(PUT, world, 10 * I, 0);
    MPI_Win_unlock(to, w), count(UNLOCK, world, 0, 0);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, !to, MPI_MODE_NOCHECK, w), count(LOCK, !world, 0, 0);
    MPI_Win_unlock(!to, w), count(UNLOCK, !world, 0, 0);
}

static void groups(MPI_Win w, MPI_Comm comm, int to, int world)
{
    MPI_Group all, other;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, 1, &to, &other);
    MPI_Win_post(other, 0, w);
    MPI_Win_start(other, 0, w);
    MPI_Put(out, 40, MPI_INT, to, 0, 40, MPI_INT, w), count(PUT, world, 40 * I, 0);
    MPI_Win_complete(w), count(COMPLETE, 2, 0, 0);
    MPI_Win_wait(w);
    MPI_Group_free(&all);
    MPI_Group_free(&other);
}

static void made(void) { count(CREATED, 2, 0, 0); }
static void free_window(MPI_Win *w) { MPI_Win_free(w), count(FREED, 2, 0, 0); }

static void other_windows(MPI_Comm comm)
{
    MPI_Win w;
    int *base;
    MPI_Win_allocate(64 * I, I, MPI_INFO_NULL, comm, &base, &w), made();
    MPI_Win_fence(0, w), count(FENCE, 2, 0, 0);
    MPI_Put(out, 1, MPI_INT, 0, 0, 1, MPI_INT, w), count(PUT, 1, I, 0); /* rank 0 there is 1 in the world */
    MPI_Win_fence(0, w), count(FENCE, 2, 0, 0);
    free_window(&w);
    MPI_Win_allocate_shared(64 * I, I, MPI_INFO_NULL, comm, &base, &w), made();
    free_window(&w);
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w), made();
    free_window(&w);
}

static void all_operations(void)
{
    MPI_Comm reversed;
    MPI_Win w;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
    MPI_Win_create(memory, sizeof memory, I, MPI_INFO_NULL, reversed, &w), made();
    int to = world_rank, world = !world_rank; /* the other rank has the own number there */
    fences(w, to, world);
    locks(w, to, world);
    groups(w, reversed, to, world);
    free_window(&w);
    other_windows(reversed);
    MPI_Comm_free(&reversed);
}

static long in_use(void) { return (long)mallinfo2().uordblks + (long)mallinfo2().hblkhd; }

static void make_and_free(int rounds)
{
    MPI_Win w;
    long half = 0;
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 2) half = in_use();
        MPI_Win_create(memory, sizeof memory, I, MPI_INFO_NULL, MPI_COMM_WORLD, &w), made();
        MPI_Win_fence(0, w), count(FENCE, 2, 0, 0);
        MPI_Put(out, 1, MPI_INT, !world_rank, 0, 1, MPI_INT, w), count(PUT, !world_rank, I, 0);
        MPI_Win_fence(0, w), count(FENCE, 2, 0, 0);
        free_window(&w);
    }
    fprintf(stderr, "grown %d %ld\n", world_rank, in_use() - half);
}

extern void fdr_pause(void) __attribute__((weak)), fdr_resume(void) __attribute__((weak));

static void flush_paused(int to, MPI_Win w)
{
    if (fdr_pause) fdr_pause();
    MPI_Win_flush(to, w);
    if (fdr_resume) fdr_resume();
}

static void flush_often(int rounds)
{
    MPI_Win w;
    int to = !world_rank;
    MPI_Win_create(memory, sizeof memory, I, MPI_INFO_NULL, MPI_COMM_WORLD, &w), made();
    MPI_Win_lock_all(0, w), count(LOCK_ALL, 2, 0, 0);
    for (int i = 0; i < rounds; i++) {
        MPI_Put(out, 1 + i % 7, MPI_INT, to, 0, 1 + i % 7, MPI_INT, w), count(PUT, to, (1 + i % 7) * I, 0);
        if (i % 3 == 0) MPI_Win_flush_local_all(w), count(FLUSH_LOCAL_ALL, 2, 0, 0);
        if (i % 4 == 0) MPI_Win_flush(world_rank, w), count(FLUSH, world_rank, 0, 0);
        if (i % 50 == 0) flush_paused(to, w);
        else if (i % 5 == 0) MPI_Win_flush(to, w), count(FLUSH, to, 0, 0);
    }
    MPI_Win_unlock_all(w), count(UNLOCK_ALL, 2, 0, 0);
    free_window(&w);
}

static void print(void)
{
    for (int what = 0; what < WHATS; what++)
        for (int t = 0; t < 3; t++)
            if (did[what][t].times)
                printf("rank %d what %d target %d times %ld sent %ld received %ld\n", world_rank, what, t < 2 ? t : -1,
                       did[what][t].times, did[what][t].sent, did[what][t].received);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    if (argc > 2 && !strcmp(argv[1], "windows")) make_and_free(atoi(argv[2]));
    else if (argc > 2) flush_often(atoi(argv[2]));
    else all_operations();
    MPI_Finalize();
    print();
    return 0;
}
