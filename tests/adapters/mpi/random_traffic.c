/* SPDX-License-Identifier: MIT */
/* Random traffic whose truth is in its sizes: message n of a sender, over all envelopes, has n bytes. So a pair is
 * right if both ends have the same number of bytes. Blocking and non-blocking, persistent and probed messages,
 * receives from any source and with any tag, cancelled receives, on several communicators.
 *
 *     random_traffic SEED ROUNDS [THREADS]
 *
 * In each round every rank knows all messages, by the seed: who sends to whom, on which communicator, in which way.
 * With THREADS each thread has tags of its own, and all share the communicators. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 24, COMMS = 4, THREADS = 8 };
static int rank, size, level, thread_count, rounds;
static unsigned first_seed;
static MPI_Comm comm[COMMS], own_comm[THREADS];
static int serial; /* of the newest message that this rank has sent */

struct message {
    int from, to, comm, tag, way, wild;
};

static unsigned draw(unsigned long *seed, unsigned below)
{
    *seed = *seed * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(*seed >> 33) % below;
}

/* The messages of a round, alike on all ranks. wild: 1 from any source, 2 with any tag. Of two ranks each receive finds
 * the message of its own place in the plan, whatever is wild. Else all receives of a communicator are wild alike, so
 * that none is left without a message. */
static int plan(unsigned long *seed, int thread, struct message *m)
{
    int n = 4 + (int)draw(seed, MOST - 4), wild[COMMS];
    for (int i = 0; i < COMMS; i++) wild[i] = (int)draw(seed, thread_count > 1 ? 2 : 4);
    for (int i = 0; i < n; i++) {
        m[i].from = (int)draw(seed, (unsigned)size);
        m[i].to = (m[i].from + 1 + (int)draw(seed, (unsigned)size - 1)) % size;
        m[i].comm = (int)draw(seed, COMMS);
        m[i].tag = thread * 10 + (int)draw(seed, 3);
        m[i].way = (int)draw(seed, 5);
        m[i].wild = wild[m[i].comm];
        if (draw(seed, 2) && size == 2) m[i].wild = 0;
    }
    return n;
}

static char *buffer(void) { return malloc(1 << 20); }

static int next_bytes(void) { return __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED); }

/* Posts the sends of a round; all complete without a receive, or later. */
static int post_sends(const struct message *m, int n, MPI_Request *request, char *out)
{
    int posted = 0;
    for (int i = 0; i < n; i++) {
        if (m[i].from != rank) continue;
        int bytes = next_bytes();
        switch (m[i].way) {
        case 0: MPI_Issend(out, bytes, MPI_CHAR, m[i].to, m[i].tag, comm[m[i].comm], &request[posted]); break;
        case 1:
            MPI_Send_init(out, bytes, MPI_CHAR, m[i].to, m[i].tag, comm[m[i].comm], &request[posted]);
            MPI_Start(&request[posted]);
            break;
        default: MPI_Isend(out, bytes, MPI_CHAR, m[i].to, m[i].tag, comm[m[i].comm], &request[posted]); break;
        }
        posted++;
    }
    return posted;
}

static void probed(int from, int tag, MPI_Comm c, char *in)
{
    MPI_Message message;
    MPI_Status status;
    MPI_Mprobe(from, tag, c, &message, &status);
    MPI_Mrecv(in, 1 << 20, MPI_CHAR, &message, MPI_STATUS_IGNORE);
}

/* Cancels a receive that stands before the others of its envelope. It may have got its message before: then true. */
static int got_before_cancel(char *to, int from, int tag, MPI_Comm c)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled;
    MPI_Irecv(to, 1 << 20, MPI_CHAR, from, tag, c, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    return !cancelled;
}

