/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads promise=P3,P5 timeout=120
 * P3, P5: the rule `iterations` keeps or removes whole iterations: each Nth, or those that differ in calls, counts or
 * duration. Accounts balance, and totals are those of a run without the rule. That holds in threads and handlers, after
 * jumps and rewinds, and in a buffer smaller than one iteration. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <fdr/tally.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/api_fixture.h"
#include "tests/support/signal_timer.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { ITERATIONS = 10000, ODD = 7, THREADS = 4, EACH = 2000 };
enum { ITERATIONS_KIND = FDR_TALLY_ITERATIONS, DIFFERING_KIND = FDR_TALLY_DIFFERING };
static fdr_region step, solve, flux, output, run;
static uint64_t now;

static void define_all(void)
{
    step = fdr_region_define("step", NULL, 0);
    solve = fdr_region_define("solve", NULL, 0);
    flux = fdr_region_define("flux", NULL, 0);
    output = fdr_region_define("output", NULL, 0);
    run = fdr_region_define("run", NULL, 0);
    now = 1000000;
}

static void begin_with(const char *rules, const char *buffer, const char *strategy)
{
    begin(&(struct fdr_config){.filter = rules ? write_rules(rules) : NULL, .buffer = buffer, .strategy = strategy});
    define_all();
}

static uint64_t counter(struct fdr_file *f, uint32_t kind, int number)
{
    const struct fdr_tally_row *rows;
    for (size_t n = fdr_tallies(f, &rows), i = 0; i < n; i++)
        if (rows[i].kind == kind) return rows[i].counter[number];
    return 0;
}

static void call(fdr_region r, uint64_t ns)
{
    fdr_enter_at(r, now);
    fdr_leave_at(r, now += ns);
}

/* An iteration of 6 calls or so, whose calls last `unit` ns each, about. */
static void iterate(uint64_t *seed, uint64_t unit, int fluxes, fdr_region more)
{
    fdr_enter_at(step, now);
    fdr_enter_at(solve, now += 100);
    for (int i = 0; i < fluxes; i++) call(flux, unit + rnd(seed, unit / 8));
    fdr_leave_at(solve, now += 100);
    if (more) call(more, unit);
    call(output, unit + rnd(seed, unit / 8));
    fdr_leave_at(step, now += 100);
}

static const uint64_t odd_at[ODD] = {12, 2500, 3700, 5000, 6100, 7400, 9000};
static uint64_t odd_begin[ODD];

static void iterate_all(void)
{
    uint64_t seed = 88172645463325252u;
    for (uint64_t i = 0, n = 0; i < ITERATIONS; i++, now += 1000) {
        bool odd = n < ODD && i == odd_at[n];
        if (odd) odd_begin[n] = now;
        switch (odd ? (int)n++ : -1) {
        case 0: iterate(&seed, 5000, 3, 0); break;   /* lasts longer */
        case 1: iterate(&seed, 1000, 4, 0); break;   /* another count */
        case 2: iterate(&seed, 1000, 3, run); break; /* another call */
        case 3: iterate(&seed, 1000, 2, 0); break;   /* one less */
        case 4: iterate(&seed, 100, 3, 0); break;    /* lasts shorter */
        case 5: iterate(&seed, 1000, 5, run); break; /* another count and another call */
        case 6: iterate(&seed, 20000, 3, 0); break;  /* lasts longer */
        default: iterate(&seed, 1000, 3, 0); break;
        }
    }
}

static void compare_totals(const struct fdr_total *a, const struct fdr_total *b)
{
    assert_true(a->calls > 0);
    assert_int_equal(a->calls, b->calls);
    assert_int_equal(a->untimed, b->untimed);
    assert_int_equal(a->inclusive_ns, b->inclusive_ns);
    assert_int_equal(a->exclusive_ns, b->exclusive_ns);
    assert_int_equal(a->min_ns, b->min_ns);
    assert_int_equal(a->max_ns, b->max_ns);
    assert_memory_equal(a->histogram, b->histogram, sizeof a->histogram);
}

/* Counts the stored calls of a region. */
static uint64_t stored(struct fdr_file *f, fdr_region r, uint64_t *begin_ns, uint64_t most)
{
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    uint64_t n = 0;
    while (fdr_iter_next(it, &e)) {
        if (e.kind != FDR_ENTER || e.id != r) continue;
        if (n < most) begin_ns[n] = e.time_ns;
        n++;
    }
    fdr_iter_close(it);
    return n;
}

/* The totals of all regions. */
static void totals_of(struct fdr_file *f, struct fdr_total *to)
{
    const fdr_region all[] = {step, solve, flux, output, run};
    for (int i = 0; i < 5; i++) to[i] = *total(f, FDR_IN_REGION, all[i]);
}

