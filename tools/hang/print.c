/* SPDX-License-Identifier: MIT */
/* The verdict as text: the sentence with its reason, the classes of ranks, a tree of the regions and functions of all
 * ranks. Then the evidence, and the facts that could not be judged. */
#include "tools/hang/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/short_names.h"
#include "tools/crash.h"
#include "tools/hang/rank_tree.h"

enum { FINDINGS_MOST = 6, CLASSES_MOST = 12, TREE_LINES = 40, INDENT_MOST = 30, TREE_NODES = 1024 };

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

/* ---- the tree of regions and functions -------------------------------------------------------------------------- */

/* Functions that the same ranks are in share a line, as far as they fit. Returns how many nodes that are. */
static size_t print_functions(const struct tree_node *node, size_t left)
{
    enum { COLUMNS = 100 };
    size_t n = 0, used = 0;
    do {
        const char *name = plain_function(node[n].name);
        if (n && used + strlen(name) > COLUMNS) break;
        used += (size_t)printf("%s%s", n ? " > " : "# ", name);
        n++;
    } while (n < left && node[n].depth == node[n - 1].depth + 1 && node[n].ranks == node[0].ranks);
    return n;
}

/* A line stands one step behind the line above it that its first node belongs to. */
static void print_nodes(const struct rank_tree *t)
{
    char ranks[64];
    unsigned short level[TREE_NODES]; /* of the newest node of each depth */
    size_t lines = 0, at = 0;
    while (at < t->nodes && lines++ < TREE_LINES) {
        const struct tree_node *n = &t->node[at];
        unsigned short indent = n->depth ? level[n->depth - 1] + 1 : 0;
        printf("%6zu %*s", n->ranks, 2 * (indent < INDENT_MOST ? indent : INDENT_MOST), "");
        if (n->native) at += print_functions(n, t->nodes - at);
        else at++, printf("%s", plain_name(n->name));
        for (const struct tree_node *i = n; i < t->node + at; i++) level[i->depth] = indent;
        printf("   (%s)\n", hang_ranks_text(n->rank, n->ranks, ranks, sizeof ranks));
    }
    size_t left_out = t->nodes - at + t->left_out;
    if (left_out) printf("       ... and %zu more: --json\n", left_out);
}

static void print_tree(const struct job *job, const struct verdict *v, bool names_off)
{
    char ranks[64];
    struct rank_tree t;
    bool native = false, good = rank_tree_make(&t, job, v, names_off, TREE_NODES);
    for (size_t i = 0; good && i < t.nodes; i++) native |= t.node[i].native;
    if (good && t.nodes) printf("\n ranks regions that are open%s\n", native ? "; behind #: native functions" : "");
    if (good) print_nodes(&t);
    for (size_t i = 0; good && i < t.gaps; i++)
        printf("%s%6zu without a native stack: %s   (%s)\n", i || t.nodes ? "" : "\n", t.gap[i].ranks, t.gap[i].why,
               hang_ranks_text(t.gap[i].rank, t.gap[i].ranks, ranks, sizeof ranks));
    rank_tree_free(&t);
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
    print_tree(job, v, s->names_off);
    print_stack(job, v);
    each_evidence(job, v, print_line, &title);
    title = "not judged";
    each_not_judged(job, v, print_line, &title);
    print_unseen(s);
    print_left_out(s);
    return finish_output();
}
