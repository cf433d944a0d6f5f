/* SPDX-License-Identifier: MIT */
/* The oracle: keeps everything that was presented to the recorder and compares it with what the reader yields. It is
 * plain and slow, knows nothing of bins, bands or policies, and predicts nothing of what survives; it checks that
 * whatever is shown is true. Functions return NULL, or a line that says what is wrong. Included by tests. */
#ifndef FDR_TESTS_ORACLE_H
#define FDR_TESTS_ORACLE_H

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ORACLE_DEPTHS = 4096, ORACLE_NONE = 0xffffffffu };

/* ---- what was presented, in order ---- */
struct oracle_event {
    uint64_t time;
    uint32_t id;
    uint32_t mate;   /* calls: index of the other edge; ORACLE_NONE while open */
    uint32_t parent; /* index of the enter around it, or ORACLE_NONE */
    uint32_t field;  /* index of its first field; points only */
    uint32_t other;  /* the event of the same class and depth presented before (or after) it */
    uint16_t depth;  /* calls: own depth; points: open regions around */
    uint8_t kind;    /* enum fdr_event_kind */
    uint8_t fields;
};
struct oracle {
    struct oracle_event *event;
    uint64_t *field;
    size_t count, room, fields, fields_room;
    uint32_t open[ORACLE_DEPTHS]; /* index of the enter at depth d + 1 */
    uint32_t depth;
    uint64_t last; /* time of the newest event */
    uint64_t clamped;
};

static char oracle_text[512];
static inline __attribute__((format(printf, 1, 2))) const char *oracle_wrong(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(oracle_text, sizeof oracle_text, format, ap);
    va_end(ap);
    return oracle_text;
}

static inline uint32_t oracle_class(uint8_t kind)
{
    switch (kind) {
    case FDR_SEND:
    case FDR_RECV: return FDR_IN_MESSAGE;
    case FDR_COLL_BEGIN:
    case FDR_COLL_END: return FDR_IN_COLLECTIVE;
    case FDR_METRIC: return FDR_IN_METRIC;
    case FDR_MARKER: return FDR_IN_MARKER;
    case FDR_EVENT: return FDR_IN_USER;
    default: return FDR_IN_REGION;
    }
}

static inline struct oracle_event *oracle_add(struct oracle *o, uint8_t kind, uint32_t id, uint64_t time)
{
    if (o->count == o->room) {
        o->room = o->room ? o->room * 2 : 1 << 16;
        o->event = realloc(o->event, o->room * sizeof *o->event);
    }
    if (time < o->last) {
        o->clamped++;
        time = o->last;
    }
    o->last = time;
    struct oracle_event *e = &o->event[o->count++];
    *e = (struct oracle_event){.time = time,
                               .id = id,
                               .mate = ORACLE_NONE,
                               .depth = (uint16_t)o->depth,
                               .kind = kind,
                               .parent = o->depth ? o->open[o->depth - 1] : ORACLE_NONE};
    return e;
}
static inline void oracle_enter(struct oracle *o, uint32_t region, uint64_t time)
{
    struct oracle_event *e = oracle_add(o, FDR_ENTER, region, time);
    e->depth = (uint16_t)(o->depth + 1);
    o->open[o->depth++] = (uint32_t)(o->count - 1);
}
static inline void oracle_leave(struct oracle *o, uint64_t time)
{
    uint32_t enter = o->open[o->depth - 1];
    struct oracle_event *e = oracle_add(o, FDR_LEAVE, o->event[enter].id, time);
    e->mate = enter;
    e->parent = o->event[enter].parent;
    o->event[enter].mate = (uint32_t)(o->count - 1);
    o->depth--;
}
static inline void oracle_point(struct oracle *o, uint8_t kind, uint32_t id, uint64_t time, uint32_t n,
                                const uint64_t *field)
{
    struct oracle_event *e = oracle_add(o, kind, id, time);
    if (o->fields + n > o->fields_room) {
        o->fields_room = o->fields_room * 2 + 1024;
        o->field = realloc(o->field, o->fields_room * sizeof *o->field);
    }
    e->field = (uint32_t)o->fields;
    e->fields = (uint8_t)n;
    for (uint32_t i = 0; i < n; i++) o->field[o->fields++] = field[i];
}
static inline void oracle_free(struct oracle *o)
{
    free(o->event);
    free(o->field);
    memset(o, 0, sizeof *o);
}

