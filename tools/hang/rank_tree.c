/* SPDX-License-Identifier: MIT */
/* Paths of all ranks, sorted, so that equal beginnings stand side by side. A path is the open regions of the rank's
 * first thread, then the functions inside of the innermost region. Of a stack only what the unwinder is sure of
 * counts. */
#include "tools/hang/rank_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/crash.h"
#include "tools/hang/load.h"
#include "tools/hang/print.h"

/* The names of one process take some 0.1 s. */
enum { STACKS_MOST = 16 };

struct step {
    const char *name;
    bool native, own; /* own: the name is to be freed */
};
struct rank_path {
    const struct job_rank *of;
    struct step *step;
    size_t steps, same; /* same: so many first steps are those of the path before */
    const char *gap;    /* why the stack is not known; NULL: it is */
};

/* ---- which stacks ---- */

static void choose(bool *chosen, size_t index, size_t *left)
{
    if (!*left || chosen[index]) return;
    chosen[index] = true;
    --*left;
}

/* The told rank, one of each class, those that are behind, then the others. */
static void choose_ranks(const struct job *job, const struct verdict *v, bool *chosen)
{
    size_t left = STACKS_MOST, kinds = 0;
    struct alike *a = find_alike(job, v, &kinds);
    if (v->told < job->ranks) choose(chosen, v->told, &left);
    for (size_t i = 0; a && i < kinds; i++) choose(chosen, a[i].one, &left);
    free_alike(a, a ? kinds : 0);
    for (size_t i = 0; i < v->findings; i++)
        for (size_t k = 0; left && k < v->finding[i].behinds; k++) {
            size_t index = job_find(job, v->finding[i].behind[k]);
            if (index < job->ranks) choose(chosen, index, &left);
        }
    for (size_t i = 0; left && i < job->ranks; i++) choose(chosen, i, &left);
}

/* ---- one stack ---- */

static const char *gap_of_running(const struct process *p, uint32_t tid)
{
    const struct fdr_task_info *t = task_of(p->file, tid);
    if (!t && p->unseen[0]) return "the kernel does not show it";
    if (!t) return "the thread has ended";
    if (t->state == 'R') return "the thread runs, and fdr stops none";
    return p->unseen[0] ? "the kernel does not show it" : "the thread went on meanwhile";
}

/* The thread's index in fdr_crash_threads; else SIZE_MAX, and *gap says why. */
static size_t stack_index(const struct process *p, uint32_t tid, const char **gap)
{
    const struct fdr_crash_thread_info *t;
    size_t n = fdr_crash_threads(p->file, &t);
    bool there = false;
    for (size_t i = 0; i < n; i++) {
        if (t[i].tid != tid) continue;
        if (t[i].answered) return i;
        there = true;
    }
    if (p->looked_at || p->unseen[0]) *gap = gap_of_running(p, tid);
    else if (there) *gap = "the thread did not answer";
    else *gap = n ? "the file has stacks of other threads only" : "the file has no stacks";
    return SIZE_MAX;
}

static bool add_step(struct rank_path *p, struct step s)
{
    if ((p->steps & (p->steps - 1)) == 0) { /* full at each power of two */
        struct step *wider = realloc(p->step, (p->steps ? 2 * p->steps : 1) * sizeof *wider);
        if (!wider) return false;
        p->step = wider;
    }
    p->step[p->steps++] = s;
    return true;
}

static bool add_frame(struct rank_path *p, const struct fdr_crash_frame *r)
{
    const char *slash = strrchr(r->module, '/'), *module = slash ? slash + 1 : r->module;
    char *own = NULL;
    if (r->function[0]) return add_step(p, (struct step){.name = r->function, .native = true});
    if (asprintf(&own, "%s+0x%" PRIx64, module[0] ? module : "?", module[0] ? r->offset : r->address) < 0) return false;
    return add_step(p, (struct step){.name = own, .native = true, .own = true});
}

/* The number of frames inside of the innermost region. Known if all open regions are functions of the stack, in this
 * order; else all frames count. */
static size_t frames_inside(const struct rank_path *p, const struct fdr_crash_frame *r, size_t sure)
{
    size_t region = p->steps, inside = sure;
    for (size_t i = 0; i < sure && region; i++) {
        if (strcmp(r[i].function, p->step[region - 1].name) != 0) continue;
        if (region-- == p->steps) inside = i;
    }
    return region ? sure : inside;
}

static bool add_stack(struct rank_path *p, struct fdr_file *file, size_t index)
{
    const struct fdr_crash_frame *r;
    size_t n = fdr_crash_frames(file, index, &r), sure = 0;
    while (sure < n && !r[sure].guessed) sure++;
    if (!sure) {
        p->gap = "it cannot be unwound for sure";
        return true;
    }
    size_t inside = frames_inside(p, r, sure);
    bool begins = inside < sure || (sure == n && !r[n - 1].cut);
    if (!begins && !add_step(p, (struct step){.name = "[callers not known]", .native = true})) return false;
    while (inside)
        if (!add_frame(p, &r[--inside])) return false;
    return true;
}