static void P5_all_odd_iterations_of_10000_stay(void **state)
{
    static struct fdr_total without[5], with[5];
    uint64_t begin_ns[ODD + 2];
    (void)state;
    begin_with(NULL, "4M", NULL);
    iterate_all();
    struct fdr_file *f = take();
    totals_of(f, without);
    uint64_t sum = balance(f);
    end(f);
    begin_with("iterations differing name step\n", "4M", NULL);
    iterate_all();
    f = take();
    totals_of(f, with);
    for (int i = 0; i < 5; i++) compare_totals(&with[i], &without[i]);
    assert_int_equal(balance(f), sum);
    assert_int_equal(stored(f, step, begin_ns, ODD + 2), 1 + ODD); /* the first, and the odd ones */
    for (int i = 0; i < ODD; i++) assert_int_equal(begin_ns[1 + i] - begin_ns[0], odd_begin[i] - 1000000);
    assert_int_equal(stored(f, flux, NULL, 0), 3 + 3 + 4 + 3 + 2 + 3 + 5 + 3); /* each with all that is in it */
    assert_int_equal(stored(f, run, NULL, 0), 2);
    assert_int_equal(counter(f, ITERATIONS_KIND, 0), 1 + ODD);
    assert_int_equal(counter(f, ITERATIONS_KIND, 1), ITERATIONS - 1 - ODD);
    assert_int_equal(counter(f, ITERATIONS_KIND, 2), 0);
    assert_int_equal(counter(f, DIFFERING_KIND, 0), 5);
    assert_int_equal(counter(f, DIFFERING_KIND, 1), 3);
    assert_int_equal(counter(f, DIFFERING_KIND, 2), 0);
    end(f);
}

/* A step within a step is part of it. */
static void P5_each_nth_stays_with_all_inside(void **state)
{
    uint64_t seed = 1;
    (void)state;
    begin_with("iterations every 100 name step\n", "4M", NULL);
    for (int i = 0; i < 1000; i++, now += 1000) {
        fdr_enter_at(step, now);
        iterate(&seed, 1000, 3, 0);
        fdr_leave_at(step, now += 100);
    }
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 1000 * 7);
    assert_int_equal(total(f, FDR_IN_REGION, step)->calls, 2000);
    assert_int_equal(stored(f, step, NULL, 0), 20);
    assert_int_equal(stored(f, flux, NULL, 0), 30);
    assert_int_equal(counter(f, ITERATIONS_KIND, 0), 10);
    assert_int_equal(counter(f, ITERATIONS_KIND, 1), 990);
    end(f);
}

/* One iteration does not fit the buffer. Its remaining calls are removed; those given back before stay reduced. */
static void huge(const char *strategy)
{
    enum { HUGE = 4, CALLS = SANITIZED ? 150000 : 300000 };
    uint64_t seed = 7;
    begin_with("iterations differing name step\n", SANITIZED ? "512K" : "1M", strategy);
    iterate(&seed, 1000, 3, 0);
    for (int n = 0; n < HUGE; n++, now += 1000) {
        fdr_enter_at(step, now);
        for (int i = 0; i < CALLS; i++) call(flux, rnd(&seed, 100000));
        fdr_leave_at(step, now += 100);
    }
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 6 + HUGE * (1 + CALLS));
    assert_int_equal(total(f, FDR_IN_REGION, flux)->calls, 3 + HUGE * CALLS);
    if (!strcmp(strategy, "first")) { /* once storage has stopped, there are no iterations any more */
        assert_in_range(counter(f, ITERATIONS_KIND, 0) + counter(f, ITERATIONS_KIND, 1), 2, HUGE);
    } else {
        assert_int_equal(counter(f, ITERATIONS_KIND, 0), 2);
        assert_int_equal(counter(f, ITERATIONS_KIND, 1), HUGE - 1);
        assert_in_range(counter(f, DIFFERING_KIND, 2), 1, HUGE);
    }
    end(f);
}

static void P3_iteration_larger_than_the_buffer(void **state)
{
    (void)state;
    huge("telescope");
    huge("last");
    huge("whole");
    huge("first");
}

/* Every third iteration is left by a jump; its calls end with the leave around it. Such iterations are a class. */
static void P3_jumps_out_of_iterations(void **state)
{
    jmp_buf out;
    (void)state;
    begin_with("iterations differing name step\n", "4M", NULL);
    for (volatile int i = 0; i < 3000; i++, now += 1000) {
        fdr_enter_at(run, now);
        if (!setjmp(out)) {
            fdr_enter_at(step, now += 100);
            fdr_enter_at(solve, now += 100);
            call(flux, 1000);
            if (i % 3 == 0) longjmp(out, 1);
            fdr_leave_at(solve, now += 100);
            fdr_leave_at(step, now += 100);
        } else now += 200;
        fdr_leave_at(run, now);
    }
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 3000 * 4);
    assert_int_equal(stored(f, run, NULL, 0), 3000);
    assert_int_equal(stored(f, step, NULL, 0), 2);
    assert_int_equal(stored(f, flux, NULL, 0), 2);
    assert_int_equal(total(f, FDR_IN_REGION, step)->calls, 3000);
    assert_int_equal(counter(f, DIFFERING_KIND, 0), 2);
    assert_int_equal(counter(f, DIFFERING_KIND, 1), 0);
    end(f);
}

