/* SPDX-License-Identifier: MIT */
/* The findings of all recordings of a page, and the places in the timeline that show them. */
#include "tools/html/page.h"

#include <stdlib.h>
#include <string.h>

static bool append(struct page_findings *to, size_t file, const struct findings *f)
{
    struct page_finding *row = realloc(to->row, (to->count + f->count + 1) * sizeof *row);
    if (!row) return false;
    to->row = row;
    for (size_t i = 0; i < f->count; i++) row[to->count++] = (struct page_finding){f->row[i], file};
    for (size_t i = 0; i < f->not_judged_count; i++) {
        char text[sizeof to->not_judged[0]];
        bool known = false;
        snprintf(text, sizeof text, "%s: %s", f->not_judged[i].what, f->not_judged[i].why);
        for (size_t k = 0; k < to->not_judged_count; k++) known = known || !strcmp(to->not_judged[k], text);
        if (!known && to->not_judged_count < NOT_JUDGED) strcpy(to->not_judged[to->not_judged_count++], text);
    }
    return true;
}

static int by_weight(const void *x, const void *y)
{
    double a = ((const struct page_finding *)x)->finding.weight, b = ((const struct page_finding *)y)->finding.weight;
    return a < b ? 1 : a > b ? -1 : 0;
}

void page_findings_of(const struct page *page, struct page_findings *to)
{
    *to = (struct page_findings){0};
    for (size_t i = 0; i < page->files; i++) {
        struct findings f;
        findings_of(page->death[i].file, page->death[i].path, &f);
        append(to, i, &f);
        findings_free(&f);
    }
    if (to->count) qsort(to->row, to->count, sizeof *to->row, by_weight);
}

/* A finding of the whole run leads to its thread; any other also to its time. */
void page_finding_link(const struct page *page, FILE *to, const struct page_finding *f)
{
    const struct finding *row = &f->finding;
    if (!row->locations) return;
    fputs(" <a href=\"#", to);
    if (row->from_ns || row->to_ns) {
        double from = page_time(page, f->file, row->from_ns), end = page_time(page, f->file, row->to_ns);
        double around = end - from > 1e6 ? (end - from) / 4 : 250000;
        fprintf(to, "t=%.0f,%.0f&amp;", from > around ? from - around : 0, end + around);
    }
    fprintf(to, "loc=%zu.%u\">show</a>", f->file, row->location[0]);
}
