/* SPDX-License-Identifier: MIT */
/* The culprit beside the other ranks, aligned by ordinals: clocks of different hosts play no part. Each duration is
 * taken by the clock of its own rank. */
#include "tools/html/page.h"

#include <stdlib.h>
#include <string.h>

#include <fdr/tally.h>

#include "tools/common/job_files.h"

enum { ROWS = 6, COLUMNS = 6 };

struct instance { /* of a collective on one rank */
    uint64_t begin_ns, end_ns;
    uint32_t operation; /* 0: not kept */
};
struct column {
    size_t file;
    int rank;
    uint64_t begun, ended, since_ns;
    uint32_t under_way; /* operation; 0: none */
    struct instance instance[ROWS];
};
struct table {
    uint64_t comm; /* identity */
    char name[64];
    struct column *column; /* the culprit, then the others; those that have begun the least come first */
    size_t columns;
    uint64_t first; /* ordinal of the first row */
    size_t rows;
};

/* ---- counters ---- */

/* The communicator on which the culprit has begun most collectives. */
static bool choose_comm(const struct page *page, struct table *t)
{
    const struct fdr_tally_row *row;
    struct fdr_mpi_comm_state s, best = {0};
    const struct fdr_file *file = page->death[page->culprit].file;
    for (size_t i = 0, n = fdr_tallies(file, &row); i < n; i++)
        if (fdr_mpi_comm_state(&row[i], &s) && s.begun > best.begun) best = s;
    const struct fdr_comm_info *c = best.begun ? fdr_comm_info(file, best.comm) : NULL;
    t->comm = best.identity;
    snprintf(t->name, sizeof t->name, "%s", best.comm == 0 ? "MPI_COMM_WORLD" : c ? c->name : "a communicator");
    return best.begun;
}

static bool state_of(const struct fdr_file *file, uint64_t comm, struct column *c)
{
    const struct fdr_tally_row *row;
    struct fdr_mpi_comm_state s;
    for (size_t i = 0, n = fdr_tallies(file, &row); i < n; i++) {
        if (!fdr_mpi_comm_state(&row[i], &s) || s.identity != comm) continue;
        c->begun = s.begun, c->ended = s.ended, c->under_way = s.operation, c->since_ns = s.since_ns;
        return true;
    }
    return false;
}

