/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=300 promise=P10
 * P10: any thread may call any public function at any time. Threads call each of them in a loop while recordings
 * begin and end. Each call must return, and the program must not crash. (test_finalize_while_recording.c has
 * threads that record without a pause.) */
#include <errno.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "tests/support/oracle.h"
#include "tests/support/sanitized.h"

/* As in test_finalize_while_recording.c, a late thread may read memory that was emptied meanwhile, and finds
 * nothing there. fdr_usage discards its sums if the recording has ended meanwhile. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:fdri_memory_arena_drop\nrace:fdr_usage\n"; }
enum { ROUNDS = SANITIZED ? 20 : 80 };

static bool stop; /* atomic */

/* ---- the calls ---- */

static void trigger_lives(uint64_t n)
{
    static const char *const lines[] = {"a: api holdoff 0 keep 2,newest", "b: region r1* over 1ms",
                                        "c: metric m* above 5 holdoff 10ms keep 2,newest",
                                        "d: event * count 1000 holdoff 10ms keep 2,newest"};
    int t = fdr_trigger_add(lines[n % 4]);
    fdr_trigger_fire(t, (double)n);
    fdr_trigger_count(t);
    if (t > 0) fdr_trigger_remove(t);
}
static void trigger_odd(uint64_t n)
{
    fdr_trigger_fire(1 + (int)(n % 70), 1);
    fdr_trigger_count(1 + (int)(n % 70));
    if (n % 16 == 0) fdr_trigger_remove(1 + (int)(n % 70));
}
static void note(uint64_t n)
{
    char key[24];
    snprintf(key, sizeof key, "key %d", (int)(n % 40));
    fdr_note(key, n % 2 ? "one value" : "another");
}
static void define(uint64_t n)
{
    char name[24];
    const struct fdr_field field = {"f", FDR_U64, 0};
    const uint32_t ranks[2] = {0, (uint32_t)n % 7};
    snprintf(name, sizeof name, "r%d", (int)(n % 200));
    fdr_region r = fdr_region_define(name, __FILE__, 0);
    fdr_enter(r), fdr_leave(r);
    fdr_marker(fdr_marker_define(name), n);
    fdr_comm_define(name, ranks, 2);
    fdr_metric_define(n % 2 ? "m1" : "m2", "", FDR_F64, FDR_METRIC_GAUGE);
    fdr_event(fdr_event_define("e", &field, 1), &n);
}
static void by_address(uint64_t n)
{
    const char *code = (const char *)(uintptr_t)&fdr_init;
    fdr_region_define_address(code + n % 64);
    fdr_enter_address(code + n % 64);
    fdr_leave_address(code + n % 64);
    fdr_enter_function_(code, code, &n, code);
    fdr_leave_address(code);
}
static void modules(uint64_t n) { (void)n, fdr_modules_changed(); }
static void snapshot(uint64_t n)
{
    fdr_snapshot(n % 2 ? "again" : NULL);
    fdr_last_snapshot();
}
static void usage(uint64_t n) { (void)n, fdr_usage(), fdr_version(), fdr_build(); }
static void samples(uint64_t n)
{
    const uint64_t stack[2] = {n, n + 1};
    const struct fdr_look look = {.weight = 1, .pc = n, .stack = stack, .stack_count = 2};
    struct fdr_sampled *s = fdr_sampled_open(1000 + (uint32_t)n % 20, "them", FDR_BY_CPU_TIME, 1000);
    fdr_sampled_name(s, n % 2 ? "others" : "them");
    fdr_sample(s, &look);
    fdr_sample_at(s, &look, n);
    fdr_sampled_close(s);
}
static void handlers(uint64_t n) { n % 2 ? fdr_handlers_changed() : fdr_handlers_chain(); }
static void ending(uint64_t n) { fdr_ending("test", n % 2 ? 3 : 0); }
static void this_thread(uint64_t n)
{
    fdr_thread_name(n % 2 ? "one" : "two");
    fdr_pause(), fdr_marker(1, n), fdr_resume();
    fdr_phase_begin("phase"), fdr_marker(1, n), fdr_phase_end("phase");
    fdr_rewind_mark(), fdr_marker(1, n), fdr_rewind();
}
static void messages(uint64_t n)
{
    fdr_message_send(1, 2, 0, n), fdr_message_recv(1, 2, 0, n);
    fdr_collective_begin(10), fdr_collective_end(10, 0, -1, n, n);
    fdr_reading(1, &n, n ? n - 1 : 0, n);
}
static void *empty(void *unused) { return fdr_marker(1, 1), unused; }
static void comes(uint64_t n)
{
    pthread_t t;
    (void)n;
    if (!pthread_create(&t, NULL, empty, NULL)) pthread_join(t, NULL);
}

static struct caller {
    void (*call)(uint64_t);
    pthread_t thread;
    uint64_t calls; /* atomic */
} callers[] = {{.call = trigger_lives}, {.call = trigger_lives}, {.call = trigger_odd}, {.call = note},
               {.call = note},          {.call = define},        {.call = define},      {.call = by_address},
               {.call = modules},       {.call = snapshot},      {.call = usage},       {.call = samples},
               {.call = handlers},      {.call = ending},        {.call = this_thread}, {.call = messages},
               {.call = comes}};
enum { CALLERS = sizeof callers / sizeof *callers };

static void *loop(void *argument)
{
    struct caller *c = argument;
    for (uint64_t n = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); n++) {
        c->call(n);
        __atomic_fetch_add(&c->calls, 1, __ATOMIC_RELAXED);
        if (n % 8 == 7) sched_yield();
    }
    return NULL;
}

/* ---- recordings ---- */

static void one(unsigned round)
{
    static const char *const strategies[] = {"telescope", "whole", "last", "first"};
    struct fdr_config c = oracle_config(oracle_directory());
    c.strategy = strategies[round % 4];
    c.buffer = round % 3 ? "1M" : "4M";
    c.keep = "4,newest";
    c.triggers = round % 2 ? "mine: api holdoff 0 keep 2,newest; slow: region r* over 100us holdoff 1ms" : NULL;
    c.timer = NULL;
    int e = -EBUSY; /* a thread is still inside of a call */
    for (uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + 60000000000u;
         e == -EBUSY && fdri_clock_ns(CLOCK_MONOTONIC) < until;)
        e = fdr_init(&c);
    assert_int_equal(e, 0);
    uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + round % 5 * 4000000;
    while (fdri_clock_ns(CLOCK_MONOTONIC) < until) sched_yield();
    fdr_finalize();
}

static void P10_every_function_at_any_time(void **state)
{
    (void)state;
    for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&callers[i].thread, NULL, loop, &callers[i]), 0);
    for (unsigned round = 0; round < ROUNDS; round++) one(round);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i].thread, NULL); /* each thread returns */
    for (int i = 0; i < CALLERS; i++) assert_true(callers[i].calls > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_every_function_at_any_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
