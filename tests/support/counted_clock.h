/* SPDX-License-Identifier: MIT */
/* Replaces CLOCK_MONOTONIC of the test program. The clock stands still, but each reading by a thread that has set
 * counted_ns advances it by so many nanoseconds. So recordings with timer "monotonic" have equal times in every run,
 * however busy the machine is. Only one thread may record at a time. */
#ifndef FDRI_TESTS_COUNTED_CLOCK_H
#define FDRI_TESTS_COUNTED_CLOCK_H
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread uint64_t counted_ns;
static uint64_t counted_now; /* atomic; 0 until the first reading */
/* The latest first reading, for tests whose sizes depend on the number of bits of times. */
static uint64_t counted_first_most = UINT64_MAX;

/* Advances the clock by `ns` and returns the new time. */
static inline uint64_t counted_pass(uint64_t ns)
{
    uint64_t none = 0;
    struct timespec t;
    if (!__atomic_load_n(&counted_now, __ATOMIC_RELAXED)) { /* from the machine's time on, or deadlines lie far ahead */
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
        uint64_t first = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        if (first > counted_first_most) first = counted_first_most;
        __atomic_compare_exchange_n(&counted_now, &none, first, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    return __atomic_add_fetch(&counted_now, ns, __ATOMIC_RELAXED);
}

/* Takes the place of the C library's function. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, t);
    uint64_t now = counted_pass(counted_ns);
    *t = (struct timespec){(time_t)(now / 1000000000u), (long)(now % 1000000000u)};
    return 0;
}
#endif
