/* SPDX-License-Identifier: MIT */
/* Members of communicators, as ranks of MPI_COMM_WORLD, found when a communicator is made or used. A handle leaves the
 * map when its communicator is freed. Its members stay until the last open request ends: a request may complete when
 * its communicator is gone. The map grows by tables, each twice as large as the one before. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "adapters/mpi/adapter.h"
#include "adapters/mpi/numbers.h"
#include "base/atomic.h"

enum { SLOTS = 1024, TABLES = 12, PROBES = 16, NAME = 256 };

/* The handle is written behind the members, and by one thread only: the one that took the slot. */
struct slot {
    uint64_t handle; /* 0: free */
    struct fdri_mpi_members *members;
};
static struct slot first_table[SLOTS], *tables[TABLES] = {first_table}; /* table i has SLOTS << i slots */
enum { TAKEN = 1 };                                                     /* no handle has this value */

static struct {
    int (*group)(word, word *);
    int (*remote_group)(word, word *);
    int (*group_free)(word *);
    int (*group_size)(word, int *);
    int (*group_rank)(word, int *);
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
    ask.group_rank = (int (*)(word, int *))fdri_mpi_find("PMPI_Group_rank");
    ask.translate = (int (*)(word, int, const int *, word, int *))fdri_mpi_find("PMPI_Group_translate_ranks");
    ask.rank = (int (*)(word, int *))fdri_mpi_find("PMPI_Comm_rank");
    ask.is_inter = (int (*)(word, int *))fdri_mpi_find("PMPI_Comm_test_inter");
    ask.name = (int (*)(word, char *, int *))fdri_mpi_find("PMPI_Comm_get_name");
    return ask.group && ask.remote_group && ask.group_free && ask.group_size && ask.group_rank && ask.translate &&
           ask.rank && ask.is_inter && ask.name;
}

bool fdri_mpi_world_group(word *group)
{
    if (!fdri_mpi_library_has_world()) return fdri_mpi_sessions_world(group);
    return look_up() && !ask.group(fdri_mpi_library()->world, group);
}

static bool own_rank(int *rank)
{
    word all = 0;
    bool good = fdri_mpi_world_group(&all) && !ask.group_rank(all, rank);
    if (all) ask.group_free(&all);
    return good;
}

/* World ranks of a group's members. */
static bool translate(word group, int size, uint32_t *world)
{
    word all = 0;
    int *ranks = malloc((size_t)size * 2 * sizeof *ranks);
    bool good = ranks && fdri_mpi_world_group(&all);
    for (int i = 0; good && i < size; i++) ranks[i] = i;
    good = good && !ask.translate(group, size, ranks, all, ranks + size);
    for (int i = 0; good && i < size; i++) world[i] = ranks[size + i] < 0 ? UINT32_MAX : (uint32_t)ranks[size + i];
    if (all) ask.group_free(&all);
    free(ranks);
    return good;
}

enum { UNDEFINED = -1 }; /* as an id: the first event of the communicator defines it */

/* Names of communicators fill at most a 16th of the buffer, names of windows a 64th. So regions and metrics find room
 * for their names, however many communicators come and go. */
static bool names_have_room(const struct fdri_mpi_members *m)
{
    enum { SHARE = 16, SHARE_OF_WINDOWS = 64, BYTES = 128 };
    static uint64_t taken[2];
    uint64_t bytes = BYTES + (uint64_t)m->size * sizeof(uint32_t);
    uint64_t most = fdri_mpi_numbers_buffer() / (m->window ? SHARE_OF_WINDOWS : SHARE);
    return fdri_atomic_add_relaxed(&taken[m->window], bytes) + bytes <= most;
}

/* Readers know then that not all communicators are counted. Windows never are. */
static void uncounted(const struct fdri_mpi_members *m)
{
    if (!m->window) fdri_mpi_numbers_uncounted(-1);
}

