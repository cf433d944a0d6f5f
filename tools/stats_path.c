/* SPDX-License-Identifier: MIT */
/* fdr stats --by path: call paths of the events that are kept. */
#include <stdlib.h>

#include "tools/calltree.h"
#include "tools/out.h"
#include "tools/stats.h"

static int by_path_time(const void *a, const void *b, void *context)
{
    const struct calltree *t = context;
    uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
    uint64_t x = t->node[ia].exclusive_ns, y = t->node[ib].exclusive_ns;
    return x != y ? (x < y ? 1 : -1) : (ia < ib ? -1 : ia > ib);
}

/* Outermost first; `path` has room for every node. */
static size_t path_of(const struct calltree *t, uint32_t node, uint32_t *path)
{
    size_t depth = 0;
    for (uint32_t id = node; id != 0; id = t->node[id].parent) depth++;
    size_t at = depth;
    for (uint32_t id = node; id != 0; id = t->node[id].parent) path[--at] = id;
    return depth;
}

static void path_json(const struct fdr_file *file, const struct calltree *t, uint32_t id, uint32_t *path)
{
    const struct tree_node *n = &t->node[id];
    size_t depth = path_of(t, id, path);
    out_text("{\"path\": [");
    for (size_t i = 0; i < depth; i++) {
        if (i) out_text(", ");
        out_json(calltree_name(file, &t->node[path[i]]));
    }
    out_char(']');
    key_u64("calls", n->calls);
    key_u64("open", n->open);
    key_u64("inclusive_ns", n->inclusive_ns);
    key_u64("exclusive_ns", n->exclusive_ns);
    key_u64("min_ns", n->calls ? n->min_ns : 0);
    key_u64("max_ns", n->max_ns);
    out_char('}');
}

static void path_line(const struct fdr_file *file, const struct calltree *t, uint32_t id, uint32_t *path,
                      uint64_t total)
{
    char text[HUMAN_BYTES];
    const struct tree_node *n = &t->node[id];
    size_t depth = path_of(t, id, path);
    out_time(n->exclusive_ns);
    out_share(n->exclusive_ns, total);
    out_char(' ');
    out_time(n->inclusive_ns);
    out_text_wide(human_count(text, n->calls), 15);
    out_text("  ");
    for (size_t i = 0; i < depth; i++) {
        if (i) out_text(" > ");
        out_cell(calltree_name(file, &t->node[path[i]]));
    }
    if (n->open) out_text("  [open]");
    out_char('\n');
}

static void print_paths_of(const struct stats_arguments *a, const struct fdr_file *file,
                           const struct calltree *t, uint32_t *order, uint32_t *path)
{
    size_t count = t->count - 1, shown = limited(a, count);
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i + 1;
    qsort_r(order, count, sizeof *order, by_path_time, (void *)t);
    if (a->json) {
        out_char('[');
        for (size_t i = 0; i < shown; i++) {
            out_text(i ? ",\n" : "\n");
            path_json(file, t, order[i], path);
        }
        out_text("\n]\n");
        return;
    }
    out_text("# call paths of the events that are kept; open calls count up to the newest event\n"
             "   exclusive    share    inclusive          calls  path\n");
    for (size_t i = 0; i < shown; i++) path_line(file, t, order[i], path, calltree_total(t));
}

int print_paths(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select)
{
    struct calltree t;
    if (!calltree_build(&t, file, select)) return out_of_memory(a);
    uint32_t *order = malloc(t.count * sizeof *order), *path = malloc(t.count * sizeof *path);
    bool good = order && path;
    if (good) print_paths_of(a, file, &t, order, path);
    free(order);
    free(path);
    calltree_free(&t);
    return good ? out_finish() : out_of_memory(a);
}
