/* SPDX-License-Identifier: MIT */
/* What stands out, from exact totals and epochs; and what could not be judged, and why. */
#include "tools/html/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/short_names.h"

#define LEAST_SHARE 0.02 /* of the run; less is not worth a line */

static struct finding *add(struct findings *f, size_t file, double weight)
{
    if (f->count == f->room) {
        size_t room = f->room ? f->room * 2 : 32;
        struct finding *grown = realloc(f->row, room * sizeof *grown);
        if (!grown) return NULL;
        f->row = grown;
        f->room = room;
    }
    f->row[f->count] = (struct finding){.weight = weight, .file = file, .location = UINT32_MAX, .at_ns = -1};
    return &f->row[f->count++];
}

static void __attribute__((format(printf, 2, 3))) unjudged(struct findings *f, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (f->unjudged_count < sizeof f->unjudged / sizeof *f->unjudged)
        vsnprintf(f->unjudged[f->unjudged_count++], sizeof *f->unjudged, format, arguments);
    va_end(arguments);
}

static double run_of(const struct page *page, size_t file)
{
    const struct fdr_file_info *i = fdr_file_info(page->death[file].file);
    uint64_t start = run_start(page->death[file].file);
    return i->last_ns > start ? (double)(i->last_ns - start) : 1;
}

static const char *thread_name(const struct fdr_file *file, uint32_t location, char *text, size_t bytes)
{
    const char *name = location_name(file, location);
    if (*name) snprintf(text, bytes, "%.60s", name);
    else snprintf(text, bytes, "location %u", location);
    return text;
}

/* ---- one call much longer than the others of its region ---- */

/* A duration that 99 of 100 calls stay below; 0: not known. */
static double p99_of(const struct fdr_total *t)
{
    uint64_t sum = 0;
    for (int b = 0; b < 64; b++) {
        sum += t->histogram[b];
        if ((double)sum >= 0.99 * (double)t->calls) return b >= 63 ? 0 : (double)(2ull << b);
    }
    return 0;
}

/* A call and those that it is inside of are as long: the innermost says most. It is the shortest. */
static bool as_long(const struct finding *row, uint64_t max_ns)
{
    double apart = row->max_ns > (double)max_ns ? row->max_ns - (double)max_ns : (double)max_ns - row->max_ns;
    return row->max_ns > 0 && apart < 0.1 * row->max_ns;
}

static struct finding *outlier_row(struct findings *f, size_t file, const struct fdr_total *t)
{
    for (size_t i = 0; i < f->count; i++) {
        struct finding *row = &f->row[i];
        if (row->file != file || row->location != t->location || !as_long(row, t->max_ns)) continue;
        return (double)t->max_ns < row->max_ns ? row : NULL;
    }
    return add(f, file, 0);
}

static void find_outliers(const struct page *page, size_t file, struct findings *f)
{
    const struct fdr_total *t;
    struct fdr_file *r = page->death[file].file;
    char longest[HUMAN_BYTES], usual[HUMAN_BYTES], calls[HUMAN_BYTES], thread[64];
    for (size_t i = 0, n = fdr_totals(r, &t); i < n; i++) {
        double p99 = t[i].has_histogram && t[i].class_ == FDR_IN_REGION && t[i].calls >= 200 ? p99_of(&t[i]) : 0;
        double share = (double)t[i].max_ns / run_of(page, file);
        if (p99 <= 0 || t[i].rest || (double)t[i].max_ns < 16 * p99 || share < LEAST_SHARE / 4) continue;
        struct finding *row = outlier_row(f, file, &t[i]);
        if (!row) continue;
        const struct view_node *kept = page_longest(page, file, t[i].location, t[i].id, t[i].max_ns);
        row->weight = share;
        row->location = t[i].location;
        row->max_ns = (double)t[i].max_ns;
        row->at_ns = kept ? page_time(page, file, fdr_file_info(r)->first_ns) + kept->longest_start_ns : -1;
        snprintf(row->text, sizeof row->text,
                 "One call of %.120s took %s; 99 of 100 of its %s calls stay below %s (%s).", plain_shown(r, t[i].id),
                 human_time(longest, t[i].max_ns), human_count(calls, t[i].calls), human_time(usual, (uint64_t)p99),
                 thread_name(r, t[i].location, thread, sizeof thread));
    }
}

