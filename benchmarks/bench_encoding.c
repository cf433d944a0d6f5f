/* SPDX-License-Identifier: MIT */
/* bench_encoding STREAM...: bytes per event of a stream after each encoding step, each on top of the ones before. The
 * steps are those of Wagner's dissertation (2015, section 3.3) and of fdr. All are plain models, written from the
 * descriptions, without headers of bins. `fdr replay` measures the bytes that fdr really stores.
 *   fixed        one-byte token, 8-byte time, 4-byte region: 13 bytes an event
 *   split        time is a record of its own (token + 8), written only when it changes
 *   zeros        a length byte in front of every number, its leading zero bytes left out
 *   delta        times as the difference from the one before
 *   lengths      the length of a record's first number in its token
 *   ids          regions below 150 in the token of the enter; the leave's region left out
 *   calls        one record a call at its leave, per calling depth: token with the region, one byte for both lengths,
 *                gap since the last leave of that depth, duration
 *   region       the region predicted from the two before it: 64 slots of two candidates, empty at the start of every
 *                4 KiB; no byte if the first candidate is right
 *   bits         the same to the bit: flags for the candidate, two lengths of 6 bits, the bits below each leading one
 * Lines:  steps <tab> PATH <tab> step <tab> bytes per event
 *         filter <tab> PATH <tab> events <tab> kept <tab> open <tab> bookkeeping
 * `kept`: events that a minimum duration of 1 us leaves. They are calls of 1000 ns and more (two events each) and all
 * other events. `open`: calls open at the end of the stream. `bookkeeping`: of requests, no events for fdr. */
#include <stdlib.h>

#include "stream.h"

enum step { FIXED, SPLIT, ZEROS, DELTA, LENGTHS, IDS, CALLS, REGION, BITS, STEPS };
static const char *const step_name[STEPS] = {"fixed", "split", "zeros",  "delta", "lengths",
                                             "ids",   "calls", "region", "bits"};
enum { SMALL_IDS = 150, SLOTS = 64, BIN_BITS = 4096 * 8, MAX_DEPTH = 4096, MIN_DURATION_NS = 1000 };

struct predictor {
    uint64_t used; /* bits in this bin */
    uint32_t before, before2;
    uint32_t slot[SLOTS][2]; /* region + 1; [0] the newer */
};
struct partition {
    uint64_t last, last_point;
    struct predictor bytes, bits;
};
struct model {
    uint64_t total[STEPS]; /* bits for BITS, else bytes */
    uint64_t events, kept, open, bookkeeping;
    uint64_t time; /* newest time record */
    bool timed;
    uint32_t depth;
    uint32_t region[MAX_DEPTH];
    uint64_t enter[MAX_DEPTH];
    struct partition *partition[MAX_DEPTH]; /* by depth, made when needed */
};

static unsigned bits_of(uint64_t v) { return v ? 64u - (unsigned)__builtin_clzll(v) : 0; }
static unsigned bytes_of(uint64_t v) { return (bits_of(v) + 7) / 8; }
static unsigned below_one(uint64_t v) { return v ? bits_of(v) - 1 : 0; }

/* ---- steps of single events ------------------------------------------------------------------------------------- */

static void add_time(struct model *m, uint64_t time)
{
    m->total[FIXED] += 8;
    if (m->timed && time == m->time) return;
    uint64_t delta = m->timed ? time - m->time : time;
    m->total[SPLIT] += 1 + 8;
    m->total[ZEROS] += 1 + 1 + bytes_of(time);
    m->total[DELTA] += 1 + 1 + bytes_of(delta);
    m->total[LENGTHS] += 1 + bytes_of(delta);
    m->total[IDS] += 1 + bytes_of(delta);
    m->time = time;
    m->timed = true;
}

static void add_edge(struct model *m, uint32_t region, bool enter)
{
    m->total[FIXED] += 1 + 4;
    m->total[SPLIT] += 1 + 4;
    m->total[ZEROS] += 1 + 1 + bytes_of(region);
    m->total[DELTA] += 1 + 1 + bytes_of(region);
    m->total[LENGTHS] += 1 + bytes_of(region);
    m->total[IDS] += 1 + (enter && region >= SMALL_IDS ? bytes_of(region) : 0);
}

/* ---- steps of whole calls --------------------------------------------------------------------------------------- */

static struct partition *partition_of(struct model *m, uint32_t depth, uint64_t time)
{
    if (depth >= MAX_DEPTH) depth = MAX_DEPTH - 1;
    struct partition **p = &m->partition[depth];
    if (!*p) {
        *p = calloc(1, sizeof **p);
        if (!*p) exit(1);
        (*p)->last = (*p)->last_point = time;
    }
    return *p;
}

/* 0: first candidate, 1: second, 2: neither. */
static int predict(struct predictor *p, uint32_t region)
{
    uint32_t *slot = p->slot[(p->before * 2654435761u ^ p->before2 * 2246822519u) >> 20 & (SLOTS - 1)];
    uint32_t id = region + 1;
    int found = slot[0] == id ? 0 : slot[1] == id ? 1 : 2;
    if (found) {
        slot[1] = slot[0];
        slot[0] = id;
    }
    p->before2 = p->before;
    p->before = id;
    return found;
}

