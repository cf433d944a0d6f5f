/* SPDX-License-Identifier: MIT */
/* One call of MPI: its region, and the events before and behind the library's function.
 *
 * On the way from Fortran to C the library may call MPI_Send for mpi_send_. The outer call is recorded. A mark of the
 * thread names it, so that callbacks, which call other functions, are recorded as well. */
#include <stdlib.h>
#include "adapters/mpi/adapter_parts.h"
#include "adapters/mpi/state.h"

static __thread const struct fdri_mpi_function *outer; /* the Fortran call under way, until C is reached */

typedef word six(word, word, word, word, word, word);
typedef word all(word, word, word, word, word, word, word, word, word, word, word, word, word, word, word, word);

/* A function takes the words that it knows; more of them do no harm. */
static word invoke(uintptr_t real, const word *a, int words)
{
    if (words <= 6) return ((six *)real)(a[0], a[1], a[2], a[3], a[4], a[5]);
    return ((all *)real)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
                         a[15]);
}

static word pass(struct fdri_mpi_call *c, uintptr_t real)
{
    if (c->way == FDRI_MPI_C) return invoke(real, c->arg, c->f->words);
    const struct fdri_mpi_function *before = outer;
    outer = c->f;
    invoke(real, c->arg, FDRI_MPI_WORDS);
    outer = before;
    return *(int *)c->arg[c->f->fortran_words];
}

/* The program wants no status, but fdr needs one. */
static void own_status(struct fdri_mpi_call *c)
{
    if (fdri_mpi_has(c, FDRI_MPI_status) && fdri_mpi_ignored(c, FDRI_MPI_status))
        c->arg[c->f->at[FDRI_MPI_status] - 1] = (word)c->status;
}

static word request_of(const struct fdri_mpi_call *c)
{
    return fdri_mpi_handle_at(c, FDRI_MPI_request, FDRI_MPI_REQUEST, 0);
}

/* taken: the matched message that a receive uses up */
static void before(struct fdri_mpi_call *c, struct fdri_mpi_pending *taken, struct fdri_mpi_posting *p)
{
    switch (c->f->kind) {
    case FDRI_MPI_send: fdri_mpi_messages_post_send(c, p); break;
    case FDRI_MPI_sendrecv:
    case FDRI_MPI_recv: own_status(c); break;
    case FDRI_MPI_start: fdri_mpi_messages_start(c); break;
    case FDRI_MPI_mprobe: own_status(c); break;
    case FDRI_MPI_mrecv: own_status(c); /* fall through */
    case FDRI_MPI_imrecv:
        fdri_mpi_requests_take(FDRI_MPI_OF_MESSAGES, fdri_mpi_handle_at(c, FDRI_MPI_message, FDRI_MPI_MESSAGE, 0),
                               taken);
        break;
    case FDRI_MPI_request_free:
        if (fdri_mpi_requests_take(FDRI_MPI_OF_REQUESTS, request_of(c), taken) &&
            taken->kind == FDRI_MPI_PENDING_RECV && (!taken->persistent || taken->active))
            fdri_mpi_receive_forgotten(&taken->receive);
        fdri_mpi_requests_end(taken);
        break;
    case FDRI_MPI_comm_free: fdri_mpi_members_forget(fdri_mpi_handle_at(c, FDRI_MPI_comm, FDRI_MPI_COMM, 0)); break;
    case FDRI_MPI_coll: fdri_mpi_collectives_begin(c, p); break;
    case FDRI_MPI_file:
    case FDRI_MPI_file_end: own_status(c); /* fall through */
    case FDRI_MPI_ifile:
    case FDRI_MPI_file_begin: fdri_mpi_files_begin(c, p); break;
    case FDRI_MPI_file_view: fdri_mpi_files_view(c); break;
    case FDRI_MPI_psend_init:
    case FDRI_MPI_precv_init: fdri_mpi_partitioned_begin(c, p); break;
    case FDRI_MPI_win_free: fdri_mpi_rma_window_frees(c, p); break;
    default: break;
    }
    bool both = c->f->kind == FDRI_MPI_sendrecv || c->f->kind == FDRI_MPI_isendrecv;
    if (both) fdri_mpi_messages_post_send(c, p);
    if (both || c->f->kind == FDRI_MPI_recv || c->f->kind == FDRI_MPI_irecv) fdri_mpi_messages_post_receive(c, p);
}

/* A posting made before the call learns of an error as well. */
static void after(struct fdri_mpi_call *c, struct fdri_mpi_pending *taken, struct fdri_mpi_posting *p, int error)
{
    switch (c->f->kind) {
    case FDRI_MPI_coll: fdri_mpi_collectives_end(c, p, error); break;
    case FDRI_MPI_icoll:
    case FDRI_MPI_coll_init: fdri_mpi_collectives_posted(c, error); break;
    case FDRI_MPI_send: fdri_mpi_messages_sent(c, p, error); break;
    case FDRI_MPI_recv: fdri_mpi_messages_received(c, p, error); break;
    case FDRI_MPI_sendrecv: fdri_mpi_messages_sent(c, p, error), fdri_mpi_messages_received(c, p, error); break;
    case FDRI_MPI_isendrecv: fdri_mpi_messages_sent(c, p, error), fdri_mpi_messages_receive_posted(c, p, error); break;
    case FDRI_MPI_irecv: fdri_mpi_messages_receive_posted(c, p, error); break;
    case FDRI_MPI_start: fdri_mpi_messages_started(c, error); break;
    case FDRI_MPI_psend_init:
    case FDRI_MPI_precv_init: fdri_mpi_partitioned_prepared(c, p, error); break;
    case FDRI_MPI_file:
    case FDRI_MPI_ifile:
    case FDRI_MPI_file_begin:
    case FDRI_MPI_file_end: fdri_mpi_files_end(c, p, error); break;
    case FDRI_MPI_win_free: fdri_mpi_rma_window_freed(p, error); break;
    default: break;
    }
    if (error) {
        fdri_mpi_requests_end(taken);
        return;
    }
    switch (c->f->kind) {
    case FDRI_MPI_send_init:
    case FDRI_MPI_recv_init: fdri_mpi_messages_prepared(c); break;
    case FDRI_MPI_mprobe: fdri_mpi_messages_probed(c); break;
    case FDRI_MPI_mrecv:
    case FDRI_MPI_imrecv: fdri_mpi_messages_matched_receive(c, taken); break;
    case FDRI_MPI_cancel: fdri_mpi_messages_cancelled(c); break;
    case FDRI_MPI_comm_new: fdri_mpi_identities_created(c); break;
    case FDRI_MPI_win_new: fdri_mpi_rma_window_made(c); break;
    case FDRI_MPI_rma: fdri_mpi_rma_operation(c); break;
    case FDRI_MPI_rma_sync: fdri_mpi_rma_synchronized(c); break;
    case FDRI_MPI_rma_lock: fdri_mpi_rma_locked(c); break;
    default: break;
    }
}