/* ---- one thread unlike the others ---- */

struct mean {
    const struct fdr_total *total;
    double ns;
};

static int by_mean(const void *x, const void *y)
{
    double a = ((const struct mean *)x)->ns, b = ((const struct mean *)y)->ns;
    return a < b ? -1 : a > b;
}

static void judge_means(const struct page *page, size_t file, struct findings *f, struct mean *m, size_t count)
{
    struct fdr_file *r = page->death[file].file;
    char slow[HUMAN_BYTES], usual[HUMAN_BYTES], thread[64];
    qsort(m, count, sizeof *m, by_mean);
    const struct mean *most = &m[count - 1];
    double middle = m[(count - 1) / 2].ns, extra = (most->ns - middle) * (double)most->total->calls;
    double share = extra / run_of(page, file);
    if (most->ns < 1.5 * middle || share < LEAST_SHARE) return;
    struct finding *row = add(f, file, share);
    if (!row) return;
    row->location = most->total->location;
    snprintf(row->text, sizeof row->text, "%.120s takes %s a call in %s, and %s in the middle of its %zu threads.",
             plain_shown(r, most->total->id), human_time(slow, (uint64_t)most->ns),
             thread_name(r, most->total->location, thread, sizeof thread), human_time(usual, (uint64_t)middle), count);
}

static int by_region(const void *x, const void *y)
{
    const struct fdr_total *a = ((const struct mean *)x)->total, *b = ((const struct mean *)y)->total;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void find_imbalance(const struct page *page, size_t file, struct findings *f)
{
    const struct fdr_total *t;
    size_t n = fdr_totals(page->death[file].file, &t), count = 0;
    struct mean *m = calloc(n + 1, sizeof *m);
    for (size_t i = 0; m && i < n; i++)
        if (t[i].class_ == FDR_IN_REGION && !t[i].rest && t[i].calls >= 10)
            m[count++] = (struct mean){&t[i], (double)t[i].inclusive_ns / (double)t[i].calls};
    if (m) qsort(m, count, sizeof *m, by_region);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && m[end].total->id == m[i].total->id;) end++;
        if (end - i >= 2) judge_means(page, file, f, m + i, end - i);
    }
    free(m);
    if (fdr_location_count(page->death[file].file) < 2)
        unjudged(f, "Imbalance between threads: there is one location.");
}

/* ---- a region that grows ---- */

struct span {
    const struct fdr_epoch_total *first, *last;
};

static double mean_of(const struct fdr_epoch_total *t) { return (double)t->inclusive_ns / (double)t->calls; }

static void judge_growth(const struct page *page, size_t file, struct findings *f, const struct span *s)
{
    struct fdr_file *r = page->death[file].file;
    char before[HUMAN_BYTES], after[HUMAN_BYTES], thread[64];
    double factor = mean_of(s->last) / (mean_of(s->first) > 0 ? mean_of(s->first) : 1);
    double share = (double)s->last->inclusive_ns / run_of(page, file);
    if (factor < 2 || share < LEAST_SHARE / 2) return;
    struct finding *row = add(f, file, share);
    if (!row) return;
    row->location = s->last->location;
    snprintf(row->text, sizeof row->text, "%.120s grew %.1f times: from %s a call at first to %s at last (%s).",
             plain_shown(r, s->last->region), factor, human_time(before, (uint64_t)mean_of(s->first)),
             human_time(after, (uint64_t)mean_of(s->last)), thread_name(r, s->last->location, thread, sizeof thread));
}

