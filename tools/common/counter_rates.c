/* SPDX-License-Identifier: MIT */
/* Counters of a recording, attributed to regions, threads and time.
 *
 * The monitor records running counts with their thread ("fdr.counters.N": thread, series, reading, idle, counters). The
 * amount between two readings of a thread is spread over the regions of that thread in between, by the time spent in
 * each. `idle` is the number of readings in between that found nothing new and were not recorded. Then the whole amount
 * happened in the last part. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/counter_rates.h"
#include "tools/common/progress.h"

enum { FIELDS_BEFORE = 4, TRACK_COUNTERS = 16 };

struct frame {
    uint32_t region;
    bool outermost;
    bool has_readings, has_inner; /* read: counters of this call were read; below: in calls inside it */
    uint64_t enter_ns;
    double inside[TRACK_COUNTERS]; /* until its own reading: amounts of calls inside it; then its whole amount */
};

/* The readings of one thread, of the process, or of one metric of the application. */
struct track {
    uint64_t series;
    uint32_t kind;   /* first counter: a thread may have two sets of counters */
    bool metric;     /* of the application */
    uint32_t place;  /* index of the location observed, or UINT32_MAX */
    uint32_t thread; /* 0: the process */
    uint64_t last_ns, interval_ns;
    uint64_t number; /* number of its newest stored reading */
    uint64_t value[TRACK_COUNTERS];
    /* time spent since the newest reading; previous and current: in the last one or two intervals */
    struct spent_map old, previous, current;
    uint64_t current_from, mark_ns;
    struct track *next, *next_of_location; /* next: in the hash chain; beside: of the same location */
};

struct place { /* one for each location */
    const struct fdr_location_info *info;
    uint64_t process; /* in a job: which of its files */
    struct frame *frame;
    size_t depth, room;
    struct track *tracks;
    bool of_monitor;
};

/* The contents of one type of the monitor's events. */
struct shape {
    bool known, is_edge, edges;
    uint32_t count, counter[TRACK_COUNTERS];
};
enum { SHAPES = 256 };

struct gather {
    struct rates *r;
    struct fdr_file *file;
    enum rate_by by;
    struct place *place;
    size_t places;
    struct track *tracks;
    struct track **by_series; /* hash table by series; the newest first */
    struct rate_map result;
    uint32_t *counter_of_metric; /* index + 1 by metric id */
    uint32_t metrics;
    struct shape shape[SHAPES]; /* by event type */
    bool failed;
};

enum { SERIES_SLOTS = 1024 };

/* ---- counters ---- */

static uint32_t counter_of(struct gather *g, uint32_t metric)
{
    if (metric > g->metrics) metric = 0;
    if (g->counter_of_metric[metric]) return g->counter_of_metric[metric] - 1;
    const struct fdr_metric_info *m = fdr_metric_info(g->file, metric);
    g->r->counter[g->r->count] = (struct counter){.name = m->name,
                                                  .unit = m->unit,
                                                  .gauge = !m->counter,
                                                  .real = m->type == FDR_VALUE_F64,
                                                  .sign = m->type == FDR_VALUE_I64};
    g->counter_of_metric[metric] = ++g->r->count;
    return g->r->count - 1;
}

/* ---- the stack of a location ---- */

static void add_total(struct gather *g, struct track *t, const struct frame *f, uint64_t to)
{
    if (!f->outermost) return;
    struct spent *s = spent_at(&t->current, f->region);
    uint64_t from = f->enter_ns > t->current_from ? f->enter_ns : t->current_from;
    if (!s) g->failed = true;
    else if (to > from) s->total_ns += to - from;
}

static void add_open(struct gather *g, struct track *t, const struct place *p, uint64_t now)
{
    for (size_t i = 0; i < p->depth; i++) add_total(g, t, &p->frame[i], now);
}

static void merge(struct gather *g, struct spent_map *to, const struct spent_map *from)
{
    for (uint32_t i = 0; from->slot && i < 1u << from->log2; i++) {
        if (!from->slot[i].used) continue;
        struct spent *s = spent_at(to, from->slot[i].key);
        if (!s) {
            g->failed = true;
            return;
        }
        s->self_ns += from->slot[i].self_ns;
        s->total_ns += from->slot[i].total_ns;
    }
}

static void begin_interval_map(struct gather *g, struct track *t, const struct place *p, uint64_t now)
{
    struct spent_map empty;
    add_open(g, t, p, now);
    merge(g, &t->old, &t->previous);
    empty = t->previous;
    spent_clear(&empty);
    t->previous = t->current;
    t->current = empty;
    t->current_from = now;
}

