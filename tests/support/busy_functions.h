/* SPDX-License-Identifier: MIT */
/* The thread's CPU time, and functions that use some. For programs that a test compiles and samples, in C and C++. */
#ifndef FDRI_TESTS_SPIN_H
#define FDRI_TESTS_SPIN_H

#include <time.h>

static __thread volatile double sink;

static double now(void) /* s */
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define SPIN(name)                                                                                                     \
    __attribute__((noinline)) static void name(void)                                                                   \
    {                                                                                                                  \
        double x = 1;                                                                                                  \
        for (int i = 0; i < 20000; i++) x = x * 1.0000001 + 0.1;                                                       \
        sink = x;                                                                                                      \
    }

#endif
