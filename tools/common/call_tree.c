/* SPDX-License-Identifier: MIT */
/* Builds the call tree of the kept events, summed over locations. */
#include "tools/common/call_tree.h"

#include <math.h>
#include <stdlib.h>

#include "tools/common/short_names.h"

static uint32_t function_of(const struct calltree *t, const struct fdr_read_event *e)
{
    return e->id && e->id <= t->regions ? t->same[e->id] : e->id;
}

/* The key by which siblings differ. */
static uint64_t key_of(const struct calltree *t, const struct fdr_read_event *e)
{
    uint64_t flags = e->reduced | (uint64_t)e->filtered << 1 | (uint64_t)e->not_over << 2;
    return flags << 32 | (e->reduced ? 0 : function_of(t, e));
}

static size_t slot_of(const struct calltree *t, uint32_t parent, uint64_t key)
{
    uint64_t h = (key ^ parent * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    size_t i = (h ^ h >> 32) & (t->slots - 1);
    while (t->slot[i] && (t->node[t->slot[i]].parent != parent || t->node[t->slot[i]].key != key))
        i = (i + 1) & (t->slots - 1);
    return i;
}

static bool grow(struct calltree *t)
{
    if (t->count < t->capacity) return true;
    size_t more = t->capacity ? t->capacity * 2 : 1024;
    struct tree_node *node = realloc(t->node, more * sizeof *node);
    if (node) t->node = node;
    uint32_t *slot = node ? calloc(more * 2, sizeof *slot) : NULL;
    if (!slot) return false;
    free(t->slot);
    t->slot = slot;
    t->capacity = more;
    t->slots = more * 2;
    for (uint32_t id = 1; id < t->count; id++) slot[slot_of(t, t->node[id].parent, t->node[id].key)] = id;
    return true;
}

static uint32_t new_node(struct calltree *t, uint32_t parent, const struct fdr_read_event *e)
{
    if (!grow(t)) return NO_NODE;
    uint32_t id = (uint32_t)t->count++;
    struct tree_node *n = &t->node[id];
    *n = (struct tree_node){.parent = parent, .child = NO_NODE, .sibling = NO_NODE, .min_ns = UINT64_MAX};
    if (parent == NO_NODE) return id;
    n->key = key_of(t, e);
    n->region = function_of(t, e);
    n->reduced = e->reduced;
    n->filtered = e->filtered;
    n->not_over = e->not_over;
    n->sibling = t->node[parent].child;
    t->node[parent].child = id;
    t->slot[slot_of(t, parent, n->key)] = id;
    return id;
}

static uint32_t child_of(struct calltree *t, uint32_t parent, const struct fdr_read_event *e)
{
    uint32_t id = t->slot[slot_of(t, parent, key_of(t, e))];
    return id ? id : new_node(t, parent, e);
}

static bool enter(void *context, const struct fdr_read_event *e)
{
    struct calltree *t = context;
    uint32_t child = child_of(t, t->current, e);
    if (child == NO_NODE) return false;
    t->current = child;
    return true;
}

static void progress(void *context, uint64_t events)
{
    struct calltree *t = context;
    progress_at(&t->progress, events);
}

static void leave(void *context, const struct fdr_call *c)
{
    struct calltree *t = context;
    struct tree_node *n = &t->node[t->current];
    n->inclusive_ns += c->duration_ns;
    n->exclusive_ns += c->exclusive_ns;
    if (c->open || c->reduced) {
        n->open += !c->reduced;
    } else {
        n->calls++;
        if (c->duration_ns < n->min_ns) n->min_ns = c->duration_ns;
        if (c->duration_ns > n->max_ns) n->max_ns = c->duration_ns;
    }
    t->current = n->parent;
}

static void location(void *context, uint32_t id)
{
    struct calltree *t = context;
    (void)id;
    t->current = 0;
}

bool calltree_build(struct calltree *tree, struct fdr_file *file, const struct fdr_select *select)
{
    const struct fdr_call_visitor visitor = {tree, location, enter, leave, progress};
    *tree = (struct calltree){.progress = {.what = "call tree"}};
    progress_now(&tree->progress, 0);
    tree->same = same_functions(file);
    tree->regions = tree->same ? fdr_definition_count(file, FDR_REGION_DEFINITION) : 0;
    bool good = tree->same && new_node(tree, NO_NODE, NULL) == 0 && fdr_visit_calls(file, select, &visitor) == 0;
    progress_end(&tree->progress);
    if (!good) calltree_free(tree);
    return good;
}

/* Calls that were stored and given back. */
static bool any_given_back(struct fdr_file *file)
{
    const struct fdr_ledger_row *l;
    for (size_t i = 0, n = fdr_ledger(file, &l); i < n; i++)
        if (l[i].class_ == FDR_IN_REGION && l[i].reduced + l[i].lost + l[i].filtered) return true;
    return false;
}

struct own {
    double own_ns, all_ns;
};

/* The share of a region's time that was its own. Sets the sums, by function, from the exact totals. */
static void add_own(const struct calltree *t, const struct fdr_file *file, struct own *own)
{
    const struct fdr_total *total;
    for (size_t i = 0, n = fdr_totals(file, &total); i < n; i++) {
        if (total[i].class_ != FDR_IN_REGION || total[i].rest || total[i].id > t->regions || !total[i].calls) continue;
        struct own *o = &own[total[i].id ? t->same[total[i].id] : 0];
        o->own_ns += (double)total[i].exclusive_ns;
        o->all_ns += (double)total[i].inclusive_ns;
    }
}

void calltree_correct(struct calltree *t, struct fdr_file *file)
{
    const double noise = 0.01; /* of a node's time: the edges of calls are rounded */
    struct own *own = any_given_back(file) ? calloc(t->regions + 1, sizeof *own) : NULL;
    if (!own) return;
    add_own(t, file, own);
    for (size_t id = 1; id < t->count; id++) {
        struct tree_node *n = &t->node[id];
        const struct own *o = n->reduced || n->region > t->regions ? NULL : &own[n->region];
        if (!o || o->all_ns <= 0) continue;
        double most = (double)n->inclusive_ns * o->own_ns / o->all_ns, extra = (double)n->exclusive_ns - most;
        if (extra <= noise * (double)n->inclusive_ns) continue;
        n->not_kept_ns = (uint64_t)extra;
        n->exclusive_ns -= n->not_kept_ns;
    }
    free(own);
}

/* Calls and times of a function in the tree, beside those in the exact totals. */
struct kept {
    uint64_t calls, inclusive_ns, exclusive_ns, inner; /* inner: kinds of calls inside, and these themselves */
    uint64_t all_calls, all_inclusive_ns, all_exclusive_ns;
    bool unsure; /* open, below a call that is not kept, or totals that are a lower bound */
};

static void add_kept(const struct calltree *t, struct kept *kept)
{
    for (size_t id = 1; id < t->count; id++) { /* parents come before their children */
        struct tree_node *n = &t->node[id], *parent = &t->node[n->parent];
        n->exact = !n->reduced && (!n->parent || parent->exact);
        if (n->reduced || n->region > t->regions) continue;
        struct kept *k = &kept[n->region];
        k->calls += n->calls;
        k->inclusive_ns += n->inclusive_ns;
        k->exclusive_ns += n->exclusive_ns;
        k->inner += n->calls;
        k->unsure |= n->open || !n->exact;
        if (n->parent && !parent->reduced && parent->region <= t->regions) kept[parent->region].inner += n->calls;
    }
}

static void add_all(const struct calltree *t, const struct fdr_file *file, struct kept *kept)
{
    const struct fdr_total *total;
    for (size_t i = 0, n = fdr_totals(file, &total); i < n; i++) {
        if (total[i].class_ != FDR_IN_REGION || total[i].rest || !total[i].id || total[i].id > t->regions) continue;
        struct kept *k = &kept[t->same[total[i].id]];
        k->all_calls += total[i].calls + total[i].untimed;
        k->all_inclusive_ns += total[i].inclusive_ns;
        k->all_exclusive_ns += total[i].exclusive_ns;
        k->unsure |= total[i].at_least || total[i].saturated;
    }
}

/* Each time is rounded to the clock's unit, at both ends of a call. */
static bool equal(uint64_t a, uint64_t b, double rounding) { return fabs((double)a - (double)b) <= rounding; }

bool calltree_find_exact(struct calltree *t, struct fdr_file *file)
{
    struct kept *kept = calloc(t->regions + 1, sizeof *kept);
    double unit = 2 * fmax(1, fdr_file_info(file)->time_unit_ns);
    bool all = !any_given_back(file);
    if (!kept) return false;
    add_kept(t, kept);
    add_all(t, file, kept);
    for (size_t id = 1; id < t->count && !all; id++) {
        struct tree_node *n = &t->node[id];
        const struct kept *k = n->region <= t->regions ? &kept[n->region] : NULL;
        n->exact = n->exact && k && !k->unsure && k->calls == k->all_calls &&
                   equal(k->inclusive_ns, k->all_inclusive_ns, unit * (double)k->calls) &&
                   equal(k->exclusive_ns, k->all_exclusive_ns, unit * (double)k->inner);
    }
    free(kept);
    return true;
}

void calltree_free(struct calltree *tree)
{
    free(tree->node);
    free(tree->slot);
    free(tree->same);
    *tree = (struct calltree){0};
}

uint64_t calltree_total(const struct calltree *tree)
{
    uint64_t total = 0;
    for (uint32_t id = tree->node[0].child; id != NO_NODE; id = tree->node[id].sibling)
        total += tree->node[id].inclusive_ns;
    return total;
}

const char *calltree_name(const struct fdr_file *file, const struct tree_node *node)
{
    if (node->reduced) return node->filtered ? "[filtered]" : node->not_over ? "[open]" : "[reduced]";
    return region_name(file, node->region);
}

const char *calltree_shown(const struct fdr_file *file, const struct tree_node *node)
{
    return node->reduced ? calltree_name(file, node) : shown_region(file, node->region);
}
