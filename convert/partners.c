/* SPDX-License-Identifier: MIT */
/* Which messages and collectives have their other ends in the recordings at hand. For each envelope and side, the kept
 * ordinals are few runs of consecutive numbers, however many messages there are. */
#include "convert/partners.h"

#include <fdr/fdr.h>
#include <fdr/tally.h>
#include <stdlib.h>
#include <string.h>

#include "convert/interned.h"

enum side { SENT, RECEIVED, TAKEN_PART, ALL_TOOK_PART };
struct envelope { /* of collectives: `from` is the rank, `to` and `tag` are 0 */
    uint64_t comm;
    uint32_t from, to;
    int32_t tag;
    uint32_t side;
};
struct runs {
    struct run {
        uint64_t first, last;
    } * run;
    size_t count, room;
    bool disordered;                   /* the ordinals do not ascend with time, or their numbering is not sure */
    const struct fdr_comm_info *group; /* of collectives */
};
struct resolution {
    uint64_t token, ordinal;
};
struct side_of_file {
    struct fdr_file *file;
    int rank;
    bool messages_whole, collectives_whole; /* nothing of the class is missing, so order alone pairs them */
    struct resolution *resolution;          /* sorted by token */
    size_t resolutions, room;
};
struct fdri_convert_partners {
    struct side_of_file *file;
    size_t files;
    struct fdri_convert_interned envelopes, ranks_seen;
    struct runs *runs; /* of each envelope */
    size_t runs_room;
    uint32_t *rank; /* ascending */
    bool no_memory;
};

/* ---- arrays ---- */

static bool grow(void *array, size_t count, size_t *room, size_t bytes)
{
    if (count < *room) return true;
    size_t more = *room ? *room * 2 : 4;
    void *p = realloc(*(void **)array, more * bytes);
    if (!p) return false;
    *(void **)array = p;
    *room = more;
    return true;
}

static struct runs *runs_of(struct fdri_convert_partners *p, const struct envelope *e)
{
    bool is_new;
    if (!grow(&p->runs, p->envelopes.count, &p->runs_room, sizeof *p->runs)) return NULL;
    uint32_t number = fdri_convert_intern(&p->envelopes, e, sizeof *e, &is_new);
    if (number == FDRI_CONVERT_NO_NUMBER) return NULL;
    if (is_new) p->runs[number] = (struct runs){0};
    return &p->runs[number];
}

static const struct runs *runs_known(const struct fdri_convert_partners *p, const struct envelope *e)
{
    uint32_t number = fdri_convert_interned_find(&p->envelopes, e, sizeof *e);
    return number == FDRI_CONVERT_NO_NUMBER ? NULL : &p->runs[number];
}

static bool add_to(struct runs *r, uint64_t first, uint64_t last)
{
    struct run *newest = r->count ? &r->run[r->count - 1] : NULL;
    if (newest && first <= newest->last) {
        r->disordered = true;
        return true;
    }
    if (newest && first == newest->last + 1) {
        newest->last = last;
        return true;
    }
    if (!grow(&r->run, r->count, &r->room, sizeof *r->run)) return false;
    r->run[r->count++] = (struct run){first, last};
    return true;
}

static bool among(const struct runs *r, uint64_t ordinal)
{
    size_t low = 0, high = r ? r->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->run[middle].last < ordinal) low = middle + 1;
        else high = middle;
    }
    return r && !r->disordered && low < r->count && r->run[low].first <= ordinal;
}

/* ---- ranks ---- */

static int rank_of(const struct fdr_file *file)
{
    const struct fdr_note_info *note;
    for (size_t i = 0, n = fdr_notes(file, &note); i < n; i++)
        if (strcmp(note[i].key, "mpi.rank") == 0) return atoi(note[i].value);
    return fdr_file_info(file)->rank;
}

static void saw_rank(struct fdri_convert_partners *p, uint32_t rank)
{
    bool is_new;
    if (fdri_convert_intern(&p->ranks_seen, &rank, sizeof rank, &is_new) == FDRI_CONVERT_NO_NUMBER) p->no_memory = true;
}

/* Two recordings of one rank, as two snapshots of it, have the same messages: no pairs then. */
static void take_ranks(struct fdri_convert_partners *p)
{
    for (size_t i = 0; i < p->files; i++) p->file[i].rank = rank_of(p->file[i].file);
    for (size_t i = 0; i < p->files; i++)
        if (p->file[i].rank >= 0) saw_rank(p, (uint32_t)p->file[i].rank);
    for (size_t i = 0; i < p->files; i++) {
        bool twice = false;
        for (size_t k = i + 1; k < p->files; k++) {
            if (p->file[k].rank < 0 || p->file[k].rank != p->file[i].rank) continue;
            p->file[k].rank = -1;
            twice = true;
        }
        if (twice) p->file[i].rank = -1;
    }
}

