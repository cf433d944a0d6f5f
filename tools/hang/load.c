/* SPDX-License-Identifier: MIT */
/* Takes the facts of a job out of its recordings: counters of messages and collectives, and what threads are in. */
#include "tools/hang/load.h"

#include <fdr/tally.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT_OF(word) ((word) & (((uint64_t)1 << 48) - 1))

bool has_mpi_state(const struct fdr_file *file)
{
    const struct fdr_tally_row *row;
    for (size_t i = 0, n = fdr_tallies(file, &row); i < n; i++)
        if (row[i].kind == FDR_TALLY_CALL) return true;
    return false;
}

static const char *note_of(const struct fdr_file *file, const char *key)
{
    const struct fdr_note_info *note;
    for (size_t i = 0, n = fdr_notes(file, &note); i < n; i++)
        if (strcmp(note[i].key, key) == 0) return note[i].value;
    return "";
}

static int note_number(const struct fdr_file *file, const char *key)
{
    const char *text = note_of(file, key);
    return *text ? atoi(text) : -1;
}

static int rank_of(const struct fdr_file *file)
{
    int rank = note_number(file, "mpi.rank");
    return rank >= 0 ? rank : fdr_file_info(file)->rank;
}

/* ---- communicators ---- */

static bool add_comm(struct job *job, const struct fdr_file *file, uint32_t id)
{
    const struct fdr_comm_info *c = id == UINT32_MAX ? NULL : fdr_comm_info(file, id);
    if (!c || !c->identity || job_comm_of(job, c->identity)) return true;
    struct job_comm *wider = realloc(job->comm, (job->comms + 1) * sizeof *wider);
    if (!wider) return false;
    job->comm = wider;
    struct job_comm *to = &job->comm[job->comms++];
    *to = (struct job_comm){.identity = c->identity, .size = c->size, .member = c->size ? c->world_rank : NULL};
    snprintf(to->name, sizeof to->name, "%s", id ? plain_name(c->name) : "MPI_COMM_WORLD");
    if (strcmp(to->name, "communicator") == 0) /* it has no name */
        snprintf(to->name, sizeof to->name, "a communicator of %u ranks", c->size);
    return true;
}

/* The world is as large as the notes say. */
static void set_world(struct job *job)
{
    for (size_t i = 0; i < job->comms; i++)
        if (!job->comm[i].size && !strcmp(job->comm[i].name, "MPI_COMM_WORLD")) job->comm[i].size = job->world;
}

static uint64_t identity_of(const struct fdr_file *file, uint32_t id)
{
    const struct fdr_comm_info *c = id == UINT32_MAX ? NULL : fdr_comm_info(file, id);
    return c ? c->identity : 0;
}

/* ---- rows of counters ---- */

static bool add_collectives(struct job *job, struct job_rank *r, const struct fdr_file *file,
                            const struct fdr_mpi_comm_state *s)
{
    struct job_comm_state *wider = realloc(r->comm, (r->comms + 1) * sizeof *wider);
    if (!wider) return false;
    r->comm = wider;
    r->comm[r->comms++] = (struct job_comm_state){.comm = s->identity, .begun = s->begun, .ended = s->ended};
    return add_comm(job, file, s->comm);
}

static bool add_envelope(struct job_rank *r, const struct fdr_tally_row *row)
{
    struct job_envelope e = {.count = COUNT_OF(row->counter[0]), .sent = row->kind == FDR_TALLY_SENT};
    if ((r->envelopes & (r->envelopes - 1)) == 0) { /* full at each power of two */
        struct job_envelope *wider = realloc(r->envelope, (r->envelopes ? 2 * r->envelopes : 1) * sizeof *wider);
        if (!wider) return false;
        r->envelope = wider;
    }
    memcpy(&e.comm, row->key, sizeof e.comm);
    memcpy(&e.peer, row->key + 8, sizeof e.peer);
    memcpy(&e.tag, row->key + 12, sizeof e.tag);
    e.unsure = row->counter[2] != 0;
    r->envelope[r->envelopes++] = e;
    return true;
}

static bool blocks(enum fdr_mpi_wait kind) { return kind != FDR_MPI_WAIT_NOTHING; }