static void add_bits(struct predictor *p, uint64_t bits)
{
    p->used += bits;
    if (p->used > BIN_BITS) *p = (struct predictor){0};
}

static void add_call(struct model *m, uint32_t region, uint64_t enter, uint64_t leave, uint32_t depth)
{
    struct partition *p = partition_of(m, depth, enter);
    uint64_t gap = enter > p->last ? enter - p->last : 0, duration = leave - enter;
    unsigned numbers = bytes_of(gap) + bytes_of(duration), id = 1 + (region >= SMALL_IDS ? bytes_of(region) : 0);
    p->last = leave;
    m->total[CALLS] += 1 + id + numbers;
    unsigned size = 1 + (predict(&p->bytes, region) == 0 ? 0 : id) + numbers;
    m->total[REGION] += size;
    add_bits(&p->bytes, 8 * size);
    int found = predict(&p->bits, region);
    unsigned bits = found == 0 ? 1 : found == 1 ? 2 : 2 + 5 + below_one(region);
    bits += 6 + 6 + below_one(gap) + below_one(duration);
    m->total[BITS] += bits;
    add_bits(&p->bits, bits);
}

/* ---- events without duration ------------------------------------------------------------------------------------ */

static void add_point(struct model *m, const struct stream_event *e)
{
    const struct stream_param *q = e->param;
    uint64_t number[5] = {(uint32_t)q->peer, (uint32_t)q->tag, q->comm, q->bytes, 0};
    unsigned count = 4, fixed = 4 + 4 + 4 + 8, short_ = 0;
    if (e->kind == STREAM_COLL_END) number[count++] = q->bytes2, fixed += 8;
    if (e->kind == STREAM_COLL_BEGIN) number[0] = e->value, count = 1, fixed = 4;
    for (unsigned i = 0; i < count; i++) short_ += 1 + bytes_of(number[i]);
    m->total[FIXED] += 1 + fixed;
    m->total[SPLIT] += 1 + fixed;
    for (int s = ZEROS; s <= IDS; s++) m->total[s] += 1 + short_;
    struct partition *p = partition_of(m, m->depth, e->time);
    unsigned size = 1 + 1 + bytes_of(e->time - p->last_point) + short_;
    p->last_point = e->time;
    m->total[CALLS] += size;
    m->total[REGION] += size;
    m->total[BITS] += 8 * size;
    m->kept++;
}

/* ---- one stream ------------------------------------------------------------------------------------------------- */

static void add_leave(struct model *m, uint32_t region, uint64_t time)
{
    add_edge(m, region, false);
    if (m->depth == 0 || m->depth > MAX_DEPTH) return;
    uint32_t depth = --m->depth;
    uint64_t enter = m->enter[depth];
    add_call(m, m->region[depth], enter, time, depth);
    if (time - enter >= MIN_DURATION_NS) m->kept += 2;
}

static void add_enter(struct model *m, uint32_t region, uint64_t time)
{
    add_edge(m, region, true);
    if (m->depth >= MAX_DEPTH) {
        fprintf(stderr, "bench_encoding: deeper than %d\n", MAX_DEPTH);
        exit(1);
    }
    m->region[m->depth] = region;
    m->enter[m->depth++] = time;
}

static void add_all(struct model *m, const struct stream *s)
{
    uint64_t time = s->head->t0_ns;
    struct stream_event e;
    for (uint64_t i = 0; i < s->head->records; i++) {
        if (!stream_event(s, i, &time, &e)) {
            m->bookkeeping += e.kind != STREAM_TICK;
            continue;
        }
        m->events++;
        add_time(m, e.time);
        if (e.kind == STREAM_ENTER) add_enter(m, e.value, e.time);
        else if (e.kind == STREAM_LEAVE) add_leave(m, e.value, e.time);
        else add_point(m, &e);
    }
    m->open = m->depth;
}

static void print(const struct model *m, const char *path)
{
    for (int s = 0; s < STEPS; s++) {
        /* from the step on that makes one record of a call, open calls have none */
        uint64_t events = s < CALLS ? m->events : m->events - m->open;
        printf("steps\t%s\t%s\t%.4f\n", path, step_name[s],
               (double)m->total[s] / (s == BITS ? 8 : 1) / (double)(events ? events : 1));
    }
    printf("filter\t%s\t%llu\t%llu\t%llu\t%llu\n", path, (unsigned long long)m->events, (unsigned long long)m->kept,
           (unsigned long long)m->open, (unsigned long long)m->bookkeeping);
}

int main(int argc, char **argv)
{
    int status = argc < 2 ? 64 : 0;
    for (int i = 1; i < argc; i++) {
        struct stream s;
        struct model *m = calloc(1, sizeof *m);
        if (!m || !stream_open(&s, argv[i])) {
            free(m);
            status = 1;
            continue;
        }
        add_all(m, &s);
        print(m, argv[i]);
        stream_close(&s);
        for (int d = 0; d < MAX_DEPTH; d++) free(m->partition[d]);
        free(m);
    }
    if (status == 64) fprintf(stderr, "usage: bench_encoding STREAM.evt...\n");
    return status;
}