/* ---- presenting to both ---- */
static inline void both_enter(struct oracle *o, uint32_t region, uint64_t t)
{
    fdr_enter_at(region, t);
    oracle_enter(o, region, t);
}
static inline void both_leave(struct oracle *o, uint64_t t)
{
    fdr_leave_at(o->event[o->open[o->depth - 1]].id, t);
    oracle_leave(o, t);
}
static inline void both_message(struct oracle *o, bool send, uint32_t peer, int32_t tag, uint32_t comm, uint64_t bytes,
                                uint64_t t)
{
    uint64_t field[4] = {peer, (uint64_t)(int64_t)tag, comm, bytes};
    if (send) fdr_message_send_at(peer, tag, comm, bytes, t);
    else fdr_message_recv_at(peer, tag, comm, bytes, t);
    oracle_point(o, send ? FDR_SEND : FDR_RECV, send ? 1 : 2, t, 4, field);
}
static inline void both_coll_begin(struct oracle *o, uint32_t operation, uint64_t t)
{
    fdr_collective_begin_at(operation, t);
    oracle_point(o, FDR_COLL_BEGIN, operation, t, 0, NULL);
}
static inline void both_coll_end(struct oracle *o, uint32_t operation, uint32_t comm, int32_t root, uint64_t sent,
                                 uint64_t received, uint64_t t)
{
    uint64_t field[4] = {comm, (uint64_t)(int64_t)root, sent, received};
    fdr_collective_end_at(operation, comm, root, sent, received, t);
    oracle_point(o, FDR_COLL_END, operation, t, 4, field);
}
static inline void both_marker(struct oracle *o, uint32_t marker, uint64_t value, uint64_t t)
{
    fdr_marker_at(marker, value, t);
    oracle_point(o, FDR_MARKER, marker, t, 1, &value);
}
static inline void both_metric(struct oracle *o, uint32_t metric, uint64_t value, uint64_t t)
{
    fdr_metric_u64_at(metric, value, t);
    oracle_point(o, FDR_METRIC, metric, t, 1, &value);
}

/* ---- what was asked of the recorder ---- */
struct oracle_rules {
    uint32_t shift;        /* times are shown in multiples of 1 << shift */
    uint64_t min_duration; /* shorter calls were not to be stored */
    uint32_t depth;        /* deeper calls were only to be counted; 0 = no limit */
    bool prefix;           /* the beginning is kept (`first`), not the newest */
    bool complete;         /* nothing may be missing */
    uint32_t held_depth;   /* found out: deeper calls found no stack: one row of the ledger, all lost, in no total */
    uint64_t buffer;       /* bytes */
};

/* ---- what the reader yields, small ---- */
struct oracle_shown {
    uint64_t time, duration;
    uint64_t field; /* first one in `field` below */
    uint32_t id, mate, depth;
    uint32_t is; /* which presented event */
    uint8_t kind, fields;
    bool repaired, reduced;
};
struct oracle_view {
    struct oracle_shown *shown;
    uint64_t *field;
    size_t count, room, fields, fields_room;
    size_t strays; /* point events whose calls are not shown */
};

static inline void oracle_view_free(struct oracle_view *v)
{
    free(v->shown);
    free(v->field);
    memset(v, 0, sizeof *v);
}

static inline void oracle_view_add(struct oracle_view *v, const struct fdr_read_event *e)
{
    if (v->count == v->room) {
        v->room = v->room ? v->room * 2 : 1 << 16;
        v->shown = realloc(v->shown, v->room * sizeof *v->shown);
    }
    if (v->fields + 16 > v->fields_room) {
        v->fields_room = v->fields_room * 2 + 1024;
        v->field = realloc(v->field, v->fields_room * sizeof *v->field);
    }
    v->shown[v->count++] = (struct oracle_shown){.time = e->time_ns,
                                                 .duration = e->duration_ns,
                                                 .field = v->fields,
                                                 .id = e->id,
                                                 .mate = ORACLE_NONE,
                                                 .depth = e->depth,
                                                 .is = ORACLE_NONE,
                                                 .kind = e->kind,
                                                 .fields = (uint8_t)e->field_count,
                                                 .repaired = e->repaired,
                                                 .reduced = e->reduced};
    for (uint32_t i = 0; i < e->field_count; i++) v->field[v->fields++] = e->field[i];
}