static int post_receives(const struct message *m, int n, MPI_Request *request, char **in, unsigned long *seed)
{
    int posted = 0;
    for (int i = 0; i < n; i++) {
        if (m[i].to != rank) continue;
        int from = m[i].wild & 1 ? MPI_ANY_SOURCE : m[i].from, tag = m[i].wild & 2 ? MPI_ANY_TAG : m[i].tag;
        MPI_Comm c = comm[m[i].comm];
        char *to = in[i];
        if (draw(seed, 8) == 0 && got_before_cancel(to, from, tag, c)) continue;
        if (m[i].way == 2) {
            MPI_Recv_init(to, 1 << 20, MPI_CHAR, from, tag, c, &request[posted]);
            MPI_Start(&request[posted]);
        } else {
            MPI_Irecv(to, 1 << 20, MPI_CHAR, from, tag, c, &request[posted]);
        }
        posted++;
    }
    return posted;
}

/* In every fourth round the receives are blocking, in the order of the plan. */
static void receive_one_by_one(const struct message *m, int n, char *in)
{
    for (int i = 0; i < n; i++) {
        if (m[i].to != rank) continue;
        int from = m[i].wild & 1 ? MPI_ANY_SOURCE : m[i].from, tag = m[i].wild & 2 ? MPI_ANY_TAG : m[i].tag;
        if (m[i].way == 3) probed(from, tag, comm[m[i].comm], in);
        else MPI_Recv(in, 1 << 20, MPI_CHAR, from, tag, comm[m[i].comm], MPI_STATUS_IGNORE);
    }
}

static void finish(MPI_Request *request, int n, int how)
{
    if (how == 0) {
        MPI_Status status[2 * MOST];
        MPI_Waitall(n, request, status);
    } else {
        for (int left = n, index; left; left--) {
            MPI_Waitany(n, request, &index, MPI_STATUS_IGNORE);
            if (index != MPI_UNDEFINED && request[index] != MPI_REQUEST_NULL) MPI_Request_free(&request[index]);
        }
    }
    for (int i = 0; i < n; i++)
        if (request[i] != MPI_REQUEST_NULL) MPI_Request_free(&request[i]);
}

static void *traffic(void *argument)
{
    int thread = (int)(long)argument;
    unsigned long common = first_seed + 7919ul * (unsigned long)thread,
                  own = common + 104729ul * (unsigned long)(rank + 1);
    char *out = buffer(), *in[MOST];
    for (int i = 0; i < MOST; i++) in[i] = buffer();
    for (int round = 0; round < rounds; round++) {
        struct message m[MOST];
        MPI_Request request[2 * MOST];
        int n = plan(&common, thread, m), count;
        if (draw(&common, 4) == 0) {
            count = post_sends(m, n, request, out);
            receive_one_by_one(m, n, in[0]);
        } else if (draw(&own, 2)) {
            count = post_receives(m, n, request, in, &own);
            count += post_sends(m, n, request + count, out);
        } else {
            count = post_sends(m, n, request, out);
            count += post_receives(m, n, request + count, in, &own);
        }
        finish(request, count, (int)draw(&own, 2));
        MPI_Barrier(own_comm[thread]); /* or a wild receive takes a message of the next round */
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    if (argc < 3) return 2;
    first_seed = (unsigned)atoi(argv[1]);
    rounds = atoi(argv[2]);
    thread_count = argc > 3 ? atoi(argv[3]) : 1;
    MPI_Init_thread(&argc, &argv, thread_count > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    if (thread_count > 1 && level < MPI_THREAD_MULTIPLE) thread_count = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    comm[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm[2]);
    MPI_Comm_dup(comm[1], &comm[3]);
    for (int i = 0; i < thread_count; i++) MPI_Comm_dup(comm[1], &own_comm[i]);
    for (long i = 0; i < thread_count; i++)
        if (thread_count == 1) traffic((void *)i);
        else pthread_create(&thread[i], NULL, traffic, (void *)i);
    for (int i = 0; i < thread_count && thread_count > 1; i++) pthread_join(thread[i], NULL);
    MPI_Finalize();
    printf("rank %d sent %d\n", rank, serial);
    return 0;
}
