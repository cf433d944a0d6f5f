/* SPDX-License-Identifier: MIT */
#include "tools/calltree.h"

#include <stdlib.h>

#include "tools/calls.h"

static uint32_t new_node(struct calltree *t, uint32_t parent, const struct fdr_read_event *e)
{
    if (t->count == t->capacity) {
        size_t more = t->capacity ? t->capacity * 2 : 1024;
        struct tree_node *node = realloc(t->node, more * sizeof *node);
        if (!node) return NO_NODE;
        t->node = node;
        t->capacity = more;
    }
    uint32_t id = (uint32_t)t->count++;
    t->node[id] = (struct tree_node){.parent = parent, .child = NO_NODE, .sibling = NO_NODE, .min_ns = UINT64_MAX};
    if (parent == NO_NODE) return id;
    t->node[id].region = e->id;
    t->node[id].reduced = e->reduced;
    t->node[id].filtered = e->filtered;
    t->node[id].not_over = e->not_over;
    t->node[id].sibling = t->node[parent].child;
    t->node[parent].child = id;
    return id;
}

static bool same(const struct tree_node *n, const struct fdr_read_event *e)
{
    if (n->filtered != e->filtered || n->not_over != e->not_over) return false;
    return n->reduced == e->reduced && (n->reduced || n->region == e->id);
}

/* The child, moved to the front of its siblings: loops ask for the same few again and again. */
static uint32_t child_of(struct calltree *t, uint32_t parent, const struct fdr_read_event *e)
{
    uint32_t *link = &t->node[parent].child;
    for (uint32_t id = *link; id != NO_NODE; id = *link) {
        struct tree_node *n = &t->node[id];
        if (same(n, e)) {
            *link = n->sibling;
            n->sibling = t->node[parent].child;
            t->node[parent].child = id;
            return id;
        }
        link = &n->sibling;
    }
    return new_node(t, parent, e);
}

static bool enter(void *context, const struct fdr_read_event *e)
{
    struct calltree *t = context;
    uint32_t child = child_of(t, t->current, e);
    if (child == NO_NODE) return false;
    t->current = child;
    return true;
}

static void leave(void *context, const struct call *c)
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
    struct call_visitor visitor = {tree, enter, leave, location};
    *tree = (struct calltree){0};
    if (new_node(tree, NO_NODE, NULL) == 0 && visit_calls(file, select, &visitor, "call tree")) return true;
    calltree_free(tree);
    return false;
}

void calltree_free(struct calltree *tree)
{
    free(tree->node);
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
