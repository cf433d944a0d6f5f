/* SPDX-License-Identifier: MIT */
/* The calls of a window, summed by path. */
#include "tools/html/view/view_window.h"

#include <stdlib.h>
#include <string.h>

#define DEPTHS_MOST 2048u

struct flame {
    struct view_nodes *nodes;
    uint64_t base_ns;
    uint32_t depth;
    uint32_t path[DEPTHS_MOST]; /* node of each open call */
    uint64_t start[DEPTHS_MOST];
    bool failed;
};

static uint32_t hash_of(uint32_t parent, uint32_t region, uint32_t flags)
{
    uint64_t h = ((uint64_t)parent << 32 | region) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 29) ^ flags * 0x85ebca6bu;
}

static bool grow_slots(struct view_nodes *n)
{
    size_t slots = n->slots ? n->slots * 2 : 1024;
    uint32_t *slot = calloc(slots, sizeof *slot);
    if (!slot) return false;
    for (size_t i = 1; i < n->count; i++) {
        size_t at = hash_of(n->node[i].parent, n->node[i].region, n->node[i].flags) & (slots - 1);
        while (slot[at]) at = (at + 1) & (slots - 1);
        slot[at] = (uint32_t)i;
    }
    free(n->slot);
    n->slot = slot;
    n->slots = slots;
    return true;
}

static bool grow_nodes(struct view_nodes *n)
{
    if (n->count < n->room) return true;
    size_t room = n->room ? n->room * 2 : 512;
    struct view_node *grown = realloc(n->node, room * sizeof *grown);
    if (!grown) return false;
    n->node = grown;
    n->room = room;
    return true;
}

/* The child of `parent`, made if there is none. 0: out of memory; the first node is nobody's child. */
static uint32_t child_of(struct view_nodes *n, uint32_t parent, uint32_t region, uint32_t flags)
{
    if (n->count * 2 >= n->slots && !grow_slots(n)) return 0;
    size_t at = hash_of(parent, region, flags) & (n->slots - 1);
    for (; n->slot[at]; at = (at + 1) & (n->slots - 1)) {
        const struct view_node *c = &n->node[n->slot[at]];
        if (c->parent == parent && c->region == region && c->flags == flags) return n->slot[at];
    }
    if (!grow_nodes(n)) return 0;
    n->node[n->count] = (struct view_node){.parent = parent, .region = region, .flags = flags};
    n->slot[at] = (uint32_t)n->count;
    return (uint32_t)n->count++;
}

static void next_location(void *context, uint32_t location)
{
    (void)location;
    ((struct flame *)context)->depth = 0;
}

static bool entered(void *context, const struct fdr_read_event *e)
{
    struct flame *f = context;
    if (f->depth + 1 >= DEPTHS_MOST) return true;
    uint32_t flags = (e->reduced ? VIEW_REDUCED : 0u) | (e->filtered ? VIEW_FILTERED : 0u);
    uint32_t node = child_of(f->nodes, f->depth ? f->path[f->depth - 1] : 0, e->reduced ? 0 : e->id, flags);
    f->failed |= node == 0;
    f->path[f->depth] = node;
    f->start[f->depth++] = e->time_ns;
    return !f->failed;
}

static void left(void *context, const struct fdr_call *call)
{
    struct flame *f = context;
    if (f->depth == 0) return;
    struct view_node *n = &f->nodes->node[f->path[--f->depth]];
    n->inclusive_ns += (double)call->duration_ns;
    n->exclusive_ns += (double)call->exclusive_ns;
    n->calls++;
    if (f->depth == 0) f->nodes->node[0].inclusive_ns += (double)call->duration_ns;
    if ((double)call->duration_ns < n->longest_ns) return;
    n->longest_ns = (double)call->duration_ns;
    n->longest_start_ns = (double)(int64_t)(f->start[f->depth] - f->base_ns);
    n->location = call->location;
}

bool view_flame(struct fdr_file *file, const struct view_window *w, struct view_nodes *nodes)
{
    struct fdr_select select = {.locations = w->location == UINT32_MAX ? NULL : &w->location,
                                .location_count = w->location == UINT32_MAX ? 0 : 1,
                                .depth_max = w->depth_max,
                                .from_ns = w->from_ns,
                                .to_ns = w->to_ns};
    struct flame *f = calloc(1, sizeof *f);
    struct fdr_call_visitor visitor = {f, next_location, entered, left, NULL};
    if (!f || !grow_nodes(nodes)) {
        free(f);
        return false;
    }
    f->nodes = nodes;
    f->base_ns = w->base_ns;
    nodes->node[nodes->count++] = (struct view_node){.parent = UINT32_MAX};
    bool done = fdr_visit_calls(file, &select, &visitor) == 0 && !f->failed;
    free(f);
    return done;
}

void view_nodes_free(struct view_nodes *nodes)
{
    free(nodes->node);
    free(nodes->slot);
    memset(nodes, 0, sizeof *nodes);
}
