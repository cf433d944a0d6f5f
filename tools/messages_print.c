/* SPDX-License-Identifier: MIT */
/* Shows the messages of a job, as a table or as JSON. */
#include "tools/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const state_names[END_STATES] = {[MATCHED] = "matched",       [EDGE] = "edge",
                                                    [GIVEN_BACK] = "given_back", [AMBIGUOUS] = "ambiguous",
                                                    [UNRESOLVED] = "unresolved", [UNMATCHABLE] = "unmatchable"};
static const char *const state_means[END_STATES] = {
    [EDGE] = "the other end is in no file, or had not happened yet",
    [GIVEN_BACK] = "the other rank has counted it, and no longer holds it",
    [AMBIGUOUS] = "several threads were at this envelope at once",
    [UNRESOLVED] = "its ordinal was not known yet, or was given back",
    [UNMATCHABLE] = "no ordinal"};

/* ---- channels: all messages of one envelope ---- */

struct channel {
    const struct message_end *envelope;
    uint64_t messages, bytes, matched;
};

static int by_envelope(const void *x, const void *y)
{
    const struct message_end *a = x;
    return compare_envelopes(a->from, a->to, a->tag, a->comm, y);
}

/* An envelope that was counted and is not held is a channel, too. */
static size_t copy_envelopes(const struct job *job, struct message_end *copy)
{
    size_t n = 0;
    for (size_t i = 0; i < job->ends; i++) copy[n++] = job->end[i];
    for (size_t i = 0; i < job->counts; i++) {
        const struct counted *c = &job->counted[i];
        copy[n++] = (struct message_end){
            .from = c->from, .to = c->to, .tag = c->tag, .comm = c->comm, .file = UINT32_MAX};
    }
    if (n) qsort(copy, n, sizeof *copy, by_envelope);
    return n;
}

static void add_to_channel(struct channel *c, const struct message_end *e, uint64_t *received, uint64_t *bytes)
{
    if (e->file == UINT32_MAX) return;
    if (e->is_send) c->messages++, c->bytes += e->bytes;
    else ++*received, *bytes += e->bytes;
    c->matched += e->is_send && e->state == MATCHED;
}

/* The counters are exact; held ends only show that there were as many. */
static void complete_channel(const struct job *job, struct channel *c, uint64_t received, uint64_t bytes)
{
    const struct counted *sent = count_of(job, c->envelope, true), *got = count_of(job, c->envelope, false);
    const struct counted *exact = sent ? sent : got;
    if (received > c->messages) c->messages = received, c->bytes = bytes;
    if (exact && exact->count >= c->messages) c->messages = exact->count, c->bytes = exact->bytes;
}

static struct channel *channels_of(const struct job *job, struct message_end *copy, size_t *count)
{
    size_t n = copy_envelopes(job, copy), used = 0;
    struct channel *list = calloc(n + 1, sizeof *list);
    for (size_t i = 0; list && i < n;) {
        struct channel *c = &list[used++];
        uint64_t received = 0, bytes = 0;
        c->envelope = &copy[i];
        for (; i < n && !by_envelope(c->envelope, &copy[i]); i++) add_to_channel(c, &copy[i], &received, &bytes);
        complete_channel(job, c, received, bytes);
    }
    *count = list ? used : 0;
    return list;
}

/* ---- JSON ---- */

static json_t *comm_json(const struct job *job, uint64_t identity)
{
    char id[24];
    const struct job_comm *c = comm_of(job, identity);
    json_t *o = json_object();
    snprintf(id, sizeof id, "%" PRIx64, identity);
    json_object_set_new(o, "id", identity ? json_text(id) : json_null());
    json_object_set_new(o, "name", c ? json_text(c->name) : json_null());
    return o;
}

static void set(json_t *o, const char *key, uint64_t value) { json_object_set_new(o, key, json_u64(value)); }

static json_t *envelope_json(const struct job *job, const struct message_end *e)
{
    json_t *o = json_object();
    json_object_set_new(o, "from", e->from == UINT32_MAX ? json_null() : json_u64(e->from));
    json_object_set_new(o, "to", e->to == UINT32_MAX ? json_null() : json_u64(e->to));
    json_object_set_new(o, "tag", json_integer(e->tag));
    json_object_set_new(o, "comm", comm_json(job, e->comm));
    return o;
}