/* Of several threads in calls the one that waits longest is told; one that does not block comes last. */
static bool tells_more(const struct job_wait *was, const struct fdr_mpi_thread_state *s, uint64_t since_ns)
{
    if (!was->in_call) return true;
    if (blocks(was->kind) != blocks(s->wait)) return blocks(s->wait);
    return since_ns < was->since_ns;
}

static bool lives(const struct fdr_file *file, const struct fdr_mpi_thread_state *s)
{
    const struct fdr_location_info *l = location_of_thread(file, s->tid);
    return s->in_call || !l || l->live;
}

/* Calls of the living thread that calls MPI most. */
static uint64_t most_calls(const struct fdr_file *file)
{
    const struct fdr_tally_row *row;
    struct fdr_mpi_thread_state s;
    uint64_t most = 0;
    for (size_t i = 0, n = fdr_tallies(file, &row); i < n; i++)
        if (fdr_mpi_thread_state(file, &row[i], &s) && lives(file, &s) && s.calls > most) most = s.calls;
    return most;
}

/* A thread with so few calls waits for a request or the end, as it should: another one speaks for the rank. */
static bool only_serves(const struct fdr_mpi_thread_state *s, uint64_t most)
{
    enum { TIMES_FEWER = 16 };
    return (s->calls + 1) * TIMES_FEWER < most;
}

static bool take_thread(struct job *job, struct job_rank *r, const struct fdr_file *file,
                        const struct fdr_mpi_thread_state *s, uint64_t most, uint32_t *tid)
{
    uint64_t since = real_of(fdr_file_info(file), s->since_ns);
    bool living = lives(file, s);
    r->callers += living && (s->calls || s->in_call);
    if (s->torn) r->moves = YES;
    if (only_serves(s, most)) return true;
    if (living && !*tid) *tid = s->tid;
    if (!s->in_call || s->torn || !tells_more(&r->wait, s, since)) return true;
    *tid = s->tid;
    struct job_wait *w = &r->wait;
    *w = (struct job_wait){.in_call = true,
                           .kind = s->wait,
                           .comm = identity_of(file, s->comm),
                           .operation = s->operation,
                           .peer = s->peer,
                           .tag = s->tag,
                           .pending = s->pending,
                           .ordinal = s->ordinal,
                           .since_ns = since};
    snprintf(w->call, sizeof w->call, "%s", s->region == UINT32_MAX ? "" : plain_name(region_name(file, s->region)));
    if (s->operation > 1)
        snprintf(w->collective, sizeof w->collective, "%s", fdr_id_name(file, FDR_IN_COLLECTIVE, s->operation));
    return add_comm(job, file, s->comm);
}

/* "messages": it counts from MPI_Init on. "not counted": there are communicators without counters. */
static void take_mpi(struct job_rank *r, const struct fdr_file *file, const struct fdr_tally_row *row)
{
    char key[64];
    fdr_tally_key_text(row, key, sizeof key);
    if (strcmp(key, "messages") == 0) r->counts = fdr_tally_room(file).refused == 0;
    if (strcmp(key, "not counted") == 0) r->leaves_out = true;
}

static bool take_rows(struct job *job, struct job_rank *r, const struct fdr_file *file, uint32_t *tid)
{
    const struct fdr_tally_row *row;
    struct fdr_mpi_comm_state comm;
    struct fdr_mpi_thread_state thread;
    uint64_t most = most_calls(file);
    bool good = true;
    for (size_t i = 0, n = fdr_tallies(file, &row); good && i < n; i++) {
        if (row[i].kind == FDR_TALLY_MPI) take_mpi(r, file, &row[i]);
        else if (row[i].kind == FDR_TALLY_SENT || row[i].kind == FDR_TALLY_RECEIVED) good = add_envelope(r, &row[i]);
        else if (fdr_mpi_comm_state(&row[i], &comm)) good = add_collectives(job, r, file, &comm);
        else if (fdr_mpi_thread_state(file, &row[i], &thread)) good = take_thread(job, r, file, &thread, most, tid);
    }
    return good;
}

/* ---- one rank ---- */

