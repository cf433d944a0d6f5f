/* SPDX-License-Identifier: MIT */
/* CLOCK_MONOTONIC of this program stands still, except for threads that set counted_ns: each of their readings takes so
 * many nanoseconds. Recordings by the timer "monotonic" then have the same times on every run, however busy the machine
 * is. For tests in which one thread records at a time. */
#ifndef FDRI_TESTS_COUNTED_CLOCK_H
#define FDRI_TESTS_COUNTED_CLOCK_H
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread uint64_t counted_ns;
static uint64_t counted_now; /* atomic; 0: nobody has read it yet */

/* Time goes on. Returns what it is then. */
static inline uint64_t counted_pass(uint64_t ns)
{
    uint64_t none = 0;
    struct timespec t;
    if (!__atomic_load_n(&counted_now, __ATOMIC_RELAXED)) { /* no earlier than the machine's: deadlines are not over */
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
        uint64_t first = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        __atomic_compare_exchange_n(&counted_now, &none, first, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    return __atomic_add_fetch(&counted_now, ns, __ATOMIC_RELAXED);
}

/* In the place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, t);
    uint64_t now = counted_pass(counted_ns);
    *t = (struct timespec){(time_t)(now / 1000000000u), (long)(now % 1000000000u)};
    return 0;
}
#endif
