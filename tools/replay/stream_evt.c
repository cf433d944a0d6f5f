/* SPDX-License-Identifier: MIT */
/* .evt files (magic FDREVT1): a header, then regions, strings, communicators, parameters, time steps and event
 * words, each at an offset in the header. Nothing in the file is trusted; parts that are missing or out of range are
 * left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fdr/fdr.h>

#include "tools/replay/event_stream.h"
#include "tools/replay/stream_evt.h"

/* The number of complete items of a section in the file. */
static size_t complete_items(const struct evt *e, uint64_t offset, uint64_t count, size_t bytes)
{
    if (offset > e->size) return 0;
    uint64_t room = (e->size - offset) / bytes;
    return (size_t)(count < room ? count : room);
}

/* NULL: none. */
static const char *string_at(const struct evt *e, uint32_t offset)
{
    if (offset >= e->strings_bytes || !memchr(e->strings + offset, '\0', e->strings_bytes - offset)) return NULL;
    return e->strings + offset;
}

static bool open_header(struct evt *e)
{
    bool ours = e->size >= 8 && memcmp(e->bytes, "FDREVT1\n", 8) == 0;
    if (!ours) complain("%s: not an event stream: it does not begin with FDREVT1", e->path);
    else if (e->size < sizeof e->h) complain("%s: cut off inside the header: %zu bytes", e->path, e->size);
    if (!ours || e->size < sizeof e->h) return false;
    memcpy(&e->h, e->bytes, sizeof e->h);
    if (e->h.version == 1) return true;
    complain("%s: event stream of version %u, only 1 is known", e->path, e->h.version);
    return false;
}

static bool read_regions(struct evt *e, struct stream *s)
{
    size_t count = complete_items(e, e->h.off_regions, e->h.n_regions, sizeof(struct evt_region));
    e->strings_bytes = complete_items(e, e->h.off_strings, e->h.strings_bytes, 1);
    e->strings = (const char *)e->bytes + e->h.off_strings;
    s->region = calloc(count + 1, sizeof *s->region);
    if (!s->region) return false;
    s->region_count = count;
    for (size_t i = 0; i < count; i++) {
        struct evt_region r;
        memcpy(&r, e->bytes + e->h.off_regions + i * sizeof r, sizeof r);
        s->region[i] = (struct stream_definition){
            .name = string_at(e, r.name), .file = string_at(e, r.file), .line = r.line};
    }
    return true;
}

/* Each entry is a size and that many ranks. The section is aligned: all begin at multiples of 8. */
static bool read_comms(struct evt *e, struct stream *s)
{
    size_t words = complete_items(e, e->h.off_comms, UINT64_MAX, sizeof(uint32_t));
    const uint32_t *at = (const void *)(e->bytes + (e->h.off_comms % 8 == 0 ? e->h.off_comms : 0));
    if (e->h.off_comms % 8 != 0) words = 0;
    s->comm = calloc((e->h.n_comms < words ? e->h.n_comms : words) + 1, sizeof *s->comm);
    if (!s->comm) return false;
    for (size_t used = 0; s->comm_count < e->h.n_comms && used < words;) {
        uint32_t size = at[used++];
        if (size > words - used) break;
        s->comm[s->comm_count++] = (struct stream_comm){.rank = at + used, .size = size};
        used += size;
    }
    return true;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

uint32_t evt_word(const struct evt *e, size_t record)
{
    uint32_t word;
    memcpy(&word, e->bytes + e->h.off_word + record * 4, 4);
    return word;
}

bool evt_param_of(const struct evt *e, uint32_t word, struct evt_param *p)
{
    uint32_t index = word & 0xffffffu;
    if (index < e->params) memcpy(p, e->bytes + e->h.off_params + index * sizeof *p, sizeof *p);
    return index < e->params;
}

static void count_bad(struct evt *e, uint64_t *what, size_t record)
{
    if (e->bad_kinds + e->bad_regions + e->bad_params == 0) e->first_bad = record;
    ++*what;
}

static bool param_at(struct evt *e, uint32_t index, size_t record, struct evt_param *p)
{
    if (evt_param_of(e, index, p)) return true;
    count_bad(e, &e->bad_params, record);
    return false;
}

static void add_fields(struct stream *s, size_t record, enum op op, const uint64_t *field, size_t count)
{
    s->op[record] = (uint8_t)op;
    s->value[record] = (uint32_t)s->field_count;
    memcpy(s->field + s->field_count, field, count * sizeof *field);
    s->field_count += count;
    s->events++;
}

static void add_message(struct stream *s, size_t record, enum op op, const struct evt_param *p)
{
    uint64_t field[] = {(uint32_t)p->peer, (uint64_t)(int64_t)p->tag, p->comm, p->bytes, FDR_ORDINAL_UNKNOWN};
    add_fields(s, record, op, field, 5);
}

static void add_collective_end(struct stream *s, size_t record, const struct evt_param *p)
{
    uint64_t field[] = {(uint32_t)p->tag, p->comm,   (uint64_t)(int64_t)p->peer,
                        p->bytes,         p->bytes2, FDR_ORDINAL_UNKNOWN};
    add_fields(s, record, OP_COLL_END, field, 6);
}

static void add_collective_begin(struct stream *s, size_t record, uint32_t operation)
{
    uint64_t field[] = {operation, 0, FDR_ORDINAL_UNKNOWN};
    add_fields(s, record, OP_COLL_BEGIN, field, 3);
}

static void add_plain(struct stream *s, size_t record, enum op op, uint32_t value)
{
    s->op[record] = (uint8_t)op;
    s->value[record] = value;
    s->events++;
    s->calls += op == OP_ENTER;
}

/* A record that is left out still advances the time: it stays OP_TICK, the initial value of the array. */
static void add_record(struct evt *e, struct stream *s, size_t i, uint32_t word)
{
    struct evt_param p;
    uint32_t kind = word >> 24, value = word & 0xffffffu;
    if (kind >= EVT_KINDS) {
        count_bad(e, &e->bad_kinds, i);
        return;
    }
    switch ((enum evt_kind)kind) {
    case EVT_ENTER:
    case EVT_LEAVE:
        /* The call is kept for the nesting; its region becomes [unknown]. */
        if (value >= s->region_count) count_bad(e, &e->bad_regions, i);
        add_plain(s, i, kind == EVT_ENTER ? OP_ENTER : OP_LEAVE, value < s->region_count ? value : UINT32_MAX);
        break;
    case EVT_SEND:
    case EVT_ISEND:
    case EVT_RECV:
    case EVT_IRECV:
        if (param_at(e, value, i, &p)) add_message(s, i, kind == EVT_SEND || kind == EVT_ISEND ? OP_SEND : OP_RECV, &p);
        break;
    case EVT_COLL_BEGIN: add_collective_begin(s, i, value); break;
    case EVT_COLL_END:
        if (param_at(e, value, i, &p)) add_collective_end(s, i, &p);
        break;
    default: break; /* TICK, and bookkeeping of requests, which is no event */
    }
}

static size_t fields_needed(const struct evt *e, const unsigned char *words, size_t count)
{
    size_t need = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, words + i * 4, 4);
        need += word >> 24 == EVT_COLL_BEGIN ? 3 : (word & 0xffffffu) < e->params && word >> 24 >= EVT_SEND ? 6 : 0;
    }
    return need;
}

