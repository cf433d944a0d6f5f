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
    for (size_t i = 0; i < f->count; i++)
        row[to->count++] = (struct page_finding){
            f->row[i], file == FINDING_OF_JOB ? (f->row[i].file == SIZE_MAX ? 0 : f->row[i].file) : file,
            file == FINDING_OF_JOB};
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

struct page_findings *page_findings_of(const struct page *page)
{
    struct page_findings *to = calloc(1, sizeof *to);
    struct job_part *part = calloc(page->files, sizeof *part);
    bool whole = to && part;
    for (size_t i = 0; whole && i < page->files; i++) {
        struct findings f;
        findings_of(page->death[i].file, page->death[i].path, &f);
        whole = append(to, i, &f);
        findings_free(&f);
        part[i] = (struct job_part){page->death[i].file, page->death[i].path};
    }
    if (whole && page->files > 1) {
        struct findings f;
        job_findings_of(part, page->files, &f);
        whole = append(to, FINDING_OF_JOB, &f);
        findings_free(&f);
    }
    free(part);
    if (whole && to->count) qsort(to->row, to->count, sizeof *to->row, by_weight);
    if (whole) return to;
    page_findings_free(to);
    return NULL;
}

void page_findings_free(struct page_findings *findings)
{
    if (findings) free(findings->row);
    free(findings);
}

/* A finding of the whole run leads to its thread; any other also to its time. */
void page_finding_link(const struct page *page, FILE *to, const struct page_finding *f)
{
    const struct finding *row = &f->finding;
    if (f->of_job && row->file == SIZE_MAX) return;
    if (f->of_job) {
        const struct fdr_file *file = page->death[f->file].file;
        size_t busiest = busiest_location(page->death[f->file].file);
        if (busiest < fdr_location_count(file))
            fprintf(to, " <a href=\"#loc=%zu.%u\">show</a>", f->file, fdr_location_info(file, busiest)->id);
        return;
    }
    if (!row->locations) return;
    fputs(" <a href=\"#", to);
    if (row->from_ns || row->to_ns) {
        double from = page_time(page, f->file, row->from_ns), end = page_time(page, f->file, row->to_ns);
        double around = end - from > 1e6 ? (end - from) / 4 : 250000;
        fprintf(to, "t=%.0f,%.0f&amp;", from > around ? from - around : 0, end + around);
    }
    fprintf(to, "loc=%zu.%u\">show</a>", f->file, row->location[0]);
}
