/* SPDX-License-Identifier: MIT */
/* The parts of a call: what happens before and behind the library's function, and the table of open requests. */
#ifndef FDRI_MPI_ADAPTER_PARTS_H
#define FDRI_MPI_ADAPTER_PARTS_H
#include "adapters/mpi/adapter.h"
#include "adapters/mpi/numbers.h"

/* A request, or a matched message, whose completion is to be recorded. */
enum fdri_mpi_pending_kind {
    FDRI_MPI_PENDING_NONE,
    FDRI_MPI_PENDING_RECV,
    FDRI_MPI_PENDING_SEND,
    FDRI_MPI_PENDING_COLL,
    FDRI_MPI_PENDING_FILE,
    FDRI_MPI_PENDING_RMA
};
struct fdri_mpi_pending {
    uint8_t kind;
    bool persistent, active; /* active: between MPI_Start and its completion */
    bool cancelling;         /* MPI_Cancel was called */
    bool partitioned;        /* its status is not looked at */
    uint8_t operation;       /* of a collective, or on a file */
    int32_t peer, tag;       /* of a send: world rank */
    const struct fdri_mpi_members *group;
    int32_t root;
    uint64_t sent, received, ordinal; /* bytes; ordinal of a collective */
    uint64_t request;                 /* its number in events; 0: none */
    struct fdri_mpi_number send;      /* of a send */
    struct fdri_mpi_receive receive;  /* of a receive */
    fdr_io_file file;
    uint64_t began; /* of the operation on the file */
};
/* The messages and operations that a call posts. */
struct fdri_mpi_posting {
    struct fdri_mpi_number send;
    struct fdri_mpi_receive receive;
    uint64_t ordinal; /* of a collective; of a partitioned request */
    uint32_t turn;    /* of a partitioned request; 0: others are being made at once */
    fdr_io_file file;
    uint64_t began;                        /* of the operation on the file */
    const struct fdri_mpi_members *window; /* that is being freed */
};
/* Requests and messages may have equal handles: they lie in different spaces. */
enum fdri_mpi_space { FDRI_MPI_OF_REQUESTS, FDRI_MPI_OF_MESSAGES };
/* Adds a request to the table. It uses its communicator until fdri_mpi_requests_end. */
void fdri_mpi_requests_open(enum fdri_mpi_space space, word handle, struct fdri_mpi_pending *p);
/* Puts back a request that was taken. If the table has no room, the request ends. */
void fdri_mpi_requests_put(enum fdri_mpi_space space, word handle, struct fdri_mpi_pending *p);
void fdri_mpi_requests_end(struct fdri_mpi_pending *p); /* of a request that was taken; does nothing for none */
/* Takes a request out; false: it is not in the table. To be called before the library completes the request: later
 * another thread may get its handle anew. */
bool fdri_mpi_requests_take(enum fdri_mpi_space space, word handle, struct fdri_mpi_pending *p);
/* The same for a call that may complete the request, without a copy. The request stays in its place; it is the caller's
 * until one of the two below. NULL: it is not in the table. */
struct fdri_mpi_pending *fdri_mpi_requests_claim(word handle);
void fdri_mpi_requests_give_back(word handle, const struct fdri_mpi_pending *p);
void fdri_mpi_requests_end_claimed(struct fdri_mpi_pending *p);
bool fdri_mpi_requests_any(void);
void fdri_mpi_requests_unseen(int count); /* says once that messages are not recorded */
void fdri_mpi_requests_forget(void);      /* all */
/* A receive of this number was cancelled: the pending ones of its envelope behind it move down. */
void fdri_mpi_requests_move_down(const struct fdri_mpi_number *number);

/* ---- point_to_point.c: before the library's function, and after it ---- */
void fdri_mpi_messages_post_send(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p);
void fdri_mpi_messages_post_receive(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p);
void fdri_mpi_messages_start(const struct fdri_mpi_call *c);
void fdri_mpi_messages_sent(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p, int error);
void fdri_mpi_messages_received(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p, int error);
void fdri_mpi_messages_receive_posted(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p, int error);
void fdri_mpi_messages_prepared(const struct fdri_mpi_call *c); /* a persistent request */
void fdri_mpi_messages_started(const struct fdri_mpi_call *c, int error);
void fdri_mpi_messages_probed(const struct fdri_mpi_call *c);
void fdri_mpi_messages_matched_receive(const struct fdri_mpi_call *c, struct fdri_mpi_pending *message);
void fdri_mpi_messages_cancelled(const struct fdri_mpi_call *c);
void fdri_mpi_messages_completed(struct fdri_mpi_pending *p, const void *status);

