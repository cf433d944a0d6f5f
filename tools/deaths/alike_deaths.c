/* SPDX-License-Identifier: MIT */
/* The processes in the order of their ends. Those that ended alike and did the same share a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/deaths/deaths.h"
#include "tools/hang/verdict.h"
#include "tools/unseen_end.h"

static int by_number(const void *x, const void *y)
{
    const uint32_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static bool put(const struct deaths *d, struct alike_death *a, size_t i)
{
    int rank = fdr_file_info(d->death[i].file)->rank;
    if ((a->count & (a->count - 1)) == 0) { /* full at each power of two */
        uint32_t *wider = realloc(a->rank, (a->count ? 2 * a->count : 1) * sizeof *wider);
        if (!wider) return false;
        a->rank = wider;
    }
    if (!a->count++) a->one = i;
    a->last = i;
    if (rank >= 0) a->rank[a->ranks++] = (uint32_t)rank;
    return true;
}

struct alike_death *group_deaths(const struct deaths *d, alike_fn *alike, bool (*wanted)(const struct deaths *, size_t),
                                 size_t *count)
{
    struct alike_death *a = calloc(d->count + 1, sizeof *a);
    bool good = a != NULL;
    *count = 0;
    for (size_t i = 0; good && i < d->count; i++) {
        size_t k = 0;
        if (!wanted(d, i)) continue;
        while (k < *count && !alike(d, a[k].one, i)) k++;
        good = put(d, &a[k], i);
        *count += good && k == *count;
    }
    for (size_t k = 0; good && k < *count; k++)
        if (a[k].ranks) qsort(a[k].rank, a[k].ranks, sizeof *a[k].rank, by_number);
    if (good) return a;
    free_alike_deaths(a, a ? d->count + 1 : 0);
    return NULL;
}

void free_alike_deaths(struct alike_death *a, size_t count)
{
    for (size_t i = 0; i < count; i++) free(a[i].rank);
    free(a);
}

const char *ranks_of(const struct alike_death *a, char *text, size_t bytes)
{
    char list[80];
    *text = 0;
    if (a->ranks == a->count)
        snprintf(text, bytes, " (rank%s %s)", a->ranks == 1 ? "" : "s",
                 hang_ranks_text(a->rank, a->ranks, list, sizeof list));
    return text;
}

/* ---- the lines -------------------------------------------------------------------------------------------------- */

static bool any(const struct deaths *d, size_t i)
{
    (void)d, (void)i;
    return true;
}

static bool are_alike(const struct deaths *d, size_t a, size_t b)
{
    const struct death *x = &d->death[a], *y = &d->death[b];
    char one[256], other[256];
    if (x->first || y->first || x->kind != y->kind || strcmp(d->doing[a].text, d->doing[b].text)) return false;
    return !strcmp(short_end(x, one, sizeof one), short_end(y, other, sizeof other));
}

static bool never(const struct deaths *d, size_t a, size_t b)
{
    (void)d, (void)a, (void)b;
    return false;
}

static const char *whole_end(const struct death *d, char *text, size_t bytes)
{
    struct fdr_crash_cause_info c = main_cause(d->file);
    return d->kind <= BY_REQUEST ? describe_cause(d->file, &c, text, bytes) : short_end(d, text, bytes);
}

static void print_line(const struct deaths *d, const struct alike_death *a)
{
    const struct death *one = &d->death[a->one];
    const struct fdr_file_info *i = fdr_file_info(one->file);
    char end[256], since[HUMAN_BYTES], who[160], ranks[120];
    uint64_t from = d->first ? d->first->realtime_ns : one->realtime_ns;
    printf("%s  %-16s ", one->first ? "FIRST" : "     ",
           one->realtime_ns ? human_since(since, one->realtime_ns, from) : "");
    if (a->count > 1)
        printf("%zu processes%s: %s; each was %s  %s and %zu more\n", a->count, ranks_of(a, ranks, sizeof ranks),
               short_end(one, end, sizeof end), d->doing[a->one].text, plain_name(one->path), a->count - 1);
    else
        printf("%s%spid %u on %s: %s  %s\n", i->rank >= 0 ? who_died(one, who, sizeof who) : "",
               i->rank >= 0 ? ", " : "", i->pid, plain_name(i->host), whole_end(one, end, sizeof end),
               plain_name(one->path));
}

void print_alike_deaths(const struct deaths *d, bool all)
{
    size_t count;
    struct alike_death *a = group_deaths(d, all ? never : are_alike, any, &count);
    for (size_t k = 0; a && k < count; k++) print_line(d, &a[k]);
    free_alike_deaths(a, a ? count : 0);
}
