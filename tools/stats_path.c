/* SPDX-License-Identifier: MIT */
/* fdr stats --by path: call paths of the kept events; without events, paths of the samples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/call_tree.h"
#include "tools/common/fast_output.h"
#include "tools/common/sample_table.h"
#include "tools/stats.h"

static int by_path_time(const void *a, const void *b, void *context)
{
    const struct calltree *t = context;
    uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
    uint64_t x = t->node[ia].exclusive_ns, y = t->node[ib].exclusive_ns;
    return x != y ? (x < y ? 1 : -1) : (ia < ib ? -1 : ia > ib);
}

/* Stores the path to a node, outermost first; `path` has room for every node. */
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
    out_text(n->exact ? ", \"exact\": true}" : ", \"exact\": false}");
}

/* Is this node below the other, or the same? */
static bool is_below(const struct calltree *t, uint32_t node, uint32_t above)
{
    while (node && node != above) node = t->node[node].parent;
    return node == above;
}

/* The deepest node that nine of ten rows are below: their common beginning is said once. 0: none. below: room for a
 * number for each node, zero. */
static uint32_t common_node(const struct calltree *t, const uint32_t *order, size_t shown, uint32_t *below)
{
    uint32_t node = 0, next = 0;
    for (size_t i = 0; i < shown; i++)
        for (uint32_t id = t->node[order[i]].parent; id; id = t->node[id].parent) below[id]++;
    do {
        node = next;
        for (uint32_t child = t->node[node].child; child != NO_NODE && next == node; child = t->node[child].sibling)
            if (shown >= 3 && 10 * (size_t)below[child] >= 9 * shown) next = child;
    } while (next != node);
    return node && t->node[node].parent ? node : 0; /* a single name is no beginning worth a line */
}

static void out_path(const struct fdr_file *file, const struct calltree *t, const uint32_t *path, size_t from,
                     size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (i > from) out_text(" > ");
        out_cell(calltree_shown(file, &t->node[path[i]]));
    }
}

static void path_line(const struct fdr_file *file, const struct calltree *t, uint32_t id, uint32_t *path,
                      uint64_t total, uint32_t common)
{
    char text[HUMAN_BYTES];
    const struct tree_node *n = &t->node[id];
    size_t depth = path_of(t, id, path), from = 0;
    if (common && id != common && is_below(t, id, common))
        while (path[from++] != common) {}
    out_time(n->exclusive_ns);
    out_share(n->exclusive_ns, total);
    out_char(' ');
    out_time(n->inclusive_ns);
    out_text_wide(human_count(text, n->calls), 15);
    out_text("  ");
    out_text(from ? "... > " : "");
    out_path(file, t, path, from, depth);
    if (n->open) out_text("  [open]");
    out_char('\n');
}

/* ---- without events ---- */

/* The node of a path of names separated by ';', or 0. */
static uint32_t node_of(const struct fdr_file *file, const struct calltree *t, const char *path)
{
    uint32_t id = 0;
    while (*path) {
        size_t bytes = strcspn(path, ";");
        uint32_t child = t->node[id].child;
        for (; child != NO_NODE; child = t->node[child].sibling) {
            const char *name = calltree_name(file, &t->node[child]);
            if (strlen(name) == bytes && !memcmp(name, path, bytes)) break;
        }
        if (child == NO_NODE) return 0;
        id = child;
        path += bytes + (path[bytes] == ';');
    }
    return id;
}

static void sample_path_json(const struct sample_table *s, const struct sample_row *r)
{
    struct sample_interval i = sample_interval(&r->self, &s->total);
    out_text("{\"path\": [");
    char *copy = strdup(r->name), *save = NULL;
    const char *before = "";
    for (char *w = copy ? strtok_r(copy, ";", &save) : NULL; w; w = strtok_r(NULL, ";", &save), before = ", ") {
        out_text(before);
        out_json(w);
    }
    free(copy);
    out_text("], \"from\": \"samples\"");
    key_u64("samples", r->self.samples);
    key_u64("exclusive_ns", (uint64_t)r->self.weight);
    key_u64("low_ns", (uint64_t)(i.low * s->total.weight));
    key_u64("high_ns", (uint64_t)(i.high * s->total.weight));
    out_char('}');
}

