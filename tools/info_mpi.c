/* SPDX-License-Identifier: MIT */
/* fdr info and fdr top: which calls of MPI the threads are in, since when and for what, and the collectives of each
 * communicator. */
#include "tools/info_mpi.h"
#include <fdr/tally.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/short_names.h"
#include "tools/common/verbs.h"
#include "tools/findings/run_facts.h"

enum { LINES_MOST = 12 };

static const char *name_of_comm(const struct fdr_file *file, uint32_t comm, char text[64])
{
    const struct fdr_comm_info *c = comm == UINT32_MAX ? NULL : fdr_comm_info(file, comm);
    snprintf(text, 64, "%s", comm == 0 ? "MPI_COMM_WORLD" : c && c->name[0] ? plain_name(c->name) : "a communicator");
    return text;
}

static const char *name_of_operation(const struct fdr_file *file, uint32_t operation)
{
    return fdr_id_name(file, FDR_IN_COLLECTIVE, operation);
}

static void print_peer(uint32_t peer, const char *before)
{
    if (peer == FDR_MPI_ANY) printf(" %s any rank", before);
    else if (peer != UINT32_MAX) printf(" %s rank %u", before, peer);
    else printf(" %s an unknown rank", before);
}

static void print_message(const struct fdr_mpi_thread_state *s, bool sends)
{
    print_peer(s->peer, sends ? "to" : "from");
    if (s->tag == INT32_MIN) printf(", any tag");
    else printf(", tag %d", s->tag);
}

/* " for a message from rank 3, tag 7, on MPI_COMM_WORLD". */
static void print_what(const struct fdr_file *file, const struct fdr_mpi_thread_state *s)
{
    bool requests = s->wait == FDR_MPI_WAIT_REQUESTS || s->wait == FDR_MPI_WAIT_ANY;
    bool message = (s->wait >= FDR_MPI_WAIT_SEND && s->wait <= FDR_MPI_WAIT_PROBE) || (requests && s->operation <= 1);
    bool sends = s->wait == FDR_MPI_WAIT_SEND || (requests && s->operation == 1);
    char comm[64];
    if (requests) printf(" for %s of %u requests", s->wait == FDR_MPI_WAIT_ANY ? "any" : "all", s->pending);
    if (requests && !s->pending) return;
    if (requests) printf(", the first");
    if (message) print_message(s, sends);
    else if (s->operation && (requests || s->region == UINT32_MAX))
        printf(" %s", name_of_operation(file, s->operation));
    if (!message && s->ordinal != UINT64_MAX) printf(" #%llu", (unsigned long long)s->ordinal);
    if (s->comm != UINT32_MAX) printf(", on %s", name_of_comm(file, s->comm, comm));
    if (!message && s->peer != UINT32_MAX) printf(", root %u", s->peer);
}

static void print_thread(const struct fdr_file *file, const struct fdr_mpi_thread_state *s, uint64_t now_ns)
{
    char for_[HUMAN_BYTES];
    printf("  thread %u: %llu calls of MPI", s->tid, (unsigned long long)s->calls);
    if (!s->in_call || s->torn) {
        printf(", %s\n", s->torn ? "between two of them" : "now in none");
        return;
    }
    printf(", now in %s", s->region == UINT32_MAX ? "one" : plain_name(region_name(file, s->region)));
    if (s->wait != FDR_MPI_WAIT_UNKNOWN && s->wait != FDR_MPI_WAIT_NOTHING) print_what(file, s);
    if (now_ns > s->since_ns) printf(", for %s", human_time(for_, now_ns - s->since_ns));
    putchar('\n');
}

static void print_comm(const struct fdr_file *file, const struct fdr_tally_row *row, const struct fdr_mpi_comm_state *s,
                       uint64_t now_ns)
{
    char comm[64], for_[HUMAN_BYTES], sent[HUMAN_BYTES], received[HUMAN_BYTES];
    struct fdr_mpi_comm_bytes b;
    printf("  %s: %llu collectives begun, %llu ended", name_of_comm(file, s->comm, comm), (unsigned long long)s->begun,
           (unsigned long long)s->ended);
    if (fdr_mpi_comm_bytes(file, row, &b))
        printf(", %s sent, %s received", human_bytes(sent, b.sent), human_bytes(received, b.received));
    if (s->operation) {
        printf("; under way: %s #%llu", name_of_operation(file, s->operation), (unsigned long long)(s->begun - 1));
        if (s->root != UINT32_MAX) printf(", root %u", s->root);
        if (now_ns > s->since_ns) printf(", for %s", human_time(for_, now_ns - s->since_ns));
    }
    putchar('\n');
}

