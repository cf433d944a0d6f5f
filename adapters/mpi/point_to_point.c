/* SPDX-License-Identifier: MIT */
/* Sends and receives. A message takes its number before the library is called. It is recorded when the library has
 * accepted it: then its arguments are valid, and fdr may look into them. */
#include "adapters/mpi/adapter_parts.h"

/* ---- sends ---- */

struct envelope {
    const struct fdri_mpi_members *group; /* NULL: no message, or an unknown communicator */
    int peer, tag;
};

static struct envelope of_send(const struct fdri_mpi_call *c, bool known)
{
    struct envelope e = {.peer = (int)fdri_mpi_int(c, FDRI_MPI_dest)};
    if (e.peer == fdri_mpi_library()->proc_null) return e;
    word comm = fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM);
    e.tag = (int)fdri_mpi_int(c, fdri_mpi_has(c, FDRI_MPI_sendtag) ? FDRI_MPI_sendtag : FDRI_MPI_tag);
    e.group = known ? fdri_mpi_members_known(comm) : fdri_mpi_members(comm);
    return e;
}

static uint64_t bytes_of_send(const struct fdri_mpi_call *c)
{
    bool two = fdri_mpi_has(c, FDRI_MPI_sendcount);
    return fdri_mpi_bytes(fdri_mpi_count(c, two ? FDRI_MPI_sendcount : FDRI_MPI_count),
                          fdri_mpi_handle(c, two ? FDRI_MPI_sendtype : FDRI_MPI_datatype, FDRI_MPI_TYPE));
}

void fdri_mpi_messages_post_send(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p)
{
    struct envelope e = of_send(c, true);
    if (e.group)
        p->send = fdri_mpi_number_take(FDRI_MPI_SENT, e.group, fdri_mpi_world_rank(e.group, e.peer), e.tag, true);
}

static word request_of(const struct fdri_mpi_call *c)
{
    return fdri_mpi_handle_at(c, FDRI_MPI_request, FDRI_MPI_REQUEST, 0);
}

static void record_send(const struct fdri_mpi_pending *p)
{
    fdri_mpi_request_event(FDRI_MPI_ISEND, p->request);
    fdri_mpi_number_bytes(&p->send, p->sent);
    fdr_message_send_nth((uint32_t)p->peer, p->tag, p->group->id, p->sent, fdri_mpi_number_ordinal(&p->send));
}

static bool describe_send(const struct fdri_mpi_call *c, struct fdri_mpi_pending *p)
{
    struct envelope e = of_send(c, false);
    if (!e.group) return false;
    *p = (struct fdri_mpi_pending){.kind = FDRI_MPI_PENDING_SEND, .group = e.group, .tag = e.tag};
    p->peer = (int32_t)fdri_mpi_world_rank(e.group, e.peer);
    p->sent = bytes_of_send(c);
    return true;
}

void fdri_mpi_messages_sent(const struct fdri_mpi_call *c, struct fdri_mpi_posting *posting, int error)
{
    struct fdri_mpi_pending p;
    if (error) {
        fdri_mpi_number_undo(&posting->send);
        return;
    }
    fdri_mpi_number_posted(&posting->send);
    if (!describe_send(c, &p)) return;
    bool later = c->f->kind == FDRI_MPI_send && fdri_mpi_has(c, FDRI_MPI_request);
    p.send = posting->send;
    if (later) p.request = fdri_mpi_request_new();
    record_send(&p);
    if (later) fdri_mpi_requests_open(FDRI_MPI_OF_REQUESTS, request_of(c), &p);
}

/* ---- receives ---- */