static bool read_records(struct evt *e, struct stream *s)
{
    size_t count = complete_items(e, e->h.off_word, e->h.n_records, 4),
           steps = complete_items(e, e->h.off_dt, e->h.n_records, 4);
    const unsigned char *words = e->bytes + e->h.off_word;
    if (steps < count) count = steps;
    e->params = complete_items(e, e->h.off_params, e->h.n_params, sizeof(struct evt_param));
    s->dt = calloc(count + 1, sizeof *s->dt);
    s->value = calloc(count + 1, sizeof *s->value);
    s->op = calloc(count + 1, sizeof *s->op);
    s->field = s->op ? calloc(fields_needed(e, words, count) + 1, sizeof *s->field) : NULL;
    if (!s->dt || !s->value || !s->field) return false;
    memcpy(s->dt, e->bytes + e->h.off_dt, count * 4);
    s->t0_ns = e->h.t0_ns;
    for (s->count = 0; s->count < count; s->count++) {
        uint32_t word;
        if (s->t0_ns + s->span_ns + s->dt[s->count] < s->t0_ns) break; /* beyond 2^64 ns the time would go back */
        memcpy(&word, words + s->count * 4, 4);
        s->span_ns += s->dt[s->count];
        add_record(e, s, s->count, word);
    }
    return true;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

/* Reports sections of the file that are shorter than the header says. Events that refer to a missing entry become bad
 * records, or refer to none. */
static void report_claims(const struct evt *e, const struct stream *s, int *status)
{
    if (s->region_count == e->h.n_regions && s->comm_count == e->h.n_comms && e->strings_bytes == e->h.strings_bytes &&
        e->params == e->h.n_params)
        return;
    complain(
        "%s: cut, or its header is wrong: %zu of %u regions, %zu of %u bytes of names, %zu of %u communicators and "
        "%zu of %u parameters are there; going on with those",
        e->path, s->region_count, e->h.n_regions, e->strings_bytes, e->h.strings_bytes, s->comm_count, e->h.n_comms,
        e->params, e->h.n_params);
    *status = worse(*status, DIFFERENT);
}

static void report(const struct evt *e, const struct stream *s, int *status)
{
    bool short_of = s->count < e->h.n_records;
    if (s->count < complete_items(e, e->h.off_word, e->h.n_records, 4))
        complain("%s: time goes back at record %zu (beyond 2^64 ns); the records from there on are left out", e->path,
                 s->count);
    else if (short_of)
        complain("%s: truncated: %zu of %llu records are there; going on with those", e->path, s->count,
                 (unsigned long long)e->h.n_records);
    if (e->bad_kinds + e->bad_regions + e->bad_params > 0)
        complain("%s: bad records, the first at record %llu: %llu of unknown kind and %llu without "
                 "parameters left out, %llu with unknown regions",
                 e->path, (unsigned long long)e->first_bad, (unsigned long long)e->bad_kinds,
                 (unsigned long long)e->bad_params, (unsigned long long)e->bad_regions);
    if (short_of || e->bad_kinds + e->bad_regions + e->bad_params > 0) *status = worse(*status, DIFFERENT);
}

bool load_evt(struct stream *stream, const char *path, unsigned char *bytes, size_t size, int *status)
{
    char base[32], number[24];
    struct evt e = {.path = path, .bytes = bytes, .size = size};
    if (!open_header(&e)) return false;
    if (!read_regions(&e, stream) || !read_comms(&e, stream) || !read_records(&e, stream)) {
        complain("%s: out of memory for %llu records", path, (unsigned long long)e.h.n_records);
        return false;
    }
    number_stream(&e, stream);
    report_claims(&e, stream, status);
    report(&e, stream, status);
    stream_base_name(base, path);
    int length = snprintf(number, sizeof number, ".r%u.t%u", e.h.rank % 1000000, e.h.thread % 1000000);
    snprintf(stream->name, sizeof stream->name, "%.*s%s", 31 - length, base, number);
    if (stream->events == 0) complain("%s: no events in it", path);
    return true;
}
