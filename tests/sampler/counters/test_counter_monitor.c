/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,stress,threads timeout=120 promise=P4
 * P4: the recording holds exactly the values that the counters had. The source is made up, and threads come and go
 * while the monitor reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fd/descriptor.h"
#include "sampler/counters/counter.h"
#include "tests/support/fake_counters.h"

static void readings_are_running_counts_of_each_thread(void **state)
{
    (void)state;
    opened = closed = 0;
    start("chip:cycles,chip:instructions,chip:temperature", "", "");
    fdr_marker(fdr_marker_define("here"), 1);
    wait_for_readings(1);
    for (int i = 0; i < 50; i++) {
        fdri_atomic_add_relaxed(&cycles, 2000u);
        fdri_atomic_add_relaxed(&instructions, 1000u);
        usleep(300);
    }
    wait_for_rounds();
    wait_for_rounds(); /* nothing changes meanwhile */
    fdri_atomic_add_relaxed(&cycles, 7u);
    wait_for_rounds();
    struct fdr_file *f = take();
    struct readings r = {.thread = (uint64_t)getpid()};
    each_event(f, add_reading, &r);
    assert_true(r.count > 1 && !r.falls);
    assert_true(r.last[4] == fdri_atomic_load_relaxed(&cycles) && r.last[5] == fdri_atomic_load_relaxed(&instructions));
    assert_true(r.idle > 0); /* readings without a change are counted, not stored */
    const struct fdr_metric_info *m = fdr_metric_info(f, 3);
    assert_string_equal(m->name, "chip:temperature");
    assert_string_equal(m->unit, "mK");
    assert_false(m->counter);
    fdr_file_close(f);
    fdr_finalize();
    assert_int_equal(fdri_fd_budget_used(), 0);
    assert_int_equal(opened, closed);
}

/* Instructions per cycle: least and greatest value, and how often the quotient was unknown. */
struct quotients {
    uint64_t known, unknown;
    double least, most;
};
static void add_quotient(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_event_info *d, void *p)
{
    struct quotients *q = p;
    double v;
    (void)f;
    if (strncmp(d->name, "fdr.counters.", 13) || e->field[0] != (uint64_t)getpid()) return;
    assert_string_equal(d->field[4].name, "derived:ipc");
    assert_int_equal(d->field[4].type, FDR_VALUE_F64);
    memcpy(&v, &e->field[4], sizeof v);
    if (v != v) {
        q->unknown++;
    } else {
        if (!q->known || v < q->least) q->least = v;
        if (!q->known || v > q->most) q->most = v;
        q->known++;
    }
}

static void instructions_per_cycle(void **state)
{
    struct quotients q = {0};
    char why[FDRI_COUNTERS_WHY_BYTES];
    (void)state;
    opened = closed = 0;
    enum { SLOW = 1, FAST, HOT }; /* the numbers of the triggers, in their order below */
    triggers = "slow: metric *derived:ipc below 0.3; fast: metric *derived:ipc above 2; hot: metric *chip:temperature "
               "above 1000";
    start("ipc,chip:temperature", "", "");
    triggers = NULL;
    wait_for_readings(1);
    for (int i = 0; i < 300; i++) {
        fdri_atomic_add_relaxed(&instructions, 100u); /* read between the lines, the quotient is at most double */
        fdri_atomic_add_relaxed(&cycles, 2000u);
        usleep(1000);
    }
    for (int i = 0; i < 5000 && !fdr_trigger_count(SLOW); i++) usleep(1000);
    /* A trigger fires once until its value comes back, in each thread; ThreadSanitizer may have its own. */
    const int threads = getenv("TSAN_OPTIONS") ? 2 : 1;
    assert_in_range(fdr_trigger_count(SLOW), 1, threads);
    assert_int_equal(fdr_trigger_count(FAST), 0);
    assert_int_equal(fdr_trigger_count(HOT), 0);
    fdri_atomic_store_relaxed(&temperature, 1001u);
    for (int i = 0; i < 5000 && !fdr_trigger_count(HOT); i++) usleep(1000);
    assert_in_range(fdr_trigger_count(HOT), 1, threads);
    struct fdr_file *f = take();
    each_event(f, add_quotient, &q);
    fdr_file_close(f);
    fdr_finalize();
    assert_true(q.unknown > 0 && q.known > 0); /* before the first quotient the value is not-a-number, never 0 */
    assert_true(q.least > 0.02 && q.most < 0.3);
    /* Without the made-up source, on a machine without hardware counters, the reason names the missing part. */
    fdri_counters_source_forget();
    if (fdri_counters_source_derived.probe(FDRI_COUNTERS_IPC, why, sizeof why))
        assert_non_null(strstr(why, "perf_event_open(instructions)"));
    fdr_counter_source_add(&chip);
}

/* Probing opens and closes files. A program that begins by closing all foreign descriptors must come after that. */
static void counters_are_tried_before_init_returns(void **state)
{
    (void)state;
    tries = 0;
    try_us = 100000;
    start("chip:cycles,chip:temperature", "", "");
    unsigned after = fdri_atomic_load_relaxed(&tries);
    wait_for_readings(1);
    try_us = 0;
    assert_int_equal(after, fdri_atomic_load_relaxed(&tries));
    assert_true(after >= 2);
    fdr_finalize();
}

static void *short_life(void *p)
{
    usleep((useconds_t)(uintptr_t)p);
    return NULL;
}

static void threads_come_and_go(void **state)
{
    (void)state;
    opened = closed = 0;
    start("chip:cycles,task:page-faults", "", "");
    wait_for_readings(1);
    for (int round = 0; round < 20; round++) {
        pthread_t t[8];
        for (uintptr_t i = 0; i < 8; i++) pthread_create(&t[i], NULL, short_life, (void *)(i * 400));
        for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
    }
    struct fdr_file *f = take();
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    fdr_file_close(f);
    fdr_finalize();
    assert_int_equal(opened, closed);
    assert_int_equal(fdri_fd_budget_used(), 0);
}

static void source_that_fails_to_open_gives_no_zeros(void **state)
{
    (void)state;
    opened = closed = 0;
    open_error = -EIO;
    start("chip:cycles", "", "");
    usleep(20000);
    struct fdr_file *f = take();
    struct readings r = {.thread = (uint64_t)getpid()};
    each_event(f, add_reading, &r);
    assert_int_equal(r.count, 0);
    fdr_file_close(f);
    fdr_finalize();
    open_error = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_are_running_counts_of_each_thread), cmocka_unit_test(instructions_per_cycle),
        cmocka_unit_test(counters_are_tried_before_init_returns),     cmocka_unit_test(threads_come_and_go),
        cmocka_unit_test(source_that_fails_to_open_gives_no_zeros),
    };
    return cmocka_run_group_tests(tests, use_chip, NULL);
}