static bool take_path(struct rank_path *p, const struct job_rank *r, bool chosen, bool names_off)
{
    const struct process *process = r->process;
    const struct fdr_location_info *l = told_location(process->file, 0);
    bool good = true;
    *p = (struct rank_path){.of = r};
    for (size_t i = 0; l && good && i < l->open_count; i++)
        good = add_step(p, (struct step){.name = region_name(process->file, l->open[i].region)});
    size_t index = l ? stack_index(process, l->tid, &p->gap) : SIZE_MAX;
    if (!l) p->gap = "no thread has recorded";
    if (index == SIZE_MAX || !good) return good;
    if (!chosen) {
        p->gap = "fdr unwinds stacks of 16 ranks";
        return true;
    }
    if (names_off) unsetenv("FDR_SYMBOLS");
    good = add_stack(p, process->file, index);
    if (names_off) setenv("FDR_SYMBOLS", "0", 1);
    return good;
}

/* ---- the tree ---- */

static int compare_steps(const struct step *a, const struct step *b)
{
    if (a->native != b->native) return a->native ? 1 : -1;
    return strcmp(a->name, b->name);
}

static int by_path(const void *x, const void *y)
{
    const struct rank_path *a = x, *b = y;
    for (size_t d = 0; d < a->steps && d < b->steps; d++) {
        int order = compare_steps(&a->step[d], &b->step[d]);
        if (order) return order;
    }
    if (a->steps != b->steps) return a->steps < b->steps ? -1 : 1;
    return (a->of->rank > b->of->rank) - (a->of->rank < b->of->rank);
}

static size_t same_steps(const struct rank_path *a, const struct rank_path *b)
{
    size_t d = 0;
    while (d < a->steps && d < b->steps && compare_steps(&a->step[d], &b->step[d]) == 0) d++;
    return d;
}

static int ascending(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

/* The step `depth` of the path at `from` begins a branch, of all paths behind that have it, too. */
static bool add_node(struct rank_tree *t, size_t from, size_t depth)
{
    size_t end = from + 1;
    while (end < t->paths && t->path[end].same > depth) end++;
    uint32_t *rank = malloc((end - from) * sizeof *rank);
    if (!rank) return false;
    for (size_t i = from; i < end; i++) rank[i - from] = t->path[i].of->rank;
    qsort(rank, end - from, sizeof *rank, ascending);
    const struct step *s = &t->path[from].step[depth];
    t->node[t->nodes++] = (struct tree_node){s->name, s->native, depth, rank, end - from};
    return true;
}

static bool add_nodes(struct rank_tree *t, size_t most)
{
    for (size_t i = 0; i < t->paths; i++) t->path[i].same = i ? same_steps(&t->path[i - 1], &t->path[i]) : 0;
    for (size_t i = 0; i < t->paths; i++)
        for (size_t depth = t->path[i].same; depth < t->path[i].steps; depth++) {
            if (t->nodes == most) t->left_out++;
            else if (!add_node(t, i, depth)) return false;
        }
    return true;
}

static bool add_gap(struct rank_tree *t, const struct rank_path *p, size_t ranks)
{
    size_t i = 0;
    while (i < t->gaps && strcmp(t->gap[i].why, p->gap) != 0) i++;
    if (i == TREE_GAPS) return true; /* there are no more reasons */
    struct tree_gap *g = &t->gap[i];
    if (i == t->gaps) *g = (struct tree_gap){p->gap, malloc((ranks + 1) * sizeof *g->rank), 0}, t->gaps++;
    if (!g->rank) return false;
    g->rank[g->ranks++] = p->of->rank;
    return true;
}

bool rank_tree_make(struct rank_tree *t, const struct job *job, const struct verdict *v, bool names_off, size_t most)
{
    bool *chosen = calloc(job->ranks + 1, sizeof *chosen);
    *t = (struct rank_tree){.path = calloc(job->ranks + 1, sizeof *t->path), .node = calloc(most, sizeof *t->node)};
    bool good = chosen && t->path && t->node;
    if (good) choose_ranks(job, v, chosen);
    for (size_t i = 0; good && i < job->ranks; i++) {
        good = take_path(&t->path[i], &job->rank[i], chosen[i], names_off);
        t->paths++;
        if (good && t->path[i].gap) good = add_gap(t, &t->path[i], job->ranks);
    }
    if (good) qsort(t->path, t->paths, sizeof *t->path, by_path);
    free(chosen);
    return good && add_nodes(t, most);
}

void rank_tree_free(struct rank_tree *t)
{
    for (size_t i = 0; i < t->paths; i++) {
        for (size_t k = 0; k < t->path[i].steps; k++)
            if (t->path[i].step[k].own) free((char *)(uintptr_t)t->path[i].step[k].name);
        free(t->path[i].step);
    }
    for (size_t i = 0; i < t->nodes; i++) free((uint32_t *)(uintptr_t)t->node[i].rank);
    for (size_t i = 0; i < t->gaps; i++) free(t->gap[i].rank);
    free(t->path);
    free(t->node);
}