/* "solve > relax": the innermost regions that are not MPI's. */
static void tell_place(const struct fdr_file *file, const struct fdr_location_info *l, char *text, size_t bytes)
{
    enum { TOLD = 3 };
    size_t end = l->open_count, used = 0;
    *text = 0;
    while (end && strncmp(fdr_definition(file, FDR_REGION_DEFINITION, l->open[end - 1].region)->file, "mpi:", 4) == 0)
        end--;
    for (size_t i = end > TOLD ? end - TOLD : 0; i < end && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? " > " : "",
                                 plain_name(region_name(file, l->open[i].region)));
}

enum { WORLD_MOST = 16 << 20 }; /* no communicator is larger: a larger note is damage */

static bool take_rank(struct job *job, const struct process *p, const struct fdr_file *earlier, int rank)
{
    struct job_rank *r = &job->rank[job->ranks++];
    uint32_t tid = 0;
    int world = note_number(p->file, "mpi.size");
    *r = (struct job_rank){.rank = (uint32_t)rank, .process = p};
    if (world > (int)job->world && world <= WORLD_MOST) job->world = (uint32_t)world;
    if (!take_rows(job, r, p->file, &tid)) return false;
    look_at_life(p, earlier, r);
    const struct fdr_location_info *l = told_location(p->file, tid);
    if (l) tell_place(p->file, l, r->where, sizeof r->where);
    return true;
}

static int by_rank(const void *x, const void *y)
{
    const struct job_rank *a = x, *b = y;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* ---- one job of several ---- */

static bool of_one_job(const struct fdr_file *a, const struct fdr_file *b)
{
    static const char *const keys[] = {"mpi.job", "mpi.attempt", "mpi.size"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(note_of(a, keys[i]), note_of(b, keys[i])) != 0) return false;
    return true;
}

/* A process of the job with most recordings here; of equal ones the first. count: there is none. */
static size_t largest_job(const struct process *process, size_t count)
{
    size_t best = count, most = 0;
    for (size_t i = 0; i < count; i++) {
        bool seen = !has_mpi_state(process[i].file);
        for (size_t k = 0; k < i && !seen; k++)
            seen = has_mpi_state(process[k].file) && of_one_job(process[k].file, process[i].file);
        size_t n = 0;
        for (size_t k = i; k < count && !seen; k++)
            n += has_mpi_state(process[k].file) && of_one_job(process[k].file, process[i].file);
        if (n > most) most = n, best = i;
    }
    return best;
}

static bool runs_now(const struct job_rank *r)
{
    const struct process *p = r->process;
    return strcmp(fdr_file_info(p->file)->reason, "live") == 0;
}

/* Of several recordings of one rank, from attempts of the job, the newest counts. Two that run are of two jobs. */
static void keep_newest(struct job *job)
{
    size_t left = 0;
    for (size_t i = 0; i < job->ranks; i++) {
        struct job_rank *r = &job->rank[i];
        if (left && job->rank[left - 1].rank == r->rank) {
            struct job_rank *was = &job->rank[left - 1];
            bool newer = r->seen_ns > was->seen_ns;
            job->doubled |= runs_now(r) && runs_now(was);
            free(newer ? was->comm : r->comm), free(newer ? was->envelope : r->envelope);
            if (newer) *was = *r;
        } else {
            job->rank[left++] = *r;
        }
    }
    job->ranks = left;
}

bool job_load(struct job *job, const struct process *process, struct fdr_file *const *earlier, size_t count)
{
    bool good = true;
    size_t of = largest_job(process, count);
    job->rank = calloc(count + 1, sizeof *job->rank);
    if (!job->rank) return false;
    for (size_t i = 0; good && i < count; i++) {
        int rank = rank_of(process[i].file);
        if (rank < 0 || !has_mpi_state(process[i].file)) continue;
        if (!of_one_job(process[of].file, process[i].file)) job->others++;
        else good = take_rank(job, &process[i], earlier[i], rank);
    }
    qsort(job->rank, job->ranks, sizeof *job->rank, by_rank);
    keep_newest(job);
    set_world(job);
    return good;
}

void job_free(struct job *job)
{
    for (size_t i = 0; i < job->ranks; i++) free(job->rank[i].comm), free(job->rank[i].envelope);
    free(job->rank), free(job->comm);
}