/* The time since the last event belongs to the innermost region. */
static void advance(struct gather *g, struct track *t, const struct place *p, uint64_t now)
{
    if (now > t->mark_ns) {
        struct spent *s = spent_at(&t->current, p->depth ? p->frame[p->depth - 1].region : NO_REGION);
        if (!s) g->failed = true;
        else s->self_ns += now - t->mark_ns;
        if (s && !p->depth) s->total_ns = s->self_ns;
        t->mark_ns = now;
    }
    if (now - t->current_from > t->interval_ns) begin_interval_map(g, t, p, now);
}

static void enter(struct gather *g, struct place *p, const struct fdr_read_event *e)
{
    for (struct track *t = p->tracks; t; t = t->next_of_location) advance(g, t, p, e->time_ns);
    if (p->depth == p->room) {
        size_t room = p->room ? 2 * p->room : 32;
        struct frame *wider = realloc(p->frame, room * sizeof *wider);
        if (!wider) {
            g->failed = true;
            return;
        }
        p->frame = wider;
        p->room = room;
    }
    bool outermost = !e->reduced;
    for (size_t i = p->depth; i && outermost; i--) outermost = p->frame[i - 1].region != e->id;
    struct frame *f = &p->frame[p->depth++];
    f->region = e->filtered ? FILTERED : e->not_over ? NOT_OVER : e->reduced ? REDUCED : e->id;
    f->outermost = outermost;
    f->has_readings = f->has_inner = false;
    f->enter_ns = e->time_ns;
}

/* The amounts of the top call and of calls inside it also belong inside its caller. */
static void add_to_caller(struct place *p)
{
    const struct frame *f = &p->frame[p->depth - 1];
    if (p->depth < 2 || (!f->has_readings && !f->has_inner)) return;
    struct frame *caller = &p->frame[p->depth - 2];
    for (size_t k = 0; k < TRACK_COUNTERS; k++)
        caller->inside[k] = (caller->has_inner ? caller->inside[k] : 0) + f->inside[k];
    caller->has_inner = true;
}

static void leave(struct gather *g, struct place *p, const struct fdr_read_event *e)
{
    if (!p->depth) return;
    for (struct track *t = p->tracks; t; t = t->next_of_location) {
        advance(g, t, p, e->time_ns);
        add_total(g, t, &p->frame[p->depth - 1], e->time_ns);
    }
    add_to_caller(p);
    p->depth--;
}

/* ---- readings ---- */

static double number(const struct counter *c, uint64_t bits)
{
    double real;
    if (c->sign) return (double)(int64_t)bits;
    if (!c->real) return (double)bits;
    memcpy(&real, &bits, sizeof real);
    return real;
}

static void note_value(struct rate *r, double value)
{
    if (!r->readings || value < r->min) r->min = value;
    if (!r->readings || value > r->max) r->max = value;
    r->sum += value;
    r->readings++;
}

static struct rate *result(struct gather *g, uint32_t counter, uint32_t key)
{
    struct rate *r = rate_at(&g->result, counter, key);
    if (!r) g->failed = true;
    return r;
}

/* Divides an amount among the regions: amount * time in the region / all the time. */
static void divide_by_time(struct gather *g, uint32_t counter, const struct spent_map *m, double amount,
                           double whole_ns)
{
    for (uint32_t i = 0; m->slot && i < 1u << m->log2; i++) {
        const struct spent *s = &m->slot[i];
        if (!s->used) continue;
        struct rate *r = result(g, counter, s->key);
        if (!r) return;
        r->self += amount * (double)s->self_ns / whole_ns;
        r->total += amount * (double)s->total_ns / whole_ns;
        r->self_ns += (double)s->self_ns;
        r->total_ns += (double)s->total_ns;
        r->readings += s->self_ns > 0;
    }
}

static double total_time(const struct spent_map *m)
{
    double sum = 0;
    for (uint32_t i = 0; m->slot && i < 1u << m->log2; i++) sum += m->slot[i].used ? (double)m->slot[i].self_ns : 0;
    return sum;
}

static void amount_by_time(struct gather *g, uint32_t counter, double amount, uint64_t from, uint64_t to)
{
    struct rates *r = g->r;
    if (to <= from) from = to ? to - 1 : 0;
    for (uint64_t at = from; at < to;) {
        uint64_t slice = (at - r->from_ns) / r->slice_ns, end = r->from_ns + (slice + 1) * r->slice_ns;
        if (end > to || slice >= r->slices - 1) end = to;
        struct rate *x = result(g, counter, (uint32_t)(slice < r->slices ? slice : r->slices - 1));
        if (!x) return;
        x->self += amount * (double)(end - at) / (double)(to - from);
        x->readings += end == to;
        at = end;
    }
}

