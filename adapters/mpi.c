/* SPDX-License-Identifier: MIT */
/* With FDR_CRASH=exit, MPI_Abort leaves a bundle before it ends the job. Afterwards all processes of the job are
 * killed, at once (MPICH) or within a second (Open MPI). MPI_Init may install signal handlers, so fdr then checks its
 * own.
 *
 * This uses the profiling interface of the MPI standard: MPI_Abort is fdr's, PMPI_Abort the library's. No MPI header is
 * needed, so one library serves all MPI libraries. A communicator is an int or a pointer, and both pass through a
 * register as wide as a pointer.
 *
 * Fortran has entry points of its own. Which of them call C's differs between libraries, so each is here; a second one
 * finds recording off. For mpi_f08 MPICH calls its own pmpir_*; if neither name exists, the next definition of the
 * intercepted name is used. If MPI came with a plugin (dlopen), all loaded libraries are searched. If none has the
 * function, MPI_Init fails with an error. */
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

enum { LOADED = 1024, NOT_THERE = 16 }; /* an MPI error code: other than MPI_SUCCESS in all libraries */

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

/* Finds a function in a library loaded with RTLD_LOCAL. dl_iterate_phdr holds the loader's lock, so the symbol is
 * looked up after it. */
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

/* The library's own function: that of the profiling interface, or the one behind ours. 0: none. */
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

/* error NULL: the caller left it out, so an error ends the job. */
static void set(int *error, int code)
{
    if (!error) _Exit(code);
    *error = code;
}

/* ---- the end ---- */

int MPI_Abort(void *communicator, int code)
{
    fdr_ending("MPI_Abort", code); /* first: the lookup takes the loader's lock */
    int (*f)(void *, int) = PMPI_Abort ? PMPI_Abort : (int (*)(void *, int))real("PMPI_Abort", "MPI_Abort");
    if (!f) _Exit(code); /* no MPI library: the caller expects no return */
    return f(communicator, code);
}

void mpi_abort_(int *communicator, int *code, int *error)
{
    fdr_ending("MPI_Abort", *code);
    abort_f *f = pmpi_abort_ ? pmpi_abort_ : (abort_f *)real("pmpi_abort_", "mpi_abort_");
    if (!f) _Exit(*code);
    f(communicator, code, error);
}

/* error: NULL if the caller left it out */
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
