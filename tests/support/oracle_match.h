/* SPDX-License-Identifier: MIT */
/* The oracle's check of P4: every shown event is a presented one, in its place. */
#ifndef FDRI_TESTS_ORACLE_MATCH_H
#define FDRI_TESTS_ORACLE_MATCH_H

#include "tests/support/oracle_shown.h"

static inline uint64_t oracle_q(const struct oracle_rules *r, uint64_t time) { return time >> r->shift << r->shift; }
/* True for an open call: its enter is real, and the reader added the leave at the edge. */
static inline bool oracle_is_open(const struct oracle_view *v, const struct oracle_shown *y)
{
    return y->kind == FDR_ENTER && v->shown[y->mate].repaired && !v->shown[y->mate].reduced;
}

static inline bool oracle_same(const struct oracle *o, const struct oracle_rules *r, const struct oracle_event *p,
                               const struct oracle_view *v, const struct oracle_shown *y)
{
    if (p->refused || p->kind != y->kind || p->id != y->id || oracle_q(r, p->time) != y->time) return false;
    if (p->kind == FDR_ENTER) {
        if (oracle_is_open(v, y)) return p->mate == ORACLE_NONE || (r->prefix && p->mate > r->newest);
        if (p->mate == ORACLE_NONE) return false;
        uint64_t leave = o->event[p->mate].time;
        return oracle_q(r, leave) - oracle_q(r, p->time) == y->duration && leave - p->time >= r->min_duration;
    }
    if (p->fields != y->fields) return false;
    for (uint32_t i = 0; i < p->fields; i++)
        if (o->field[p->field + i] != v->field[y->field + i]) return false;
    return true;
}

typedef uint32_t oracle_heads[ORACLE_DEPTHS]; /* for each depth: the head of the list of events not yet matched */

/* Finds the presented event for number n of the view, among those of its class and depth that are not matched yet. */
static inline const char *oracle_match_one(struct oracle *o, const struct oracle_rules *r, struct oracle_view *v,
                                           size_t n, oracle_heads *at)
{
    struct oracle_shown *y = &v->shown[n];
    if (y->repaired) return oracle_wrong("P4: event %zu (kind %u) is said to be repaired", n, y->kind);
    uint32_t *next = &at[oracle_class(y->kind)][y->depth];
    while (*next != ORACLE_NONE && !oracle_same(o, r, &o->event[*next], v, y)) *next = o->event[*next].other;
    if (*next == ORACLE_NONE)
        return oracle_wrong(
            "P4: event %zu (kind %u id %u depth %u time %llu duration %llu open %d) was never presented", n, y->kind,
            y->id, y->depth, (unsigned long long)y->time, (unsigned long long)y->duration, (int)oracle_is_open(v, y));
    y->is = *next;
    if (y->kind == FDR_ENTER && !oracle_is_open(v, y)) v->shown[y->mate].is = o->event[*next].mate;
    *next = o->event[*next].other;
    return NULL;
}

static inline const char *oracle_match_closed(struct oracle *o, struct oracle_rules *r, struct oracle_view *v,
                                              oracle_heads *at)
{
    const char *wrong = NULL;
    for (size_t n = 0; n < v->count && !wrong; n++) {
        size_t i = r->prefix ? n : v->count - 1 - n;
        const struct oracle_shown *y = &v->shown[i];
        if (y->kind == FDR_LEAVE || (y->kind == FDR_ENTER && (y->reduced || (r->prefix && oracle_is_open(v, y)))))
            continue;
        wrong = oracle_match_one(o, r, v, i, at);
        if (!wrong && y->is > r->newest) r->newest = y->is;
    }
    return wrong;
}

/* Does presented event i lie between the matched neighbours, before and behind, of the call shown as number n? */
static inline bool oracle_between(const struct oracle_view *v, uint32_t n, uint32_t i)
{
    size_t before = n, behind = n;
    while (before > 0 && v->shown[before].is == ORACLE_NONE) before--;
    while (behind + 1 < v->count && v->shown[behind].is == ORACLE_NONE) behind++;
    bool late = v->shown[before].is != ORACLE_NONE && i <= v->shown[before].is;
    return !late && i < v->shown[behind].is; /* no neighbour behind: ORACLE_NONE exceeds every index */
}

/* Can the shown open calls be event i and the calls around it? `of[d]` is the shown open call of depth d. */
static inline bool oracle_are(const struct oracle *o, const struct oracle_rules *r, struct oracle_view *v,
                              const uint32_t *of, uint32_t i, bool set)
{
    for (; i != ORACLE_NONE; i = o->event[i].parent) {
        uint32_t y = of[o->event[i].depth];
        if (y == ORACLE_NONE) continue;
        if (set) v->shown[y].is = i;
        else if (!oracle_same(o, r, &o->event[i], v, &v->shown[y]) || !oracle_between(v, y, i)) return false;
    }
    return true;
}

static inline const char *oracle_match_open(const struct oracle *o, const struct oracle_rules *r, struct oracle_view *v)
{
    uint32_t *of = malloc(ORACLE_DEPTHS * sizeof *of), deepest = 0;
    memset(of, 0xff, ORACLE_DEPTHS * sizeof *of);
    for (size_t i = 0; i < v->count; i++) {
        const struct oracle_shown *y = &v->shown[i];
        if (y->kind != FDR_ENTER || y->reduced || !oracle_is_open(v, y)) continue;
        of[y->depth] = (uint32_t)i;
        if (y->depth > deepest) deepest = y->depth;
    }
    size_t i = o->count;
    bool found = !deepest;
    while (!found && i-- > 0)
        found = o->event[i].kind == FDR_ENTER && o->event[i].depth == deepest &&
                oracle_are(o, r, v, of, (uint32_t)i, false);
    if (found && deepest) oracle_are(o, r, v, of, (uint32_t)i, true);
    free(of);
    return found ? NULL : oracle_wrong("P4: %u open calls were never presented inside one another", deepest);
}

/* Finds the presented event for each shown one. Events of one class and depth are searched in order, from the end that
 * the strategy keeps. If twins have equal times, those nearer to that end are the kept ones. Open calls come last: with
 * strategy `first` they were open at the time of the newest shown event. */
static inline const char *oracle_match(struct oracle *o, struct oracle_rules *r, struct oracle_view *v)
{
    oracle_heads *at = malloc(9 * sizeof *at);
    memset(at, 0xff, 9 * sizeof *at);
    const char *wrong;
    r->newest = 0;
    for (size_t n = 0; n < o->count; n++) {
        size_t i = r->prefix ? o->count - 1 - n : n;
        struct oracle_event *p = &o->event[i];
        if (p->kind == FDR_LEAVE) continue;
        uint32_t *last = &at[oracle_class(p->kind)][p->depth];
        p->other = *last;
        *last = (uint32_t)i;
    }
    wrong = oracle_match_closed(o, r, v, at);
    if (!wrong && r->prefix) wrong = oracle_match_open(o, r, v);
    free(at);
    return wrong;
}

/* P4: shown events are in the presented order. P9: each call is shown below its true parent. */
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
        uint32_t k = depth; /* the nearest matched ancestor */
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

#endif