static void add_interval(struct gather *g, struct track *t, uint32_t counter, double amount, uint64_t from, uint64_t to,
                         bool idle)
{
    struct counter *c = &g->r->counter[counter];
    c->all.self += amount;
    c->all.readings++;
    if (g->by == BY_THREAD) {
        struct rate *r = result(g, counter, t->metric ? t->place : t->thread);
        if (r) r->self += amount, r->readings++, r->self_ns += (double)(to - t->last_ns);
    } else if (g->by == BY_TIME) {
        amount_by_time(g, counter, amount, from, to);
    } else if (g->by == BY_REGION_OF_COUNTER && !t->metric && t->thread) {
        if (t->place == UINT32_MAX) {
            struct rate *r = result(g, counter, NO_LOCATION);
            if (r)
                r->self += amount, r->total += amount, r->readings++, r->self_ns += (double)(to - t->last_ns),
                    r->total_ns = r->self_ns;
            return;
        }
        double all = total_time(&t->previous) + total_time(&t->current);
        if (!idle) all += total_time(&t->old);
        if (!(all > 0)) return;
        divide_by_time(g, counter, &t->current, amount, all);
        divide_by_time(g, counter, &t->previous, amount, all);
        divide_by_time(g, counter, &t->old, idle ? 0 : amount, all);
    }
}

static void observe_gauge(struct gather *g, struct track *t, uint32_t counter, double value, uint64_t now)
{
    note_value(&g->r->counter[counter].all, value);
    uint32_t key = 0;
    struct rate *r = NULL;
    if (g->by == BY_THREAD) key = t->metric ? t->place : t->thread;
    else if (g->by == BY_TIME) key = (uint32_t)((now - g->r->from_ns) / g->r->slice_ns);
    else if (g->by == BY_REGION_OF_COUNTER && t->thread && t->place != UINT32_MAX) {
        const struct place *p = &g->place[t->place];
        key = p->depth ? p->frame[p->depth - 1].region : NO_REGION;
    } else return;
    if (g->by == BY_TIME && key >= g->r->slices) key = g->r->slices - 1;
    if ((r = result(g, counter, key))) note_value(r, value);
}

/* The location that the thread had at that time. */
static uint32_t place_of_thread(const struct gather *g, uint64_t process, uint32_t thread, uint64_t now)
{
    for (size_t i = 0; i < g->places; i++) {
        const struct fdr_location_info *l = g->place[i].info;
        bool is_its = l->tid == thread && g->place[i].process == process && l->parent == UINT32_MAX && !l->samples;
        if (is_its && (!l->end_ns || l->end_ns >= now)) return (uint32_t)i;
    }
    return UINT32_MAX;
}

static void attach(struct gather *g, struct track *t, uint64_t process, uint64_t now)
{
    t->place = place_of_thread(g, process, t->thread, now);
    if (t->place == UINT32_MAX) return;
    t->next_of_location = g->place[t->place].tracks;
    g->place[t->place].tracks = t;
}

static struct track *track_of(struct gather *g, uint64_t series, uint32_t kind, bool metric, bool *new_one)
{
    struct track **slot = &g->by_series[(series * 31 + kind) % SERIES_SLOTS];
    *new_one = false;
    for (struct track *t = *slot; t; t = t->next)
        if (t->series == series && t->kind == kind && t->metric == metric) return t;
    struct track *t = calloc(1, sizeof *t);
    if (!t) {
        g->failed = true;
        return NULL;
    }
    *t = (struct track){.series = series, .kind = kind, .metric = metric, .place = UINT32_MAX, .interval_ns = 1000000};
    t->next = *slot;
    *slot = t;
    *new_one = true;
    return t;
}

static void begin_interval(struct track *t, uint64_t now)
{
    spent_clear(&t->old);
    spent_clear(&t->previous);
    spent_clear(&t->current);
    t->current_from = t->mark_ns = t->last_ns = now;
}

static void read_counter(struct gather *g, struct track *t, uint32_t k, uint32_t counter, uint64_t value, uint64_t from,
                         uint64_t now, bool first, bool idle)
{
    struct counter *c = &g->r->counter[counter];
    if (first && !c->from_ns) c->from_ns = now;
    c->to_ns = now;
    if (c->gauge) {
        if (number(c, value) == number(c, value)) observe_gauge(g, t, counter, number(c, value), now);
    } else if (!first) {
        double amount = number(c, value) - number(c, t->value[k]);
        if (amount >= 0) add_interval(g, t, counter, amount, from, now, idle);
    }
    t->value[k] = value;
}

