/* SPDX-License-Identifier: MIT */
/* The code of fdr itself, by address. Its calls of read, write and the like lead to this library as the program's do,
 * and the return address tells them apart. The libraries that count for fdr belong to it.
 *
 * The ranges are noted before the program has threads. One of fdr's own may see a new range late, and a range that is
 * not written yet holds no address. */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include "adapters/io/io_adapter.h"
#include "base/atomic.h"

enum { OWN_MOST = 16 };
static struct range {
    uintptr_t from, to;
} own[OWN_MOST];
static unsigned count;

static bool is_own(const char *path)
{
    static const char *const begin[] = {"libfdr.so",   "libfdr-i",   "libfdr-mpi",
                                        "libfdr-papi", "libpapi.so", "libpfm.so"};
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (!strncmp(name, begin[i], strlen(begin[i]))) return true;
    return false;
}

static int note(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    (void)argument;
    if (!info->dlpi_name || !is_own(info->dlpi_name)) return 0;
    for (int i = 0; i < info->dlpi_phnum && count < OWN_MOST; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        if (fdri_io_own((const void *)(info->dlpi_addr + p->p_vaddr))) continue; /* it was there before */
        own[count] = (struct range){info->dlpi_addr + p->p_vaddr, info->dlpi_addr + p->p_vaddr + p->p_memsz};
        fdri_atomic_store_relaxed(&count, count + 1);
    }
    return 0;
}

void fdri_io_own_look(void) { dl_iterate_phdr(note, NULL); }

bool fdri_io_own(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    unsigned n = fdri_atomic_load_relaxed(&count);
    for (unsigned i = 0; i < n; i++)
        if (at - own[i].from < own[i].to - own[i].from) return true;
    return false;
}