/* Apart: its scratch is large. */
static __attribute__((noinline)) word completing(struct fdri_mpi_call *c, uintptr_t real)
{
    struct fdri_mpi_completion done;
    fdri_mpi_completion_before(c, &done);
    fdri_mpi_state_enter(c, NULL, &done);
    word result = pass(c, real);
    fdri_mpi_state_leave();
    fdri_mpi_completion_after(c, &done, (int)result);
    return result;
}

static word pass_only(struct fdri_mpi_call *c, uintptr_t real)
{
    fdri_mpi_state_enter(c, NULL, NULL);
    word result = pass(c, real);
    fdri_mpi_state_leave();
    return result;
}

static word observed(struct fdri_mpi_call *c, uintptr_t real)
{
    if (c->f->kind == FDRI_MPI_wait) return fdri_mpi_requests_any() ? completing(c, real) : pass_only(c, real);
    struct fdri_mpi_pending taken = {0};
    struct fdri_mpi_posting posting = {.ordinal = FDR_ORDINAL_UNKNOWN};
    before(c, &taken, &posting);
    fdri_mpi_state_enter(c, &posting, NULL);
    word result = pass(c, real);
    fdri_mpi_state_leave();
    after(c, &taken, &posting, (int)result);
    return result;
}

/* Communicators and windows are known, whatever is recorded. */
static bool makes_or_frees(uint8_t kind)
{
    return kind == FDRI_MPI_comm_free || kind == FDRI_MPI_comm_new || kind == FDRI_MPI_win_free ||
           kind == FDRI_MPI_win_new;
}

static word in_region(struct fdri_mpi_call *c, uintptr_t real)
{
    uint8_t kind = c->f->kind;
    if (kind == FDRI_MPI_init || kind == FDRI_MPI_session_init) fdri_mpi_life_before_init();
    fdr_region region = fdr_scope_enter_(&c->f->region, c->f->name, c->f->group, 0);
    if (kind == FDRI_MPI_finalize) fdri_mpi_life_before_finalize();
    if (kind == FDRI_MPI_session_finalize) fdri_mpi_life_before_session_finalize(c);
    if (kind == FDRI_MPI_abort) fdri_mpi_life_before_abort(c);
    c->runs = fdri_mpi_library() != NULL;
    bool plain = kind == FDRI_MPI_region || kind >= FDRI_MPI_init || !c->runs;
    bool records = !plain && (region != FDR_NOT_ENTERED_ || fdri_mpi_requests_any() || makes_or_frees(kind));
    word result = records ? observed(c, real) : pass_only(c, real);
    if (kind == FDRI_MPI_init) fdri_mpi_life_after_init((int)result);
    if (kind == FDRI_MPI_session_init) fdri_mpi_life_after_session_init(c, (int)result);
    if (region != FDR_NOT_ENTERED_) fdr_leave(region);
    return result;
}

/* No MPI library has the function. */
static word nowhere(struct fdri_mpi_call *c)
{
    if (c->f->kind == FDRI_MPI_abort) { /* the caller expects no return */
        fdri_mpi_life_before_abort(c);
        _Exit((int)fdri_mpi_int(c, FDRI_MPI_errorcode));
    }
    int error = fdri_mpi_life_not_there(c->f->name);
    if (c->way == FDRI_MPI_C) return error;
    if (!c->arg[c->f->fortran_words]) _Exit(error); /* the caller left the code out, so an error ends the job */
    *(int *)c->arg[c->f->fortran_words] = error;
    return error;
}

word fdri_mpi_call(struct fdri_mpi_function *f, enum fdri_mpi_way way, word *arg)
{
    struct fdri_mpi_call c = {.f = f, .arg = arg, .way = way};
    uintptr_t real = fdri_mpi_real(f, way);
    if (!real) return nowhere(&c);
    if (way == FDRI_MPI_C) {
        if (outer != f) return in_region(&c, real);
        outer = NULL;
        word result = invoke(real, arg, f->words);
        outer = f;
        return result;
    }
    const struct fdri_mpi_library *l = fdri_mpi_library_known();
    if (l && l->fortran_calls_c && way == FDRI_MPI_FORTRAN) return invoke(real, arg, FDRI_MPI_WORDS);
    int unwanted = 0;
    if (!arg[f->fortran_words]) arg[f->fortran_words] = (word)&unwanted; /* mpi_f08 may leave it out */
    return in_region(&c, real);
}
