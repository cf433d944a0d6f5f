/* SPDX-License-Identifier: MIT */
/* SIGUSR1 every 50 us to the process, for tests whose handlers record. */
#ifndef FDRI_TESTS_SIGNAL_TIMER_H
#define FDRI_TESTS_SIGNAL_TIMER_H

#include <signal.h>
#include <stddef.h>
#include <time.h>

static inline timer_t signals_begin(void (*handler)(int))
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec period = {{0, 50000}, {0, 50000}};
    signal(SIGUSR1, handler);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &period, NULL), 0);
    return timer;
}

/* ThreadSanitizer delivers late: afterwards the last signal is ignored. */
static inline void signals_end(timer_t timer)
{
    timer_delete(timer);
    signal(SIGUSR1, SIG_IGN);
}
#endif