static void sample_path_line(const struct sample_table *s, const struct sample_row *r)
{
    char text[64];
    struct sample_interval i = sample_interval(&r->self, &s->total);
    out_time((uint64_t)r->self.weight);
    snprintf(text, sizeof text, " %6.2f %% (%.2f .. %.2f)", 100 * i.share, 100 * i.low, 100 * i.high);
    out_text(text);
    out_u64_wide(r->self.samples, 10);
    out_text("  ");
    char *copy = strdup(r->name), *save = NULL;
    const char *before = "";
    for (char *w = copy ? strtok_r(copy, ";", &save) : NULL; w; w = strtok_r(NULL, ";", &save), before = " > ") {
        out_text(before);
        out_cell(w);
    }
    free(copy);
    out_char('\n');
}

/* Prints paths that only samples have, if only calls were requested. printed: rows of calls. */
static bool print_sampled(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select,
                          const struct calltree *t, size_t printed)
{
    struct sample_table s;
    size_t shown = 0;
    if (a->selection.classes || a->selection.min_duration_ns) return true;
    if (!sample_table_build(&s, file, select, BY_PATH_FUNCTION, -1)) return false;
    for (size_t i = 0; i < s.count && s.by < 2 && (!a->limit || printed + shown < a->limit); i++) {
        if (!s.row[i].self.samples || node_of(file, t, s.row[i].name)) continue;
        if (a->json) {
            out_text(printed + shown ? ",\n" : "\n");
            sample_path_json(&s, &s.row[i]);
        } else {
            if (!shown)
                out_text(s.by ? "\n# where there are no events: from samples of wall time, with 95 % intervals\n"
                              : "\n# where there are no events: from samples of CPU time, with 95 % intervals\n");
            if (!shown) out_text("   exclusive    share (95 %)          samples  path\n");
            sample_path_line(&s, &s.row[i]);
        }
        shown++;
    }
    sample_table_free(&s);
    return true;
}

static bool print_paths_of(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select,
                           const struct calltree *t, uint32_t *order, uint32_t *path)
{
    size_t count = t->count - 1, shown = a->json ? limited(a, count) : shown_rows(a, count);
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i + 1;
    qsort_r(order, count, sizeof *order, by_path_time, (void *)t);
    if (a->json) {
        out_char('[');
        for (size_t i = 0; i < shown; i++) {
            out_text(i ? ",\n" : "\n");
            path_json(file, t, order[i], path);
        }
        bool good = print_sampled(a, file, select, t, shown);
        out_text("\n]\n");
        return good;
    }
    out_text("# call paths of the events that are kept; open calls count up to the newest event\n");
    memset(path, 0, t->count * sizeof *path);
    uint32_t common = common_node(t, order, shown, path);
    if (common) {
        out_text("# ... is ");
        out_path(file, t, path, 0, path_of(t, common, path));
        out_char('\n');
    }
    out_text("   exclusive    share    inclusive          calls  path\n");
    uint64_t total = calltree_total(t);
    for (size_t i = 0; i < shown; i++) path_line(file, t, order[i], path, total, common);
    more_rows(count, shown);
    return print_sampled(a, file, select, t, shown);
}

int print_paths(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select)
{
    struct calltree t;
    if (!calltree_build(&t, file, select)) return out_of_memory(a);
    bool good = calltree_find_exact(&t, file);
    uint32_t *order = malloc(t.count * sizeof *order), *path = malloc(t.count * sizeof *path);
    good = good && order && path && print_paths_of(a, file, select, &t, order, path);
    free(order);
    free(path);
    calltree_free(&t);
    return good ? out_finish() : out_of_memory(a);
}
