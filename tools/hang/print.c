/* SPDX-License-Identifier: MIT */
/* The verdict as text: the sentence with its reason, the classes of ranks, the regions of all ranks as a tree. Then the
 * evidence, and the facts that could not be judged. */
#include "tools/hang/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/short_names.h"
#include "tools/crash.h"

enum { FINDINGS_MOST = 6, CLASSES_MOST = 12, TREE_LINES = 24 };

static void print_findings(const struct job *job, const struct verdict *v)
{
    char text[512], why[256];
    size_t first = v->findings && v->judgement == v->finding[0].judgement && v->judgement != NOTHING ? 1 : 0;
    for (size_t i = first; i < v->findings && i < FINDINGS_MOST; i++) {
        hang_say_finding(job, v, &v->finding[i], text, sizeof text);
        hang_say_why(job, &v->finding[i], why, sizeof why);
        printf("also: %s (%s: %s)\n", text, judgement_name[v->finding[i].judgement], why);
    }
    if (v->findings > FINDINGS_MOST) printf("and %zu more: --json\n", v->findings - FINDINGS_MOST);
}

static void print_classes(const struct job *job, const struct verdict *v)
{
    char ranks[80];
    size_t count;
    struct alike *a = find_alike(job, v, &count);
    printf("\nranks      doing      what\n");
    for (size_t i = 0; a && i < count && i < CLASSES_MOST; i++)
        printf("%-10zu %-10s %s   (rank%s %s)\n", a[i].count, hang_class_text(a[i].class_, &job->rank[a[i].one]),
               a[i].what, a[i].count == 1 ? "" : "s", hang_ranks_text(a[i].rank, a[i].count, ranks, sizeof ranks));
    if (a && count > CLASSES_MOST) printf("and %zu more: --json\n", count - CLASSES_MOST);
    free_alike(a, a ? count : 0);
}

/* ---- the tree of regions ---------------------------------------------------------------------------------------- */

struct stack {
    uint32_t rank;
    const struct fdr_file *file;
    const struct fdr_location_info *location;
};

static const char *name_at(const struct stack *s, size_t depth)
{
    return depth < s->location->open_count ? region_name(s->file, s->location->open[depth].region) : "";
}

static int by_path(const void *x, const void *y)
{
    const struct stack *a = x, *b = y;
    for (size_t d = 0; d < a->location->open_count || d < b->location->open_count; d++) {
        int order = strcmp(name_at(a, d), name_at(b, d));
        if (order) return order;
    }
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static void print_branch(const struct stack *s, size_t count, size_t depth, unsigned *lines)
{
    char ranks[64];
    uint32_t *rank = malloc((count + 1) * sizeof *rank);
    for (size_t i = 0, end; i < count && *lines < TREE_LINES; i = end) {
        const char *name = name_at(&s[i], depth);
        for (end = i + 1; end < count && strcmp(name_at(&s[end], depth), name) == 0;) end++;
        if (!*name) continue;
        for (size_t k = i; rank && k < end; k++) rank[k - i] = s[k].rank;
        printf("%6zu %*s%s   (%s)\n", end - i, (int)(2 * depth), "", plain_name(name),
               rank ? hang_ranks_text(rank, end - i, ranks, sizeof ranks) : "");
        ++*lines;
        print_branch(s + i, end - i, depth + 1, lines);
    }
    free(rank);
}

static void print_tree(const struct job *job)
{
    struct stack *s = calloc(job->ranks + 1, sizeof *s);
    size_t count = 0;
    unsigned lines = 0;
    for (size_t i = 0; s && i < job->ranks; i++) {
        const struct process *p = job->rank[i].process;
        const struct fdr_location_info *l = told_location(p->file, 0);
        if (l && l->open_count) s[count++] = (struct stack){job->rank[i].rank, p->file, l};
    }
    if (count) qsort(s, count, sizeof *s, by_path);
    if (count) printf("\n ranks regions that are open\n");
    if (count) print_branch(s, count, 0, &lines);
    if (lines == TREE_LINES) printf("       ...\n");
    free(s);
}

/* The native stack of the one that the sentence is about, if it is outside of MPI and the stack is known. */
static void print_stack(const struct job *job, const struct verdict *v)
{
    enum { FRAMES = 8 };
    const struct job_rank *r = v->told < job->ranks ? &job->rank[v->told] : NULL;
    const struct process *p = r && !r->wait.in_call ? r->process : NULL;
    const struct fdr_location_info *l = p ? told_location(p->file, 0) : NULL;
    const struct fdr_crash_thread_info *thread;
    for (size_t i = 0, n = l ? fdr_crash_threads(p->file, &thread) : 0; i < n; i++) {
        if (thread[i].tid != l->tid || !thread[i].answered) continue;
        printf("\nrank %u\n", r->rank);
        print_frames(p->file, i, FRAMES);
    }
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void print_line(const char *line, void *heading)
{
    const char **title = heading;
    if (*title) printf("\n%s\n", *title);
    *title = NULL;
    printf("  %s\n", line);
}

int print_job(const struct job *job, const struct verdict *v, const struct standing *s)
{
    const char *title = "evidence";
    printf("%s\n%s: %s\n", v->sentence, judgement_name[v->judgement], v->why);
    print_findings(job, v);
    print_classes(job, v);
    print_tree(job);
    print_stack(job, v);
    each_evidence(job, v, print_line, &title);
    title = "not judged";
    each_not_judged(job, v, print_line, &title);
    print_unseen(s);
    print_left_out(s);
    return finish_output();
}
