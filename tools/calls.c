/* SPDX-License-Identifier: MIT */
#include "tools/calls.h"

#include <stdlib.h>

struct frame {
    uint64_t enter_ns, children_ns;
    uint32_t depth;
    bool open, shown;
    bool reduced, filtered, not_over;
};
struct walk {
    const struct fdr_select *select;
    const struct call_visitor *visitor;
    const struct fdr_file *file;
    const struct fdr_location_info *location; /* the current one */
    struct frame *stack;                      /* [0] is outside every call */
    size_t depth, capacity;
};

/* ---- what is shown ---- */

/* How long a call took. One that is still open has lasted to the newest event of its location. */
static uint64_t lasted(const struct walk *w, const struct fdr_read_event *e)
{
    const struct fdr_location_info *l = w->location;
    if (e->duration_ns) return e->duration_ns;
    for (size_t i = 0; l && i < l->open_count; i++)
        if (l->open[i].depth == e->depth && l->open[i].region == e->id && l->open[i].enter_ns == e->time_ns)
            return l->to_ns > e->time_ns ? l->to_ns - e->time_ns : 0;
    return 0;
}

static bool selected(const struct walk *w, const struct fdr_read_event *e)
{
    const struct fdr_select *s = w->select;
    if (s->depth_max && e->depth > s->depth_max) return false;
    if (s->regions && !(e->id < s->region_count && s->regions[e->id])) return false;
    return !s->min_duration_ns || lasted(w, e) >= s->min_duration_ns;
}

/* Ancestors that are no longer held are shown around what is: those on top of the stack enter. */
static bool show_reduced(struct walk *w)
{
    size_t first = w->depth + 1;
    while (first > 1 && w->stack[first - 1].reduced && !w->stack[first - 1].shown) first--;
    for (; first <= w->depth; first++) {
        struct frame *f = &w->stack[first];
        struct fdr_read_event e = {.time_ns = f->enter_ns,
                                   .location = w->location ? w->location->id : 0,
                                   .kind = FDR_ENTER,
                                   .class_ = FDR_IN_REGION,
                                   .depth = f->depth,
                                   .repaired = true,
                                   .reduced = true,
                                   .filtered = f->filtered,
                                   .not_over = f->not_over};
        f->shown = true;
        if (w->visitor->enter && !w->visitor->enter(w->visitor->context, &e)) return false;
    }
    return true;
}

/* ---- the stack ---- */

static bool push(struct walk *w, const struct fdr_read_event *e, bool shown)
{
    if (w->depth + 1 >= w->capacity) {
        size_t more = w->capacity ? w->capacity * 2 : 256;
        struct frame *stack = realloc(w->stack, more * sizeof *stack);
        if (!stack) return false;
        w->stack = stack;
        w->capacity = more;
    }
    w->stack[++w->depth] = (struct frame){e->time_ns, 0,          e->depth,    e->repaired,
                                          shown,      e->reduced, e->filtered, e->not_over};
    return true;
}

/* What of a call lies in the window. */
static uint64_t in_window(const struct fdr_select *s, uint64_t from, uint64_t to)
{
    if (s->from_ns > from) from = s->from_ns;
    if (s->to_ns && s->to_ns < to) to = s->to_ns;
    return to > from ? to - from : 0;
}

static struct call pop(struct walk *w, const struct fdr_read_event *e)
{
    const struct frame *top = &w->stack[w->depth--];
    struct call c = {.location = e->location, .region = e->id, .depth = e->depth};
    c.open = top->open || e->repaired;
    c.reduced = e->reduced;
    c.duration_ns = in_window(w->select, top->enter_ns, e->time_ns);
    c.exclusive_ns = c.duration_ns > top->children_ns ? c.duration_ns - top->children_ns : 0;
    w->stack[w->depth].children_ns += c.duration_ns;
    return c;
}

static bool enter(struct walk *w, const struct fdr_read_event *e)
{
    bool shown = !e->reduced && selected(w, e);
    if (shown && !show_reduced(w)) return false;
    if (!push(w, e, shown)) return false;
    return !shown || !w->visitor->enter || w->visitor->enter(w->visitor->context, e);
}

static void leave(struct walk *w, const struct fdr_read_event *e)
{
    bool shown = w->stack[w->depth].shown;
    struct call c = pop(w, e);
    if (shown && w->visitor->leave) w->visitor->leave(w->visitor->context, &c);
}

static void new_location(struct walk *w, uint32_t id)
{
    w->location = NULL;
    for (size_t i = 0; i < fdr_location_count(w->file); i++)
        if (fdr_location_info(w->file, i)->id == id) w->location = fdr_location_info(w->file, i);
    w->depth = 0;
    if (w->visitor->location) w->visitor->location(w->visitor->context, id);
}

/* The calls of everything that may be in one that is shown. */
static struct fdr_select all_within(const struct fdr_select *select)
{
    struct fdr_select s = *select;
    s.classes = 1u << FDR_IN_REGION;
    s.one_location_after_another = true;
    s.depth_max = 0;
    s.min_duration_ns = 0;
    s.regions = NULL;
    s.region_count = 0;
    return s;
}

bool visit_calls(struct fdr_file *file, const struct fdr_select *select, const struct call_visitor *visitor,
                 const char *what)
{
    struct progress progress = {.what = what};
    struct fdr_select calls = all_within(select);
    struct fdr_read_event e;
    uint64_t done = 0;
    uint32_t location = UINT32_MAX;
    struct walk w = {select, visitor, file, NULL, malloc(256 * sizeof *w.stack), 0, 256};
    struct fdr_iter *iter = w.stack ? fdr_iter_open(file, &calls) : NULL;
    bool good = iter != NULL;
    if (good) w.stack[0] = (struct frame){0};
    progress_now(&progress, 0);
    while (good && fdr_iter_next(iter, &e)) {
        if (e.location != location) new_location(&w, location = e.location);
        if (e.kind == FDR_ENTER) good = enter(&w, &e);
        else if (e.kind == FDR_LEAVE && w.depth > 0) leave(&w, &e);
        progress_at(&progress, ++done);
    }
    progress_end(&progress);
    if (iter) fdr_iter_close(iter);
    free(w.stack);
    return good;
}
