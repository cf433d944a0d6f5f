/* SPDX-License-Identifier: MIT */
/* An alternate signal stack for each recording thread, so that fdr can report a stack overflow. It is only reserved: no
 * page is resident until a handler runs. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "export/view.h"

enum { GUARD = 4096, ROOM = 192 * 1024 }; /* with room for handlers of the application, too */

static __thread void *mine;
static bool wanted;

void fdri_crash_stacks(bool on) { fdri_atomic_store_relaxed(&wanted, on); }

static size_t bytes(void)
{
    long least = sysconf(_SC_MINSIGSTKSZ); /* the kernel's signal frame: 12 KiB with AMX */
    return fdri_bits_align_up((uint64_t)(least > 0 ? least : 16384) + ROOM, 4096) + GUARD;
}

void fdri_crash_thread_begin(void)
{
    stack_t now, ours;
    if (!fdri_atomic_load_relaxed(&wanted) || mine) return;
    if (sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE)) return; /* the application has its own */
    char *m = mmap(NULL, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1,
                   0);
    if (m == MAP_FAILED) return; /* then a stack overflow of this thread leaves only the mapped file */
    mprotect(m, GUARD, PROT_NONE);
    ours = (stack_t){.ss_sp = m + GUARD, .ss_size = bytes() - GUARD};
    if (sigaltstack(&ours, NULL)) munmap(m, bytes());
    else mine = m;
}

void fdri_crash_thread_end(void)
{
    stack_t now, none = {.ss_flags = SS_DISABLE};
    if (!mine || sigaltstack(NULL, &now) || (now.ss_flags & SS_ONSTACK)) return;
    if (now.ss_sp == (char *)mine + GUARD && sigaltstack(&none, NULL)) return;
    munmap(mine, bytes());
    mine = NULL;
}
