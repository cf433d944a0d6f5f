/* SPDX-License-Identifier: MIT */
/* MPI: every call becomes a region, with the messages and collectives in it (this header). It uses the profiling
 * interface of the MPI standard: MPI_Send is fdr's, PMPI_Send the library's. No MPI header is needed, so one library
 * serves all MPI libraries: an argument is a word that passes through.
 *
 *   functions.txt     the functions and their arguments    mpi_function.h     one of them; FdrMpi.cmake makes them
 *   mpi_call.c        one call: region, before, after      real_function.c    the library's own functions
 *   mpi_library.c     what differs between libraries       life_of_mpi.c      MPI_Init, MPI_Finalize, MPI_Abort
 *   communicators.c   members and world ranks              member_lists.c     lists of members, each once
 *   point_to_point.c  sends and receives                   completions.c      MPI_Wait..., MPI_Test...
 *   requests.c        the table of open requests           request_events.c   requests as events: FDR_MPI_REQUESTS
 *   collectives.c     operations and their bytes           neighborhoods.c    those among neighbors
 *   partitioned.c     MPI_Psend_init, MPI_Precv_init       files.c            MPI_File_...
 *   one_sided.c       MPI_Put, MPI_Win_...                 mpi_operation.h    numbers of operations
 *   sessions.c        MPI_Session_init                     adapter_parts.h    what these files share
 *   numbers.c         counts messages and collectives      receive_order.c    receives whose number is open
 *   identities.c      communicators of equal identity      numbers.h          the door of these three
 *   state.c, state.h  what each thread is in, waits for    pcontrol.c        MPI_Pcontrol
 *
 * Above it: the public header. */
#ifndef FDRI_MPI_ADAPTER_H
#define FDRI_MPI_ADAPTER_H
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>
#include "adapters/mpi/mpi_function.h"

enum { FDRI_MPI_WORDS = 16, FDRI_MPI_STATUS_BYTES = 32 };

/* One call under way. */
struct fdri_mpi_call {
    struct fdri_mpi_function *f;
    word *arg; /* the words that go to the library */
    enum fdri_mpi_way way;
    bool runs;                                  /* MPI runs, and its library is of a known kind */
    uint64_t status[FDRI_MPI_STATUS_BYTES / 8]; /* for the library, if the program wants none */
};

/* ---- mpi_call.c: a call of the program; `arg` holds its arguments ---- */
word fdri_mpi_call(struct fdri_mpi_function *f, enum fdri_mpi_way way, word *arg);

/* ---- real_function.c ---- */
/* The function of the library; 0: no library has it. */
uintptr_t fdri_mpi_real(struct fdri_mpi_function *f, enum fdri_mpi_way way);
/* "PMPI_Comm_rank" or another name, in any loaded library; 0: none. */
uintptr_t fdri_mpi_find(const char *profiling);

/* ---- mpi_library.c ---- */
struct fdri_mpi_library {
    const char *name;
    uint8_t handle_bytes, status_bytes, source_at, tag_at;
    bool fortran_calls_c; /* mpi_send_ calls MPI_Send and not PMPI_Send, so the call is recorded there */
    int proc_null, root, lock_shared;
    word status_ignore, in_place, world, self, comm_null, byte, no_op;
    /* where the handle is an address */
    const char *world_symbol, *self_symbol, *null_symbol, *byte_symbol, *no_op_symbol;
    const char *fortran_status_ignore, *fortran_statuses_ignore; /* of mpif.h, or of mpi_f08 if mpif.h calls C */
};
/* The library, while MPI runs and is of a known kind; else NULL. */
const struct fdri_mpi_library *fdri_mpi_library(void);
/* The same, whether MPI runs or not. */
const struct fdri_mpi_library *fdri_mpi_library_known(void);
void fdri_mpi_library_begins(void);        /* also without MPI_Init: a session */
void fdri_mpi_library_learn_threads(void); /* after MPI_Init */
/* Is at most one thread at a time in MPI? False also where fdr does not know. */
bool fdri_mpi_library_one_thread(void);
void fdri_mpi_library_pauses(void); /* the last session ends; MPI_Init may follow */
void fdri_mpi_library_ends(void);
bool fdri_mpi_library_has_world(void); /* between MPI_Init and MPI_Finalize */

