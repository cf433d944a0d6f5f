/* SPDX-License-Identifier: MIT */
/* Reads the tallies: counters of the process, by key. The process may have died while a key was made, and any byte may
 * be wrong: such rows are counted, not shown. */
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct fdri_arena_tallies *fdri_account_tallies(const struct fdr_file *f, uint64_t off)
{
    const struct fdri_arena_tallies *t = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_TALLIES, UINT32_MAX,
                                                                         sizeof *t);
    bool whole = t && t->log2 <= FDRI_ARENA_TALLIES_LOG2_MOST && fdri_arena_tallies_bytes(t->log2) <= t->head.bytes &&
                 fdri_file_at(f, off, t->head.bytes);
    return whole ? t : NULL;
}

enum fdri_tallies_state fdri_account_tally(const struct fdr_file *f, const struct fdri_arena_tally *row,
                                           struct fdr_tally_row *to)
{
    uint64_t off = (uint64_t)((const uint8_t *)row - f->bytes);
    memset(to, 0, sizeof *to);
    enum fdri_tallies_state state = fdri_tallies_read(row, &to->kind, to->key);
    memcpy(to->counter, row->counter, sizeof to->counter);
    return state != FDRI_TALLIES_EMPTY && fdri_file_is_suspect(f, off, sizeof *row) ? FDRI_TALLIES_DAMAGED : state;
}

static void add_row(struct fdr_file *f, const struct fdri_arena_tally *row)
{
    struct fdr_tally_row to;
    enum fdri_tallies_state state = fdri_account_tally(f, row, &to);
    f->tallies.places++;
    f->tallies.half += state == FDRI_TALLIES_HALF;
    f->tallies.damaged += state == FDRI_TALLIES_DAMAGED;
    if (state != FDRI_TALLIES_WHOLE || !fdri_file_grow(&f->tally, f->tally_count, &f->tally_room, sizeof *f->tally))
        return;
    f->tally[f->tally_count++] = to;
}

static int by_key(const void *x, const void *y)
{
    const struct fdr_tally_row *a = x, *b = y;
    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1) : memcmp(a->key, b->key, sizeof a->key);
}

static void read_table(struct fdr_file *f, const struct fdri_arena_tallies *t)
{
    for (uint32_t i = 0; i < 1u << t->log2; i++) add_row(f, &t->row[i]);
}

static void read_tables(struct fdr_file *f)
{
    uint32_t off = fdri_file_section(f, FDRI_ARENA_SECTION_TALLIES);
    const struct fdri_arena_tallies *first = off ? fdri_account_tallies(f, off) : NULL, *larger = NULL;
    if (!first) {
        if (off) fdri_file_damage(f, "the table of tallies is damaged");
        return;
    }
    f->tallies.refused = first->refused;
    read_table(f, first);
    bool more = first->larger && first->larger != FDRI_ARENA_TALLIES_NEVER;
    if (more && first->larger != off) larger = fdri_account_tallies(f, first->larger);
    if (larger) read_table(f, larger);
    else if (more) fdri_file_damage(f, "the larger table of tallies is damaged");
    if (f->tallies.damaged) fdri_file_damage(f, "%u tallies are damaged", f->tallies.damaged);
    if (f->tally_count) qsort(f->tally, f->tally_count, sizeof *f->tally, by_key);
}

/* Computed on first use. */
static void look(const struct fdr_file *file)
{
    struct fdr_file *f = (struct fdr_file *)(uintptr_t)file;
    pthread_mutex_lock(&f->lock);
    if (!f->has_tallies) read_tables(f);
    f->has_tallies = true;
    pthread_mutex_unlock(&f->lock);
}

size_t fdr_tallies(const struct fdr_file *file, const struct fdr_tally_row **rows)
{
    look(file);
    *rows = file->tally;
    return file->tally_count;
}

struct fdr_tally_room fdr_tally_room(const struct fdr_file *file)
{
    look(file);
    return file->tallies;
}

/* ---- the kinds of fdr: names, and how their keys read ---- */

