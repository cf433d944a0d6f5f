/* SPDX-License-Identifier: MIT */
/* MPI_Abort leaves a bundle before it ends the job, where FDR_CRASH=exit asks for it: behind it there are between no time at
 * all (MPICH) and a second (Open MPI) until every process of the job is killed.
 *
 * By the profiling interface of the MPI standard: MPI_Abort is ours, PMPI_Abort the library's. No MPI header is needed, so one
 * library serves all of them: a communicator is an int or a pointer, and either comes through in a register of a pointer's
 * width. Fortran has entry points of its own; which of them end in C's is different from library to library, so each is
 * here, and the second one finds recording off. */
#include <fdr/fdr.h>
#include <stdlib.h>

#define WEAK __attribute__((weak))

extern int PMPI_Abort(void *communicator, int code) WEAK;
extern void pmpi_abort_(int *communicator, int *code, int *error) WEAK;
extern void pmpi_abort_f08_(int *communicator, int *code, int *error) WEAK;

FDR_API int MPI_Abort(void *communicator, int code);
FDR_API void mpi_abort_(int *communicator, int *code, int *error);
FDR_API void mpi_abort_f08_(int *communicator, int *code, int *error);

int MPI_Abort(void *communicator, int code)
{
    fdr_ending("MPI_Abort", code);
    if (!PMPI_Abort) _Exit(code); /* no MPI library at all: nobody expects to come back */
    return PMPI_Abort(communicator, code);
}

void mpi_abort_(int *communicator, int *code, int *error)
{
    fdr_ending("MPI_Abort", *code);
    if (pmpi_abort_) pmpi_abort_(communicator, code, error);
}

/* error: NULL where the caller left it out */
void mpi_abort_f08_(int *communicator, int *code, int *error)
{
    fdr_ending("MPI_Abort", *code);
    if (pmpi_abort_f08_) pmpi_abort_f08_(communicator, code, error);
}
