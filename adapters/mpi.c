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
 * neither name is there, it is the next one of the name that we have taken. Where MPI came with a plugin (dlopen) it is
 * looked for in all that is loaded; and where it is nowhere, nobody is told that it was initialised. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fdr/fdr.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))

typedef void abort_f(int *communicator, int *code, int *error);
typedef void init_f(int *error);
typedef void init_thread_f(int *required, int *provided, int *error);

typedef int init_c(int *count, char ***words);
typedef int init_thread_c(int *count, char ***words, int required, int *provided);
extern int PMPI_Abort(void *communicator, int code) WEAK;
extern init_c PMPI_Init WEAK;
extern init_thread_c PMPI_Init_thread WEAK;
extern abort_f pmpi_abort_ WEAK, pmpi_abort_f08_ WEAK, pmpir_abort_f08_ WEAK;
extern init_f pmpi_init_ WEAK, pmpi_init_f08_ WEAK, pmpir_init_f08_ WEAK;
extern init_thread_f pmpi_init_thread_ WEAK, pmpi_init_thread_f08_ WEAK, pmpir_init_thread_f08_ WEAK;

FDR_API int MPI_Abort(void *communicator, int code);
FDR_API int MPI_Init(int *count, char ***words);
FDR_API int MPI_Init_thread(int *count, char ***words, int required, int *provided);
FDR_API abort_f mpi_abort_, mpi_abort_f08_;
FDR_API init_f mpi_init_, mpi_init_f08_;
FDR_API init_thread_f mpi_init_thread_, mpi_init_thread_f08_;

enum { LOADED = 1024, NOT_THERE = 16 }; /* an error of MPI: in all libraries other than MPI_SUCCESS */

struct loaded {
    char *name[LOADED];
    int count;
};

static int note(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct loaded *l = argument;
    (void)size;
    if (info->dlpi_name && *info->dlpi_name && l->count < LOADED)
        if ((l->name[l->count] = strdup(info->dlpi_name))) l->count++;
    return 0;
}

/* In a library that was loaded for itself alone. It is asked for behind the look at all, which holds the loader's
 * lock. */
static uintptr_t in_any(const char *name)
{
    struct loaded l;
    uintptr_t found = 0;
    l.count = 0;
    dl_iterate_phdr(note, &l);
    for (int i = 0; i < l.count; i++) {
        void *library = found ? NULL : dlopen(l.name[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) found = (uintptr_t)dlsym(library, name);
        if (library) dlclose(library);
        free(l.name[i]);
    }
    return found;
}

/* The library's own function: of the profiling interface, or the one that ours stands in front of. 0: there is none. */
static uintptr_t real(const char *profiling, const char *name)
{
    uintptr_t f = (uintptr_t)dlsym(RTLD_DEFAULT, profiling);
    if (!f) f = (uintptr_t)dlsym(RTLD_NEXT, name);
    return f ? f : in_any(profiling);
}

static int not_there(const char *name)
{
    fprintf(stderr,
            "fdr: %s: no MPI library behind libfdr-mpi has P%s; MPI is not initialised, and an error is returned (a "
            "static library: link with -Wl,-u,P%s)\n",
            name, name, name);
    return NOT_THERE;
}

/* NULL where the caller left it out: then an error ends the job. */
static void set(int *error, int code)
{
    if (!error) _Exit(code);
    *error = code;
}

/* ---- the end ---- */

int MPI_Abort(void *communicator, int code)
{
    fdr_ending("MPI_Abort", code); /* first: looking for it takes the loader's lock */
    int (*f)(void *, int) = PMPI_Abort ? PMPI_Abort : (int (*)(void *, int))real("PMPI_Abort", "MPI_Abort");
    if (!f) _Exit(code); /* no MPI library at all: nobody expects to come back */
    return f(communicator, code);
}

void mpi_abort_(int *communicator, int *code, int *error)
{
    fdr_ending("MPI_Abort", *code);
    abort_f *f = pmpi_abort_ ? pmpi_abort_ : (abort_f *)real("pmpi_abort_", "mpi_abort_");
    if (!f) _Exit(*code);
    f(communicator, code, error);
}

/* error: NULL where the caller left it out */
void mpi_abort_f08_(int *communicator, int *code, int *error)
{
    fdr_ending("MPI_Abort", *code);
    abort_f *f = pmpi_abort_f08_    ? pmpi_abort_f08_
                 : pmpir_abort_f08_ ? pmpir_abort_f08_
                                    : (abort_f *)real("pmpi_abort_f08_", "mpi_abort_f08_");
    if (!f) _Exit(*code);
    f(communicator, code, error);
}

/* ---- the beginning ---- */

int MPI_Init(int *count, char ***words)
{
    init_c *f = PMPI_Init ? PMPI_Init : (init_c *)real("PMPI_Init", "MPI_Init");
    int e = f ? f(count, words) : not_there("MPI_Init");
    fdr_handlers_changed();
    return e;
}

int MPI_Init_thread(int *count, char ***words, int required, int *provided)
{
    init_thread_c *f = PMPI_Init_thread ? PMPI_Init_thread
                                        : (init_thread_c *)real("PMPI_Init_thread", "MPI_Init_thread");
    int e = f ? f(count, words, required, provided) : not_there("MPI_Init_thread");
    fdr_handlers_changed();
    return e;
}

void mpi_init_(int *error)
{
    init_f *f = pmpi_init_ ? pmpi_init_ : (init_f *)real("pmpi_init_", "mpi_init_");
    if (f) f(error);
    else set(error, not_there("MPI_Init"));
    fdr_handlers_changed();
}

void mpi_init_f08_(int *error)
{
    init_f *f = pmpi_init_f08_    ? pmpi_init_f08_
                : pmpir_init_f08_ ? pmpir_init_f08_
                                  : (init_f *)real("pmpi_init_f08_", "mpi_init_f08_");
    if (f) f(error);
    else set(error, not_there("MPI_Init"));
    fdr_handlers_changed();
}

void mpi_init_thread_(int *required, int *provided, int *error)
{
    init_thread_f *f = pmpi_init_thread_ ? pmpi_init_thread_
                                         : (init_thread_f *)real("pmpi_init_thread_", "mpi_init_thread_");
    if (f) f(required, provided, error);
    else set(error, not_there("MPI_Init_thread"));
    fdr_handlers_changed();
}

void mpi_init_thread_f08_(int *required, int *provided, int *error)
{
    init_thread_f *f = pmpi_init_thread_f08_ ? pmpi_init_thread_f08_
                       : pmpir_init_thread_f08_
                           ? pmpir_init_thread_f08_
                           : (init_thread_f *)real("pmpi_init_thread_f08_", "mpi_init_thread_f08_");
    if (f) f(required, provided, error);
    else set(error, not_there("MPI_Init_thread"));
    fdr_handlers_changed();
}
