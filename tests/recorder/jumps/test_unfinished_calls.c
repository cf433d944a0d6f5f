/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P5,P9
 * P5, P9: calls whose leave can never come must end. Calls open at pthread_exit count in the totals like all
 * others. A handler may enter a call during a record and leave by longjmp. That call must not be the parent of
 * later calls of handlers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

enum { THREADS = 40, ABANDONED = 20, MOST_JUMPS = 200000 };

static char folder[] = "/tmp/fdr-open-XXXXXX";
static fdr_region outer, inner, handler;

static void start(void)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "16M",
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .dir = folder};
    assert_int_equal(fdr_init(&c), 0);
    outer = fdr_region_define("outer", NULL, 0);
    inner = fdr_region_define("inner", NULL, 0);
    handler = fdr_region_define("handler", NULL, 0);
}

static struct fdr_file *taken(void)
{
    struct fdr_file *f;
    char message[200] = "";
    assert_int_equal(fdr_snapshot(NULL), 0);
    if (fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
    if (fdr_file_verify(f) != FDR_WHOLE) fail_msg("%s", fdr_file_damage(f, 0));
    unlink(fdr_last_snapshot());
    return f;
}

static uint64_t calls_of(const struct fdr_file *f, fdr_region region)
{
    const struct fdr_total *total;
    uint64_t calls = 0;
    size_t n = fdr_totals(f, &total);
    for (size_t i = 0; i < n; i++)
        if (total[i].class_ == FDR_IN_REGION && total[i].id == region) calls += total[i].calls;
    return calls;
}

/* ---- end of a thread ---- */

static void *leaves_nothing(void *unused)
{
    fdr_enter(outer);
    fdr_enter(inner);
    pthread_exit(unused);
}

static void P5_calls_open_at_a_threads_end(void **state)
{
    pthread_t thread;
    (void)state;
    start();
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread, NULL, leaves_nothing, NULL), 0);
        pthread_join(thread, NULL);
    }
    struct fdr_file *f = taken();
    assert_int_equal(calls_of(f, outer), THREADS);
    assert_int_equal(calls_of(f, inner), THREADS);
    for (size_t i = 0; i < fdr_location_count(f); i++) assert_int_equal(fdr_location_info(f, i)->open_count, 0);
    const struct fdr_ledger_row *row;
    size_t n = fdr_ledger(f, &row);
    uint64_t kept = 0;
    for (size_t i = 0; i < n; i++) kept += row[i].kept;
    assert_int_equal(kept, 2 * THREADS);
    fdr_file_close(f);
    fdr_finalize();
}

/* ---- a handler that leaves by longjmp ---- */

static sigjmp_buf again;

static void on_timer(int signal)
{
    (void)signal;
    fdr_enter(handler);
    siglongjmp(again, 1);
}

static void tick(long us)
{
    const struct itimerval t = {{0, 0}, {0, us}};
    setitimer(ITIMER_REAL, &t, NULL);
}

static void P9_calls_of_a_handler_that_jumped(void **state)
{
    volatile unsigned jumps = 0;
    struct sigaction a = {.sa_handler = on_timer}, old;
    (void)state;
    start();
    sigaction(SIGALRM, &a, &old);
    for (volatile uint64_t abandoned = 0; abandoned < ABANDONED && jumps < MOST_JUMPS;) {
        if (!sigsetjmp(again, 1)) {
            /* The thread's next record ends the call. On a busy machine the timer could come before that record. */
            fdr_enter(outer), fdr_leave(outer);
            tick(100 + jumps % 83);
            for (;;) {
                fdr_enter(outer);
                fdr_leave(outer);
            }
        }
        jumps++;
        if (jumps % 64) continue;
        struct fdr_file *f = taken();
        abandoned = 0;
        for (size_t i = 0; i < fdr_location_count(f); i++) abandoned += fdr_location_info(f, i)->abandoned;
        fdr_file_close(f);
    }
    tick(0);
    sigaction(SIGALRM, &old, NULL);
    fdr_enter(outer), fdr_leave(outer);
    struct fdr_file *f = taken();
    const struct fdr_ledger_row *row;
    size_t n = fdr_ledger(f, &row), lanes = 0;
    for (size_t i = 0; i < n; i++) {
        const struct fdr_location_info *l = NULL;
        for (size_t k = 0; k < fdr_location_count(f); k++)
            if (fdr_location_info(f, k)->id == row[i].location) l = fdr_location_info(f, k);
        if (!l || l->parent == UINT32_MAX || row[i].class_ != FDR_IN_REGION) continue;
        lanes++;
        if (row[i].depth > 1) fail_msg("%llu calls of handlers inside of others", (unsigned long long)row[i].presented);
    }
    assert_true(lanes > 0);
    fdr_file_close(f);
    fdr_finalize();
}

static int enter(void **state)
{
    (void)state;
    return !mkdtemp(folder);
}
static int leave(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_calls_open_at_a_threads_end),
                                       cmocka_unit_test(P9_calls_of_a_handler_that_jumped)};
    return cmocka_run_group_tests(tests, enter, leave);
}
