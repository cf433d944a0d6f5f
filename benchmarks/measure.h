/* SPDX-License-Identifier: MIT */
/* Times a pass function on this thread's own CPU clock. The work is divided into equal slices; the figure is their
 * median, in ns per call (an enter and its leave). */
#ifndef FDR_BENCH_MEASURE_H
#define FDR_BENCH_MEASURE_H
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SLICES = 20 };

/* The processor's cheapest clock, without a fence. Other processors use CLOCK_MONOTONIC. */
static inline __attribute__((always_inline, unused)) uint64_t bench_ticks(void)
{
#if __has_builtin(__builtin_ia32_rdtsc)
    return __builtin_ia32_rdtsc();
#elif __has_builtin(__builtin_aarch64_get_fpcr)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

static inline __attribute__((unused)) double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline __attribute__((unused)) int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The nth processor that this thread may run on, counted from the last. -1: it may run on fewer. */
static inline __attribute__((unused)) int nth_processor(int n)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
    for (int i = CPU_SETSIZE; i-- > 0;)
        if (CPU_ISSET(i, &set) && n-- == 0) return i;
    return -1;
}

static inline __attribute__((unused)) void pin_to(int processor)
{
    cpu_set_t set;
    if (processor < 0) return;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Pins this thread to the last processor it may run on. Threads started before are not pinned. */
static inline __attribute__((unused)) void pin_thread(void) { pin_to(nth_processor(0)); }

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline __attribute__((unused)) double measure(void (*pass)(void), long calls_per_pass, long calls)
{
    double slice[SLICES];
    long passes = calls / SLICES / calls_per_pass + 1;
    for (long i = 0; i < passes * SLICES / 4; i++) pass();
    for (int s = 0; s < SLICES; s++) {
        double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
        for (long i = 0; i < passes; i++) pass();
        slice[s] = (clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start) * 1e9 / (double)(passes * calls_per_pass);
    }
    qsort(slice, SLICES, sizeof *slice, compare_double);
    return (slice[SLICES / 2 - 1] + slice[SLICES / 2]) / 2;
}
#endif
