/* SPDX-License-Identifier: MIT */
#include "tools/calls.h"

#include <stdlib.h>

struct frame {
    uint64_t enter_ns, children_ns;
    bool open;
};
struct walk {
    struct frame *stack; /* [0] is outside every call */
    size_t depth, capacity;
    uint32_t location;
};

static bool push(struct walk *w, const struct fdr_read_event *e)
{
    if (w->depth + 1 >= w->capacity) {
        size_t more = w->capacity ? w->capacity * 2 : 256;
        struct frame *stack = realloc(w->stack, more * sizeof *stack);
        if (!stack) return false;
        w->stack = stack;
        w->capacity = more;
    }
    w->stack[++w->depth] = (struct frame){e->time_ns, 0, e->repaired};
    return true;
}

static struct call pop(struct walk *w, const struct fdr_read_event *e)
{
    const struct frame *top = &w->stack[w->depth--];
    struct call c = {.location = e->location, .region = e->id, .depth = e->depth};
    c.open = top->open || e->repaired;
    c.reduced = e->reduced;
    c.duration_ns = e->time_ns > top->enter_ns ? e->time_ns - top->enter_ns : 0;
    if (!c.open) c.duration_ns = e->duration_ns; /* not cut by what was asked for */
    c.exclusive_ns = c.duration_ns > top->children_ns ? c.duration_ns - top->children_ns : 0;
    w->stack[w->depth].children_ns += c.duration_ns;
    return c;
}

static bool step(struct walk *w, const struct call_visitor *v, const struct fdr_read_event *e)
{
    if (e->location != w->location) {
        w->location = e->location;
        w->depth = 0;
        if (v->location) v->location(v->context, e->location);
    }
    if (e->kind == FDR_ENTER) return push(w, e) && (!v->enter || v->enter(v->context, e));
    if (e->kind == FDR_LEAVE && w->depth > 0) {
        struct call c = pop(w, e);
        if (v->leave) v->leave(v->context, &c);
    }
    return true;
}

bool visit_calls(struct fdr_file *file, const struct fdr_select *select, const struct call_visitor *visitor,
                 const char *what)
{
    struct progress progress = {.what = what};
    struct fdr_select calls = *select;
    struct fdr_read_event e;
    uint64_t done = 0;
    calls.classes = 1u << FDR_IN_REGION;
    calls.one_location_after_another = true;
    struct walk w = {.stack = malloc(256 * sizeof *w.stack), .capacity = 256, .location = UINT32_MAX};
    struct fdr_iter *iter = w.stack ? fdr_iter_open(file, &calls) : NULL;
    bool good = iter != NULL;
    if (good) w.stack[0] = (struct frame){0};
    progress_now(&progress, 0);
    while (good && fdr_iter_next(iter, &e)) {
        good = step(&w, visitor, &e);
        progress_at(&progress, ++done);
    }
    progress_end(&progress);
    if (iter) fdr_iter_close(iter);
    free(w.stack);
    return good;
}