/* ---- request_events.c: FDR_MPI_REQUESTS ---- */
enum fdri_mpi_request_event { /* docs/FORMAT.md, 9.4 */
                              FDRI_MPI_ISEND = 1,
                              FDRI_MPI_ISEND_COMPLETE,
                              FDRI_MPI_IRECV_POSTED,
                              FDRI_MPI_IRECV,
                              FDRI_MPI_CANCELLED = 6
};
void fdri_mpi_request_events_start(void); /* reads the setting */
uint64_t fdri_mpi_request_new(void);      /* a number; 0: requests are no events */
/* Records that, if request is not 0. */
void fdri_mpi_request_event(enum fdri_mpi_request_event what, uint64_t request);

/* ---- completions.c ---- */
/* Requests of one call: on the stack, and in memory that few calls at a time share. */
enum { FDRI_MPI_FEW = 64, FDRI_MPI_MANY = 8192 };
struct fdri_mpi_completion {
    int count;                         /* of requests; 0: none of them is in the table */
    bool late;                         /* the requests are claimed after the call, if it completes one */
    uint32_t *pool;                    /* not NULL: gives the shared memory back */
    word *handle;                      /* the three are of the call's requests */
    struct fdri_mpi_pending **claimed; /* NULL: not in the table, or completed */
    uint64_t *statuses;
    word few_handles[FDRI_MPI_FEW];
    struct fdri_mpi_pending *few_claimed[FDRI_MPI_FEW];
    uint64_t few_statuses[FDRI_MPI_FEW * FDRI_MPI_STATUS_BYTES / 8];
};
void fdri_mpi_completion_before(struct fdri_mpi_call *c, struct fdri_mpi_completion *done);
void fdri_mpi_completion_after(struct fdri_mpi_call *c, struct fdri_mpi_completion *done, int error);

/* ---- collectives.c ---- */
void fdri_mpi_collectives_begin(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p);
void fdri_mpi_collectives_end(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *p, int error);
/* Non-blocking: it has begun. Persistent: it begins at each start. */
void fdri_mpi_collectives_posted(const struct fdri_mpi_call *c, int error);
void fdri_mpi_collectives_started(struct fdri_mpi_pending *p);

/* ---- files.c ---- */
void fdri_mpi_files_begin(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p);
void fdri_mpi_files_end(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *p, int error);
void fdri_mpi_files_view(const struct fdri_mpi_call *c);
/* status: NULL: it failed. */
void fdri_mpi_files_completed(const struct fdri_mpi_pending *p, const void *status);

/* ---- one_sided.c: after the library's function without an error; a window that is freed: before and after ---- */
void fdri_mpi_rma_window_made(const struct fdri_mpi_call *c);
void fdri_mpi_rma_window_frees(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p);
void fdri_mpi_rma_window_freed(const struct fdri_mpi_posting *p, int error);
void fdri_mpi_rma_operation(const struct fdri_mpi_call *c);
void fdri_mpi_rma_synchronized(const struct fdri_mpi_call *c);
void fdri_mpi_rma_locked(const struct fdri_mpi_call *c); /* also MPI_Win_sync */
void fdri_mpi_rma_completed(const struct fdri_mpi_pending *p);

/* ---- identities.c: a communicator was made ---- */
void fdri_mpi_identities_created(const struct fdri_mpi_call *c);
/* How many were made of this before; false: no room, or not sure any more. */
bool fdri_mpi_identities_made_before(uint64_t key, uint64_t *made);
void fdri_mpi_identities_unsure(uint64_t key);

/* ---- partitioned.c ---- */
void fdri_mpi_partitioned_begin(const struct fdri_mpi_call *c, struct fdri_mpi_posting *p);
void fdri_mpi_partitioned_prepared(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *p, int error);

/* ---- life_of_mpi.c ---- */
void fdri_mpi_life_before_init(void);
void fdri_mpi_life_after_init(int error);
void fdri_mpi_life_before_finalize(void);
void fdri_mpi_life_after_session_init(const struct fdri_mpi_call *c, int error);
void fdri_mpi_life_before_session_finalize(const struct fdri_mpi_call *c);
void fdri_mpi_life_before_abort(const struct fdri_mpi_call *c);
int fdri_mpi_life_not_there(const char *name);
#endif
