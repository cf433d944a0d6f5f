/* SPDX-License-Identifier: MIT */
/* Threads of two ranks exchange messages at the same time (MPI_THREAD_MULTIPLE); see traffic.c. Each pair of threads
 * has a communicator of its own. More messages are open at once than fit on a stack. A library without that level
 * prints the same, by one thread. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 20, MANY = 100 };
static int rank, partner;
static MPI_Comm comm[THREADS];

static void *exchange(void *argument)
{
    int me = (int)(long)argument, out = rank, in[MANY], flag;
    MPI_Request request[2 * MANY];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, me, comm[me], &request[i]);
            MPI_Isend(&out, 1, MPI_INT, partner, me, comm[me], &request[MANY + i]);
        }
        if (round % 2) MPI_Waitall(2 * MANY, request, MPI_STATUSES_IGNORE);
        else do
                MPI_Testall(2 * MANY, request, &flag, MPI_STATUSES_IGNORE);
            while (!flag);
        MPI_Barrier(comm[me]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    partner = rank ^ 1;
    for (int i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
    for (long i = 0; i < THREADS; i++)
        if (provided < MPI_THREAD_MULTIPLE) exchange((void *)i);
        else pthread_create(&thread[i], NULL, exchange, (void *)i);
    for (int i = 0; i < THREADS && provided >= MPI_THREAD_MULTIPLE; i++) pthread_join(thread[i], NULL);
    MPI_Finalize();
    long messages = THREADS * ROUNDS * MANY;
    printf("rank %d sent %ld %ld received %ld %ld collectives %d 0\n", rank, messages, 4 * messages, messages,
           4 * messages, THREADS * ROUNDS);
    return 0;
}