static const struct shape *shape_of(struct gather *g, uint32_t type)
{
    struct shape *s = &g->shape[type < SHAPES ? type : 0];
    if (s->known || type >= SHAPES) return s;
    const struct fdr_event_info *d = fdr_event_info(g->file, type);
    s->known = true;
    s->edges = !strcmp(d->name, "fdr.edges");
    uint32_t before = s->edges ? 0 : FIELDS_BEFORE;
    if ((!s->edges && strncmp(d->name, "fdr.counters.", 13)) || d->field_count <= before) return s;
    s->count = d->field_count - before;
    s->is_edge = s->count <= TRACK_COUNTERS;
    for (uint32_t k = 0; s->is_edge && k < s->count; k++) {
        s->is_edge = d->field[before + k].metric != 0;
        if (!s->is_edge) break;
        s->counter[k] = counter_of(g, d->field[before + k].metric);
        *(s->edges ? &g->r->counter[s->counter[k]].at_edges : &g->r->counter[s->counter[k]].sampled) = true;
    }
    return s;
}

/* The counters' increase from the enter of the innermost call to this event. */
static void edge_reading(struct gather *g, const struct fdr_read_event *e, const struct shape *s, struct place *p)
{
    struct frame *f = p->depth ? &p->frame[p->depth - 1] : NULL;
    if (!f || e->field_count != s->count) return;
    for (uint32_t k = 0; k < s->count; k++) {
        struct counter *c = &g->r->counter[s->counter[k]];
        double amount = number(c, e->field[k]), self = amount - (f->has_inner ? f->inside[k] : 0);
        if (!c->from_ns || f->enter_ns < c->from_ns) c->from_ns = f->enter_ns;
        c->to_ns = e->time_ns;
        if (!c->sampled) c->all.self += self, c->all.readings++;
        f->inside[k] = amount;
        if (g->by != BY_CALL) continue;
        struct rate *r = result(g, s->counter[k], f->region);
        if (!r) return;
        note_value(r, amount);
        r->self += self;
        r->total += amount;
    }
    for (uint32_t k = s->count; k < TRACK_COUNTERS; k++) f->inside[k] = 0;
    f->has_readings = true;
}

static void monitor_reading(struct gather *g, const struct fdr_read_event *e, const struct shape *s, uint64_t process)
{
    const uint32_t *counter = s->counter, n = s->count;
    bool first;
    if (e->field_count != n + FIELDS_BEFORE) return;
    struct track *t = track_of(g, e->field[1] ^ process << 48, counter[0], false, &first);
    if (!t) return;
    t->thread = (uint32_t)e->field[0];
    if (first || t->place == UINT32_MAX) {
        if (t->thread) attach(g, t, process, e->time_ns);
        if (first || t->place != UINT32_MAX) t->current_from = t->mark_ns = first ? e->time_ns : t->last_ns;
    }
    if (t->place != UINT32_MAX && !first) {
        advance(g, t, &g->place[t->place], e->time_ns);
        add_open(g, t, &g->place[t->place], e->time_ns);
    }
    uint64_t passed = first ? 1 : e->field[2] - t->number, gap = e->time_ns - t->last_ns;
    uint64_t interval = passed && passed < gap ? gap / passed : gap;
    bool idle = !first && e->field[3] && passed == e->field[3] + 1; /* else a reading in between was thinned out */
    for (uint32_t k = 0; k < n; k++)
        read_counter(g, t, k, counter[k], e->field[FIELDS_BEFORE + k], idle ? e->time_ns - interval : t->last_ns,
                     e->time_ns, first, idle);
    if (!first && interval) t->interval_ns = interval;
    t->number = e->field[2];
    begin_interval(t, e->time_ns);
}

static void application_metric(struct gather *g, const struct fdr_read_event *e, uint32_t place)
{
    bool first;
    uint32_t counter = counter_of(g, e->id);
    if (counter == UINT32_MAX) return;
    struct track *t = track_of(g, (uint64_t)place << 32 | e->id, counter, true, &first);
    if (!t) return;
    t->place = place;
    read_counter(g, t, 0, counter, e->field[0], t->last_ns, e->time_ns, first, false);
    t->last_ns = e->time_ns;
}

/* ---- all events ---- */

