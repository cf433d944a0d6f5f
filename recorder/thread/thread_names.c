/* SPDX-License-Identifier: MIT */
/* Names of threads. A thread often sets its name after its first event: the first statement of a thread's function
 * comes after the compiler's hook. So the kernel's names are read anew for each snapshot, by the dumper thread now and
 * then, and by a thread that ends. A name that the program gave (fdr_thread_name) stays. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/system/procfs.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread.h"

/* The dumper looks soon after the start, when servers make their threads, and then at the newest ones. */
static const uint64_t first_wait_ns = 250000000, longest_wait_ns = 5000000000u;
enum {
    NEWEST = 256,
    OTHER = FDRI_ARENA_LOCATION_FREE | FDRI_ARENA_LOCATION_SAMPLES | FDRI_ARENA_LOCATION_ENDED |
            FDRI_ARENA_LOCATION_NAMED
};

union name {
    char text[sizeof((struct fdri_arena_location *)0)->name];
    uint64_t word[4];
};
static_assert(sizeof(union name) == 32 && offsetof(struct fdri_arena_location, name) % 8 == 0, "a name has four words");

static uint64_t *words_of(struct fdri_arena_location *l) { return (uint64_t *)(void *)l->name; }

static union name name_of_kernel(const char *comm, bool lane)
{
    union name n = {.word = {0}};
    snprintf(n.text, sizeof n.text, "%.15s%s", comm, lane ? " (signals)" : "");
    return n;
}

void fdri_thread_set_name(struct fdri_arena_location *l, const char *name)
{
    union name n = {.word = {0}};
    size_t bytes = strlen(name);
    memcpy(n.text, name, fdri_bits_min(bytes, sizeof n.text - 1));
    for (int i = 0; i < 4; i++) fdri_atomic_store_relaxed(&words_of(l)[i], n.word[i]);
}

void fdri_thread_give_name(struct fdri_arena_location *l, const char *name)
{
    fdri_atomic_store_relaxed(&l->flags, l->flags | FDRI_ARENA_LOCATION_NAMED);
    fdri_atomic_signal_fence();
    fdri_thread_set_name(l, name);
}

void fdri_thread_read_own_name(struct fdri_arena_location *l)
{
    char comm[20] = "";
    if (l->flags & FDRI_ARENA_LOCATION_NAMED || prctl(PR_GET_NAME, comm)) return;
    fdri_thread_set_name(l, name_of_kernel(comm, l->flags & FDRI_ARENA_LOCATION_LANE).text);
}

/* The thread may give itself a name at this moment, and the location may get another thread. Either changes a word, and
 * then the compare-and-swap fails. */
static void replace(struct fdri_arena_location *l, union name *old, const union name *new)
{
    for (int i = 0; i < 4; i++)
        if (old->word[i] != new->word[i] &&
            !fdri_atomic_cas_acq_rel_u64(&words_of(l)[i], &old->word[i], new->word[i])) /* L:name */
            return;
}

/* True: the location is of a live thread whose name is the kernel's. */
static bool look_at_one(struct fdri_arena_location *l)
{
    uint32_t flags = fdri_atomic_load_acquire(&l->flags); /* A:location - kind and tid were stored before LIVE */
    char comm[20];
    union name old;
    if (!(flags & FDRI_ARENA_LOCATION_LIVE) || flags & (uint32_t)OTHER) return false;
    for (int i = 0; i < 4; i++) old.word[i] = fdri_atomic_load_relaxed(&words_of(l)[i]);
    size_t n = fdri_system_read_task(fdri_atomic_load_relaxed(&l->tid), "comm", comm, sizeof comm);
    if (!n) return true;
    if (comm[n - 1] == '\n') comm[n - 1] = 0;
    union name new = name_of_kernel(comm, flags & FDRI_ARENA_LOCATION_LANE);
    if (!(fdri_atomic_load_relaxed(&l->flags) & (uint32_t)OTHER)) replace(l, &old, &new);
    return true;
}

static void look(uint32_t most)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct fdri_arena_location *l;
    uint32_t n = 0, off = fdri_atomic_load_acquire(&a->super->location_first); /* A:location - the newest first */
    for (; off && n < most; off = l->next) {
        l = fdri_bins_at(a, off);
        n += look_at_one(l);
    }
}

void fdri_thread_look_at_names(void) { look(UINT32_MAX); }

uint64_t fdri_thread_poll_names(uint64_t now_ns)
{
    static uint64_t next_ns, wait_ns;
    static uint32_t of; /* the recording that these are for */
    if (of != fdri_life_recording.number) {
        of = fdri_life_recording.number;
        wait_ns = first_wait_ns;
        next_ns = now_ns + wait_ns;
    }
    if (now_ns < next_ns) return next_ns;
    look(NEWEST);
    wait_ns = fdri_bits_min(wait_ns * 2, longest_wait_ns);
    return next_ns = now_ns + wait_ns;
}
