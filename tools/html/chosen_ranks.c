/* SPDX-License-Identifier: MIT */
/* Which recordings the page shows in full: the culprit, what stands out, one of each kind; then the others while they
 * fit. The rest is a line each. */
#include "tools/html/page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/hang/job_view.h"

enum {
    OVERVIEW_BYTES = 2 << 20, /* about, of a recording that is shown in full and not embedded */
    BETWEEN_RANKS = 200       /* weight of what stands out between ranks */
};

struct choice {
    size_t file;
    double weight; /* the greatest comes first */
};

static int by_weight(const void *x, const void *y)
{
    const struct choice *a = x, *b = y;
    if (a->weight != b->weight) return a->weight < b->weight ? 1 : -1;
    return a->file < b->file ? -1 : a->file > b->file;
}

static uint64_t size_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) ? (uint64_t)s.st_size : 0;
}

/* A recording that a process is writing differs from moment to moment, so it is not embedded. */
static bool may_embed(const struct page *page, size_t file)
{
    const struct death *d = &page->death[file];
    return !page->redact && d->kind != ALIVE && size_of(d->path) && size_of(d->path) < UINT32_MAX;
}

/* Findings between ranks weigh more than those in one. */
static void weigh_findings(const struct page *page, struct choice *c)
{
    for (size_t i = 0; i < page->findings->count; i++) {
        const struct page_finding *f = &page->findings->row[i];
        bool all = f->of_job && f->finding.file == SIZE_MAX;
        double weight = all ? 0 : (f->of_job ? BETWEEN_RANKS : 2) + (f->finding.weight < 90 ? f->finding.weight : 90);
        if (c[f->file].weight < weight) c[f->file].weight = weight;
    }
}

/* The ranks that are behind, and one rank of each kind. */
static void weigh_verdict(struct page *page, struct choice *c)
{
    struct job_view_file *view = calloc(page->files, sizeof *view);
    for (size_t i = 0; view && i < page->files; i++)
        view[i] = (struct job_view_file){.file = page->death[i].file, .path = page->death[i].path};
    if (view) view_job(view, page->files, page->verdict, sizeof page->verdict);
    for (size_t i = 0; view && i < page->files; i++) {
        double weight = view[i].behind ? 500 : view[i].first_of_kind ? 100 : 0;
        if (c[i].weight < weight) c[i].weight = weight;
    }
    free(view);
}

/* Where nobody died, the page is about the rank that is behind or unlike the others. */
static void tell_about(struct page *page, const struct choice *c)
{
    for (size_t i = 0; i < page->files; i++)
        if (c[i].weight >= BETWEEN_RANKS && c[i].weight > c[page->culprit].weight) page->culprit = i;
    page->story.death = &page->death[page->culprit];
}

static void weigh(struct page *page, struct choice *c)
{
    for (size_t i = 0; i < page->files; i++) c[i] = (struct choice){i, 0};
    weigh_findings(page, c);
    weigh_verdict(page, c);
    for (size_t i = 0; i < page->files; i++)
        if (page->death[i].kind == BY_FAULT || page->death[i].kind == KILLED) c[i].weight += 400;
    if (!page->died) tell_about(page, c);
    c[page->culprit].weight = 1e9;
}

/* Full buffers hardly pack, and base64 adds a third of the rest. */
static uint64_t about_bytes(const struct page *page, size_t file)
{
    uint64_t bytes = size_of(page->death[file].path) / 6 * 7;
    return may_embed(page, file) || bytes < OVERVIEW_BYTES ? bytes : OVERVIEW_BYTES;
}

void page_choose(struct page *page)
{
    struct choice *c = calloc(page->files, sizeof *c);
    uint64_t used = 0;
    if (c) weigh(page, c);
    if (c) qsort(c, page->files, sizeof *c, by_weight);
    for (size_t k = 0; c && k < page->files; k++) {
        size_t i = c[k].file;
        bool fits = used + about_bytes(page, i) <= page->most_bytes;
        page->embedded[i] = fits && may_embed(page, i);
        page->line[i] = !fits && i != page->culprit;
        if (fits) used += about_bytes(page, i);
    }
    free(c);
}
