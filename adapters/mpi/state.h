/* SPDX-License-Identifier: MIT */
/* Which call of MPI each thread is in, for readers outside and after a kill. Two tallies of the thread say the call,
 * its begin, what it waits for, and how many calls have ended. docs/FORMAT.md, 13.4, has their words. state.c writes
 * them. It looks up their rows once per thread and recording. */
#ifndef FDRI_MPI_STATE_H
#define FDRI_MPI_STATE_H
#include "adapters/mpi/adapter_parts.h"

/* As FORMAT.md has them. */
enum fdri_mpi_wait {
    FDRI_MPI_WAIT_OTHER, /* not known to fdr */
    FDRI_MPI_WAIT_SEND,
    FDRI_MPI_WAIT_RECEIVE,
    FDRI_MPI_WAIT_SENDRECV,
    FDRI_MPI_WAIT_PROBE,
    FDRI_MPI_WAIT_COLLECTIVE,
    FDRI_MPI_WAIT_REQUESTS,     /* for all of them */
    FDRI_MPI_WAIT_ANY,          /* for any of them */
    FDRI_MPI_WAIT_COMM,         /* for the others that make the communicator */
    FDRI_MPI_WAIT_FINALIZE = 10 /* 9: earlier versions, in calls that do not block */
};
#define FDRI_MPI_ANY_PEER 0xfffffffeu /* as peer; UINT32_MAX: none, or outside of this world */
#define FDRI_MPI_ANY_TAG  INT32_MIN

/* The call begins to wait. posting: the message that it has posted. done: the requests that it completes. NULL:
 * none. */
void fdri_mpi_state_enter(const struct fdri_mpi_call *c, const struct fdri_mpi_posting *posting,
                          const struct fdri_mpi_completion *done);
void fdri_mpi_state_leave(void);
/* CLOCK_MONOTONIC in ns, exact to some milliseconds; no system call. */
uint64_t fdri_mpi_state_now(void);
/* World rank of the root; UINT32_MAX: none, or not known. */
uint32_t fdri_mpi_root_of(const struct fdri_mpi_call *c, const struct fdri_mpi_members *group);

#endif