/* P9: properly nested, monotonic, every call that enters leaves, depths count up and down by one. Pairs the edges. */
static inline const char *oracle_nesting(struct oracle_view *v)
{
    uint32_t *stack = malloc(ORACLE_DEPTHS * sizeof *stack), depth = 0;
    uint64_t now = 0;
    const char *wrong = NULL;
    for (size_t i = 0; i < v->count && !wrong; i++) {
        struct oracle_shown *y = &v->shown[i];
        if (y->time < now)
            wrong = oracle_wrong("P9: event %zu at %llu is before %llu", i, (unsigned long long)y->time,
                                 (unsigned long long)now);
        now = y->time;
        if (y->kind == FDR_ENTER) {
            if (y->depth != depth + 1)
                wrong = oracle_wrong("P9: event %zu enters depth %u from depth %u", i, y->depth, depth);
            else if (depth == ORACLE_DEPTHS) wrong = oracle_wrong("P9: event %zu: too deep", i);
            else stack[depth++] = (uint32_t)i;
        } else if (y->kind == FDR_LEAVE) {
            if (!depth || y->depth != depth)
                wrong = oracle_wrong("P9: event %zu leaves depth %u at depth %u", i, y->depth, depth);
            else if (v->shown[stack[depth - 1]].id != y->id)
                wrong = oracle_wrong("P9: event %zu leaves region %u, open is %u", i, y->id,
                                     v->shown[stack[depth - 1]].id);
            else {
                y->mate = stack[--depth];
                v->shown[y->mate].mate = (uint32_t)i;
                if (!y->repaired && y->time - v->shown[y->mate].time != y->duration)
                    wrong = oracle_wrong("P9: event %zu: duration %llu is not leave - enter", i,
                                         (unsigned long long)y->duration);
            }
        } else if (y->depth < depth) { /* deeper than what is shown: the calls around it are not held any more */
            wrong = oracle_wrong("P9: event %zu (kind %u) says depth %u at depth %u", i, y->kind, y->depth, depth);
        } else {
            v->strays += y->depth > depth;
        }
    }
    if (!wrong && depth) wrong = oracle_wrong("P9: %u calls never leave", depth);
    free(stack);
    return wrong;
}

static inline const char *oracle_load(struct fdr_file *f, uint32_t location, struct oracle_view *v)
{
    struct fdr_select s = {.locations = &location, .location_count = 1};
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, &s);
    if (!it) return oracle_wrong("no iterator");
    while (fdr_iter_next(it, &e)) {
        if (e.location != location) {
            fdr_iter_close(it);
            return oracle_wrong("an event of location %u was not asked for", e.location);
        }
        oracle_view_add(v, &e);
    }
    fdr_iter_close(it);
    return oracle_nesting(v);
}

/* ---- P4: every event shown is one that was presented ---- */

static inline uint64_t oracle_q(const struct oracle_rules *r, uint64_t time) { return time >> r->shift << r->shift; }
/* an open call shown: its enter is real, its leave was added at the edge */
static inline bool oracle_is_open(const struct oracle_view *v, const struct oracle_shown *y)
{
    return y->kind == FDR_ENTER && v->shown[y->mate].repaired && !v->shown[y->mate].reduced;
}

static inline bool oracle_same(const struct oracle *o, const struct oracle_rules *r, const struct oracle_event *p,
                               const struct oracle_view *v, const struct oracle_shown *y)
{
    if (p->kind != y->kind || p->id != y->id || oracle_q(r, p->time) != y->time) return false;
    if (p->kind == FDR_ENTER) {
        if (oracle_is_open(v, y)) return r->prefix || p->mate == ORACLE_NONE;
        if (p->mate == ORACLE_NONE) return false;
        uint64_t leave = o->event[p->mate].time;
        return oracle_q(r, leave) - oracle_q(r, p->time) == y->duration && leave - p->time >= r->min_duration;
    }
    if (p->fields != y->fields) return false;
    for (uint32_t i = 0; i < p->fields; i++)
        if (o->field[p->field + i] != v->field[y->field + i]) return false;
    return true;
}

/* Which presented event is each shown one? Events of one class and depth are looked for in their order, from the
 * end that is kept: among twins that time cannot tell apart the ones nearer to it are the ones kept. */
