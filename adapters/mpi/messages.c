/* SPDX-License-Identifier: MIT */
/* Sends and receives. One function for each event of an envelope (peer, tag, communicator): a later count of the
 * messages of an envelope has its place there. */
#include "adapters/mpi/adapter_parts.h"

struct envelope {
    const struct fdri_mpi_members *group; /* NULL: no message, or an unknown communicator */
    int peer, tag;
    uint64_t bytes;
};

static struct envelope envelope(const struct fdri_mpi_call *c, enum fdri_mpi_role peer, enum fdri_mpi_role tag,
                                enum fdri_mpi_role count, enum fdri_mpi_role type)
{
    struct envelope e = {.peer = (int)fdri_mpi_int(c, peer)};
    if (e.peer == fdri_mpi_library()->proc_null) return e;
    e.tag = (int)fdri_mpi_int(c, tag);
    e.bytes = fdri_mpi_bytes(fdri_mpi_count(c, count), fdri_mpi_handle(c, type, FDRI_MPI_TYPE));
    e.group = fdri_mpi_members(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
    return e;
}

static struct envelope of_send(const struct fdri_mpi_call *c)
{
    bool both = fdri_mpi_has(c, FDRI_MPI_sendtag), two = fdri_mpi_has(c, FDRI_MPI_sendcount);
    return envelope(c, FDRI_MPI_dest, both ? FDRI_MPI_sendtag : FDRI_MPI_tag, two ? FDRI_MPI_sendcount : FDRI_MPI_count,
                    two ? FDRI_MPI_sendtype : FDRI_MPI_datatype);
}

void fdri_mpi_messages_sent(const struct fdri_mpi_call *c)
{
    struct envelope e = of_send(c);
    if (e.group) fdr_message_send(fdri_mpi_world_rank(e.group, e.peer), e.tag, e.group->id, e.bytes);
}

static void received(const struct fdri_mpi_members *group, const void *status)
{
    struct fdri_mpi_status s = fdri_mpi_status(status);
    if (!group || s.cancelled || s.source == fdri_mpi_library()->proc_null) return;
    fdr_message_recv(fdri_mpi_world_rank(group, s.source), s.tag, group->id, s.bytes);
}

static const void *status_of(const struct fdri_mpi_call *c) { return fdri_mpi_ints(c, FDRI_MPI_status); }

void fdri_mpi_messages_received(const struct fdri_mpi_call *c)
{
    if (fdri_mpi_int(c, FDRI_MPI_source) == fdri_mpi_library()->proc_null) return;
    received(fdri_mpi_members(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM)), status_of(c));
}

static word request_of(const struct fdri_mpi_call *c)
{
    return fdri_mpi_handle_at(c, FDRI_MPI_request, FDRI_MPI_REQUEST, 0);
}

void fdri_mpi_messages_receive_posted(const struct fdri_mpi_call *c)
{
    struct fdri_mpi_pending p = {.kind = FDRI_MPI_PENDING_RECV};
    if (fdri_mpi_int(c, FDRI_MPI_source) == fdri_mpi_library()->proc_null) return;
    p.group = fdri_mpi_members(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
    if (p.group) fdri_mpi_requests_put(FDRI_MPI_OF_REQUESTS, request_of(c), &p);
}

void fdri_mpi_messages_prepared(const struct fdri_mpi_call *c)
{
    struct fdri_mpi_pending p = {.kind = FDRI_MPI_PENDING_RECV, .persistent = true};
    if (c->f->kind == FDRI_MPI_send_init) {
        struct envelope e = of_send(c);
        if (!e.group) return;
        p.kind = FDRI_MPI_PENDING_SEND, p.group = e.group;
        p.peer = (int32_t)fdri_mpi_world_rank(e.group, e.peer), p.tag = e.tag, p.sent = e.bytes;
    } else {
        if (fdri_mpi_int(c, FDRI_MPI_source) == fdri_mpi_library()->proc_null) return;
        p.group = fdri_mpi_members(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
    }
    if (p.group) fdri_mpi_requests_put(FDRI_MPI_OF_REQUESTS, request_of(c), &p);
}

static void started(word request)
{
    struct fdri_mpi_pending p;
    if (!fdri_mpi_requests_take(FDRI_MPI_OF_REQUESTS, request, &p)) return;
    p.active = true;
    fdri_mpi_requests_put(FDRI_MPI_OF_REQUESTS, request, &p);
    if (p.kind == FDRI_MPI_PENDING_SEND) fdr_message_send((uint32_t)p.peer, p.tag, p.group->id, p.sent);
}

void fdri_mpi_messages_started(const struct fdri_mpi_call *c)
{
    bool many = fdri_mpi_has(c, FDRI_MPI_array_of_requests);
    int count = many ? (int)fdri_mpi_int(c, FDRI_MPI_count) : 1;
    for (int i = 0; i < count; i++)
        started(fdri_mpi_handle_at(c, many ? FDRI_MPI_array_of_requests : FDRI_MPI_request, FDRI_MPI_REQUEST, i));
}

void fdri_mpi_messages_probed(const struct fdri_mpi_call *c)
{
    struct fdri_mpi_pending p = {.kind = FDRI_MPI_PENDING_RECV};
    if (fdri_mpi_has(c, FDRI_MPI_flag) && !fdri_mpi_out(c, FDRI_MPI_flag)) return;
    if (fdri_mpi_int(c, FDRI_MPI_source) == fdri_mpi_library()->proc_null) return;
    p.group = fdri_mpi_members(fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM));
    if (p.group)
        fdri_mpi_requests_put(FDRI_MPI_OF_MESSAGES, fdri_mpi_handle_at(c, FDRI_MPI_message, FDRI_MPI_MESSAGE, 0), &p);
}

void fdri_mpi_messages_matched_receive(const struct fdri_mpi_call *c, const struct fdri_mpi_pending *message)
{
    if (message->kind == FDRI_MPI_PENDING_NONE) return;
    if (c->f->kind == FDRI_MPI_mrecv) received(message->group, status_of(c));
    else fdri_mpi_requests_put(FDRI_MPI_OF_REQUESTS, request_of(c), message);
}

void fdri_mpi_messages_completed(const struct fdri_mpi_pending *p, const void *status)
{
    if (p->persistent && !p->active) return; /* MPI reports an empty status */
    if (p->kind == FDRI_MPI_PENDING_RECV) received(p->group, status);
    if (p->kind == FDRI_MPI_PENDING_COLL)
        fdr_collective_end(p->operation, p->group ? p->group->id : 0, p->root, p->sent, p->received);
}
