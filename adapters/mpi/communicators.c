/* SPDX-License-Identifier: MIT */
/* Members of communicators, as ranks of MPI_COMM_WORLD. A list of members is found when a communicator is made or used,
 * and stays: a request may complete when its communicator is gone. The map from handles to lists is bounded; a handle
 * leaves it when its communicator is freed. */
#include <stdlib.h>
#include <string.h>
#include "adapters/mpi/adapter.h"
#include "adapters/mpi/numbers.h"
#include "base/atomic.h"

enum { SLOTS = 1024, PROBES = 16, NAME = 256 };

/* The handle is written behind the list, and by one thread only: the one that took the slot. */
static struct slot {
    uint64_t handle; /* 0: free */
    struct fdri_mpi_members *list;
} slots[SLOTS];
enum { TAKEN = 1 }; /* no handle has this value */

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

enum { UNDEFINED = -1 }; /* as an id: the first event of the communicator defines it */

static void define(word comm, struct fdri_mpi_members *m)
{
    char name[NAME] = "";
    int length = 0;
    ask.name(comm, name, &length);
    if (!*name) strcpy(name, m->inter ? "intercommunicator" : "communicator");
    fdr_comm_id id = fdr_comm_define_as(name, m->world, (size_t)m->size, m->order->identity);
    if (!id) m->order->identity = 0; /* no room: as the world's, its messages must have no numbers */
    fdri_atomic_store_relaxed(&m->id, id);
}

static struct fdri_mpi_members *new_members(int size, uint64_t identity)
{
    struct fdri_mpi_members *m = malloc(sizeof *m + sizeof *m->order + (size_t)size * sizeof(uint32_t));
    if (!m) return NULL;
    *m = (struct fdri_mpi_members){.id = (fdr_comm_id)UNDEFINED,
                                   .size = size,
                                   .order = (void *)(m + 1),
                                   .world = (void *)((uint8_t *)(m + 1) + sizeof *m->order)};
    *m->order = (struct fdri_mpi_order){.identity = identity};
    return m;
}

static struct fdri_mpi_members *ask_members(word comm, uint64_t identity)
{
    word group = 0;
    int inter = 0, size = 0, rank = 0, world = 0;
    if (!look_up() || ask.is_inter(comm, &inter) || ask.rank(comm, &rank)) return NULL;
    if (ask.rank(fdri_mpi_library()->world, &world)) return NULL;
    if ((inter ? ask.remote_group : ask.group)(comm, &group)) return NULL;
    struct fdri_mpi_members *m = NULL;
    if (!ask.group_size(group, &size) && size > 0) m = new_members(size, identity);
    if (m) m->rank = rank, m->inter = inter, m->own_world = (uint32_t)world;
    if (m && !translate(group, size, (uint32_t *)m->world)) {
        free(m);
        m = NULL;
    }
    ask.group_free(&group);
    return m;
}

/* A communicator that fdr did not see being made has no identity, but for these two. */
static struct fdri_mpi_members *find(word comm)
{
    const struct fdri_mpi_library *l = fdri_mpi_library();
    struct fdri_mpi_members *m = ask_members(comm, comm == l->world);
    if (!m) return NULL;
    if (comm == l->world) m->id = 0;
    if (comm == l->self) m->order->identity = fdri_mpi_mix(2, m->own_world);
    return m;
}

uint64_t fdri_mpi_mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    return (h ^ h >> 31) * 0x94d049bb133111ebu | 4; /* never one of the two above */
}

uint64_t fdri_mpi_members_hash(word comm)
{
    word group = 0;
    int size = 0;
    uint64_t h = 0;
    if (!look_up() || ask.group(comm, &group) || ask.group_size(group, &size) || size <= 0) return 0;
    uint32_t *world = malloc((size_t)size * sizeof *world);
    bool good = world && translate(group, size, world);
    for (int i = 0; good && i < size; i++) {
        good = world[i] != UINT32_MAX;
        h = fdri_mpi_mix(h, world[i]);
    }
    free(world);
    ask.group_free(&group);
    return good ? h : 0;
}

static struct slot *probe(word comm, int i)
{
    uint64_t hash = (uint64_t)comm * 0x9e3779b97f4a7c15u;
    return &slots[((hash >> 32) + (uint64_t)i) % SLOTS];
}

/* Two threads may find a communicator at once; the first list counts. Only those without an identity are found so. */
static const struct fdri_mpi_members *keep(word comm, struct fdri_mpi_members *m)
{
    for (int i = 0; m && i < PROBES; i++) {
        struct slot *s = probe(comm, i);
        uint64_t empty = 0;
        if (!fdri_atomic_cas_acq_rel_u64(&s->handle, &empty, TAKEN)) continue; /* L:group */
        s->list = m;
        fdri_atomic_store_release(&s->handle, (uint64_t)comm); /* R:group */
        return m;
    }
    if (m) m->order->identity = 0; /* it would be made anew each time */
    return m;
}

static struct fdri_mpi_members *listed(word comm)
{
    for (int i = 0; i < PROBES; i++) {
        struct slot *s = probe(comm, i);
        if (fdri_atomic_load_acquire(&s->handle) == (uint64_t)comm) return s->list; /* A:group */
    }
    return NULL;
}

const struct fdri_mpi_members *fdri_mpi_members_known(word comm)
{
    struct fdri_mpi_members *m = listed(comm);
    if (m && fdri_atomic_load_relaxed(&m->id) == (fdr_comm_id)UNDEFINED) define(comm, m);
    return m;
}

const struct fdri_mpi_members *fdri_mpi_members(word comm)
{
    const struct fdri_mpi_members *m = fdri_mpi_members_known(comm);
    if (m) return m;
    keep(comm, find(comm));
    return fdri_mpi_members_known(comm);
}

const struct fdri_mpi_members *fdri_mpi_members_new(word comm, uint64_t identity, const struct fdri_mpi_members *like)
{
    fdri_mpi_members_forget(comm);
    struct fdri_mpi_members *m = like ? new_members(like->size, identity) : ask_members(comm, identity);
    if (m && like) {
        m->rank = like->rank, m->inter = like->inter, m->own_world = like->own_world;
        memcpy((uint32_t *)m->world, like->world, (size_t)like->size * sizeof *m->world);
    }
    return keep(comm, m);
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
