/* SPDX-License-Identifier: MIT */
/* Communicators. Viewers pair the n-th send in a communicator with the n-th receive. An operation whose other end is
 * not here, or not known, goes to a communicator that only one process and direction uses. So nothing pairs with it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/otf2/otf2.h"

struct member {
    uint32_t rank, place;
};
struct fdri_otf2_comm {
    const struct fdr_comm_info *info;
    struct member *member; /* sorted by rank; NULL: all ranks are members */
    uint32_t group;
};
struct comm_key {
    uint64_t identity;
    uint32_t process; /* UINT32_MAX: all of them */
    uint16_t alone, everyone;
};

/* Groups 0 and 1 are all ranks, as locations and as members. Those of communicators follow. */
enum { ALL_LOCATIONS, ALL_RANKS, GROUPS };

static int by_rank(const void *x, const void *y)
{
    const struct member *a = x, *b = y;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

bool fdri_otf2_has_members(const struct fdr_comm_info *info) { return info->id && info->world_rank && info->size; }

static bool take_members(struct fdri_otf2_comm *c)
{
    c->member = malloc(c->info->size * sizeof *c->member);
    for (uint32_t i = 0; c->member && i < c->info->size; i++) c->member[i] = (struct member){c->info->world_rank[i], i};
    if (c->member) qsort(c->member, c->info->size, sizeof *c->member, by_rank);
    return c->member != NULL;
}

/* everyone: its group is all ranks, for operations with processes that are no members. */
static uint32_t comm_number(struct fdri_otf2 *o, const struct fdr_comm_info *info, unsigned alone, bool everyone)
{
    const struct comm_key key = {info->identity, alone ? (uint32_t)o->at : UINT32_MAX, (uint16_t)alone, everyone};
    bool is_new;
    if (o->comms.count == o->comm_room) {
        size_t room = o->comm_room ? o->comm_room * 2 : 16;
        struct fdri_otf2_comm *more = realloc(o->comm, room * sizeof *more);
        if (more) o->comm = more, o->comm_room = room;
        else o->error = -ENOMEM;
    }
    uint32_t number = o->comms.count < o->comm_room ? fdri_convert_intern(&o->comms, &key, sizeof key, &is_new)
                                                    : UINT32_MAX;
    if (number == UINT32_MAX) {
        o->error = -ENOMEM;
    } else if (is_new) {
        o->comm[number] = (struct fdri_otf2_comm){.info = info, .group = everyone ? ALL_RANKS : GROUPS + o->groups++};
        if (!everyone && !take_members(&o->comm[number])) o->error = -ENOMEM;
    }
    return number;
}

/* The parent of one for unpaired operations comes first. */
static uint32_t comm_of(struct fdri_otf2 *o, const struct fdr_comm_info *info, unsigned alone, bool everyone)
{
    if (alone) comm_number(o, info, FDRI_OTF2_TOGETHER, everyone);
    return comm_number(o, info, alone, everyone);
}

uint32_t fdri_otf2_group(const struct fdri_otf2 *o, uint32_t comm) { return o->comm[comm].group; }

bool fdri_otf2_place(const struct fdri_otf2 *o, uint32_t comm, uint32_t rank, uint32_t *place)
{
    const struct fdri_otf2_comm *c = &o->comm[comm];
    const struct member key = {rank, 0}, *m = NULL;
    if (c->member) m = bsearch(&key, c->member, c->info->size, sizeof key, by_rank);
    *place = m ? m->place : 0;
    return m != NULL;
}

uint32_t fdri_otf2_comm(struct fdri_otf2 *o, uint32_t comm_id, uint32_t peer, unsigned alone, uint32_t *place)
{
    const struct fdr_comm_info *info = fdr_comm_info(o->process[o->at].file, comm_id);
    bool everyone = !fdri_otf2_has_members(info);
    uint32_t number = comm_of(o, info, alone, everyone);
    size_t ranks;
    if (!place || o->error) return number;
    if (fdri_otf2_place(o, number, peer, place)) return number;
    if (!everyone) number = comm_of(o, info, alone, true);
    fdri_convert_partners_ranks(o->partners, &ranks);
    size_t at = fdri_convert_partners_place(o->partners, peer);
    *place = (uint32_t)at;
    if (at < ranks) return number;
    *place = OTF2_COLLECTIVE_ROOT_NONE;
    fdri_otf2_attribute(o, FDRI_OTF2_OTHER, peer);
    return number;
}

/* ---- their definitions ---- */

const struct fdri_otf2_process *fdri_otf2_process_of(const struct fdri_otf2 *o, uint32_t rank)
{
    for (size_t i = 0; i < o->processes; i++) {
        int own = fdri_convert_partners_rank(o->partners, i);
        if (own >= 0 && (uint32_t)own == rank) return &o->process[i];
    }
    return NULL;
}

static void write_group(struct fdri_otf2 *o, uint32_t number, const char *name, OTF2_GroupType type, uint32_t count,
                        const uint64_t *member)
{
    static const uint64_t nobody[1];
    fdri_otf2_check(o,
                    OTF2_GlobalDefWriter_WriteGroup(o->def, number, fdri_otf2_string(o, name), type, OTF2_PARADIGM_MPI,
                                                    OTF2_GROUP_FLAG_NONE, count, count ? member : nobody));
}

static void write_all_ranks(struct fdri_otf2 *o, uint64_t *member)
{
    size_t count;
    const uint32_t *rank = fdri_convert_partners_ranks(o->partners, &count);
    for (size_t i = 0; i < count; i++) {
        const struct fdri_otf2_process *p = fdri_otf2_process_of(o, rank[i]);
        member[i] = p ? p->main_ : o->end + i;
    }
    write_group(o, ALL_LOCATIONS, "", OTF2_GROUP_TYPE_COMM_LOCATIONS, (uint32_t)count, member);
    for (size_t i = 0; i < count; i++) member[i] = i;
    write_group(o, ALL_RANKS, "all ranks", OTF2_GROUP_TYPE_COMM_GROUP, (uint32_t)count, member);
}

static void name_comm(const struct fdri_otf2 *o, const struct comm_key *key, const struct fdr_comm_info *info,
                      char *text, size_t bytes)
{
    static const char *const how[] = {"", ", unpaired", ", unpaired receives"};
    const char *name = info->id ? info->name : "world";
    int rank = key->alone ? fdri_convert_partners_rank(o->partners, key->process) : -1;
    size_t used = (size_t)snprintf(text, bytes, "%.900s%s%s", name,
                                   key->everyone && fdri_otf2_has_members(info) ? " and others" : "", how[key->alone]);
    if (key->alone && rank >= 0) snprintf(text + used, bytes - used, " (rank %d)", rank);
    else if (key->alone) snprintf(text + used, bytes - used, " (recording %u)", key->process + 1);
}

static void write_comm(struct fdri_otf2 *o, uint32_t number, uint64_t *member)
{
    const struct fdri_otf2_comm *c = &o->comm[number];
    struct comm_key key;
    char name[1100];
    memcpy(&key, fdri_convert_interned_key(&o->comms, number), sizeof key);
    name_comm(o, &key, c->info, name, sizeof name);
    const struct comm_key whole = {key.identity, UINT32_MAX, FDRI_OTF2_TOGETHER, key.everyone};
    uint32_t parent = fdri_convert_interned_find(&o->comms, &whole, sizeof whole);
    for (uint32_t i = 0; c->member && i < c->info->size; i++)
        member[i] = fdri_convert_partners_place(o->partners, c->info->world_rank[i]);
    if (c->member) write_group(o, c->group, name, OTF2_GROUP_TYPE_COMM_GROUP, c->info->size, member);
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteComm(o->def, number, fdri_otf2_string(o, name), c->group,
                                                      parent == number ? OTF2_UNDEFINED_COMM : parent,
                                                      OTF2_COMM_FLAG_NONE));
}

void fdri_otf2_comms(struct fdri_otf2 *o)
{
    size_t most;
    fdri_convert_partners_ranks(o->partners, &most);
    for (uint32_t i = 0; i < o->comms.count; i++)
        if (o->comm[i].member && o->comm[i].info->size > most) most = o->comm[i].info->size;
    if (!most && !o->comms.count) return;
    uint64_t *member = malloc((most + 1) * sizeof *member);
    if (!member) {
        o->error = -ENOMEM;
        return;
    }
    fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteParadigm(o->def, OTF2_PARADIGM_MPI, fdri_otf2_string(o, "MPI"),
                                                          OTF2_PARADIGM_CLASS_PROCESS));
    write_all_ranks(o, member);
    for (uint32_t i = 0; i < o->comms.count && !o->error; i++) write_comm(o, i, member);
    free(member);
}

void fdri_otf2_comms_free(struct fdri_otf2 *o)
{
    for (uint32_t i = 0; i < o->comms.count; i++) free(o->comm[i].member);
    free(o->comm);
}