void print_mpi_state(const struct fdr_file *file, bool full)
{
    const struct fdr_tally_row *row;
    struct fdr_mpi_thread_state thread;
    struct fdr_mpi_comm_state comm;
    uint64_t now_ns = newest_moment(file);
    size_t count = fdr_tallies(file, &row), lines = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_thread = fdr_mpi_thread_state(file, &row[i], &thread), is_comm = fdr_mpi_comm_state(&row[i], &comm);
        if (!is_thread && !is_comm) continue;
        if (!lines) printf("\nMPI: what is under way\n");
        if (!full && lines++ >= LINES_MOST) continue;
        lines += full;
        if (is_thread) print_thread(file, &thread, now_ns);
        else print_comm(file, &row[i], &comm, now_ns);
    }
    if (!full && lines > LINES_MOST) printf("  and %zu more: fdr info --ledger\n", lines - LINES_MOST);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static const char *const wait_name[FDR_MPI_WAIT_KINDS] = {
    "unknown", "send", "receive", "sendrecv", "probe", "collective", "requests", "any", "comm", "nothing", "finalize"};

static json_t *known_u32(uint32_t value) { return value >= FDR_MPI_ANY ? json_null() : json_u64(value); }

static json_t *comm_json(const struct fdr_file *file, uint32_t comm)
{
    char id[20], name[64];
    const struct fdr_comm_info *c = comm == UINT32_MAX ? NULL : fdr_comm_info(file, comm);
    if (!c) return json_null();
    json_t *o = json_object();
    snprintf(id, sizeof id, "%llx", (unsigned long long)c->identity);
    json_object_set_new(o, "id", json_text(id));
    json_object_set_new(o, "name", json_text(name_of_comm(file, comm, name)));
    return o;
}

static json_t *thread_json(const struct fdr_file *file, const struct fdr_mpi_thread_state *s)
{
    json_t *o = json_object();
    bool known = s->in_call && !s->torn;
    json_object_set_new(o, "tid", json_u64(s->tid));
    json_object_set_new(o, "calls", json_u64(s->calls));
    json_object_set_new(o, "in_call", s->torn ? json_null() : json_boolean(s->in_call));
    json_object_set_new(o, "region", s->region == UINT32_MAX ? json_null() : json_text(region_name(file, s->region)));
    json_object_set_new(o, "since_ns", known ? json_u64(s->since_ns) : json_null());
    json_object_set_new(o, "wait", known ? json_text(wait_name[s->wait]) : json_null());
    json_object_set_new(o, "comm", comm_json(file, s->comm));
    json_object_set_new(o, "pending", json_u64(s->pending));
    json_object_set_new(o, "peer", known_u32(s->peer));
    json_object_set_new(o, "tag", known && s->tag != INT32_MIN ? json_integer(s->tag) : json_null());
    json_object_set_new(o, "operation",
                        s->operation > 1 ? json_text(name_of_operation(file, s->operation)) : json_null());
    json_object_set_new(o, "ordinal", s->ordinal == UINT64_MAX ? json_null() : json_u64(s->ordinal));
    return o;
}

static json_t *collectives_json(const struct fdr_file *file, const struct fdr_tally_row *row,
                                const struct fdr_mpi_comm_state *s)
{
    struct fdr_mpi_comm_bytes b;
    json_t *o = json_object();
    bool known = fdr_mpi_comm_bytes(file, row, &b);
    json_object_set_new(o, "bytes_sent", known ? json_u64(b.sent) : json_null());
    json_object_set_new(o, "bytes_received", known ? json_u64(b.received) : json_null());
    json_object_set_new(o, "comm", comm_json(file, s->comm));
    json_object_set_new(o, "begun", json_u64(s->begun));
    json_object_set_new(o, "ended", json_u64(s->ended));
    json_object_set_new(o, "operation", s->operation ? json_text(name_of_operation(file, s->operation)) : json_null());
    json_object_set_new(o, "root", known_u32(s->root));
    json_object_set_new(o, "since_ns", s->operation ? json_u64(s->since_ns) : json_null());
    return o;
}

json_t *mpi_state_json(const struct fdr_file *file)
{
    const struct fdr_tally_row *row;
    struct fdr_mpi_thread_state thread;
    struct fdr_mpi_comm_state comm;
    json_t *o = json_object(), *threads = json_array(), *comms = json_array();
    for (size_t i = 0, n = fdr_tallies(file, &row); i < n; i++) {
        if (fdr_mpi_thread_state(file, &row[i], &thread)) json_array_append_new(threads, thread_json(file, &thread));
        if (fdr_mpi_comm_state(&row[i], &comm)) json_array_append_new(comms, collectives_json(file, &row[i], &comm));
    }
    json_object_set_new(o, "threads", threads);
    json_object_set_new(o, "communicators", comms);
    return o;
}