static uint32_t place_index(const struct gather *g, uint32_t location)
{
    if (location < g->places && g->place[location].info->id == location) return location;
    for (size_t i = 0; i < g->places; i++)
        if (g->place[i].info->id == location) return (uint32_t)i;
    return UINT32_MAX;
}

static void take_event(struct gather *g, const struct fdr_read_event *e)
{
    uint32_t i = place_index(g, e->location);
    if (i == UINT32_MAX) return;
    if (e->kind == FDR_ENTER) enter(g, &g->place[i], e);
    else if (e->kind == FDR_LEAVE) leave(g, &g->place[i], e);
    else if (e->kind == FDR_METRIC) application_metric(g, e, i);
    else if (e->kind == FDR_EVENT) {
        const struct shape *s = shape_of(g, e->id);
        if (s->is_edge && s->edges) edge_reading(g, e, s, &g->place[i]);
        else if (s->is_edge) monitor_reading(g, e, s, g->place[i].process);
    }
}

static int by_counter_and_key(const void *a, const void *b)
{
    const struct rate_row *x = a, *y = b;
    if (x->counter != y->counter) return x->counter < y->counter ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void find_missing(struct rates *r, const struct fdr_file *file)
{
    static const char prefix[] = "fdr.counters.missing: ";
    for (uint32_t i = 1; i <= fdr_definition_count(file, FDR_MARKER_DEFINITION); i++) {
        const char *name = fdr_definition(file, FDR_MARKER_DEFINITION, i)->name;
        if (!strncmp(name, prefix, sizeof prefix - 1) && r->missing_count < 8)
            r->missing[r->missing_count++] = name + sizeof prefix - 1;
    }
}

static bool begin(struct gather *g)
{
    const struct fdr_file_info *info = fdr_file_info(g->file);
    g->places = fdr_location_count(g->file);
    g->metrics = (uint32_t)fdr_definition_count(g->file, FDR_METRIC_DEFINITION);
    g->place = calloc(g->places + 1, sizeof *g->place);
    g->by_series = calloc(SERIES_SLOTS, sizeof *g->by_series);
    g->counter_of_metric = calloc(g->metrics + 1, sizeof *g->counter_of_metric);
    g->r->counter = calloc(g->metrics + 1, sizeof *g->r->counter);
    if (!g->place || !g->by_series || !g->counter_of_metric || !g->r->counter) return false;
    for (size_t i = 0; i < g->places; i++) {
        struct fdr_origin origin = {0};
        g->place[i].info = fdr_location_info(g->file, i);
        fdr_location_origin(g->file, g->place[i].info->id, &origin);
        g->place[i].process = origin.file;
    }
    g->r->from_ns = info->first_ns;
    g->r->start_ns = run_start(g->file);
    g->r->to_ns = info->last_ns > info->first_ns ? info->last_ns : info->first_ns + 1;
    g->r->slice_ns = (g->r->to_ns - g->r->from_ns) / g->r->slices + 1;
    return true;
}

static void end(struct gather *g)
{
    for (size_t i = 0; g->place && i < g->places; i++) free(g->place[i].frame);
    for (uint32_t i = 0; g->by_series && i < SERIES_SLOTS; i++) {
        for (struct track *t = g->by_series[i], *next; t; t = next) {
            next = t->next;
            spent_free(&t->old);
            spent_free(&t->previous);
            spent_free(&t->current);
            free(t);
        }
    }
    free(g->by_series);
    free(g->place);
    free(g->counter_of_metric);
    free(g->result.slot);
}

bool rates_gather(struct rates *r, struct fdr_file *file, enum rate_by by, uint32_t slices)
{
    static struct gather g;
    g = (struct gather){.r = r, .file = file, .by = by};
    struct fdr_select everything = {0};
    struct fdr_read_event e;
    struct progress progress = {.what = "counters"};
    uint64_t n = 0;
    *r = (struct rates){.slices = slices ? slices : 1};
    find_missing(r, file);
    g.failed = !begin(&g);
    struct fdr_iter *it = g.failed ? NULL : fdr_iter_open(file, &everything);
    while (it && !g.failed && fdr_iter_next(it, &e)) {
        take_event(&g, &e);
        progress_at(&progress, ++n);
    }
    progress_end(&progress);
    if (it) fdr_iter_close(it);
    r->table = (struct rate_table){g.result.row, g.result.count};
    if (r->table.count) qsort(r->table.row, r->table.count, sizeof *r->table.row, by_counter_and_key);
    end(&g);
    return it && !g.failed;
}

void rates_free(struct rates *r)
{
    free(r->table.row);
    free(r->counter);
    r->table = (struct rate_table){0};
    r->counter = NULL;
}
