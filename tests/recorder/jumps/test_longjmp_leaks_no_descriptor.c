/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P8 without=tsan (it delivers signals between operations only)
 * P8: handlers leave by siglongjmp out of the middle of records. fdr then reads the thread's stack bounds from
 * /proc/self/maps, and a handler may interrupt that, too. No descriptor of that file may stay open, however often
 * this happens. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <fdr/fdr.h>

enum { THREADS = 40, CALLS = 200000 };
static fdr_region region;
static __thread sigjmp_buf away;
static __thread volatile sig_atomic_t armed;
static volatile int jumps;

static void leave(int number)
{
    (void)number;
    if (!armed) return;
    armed = 0;
    jumps = jumps + 1;
    siglongjmp(away, 1);
}

static void *records(void *unused)
{
    static __thread timer_t timer;
    static __thread volatile int calls, made;
    struct sigevent to = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
    struct itimerspec every = {.it_interval.tv_nsec = 103000, .it_value.tv_nsec = 50000};
    to._sigev_un._tid = gettid();
    (void)sigsetjmp(away, 1); /* a jump continues with the next call */
    if (!made) {
        made = 1;
        assert_int_equal(timer_create(CLOCK_MONOTONIC, &to, &timer), 0);
        assert_int_equal(timer_settime(timer, 0, &every, NULL), 0);
    }
    while (calls < CALLS) {
        calls = calls + 1;
        armed = 1;
        fdr_enter(region);
        fdr_leave(region);
    }
    armed = 0;
    timer_delete(timer);
    return unused;
}

static int maps_open(void)
{
    char path[300], to[200];
    int count = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        ssize_t n = readlink(path, to, sizeof to - 1);
        to[n > 0 ? n : 0] = 0;
        count += strstr(to, "/maps") != NULL;
    }
    closedir(d);
    return count;
}

static void P8_no_descriptor_stays(void **state)
{
    (void)state;
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .enable = "1",
                           .buffer = "4M",
                           .arena = "anonymous",
                           .signal = "none",
                           .crash = "0"};
    assert_int_equal(fdr_init(&c), 0);
    region = fdr_region_define("r", NULL, 0);
    struct sigaction s = {.sa_handler = leave};
    assert_int_equal(sigaction(SIGUSR2, &s, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, records, NULL), 0);
        pthread_join(t, NULL);
    }
    assert_true(jumps > 500); /* else the test proves nothing */
    assert_int_equal(maps_open(), 0);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_no_descriptor_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