/* comm: whose name it has */
static void define(word comm, const char *more, struct fdri_mpi_members *m)
{
    char name[NAME + NAME] = "";
    int length = 0;
    fdr_comm_id id = 0;
    ask.name(comm, name, &length);
    if (!*name) strcpy(name, m->inter ? "intercommunicator" : "communicator");
    strcat(name, more);
    bool room = names_have_room(m);
    if (room) id = fdr_comm_define_as(name, m->world, (size_t)m->size, m->order->identity);
    if (!id && m->order->identity) { /* as those of others, its messages must have no numbers */
        m->order->identity = 0;
        uncounted(m);
    }
    if (!room) id = fdr_comm_define(m->window ? "[other windows]" : "[other communicators]", NULL, 0);
    fdri_atomic_store_relaxed(&m->id, id);
}

static void free_members(struct fdri_mpi_members *m)
{
    fdri_mpi_list_leave(m->world, (size_t)m->size);
    free(m);
}

/* world: ranks; they are copied. */
static struct fdri_mpi_members *new_members(const uint32_t *world, int size, uint64_t identity)
{
    struct fdri_mpi_members *m = malloc(sizeof *m + sizeof *m->order);
    const uint32_t *list = m ? fdri_mpi_list_use(world, (size_t)size) : NULL;
    if (!list) {
        free(m);
        return NULL;
    }
    *m = (struct fdri_mpi_members){.id = (fdr_comm_id)UNDEFINED, .size = size, .order = (void *)(m + 1), .world = list};
    *m->order = (struct fdri_mpi_order){.identity = identity, .users = 1};
    return m;
}

static struct fdri_mpi_members *members_of_group(word group, uint64_t identity)
{
    int size = 0;
    if (ask.group_size(group, &size) || size <= 0) return NULL;
    uint32_t *world = malloc((size_t)size * sizeof *world);
    struct fdri_mpi_members *m = world && translate(group, size, world) ? new_members(world, size, identity) : NULL;
    free(world);
    return m;
}

static struct fdri_mpi_members *ask_members(word comm, uint64_t identity)
{
    word group = 0;
    int inter = 0, rank = 0, world = 0;
    if (!look_up() || ask.is_inter(comm, &inter) || ask.rank(comm, &rank)) return NULL;
    if (!own_rank(&world)) return NULL;
    if ((inter ? ask.remote_group : ask.group)(comm, &group)) return NULL;
    struct fdri_mpi_members *m = members_of_group(group, identity);
    if (m) m->rank = rank, m->inter = inter, m->own_world = (uint32_t)world;
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
    m->order->lasting = comm == l->world || comm == l->self;
    if (!m->order->identity) fdri_mpi_numbers_uncounted(-1);
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

static struct slot *probe(int table, word comm, int i)
{
    uint64_t hash = (uint64_t)comm * 0x9e3779b97f4a7c15u;
    return &tables[table][((hash >> 32) + (uint64_t)i) % ((uint64_t)SLOTS << table)];
}

static bool is_there(int table) { return table < TABLES && fdri_atomic_load_acquire(&tables[table]); } /* A:group */

static bool make_table(int table)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    struct slot *fresh = is_there(table) ? NULL : calloc((size_t)SLOTS << table, sizeof *fresh);
    if (fresh) fdri_atomic_store_release(&tables[table], fresh); /* R:group */
    pthread_mutex_unlock(&lock);
    return is_there(table);
}

static bool put(int table, word comm, struct fdri_mpi_members *m)
{
    for (int i = 0; i < PROBES; i++) {
        struct slot *s = probe(table, comm, i);
        uint64_t empty = 0;
        if (!fdri_atomic_cas_acq_rel_u64(&s->handle, &empty, TAKEN)) continue; /* L:group */
        s->members = m;
        fdri_atomic_store_release(&s->handle, (uint64_t)comm); /* R:group */
        return true;
    }
    return false;
}

/* Two threads may find a communicator at once; the first slot counts. Only those without an identity are found so.
 * NULL: no memory. */
static struct fdri_mpi_members *keep(word comm, struct fdri_mpi_members *m)
{
    for (int table = 0; table < TABLES; table++)
        if ((is_there(table) || make_table(table)) && put(table, comm, m)) return m;
    uncounted(m);
    free_members(m);
    return NULL;
}

