/* SPDX-License-Identifier: MIT */
/* The messages of all recordings with both ends, as the page draws them. Ordinals match them, not times. */
#include "tools/html/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/messages.h"

enum { MESSAGES_MOST = 200000, NUMBERS = 3, WORDS = 9 };

struct page_messages {
    struct job job;
};

struct page_messages *page_messages_of(const struct page *page)
{
    struct page_messages *m = calloc(1, sizeof *m);
    bool whole = m != NULL;
    for (size_t i = 0; whole && i < page->files; i++)
        whole = messages_add(&m->job, page->death[i].path, page->death[i].file);
    if (whole) {
        messages_match(&m->job);
        return m;
    }
    page_messages_free(m);
    return NULL;
}

void page_messages_free(struct page_messages *m)
{
    if (m) messages_free(&m->job);
    free(m);
}

/* ---- what becomes of a message ---- */

static const char *const without[END_STATES] = {
    [EDGE] = "has no other end here: its rank has no file, or had not come so far",
    [GIVEN_BACK] = "the other end was given back",
    [AMBIGUOUS] = "its partner is ambiguous",
    [UNRESOLVED] = "its number is not known",
    [UNMATCHABLE] = "it has no number",
};

const char *page_partner(const struct page *page, size_t file, const struct fdr_read_event *e, char *text)
{
    const struct job *job = &page->messages->job;
    bool is_send = e->kind == FDR_SEND;
    snprintf(text, 160, "%s", "");
    for (size_t i = 0; i < job->ends; i++) {
        const struct message_end *m = &job->end[i];
        if (m->file != file || m->location != e->location || m->time_ns != e->time_ns || m->is_send != is_send)
            continue;
        if (m->state == MATCHED)
            snprintf(text, 160, "%s by rank %u", is_send ? "received" : "sent", is_send ? m->to : m->from);
        else if (without[m->state]) snprintf(text, 160, "%s", without[m->state]);
        break;
    }
    return text;
}

/* ---- columns ---- */

/* One row: a message of which both ends are kept, or one end of another. */
static bool is_row(const struct message_end *m) { return m->state != MATCHED || m->is_send; }

static double time_of(const struct page *page, const struct message_end *m)
{
    return m ? page_time(page, m->file, m->time_ns) : NAN;
}

struct row {
    const struct message_end *send, *receive; /* NULL: not kept */
    double newest;
};

static struct row row_of(const struct page *page, const struct message_end *all, const struct message_end *m)
{
    const struct message_end *partner = m->state == MATCHED ? &all[m->partner] : NULL;
    struct row r = {.send = m->is_send ? m : partner, .receive = m->is_send ? partner : m};
    r.newest = fmax(time_of(page, r.send), time_of(page, r.receive)); /* fmax passes over NAN */
    return r;
}

static int by_newest(const void *x, const void *y)
{
    double a = ((const struct row *)x)->newest, b = ((const struct row *)y)->newest;
    return a < b ? 1 : a > b ? -1 : 0;
}

static uint32_t comm_number(const struct job *job, uint64_t identity)
{
    for (size_t i = 0; i < job->comms; i++)
        if (job->comm[i].identity == identity) return (uint32_t)i;
    return UINT32_MAX;
}

static void write_row(const struct page *page, const struct row *r, double *number, uint32_t *word, size_t rows)
{
    const struct message_end *m = r->send ? r->send : r->receive;
    const double numbers[NUMBERS] = {time_of(page, r->send), time_of(page, r->receive), (double)m->bytes};
    const uint32_t words[WORDS] = {r->send ? r->send->file : UINT32_MAX,
                                   r->send ? r->send->location : UINT32_MAX,
                                   r->receive ? r->receive->file : UINT32_MAX,
                                   r->receive ? r->receive->location : UINT32_MAX,
                                   m->from,
                                   m->to,
                                   (uint32_t)m->tag,
                                   comm_number(&page->messages->job, m->comm),
                                   m->state};
    for (size_t c = 0; c < NUMBERS; c++) number[c * rows] = numbers[c];
    for (size_t c = 0; c < WORDS; c++) word[c * rows] = words[c];
}

/* The newest rows first. */
static struct row *rows_of_job(const struct page *page, size_t *count)
{
    const struct job *job = &page->messages->job;
    struct row *row = calloc(job->ends + 1, sizeof *row);
    *count = 0;
    for (size_t i = 0; row && i < job->ends; i++)
        if (is_row(&job->end[i])) row[(*count)++] = row_of(page, job->end, &job->end[i]);
    if (*count) qsort(row, *count, sizeof *row, by_newest);
    return row;
}

/* Rows, all messages there are (u32 each); then three columns of f64 and nine of u32. */
void *page_messages_pack(const struct page *page, size_t *bytes)
{
    size_t all, rows;
    struct row *row = rows_of_job(page, &all);
    rows = all < MESSAGES_MOST ? all : MESSAGES_MOST;
    *bytes = 8 + rows * (NUMBERS * sizeof(double) + WORDS * sizeof(uint32_t));
    uint32_t *block = row ? malloc(*bytes) : NULL;
    if (block) {
        double *number = (double *)(void *)(block + 2);
        uint32_t *word = (uint32_t *)(number + NUMBERS * rows);
        block[0] = (uint32_t)rows;
        block[1] = all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
        for (size_t i = 0; i < rows; i++) write_row(page, &row[i], number + i, word + i, rows);
    }
    free(row);
    return block;
}

json_t *page_comms(const struct page *page)
{
    const struct job *job = &page->messages->job;
    json_t *list = json_array();
    for (size_t i = 0; i < job->comms; i++) json_array_append_new(list, json_text(job->comm[i].name));
    return list;
}