static inline const char *oracle_match(struct oracle *o, const struct oracle_rules *r, struct oracle_view *v)
{
    uint32_t(*at)[ORACLE_DEPTHS] = malloc(9 * sizeof *at);
    memset(at, 0xff, 9 * sizeof *at);
    const char *wrong = NULL;
    for (size_t n = 0; n < o->count; n++) {
        size_t i = r->prefix ? o->count - 1 - n : n;
        struct oracle_event *p = &o->event[i];
        if (p->kind == FDR_LEAVE) continue;
        uint32_t *last = &at[oracle_class(p->kind)][p->depth];
        p->other = *last;
        *last = (uint32_t)i;
    }
    for (size_t n = 0; n < v->count && !wrong; n++) {
        size_t i = r->prefix ? n : v->count - 1 - n;
        struct oracle_shown *y = &v->shown[i];
        if (y->kind == FDR_LEAVE || (y->kind == FDR_ENTER && y->reduced)) continue;
        if (y->repaired) wrong = oracle_wrong("P4: event %zu (kind %u) is said to be repaired", i, y->kind);
        uint32_t *next = &at[oracle_class(y->kind)][y->depth];
        while (*next != ORACLE_NONE && !oracle_same(o, r, &o->event[*next], v, y)) *next = o->event[*next].other;
        if (*next == ORACLE_NONE) {
            wrong = oracle_wrong(
                "P4: event %zu (kind %u id %u depth %u time %llu duration %llu open %d) was never presented", i,
                y->kind, y->id, y->depth, (unsigned long long)y->time, (unsigned long long)y->duration,
                (int)oracle_is_open(v, y));
            break;
        }
        y->is = *next;
        if (y->kind == FDR_ENTER && !oracle_is_open(v, y)) v->shown[y->mate].is = o->event[*next].mate;
        *next = o->event[*next].other;
    }
    free(at);
    return wrong;
}

/* P4: in the presented order. P9: nobody stands under a parent that did not make the call. */
static inline const char *oracle_order(const struct oracle *o, const struct oracle_view *v)
{
    uint32_t *stack = malloc(ORACLE_DEPTHS * sizeof *stack), depth = 0, last = 0;
    const char *wrong = NULL;
    bool any = false;
    for (size_t i = 0; i < v->count && !wrong; i++) {
        const struct oracle_shown *y = &v->shown[i];
        if (y->is != ORACLE_NONE) {
            if (any && y->is <= last)
                wrong = oracle_wrong("P4: event %zu was presented as number %u, the one before it as %u", i, y->is,
                                     last);
            last = y->is;
            any = true;
        }
        if (y->kind == FDR_LEAVE) {
            depth--;
            continue;
        }
        uint32_t k = depth; /* the nearest one that is held */
        while (k && stack[k - 1] == ORACLE_NONE) k--;
        if (k && y->is != ORACLE_NONE) {
            uint32_t a = o->event[y->is].parent;
            while (a != ORACLE_NONE && o->event[a].depth > k) a = o->event[a].parent;
            if (a != stack[k - 1])
                wrong = oracle_wrong("P9: event %zu (depth %u) stands under number %u, presented under %u", i, y->depth,
                                     stack[k - 1], a);
        }
        if (y->kind == FDR_ENTER) stack[depth++] = y->is;
    }
    free(stack);
    return wrong;
}

/* ---- P3 ---- */

struct oracle_cell {
    uint64_t presented, filtered, shown;
};

/* A stack that found no more room: the ledger's deepest row stands for all calls from its depth on. */
static inline uint32_t oracle_held_depth(const struct oracle *o, struct fdr_file *f, uint32_t location)
{
    const struct fdr_ledger_row *rows;
    uint32_t deepest = 0, held = 0;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < o->count; i++)
        if (o->event[i].kind == FDR_ENTER && o->event[i].depth > deepest) deepest = o->event[i].depth;
    for (size_t i = 0; i < n; i++)
        if (rows[i].location == location && rows[i].class_ == FDR_IN_REGION)
            held = rows[i].presented == rows[i].lost ? rows[i].depth - 1 : ORACLE_NONE;
    return held >= deepest || held % 16 ? 0 : held;
}

