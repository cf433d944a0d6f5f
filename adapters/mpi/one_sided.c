/* SPDX-License-Identifier: MIT */
/* One-sided communication: user events fdr.rma say which operation moves how many bytes, in which window, to and from
 * which rank. Synchronizations that complete operations, and locks, are events, too. Each window counts the former: so
 * readers see that none is missing between an operation and its completion. */
#include "adapters/mpi/adapter_parts.h"
#include "base/atomic.h"

struct rma {
    uint64_t what, window, target, sent, received, completing, request;
};

static fdr_event_type type_of_events(void)
{
    static const struct fdr_field fields[] = {
        {"what", FDR_U64, offsetof(struct rma, what)},
        {"window", FDR_U64, offsetof(struct rma, window)},
        {"target", FDR_U64, offsetof(struct rma, target)},
        {"sent", FDR_U64, offsetof(struct rma, sent)},
        {"received", FDR_U64, offsetof(struct rma, received)},
        {"completing", FDR_U64, offsetof(struct rma, completing)},
        {"request", FDR_U64, offsetof(struct rma, request)},
    };
    static fdr_event_type type;
    fdr_event_type known = fdri_atomic_load_relaxed(&type);
    if (known) return known;
    known = fdr_event_define("fdr.rma", fields, sizeof fields / sizeof *fields);
    fdri_atomic_store_relaxed(&type, known);
    return known;
}

static void record(const struct fdri_mpi_members *window, struct rma *event)
{
    event->window = window->id;
    if (!window->order->identity) event->completing = FDR_ORDINAL_UNKNOWN;
    fdr_event(type_of_events(), event);
}

/* ---- windows ---- */

static word window_by_address(const struct fdri_mpi_call *c)
{
    return fdri_mpi_handle_at(c, FDRI_MPI_win, FDRI_MPI_WIN, 0);
}

/* Of its communicator's identity, and how many windows were made of that before. */
void fdri_mpi_rma_window_made(const struct fdri_mpi_call *c)
{
    enum { WINDOW = 4712 }; /* other than what makes communicators of a communicator */
    word comm = fdri_mpi_handle(c, FDRI_MPI_comm, FDRI_MPI_COMM);
    const struct fdri_mpi_members *group = fdri_mpi_members(comm);
    if (!group) return;
    uint64_t of = group->order->identity, made = group->order->windows++;
    uint64_t identity = of ? fdri_mpi_mix(fdri_mpi_mix(~of, WINDOW), made) : 0;
    const struct fdri_mpi_members *window = fdri_mpi_members_new_window(window_by_address(c), comm, group, identity);
    if (window) record(window, &(struct rma){.what = FDRI_MPI_OP_created, .target = UINT32_MAX});
}

/* It leaves the map before MPI gives its handle to another thread. */
void fdri_mpi_rma_window_frees(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p)
{
    word win = window_by_address(c);
    p->window = fdri_mpi_members_of_window(win);
    fdri_mpi_members_use(p->window);
    fdri_mpi_members_forget_window(win);
}

void fdri_mpi_rma_window_freed(const struct fdri_mpi_posting *p, int error)
{
    if (!error && p->window) record(p->window, &(struct rma){.what = FDRI_MPI_OP_freed, .target = UINT32_MAX});
    fdri_mpi_members_leave(p->window);
}

/* ---- operations ---- */

static const struct fdri_mpi_members *window_of(const struct fdri_mpi_call *c)
{
    return fdri_mpi_members_of_window(fdri_mpi_handle(c, FDRI_MPI_win, FDRI_MPI_WIN));
}

static uint64_t origin_bytes(const struct fdri_mpi_call *c)
{
    if (fdri_mpi_has(c, FDRI_MPI_datatype))
        return fdri_mpi_bytes(1, fdri_mpi_handle(c, FDRI_MPI_datatype, FDRI_MPI_TYPE));
    return fdri_mpi_bytes(fdri_mpi_count(c, FDRI_MPI_origin_count),
                          fdri_mpi_handle(c, FDRI_MPI_origin_datatype, FDRI_MPI_TYPE));
}

