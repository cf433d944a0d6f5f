/* SPDX-License-Identifier: MIT */
/* MPI_Abort leaves a bundle before it ends the job, where FDR_CRASH=exit asks for it: behind it there are between no
 * time at all (MPICH) and a second (Open MPI) until every process of the job is killed.
 *
 * MPI_Init may install handlers of signals; behind it fdr looks whether its own are still there.
 *
 * By the profiling interface of the MPI standard: MPI_Abort is ours, PMPI_Abort the library's. No MPI header is needed,
 * so one library serves all of them: a communicator is an int or a pointer, and either comes through in a register of a
 * pointer's width. Fortran has entry points of its own; which of them end in C's is different from library to library,
 * so each is here, and the second one finds recording off. MPICH calls the library's own pmpir_* for mpi_f08; where
 * neither name is there, it is the next one of the name that we have taken. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fdr/fdr.h>
#include <stdint.h>
#include <stdlib.h>

#define WEAK __attribute__((weak))

typedef void abort_f(int *communicator, int *code, int *error);
typedef void init_f(int *error);
typedef void init_thread_f(int *required, int *provided, int *error);

extern int PMPI_Abort(void *communicator, int code) WEAK;
extern int PMPI_Init(int *count, char ***words) WEAK;
extern int PMPI_Init_thread(int *count, char ***words, int required, int *provided) WEAK;
extern abort_f pmpi_abort_ WEAK, pmpi_abort_f08_ WEAK, pmpir_abort_f08_ WEAK;
extern init_f pmpi_init_ WEAK, pmpi_init_f08_ WEAK, pmpir_init_f08_ WEAK;
extern init_thread_f pmpi_init_thread_ WEAK, pmpi_init_thread_f08_ WEAK, pmpir_init_thread_f08_ WEAK;

FDR_API int MPI_Abort(void *communicator, int code);
FDR_API int MPI_Init(int *count, char ***words);
FDR_API int MPI_Init_thread(int *count, char ***words, int required, int *provided);
FDR_API abort_f mpi_abort_, mpi_abort_f08_;
FDR_API init_f mpi_init_, mpi_init_f08_;
FDR_API init_thread_f mpi_init_thread_, mpi_init_thread_f08_;

static uintptr_t next(const char *name) { return (uintptr_t)dlsym(RTLD_NEXT, name); }

/* ---- the end ---- */

int MPI_Abort(void *communicator, int code)
{
    fdr_ending("MPI_Abort", code);
    if (!PMPI_Abort) _Exit(code); /* no MPI library at all: nobody expects to come back */
    return PMPI_Abort(communicator, code);
}

void mpi_abort_(int *communicator, int *code, int *error)
{
    abort_f *real = pmpi_abort_ ? pmpi_abort_ : (abort_f *)next("mpi_abort_");
    fdr_ending("MPI_Abort", *code);
    if (!real) _Exit(*code);
    real(communicator, code, error);
}

/* error: NULL where the caller left it out */
void mpi_abort_f08_(int *communicator, int *code, int *error)
{
    abort_f *real = pmpi_abort_f08_    ? pmpi_abort_f08_
                    : pmpir_abort_f08_ ? pmpir_abort_f08_
                                       : (abort_f *)next("mpi_abort_f08_");
    fdr_ending("MPI_Abort", *code);
    if (!real) _Exit(*code);
    real(communicator, code, error);
}

/* ---- the beginning; 0 is MPI_SUCCESS ---- */

int MPI_Init(int *count, char ***words)
{
    int e = PMPI_Init ? PMPI_Init(count, words) : 0;
    fdr_handlers_changed();
    return e;
}

int MPI_Init_thread(int *count, char ***words, int required, int *provided)
{
    int e = PMPI_Init_thread ? PMPI_Init_thread(count, words, required, provided) : 0;
    fdr_handlers_changed();
    return e;
}

void mpi_init_(int *error)
{
    init_f *real = pmpi_init_ ? pmpi_init_ : (init_f *)next("mpi_init_");
    if (real) real(error);
    fdr_handlers_changed();
}

void mpi_init_f08_(int *error)
{
    init_f *real = pmpi_init_f08_    ? pmpi_init_f08_
                   : pmpir_init_f08_ ? pmpir_init_f08_
                                     : (init_f *)next("mpi_init_f08_");
    if (real) real(error);
    fdr_handlers_changed();
}

void mpi_init_thread_(int *required, int *provided, int *error)
{
    init_thread_f *real = pmpi_init_thread_ ? pmpi_init_thread_ : (init_thread_f *)next("mpi_init_thread_");
    if (real) real(required, provided, error);
    fdr_handlers_changed();
}

void mpi_init_thread_f08_(int *required, int *provided, int *error)
{
    init_thread_f *real = pmpi_init_thread_f08_    ? pmpi_init_thread_f08_
                          : pmpir_init_thread_f08_ ? pmpir_init_thread_f08_
                                                   : (init_thread_f *)next("mpi_init_thread_f08_");
    if (real) real(required, provided, error);
    fdr_handlers_changed();
}