static int ascending(const void *x, const void *y)
{
    const uint32_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static void sort_ranks(struct fdri_convert_partners *p)
{
    p->rank = malloc((p->ranks_seen.count + 1) * sizeof *p->rank);
    p->no_memory |= !p->rank;
    for (uint32_t i = 0; p->rank && i < p->ranks_seen.count; i++)
        memcpy(&p->rank[i], fdri_convert_interned_key(&p->ranks_seen, i), sizeof *p->rank);
    if (p->rank) qsort(p->rank, p->ranks_seen.count, sizeof *p->rank, ascending);
}

const uint32_t *fdri_convert_partners_ranks(const struct fdri_convert_partners *p, size_t *count)
{
    *count = p->ranks_seen.count;
    return p->rank;
}

size_t fdri_convert_partners_place(const struct fdri_convert_partners *p, uint32_t rank)
{
    size_t count = p->ranks_seen.count;
    const uint32_t *at = count ? bsearch(&rank, p->rank, count, sizeof rank, ascending) : NULL;
    return at ? (size_t)(at - p->rank) : count;
}

int fdri_convert_partners_rank(const struct fdri_convert_partners *p, size_t file) { return p->file[file].rank; }

/* ---- one file ---- */

static int by_token(const void *x, const void *y)
{
    const struct resolution *a = x, *b = y;
    return (a->token > b->token) - (a->token < b->token);
}

bool fdri_convert_partners_ordinal(const struct fdri_convert_partners *p, size_t file, const struct fdr_read_event *e,
                                   uint64_t *ordinal)
{
    const struct side_of_file *f = &p->file[file];
    *ordinal = e->ordinal;
    if (e->ordinal_kind == FDR_ORDINAL_KNOWN) return true;
    if (e->ordinal_kind != FDR_ORDINAL_OPEN || !f->resolutions) return false;
    const struct resolution key = {e->ordinal, 0};
    const struct resolution *found = bsearch(&key, f->resolution, f->resolutions, sizeof key, by_token);
    if (!found || found->ordinal & FDR_ORDINAL_AMBIGUOUS) return false;
    *ordinal = found->ordinal;
    return true;
}

static struct envelope envelope_of(const struct side_of_file *f, const struct fdr_read_event *e)
{
    bool sent = e->kind == FDR_SEND, collective = e->class_ == FDR_IN_COLLECTIVE;
    uint32_t own = (uint32_t)f->rank, peer = collective ? 0 : (uint32_t)e->field[0];
    struct envelope envelope = {.comm = fdr_comm_info(f->file, (uint32_t)e->field[collective ? 0 : 2])->identity,
                                .from = sent || collective ? own : peer,
                                .to = collective ? 0
                                      : sent     ? peer
                                                 : own,
                                .tag = collective ? 0 : (int32_t)e->field[1],
                                .side = collective ? TAKEN_PART
                                        : sent     ? SENT
                                                   : RECEIVED};
    return envelope;
}

static void take_event(struct fdri_convert_partners *p, size_t file, const struct fdr_read_event *e)
{
    const struct side_of_file *f = &p->file[file];
    bool collective = e->class_ == FDR_IN_COLLECTIVE;
    uint64_t ordinal;
    if (e->kind != FDR_SEND && e->kind != FDR_RECV && e->kind != FDR_COLL_END) return;
    if (!collective) saw_rank(p, (uint32_t)e->field[0]);
    if (f->rank < 0 || !fdri_convert_partners_ordinal(p, file, e, &ordinal)) return;
    const struct envelope envelope = envelope_of(f, e);
    struct runs *runs = runs_of(p, &envelope);
    if (!runs || !add_to(runs, ordinal, ordinal)) p->no_memory = true;
    else if (collective) runs->group = fdr_comm_info(f->file, (uint32_t)e->field[0]);
}

static bool take_resolution(struct side_of_file *f, const struct fdr_read_event *e)
{
    if (!grow(&f->resolution, f->resolutions, &f->room, sizeof *f->resolution)) return false;
    f->resolution[f->resolutions++] = (struct resolution){e->field[0], e->field[1]};
    return true;
}

static struct fdr_iter *points_of(struct fdr_file *file, const struct fdr_select *select, uint32_t classes)
{
    struct fdr_select points = select ? *select : (struct fdr_select){0};
    points.classes = points.classes ? points.classes & classes : classes;
    points.one_location_after_another = false;
    return fdr_iter_open(file, &points);
}

/* All resolutions count, also those that are not selected. */
static bool find_resolutions(struct side_of_file *f)
{
    struct fdr_iter *iter = points_of(f->file, NULL, 1u << FDR_IN_MESSAGE);
    struct fdr_read_event e;
    bool good = iter != NULL;
    while (good && fdr_iter_next(iter, &e))
        if (e.kind == FDR_RESOLVE) good = take_resolution(f, &e);
    fdr_iter_close(iter);
    if (f->resolutions) qsort(f->resolution, f->resolutions, sizeof *f->resolution, by_token);
    return good;
}

static bool chosen(const struct fdr_select *select)
{
    return select && (select->locations || select->classes || select->depth_min || select->depth_max ||
                      select->from_ns || select->to_ns || select->regions);
}

static void look_at_ledger(struct side_of_file *f, const struct fdr_select *select)
{
    const struct fdr_ledger_row *row;
    f->messages_whole = f->collectives_whole = !chosen(select);
    for (size_t i = 0, n = fdr_ledger(f->file, &row); i < n; i++) {
        if (row[i].presented == row[i].kept) continue;
        if (row[i].class_ == FDR_IN_MESSAGE) f->messages_whole = false;
        if (row[i].class_ == FDR_IN_COLLECTIVE) f->collectives_whole = false;
    }
}

/* After a cancelled send the two sides number their messages differently. */
static void mark_holes(struct fdri_convert_partners *p, const struct side_of_file *f)
{
    const struct fdr_tally_row *row;
    for (size_t i = 0, n = f->rank < 0 ? 0 : fdr_tallies(f->file, &row); i < n; i++) {
        struct {
            uint64_t comm;
            uint32_t peer;
            int32_t tag;
        } key;
        if ((row[i].kind != FDR_TALLY_SENT && row[i].kind != FDR_TALLY_RECEIVED) || !row[i].counter[2]) continue;
        memcpy(&key, row[i].key, sizeof key);
        bool sent = row[i].kind == FDR_TALLY_SENT;
        const struct envelope envelope = {key.comm, sent ? (uint32_t)f->rank : key.peer,
                                          sent ? key.peer : (uint32_t)f->rank, key.tag, sent ? SENT : RECEIVED};
        struct runs *runs = runs_of(p, &envelope);
        if (runs) runs->disordered = true;
        else p->no_memory = true;
    }
}

static void take_members(struct fdri_convert_partners *p, const struct fdr_file *file)
{
    for (size_t id = 1, n = fdr_definition_count(file, FDR_COMM_DEFINITION); id <= n; id++) {
        const struct fdr_comm_info *c = fdr_comm_info(file, (uint32_t)id);
        for (uint32_t i = 0; c->world_rank && i < c->size; i++) saw_rank(p, c->world_rank[i]);
    }
}

static void take_file(struct fdri_convert_partners *p, size_t file, const struct fdr_select *select)
{
    struct side_of_file *f = &p->file[file];
    struct fdr_read_event e;
    look_at_ledger(f, select);
    take_members(p, f->file);
    if (!find_resolutions(f)) p->no_memory = true;
    mark_holes(p, f);
    struct fdr_iter *iter = points_of(f->file, select, 1u << FDR_IN_MESSAGE | 1u << FDR_IN_COLLECTIVE);
    p->no_memory |= !iter;
    bool any = !select || !select->classes || select->classes & (1u << FDR_IN_MESSAGE | 1u << FDR_IN_COLLECTIVE);
    while (any && !p->no_memory && fdr_iter_next(iter, &e)) take_event(p, file, &e);
    fdr_iter_close(iter);
}

/* ---- collectives: what all members have ---- */

static bool is_member(const struct fdr_comm_info *c, int rank)
{
    if (rank < 0) return false;
    bool found = !c->id || !c->world_rank || !c->size;
    for (uint32_t i = 0; !found && i < c->size; i++) found = c->world_rank[i] == (uint32_t)rank;
    return found;
}

static bool intersect(struct runs *all, const struct runs *one)
{
    struct runs both = {.disordered = all->disordered || !one || one->disordered};
    bool good = true;
    for (size_t i = 0, k = 0; one && good && i < all->count && k < one->count;) {
        const struct run a = all->run[i], b = one->run[k];
        uint64_t first = a.first > b.first ? a.first : b.first, last = a.last < b.last ? a.last : b.last;
        if (first <= last) good = add_to(&both, first, last);
        if (a.last < b.last) i++;
        else k++;
    }
    free(all->run);
    *all = both;
    return good;
}

static bool find_common(struct fdri_convert_partners *p, uint32_t number)
{
    struct envelope own, all;
    memcpy(&own, fdri_convert_interned_key(&p->envelopes, number), sizeof own);
    const struct fdr_comm_info *group = p->runs[number].group;
    all = own;
    all.from = 0;
    all.side = ALL_TOOK_PART;
    if (own.side != TAKEN_PART || !group || runs_known(p, &all)) return true;
    struct runs *common = runs_of(p, &all);
    if (!common || !add_to(common, 0, UINT64_MAX)) return false;
    for (size_t i = 0; i < p->files; i++) {
        if (!is_member(group, p->file[i].rank)) continue;
        own.from = (uint32_t)p->file[i].rank;
        if (!intersect(common, runs_known(p, &own))) return false;
    }
    return true;
}

/* ---- the answers ---- */

static bool has_file(const struct fdri_convert_partners *p, uint32_t rank, bool *whole)
{
    for (size_t i = 0; i < p->files; i++) {
        *whole = p->file[i].messages_whole;
        if (p->file[i].rank >= 0 && (uint32_t)p->file[i].rank == rank) return true;
    }
    return false;
}

bool fdri_convert_partners_message(const struct fdri_convert_partners *p, size_t file, const struct fdr_read_event *e)
{
    const struct side_of_file *f = &p->file[file];
    uint64_t ordinal;
    bool whole;
    if (f->rank < 0) return false;
    if (e->ordinal_kind == FDR_ORDINAL_NONE && f->messages_whole)
        return has_file(p, (uint32_t)e->field[0], &whole) && whole;
    if (!fdri_convert_partners_ordinal(p, file, e, &ordinal)) return false;
    struct envelope envelope = envelope_of(f, e);
    if (!among(runs_known(p, &envelope), ordinal)) return false;
    envelope.side = envelope.side == SENT ? RECEIVED : SENT;
    return among(runs_known(p, &envelope), ordinal);
}

bool fdri_convert_partners_collective(const struct fdri_convert_partners *p, size_t file,
                                      const struct fdr_read_event *e)
{
    const struct side_of_file *f = &p->file[file];
    struct envelope envelope = envelope_of(f, e);
    uint64_t ordinal;
    bool whole = true;
    for (size_t i = 0; i < p->files; i++) whole &= p->file[i].collectives_whole;
    if (f->rank < 0) return false;
    if (e->ordinal_kind == FDR_ORDINAL_NONE) return whole;
    envelope.from = 0;
    envelope.side = ALL_TOOK_PART;
    return fdri_convert_partners_ordinal(p, file, e, &ordinal) && among(runs_known(p, &envelope), ordinal);
}

/* ---- open and close ---- */

struct fdri_convert_partners *fdri_convert_partners_open(struct fdr_file *const *files, size_t count,
                                                         const struct fdr_select *select)
{
    struct fdri_convert_partners *p = calloc(1, sizeof *p);
    if (p) p->file = calloc(count ? count : 1, sizeof *p->file);
    if (!p || !p->file) {
        free(p);
        return NULL;
    }
    p->files = count;
    for (size_t i = 0; i < count; i++) p->file[i].file = files[i];
    take_ranks(p);
    for (size_t i = 0; i < count && !p->no_memory; i++) take_file(p, i, select ? &select[i] : NULL);
    for (uint32_t i = 0, n = p->envelopes.count; i < n && !p->no_memory; i++) p->no_memory = !find_common(p, i);
    sort_ranks(p);
    if (!p->no_memory) return p;
    fdri_convert_partners_close(p);
    return NULL;
}

void fdri_convert_partners_close(struct fdri_convert_partners *p)
{
    for (size_t i = 0; p && i < p->files; i++) free(p->file[i].resolution);
    for (uint32_t i = 0; p && i < p->envelopes.count; i++) free(p->runs[i].run);
    if (!p) return;
    free(p->file);
    free(p->runs);
    free(p->rank);
    fdri_convert_interned_free(&p->envelopes);
    fdri_convert_interned_free(&p->ranks_seen);
    free(p);
}
