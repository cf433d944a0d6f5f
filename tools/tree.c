/* SPDX-License-Identifier: MIT */
/* fdr tree: the call tree of the kept events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/call_tree.h"
#include "tools/common/job_files.h"
#include "tools/common/verbs.h"
#include "tools/common/fast_output.h"
#include "tools/common/selection.h"
#include "tools/common/short_names.h"
#include "tools/common/terminal.h"

enum { LINES = 100 };

struct arguments {
    struct file_list files;
    const char *path; /* for messages */
    bool all, json, share_given;
    double min_share; /* percent */
    struct selection selection;
};

/* The common filter --depth is the limit: --depth ..3 shows the three outermost levels. */
static const struct argp_option options[] = {
    {"min-share", 's', "PERCENT", 0, "Leave out paths with less of the whole time (0.1 for people, 0 for --json)", 0},
    {"all", 'a', 0, 0, "All lines, not the first 100; share and depth still count", 0},
    {"json", 'j', 0, 0, "Nested objects", 0},
    {0}};

static void parse_share(struct argp_state *state, struct arguments *a, const char *text)
{
    char *end;
    a->min_share = strtod(text, &end);
    a->share_given = true;
    if (*end == '%') end++;
    if (end == text || *end || !(a->min_share >= 0 && a->min_share <= 100))
        argp_error(state, "--min-share: not a percentage: '%s'", text);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &a->selection; return 0;
    case 's': parse_share(state, a, text); return 0;
    case 'a': a->all = true; return 0;
    case 'j': a->json = true; return 0;
    case ARGP_KEY_ARG: return some_files(state, key, text, &a->files);
    case ARGP_KEY_END:
        some_files(state, key, text, &a->files);
        select_one_class(state, &a->selection, FDR_IN_REGION, "calls");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- children, the longest first -------------------------------------------------------------------------------- */

struct view {
    const struct calltree *tree;
    const struct fdr_file *file;
    uint64_t total_ns, least_ns;
    size_t lines, most; /* printed; at most */
};

static int by_time(const void *a, const void *b, void *context)
{
    const struct calltree *t = context;
    uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
    uint64_t x = t->node[ia].inclusive_ns, y = t->node[ib].inclusive_ns;
    return x != y ? (x < y ? 1 : -1) : (ia < ib ? -1 : ia > ib);
}

/* The children of a node, the longest first, and their number. NULL: none, or out of memory, which hides them. */
static uint32_t *sorted_children(const struct calltree *t, uint32_t parent, size_t *count)
{
    size_t n = 0;
    for (uint32_t id = t->node[parent].child; id != NO_NODE; id = t->node[id].sibling) n++;
    uint32_t *ids = n ? malloc(n * sizeof *ids) : NULL;
    *count = ids ? n : 0;
    n = 0;
    for (uint32_t id = t->node[parent].child; ids && id != NO_NODE; id = t->node[id].sibling) ids[n++] = id;
    if (ids) qsort_r(ids, n, sizeof *ids, by_time, (void *)t);
    return ids;
}

static size_t count_shown(const struct view *v, const uint32_t *ids, size_t count)
{
    size_t shown = 0;
    while (shown < count && v->tree->node[ids[shown]].inclusive_ns >= v->least_ns) shown++;
    return shown;
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

/* The margin of a line: for each level above, whether more siblings follow. */
struct margin {
    bool *more;
    size_t depth, capacity;
};

static bool push_margin(struct margin *m, bool more)
{
    if (m->depth == m->capacity) {
        size_t bigger = m->capacity ? m->capacity * 2 : 64;
        bool *grown = realloc(m->more, bigger * sizeof *grown);
        if (!grown) return false;
        m->more = grown;
        m->capacity = bigger;
    }
    m->more[m->depth++] = more;
    return true;
}

static void write_margin(const struct margin *m, bool more)
{
    for (size_t i = 1; i < m->depth; i++) out_text(m->more[i] ? "│  " : "   ");
    if (m->depth > 0) out_text(more ? "├─ " : "└─ ");
}

static void print_share(uint64_t part, uint64_t total)
{
    char text[16];
    snprintf(text, sizeof text, "%5.1f %%  ", total ? 100.0 * (double)part / (double)total : 0.0);
    out_text(text);
}

static void node_line(const struct view *v, const struct tree_node *n, const struct margin *m, bool more)
{
    char text[HUMAN_BYTES];
    out_time(n->inclusive_ns);
    print_share(n->inclusive_ns, v->total_ns);
    out_time(n->exclusive_ns);
    out_text_wide(human_count(text, n->calls), 14);
    out_text("  ");
    write_margin(m, more);
    out_cell(calltree_shown(v->file, n));
    if (n->open) {
        out_text("  [");
        out_u64(n->open);
        out_text(" open]");
    }
    out_char('\n');
}

static void hidden_line(const struct view *v, const uint32_t *ids, size_t count, const struct margin *m)
{
    uint64_t time = 0;
    for (size_t i = 0; i < count; i++) time += v->tree->node[ids[i]].inclusive_ns;
    out_time(time);
    print_share(time, v->total_ns);
    out_spaces(12 + 14 + 2);
    write_margin(m, false);
    out_char('(');
    out_u64(count);
    out_text(" more)\n");
}

/* Children whose calls were given back: their time, which is not that of the caller. */
static void not_kept_line(const struct view *v, uint64_t ns, const struct margin *m, bool more)
{
    out_time(ns);
    print_share(ns, v->total_ns);
    out_spaces(12 + 14 + 2);
    write_margin(m, more);
    out_text("(not kept)\n");
}

static void subtree(struct view *v, uint32_t parent, struct margin *m)
{
    size_t count;
    uint32_t *ids = sorted_children(v->tree, parent, &count);
    size_t shown = count_shown(v, ids, count);
    uint64_t gone = v->tree->node[parent].not_kept_ns;
    bool tell = gone && gone >= v->least_ns;
    if (tell) not_kept_line(v, gone, m, count > 0);
    for (size_t i = 0; i < shown && !out.failed && v->lines < v->most; i++) {
        bool more = i + 1 < shown || shown < count;
        v->lines++;
        node_line(v, &v->tree->node[ids[i]], m, more);
        if (!push_margin(m, more)) break;
        subtree(v, ids[i], m);
        m->depth--;
    }
    if (shown < count && v->lines < v->most) hidden_line(v, ids + shown, count - shown, m);
    free(ids);
}

static int print_text(struct view *v)
{
    struct margin m = {0};
    bool gone = false;
    for (size_t i = 0; i < v->tree->count; i++) gone = gone || v->tree->node[i].not_kept_ns;
    out_text("# from the events that are kept, all locations together; open calls count up to the newest event\n");
    if (gone)
        out_text(
            "# (not kept): calls that were thinned out; about, by each function's own share in the exact totals\n");
    out_text("   inclusive    share    exclusive          calls  call path\n");
    subtree(v, 0, &m);
    if (v->lines == v->most) out_text("# and more: --all; --depth ..N and --min-share show less\n");
    free(m.more);
    return out_finish();
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void json_number(const char *key, uint64_t value)
{
    out_text(", \"");
    out_text(key);
    out_text("\": ");
    out_u64(value > INT64_MAX ? INT64_MAX : value);
}

static void json_nodes(const struct view *v, uint32_t parent)
{
    size_t count;
    uint32_t *ids = sorted_children(v->tree, parent, &count);
    size_t shown = count_shown(v, ids, count);
    out_char('[');
    for (size_t i = 0; i < shown && !out.failed; i++) {
        const struct tree_node *n = &v->tree->node[ids[i]];
        out_text(i ? ",\n{\"name\": " : "\n{\"name\": ");
        out_json(calltree_name(v->file, n));
        json_number("id", n->reduced ? 0 : n->region);
        json_number("calls", n->calls);
        json_number("open", n->open);
        json_number("inclusive_ns", n->inclusive_ns);
        json_number("exclusive_ns", n->exclusive_ns);
        json_number("not_kept_ns", n->not_kept_ns);
        out_text(", \"children\": ");
        json_nodes(v, ids[i]);
        out_char('}');
    }
    out_char(']');
    free(ids);
}

static int print_nested(const struct view *v)
{
    json_nodes(v, 0);
    out_char('\n');
    return out_finish();
}

static int tree(const struct arguments *a, struct fdr_file *file)
{
    struct calltree t;
    struct chosen chosen;
    if (!choose(&a->selection, file, a->path, &chosen)) return COULD_NOT;
    bool built = calltree_build(&t, file, &chosen.select);
    chosen_free(&chosen);
    if (!built) {
        complain("%s: out of memory", a->path);
        return COULD_NOT;
    }
    calltree_correct(&t, file);
    double percent = a->share_given ? a->min_share : a->json ? 0 : 0.1;
    struct view v = {&t, file, calltree_total(&t), 0, 0, a->all ? SIZE_MAX : LINES};
    v.least_ns = (uint64_t)((double)v.total_ns * percent / 100);
    int status = a->json ? print_nested(&v) : print_text(&v);
    calltree_free(&t);
    return status;
}

int verb_tree(int argc, char **argv)
{
    static const struct argp_child children[] = {{&select_argp, 0, NULL, 0}, {&names_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        options,
        parse,
        "FILE...",
        "The call tree of the events that are kept, with inclusive and exclusive time. "
        "`--depth ..3` shows the three outermost levels. Several FILEs are the ranks of one job.",
        children,
        NULL,
        NULL};
    struct arguments a = {0};
    int status = DONE;
    parse_arguments(&argp, argc, argv, &a);
    struct job_files job;
    if (!open_files(&job, &a.files, &status)) return status;
    a.path = job.name;
    status = worse(status, tree(&a, job.file));
    static const char *const next[] = {"stats", "stats --by path", "findings", NULL};
    if (!a.json) print_hint(next, job.count == 1 ? plain_name(a.path) : "FILE...");
    return worse(status, close_files(&job, true));
}