static struct fdri_mpi_members *listed(word comm)
{
    for (int table = 0; is_there(table); table++)
        for (int i = 0; i < PROBES; i++) {
            struct slot *s = probe(table, comm, i);
            if (fdri_atomic_load_acquire(&s->handle) == (uint64_t)comm) return s->members; /* A:group */
        }
    return NULL;
}

const struct fdri_mpi_members *fdri_mpi_members_known(word comm)
{
    struct fdri_mpi_members *m = listed(comm);
    if (m && fdri_atomic_load_relaxed(&m->id) == (fdr_comm_id)UNDEFINED) define(comm, "", m);
    return m;
}

const struct fdri_mpi_members *fdri_mpi_members(word comm)
{
    const struct fdri_mpi_members *m = fdri_mpi_members_known(comm);
    if (m) return m;
    struct fdri_mpi_members *found = find(comm);
    if (found) keep(comm, found);
    return fdri_mpi_members_known(comm);
}

static struct fdri_mpi_members *copy(const struct fdri_mpi_members *like, uint64_t identity)
{
    struct fdri_mpi_members *m = look_up() ? new_members(like->world, like->size, identity) : NULL;
    if (!m) return NULL;
    m->rank = like->rank, m->inter = like->inter, m->own_world = like->own_world;
    m->order->topology = like->order->topology;
    return m;
}

const struct fdri_mpi_members *fdri_mpi_members_of_request(word comm, const struct fdri_mpi_members *like,
                                                           uint64_t identity)
{
    struct fdri_mpi_members *m = copy(like, identity);
    if (m) define(comm, " (partitioned)", m);
    return m;
}

const struct fdri_mpi_members *fdri_mpi_members_new(word comm, uint64_t identity, const struct fdri_mpi_members *like)
{
    fdri_mpi_members_forget(comm);
    struct fdri_mpi_members *m = like ? copy(like, identity) : ask_members(comm, identity);
    if (!m) fdri_mpi_numbers_uncounted(-1);
    return m ? keep(comm, m) : NULL;
}

/* ---- windows: in the same map ---- */

static word key_of_window(word win) { return win ^ (word)1 << 62; }

const struct fdri_mpi_members *fdri_mpi_members_new_window(word win, word comm, const struct fdri_mpi_members *like,
                                                           uint64_t identity)
{
    fdri_mpi_members_forget_window(win);
    struct fdri_mpi_members *m = copy(like, identity);
    if (!m) return NULL;
    m->window = true;
    define(comm, " (window)", m);
    return keep(key_of_window(win), m);
}

const struct fdri_mpi_members *fdri_mpi_members_of_window(word win) { return listed(key_of_window(win)); }

void fdri_mpi_members_forget_window(word win) { fdri_mpi_members_forget(key_of_window(win)); }

/* ---- ranks, and ends ---- */

uint32_t fdri_mpi_world_rank(const struct fdri_mpi_members *m, int rank)
{
    return rank >= 0 && rank < m->size ? m->world[rank] : UINT32_MAX;
}

void fdri_mpi_members_forget(word comm)
{
    for (int table = 0; is_there(table); table++)
        for (int i = 0; i < PROBES; i++) {
            struct slot *s = probe(table, comm, i);
            if (fdri_atomic_load_acquire(&s->handle) != (uint64_t)comm) continue; /* A:group */
            const struct fdri_mpi_members *m = s->members;
            fdri_atomic_store_release(&s->handle, 0); /* R:group */
            fdri_mpi_members_leave(m);
        }
}

void fdri_mpi_members_use(const struct fdri_mpi_members *m)
{
    if (m && !m->order->lasting) fdri_atomic_add_relaxed(&m->order->users, 1u);
}

void fdri_mpi_members_leave(const struct fdri_mpi_members *m)
{
    if (!m || m->order->lasting) return;
    if (fdri_atomic_sub_acq_rel(&m->order->users, 1u) == 1) /* R:group, A:group */
        free_members((struct fdri_mpi_members *)(uintptr_t)m);
}
