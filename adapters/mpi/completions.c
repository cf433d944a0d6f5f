/* SPDX-License-Identifier: MIT */
/* MPI_Wait, MPI_Test and their variants for several requests. The library overwrites the handle of a completed request.
 * So fdr copies handles before the call, into memory of fixed size, and claims the requests in the table. It gives back
 * those that did not complete. Programs poll, and most polls complete nothing. So where no other thread is in MPI, fdr
 * claims the requests of MPI_Test and the like after the call, if one completes. Where the program ignores statuses,
 * the library fills fdr's own. */
#include <string.h>
#include "adapters/mpi/adapter_parts.h"
#include "base/atomic.h"

enum { POOLS = 16 };
/* For calls with more requests than the stack has room for; memory that is never touched costs nothing. */
static struct pool {
    uint32_t taken;
    word handle[FDRI_MPI_MANY];
    struct fdri_mpi_pending *claimed[FDRI_MPI_MANY];
    uint64_t statuses[FDRI_MPI_MANY * FDRI_MPI_STATUS_BYTES / 8];
} pools[POOLS];

static bool from_pool(struct fdri_mpi_completion *done, int count)
{
    for (int i = 0; i < POOLS && count <= FDRI_MPI_MANY; i++) {
        if (fdri_atomic_swap_acq_rel(&pools[i].taken, 1)) continue; /* L:scratch */
        done->pool = &pools[i].taken;
        done->handle = pools[i].handle, done->claimed = pools[i].claimed, done->statuses = pools[i].statuses;
        return true;
    }
    return false;
}

static int requests_of(const struct fdri_mpi_call *c)
{
    if (fdri_mpi_has(c, FDRI_MPI_request)) return 1;
    int64_t count = fdri_mpi_int(c, fdri_mpi_has(c, FDRI_MPI_incount) ? FDRI_MPI_incount : FDRI_MPI_count);
    return count > 0 ? (int)count : 0;
}

static enum fdri_mpi_role role_of_requests(const struct fdri_mpi_call *c)
{
    return fdri_mpi_has(c, FDRI_MPI_request) ? FDRI_MPI_request : FDRI_MPI_array_of_requests;
}

static enum fdri_mpi_role role_of_statuses(const struct fdri_mpi_call *c)
{
    return fdri_mpi_has(c, FDRI_MPI_status) ? FDRI_MPI_status : FDRI_MPI_array_of_statuses;
}

/* Requests that nobody will see complete leave the table: MPI will give their handles to others. Persistent ones
 * stay. */
static void leave_out(const struct fdri_mpi_call *c, int count)
{
    struct fdri_mpi_pending p;
    for (int i = 0; i < count; i++) {
        word handle = fdri_mpi_handle_at(c, role_of_requests(c), FDRI_MPI_REQUEST, i);
        if (!fdri_mpi_requests_take(FDRI_MPI_OF_REQUESTS, handle, &p)) continue;
        if (p.kind == FDRI_MPI_PENDING_RECV) fdri_mpi_receive_forgotten(&p.receive);
        p.active = false;
        if (p.persistent) fdri_mpi_requests_put(FDRI_MPI_OF_REQUESTS, handle, &p);
        else fdri_mpi_requests_end(&p);
    }
}

static int claim(struct fdri_mpi_completion *done, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        done->claimed[i] = fdri_mpi_requests_claim(done->handle[i]);
        found += done->claimed[i] != NULL;
    }
    return found;
}

void fdri_mpi_completion_before(struct fdri_mpi_call *c, struct fdri_mpi_completion *done)
{
    int count = requests_of(c);
    done->count = 0, done->pool = NULL;
    done->late = fdri_mpi_has(c, FDRI_MPI_flag) && fdri_mpi_library_one_thread();
    done->handle = done->few_handles, done->claimed = done->few_claimed, done->statuses = done->few_statuses;
    if (count > FDRI_MPI_FEW && !from_pool(done, count)) {
        fdri_mpi_requests_unseen(count);
        leave_out(c, count);
        return;
    }
    for (int i = 0; i < count; i++) done->handle[i] = fdri_mpi_handle_at(c, role_of_requests(c), FDRI_MPI_REQUEST, i);
    if (!done->late && !claim(done, count)) return;
    done->count = count;
    if (fdri_mpi_ignored(c, role_of_statuses(c))) c->arg[c->f->at[role_of_statuses(c)] - 1] = (word)done->statuses;
}