static int by_begun(const void *x, const void *y)
{
    const struct column *a = x, *b = y;
    if (a->begun != b->begun) return a->begun < b->begun ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* The culprit, the ranks that have begun the least, and of the others those that have begun the most. */
static void choose_columns(const struct page *page, struct table *t)
{
    size_t others = 0, newest = COLUMNS / 2 - 1;
    t->column = calloc(page->files + 1, sizeof *t->column);
    if (!t->column || !state_of(page->death[page->culprit].file, t->comm, &t->column[0])) return;
    for (size_t i = 0; i < page->files; i++) {
        struct column *c = i == page->culprit ? &t->column[0] : &t->column[1 + others];
        if (i != page->culprit && !state_of(page->death[i].file, t->comm, c)) continue;
        c->file = i;
        c->rank = rank_of_file(page->death[i].file, page->death[i].path);
        others += i != page->culprit;
    }
    qsort(t->column + 1, others, sizeof *t->column, by_begun);
    t->columns = 1 + (others < COLUMNS - 1 ? others : COLUMNS - 1);
    for (size_t i = 0; t->columns - 1 < others && i < newest; i++)
        t->column[t->columns - newest + i] = t->column[1 + others - newest + i];
}

static void choose_rows(struct table *t)
{
    uint64_t most = 0;
    for (size_t i = 0; i < t->columns; i++)
        if (t->column[i].begun > most) most = t->column[i].begun;
    t->rows = most < ROWS ? most : ROWS;
    t->first = most - t->rows;
}

/* ---- kept collectives ---- */

static void take(const struct table *t, const struct fdr_file *file, struct column *c, const struct fdr_read_event *e)
{
    const struct fdr_comm_info *comm = e->field_count ? fdr_comm_info(file, (uint32_t)e->field[0]) : NULL;
    bool known = e->ordinal_kind == FDR_ORDINAL_KNOWN && comm && comm->identity == t->comm;
    if (!known || e->ordinal < t->first || e->ordinal >= t->first + t->rows) return;
    struct instance *i = &c->instance[e->ordinal - t->first];
    i->operation = e->id;
    if (e->kind == FDR_COLL_BEGIN) i->begin_ns = e->time_ns;
    else i->end_ns = e->time_ns;
}

/* The rows are the newest collectives, so they are looked for from the end. */
static void fill(const struct table *t, struct fdr_file *file, struct column *c)
{
    const struct fdr_file_info *info = fdr_file_info(file);
    for (uint64_t back = 1000000000;; back = back < UINT64_MAX / 8 ? back * 8 : UINT64_MAX) {
        bool all = info->last_ns < back || info->last_ns - back <= info->first_ns;
        struct fdr_select select = {.classes = 1u << FDR_IN_COLLECTIVE,
                                    .from_ns = all ? info->first_ns : info->last_ns - back};
        struct fdr_iter *iter = fdr_iter_open(file, &select);
        struct fdr_read_event e;
        while (iter && fdr_iter_next(iter, &e)) take(t, file, c, &e);
        fdr_iter_close(iter);
        if (all || (c->instance[0].begin_ns && c->instance[0].end_ns)) return;
    }
}

/* ---- the table ---- */

static uint32_t operation_of(const struct table *t, size_t row, size_t *file)
{
    for (size_t k = 0; k < t->columns; k++) {
        const struct column *c = &t->column[k];
        *file = c->file;
        if (c->instance[row].operation) return c->instance[row].operation;
        if (c->under_way && c->begun - 1 == t->first + row) return c->under_way;
    }
    return 0;
}

static uint64_t inside(const struct instance *i) { return i->begin_ns && i->end_ns ? i->end_ns - i->begin_ns : 0; }

/* The rank that was in it for the shortest time: it came last, if nobody leaves before all have come. SIZE_MAX: this is
 * not known. */
static size_t last_of(const struct table *t, size_t row)
{
    size_t last = 0;
    for (size_t k = 0; k < t->columns; k++) {
        if (!inside(&t->column[k].instance[row])) return SIZE_MAX;
        if (inside(&t->column[k].instance[row]) < inside(&t->column[last].instance[row])) last = k;
    }
    return t->columns > 1 ? last : SIZE_MAX;
}

static void cell(const struct page *page, FILE *to, const struct column *c, uint64_t ordinal, const struct instance *i,
                 bool last)
{
    char text[HUMAN_BYTES];
    uint64_t end = page_end(page, c->file);
    fputs(last ? "<td class=\"n last\">" : "<td class=n>", to);
    if (ordinal >= c->begun) fputs("<span class=warn>not begun</span>", to);
    else if (c->under_way && ordinal == c->begun - 1)
        fprintf(to, "inside, %s", human_time(text, end > c->since_ns ? end - c->since_ns : 0));
    else if (inside(i)) fputs(human_time(text, inside(i)), to);
    else fputs("given back", to);
}

static void rank_head(const struct table *t, FILE *to)
{
    fputs("<tr><th>", to);
    for (size_t k = 0; k < t->columns; k++) fprintf(to, "<th class=n>rank %d", t->column[k].rank);
    fputs("</tr>\n", to);
}

static void collectives_table(const struct page *page, FILE *to, const struct table *t)
{
    size_t file = page->culprit;
    fputs("<h3>Beside the other ranks</h3><p>Time inside each collective of ", to);
    html_name(to, t->name);
    fputs(", by the rank's own clock. <span class=last>Shortest</span>: it came last.</p><table class=ranks>\n", to);
    rank_head(t, to);
    for (size_t row = 0; row < t->rows; row++) {
        size_t last = last_of(t, row);
        uint32_t operation = operation_of(t, row, &file);
        fputs("<tr><td>", to);
        if (operation) html_name(to, fdr_id_name(page->death[file].file, FDR_IN_COLLECTIVE, operation));
        else fputs("collective", to);
        fprintf(to, " #%llu", (unsigned long long)(t->first + row));
        for (size_t k = 0; k < t->columns; k++)
            cell(page, to, &t->column[k], t->first + row, &t->column[k].instance[row], k == last);
        fputs("</tr>\n", to);
    }
}

/* ---- messages between the culprit and the others: sends and receives are counted when they are posted ---- */

static uint64_t messages_with(const struct fdr_file *file, enum fdr_tally_kind kind, int peer)
{
    const struct fdr_tally_row *row;
    uint64_t count = 0;
    uint32_t rank;
    for (size_t i = 0, n = fdr_tallies(file, &row); i < n; i++) {
        memcpy(&rank, row[i].key + 8, sizeof rank);
        if (row[i].kind == (uint32_t)kind && rank == (uint32_t)peer)
            count += row[i].counter[0] & (((uint64_t)1 << 48) - 1);
    }
    return count;
}

static void messages_row(const struct page *page, FILE *to, const struct table *t, bool from_culprit)
{
    const struct fdr_file *culprit = page->death[page->culprit].file;
    fprintf(to, "<tr><td>messages sent %s it<td>", from_culprit ? "by" : "to");
    for (size_t k = 1; k < t->columns; k++) {
        const struct fdr_file *other = page->death[t->column[k].file].file;
        uint64_t sent = messages_with(from_culprit ? culprit : other, FDR_TALLY_SENT,
                                      from_culprit ? t->column[k].rank : t->column[0].rank);
        uint64_t received = messages_with(from_culprit ? other : culprit, FDR_TALLY_RECEIVED,
                                          from_culprit ? t->column[0].rank : t->column[k].rank);
        fputs("<td class=n>", to);
        if (!sent && !received) fputs("none", to);
        else fprintf(to, "%llu", (unsigned long long)sent);
        if (received > sent) fprintf(to, ", %llu awaited", (unsigned long long)(received - sent));
        if (sent > received) fprintf(to, ", %llu not asked for", (unsigned long long)(sent - received));
    }
    fputs("</tr>\n", to);
}

void ranks_beside(const struct page *page, FILE *to)
{
    struct table t = {0};
    if (page->files < 2 || !choose_comm(page, &t)) return;
    choose_columns(page, &t);
    choose_rows(&t);
    if (t.columns > 1) {
        for (size_t k = 0; k < t.columns; k++) fill(&t, page->death[t.column[k].file].file, &t.column[k]);
        collectives_table(page, to, &t);
        messages_row(page, to, &t, true);
        messages_row(page, to, &t, false);
        fputs("</table>\n", to);
    }
    free(t.column);
}
