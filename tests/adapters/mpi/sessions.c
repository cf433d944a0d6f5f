/* SPDX-License-Identifier: MIT */
/* Sessions and large counts of MPI 4, two ranks. Communicators come from groups of sessions, some of equal members and
 * equal name. On each, messages and collectives with MPI_Count; the payload says what must arrive.
 * `sessions`: two of them, without MPI_Init. `both`: MPI_Init, and a session that lasts longer. Prints what it
 * received. Status 77: the library is older. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION < 4
int main(void) { return 77; }
#else
static int rank;
static long sum;

static MPI_Session begin(void)
{
    MPI_Session s;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s)) exit(3);
    return s;
}

/* backwards: the ranks of the communicator are not those of the world. */
static MPI_Comm from_group(MPI_Session s, const char *name, int backwards)
{
    static int order[] = {1, 0};
    MPI_Group world, group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(s, "mpi://WORLD", &world);
    group = world;
    if (backwards) MPI_Group_incl(world, 2, order, &group);
    MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    if (backwards) MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Comm_rank(comm, &rank);
    return comm;
}

static void messages(MPI_Comm comm, int count, int seed)
{
    int out[100], in[100], other = 1 - rank;
    MPI_Request r[2];
    MPI_Status status;
    for (int i = 0; i < count; i++) out[i] = seed + i + rank;
    if (rank) MPI_Send_c(out, count, MPI_INT, other, 5, comm);
    else MPI_Recv_c(in, count, MPI_INT, other, 5, comm, MPI_STATUS_IGNORE);
    if (!rank && in[count - 1] != seed + count) exit(4);
    MPI_Irecv_c(in, count, MPI_INT, other, 6, comm, &r[0]);
    MPI_Isend_c(out, count, MPI_INT, other, 6, comm, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Sendrecv_c(out, count, MPI_INT, other, 7, in, 100, MPI_INT, other, 7, comm, &status);
    if (in[count - 1] != seed + count - 1 + other) exit(5);
    sum += in[0] + status.MPI_TAG;
}

static void collectives(MPI_Comm comm, int count)
{
    long in[100], out[100] = {0};
    for (int i = 0; i < count; i++) in[i] = i + rank;
    MPI_Bcast_c(in, count, MPI_LONG, 0, comm);
    MPI_Allreduce_c(in, out, count, MPI_LONG, MPI_SUM, comm);
    MPI_Barrier(comm);
    sum += out[count - 1];
}

static void use(MPI_Session s)
{
    static const char *const name[] = {"a", "a", "b", "a"};
    MPI_Comm comm[4];
    for (int i = 0; i < 4; i++) {
        comm[i] = from_group(s, name[i], i == 3);
        messages(comm[i], 10 * (i + 1), 100 * i);
        collectives(comm[i], 8);
    }
    for (int i = 0; i < 4; i++) MPI_Comm_free(&comm[i]);
}

int main(int argc, char **argv)
{
    int both = !strcmp(argv[1], "both");
    MPI_Session s, second;
    if (both) MPI_Init(&argc, &argv);
    s = begin();
    if (both) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        messages(MPI_COMM_WORLD, 50, 1000);
        MPI_Finalize();
    }
    if (!both) second = begin();
    use(s);
    MPI_Session_finalize(&s);
    if (!both) {
        use(second);
        MPI_Session_finalize(&second);
    }
    printf("received %ld\n", sum);
    return 0;
}
#endif
