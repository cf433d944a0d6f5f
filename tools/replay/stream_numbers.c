/* SPDX-License-Identifier: MIT */
/* Ordinals for the messages and collectives of an .evt stream, as a recorder would have counted them. Sends count in
 * order, receives in the order in which they were posted. A receive that is posted and never completes has an unknown
 * envelope, so later receives get no ordinals. Nor does a stream that begins in the middle of a run. */
#include <fdr/fdr.h>
#include <stdlib.h>

#include "tools/replay/stream_evt.h"

struct count {
    uint64_t key[2];
    uint64_t next;
    bool used;
};

struct numbering {
    const struct evt *e;
    struct stream *s;
    struct count *table;
    size_t mask;
    uint32_t *receive; /* by request: 1 + the record that completes it */
    size_t requests;
    bool lost; /* receives posted from here on have no known ordinal */
};

static uint64_t next_of(struct numbering *n, uint64_t direction, uint64_t peer, uint64_t tag, uint64_t comm)
{
    uint64_t key[2] = {direction << 32 | (uint32_t)peer, comm << 32 | (uint32_t)tag};
    size_t i = (size_t)((key[0] * 0x9E3779B97F4A7C15u ^ key[1]) * 0x9E3779B97F4A7C15u >> 20);
    for (;; i++) {
        struct count *c = &n->table[i & n->mask];
        if (!c->used) *c = (struct count){{key[0], key[1]}, 0, true};
        if (c->key[0] == key[0] && c->key[1] == key[1]) return c->next++;
    }
}

static void number_message(struct numbering *n, size_t record)
{
    if (n->s->op[record] != OP_SEND && n->s->op[record] != OP_RECV) return;
    uint64_t *f = n->s->field + n->s->value[record];
    f[4] = next_of(n, n->s->op[record], f[0], f[1], f[2]);
}

static void number_posted(struct numbering *n, uint32_t request)
{
    uint32_t record = request < n->requests ? n->receive[request] : 0;
    if (!record) n->lost = true;
    else if (!n->lost) number_message(n, record - 1);
}

/* An end says the communicator; the begin before it belongs to the same operation. */
static void number_collective(struct numbering *n, size_t record, size_t begin)
{
    uint64_t *f = n->s->field + n->s->value[record], *b = n->s->field + n->s->value[begin];
    if (n->s->op[record] != OP_COLL_END) return;
    f[5] = next_of(n, 0, 0, 0, f[1]);
    if (begin == record || b[0] != f[0]) return;
    b[1] = f[1];
    b[2] = f[5];
}

static void number_all(struct numbering *n)
{
    struct evt_param p;
    size_t begin = SIZE_MAX;
    for (size_t i = 0; i < n->s->count; i++) {
        uint32_t word = evt_word(n->e, i);
        switch (word >> 24) {
        case EVT_SEND:
        case EVT_ISEND: number_message(n, i); break;
        case EVT_RECV:
            if (!n->lost) number_message(n, i);
            break;
        case EVT_IRECV_REQ: number_posted(n, evt_param_of(n->e, word, &p) ? p.req : UINT32_MAX); break;
        case EVT_COLL_BEGIN: begin = i; break;
        case EVT_COLL_END:
            number_collective(n, i, begin == SIZE_MAX ? i : begin);
            begin = SIZE_MAX;
            break;
        default: break;
        }
    }
}

static bool find_receives(struct numbering *n)
{
    struct evt_param p;
    n->requests = n->s->count + 1; /* they count from 0 or 1, one at most for each record */
    n->receive = calloc(n->requests, sizeof *n->receive);
    for (size_t i = 0; n->receive && i < n->s->count; i++) {
        uint32_t word = evt_word(n->e, i);
        if (word >> 24 == EVT_IRECV && evt_param_of(n->e, word, &p) && p.req < n->requests)
            n->receive[p.req] = (uint32_t)i + 1;
    }
    return n->receive != NULL;
}

void number_stream(const struct evt *e, struct stream *s)
{
    struct numbering n = {.e = e, .s = s, .mask = 1023};
    if (e->h.window_first || e->h.n_prefix || e->h.thread) return;
    while (n.mask < 2 * e->params) n.mask = 2 * n.mask + 1;
    n.table = calloc(n.mask + 1, sizeof *n.table);
    if (n.table && find_receives(&n)) number_all(&n);
    free(n.table);
    free(n.receive);
}

void stream_forget_numbers(struct stream *s)
{
    for (size_t i = 0; i < s->count; i++) {
        uint64_t *f = s->field + s->value[i];
        if (s->op[i] == OP_SEND || s->op[i] == OP_RECV) f[4] = FDR_ORDINAL_UNKNOWN;
        if (s->op[i] == OP_COLL_END) f[5] = FDR_ORDINAL_UNKNOWN;
        if (s->op[i] == OP_COLL_BEGIN) f[2] = FDR_ORDINAL_UNKNOWN;
    }
}