static inline const char *oracle_ledger(const struct oracle *o, const struct oracle_rules *r,
                                        const struct oracle_view *v, struct fdr_file *f, uint32_t location)
{
    struct oracle_cell(*cell)[ORACLE_DEPTHS] = calloc(9, sizeof *cell);
    const struct fdr_ledger_row *rows;
    const char *wrong = NULL;
    uint64_t checked = 0, all = 0;
    for (size_t i = 0; i < o->count; i++) {
        const struct oracle_event *p = &o->event[i];
        if (p->kind == FDR_LEAVE) continue;
        bool below = r->held_depth && p->kind == FDR_ENTER && p->depth > r->held_depth;
        struct oracle_cell *c = &cell[oracle_class(p->kind)][below ? r->held_depth + 1 : p->depth];
        c->presented++;
        all++;
        bool deep = r->depth && p->depth > r->depth && p->kind == FDR_ENTER;
        bool brief = p->kind == FDR_ENTER && !deep && p->mate != ORACLE_NONE &&
                     o->event[p->mate].time - p->time < r->min_duration;
        c->filtered += !below && (deep || brief);
    }
    for (size_t i = 0; i < v->count; i++)
        if (v->shown[i].kind != FDR_LEAVE && !v->shown[i].reduced)
            cell[oracle_class(v->shown[i].kind)][v->shown[i].depth].shown++;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n && !wrong; i++) {
        const struct fdr_ledger_row *w = &rows[i];
        if (w->location != location) continue;
        const struct oracle_cell *c = &cell[w->class_][w->depth];
        char what[200];
        snprintf(
            what, sizeof what,
            "%s depth %u: presented %llu kept %llu filtered %llu reduced %llu lost %llu; the oracle: %llu %llu %llu",
            fdr_class_name(w->class_), w->depth, (unsigned long long)w->presented, (unsigned long long)w->kept,
            (unsigned long long)w->filtered, (unsigned long long)w->reduced, (unsigned long long)w->lost,
            (unsigned long long)c->presented, (unsigned long long)c->shown, (unsigned long long)c->filtered);
        if (w->presented != c->presented) wrong = oracle_wrong("P3 presented: %s", what);
        else if (w->presented != w->kept + w->filtered + w->reduced + w->lost)
            wrong = oracle_wrong("P3 balance: %s", what);
        else if (w->kept != c->shown) wrong = oracle_wrong("P3 kept is not what is shown: %s", what);
        else if (w->filtered != c->filtered && !r->prefix) wrong = oracle_wrong("P3 filtered: %s", what);
        else if (r->complete && (w->reduced || w->lost)) wrong = oracle_wrong("complete: %s", what);
        checked += w->presented;
    }
    if (!wrong && checked != all)
        wrong = oracle_wrong("P3: the ledger knows of %llu, %llu were presented", (unsigned long long)checked,
                             (unsigned long long)all);
    free(cell);
    return wrong;
}

/* ---- P5 ---- */

struct oracle_total {
    uint64_t calls, untimed, inclusive, exclusive, min, max, histogram[64];
};

static inline void oracle_count(struct oracle_total *t, uint64_t inclusive, uint64_t exclusive)
{
    if (!t->calls || inclusive < t->min) t->min = inclusive;
    if (inclusive > t->max) t->max = inclusive;
    t->calls++;
    t->inclusive += inclusive;
    t->exclusive += exclusive;
    int bit = 0;
    for (uint64_t d = inclusive; d > 1; d >>= 1) bit++;
    t->histogram[bit]++;
}

enum { ORACLE_IDS = 4096 };
/* rows[class][id] of everything presented */
static inline struct oracle_total *oracle_totals(const struct oracle *o, const struct oracle_rules *r)
{
    struct oracle_total *rows = calloc((size_t)9 * ORACLE_IDS, sizeof *rows);
    uint64_t *children = calloc(ORACLE_DEPTHS + 1, sizeof *children);
    for (size_t i = 0; i < o->count; i++) {
        const struct oracle_event *p = &o->event[i];
        struct oracle_total *t = &rows[(size_t)oracle_class(p->kind) * ORACLE_IDS + p->id % ORACLE_IDS];
        bool below = r->held_depth && p->depth > r->held_depth; /* counted, no more */
        if (below && p->kind == FDR_ENTER) t->untimed++;
        if (below && (p->kind == FDR_ENTER || p->kind == FDR_LEAVE)) continue;
        if (p->kind == FDR_ENTER) {
            children[p->depth] = 0;
            t->untimed += r->depth && p->depth > r->depth;
        } else if (p->kind == FDR_LEAVE) {
            if (r->depth && p->depth > r->depth) continue;
            uint64_t duration = p->time - o->event[p->mate].time;
            oracle_count(t, duration, duration - children[p->depth]);
            children[p->depth - 1] += duration;
        } else if (p->kind == FDR_SEND || p->kind == FDR_RECV) {
            oracle_count(t, o->field[p->field + 3], 0);
        } else if (p->kind == FDR_COLL_END) {
            oracle_count(t, o->field[p->field + 2] + o->field[p->field + 3], 0);
        } else if (p->kind != FDR_COLL_BEGIN) {
            oracle_count(t, p->fields && p->kind != FDR_EVENT ? o->field[p->field] : 0, 0);
        }
    }
    free(children);
    return rows;
}