/* Arguments of a call as C has them. */
bool fdri_mpi_has(const struct fdri_mpi_call *c, enum fdri_mpi_role role);
int64_t fdri_mpi_int(const struct fdri_mpi_call *c, enum fdri_mpi_role role);             /* passed by value */
int64_t fdri_mpi_count(const struct fdri_mpi_call *c, enum fdri_mpi_role role);           /* the same, of counts */
int64_t fdri_mpi_count_at(const struct fdri_mpi_call *c, enum fdri_mpi_role role, int i); /* in an array */
int64_t fdri_mpi_wide(const struct fdri_mpi_call *c, enum fdri_mpi_role role); /* MPI_Offset, or always MPI_Count */
/* A text, without the blanks at the end of Fortran's; the only one of the call. */
void fdri_mpi_text(const struct fdri_mpi_call *c, enum fdri_mpi_role role, char *text, size_t bytes);
int fdri_mpi_out(const struct fdri_mpi_call *c, enum fdri_mpi_role role);         /* passed by address */
const int *fdri_mpi_ints(const struct fdri_mpi_call *c, enum fdri_mpi_role role); /* an array of int */
enum fdri_mpi_handle {
    FDRI_MPI_COMM,
    FDRI_MPI_TYPE,
    FDRI_MPI_REQUEST,
    FDRI_MPI_MESSAGE,
    FDRI_MPI_FILE,
    FDRI_MPI_WIN,
    FDRI_MPI_REDUCTION,
    FDRI_MPI_SESSION,
    FDRI_MPI_HANDLES
};
word fdri_mpi_handle(const struct fdri_mpi_call *c, enum fdri_mpi_role role, enum fdri_mpi_handle what);
word fdri_mpi_handle_at(const struct fdri_mpi_call *c, enum fdri_mpi_role role, enum fdri_mpi_handle what, int i);
bool fdri_mpi_in_place(const struct fdri_mpi_call *c, enum fdri_mpi_role role);
bool fdri_mpi_ignored(const struct fdri_mpi_call *c, enum fdri_mpi_role role); /* no status is wanted */
/* Bytes of `count` elements; 0 if the library does not know. */
uint64_t fdri_mpi_bytes(int64_t count, word datatype);

struct fdri_mpi_status { /* of a message that was received */
    int source, tag;
    bool cancelled;
    uint64_t bytes;
};
struct fdri_mpi_status fdri_mpi_status(const void *status);

/* ---- communicators.c ---- */
struct fdri_mpi_members {
    fdr_comm_id id;
    int size, rank;        /* of the group messages go to; rank of this process in its own group */
    bool inter;            /* an intercommunicator */
    bool window;           /* of MPI_Win_create and the like */
    uint32_t own_world;    /* world rank of this process */
    const uint32_t *world; /* world ranks of the group; UINT32_MAX: outside of this world */
    struct fdri_mpi_order *order;
};
/* NULL: no room, or MPI says an error. */
const struct fdri_mpi_members *fdri_mpi_members(word comm);
/* The same without a question to MPI about a communicator that was never seen: its handle may be wrong. */
const struct fdri_mpi_members *fdri_mpi_members_known(word comm);
/* A communicator with this identity. like: has the same members; NULL: MPI tells them. */
const struct fdri_mpi_members *fdri_mpi_members_new(word comm, uint64_t identity, const struct fdri_mpi_members *like);
/* The same members, for one request: messages of an envelope of their own. Its one user is the caller. */
const struct fdri_mpi_members *fdri_mpi_members_of_request(word comm, const struct fdri_mpi_members *like,
                                                           uint64_t identity);
/* A window of this communicator; it has the same members. */
const struct fdri_mpi_members *fdri_mpi_members_new_window(word win, word comm, const struct fdri_mpi_members *like,
                                                           uint64_t identity);
/* NULL: fdr did not see it being made. */
const struct fdri_mpi_members *fdri_mpi_members_of_window(word win);
/* A hash of the members of its own group; 0: not known. */
uint64_t fdri_mpi_members_hash(word comm);
uint64_t fdri_mpi_mix(uint64_t a, uint64_t b);
uint32_t fdri_mpi_world_rank(const struct fdri_mpi_members *m, int rank);
void fdri_mpi_members_forget(word comm); /* it is freed */
void fdri_mpi_members_forget_window(word win);
/* A request or a waiting receive begins and ends to need it. Each use has one end; the last one frees it. */
void fdri_mpi_members_use(const struct fdri_mpi_members *m);
void fdri_mpi_members_leave(const struct fdri_mpi_members *m);

/* The world's group, of MPI_COMM_WORLD or of a session; to be freed. */
bool fdri_mpi_world_group(word *group);

/* ---- sessions.c ---- */
void fdri_mpi_sessions_opened(const struct fdri_mpi_call *c);
void fdri_mpi_sessions_closing(const struct fdri_mpi_call *c);
bool fdri_mpi_sessions_any(void);
bool fdri_mpi_sessions_world(word *group); /* of an open session */

/* ---- member_lists.c: a list equal to this one, shared by all that use it; NULL: no memory ---- */
const uint32_t *fdri_mpi_list_use(const uint32_t *world, size_t size);
void fdri_mpi_list_leave(const uint32_t *world, size_t size);

#endif
