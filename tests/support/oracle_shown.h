/* SPDX-License-Identifier: MIT */
/* The oracle's compact copy of the reader's events of one location, and its check that they nest (P9). */
#ifndef FDRI_TESTS_ORACLE_SHOWN_H
#define FDRI_TESTS_ORACLE_SHOWN_H

#include "tests/support/oracle_presented.h"

struct oracle_shown {
    uint64_t time, duration;
    uint64_t field; /* index of the first one in `field` below */
    uint32_t id, mate, depth;
    uint32_t is; /* index of the matching presented event */
    uint8_t kind, fields;
    bool repaired, reduced;
};
struct oracle_view {
    struct oracle_shown *shown;
    uint64_t *field;
    size_t count, room, fields, fields_room;
    size_t strays; /* points whose calls are not shown */
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

/* P9: events nest properly and times never fall. Every call that enters also leaves, and depths change by one. Pairs
 * the two edges of each call. */
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
        } else if (y->depth < depth) { /* a point may be deeper than the shown calls, never shallower */
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

#endif
