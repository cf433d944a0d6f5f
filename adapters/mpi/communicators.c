/* SPDX-License-Identifier: MIT */
/* Members of communicators, as ranks of MPI_COMM_WORLD. A list of members is found at the first use of a communicator
 * and stays: a request may complete when its communicator is gone. Communicators of equal name and members share one
 * definition. The map from handles to lists is bounded; a handle leaves it when its communicator is freed. */
#include <stdlib.h>
#include <string.h>
#include "adapters/mpi/adapter.h"
#include "base/atomic.h"

enum { SLOTS = 1024, PROBES = 16, LISTS = 4096, NAME = 256 };

/* The handle is written behind the list, and by one thread only: the one that took the slot. */
static struct slot {
    uint64_t handle; /* 0: free */
    const struct fdri_mpi_members *list;
} slots[SLOTS];
enum { TAKEN = 1 }; /* no handle has this value */

static const struct fdri_mpi_members *lists[LISTS]; /* by id */

static struct {
    int (*group)(word, word *);
    int (*remote_group)(word, word *);
    int (*group_free)(word *);
    int (*group_size)(word, int *);
    int (*translate)(word, int, const int *, word, int *);
    int (*rank)(word, int *);
    int (*is_inter)(word, int *);
    int (*name)(word, char *, int *);
} ask;

static bool look_up(void)
{
    if (fdri_atomic_load_relaxed(&ask.name)) return true;
    ask.group = (int (*)(word, word *))fdri_mpi_find("PMPI_Comm_group");
    ask.remote_group = (int (*)(word, word *))fdri_mpi_find("PMPI_Comm_remote_group");
    ask.group_free = (int (*)(word *))fdri_mpi_find("PMPI_Group_free");
    ask.group_size = (int (*)(word, int *))fdri_mpi_find("PMPI_Group_size");
    ask.translate = (int (*)(word, int, const int *, word, int *))fdri_mpi_find("PMPI_Group_translate_ranks");
    ask.rank = (int (*)(word, int *))fdri_mpi_find("PMPI_Comm_rank");
    ask.is_inter = (int (*)(word, int *))fdri_mpi_find("PMPI_Comm_test_inter");
    ask.name = (int (*)(word, char *, int *))fdri_mpi_find("PMPI_Comm_get_name");
    return ask.group && ask.remote_group && ask.group_free && ask.group_size && ask.translate && ask.rank &&
           ask.is_inter && ask.name;
}

/* World ranks of a group's members. */
static bool translate(word group, int size, uint32_t *world)
{
    word all = 0;
    int *ranks = malloc((size_t)size * 2 * sizeof *ranks);
    bool good = ranks && !ask.group(fdri_mpi_library()->world, &all);
    for (int i = 0; good && i < size; i++) ranks[i] = i;
    good = good && !ask.translate(group, size, ranks, all, ranks + size);
    for (int i = 0; good && i < size; i++) world[i] = ranks[size + i] < 0 ? UINT32_MAX : (uint32_t)ranks[size + i];
    if (all) ask.group_free(&all);
    free(ranks);
    return good;
}

/* A definition has one list, however many communicators have it. */
static const struct fdri_mpi_members *shared(struct fdri_mpi_members *m)
{
    if (m->id == 0 || m->id >= LISTS) return m;
    const struct fdri_mpi_members *first = fdri_atomic_load_acquire(&lists[m->id]); /* A:group */
    if (first && first->rank == m->rank) {
        free(m);
        return first;
    }
    if (!first) fdri_atomic_store_release(&lists[m->id], m); /* R:group */
    return m;
}

static fdr_comm_id define(word comm, const struct fdri_mpi_members *m)
{
    char name[NAME] = "";
    int length = 0;
    ask.name(comm, name, &length);
    if (!*name) strcpy(name, m->inter ? "intercommunicator" : "communicator");
    return fdr_comm_define(name, m->world, (size_t)m->size);
}

static const struct fdri_mpi_members *find(word comm)
{
    word group = 0;
    int inter = 0, size = 0, rank = 0, world = 0;
    if (!look_up() || ask.is_inter(comm, &inter) || ask.rank(comm, &rank)) return NULL;
    if (ask.rank(fdri_mpi_library()->world, &world)) return NULL;
    if ((inter ? ask.remote_group : ask.group)(comm, &group)) return NULL;
    struct fdri_mpi_members *m = NULL;
    if (!ask.group_size(group, &size) && size > 0) m = malloc(sizeof *m + (size_t)size * sizeof(uint32_t));
    if (m) {
        uint32_t *members = (uint32_t *)(m + 1);
        *m = (struct fdri_mpi_members){
            .size = size, .rank = rank, .inter = inter, .own_world = (uint32_t)world, .world = members};
        if (!translate(group, size, members)) {
            free(m);
            m = NULL;
        } else if (comm != fdri_mpi_library()->world) m->id = define(comm, m);
    }
    ask.group_free(&group);
    return m ? shared(m) : NULL;
}

static struct slot *probe(word comm, int i)
{
    uint64_t hash = (uint64_t)comm * 0x9e3779b97f4a7c15u;
    return &slots[((hash >> 32) + (uint64_t)i) % SLOTS];
}

const struct fdri_mpi_members *fdri_mpi_members(word comm)
{
    for (int i = 0; i < PROBES; i++) {
        struct slot *s = probe(comm, i);
        if (fdri_atomic_load_acquire(&s->handle) == (uint64_t)comm) return s->list; /* A:group */
    }
    const struct fdri_mpi_members *m = find(comm);
    for (int i = 0; m && i < PROBES; i++) {
        struct slot *s = probe(comm, i);
        uint64_t empty = 0;
        if (!fdri_atomic_cas_acq_rel_u64(&s->handle, &empty, TAKEN)) continue; /* L:group */
        s->list = m;
        fdri_atomic_store_release(&s->handle, (uint64_t)comm); /* R:group */
        break;
    }
    return m;
}

uint32_t fdri_mpi_world_rank(const struct fdri_mpi_members *m, int rank)
{
    return rank >= 0 && rank < m->size ? m->world[rank] : UINT32_MAX;
}

void fdri_mpi_members_forget(word comm)
{
    for (int i = 0; i < PROBES; i++) {
        struct slot *s = probe(comm, i);
        if (fdri_atomic_load_acquire(&s->handle) == (uint64_t)comm) /* A:group */
            fdri_atomic_store_release(&s->handle, 0);               /* R:group */
    }
}