static inline const char *oracle_compare_total(const struct fdr_total *w, const struct oracle_total *t)
{
    bool region = w->class_ == FDR_IN_REGION;
    uint64_t sum = region ? w->inclusive_ns : w->sum_u, min = region ? w->min_ns : w->min_u,
             max = region ? w->max_ns : w->max_u;
    bool good = w->calls == t->calls && w->untimed == t->untimed && sum == t->inclusive && min == t->min &&
                max == t->max;
    if (region && w->exclusive_ns != t->exclusive) good = false;
    if (good && w->has_histogram && memcmp(w->histogram, t->histogram, sizeof t->histogram)) good = false;
    if (good) return NULL;
    return oracle_wrong("P5: %s %u: calls %llu untimed %llu sum %llu exclusive %llu min %llu max %llu; presented %llu "
                        "%llu %llu %llu %llu %llu",
                        fdr_class_name(w->class_), w->id, (unsigned long long)w->calls, (unsigned long long)w->untimed,
                        (unsigned long long)sum, (unsigned long long)w->exclusive_ns, (unsigned long long)min,
                        (unsigned long long)max, (unsigned long long)t->calls, (unsigned long long)t->untimed,
                        (unsigned long long)t->inclusive, (unsigned long long)t->exclusive, (unsigned long long)t->min,
                        (unsigned long long)t->max);
}

/* What is shown is exact; the rest row is the sum of what is not shown. */
static inline const char *oracle_check_totals(const struct oracle *o, const struct oracle_rules *r, struct fdr_file *f,
                                              uint32_t location, bool whole)
{
    struct oracle_total *t = oracle_totals(o, r), missing = {0};
    const struct fdr_total *rows, *rest = NULL;
    const char *wrong = NULL;
    size_t n = fdr_totals(f, &rows);
    uint64_t folded = 0, without = 0;
    for (size_t i = 0; i < n && !wrong; i++) {
        if (rows[i].location != location) continue;
        if (rows[i].rest) {
            rest = &rows[i];
            continue;
        }
        if (rows[i].class_ >= 9 || rows[i].id >= ORACLE_IDS) {
            wrong = oracle_wrong("P5: class %u id %u", rows[i].class_, rows[i].id);
            break;
        }
        struct oracle_total *mine = &t[(size_t)rows[i].class_ * ORACLE_IDS + rows[i].id];
        wrong = oracle_compare_total(&rows[i], mine);
        without += !rows[i].has_histogram && rows[i].calls;
        memset(mine, 0, sizeof *mine);
    }
    for (size_t i = 0; i < (size_t)9 * ORACLE_IDS; i++) {
        folded += t[i].calls + t[i].untimed;
        missing.calls += t[i].calls;
        missing.untimed += t[i].untimed;
        missing.inclusive += t[i].inclusive;
        missing.exclusive += t[i].exclusive;
    }
    if (!wrong && whole && folded) wrong = oracle_wrong("P5: %llu calls have no row", (unsigned long long)folded);
    if (!wrong && whole && without)
        wrong = oracle_wrong("P5: %llu rows have no histogram", (unsigned long long)without);
    if (!wrong && folded && !rest)
        wrong = oracle_wrong("P5: %llu calls have no row and there is no rest", (unsigned long long)folded);
    if (!wrong && rest &&
        (rest->calls != missing.calls || rest->untimed != missing.untimed ||
         (rest->inclusive_ns != missing.inclusive && !missing.min)))
        wrong = oracle_wrong("P5: rest has %llu calls %llu untimed %llu ns, missing are %llu %llu %llu",
                             (unsigned long long)rest->calls, (unsigned long long)rest->untimed,
                             (unsigned long long)rest->inclusive_ns, (unsigned long long)missing.calls,
                             (unsigned long long)missing.untimed, (unsigned long long)missing.inclusive);
    free(t);
    return wrong;
}

#include "tests/oracle_epochs.h"

/* ---- all of it ---- */

