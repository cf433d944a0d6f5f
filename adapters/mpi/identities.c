/* SPDX-License-Identifier: MIT */
/* Identities of communicators: equal on all members without a message. All members of a parent make communicators of it
 * in the same order. So parent, how many were made before, and the world rank of the new one's first member name it.
 * Where not all members of a parent take part, or there is none, the new members themselves, the tag and a count do. */
#include <string.h>
#include "adapters/mpi/adapter_parts.h"
#include "base/atomic.h"

enum { COUNTS = 256 };
#define UNSURE ((uint64_t)1 << 63) /* with `made` */
static struct {
    uint64_t key; /* of a group and a tag, or of partitioned requests */
    uint64_t made;
} counts[COUNTS];

static bool count(uint64_t key, uint64_t more, uint64_t *made)
{
    for (uint32_t i = 0; i < COUNTS; i++) {
        uint64_t *at = &counts[(key + i) % COUNTS].key, none = 0;
        bool mine = fdri_atomic_load_relaxed(at) == key;
        if (!mine) mine = fdri_atomic_cas_acq_rel_u64(at, &none, key); /* L:group */
        if (!mine && none != key) continue;
        *made = fdri_atomic_add_relaxed(&counts[(key + i) % COUNTS].made, more);
        return *made < UNSURE;
    }
    return false;
}

bool fdri_mpi_identities_made_before(uint64_t key, uint64_t *made) { return count(key, 1, made); }

void fdri_mpi_identities_unsure(uint64_t key)
{
    uint64_t made;
    if (count(key, 0, &made)) count(key, UNSURE, &made);
}

static enum fdri_mpi_role first_of(const struct fdri_mpi_call *c, const enum fdri_mpi_role *role, int count)
{
    for (int i = 0; i < count; i++)
        if (fdri_mpi_has(c, role[i])) return role[i];
    return FDRI_MPI_ROLES;
}

static word new_comm(const struct fdri_mpi_call *c)
{
    static const enum fdri_mpi_role role[] = {FDRI_MPI_newcomm,         FDRI_MPI_comm_cart,    FDRI_MPI_comm_graph,
                                              FDRI_MPI_comm_dist_graph, FDRI_MPI_newintercomm, FDRI_MPI_newintracomm};
    return fdri_mpi_handle_at(c, first_of(c, role, 6), FDRI_MPI_COMM, 0);
}

static const struct fdri_mpi_members *parent_of(const struct fdri_mpi_call *c)
{
    static const enum fdri_mpi_role role[] = {FDRI_MPI_comm_old, FDRI_MPI_local_comm, FDRI_MPI_intercomm,
                                              FDRI_MPI_comm};
    return fdri_mpi_members(fdri_mpi_handle(c, first_of(c, role, 4), FDRI_MPI_COMM));
}

/* Of the members of both groups, alike from both sides; 0: not known. */
static uint64_t hash_of_all(word comm, const struct fdri_mpi_members *m)
{
    uint64_t own = fdri_mpi_members_hash(comm), remote = 0;
    for (int i = 0; m->inter && i < m->size; i++) {
        if (m->world[i] == UINT32_MAX) return 0;
        remote = fdri_mpi_mix(remote, m->world[i]);
    }
    return own ? own + remote : 0;
}

/* By groups and tag: an intercommunicator, or one that a part of its parent made. */
static uint64_t by_groups(word comm, const struct fdri_mpi_members *m, uint64_t tag)
{
    uint64_t all = hash_of_all(comm, m), made;
    uint64_t key = fdri_mpi_mix(all, tag << 1 | m->inter);
    return all && fdri_mpi_identities_made_before(key, &made) ? fdri_mpi_mix(key, made) : 0;
}

/* Among all that their parent's members make of it. made: how many were made before. later: it cannot be asked yet. */
static uint64_t by_parent(word comm, const struct fdri_mpi_members *m, uint64_t of, uint64_t made, bool later)
{
    if (!of || m->world[0] == UINT32_MAX) return 0;
    uint64_t name = later ? 0 : m->inter ? hash_of_all(comm, m) : m->world[0];
    return fdri_mpi_mix(fdri_mpi_mix(of, made), name);
}

/* A duplicate has the members of its parent; one that is not complete cannot be asked. */
static bool is_duplicate(const struct fdri_mpi_call *c) { return strstr(c->f->name, "dup") != NULL; }

static enum fdri_mpi_topology topology_of(const struct fdri_mpi_call *c)
{
    if (fdri_mpi_has(c, FDRI_MPI_comm_graph)) return FDRI_MPI_GRAPH;
    if (fdri_mpi_has(c, FDRI_MPI_comm_dist_graph)) return FDRI_MPI_DIST_GRAPH;
    return strncmp(c->f->name, "MPI_Cart", 8) == 0 ? FDRI_MPI_CART : FDRI_MPI_NO_TOPOLOGY;
}

/* Of groups of sessions: no parent, and a text for a tag. */
static void created_from_groups(const struct fdri_mpi_call *c)
{
    enum { MOST = 1024 }; /* libraries allow 256, or less */
    char tag[MOST];
    uint64_t hash = fdri_mpi_mix(0, 0);
    word comm = new_comm(c);
    if (comm == fdri_mpi_library()->comm_null) return;
    const struct fdri_mpi_members *m = fdri_mpi_members_new(comm, 0, NULL);
    if (!m) return;
    fdri_mpi_text(c, FDRI_MPI_stringtag, tag, sizeof tag);
    for (const char *p = tag; *p; p++) hash = fdri_mpi_mix(hash, (unsigned char)*p);
    m->order->identity = fdri_mpi_numbers_full() ? 0 : by_groups(comm, m, hash);
    if (!m->order->identity) fdri_mpi_numbers_uncounted(-1);
}

void fdri_mpi_identities_created(const struct fdri_mpi_call *c)
{
    if (fdri_mpi_has(c, FDRI_MPI_stringtag)) {
        created_from_groups(c);
        return;
    }
    word comm = new_comm(c);
    bool tagged = fdri_mpi_has(c, FDRI_MPI_tag), later = fdri_mpi_has(c, FDRI_MPI_request);
    const struct fdri_mpi_members *parent = parent_of(c);
    uint64_t made = parent && !tagged ? parent->order->created++ : 0, of = parent ? parent->order->identity : 0;
    if (comm == fdri_mpi_library()->comm_null || !parent) return;
    const struct fdri_mpi_members *m = fdri_mpi_members_new(comm, 0, is_duplicate(c) ? parent : NULL);
    if (!m) return;
    uint64_t identity = tagged ? by_groups(comm, m, (uint32_t)fdri_mpi_int(c, FDRI_MPI_tag))
                               : by_parent(comm, m, of, made, later);
    if (fdri_mpi_numbers_full()) identity = 0;
    if (!is_duplicate(c)) m->order->topology = topology_of(c);
    m->order->identity = identity;
    if (!identity) fdri_mpi_numbers_uncounted(-1);
}