static uint64_t result_bytes(const struct fdri_mpi_call *c)
{
    return fdri_mpi_bytes(fdri_mpi_count(c, FDRI_MPI_result_count),
                          fdri_mpi_handle(c, FDRI_MPI_result_datatype, FDRI_MPI_TYPE));
}

/* With MPI_NO_OP the origin's data are not looked at. */
static bool sends(const struct fdri_mpi_call *c)
{
    if (c->f->operation == FDRI_MPI_OP_get) return false;
    return !fdri_mpi_has(c, FDRI_MPI_op) ||
           fdri_mpi_handle(c, FDRI_MPI_op, FDRI_MPI_REDUCTION) != fdri_mpi_library()->no_op;
}

static uint64_t received_bytes(const struct fdri_mpi_call *c)
{
    switch (c->f->operation) {
    case FDRI_MPI_OP_put:
    case FDRI_MPI_OP_accumulate: return 0;
    case FDRI_MPI_OP_get_accumulate: return result_bytes(c);
    default: return origin_bytes(c);
    }
}

static void post(const struct fdri_mpi_call *c, const struct fdri_mpi_members *window, uint64_t request)
{
    struct fdri_mpi_pending p = {.kind = FDRI_MPI_PENDING_RMA, .group = window, .request = request};
    fdri_mpi_requests_open(FDRI_MPI_OF_REQUESTS, fdri_mpi_handle_at(c, FDRI_MPI_request, FDRI_MPI_REQUEST, 0), &p);
}

void fdri_mpi_rma_operation(const struct fdri_mpi_call *c)
{
    static uint64_t newest;
    const struct fdri_mpi_members *window = window_of(c);
    int target = (int)fdri_mpi_int(c, FDRI_MPI_target_rank);
    if (!window || target == fdri_mpi_library()->proc_null) return;
    struct rma event = {.what = c->f->operation, .target = fdri_mpi_world_rank(window, target)};
    event.sent = sends(c) ? origin_bytes(c) : 0;
    event.received = received_bytes(c);
    event.completing = fdri_atomic_load_relaxed(&window->order->completing);
    if (fdri_mpi_has(c, FDRI_MPI_request)) event.request = fdri_atomic_add_relaxed(&newest, (uint64_t)1) + 1;
    record(window, &event);
    if (event.request) post(c, window, event.request);
}

void fdri_mpi_rma_completed(const struct fdri_mpi_pending *p)
{
    struct rma event = {.what = FDRI_MPI_OP_completed, .target = UINT32_MAX, .request = p->request};
    event.completing = fdri_atomic_load_relaxed(&p->group->order->completing);
    record(p->group, &event);
}

/* ---- synchronizations ---- */

void fdri_mpi_rma_synchronized(const struct fdri_mpi_call *c)
{
    const struct fdri_mpi_members *window = window_of(c);
    if (!window) return;
    struct rma event = {.what = c->f->operation, .target = UINT32_MAX};
    if (fdri_mpi_has(c, FDRI_MPI_rank)) event.target = fdri_mpi_world_rank(window, (int)fdri_mpi_int(c, FDRI_MPI_rank));
    event.completing = fdri_atomic_add_relaxed(&window->order->completing, (uint64_t)1);
    record(window, &event);
}

/* Synchronizations that complete nothing: they have the number of the next one that does. */
void fdri_mpi_rma_locked(const struct fdri_mpi_call *c)
{
    const struct fdri_mpi_members *window = window_of(c);
    const struct fdri_mpi_library *l = fdri_mpi_library();
    int rank = fdri_mpi_has(c, FDRI_MPI_rank) ? (int)fdri_mpi_int(c, FDRI_MPI_rank) : 0;
    if (!window || rank == l->proc_null) return;
    struct rma event = {.what = c->f->operation, .target = UINT32_MAX};
    if (fdri_mpi_has(c, FDRI_MPI_rank)) event.target = fdri_mpi_world_rank(window, rank);
    if (event.what == FDRI_MPI_OP_win_sync) event.target = window->own_world;
    bool shared = event.what == FDRI_MPI_OP_lock && (int)fdri_mpi_int(c, FDRI_MPI_lock_type) == l->lock_shared;
    if (shared) event.what = FDRI_MPI_OP_lock_shared;
    event.completing = fdri_atomic_load_relaxed(&window->order->completing);
    record(window, &event);
}
