/* SPDX-License-Identifier: MIT */
/* Takes the messages, collectives and counters out of the files of a job. */
#include "tools/messages.h"
#include "tools/common/job_files.h"

#include <fdr/fdr.h>
#include <fdr/tally.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- arrays that grow ---- */

static bool grow(void *array, size_t count, size_t *room, size_t bytes)
{
    if (count < *room) return true;
    size_t more = *room ? *room * 2 : 256;
    void *p = realloc(*(void **)array, more * bytes);
    if (!p) return false;
    *(void **)array = p;
    *room = more;
    return true;
}

/* ---- ranks ---- */

/* Replayed streams have the names of their files: "lu.r3.t0". -1: none. */
static int rank_in_name(const char *name)
{
    int rank = -1, thread, end = 0;
    for (const char *p = strstr(name, ".r"); p; p = strstr(p + 1, ".r"))
        if (sscanf(p, ".r%d.t%d%n", &rank, &thread, &end) == 2 && !p[end]) return rank;
    return -1;
}

static bool add_rank(struct job *job, int rank, uint32_t file)
{
    if (rank < 0 || has_rank(job, (uint32_t)rank, NULL)) return true;
    struct rank_file *more = realloc(job->rank, (job->ranks + 1) * sizeof *more);
    if (!more) return false;
    size_t at = job->ranks++;
    for (job->rank = more; at && more[at - 1].rank > (uint32_t)rank; at--) more[at] = more[at - 1];
    more[at] = (struct rank_file){(uint32_t)rank, file};
    return true;
}

bool has_rank(const struct job *job, uint32_t rank, uint32_t *file)
{
    size_t low = 0, high = job->ranks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (job->rank[middle].rank < rank) low = middle + 1;
        else high = middle;
    }
    if (low == job->ranks || job->rank[low].rank != rank) return false;
    if (file) *file = job->rank[low].file;
    return true;
}

/* ---- communicators ---- */

const struct job_comm *comm_of(const struct job *job, uint64_t identity)
{
    for (size_t i = 0; i < job->comms; i++)
        if (job->comm[i].identity == identity) return &job->comm[i];
    return NULL;
}

static bool add_comm(struct job *job, const struct fdr_comm_info *c)
{
    if (comm_of(job, c->identity)) return true;
    if (!grow(&job->comm, job->comms, &job->comms_room, sizeof *job->comm)) return false;
    struct job_comm *to = &job->comm[job->comms++];
    *to = (struct job_comm){.identity = c->identity, .size = c->size};
    snprintf(to->name, sizeof to->name, "%s", c->id ? c->name : "world");
    return true;
}

/* ---- events ---- */

/* Numbers that resolutions say, sorted by token. */
struct resolution {
    uint64_t token, ordinal;
};
struct resolutions {
    struct resolution *list;
    size_t count, room;
};

static int by_token(const void *x, const void *y)
{
    const struct resolution *a = x, *b = y;
    return (a->token > b->token) - (a->token < b->token);
}

static void resolve(struct message_end *e, uint8_t kind, const struct resolutions *r)
{
    e->state = ALONE;
    if (kind == FDR_ORDINAL_OPEN) {
        const struct resolution key = {e->ordinal, 0};
        const struct resolution *found = r->count ? bsearch(&key, r->list, r->count, sizeof key, by_token) : NULL;
        e->state = found ? ALONE : UNRESOLVED;
        e->ordinal = found ? found->ordinal : 0;
        if (found && e->ordinal == FDR_ORDINAL_UNKNOWN) kind = FDR_ORDINAL_NONE;
        else if (found && e->ordinal & FDR_ORDINAL_AMBIGUOUS) kind = FDR_ORDINAL_SHARED;
    }
    if (kind == FDR_ORDINAL_NONE || (e->is_send ? e->to : e->from) == UINT32_MAX) e->state = UNMATCHABLE;
    e->shared = kind == FDR_ORDINAL_SHARED;
    e->ordinal &= ~FDR_ORDINAL_AMBIGUOUS;
}

static bool add_end(struct job *job, uint32_t file, int rank, const struct fdr_read_event *e,
                    const struct resolutions *r)
{
    if (!grow(&job->end, job->ends, &job->ends_room, sizeof *job->end)) return false;
    struct message_end *to = &job->end[job->ends++];
    uint32_t own = rank < 0 ? UINT32_MAX : (uint32_t)rank, peer = (uint32_t)e->field[0];
    bool is_send = e->kind == FDR_SEND;
    *to = (struct message_end){.from = is_send ? own : peer,
                               .to = is_send ? peer : own,
                               .tag = (int32_t)e->field[1],
                               .ordinal = e->ordinal,
                               .bytes = e->field[3],
                               .time_ns = e->time_ns,
                               .file = file,
                               .location = e->location,
                               .is_send = is_send};
    to->comm = fdr_comm_info(job->file[file].file, (uint32_t)e->field[2])->identity;
    resolve(to, e->ordinal_kind, r);
    if (own == UINT32_MAX) to->state = UNMATCHABLE;
    return add_comm(job, fdr_comm_info(job->file[file].file, (uint32_t)e->field[2]));
}

