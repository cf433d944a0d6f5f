/* SPDX-License-Identifier: MIT */
/* Finds the pairs: both ends of a message have the same envelope and ordinal. An end without a partner gets the reason,
 * which the counters of the other rank tell. */
#include "tools/messages.h"

#include <stdlib.h>

#define UNSURE ((uint64_t)1 << 63)

static int order(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

int compare_envelopes(uint32_t from, uint32_t to, int32_t tag, uint64_t comm, const struct message_end *e)
{
    if (from != e->from) return order(from, e->from);
    if (to != e->to) return order(to, e->to);
    if (tag != e->tag) return tag < e->tag ? -1 : 1;
    return order(comm, e->comm);
}

/* Ends with ordinals first; then by envelope, ordinal, sends first. */
static int by_place(const void *x, const void *y)
{
    const struct message_end *a = x, *b = y;
    if ((a->state == ALONE) != (b->state == ALONE)) return a->state == ALONE ? -1 : 1;
    int o = compare_envelopes(a->from, a->to, a->tag, a->comm, b);
    if (!o) o = order(a->ordinal, b->ordinal);
    if (!o) o = (int)b->is_send - (int)a->is_send;
    return o ? o : order(a->time_ns, b->time_ns);
}

static int by_counted(const void *x, const void *y)
{
    const struct counted *a = x, *b = y;
    const struct message_end e = {.from = b->from, .to = b->to, .tag = b->tag, .comm = b->comm};
    int o = compare_envelopes(a->from, a->to, a->tag, a->comm, &e);
    return o ? o : (int)b->is_send - (int)a->is_send;
}

const struct counted *count_of(const struct job *job, const struct message_end *envelope, bool is_send)
{
    const struct counted key = {
        .from = envelope->from, .to = envelope->to, .tag = envelope->tag, .comm = envelope->comm, .is_send = is_send};
    return job->counts ? bsearch(&key, job->counted, job->counts, sizeof key, by_counted) : NULL;
}

/* A cancelled send took a number that no receive has; from another one on nothing may be sure. */
static void correct(const struct job *job, struct message_end *e)
{
    const struct counted *c = e->state == ALONE ? count_of(job, e, e->is_send) : NULL;
    if (!c || !c->hole) return;
    uint64_t hole = (c->hole & ~UNSURE) - 1;
    if (e->ordinal < hole) return;
    if (c->hole & UNSURE || e->ordinal == hole) e->state = UNMATCHABLE;
    else e->ordinal--;
}

static bool same_message(const struct message_end *a, const struct message_end *b)
{
    return b->state == ALONE && a->ordinal == b->ordinal && !compare_envelopes(a->from, a->to, a->tag, a->comm, b);
}

/* Both ends of the message whose ends are [first, end). */
static void match(struct message_end *all, size_t first, size_t end)
{
    size_t sends = 0;
    bool shared = false;
    for (size_t i = first; i < end; i++) sends += all[i].is_send, shared |= all[i].shared;
    if (end - first == 2 && sends == 1 && !shared) {
        all[first].state = all[first + 1].state = MATCHED;
        all[first].partner = first + 1;
        all[first + 1].partner = first;
    } else if (shared || end - first > 1) { /* several files of one rank, for example */
        for (size_t i = first; i < end; i++) all[i].state = AMBIGUOUS;
    }
}

/* Why is there no other end? */
static enum end_state reason(const struct job *job, const struct message_end *e)
{
    uint32_t file;
    if (!has_rank(job, e->is_send ? e->to : e->from, &file)) return EDGE;
    const struct counted *other = count_of(job, e, !e->is_send);
    if (!other && fdr_tally_room(job->file[file].file).refused) return UNMATCHABLE; /* no room to count it there */
    if (!job->file[file].counts) return job->file[file].left_out ? GIVEN_BACK : EDGE;
    if (other && other->hole & UNSURE && e->ordinal >= (other->hole & ~UNSURE) - 1) return UNMATCHABLE;
    return other && other->count > e->ordinal ? GIVEN_BACK : EDGE;
}

void messages_match(struct job *job)
{
    struct message_end *all = job->end;
    if (job->counts) qsort(job->counted, job->counts, sizeof *job->counted, by_counted);
    for (size_t i = 0; i < job->ends; i++) correct(job, &all[i]);
    if (job->ends) qsort(all, job->ends, sizeof *all, by_place);
    for (size_t i = 0, end; i < job->ends && all[i].state == ALONE; i = end) {
        for (end = i + 1; end < job->ends && same_message(&all[i], &all[end]); end++) continue;
        match(all, i, end);
    }
    for (size_t i = 0; i < job->ends; i++) {
        if (all[i].state == ALONE) all[i].state = (uint8_t)reason(job, &all[i]);
        job->state[all[i].state] += all[i].state != MATCHED || all[i].is_send;
    }
}