static void print_name(const struct fdr_tally_row *row, char *text, size_t bytes)
{
    bool cut = row->key[FDRI_ARENA_TALLY_KEY_BYTES - 1] != 0;
    snprintf(text, bytes, "%.*s%s", (int)(cut ? FDRI_ARENA_TALLY_NAME_BEGIN : FDRI_ARENA_TALLY_NAME_SHORT),
             (const char *)row->key, cut ? "..." : "");
    for (char *c = text; bytes && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
}

static uint64_t identity_in(const struct fdr_tally_row *row)
{
    uint64_t identity;
    memcpy(&identity, row->key, sizeof identity);
    return identity;
}

static void print_communicator(const struct fdr_tally_row *row, char *text, size_t bytes)
{
    snprintf(text, bytes, "communicator %llx", (unsigned long long)identity_in(row));
}

static void print_envelope(const struct fdr_tally_row *row, char *text, size_t bytes)
{
    uint32_t peer;
    int32_t tag;
    memcpy(&peer, row->key + 8, sizeof peer);
    memcpy(&tag, row->key + 12, sizeof tag);
    snprintf(text, bytes, "%s %u, tag %d, communicator %llx", row->kind == FDRI_ARENA_TALLY_SENT ? "to" : "from", peer,
             tag, (unsigned long long)identity_in(row));
}

static void print_thread(const struct fdr_tally_row *row, char *text, size_t bytes)
{
    uint32_t tid;
    memcpy(&tid, row->key, sizeof tid);
    snprintf(text, bytes, "thread %u", tid);
}

static void print_bytes(const struct fdr_tally_row *row, char *text, size_t bytes)
{
    size_t used = 0;
    if (bytes) *text = 0;
    for (uint32_t i = 0; i < FDRI_ARENA_TALLY_KEY_BYTES && used + 3 < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%02x", i && i % 8 == 0 ? " " : "", row->key[i]);
}

static const struct kind {
    uint32_t kind;
    void (*print_key)(const struct fdr_tally_row *row, char *text, size_t bytes);
    const char *name, *counter[FDRI_ARENA_TALLY_COUNTERS];
} kinds[] = {
    {FDRI_ARENA_TALLY_TRIGGER, print_name, "trigger", {"seen", "dropped", "snapshots"}},
    {FDRI_ARENA_TALLY_MPI, print_name, "mpi", {"sent", "received", "collectives"}},
    {FDRI_ARENA_TALLY_SENT, print_envelope, "sent", {"messages", "bytes", "hole"}},
    {FDRI_ARENA_TALLY_RECEIVED, print_envelope, "received", {"messages", "bytes", "hole"}},
    {FDRI_ARENA_TALLY_COLLECTIVES, print_communicator, "collectives", {"begun", "ended", "under_way"}},
    {FDRI_ARENA_TALLY_CALL, print_thread, "mpi call", {"call", "since", "waits"}},
    {FDRI_ARENA_TALLY_WAIT, print_thread, "mpi wait", {"tag", "ordinal", "peer"}},
    {FDRI_ARENA_TALLY_COLLECTIVE_BYTES, print_communicator, "collective bytes", {"sent", "received", "ended"}},
    {FDRI_ARENA_TALLY_ITERATIONS, print_name, "iterations", {"kept", "removed", "undecided"}},
    {FDRI_ARENA_TALLY_DIFFERING, print_name, "differing iterations", {"classes", "outliers", "reduced"}},
};

/* A kind of others, or of a later version, has no name. */
static const struct kind *find_kind(uint32_t kind)
{
    static const struct kind other = {0, print_bytes, "", {"0", "1", "2"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind) return &kinds[i];
    return &other;
}

const char *fdr_tally_kind_name(uint32_t kind) { return find_kind(kind)->name; }

const char *fdr_tally_counter_name(uint32_t kind, unsigned counter)
{
    return counter < FDRI_ARENA_TALLY_COUNTERS ? find_kind(kind)->counter[counter] : "";
}

void fdr_tally_key_text(const struct fdr_tally_row *row, char *text, size_t bytes)
{
    find_kind(row->kind)->print_key(row, text, bytes);
}
