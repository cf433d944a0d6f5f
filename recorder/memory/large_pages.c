/* SPDX-License-Identifier: MIT */
/* The arena's mapping, in pages of 2 MiB where the kernel makes them at once. A bin is a page of 4 KiB or less and
 * comes back when all others have been used: so nearly each one that is opened, or looked at to be given back, would
 * wait for an entry of the TLB, and take one from the program. MADV_COLLAPSE (Linux 6.1) does this for files in a tmpfs
 * as well, however the kernel is set. It is asked for at the start only: later it would be page faults of whoever
 * records. */
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

enum { LARGE = 2 << 20, GUARD = 65536, MOST_NS = 500000000 }; /* GUARD: a page of any machine */

static struct {
    uint8_t *at;
    uint64_t bytes;
} place; /* of the newest mapping, with what is around it */

/* Of hugetlbfs whole pages are mapped, whatever is asked for, and over what is behind: they may be of 1 GiB. */
static uint64_t page_of(int fd)
{
    struct statfs f;
    bool huge = fd >= 0 && fstatfs(fd, &f) == 0 && f.f_type == HUGETLBFS_MAGIC;
    return huge ? fdri_bits_max((uint64_t)f.f_bsize, LARGE) : LARGE;
}

/* Where a large page may begin. Pages nobody may touch on both sides keep the kernel from joining anonymous
 * memory with a neighbour: so it is found at the start of a mapping, by who looks from outside and in a core file. */
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
    place.bytes = 0; /* another's from now on */
}

/* With what is around it: so the kernel makes one mapping of all that is left of many recordings. */
void fdri_memory_pages_empty(void)
{
    void *m = mmap(place.at, place.bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    (void)m; /* failing leaves the old memory in place, which is as good */
}

/* One small page of each is there before: there is nothing to be gathered where all are missing. For how many bytes
 * that was done. */
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
static uint32_t under_way; /* atomic: the process whose thread is about it, 0: none; a child has none of its parent's */

/* It writes nothing: who waits for it may have gone on when it comes to the next page. What fails stays as it is. */
static void *make_all(void *unused)
{
    uint64_t off = 0;
    do {
        if (madvise(job.memory + off, LARGE, MADV_COLLAPSE)) break;
        off += LARGE;
    } while (off < job.bytes && fdri_clock_ns(CLOCK_MONOTONIC) < job.until);
    sem_post(&job.over);
    /* R:pages - pairs with A:pages: nothing of the job is touched any more */
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

/* Where memory is in small pieces the kernel may take long to gather it, and on a busy machine many seconds for one
 * page: it waits until each processor has emptied its lists. So a thread of its own asks, and who starts the recording
 * waits so long and no longer: what that thread is about it finishes, and asks for no more. */
void fdri_memory_pages_large(void *memory, uint64_t bytes, int fd)
{
    int saved = errno;
    pthread_t asks;
    sigset_t old;
    if (bytes < LARGE) return;
    uint32_t pid = (uint32_t)fdri_system_getpid();
    /* A:pages - that of an earlier recording is waiting still */
    if (fdri_atomic_load_acquire(&under_way) == pid) return;
    job.memory = memory;
    job.bytes = begin_each(memory, bytes, fd);
    job.until = fdri_clock_ns(CLOCK_MONOTONIC) + MOST_NS;
    sem_init(&job.over, 0, 0);
    fdri_atomic_store_relaxed(&under_way, pid);
    fdri_system_signals_block(&old); /* the application's signals are not its to take */
    int e = pthread_create(&asks, NULL, make_all, NULL);
    if (!e) fdri_fd_name_thread(asks, FDRI_SYSTEM_THREAD_PAGES);
    fdri_system_signals_restore(&old);
    if (e) fdri_atomic_store_relaxed(&under_way, 0u); /* small pages will do */
    else if (over_in_time()) pthread_join(asks, NULL);
    else pthread_detach(asks);
    errno = saved;
}