static bool add_collective(struct job *job, uint32_t file, const struct fdr_read_event *e)
{
    const struct fdr_comm_info *c = e->field_count ? fdr_comm_info(job->file[file].file, (uint32_t)e->field[0]) : NULL;
    uint64_t comm = c ? c->identity : 0;
    size_t i = 0;
    while (i < job->collectives && (job->collective[i].comm != comm || job->collective[i].operation != e->id)) i++;
    if (i == job->collectives) {
        if (!grow(&job->collective, i, &job->collectives_room, sizeof *job->collective)) return false;
        job->collective[job->collectives++] = (struct collective){.comm = comm, .operation = e->id};
    }
    struct collective *to = &job->collective[i];
    to->begun += e->kind == FDR_COLL_BEGIN;
    to->ended += e->kind == FDR_COLL_END;
    if (e->kind == FDR_COLL_END) to->sent += e->field[2], to->received += e->field[3];
    return !c || add_comm(job, c);
}

static struct fdr_iter *points_of(struct fdr_file *file, uint32_t classes)
{
    const struct fdr_select select = {.classes = classes, .one_location_after_another = true};
    return fdr_iter_open(file, &select);
}

static bool find_resolutions(struct fdr_file *file, struct resolutions *r)
{
    struct fdr_iter *iter = points_of(file, 1u << FDR_IN_MESSAGE);
    struct fdr_read_event e;
    bool good = iter != NULL;
    while (good && fdr_iter_next(iter, &e)) {
        if (e.kind != FDR_RESOLVE) continue;
        good = grow(&r->list, r->count, &r->room, sizeof *r->list);
        if (good) r->list[r->count++] = (struct resolution){e.field[0], e.field[1]};
    }
    fdr_iter_close(iter);
    if (r->count) qsort(r->list, r->count, sizeof *r->list, by_token);
    return good;
}

static bool take_events(struct job *job, uint32_t f)
{
    struct job_file *jf = &job->file[f];
    struct resolutions r = {0};
    bool good = find_resolutions(jf->file, &r);
    struct fdr_iter *iter = good ? points_of(jf->file, 1u << FDR_IN_MESSAGE | 1u << FDR_IN_COLLECTIVE) : NULL;
    struct fdr_read_event e;
    int named = -1;
    uint32_t location = UINT32_MAX;
    good = iter != NULL;
    while (good && fdr_iter_next(iter, &e)) {
        if (e.location != location) named = rank_in_name(location_name(jf->file, location = e.location));
        int rank = jf->rank >= 0 ? jf->rank : named;
        if (e.kind == FDR_SEND || e.kind == FDR_RECV) good = add_end(job, f, rank, &e, &r);
        else if (e.kind != FDR_RESOLVE) good = add_collective(job, f, &e);
    }
    fdr_iter_close(iter);
    free(r.list);
    return good;
}

/* ---- regions ---- */

const char messages_no_region[] = "[no region]";

uint32_t rank_of_location(const struct job_file *jf, uint32_t location)
{
    int rank = jf->rank >= 0 ? jf->rank : rank_in_name(location_name(jf->file, location));
    return rank < 0 ? UINT32_MAX : (uint32_t)rank;
}

/* Among the rows from `first` on, those of one file. */
static struct region_sum *region_of(struct job *job, size_t first, const struct region_sum *row)
{
    for (size_t i = job->regions; i-- > first;) {
        struct region_sum *r = &job->region[i];
        if (r->rank == row->rank && r->caller == row->caller && !strcmp(r->name, row->name)) return r;
    }
    if (!grow(&job->region, job->regions, &job->regions_room, sizeof *job->region)) return NULL;
    job->region[job->regions] = *row;
    return &job->region[job->regions++];
}

static bool take_regions(struct job *job, const struct job_file *jf)
{
    const struct fdr_traffic_total *t;
    size_t first = job->regions;
    for (size_t i = 0, n = fdr_traffic(jf->file, &t); i < n; i++) {
        const struct region_sum row = {.rank = rank_of_location(jf, t[i].location),
                                       .name = t[i].region == UINT32_MAX ? NO_REGION
                                                                         : region_name(jf->file, t[i].region),
                                       .caller = t[i].caller};
        struct region_sum *r = region_of(job, first, &row);
        if (!r) return false;
        add_traffic(&r->sum, &t[i].sum);
        r->saturated |= t[i].saturated;
    }
    const struct fdr_total *all;
    for (size_t i = 0, n = fdr_totals(jf->file, &all); i < n; i++) {
        bool message = all[i].class_ == FDR_IN_MESSAGE;
        if (message && all[i].id == 1) job->recorded.sends += all[i].calls;
        if (message && all[i].id == 2) job->recorded.receives += all[i].calls;
        if (all[i].class_ == FDR_IN_COLLECTIVE) job->recorded.collectives += all[i].calls;
    }
    for (size_t i = 0; i < fdr_location_count(jf->file); i++)
        job->traffic_lost |= fdr_location_info(jf->file, i)->traffic_lost;
    return true;
}