static void find_group(const struct fdri_mpi_call *c, struct fdri_mpi_receive *r)
{
    if (r->group || fdri_mpi_int(c, FDRI_MPI_source) == fdri_mpi_library()->proc_null) return;
    r->group = fdri_mpi_members(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
}

/* The envelope that the call asks for, on a communicator that is known. */
static void asked_for(const struct fdri_mpi_call *c, struct fdri_mpi_receive *r)
{
    int source = (int)fdri_mpi_int(c, FDRI_MPI_source);
    *r = (struct fdri_mpi_receive){.any_source = source < 0};
    if (source == fdri_mpi_library()->proc_null) return;
    r->group = fdri_mpi_members_known(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
    r->tag = (int)fdri_mpi_int(c, fdri_mpi_has(c, FDRI_MPI_recvtag) ? FDRI_MPI_recvtag : FDRI_MPI_tag);
    if (r->group && source >= 0) r->peer = fdri_mpi_world_rank(r->group, source);
}

void fdri_mpi_messages_post_receive(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p)
{
    asked_for(c, &p->receive);
    fdri_mpi_receive_posts(&p->receive, !fdri_mpi_has(c, FDRI_MPI_request));
}

static void received(struct fdri_mpi_receive *r, const void *status, uint64_t request)
{
    struct fdri_mpi_status s = fdri_mpi_status(status);
    if (!r->group || s.source == fdri_mpi_library()->proc_null) return;
    fdri_mpi_request_event(s.cancelled ? FDRI_MPI_CANCELLED : FDRI_MPI_IRECV, request);
    if (s.cancelled) fdri_mpi_receive_cancelled(r);
    else fdri_mpi_receive_completed(r, fdri_mpi_world_rank(r->group, s.source), s.tag, s.bytes);
}

static const void *status_of(const struct fdri_mpi_call *c) { return fdri_mpi_ints(c, FDRI_MPI_status); }

void fdri_mpi_messages_received(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p, int error)
{
    fdri_mpi_receive_posted(&p->receive, error != 0);
    if (error) return;
    find_group(c, &p->receive);
    received(&p->receive, status_of(c), 0);
}

static void put_receive(word request, const struct fdri_mpi_receive *r)
{
    struct fdri_mpi_pending p = {.kind = FDRI_MPI_PENDING_RECV, .receive = *r};
    if (!r->group) return;
    p.request = fdri_mpi_request_new();
    fdri_mpi_request_event(FDRI_MPI_IRECV_POSTED, p.request);
    fdri_mpi_requests_open(FDRI_MPI_OF_REQUESTS, request, &p);
}

void fdri_mpi_messages_receive_posted(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p, int error)
{
    fdri_mpi_receive_posted(&p->receive, error != 0);
    if (error) return;
    find_group(c, &p->receive);
    put_receive(request_of(c), &p->receive);
}

/* ---- persistent requests ---- */

void fdri_mpi_messages_prepared(const struct fdri_mpi_call *c)
{
    struct fdri_mpi_pending p = {.kind = FDRI_MPI_PENDING_RECV};
    if (c->f->kind == FDRI_MPI_send_init) {
        if (!describe_send(c, &p)) return;
    } else {
        asked_for(c, &p.receive);
        find_group(c, &p.receive);
        if (!p.receive.group) return;
    }
    p.persistent = true;
    fdri_mpi_requests_open(FDRI_MPI_OF_REQUESTS, request_of(c), &p);
}

static void start(struct fdri_mpi_pending *p)
{
    p->active = true;
    if (p->kind == FDRI_MPI_PENDING_RECV) fdri_mpi_receive_posts(&p->receive, false);
    if (p->kind == FDRI_MPI_PENDING_SEND)
        p->send = fdri_mpi_number_take(FDRI_MPI_SENT, p->group, (uint32_t)p->peer, p->tag, true);
}

static void started(struct fdri_mpi_pending *p)
{
    p->request = fdri_mpi_request_new();
    if (p->kind == FDRI_MPI_PENDING_RECV) {
        fdri_mpi_receive_posted(&p->receive, false);
        fdri_mpi_request_event(FDRI_MPI_IRECV_POSTED, p->request);
    }
    if (p->kind == FDRI_MPI_PENDING_COLL) fdri_mpi_collectives_started(p);
    if (p->kind != FDRI_MPI_PENDING_SEND) return;
    fdri_mpi_number_posted(&p->send);
    record_send(p);
}

static void not_started(struct fdri_mpi_pending *p)
{
    p->active = false;
    if (p->kind == FDRI_MPI_PENDING_RECV) fdri_mpi_receive_posted(&p->receive, true);
    if (p->kind == FDRI_MPI_PENDING_SEND) fdri_mpi_number_undo(&p->send);
}

static void each_request(const struct fdri_mpi_call *c, void (*act)(struct fdri_mpi_pending *p))
{
    bool many = fdri_mpi_has(c, FDRI_MPI_array_of_requests);
    int count = many ? (int)fdri_mpi_int(c, FDRI_MPI_count) : 1;
    for (int i = 0; i < count; i++) {
        struct fdri_mpi_pending p;
        word request = fdri_mpi_handle_at(c, many ? FDRI_MPI_array_of_requests : FDRI_MPI_request, FDRI_MPI_REQUEST, i);
        if (!fdri_mpi_requests_take(FDRI_MPI_OF_REQUESTS, request, &p)) continue;
        act(&p);
        fdri_mpi_requests_put(FDRI_MPI_OF_REQUESTS, request, &p);
    }
}

void fdri_mpi_messages_start(const struct fdri_mpi_call *c) { each_request(c, start); }
void fdri_mpi_messages_started(const struct fdri_mpi_call *c, int error)
{
    each_request(c, error ? not_started : started);
}

/* ---- matched probes: the message has its receiver from here on ---- */

void fdri_mpi_messages_probed(const struct fdri_mpi_call *c)
{
    struct fdri_mpi_pending p = {.kind = FDRI_MPI_PENDING_RECV};
    if (fdri_mpi_has(c, FDRI_MPI_flag) && !fdri_mpi_out(c, FDRI_MPI_flag)) return;
    find_group(c, &p.receive);
    if (!p.receive.group) return;
    struct fdri_mpi_status s = fdri_mpi_status(status_of(c));
    p.receive.peer = fdri_mpi_world_rank(p.receive.group, s.source);
    p.receive.tag = s.tag;
    fdri_mpi_receive_posts(&p.receive, true);
    fdri_mpi_receive_posted(&p.receive, false);
    fdri_mpi_requests_open(FDRI_MPI_OF_MESSAGES, fdri_mpi_handle_at(c, FDRI_MPI_message, FDRI_MPI_MESSAGE, 0), &p);
}

void fdri_mpi_messages_matched_receive(const struct fdri_mpi_call *c, struct fdri_mpi_pending *message)
{
    if (message->kind == FDRI_MPI_PENDING_NONE) return;
    if (c->f->kind == FDRI_MPI_imrecv) {
        message->request = fdri_mpi_request_new();
        fdri_mpi_request_event(FDRI_MPI_IRECV_POSTED, message->request);
        fdri_mpi_requests_put(FDRI_MPI_OF_REQUESTS, request_of(c), message);
        return;
    }
    received(&message->receive, status_of(c), 0);
    fdri_mpi_requests_end(message);
}

/* ---- the end of a request ---- */

/* Has the request completed as cancelled, or not, or is it open? The question changes nothing. */
static enum { OPEN, DONE, CANCELLED } state_of(word request)
{
    static int (*ask)(word, int *, void *);
    uint64_t status[FDRI_MPI_STATUS_BYTES / 8];
    int flag = 0;
    if (!ask) ask = (int (*)(word, int *, void *))fdri_mpi_find("PMPI_Request_get_status");
    if (!ask || ask(request, &flag, status) || !flag) return OPEN;
    return fdri_mpi_status(status).cancelled ? CANCELLED : DONE;
}

static void cancelled_receive(struct fdri_mpi_pending *p, word request)
{
    switch (state_of(request)) {
    case DONE: break;
    case CANCELLED:
        fdri_mpi_receive_cancelled(&p->receive);
        p->active = false; /* its completion means nothing any more */
        if (p->persistent) break;
        fdri_mpi_members_leave(p->receive.group);
        p->receive.group = NULL;
        break;
    default: fdri_mpi_receive_unsure(&p->receive);
    }
}

void fdri_mpi_messages_cancelled(const struct fdri_mpi_call *c)
{
    struct fdri_mpi_pending p;
    word request = request_of(c);
    if (!fdri_mpi_requests_take(FDRI_MPI_OF_REQUESTS, request, &p)) return;
    p.cancelling = true;
    if (p.kind == FDRI_MPI_PENDING_RECV) cancelled_receive(&p, request);
    fdri_mpi_requests_put(FDRI_MPI_OF_REQUESTS, request, &p);
}

static void sent(struct fdri_mpi_pending *p, bool cancelled)
{
    fdri_mpi_request_event(cancelled ? FDRI_MPI_CANCELLED : FDRI_MPI_ISEND_COMPLETE, p->request);
    if (cancelled) fdri_mpi_number_hole(&p->send);
}

void fdri_mpi_messages_completed(struct fdri_mpi_pending *p, const void *status)
{
    if (p->persistent && !p->active) return; /* MPI reports an empty status */
    if (p->kind == FDRI_MPI_PENDING_RECV && p->partitioned) {
        fdri_mpi_request_event(FDRI_MPI_IRECV, p->request);
        fdri_mpi_receive_completed(&p->receive, p->receive.peer, p->receive.tag, p->received);
    } else if (p->kind == FDRI_MPI_PENDING_RECV) received(&p->receive, status, p->request);
    if (p->kind == FDRI_MPI_PENDING_SEND) sent(p, p->cancelling && fdri_mpi_status(status).cancelled);
    p->cancelling = false;
    if (p->kind == FDRI_MPI_PENDING_FILE) fdri_mpi_files_completed(p, status);
    if (p->kind == FDRI_MPI_PENDING_RMA) fdri_mpi_rma_completed(p);
    if (p->kind != FDRI_MPI_PENDING_COLL) return;
    fdr_collective_end_nth(p->operation, p->group ? p->group->id : 0, p->root, p->sent, p->received, p->ordinal);
    fdri_mpi_collective_bytes(p->group, p->sent, p->received);
    if (p->ordinal != FDR_ORDINAL_UNKNOWN) fdri_mpi_collective_ended(p->group);
}
