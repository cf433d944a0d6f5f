/* SPDX-License-Identifier: MIT */
/* The oracle's list of all events that were presented to the recorder, in order, and the settings of the recording. */
#ifndef FDRI_TESTS_ORACLE_PRESENTED_H
#define FDRI_TESTS_ORACLE_PRESENTED_H

#include "recorder/thread/thread_state.h"

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORACLE_DEPTHS = 4096, ORACLE_NONE = 0xffffffffu };

/* ---- presented events, in order ---- */
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
    bool refused; /* calls: the recorder found no memory for a level; only counted, as lost */
};
struct oracle {
    struct oracle_event *event;
    uint64_t *field;
    size_t count, room, fields, fields_room;
    uint32_t open[ORACLE_DEPTHS]; /* index of the enter at depth d + 1 */
    uint32_t depth;
    uint32_t refused; /* open calls without a level */
    uint64_t last;    /* time of the newest event */
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
                               .depth = (uint16_t)(o->depth - o->refused), /* calls without a level do not count */
                               .kind = kind,
                               .parent = o->depth ? o->open[o->depth - 1] : ORACLE_NONE};
    return e;
}
static inline void oracle_enter(struct oracle *o, uint32_t region, uint64_t time)
{
    struct oracle_event *e = oracle_add(o, FDR_ENTER, region, time);
    e->depth = (uint16_t)(o->depth + 1);
    e->refused = fdri_record_self.loc && fdri_record_self.loc->overflow;
    o->refused += e->refused;
    o->open[o->depth++] = (uint32_t)(o->count - 1);
}
static inline void oracle_leave(struct oracle *o, uint64_t time)
{
    uint32_t enter = o->open[o->depth - 1];
    struct oracle_event *e = oracle_add(o, FDR_LEAVE, o->event[enter].id, time);
    e->mate = enter;
    e->parent = o->event[enter].parent;
    e->depth = o->event[enter].depth;
    e->refused = o->event[enter].refused;
    o->refused -= e->refused;
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

/* ---- presenting to the recorder and the oracle ---- */
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

/* ---- settings of the recording ---- */
struct oracle_rules {
    uint32_t shift;        /* times are shown in multiples of 1 << shift */
    uint64_t min_duration; /* shorter calls are not stored */
    uint32_t depth;        /* deeper calls are only counted; 0 = no limit */
    bool prefix;           /* the beginning is kept (`first`) instead of the newest events */
    bool complete;         /* nothing may be missing */
    uint32_t newest;       /* a result: with `prefix`, the newest shown event */
    uint64_t buffer;       /* bytes */
};

#endif