/* Request i has completed; its status is the given one of the array. */
static void completed(const struct fdri_mpi_call *c, struct fdri_mpi_completion *done, int i, int status)
{
    if (i < 0 || i >= done->count || !done->claimed[i]) return;
    struct fdri_mpi_pending *p = done->claimed[i];
    const unsigned char *statuses = (const unsigned char *)fdri_mpi_ints(c, role_of_statuses(c));
    fdri_mpi_messages_completed(p, statuses + (size_t)status * fdri_mpi_library()->status_bytes);
    p->active = false;
    if (p->persistent) return; /* it is given back */
    fdri_mpi_requests_end_claimed(p);
    done->claimed[i] = NULL;
}

static bool changed(const struct fdri_mpi_call *c, const struct fdri_mpi_completion *done, int i)
{
    return i >= 0 && i < done->count &&
           fdri_mpi_handle_at(c, role_of_requests(c), FDRI_MPI_REQUEST, i) != done->handle[i];
}

/* Fortran counts from 1. The mpi_f08 of MPICH 4.0 returns numbers from 0; the handles that the call has set to
 * MPI_REQUEST_NULL show which it is. */
static int first_index(const struct fdri_mpi_call *c, const struct fdri_mpi_completion *done, const int *index,
                       int count)
{
    if (c->way == FDRI_MPI_C) return 0;
    for (int i = 0; c->way == FDRI_MPI_F08 && i < count; i++)
        if (!changed(c, done, index[i] - 1) && changed(c, done, index[i])) return 0;
    return 1;
}

static void look(const struct fdri_mpi_call *c, struct fdri_mpi_completion *done)
{
    if (fdri_mpi_has(c, FDRI_MPI_flag) && !fdri_mpi_out(c, FDRI_MPI_flag)) return;
    if (fdri_mpi_has(c, FDRI_MPI_indx)) {
        int index = fdri_mpi_out(c, FDRI_MPI_indx);
        completed(c, done, index - first_index(c, done, &index, 1), 0);
    } else if (fdri_mpi_has(c, FDRI_MPI_outcount)) {
        int count = fdri_mpi_out(c, FDRI_MPI_outcount);
        const int *index = fdri_mpi_ints(c, FDRI_MPI_array_of_indices);
        int first = first_index(c, done, index, count);
        for (int i = 0; i < count; i++) completed(c, done, index[i] - first, i);
    } else {
        for (int i = 0; i < done->count; i++) completed(c, done, i, i);
    }
}

static void failed(struct fdri_mpi_pending *p)
{
    if (p->kind == FDRI_MPI_PENDING_FILE) fdri_mpi_files_completed(p, NULL);
    fdri_mpi_requests_end_claimed(p);
}

void fdri_mpi_completion_after(struct fdri_mpi_call *c, struct fdri_mpi_completion *done, int error)
{
    bool completes = error || !done->late || fdri_mpi_out(c, FDRI_MPI_flag);
    if (done->late && (!completes || !claim(done, done->count))) done->count = 0;
    if (!error && done->count) look(c, done);
    /* after an error a request may have completed or not: its handle tells */
    for (int i = 0; i < done->count; i++) {
        if (!done->claimed[i]) continue;
        if (error && changed(c, done, i)) failed(done->claimed[i]);
        else fdri_mpi_requests_give_back(done->handle[i], done->claimed[i]);
    }
    if (done->pool) fdri_atomic_store_release(done->pool, 0); /* R:scratch */
}