/* The program rewinds within iterations, around them, and to a mark from before an open one. */
static void P3_beside_rewinds_of_the_program(void **state)
{
    uint64_t seed = 3;
    (void)state;
    begin_with("iterations every 2 name step\n", "4M", NULL);
    for (int i = 0; i < 3000; i++, now += 1000) {
        if (i % 3 == 0) fdr_rewind_mark();
        fdr_enter_at(step, now);
        call(flux, 1000 + rnd(&seed, 100));
        if (i % 3 == 1) fdr_rewind_mark();
        call(flux, 1000);
        if (rnd(&seed, 2)) fdr_rewind();
        call(solve, 1000);
        fdr_leave_at(step, now += 100);
        if (i % 3 == 2 && rnd(&seed, 2)) fdr_rewind();
    }
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 3000 * 4);
    assert_int_equal(total(f, FDR_IN_REGION, flux)->calls, 6000);
    assert_int_equal(counter(f, ITERATIONS_KIND, 0) + counter(f, ITERATIONS_KIND, 1), 3000);
    assert_in_range(counter(f, ITERATIONS_KIND, 2), 1, 1000); /* a rewind to before them took their mark */
    end(f);
}

/* ---- threads and handlers, with the real clock ---- */

static volatile sig_atomic_t handled;
static fdr_region of_handler;
static void on_signal(int number)
{
    (void)number;
    fdr_enter(step), fdr_enter(of_handler);
    fdr_leave(of_handler), fdr_leave(step);
    handled++;
}

static void live(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        fdr_enter(step);
        for (uint64_t k = 0; k < 5 + (i == count / 2); k++) fdr_enter(flux), fdr_leave(flux);
        if (i == count / 3) fdr_enter(output), fdr_leave(output);
        fdr_leave(step);
    }
}

static void *worker(void *unused)
{
    live(EACH);
    return unused;
}

static void P3_P5_in_threads(void **state)
{
    pthread_t thread[THREADS];
    (void)state;
    begin(&(struct fdr_config){
        .filter = write_rules("iterations differing name step\n"), .buffer = "4M", .timer = "tsc"});
    define_all();
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), THREADS * (EACH * 6 + 2));
    assert_int_equal(counter(f, ITERATIONS_KIND, 0) + counter(f, ITERATIONS_KIND, 1), THREADS * EACH);
    assert_int_equal(counter(f, ITERATIONS_KIND, 0), counter(f, DIFFERING_KIND, 0) + counter(f, DIFFERING_KIND, 1));
    assert_int_equal(counter(f, DIFFERING_KIND, 0), THREADS * 3);
    assert_int_equal(stored(f, output, NULL, 0), THREADS);
    end(f);
}

/* A handler's steps lie in the interrupted iteration. While fdr itself is interrupted, or between two steps, they are
 * iterations. */
static void P3_P5_in_handlers(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* it runs handlers inside of atomic operations, where the kernel would not */
#endif
    begin(&(struct fdr_config){
        .filter = write_rules("iterations differing name step\n"), .buffer = "4M", .timer = "tsc"});
    define_all();
    of_handler = fdr_region_define("of_handler", NULL, 0);
    handled = 0;
    timer_t timer = signals_begin(on_signal);
    uint64_t rounds = 0;
    for (; handled < 300; rounds++) live(100);
    signals_end(timer);
    struct fdr_file *f = take();
    const struct fdr_total *rows;
    uint64_t steps = 0, calls = 0;
    for (size_t n = fdr_totals(f, &rows), i = 0; i < n; i++) {
        if (rows[i].class_ != FDR_IN_REGION) continue;
        calls += rows[i].calls;
        if (rows[i].id == step) steps += rows[i].calls;
    }
    assert_int_equal(steps, rounds * 100 + (uint64_t)handled);
    assert_int_equal(calls, rounds * 602 + 2 * (uint64_t)handled);
    assert_int_equal(balance(f), calls);
    assert_true(counter(f, ITERATIONS_KIND, 1) > 0);
    assert_in_range(counter(f, ITERATIONS_KIND, 0) + counter(f, ITERATIONS_KIND, 1), rounds * 100, steps);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P5_all_odd_iterations_of_10000_stay),
        cmocka_unit_test(P5_each_nth_stays_with_all_inside),
        cmocka_unit_test(P3_iteration_larger_than_the_buffer),
        cmocka_unit_test(P3_jumps_out_of_iterations),
        cmocka_unit_test(P3_beside_rewinds_of_the_program),
        cmocka_unit_test(P3_P5_in_threads),
        cmocka_unit_test(P3_P5_in_handlers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