/* ---- counters ---- */

static bool take_row(struct job *job, uint32_t f, const struct fdr_tally_row *row)
{
    struct {
        uint64_t identity;
        uint32_t peer;
        int32_t tag;
        uint8_t rest[8];
    } key;
    memcpy(&key, row->key, sizeof key);
    struct counted c = {.comm = key.identity,
                        .tag = key.tag,
                        .is_send = row->kind == FDR_TALLY_SENT,
                        .count = row->counter[0] & (((uint64_t)1 << 48) - 1),
                        .bytes = row->counter[1],
                        .hole = row->counter[2]};
    uint32_t own = (uint32_t)job->file[f].rank;
    c.from = c.is_send ? own : key.peer, c.to = c.is_send ? key.peer : own;
    if (row->kind == FDR_TALLY_COLLECTIVES) {
        c.count = row->counter[0];
        c.from = own;
        c.volume_known = fdr_mpi_comm_bytes(job->file[f].file, row, &c.volume);
        if (!grow(&job->begun, job->comms_begun, &job->begun_room, sizeof c)) return false;
        job->begun[job->comms_begun++] = c;
        return add_comm(job, fdr_comm_info(job->file[f].file, key.peer));
    }
    if (!grow(&job->counted, job->counts, &job->counts_room, sizeof c)) return false;
    job->counted[job->counts++] = c;
    return true;
}

static bool take_counters(struct job *job, uint32_t f)
{
    const struct fdr_tally_row *row;
    struct job_file *jf = &job->file[f];
    for (size_t i = 0, n = jf->rank < 0 ? 0 : fdr_tallies(jf->file, &row); i < n; i++) {
        jf->counts |= row[i].kind == FDR_TALLY_MPI;
        bool ours = row[i].kind >= FDR_TALLY_SENT && row[i].kind <= FDR_TALLY_COLLECTIVES;
        if (ours && !take_row(job, f, &row[i])) return false;
    }
    return true;
}

static void look_at_ledger(struct job_file *jf)
{
    const struct fdr_ledger_row *row;
    for (size_t i = 0, n = fdr_ledger(jf->file, &row); i < n; i++)
        if (row[i].class_ == FDR_IN_MESSAGE) jf->left_out |= row[i].presented != row[i].kept;
}

static bool take_ranks(struct job *job, uint32_t f)
{
    struct job_file *jf = &job->file[f];
    bool good = true, named = false;
    jf->rank = rank_of_file(jf->file, jf->path);
    for (size_t i = 0; jf->rank < 0 && i < fdr_location_count(jf->file); i++) {
        int rank = rank_in_name(fdr_location_info(jf->file, i)->name);
        named |= rank >= 0;
        good = good && add_rank(job, rank, f);
    }
    jf->unknown = jf->rank < 0 && !named;
    return good && add_rank(job, jf->rank, f);
}

bool messages_add(struct job *job, const char *path, struct fdr_file *file)
{
    struct job_file *wider = realloc(job->file, (job->files + 1) * sizeof *wider);
    if (!wider) return false;
    uint32_t f = (uint32_t)job->files++;
    job->file = wider;
    job->file[f] = (struct job_file){.path = path, .file = file};
    look_at_ledger(&job->file[f]);
    return take_ranks(job, f) && take_counters(job, f) && take_events(job, f) && take_regions(job, &job->file[f]);
}

bool messages_load(struct job *job, const char *const *paths, size_t count, int *status)
{
    job->opened = true;
    for (size_t i = 0; i < count; i++) {
        struct fdr_file *file = open_recording(paths[i], status);
        if (!file) continue;
        size_t before = job->ends;
        if (!messages_add(job, paths[i], file)) return false;
        if (job->file[job->files - 1].unknown && job->ends > before)
            complain("%s: its rank is not known; its messages have no partners", plain_name(paths[i]));
    }
    return job->files > 0;
}

void messages_free(struct job *job)
{
    for (size_t i = 0; job->opened && i < job->files; i++) fdr_file_close(job->file[i].file);
    free(job->file);
    free(job->rank);
    free(job->end);
    free(job->counted);
    free(job->begun);
    free(job->collective);
    free(job->comm);
    free(job->region);
}
