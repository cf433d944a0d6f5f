/* SPDX-License-Identifier: MIT */
/* Finds the functions of the MPI library behind ours. The linker finds those of the profiling interface, also in static
 * libraries. If MPI came with a plugin (dlopen), all loaded libraries are searched. MPICH has no profiling names of
 * this kind for mpi_f08: the next definition of the intercepted name is used. Its functions with buffers have names of
 * another kind, mpi_send_f08ts_, and call MPI_Send. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
#include "adapters/mpi/adapter.h"

enum { LOADED = 1024, NAME = 80 };

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

uintptr_t fdri_mpi_find(const char *profiling)
{
    uintptr_t f = (uintptr_t)dlsym(RTLD_DEFAULT, profiling);
    return f ? f : in_any(profiling);
}

/* MPI_Send, mpi_send_ or mpi_send_f08_. */
static void entry_point(const char *c_name, enum fdri_mpi_way way, char name[NAME])
{
    static const char *const end[] = {"", "_", "_f08_"};
    snprintf(name, NAME, "%s%s", c_name, end[way]);
    for (char *p = name; way != FDRI_MPI_C && *p; p++) *p = (char)tolower((unsigned char)*p);
}

static uintptr_t search(const struct fdri_mpi_function *f, enum fdri_mpi_way way)
{
    char name[NAME], profiling[NAME + 1];
    entry_point(f->name, way, name);
    snprintf(profiling, sizeof profiling, "%c%s", way == FDRI_MPI_C ? 'P' : 'p', name);
    uintptr_t found = (uintptr_t)dlsym(RTLD_DEFAULT, profiling);
    if (!found) found = (uintptr_t)dlsym(RTLD_NEXT, name);
    return found ? found : in_any(profiling);
}

uintptr_t fdri_mpi_real(struct fdri_mpi_function *f, enum fdri_mpi_way way)
{
    uintptr_t known = __atomic_load_n(&f->real[way], __ATOMIC_RELAXED);
    if (known) return known;
    known = (uintptr_t)f->near[way];
    if (!known) known = search(f, way);
    if (known) __atomic_store_n(&f->real[way], known, __ATOMIC_RELAXED);
    return known;
}