/* Rows of one location, by region: the oldest and the newest epoch that have enough calls of it. */
static void grow_location(const struct page *page, size_t file, struct findings *f, const struct fdr_epoch_total *t,
                          size_t count)
{
    size_t regions = fdr_definition_count(page->death[file].file, FDR_REGION_DEFINITION) + 1;
    struct span *span = calloc(regions, sizeof *span);
    for (size_t i = 0; span && i < count; i++) {
        if (t[i].rest || t[i].at_least || t[i].calls < 10 || t[i].region >= regions) continue;
        struct span *s = &span[t[i].region];
        if (!s->first) s->first = &t[i];
        s->last = &t[i];
    }
    for (size_t i = 0; span && i < regions; i++)
        if (span[i].first && span[i].last->epoch > span[i].first->epoch) judge_growth(page, file, f, &span[i]);
    free(span);
}

static void find_growth(const struct page *page, size_t file, struct findings *f)
{
    const struct fdr_epoch_total *t;
    size_t n = fdr_epoch_totals(page->death[file].file, &t);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && t[end].location == t[i].location;) end++;
        grow_location(page, file, f, t + i, end - i);
    }
    if (!n) unjudged(f, "Growth: %s keeps no totals by epoch.", fdr_file_info(page->death[file].file)->strategy);
}

/* ---- threads that stand, detail that is lost ---- */

static uint32_t innermost(const struct fdr_location_info *l) { return l->open[l->open_count - 1].region; }

/* Threads that stand in the same region are one line. A thread that stands alone may be the one that others wait for:
 * it comes first. */
static void find_standing(const struct page *page, size_t file, struct findings *f)
{
    struct fdr_file *r = page->death[file].file;
    char since[HUMAN_BYTES], thread[64], others[48] = "";
    for (size_t i = 0, n = fdr_location_count(r); i < n; i++) {
        const struct fdr_location_info *l = fdr_location_info(r, i);
        uint64_t ns = story_stood(page, file, i);
        size_t same = 0, before = 0;
        for (size_t k = 0; ns && k < n; k++) {
            if (!story_stood(page, file, k) || innermost(fdr_location_info(r, k)) != innermost(l)) continue;
            same++;
            before += k < i;
        }
        struct finding *row = same && !before ? add(f, file, (double)ns / run_of(page, file) + 1.0 / (double)same)
                                              : NULL;
        if (!row) continue;
        row->location = l->id;
        row->at_ns = page_time(page, file, l->moved_ns);
        if (same > 1) snprintf(others, sizeof others, " and %zu more threads", same - 1);
        snprintf(row->text, sizeof row->text, "%s%s %s not moved for %s: inside %.120s.",
                 thread_name(r, l->id, thread, sizeof thread), same > 1 ? others : "", same > 1 ? "have" : "has",
                 human_time(since, ns), plain_shown(r, innermost(l)));
    }
}

static void find_lost(const struct page *page, size_t file, struct findings *f)
{
    const struct fdr_ledger_row *l;
    struct fdr_file *r = page->death[file].file;
    uint64_t lost = 0, presented = 0;
    char count[HUMAN_BYTES];
    for (size_t i = 0, n = fdr_ledger(r, &l); i < n; i++) lost += l[i].lost, presented += l[i].presented;
    if (!lost) return;
    struct finding *row = add(f, file, LEAST_SHARE * (double)lost / (double)presented);
    if (row)
        snprintf(row->text, sizeof row->text, "%s events found no room and are lost (%.2g %% of all).",
                 human_count(count, lost), 100.0 * (double)lost / (double)presented);
}

static int by_weight(const void *x, const void *y)
{
    double a = ((const struct finding *)x)->weight, b = ((const struct finding *)y)->weight;
    return a < b ? 1 : a > b ? -1 : 0;
}

void findings_of(const struct page *page, struct findings *f)
{
    for (size_t i = 0; i < page->files; i++) {
        find_standing(page, i, f);
        find_outliers(page, i, f);
        find_imbalance(page, i, f);
        find_growth(page, i, f);
        find_lost(page, i, f);
    }
    if (f->count) qsort(f->row, f->count, sizeof *f->row, by_weight);
}