static inline const char *oracle_check(struct oracle *o, struct oracle_rules *r, struct fdr_file *f, uint32_t location)
{
    struct oracle_view v = {0};
    const char *wrong = oracle_load(f, location, &v);
    r->held_depth = oracle_held_depth(o, f, location);
    if (!wrong && r->complete && (v.strays || r->held_depth))
        wrong = oracle_wrong("complete: %zu points without their calls, stack of %u", v.strays, r->held_depth);
    if (!wrong) wrong = oracle_match(o, r, &v);
    if (!wrong) wrong = oracle_order(o, &v);
    if (!wrong) wrong = oracle_ledger(o, r, &v, f, location);
    if (!wrong) wrong = oracle_check_totals(o, r, f, location, r->complete);
    if (!wrong) wrong = oracle_check_epochs(o, r, &v, f, location);
    oracle_view_free(&v);
    return wrong;
}

/* Every location of the file nests properly and its accounts lie within its bounds. For live snapshots. */
static inline const char *oracle_check_within(struct fdr_file *f, uint64_t *events, uint64_t slack)
{
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        uint32_t id = fdr_location_info(f, i)->id;
        struct oracle_view v = {0};
        const char *wrong = oracle_load(f, id, &v);
        *events += v.count;
        oracle_view_free(&v);
        if (wrong) return wrong;
        uint64_t before, after, sum = 0;
        const struct fdr_ledger_row *rows;
        size_t n = fdr_ledger(f, &rows);
        for (size_t k = 0; k < n; k++)
            if (rows[k].location == id) sum += rows[k].kept + rows[k].filtered + rows[k].reduced + rows[k].lost;
        fdr_ledger_bounds(f, id, &before, &after);
        if (sum + slack < before || sum > after + slack)
            return oracle_wrong("P3: location %u: before %llu <= sum %llu <= after %llu does not hold", id,
                                (unsigned long long)before, (unsigned long long)sum, (unsigned long long)after);
    }
    return NULL;
}

static inline const char *oracle_check_any(struct fdr_file *f, uint64_t *events)
{
    return oracle_check_within(f, events, 0);
}

/* ---- a recording for a test: only what is said here counts ---- */

static inline struct fdr_config oracle_config(const char *dir)
{
    return (struct fdr_config){.size = sizeof(struct fdr_config),
                               .ignore_environment = 1,
                               .name = "test",
                               .arena = "anonymous",
                               .timer = "monotonic",
                               .signal = "none",
                               .dir = dir,
                               .buffer = "4M",
                               .keep = "1000000",
                               .disk = "1000G"};
}

static inline const char *oracle_directory(void)
{
    static char path[200];
    if (!*path) {
        const char *t = getenv("TMPDIR");
        snprintf(path, sizeof path, "%s/fdr-test-XXXXXX", t && *t ? t : "/tmp");
        if (!mkdtemp(path)) abort();
    }
    return path;
}

/* Takes a snapshot, opens it, removes it. NULL and *wrong if that is not possible or it is not whole. */
static inline struct fdr_file *oracle_snapshot(uint64_t buffer, const char **wrong)
{
    char message[300] = "";
    struct fdr_file *f = NULL;
    struct stat st;
    int e = fdr_snapshot("test");
    *wrong = NULL;
    if (e) {
        *wrong = oracle_wrong("fdr_snapshot: %s", strerror(-e));
        return NULL;
    }
    char path[1024];
    snprintf(path, sizeof path, "%s", fdr_last_snapshot());
    if (stat(path, &st)) *wrong = oracle_wrong("%s: not there", path);
    else if (buffer && (uint64_t)st.st_size > buffer + 65536)
        *wrong = oracle_wrong("P1: %lld bytes from a buffer of %llu", (long long)st.st_size,
                              (unsigned long long)buffer);
    else if ((st.st_mode & 0777) != 0600) *wrong = oracle_wrong("%s: mode %o", path, (unsigned)st.st_mode & 0777);
    enum fdr_verdict verdict = fdr_file_open(path, &f, message, sizeof message);
    if (!*wrong && (verdict != FDR_WHOLE || fdr_file_verify(f) != FDR_WHOLE))
        *wrong = oracle_wrong("not whole: %s%s%s", message, f && fdr_file_damage_count(f) ? "; " : "",
                              f && fdr_file_damage_count(f) ? fdr_file_damage(f, 0) : "");
    unlink(path);
    if (*wrong && f) fdr_file_close(f), f = NULL;
    return f;
}
#endif
