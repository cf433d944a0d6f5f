/* SPDX-License-Identifier: MIT */
/* The arena's mapping, in pages of 2 MiB if the kernel provides them at once. A bin of 4 KiB is reused only after all
 * others. So with small pages, nearly each bin opened or given back would miss the TLB and take an entry from the
 * program. MADV_COLLAPSE (Linux 6.1) makes large pages also of tmpfs files, whatever the kernel's settings. It runs at
 * the start only: later, recording threads would pay for it with page faults. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fd/open_high.h"
#include "base/system/helper_threads.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "recorder/memory/memory.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { LARGE = 2 << 20, GUARD = 65536, MOST_NS = 500000000 }; /* GUARD: at least one page on any machine */

static struct {
    uint8_t *at;
    uint64_t bytes;
} place; /* of the newest mapping, its guard pages included */

/* Alignment of the mapping. hugetlbfs maps whole pages, up to 1 GiB each, over anything that lies behind. */
static uint64_t page_of(int fd)
{
    struct statfs f;
    bool huge = fd >= 0 && fstatfs(fd, &f) == 0 && f.f_type == HUGETLBFS_MAGIC;
    return huge ? fdri_bits_max((uint64_t)f.f_bsize, LARGE) : LARGE;
}

/* The mapping begins where a large page may begin. Inaccessible guard pages on both sides keep the kernel from merging
 * it with a neighbour. So external readers, and readers of a core file, find the arena at the start of a mapping. */
void *fdri_memory_pages_map(uint64_t bytes, int fd)
{
    uint64_t page = page_of(fd), room = fdri_bits_align_up(bytes, page) + page + 2 * GUARD;
    uint8_t *whole = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED) return MAP_FAILED;
    uint8_t *at = whole + (fdri_bits_align_up((uintptr_t)whole + GUARD, page) - (uintptr_t)whole);
    int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
    void *m = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    int saved = errno;
    if (m == MAP_FAILED) {
        munmap(whole, room);
        errno = saved;
        return m;
    }
    place.at = whole;
    place.bytes = room;
    return m;
}

void fdri_memory_pages_unmap(void)
{
    munmap(place.at, place.bytes);
    place.bytes = 0; /* the addresses may now be given to any mapping */
}

/* Replaces the guard pages, too: so the kernel merges the remains of many recordings into one mapping. */
void fdri_memory_pages_empty(void)
{
    void *m = mmap(place.at, place.bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    (void)m; /* failing leaves the old memory in place, which is as good */
}

/* Touches one small page in each large one, as the kernel collapses no range without pages. Returns for how many bytes
 * that succeeded. */
static uint64_t begin_each(uint8_t *memory, uint64_t bytes, int fd)
{
    uint64_t off = 0;
    for (; off + LARGE <= bytes && (fd < 0 || !posix_fallocate(fd, (off_t)off, 1)); off += LARGE)
        *(volatile uint8_t *)(memory + off) = 0;
    return off;
}

static struct {
    uint8_t *memory;
    uint64_t bytes, until;
    sem_t over;
} job;
/* Atomic: pid of the process whose helper thread runs, 0: none. A pid, as a forked child has no such thread. */
static uint32_t under_way;

/* The helper thread: collapses one large page after the other, until one fails or time is up. The starting thread may
 * have stopped waiting by then, so it writes to no memory of the job. */
static void *make_all(void *unused)
{
    uint64_t off = 0;
    do {
        if (madvise(job.memory + off, LARGE, MADV_COLLAPSE)) break;
        off += LARGE;
    } while (off < job.bytes && fdri_clock_ns(CLOCK_MONOTONIC) < job.until);
    sem_post(&job.over);
    /* R:pages - pairs with A:pages: this thread touches the job no more */
    fdri_atomic_store_release(&under_way, 0u);
    return unused;
}

static bool over_in_time(void)
{
    struct timespec until = {(time_t)(job.until / 1000000000u), (long)(job.until % 1000000000u)};
    int e;
    while ((e = sem_clockwait(&job.over, CLOCK_MONOTONIC, &until)) && errno == EINTR) {}
    return !e;
}

/* Waits for a thread that has nothing left to do. Not by pthread_join: tools that trace threads replace that, and some,
 * as EZTrace, start a recording before they know the real one. */
static void join_soon(pthread_t thread)
{
    while (pthread_tryjoin_np(thread, NULL) == EBUSY) fdri_system_sleep(20000); /* no cancellation point */
}

/* Collapsing fragmented memory may take many seconds for one page on a busy machine: the kernel waits until each
 * processor has emptied its lists. So a helper thread asks for it, and the starting thread waits 0.5 s at most. The
 * helper then finishes its page and asks for no more. */
void fdri_memory_pages_large(void *memory, uint64_t bytes, int fd)
{
    int saved = errno;
    pthread_t asks;
    sigset_t old;
    if (bytes < LARGE) return;
    uint32_t pid = (uint32_t)fdri_system_getpid();
    /* A:pages - the helper of an earlier recording still runs */
    if (fdri_atomic_load_acquire(&under_way) == pid) return;
    job.memory = memory;
    job.bytes = begin_each(memory, bytes, fd);
    job.until = fdri_clock_ns(CLOCK_MONOTONIC) + MOST_NS;
    sem_init(&job.over, 0, 0);
    fdri_atomic_store_relaxed(&under_way, pid);
    fdri_system_signals_block(&old); /* the helper must not take the application's signals */
    int e = pthread_create(&asks, NULL, make_all, NULL);
    if (!e) fdri_fd_name_thread(asks, FDRI_SYSTEM_THREAD_PAGES);
    fdri_system_signals_restore(&old);
    if (e) fdri_atomic_store_relaxed(&under_way, 0u); /* small pages then */
    else if (over_in_time()) join_soon(asks);
    else pthread_detach(asks);
    errno = saved;
}