static json_t *pairs_json(const struct job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->ends; i++) {
        const struct message_end *s = &job->end[i];
        if (s->state != MATCHED || !s->is_send) continue;
        const struct message_end *r = &job->end[s->partner];
        json_t *o = envelope_json(job, s);
        set(o, "ordinal", s->ordinal);
        set(o, "bytes", s->bytes);
        set(o, "send_location", s->location);
        set(o, "send_ns", s->time_ns);
        set(o, "recv_location", r->location);
        set(o, "recv_ns", r->time_ns);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *channels_json(const struct job *job, const struct channel *c, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *o = envelope_json(job, c[i].envelope);
        set(o, "messages", c[i].messages);
        set(o, "bytes", c[i].bytes);
        set(o, "matched", c[i].matched);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *collectives_json(const struct job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->collectives; i++) {
        const struct collective *c = &job->collective[i];
        json_t *o = json_object();
        json_object_set_new(o, "comm", comm_json(job, c->comm));
        json_object_set_new(o, "operation", json_text(fdr_id_name(job->file[0].file, FDR_IN_COLLECTIVE, c->operation)));
        set(o, "begun", c->begun);
        set(o, "ended", c->ended);
        set(o, "bytes_sent", c->sent);
        set(o, "bytes_received", c->received);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *communicators_json(const struct job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->comms_begun; i++) {
        const struct counted *c = &job->begun[i];
        const struct job_comm *comm = comm_of(job, c->comm);
        json_t *o = json_object();
        json_object_set_new(o, "comm", comm_json(job, c->comm));
        json_object_set_new(o, "size", comm && comm->size ? json_u64(comm->size) : json_null());
        set(o, "rank", c->from);
        set(o, "begun", c->count);
        set(o, "ended", c->bytes);
        json_object_set_new(o, "bytes_sent", c->volume_known ? json_u64(c->volume.sent) : json_null());
        json_object_set_new(o, "bytes_received", c->volume_known ? json_u64(c->volume.received) : json_null());
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *ranks_json(const struct job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->ranks; i++) {
        json_t *o = json_object();
        set(o, "rank", job->rank[i].rank);
        json_object_set_new(o, "file", json_text(job->file[job->rank[i].file].path));
        json_array_append_new(list, o);
    }
    return list;
}

static int print_object(const struct job *job, const struct channel *c, size_t count, bool pairs)
{
    json_t *o = json_object(), *counts = json_object();
    for (int s = MATCHED; s < END_STATES; s++) set(counts, state_names[s], job->state[s]);
    json_object_set_new(o, "ranks", ranks_json(job));
    json_object_set_new(o, "counts", counts);
    json_object_set_new(o, "channels", channels_json(job, c, count));
    json_object_set_new(o, "collectives", collectives_json(job));
    json_object_set_new(o, "communicators", communicators_json(job));
    json_object_set_new(o, "regions", regions_json(job));
    json_object_set_new(o, "in_no_region", missing_json(job));
    json_object_set_new(o, "epochs", epoch_traffic_json(job));
    if (pairs) json_object_set_new(o, "pairs", pairs_json(job));
    return print_json(o);
}

/* ---- text ---- */

static const char *rank_text(char text[16], uint32_t rank)
{
    if (rank == UINT32_MAX) return "?";
    snprintf(text, 16, "%u", rank);
    return text;
}

static const char *comm_name(const struct job *job, uint64_t identity)
{
    const struct job_comm *c = comm_of(job, identity);
    return c ? plain_name(c->name) : identity ? "[unknown]" : "[not told]";
}

static void print_counts(const struct job *job)
{
    char n[HUMAN_BYTES];
    printf("%s messages matched", human_count(n, job->state[MATCHED]));
    printf(", of %zu rank%s\n", job->ranks, job->ranks == 1 ? "" : "s");
    for (int s = EDGE; s < END_STATES; s++)
        if (job->state[s]) printf("%12s  %s: %s\n", human_count(n, job->state[s]), state_names[s], state_means[s]);
}

enum { CHANNELS_SHOWN = 40 };

static int by_messages(const void *x, const void *y)
{
    const struct channel *a = x, *b = y;
    return (a->messages < b->messages) - (a->messages > b->messages);
}

static void print_channels(const struct job *job, struct channel *c, size_t count, bool all)
{
    char from[16], to[16], n[HUMAN_BYTES], bytes[HUMAN_BYTES], m[HUMAN_BYTES];
    size_t most = all ? count : CHANNELS_SHOWN;
    if (count) qsort(c, count, sizeof *c, by_messages);
    if (count)
        printf("\n%6s %6s %10s %14s %12s %14s  communicator\n", "from", "to", "tag", "messages", "bytes", "matched");
    for (size_t i = 0; i < count && i < most; i++)
        printf("%6s %6s %10d %14s %12s %14s  %s\n", rank_text(from, c[i].envelope->from),
               rank_text(to, c[i].envelope->to), c[i].envelope->tag, human_count(n, c[i].messages),
               human_bytes(bytes, c[i].bytes), human_count(m, c[i].matched), comm_name(job, c[i].envelope->comm));
    if (count > most) printf("and %zu more: --all\n", count - most);
}

static void print_collectives(const struct job *job)
{
    char begun[HUMAN_BYTES], ended[HUMAN_BYTES], sent[HUMAN_BYTES], received[HUMAN_BYTES];
    if (job->collectives)
        printf("\n%-20s %14s %14s %12s %12s  communicator\n", "held collectives", "begun", "ended", "sent", "received");
    for (size_t i = 0; i < job->collectives; i++) {
        const struct collective *c = &job->collective[i];
        printf("%-20s %14s %14s %12s %12s  %s\n", fdr_id_name(job->file[0].file, FDR_IN_COLLECTIVE, c->operation),
               human_count(begun, c->begun), human_count(ended, c->ended), human_bytes(sent, c->sent),
               human_bytes(received, c->received), comm_name(job, c->comm));
    }
    if (job->comms_begun)
        printf("\n%6s %22s %14s %12s %12s  communicator\n", "rank", "all collectives begun", "ended", "sent",
               "received");
    for (size_t i = 0; i < job->comms_begun; i++) {
        const struct counted *c = &job->begun[i];
        printf("%6u %22s %14s %12s %12s  %s\n", c->from, human_count(begun, c->count), human_count(ended, c->bytes),
               c->volume_known ? human_bytes(sent, c->volume.sent) : "not known",
               c->volume_known ? human_bytes(received, c->volume.received) : "not known", comm_name(job, c->comm));
    }
}

static void print_pairs(const struct job *job)
{
    printf("\n%6s %6s %10s %12s %10s %20s %20s  communicator\n", "from", "to", "tag", "ordinal", "bytes", "send ns",
           "recv ns");
    for (size_t i = 0; i < job->ends; i++) {
        const struct message_end *s = &job->end[i];
        if (s->state != MATCHED || !s->is_send) continue;
        printf("%6u %6u %10d %12" PRIu64 " %10" PRIu64 " %20" PRIu64 " %20" PRIu64 "  %s\n", s->from, s->to, s->tag,
               s->ordinal, s->bytes, s->time_ns, job->end[s->partner].time_ns, comm_name(job, s->comm));
    }
}

bool messages_none(const struct job *job)
{
    return !job->ends && !job->counts && !job->collectives && !job->comms_begun && !job->regions;
}

int messages_print(const struct job *job, bool json, bool pairs, bool all)
{
    struct message_end *copy = calloc(job->ends + job->counts + 1, sizeof *copy);
    size_t count = 0;
    struct channel *c = copy ? channels_of(job, copy, &count) : NULL;
    int status = COULD_NOT;
    if (!c) {
        complain("out of memory");
    } else if (json) {
        status = print_object(job, c, count, pairs);
    } else if (messages_none(job)) {
        printf("no messages: neither libfdr-mpi nor the program recorded any\n");
        status = finish_output();
    } else {
        print_counts(job);
        print_channels(job, c, count, all);
        print_collectives(job);
        bool good = print_regions(job, all);
        if (pairs) print_pairs(job);
        status = good ? finish_output() : COULD_NOT;
        if (!good) complain("out of memory");
    }
    free(c);
    free(copy);
    return status;
}
