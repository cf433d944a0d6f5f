/* SPDX-License-Identifier: MIT */
/* Visits calls with their times, from the events of fdr_iter_next. The selection is applied here: a call's own time
 * excludes the calls in it, so these must be read, too. */
#include <errno.h>
#include <fdr/reader.h>
#include <stdlib.h>

struct frame {
    uint64_t enter_ns, children_ns;
    uint32_t depth;
    bool open, shown;
    bool reduced, filtered, not_over;
};
struct walk {
    const struct fdr_select *select;
    const struct fdr_call_visitor *visitor;
    const struct fdr_file *file;
    const struct fdr_location_info *location; /* of the current location */
    struct frame *stack;                      /* [0] lies outside of every call */
    size_t depth, capacity;
};

/* ---- what is shown ---- */

/* How long a call took, in ns. An open call has lasted to the newest event of its location. */
static uint64_t duration_of(const struct walk *w, const struct fdr_read_event *e)
{
    const struct fdr_location_info *l = w->location;
    if (!e->open) return e->duration_ns;
    return l && l->to_ns > e->time_ns ? l->to_ns - e->time_ns : 0;
}

static bool selected(const struct walk *w, const struct fdr_read_event *e)
{
    const struct fdr_select *s = w->select;
    if (s->depth_max && e->depth > s->depth_max) return false;
    if (s->regions && !(e->id < s->region_count && s->regions[e->id])) return false;
    return !s->min_duration_ns || duration_of(w, e) >= s->min_duration_ns;
}

/* Missing ancestors are shown around a shown call: the hidden ones on top of the stack enter. */
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

/* The part of a call that lies in the selected time, in ns. */
static uint64_t in_window(const struct fdr_select *s, uint64_t from, uint64_t to)
{
    if (s->from_ns > from) from = s->from_ns;
    if (s->to_ns && s->to_ns < to) to = s->to_ns;
    return to > from ? to - from : 0;
}

static struct fdr_call pop(struct walk *w, const struct fdr_read_event *e)
{
    const struct frame *top = &w->stack[w->depth--];
    struct fdr_call c = {.location = e->location, .region = e->id, .depth = e->depth};
    c.open = top->open || e->repaired;
    c.reduced = e->reduced;
    c.duration_ns = in_window(w->select, top->enter_ns, e->time_ns);
    c.exclusive_ns = c.duration_ns > top->children_ns ? c.duration_ns - top->children_ns : 0;
    w->stack[w->depth].children_ns += c.duration_ns;
    return c;
}

/* Returns 0 or what fdr_visit_calls returns. */
static int enter(struct walk *w, const struct fdr_read_event *e)
{
    bool shown = !e->reduced && selected(w, e);
    if (shown && !show_reduced(w)) return -ECANCELED;
    if (!push(w, e, shown)) return -ENOMEM;
    bool go_on = !shown || !w->visitor->enter || w->visitor->enter(w->visitor->context, e);
    return go_on ? 0 : -ECANCELED;
}

static void leave(struct walk *w, const struct fdr_read_event *e)
{
    bool shown = w->stack[w->depth].shown;
    const struct fdr_call c = pop(w, e);
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

/* Selects all calls that may lie in a shown call. */
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

int fdr_visit_calls(struct fdr_file *file, const struct fdr_select *select, const struct fdr_call_visitor *visitor)
{
    static const struct fdr_select everything = {0};
    if (!select) select = &everything;
    struct fdr_select calls = all_within(select);
    struct fdr_read_event e;
    uint64_t done = 0;
    uint32_t location = UINT32_MAX;
    struct walk w = {select, visitor, file, NULL, malloc(256 * sizeof *w.stack), 0, 256};
    struct fdr_iter *iter = w.stack ? fdr_iter_open(file, &calls) : NULL;
    int status = iter ? 0 : -ENOMEM;
    if (iter) w.stack[0] = (struct frame){0};
    while (status == 0 && fdr_iter_next(iter, &e)) {
        if (e.location != location) new_location(&w, location = e.location);
        if (e.kind == FDR_ENTER) status = enter(&w, &e);
        else if (e.kind == FDR_LEAVE && w.depth > 0) leave(&w, &e);
        if (++done % 65536 == 0 && visitor->progress) visitor->progress(visitor->context, done);
    }
    if (iter) fdr_iter_close(iter);
    free(w.stack);
    return status;
}
