/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,slow timeout=120 promise=P2
 * ctest: wrap=fdri_memory_room,fdri_bins_part_pop,fdri_bins_part_pop_older,fdri_bins_run_pop,fdri_bins_part_claim
 * ctest: wrap=fdri_bins_piece_give
 * ctest: wrap=fdri_bins_take,fdri_bins_give
 * P2: the cost of getting room for the next record when a bin is full, reductions included. Wrapped functions
 * measure it, so the library pays nothing for the test. The test bounds the number of bins touched in one step and
 * prints the thread's CPU time. It repeats the same calls, at the same presented times, ROUNDS times; for each step
 * the least time counts, which excludes interrupts and other programs. FDR_STEP_ROUNDS sets the rounds,
 * FDR_STEP_LARGE adds larger buffers.
 * Lines: steps <tab> workload <tab> strategy <tab> buffer <tab> how many <tab> median ns <tab> p99 ns <tab> worst ns
 *        <tab> most bins touched <tab> mean of bins touched */
#include <fdr/fdr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "base/clock.h"
#include "bins/bin_run.h"
#include "bins/bins.h"
#include "bins/claims.h"
#include "bins/partition.h"
#include "bins/pieces.h"
#include "format/arena/arena.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"

/* BINS_MOST: a table or a partition may search for its place 64 times. */
enum { STEPS_MOST = 400000, REGIONS = 64, BINS_MOST = 128 };

static fdr_region region[REGIONS];
static uint32_t least[STEPS_MOST], bins[STEPS_MOST]; /* least time of step i over the rounds; bins touched in it */
static uint32_t step, touched;

static uint64_t cpu_ns(void) { return fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID); }

struct fdri_arena_part *__real_fdri_memory_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                                uint32_t band, uint64_t *reduced, uint64_t *lost);
struct fdri_arena_part *__wrap_fdri_memory_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                                uint32_t band, uint64_t *reduced, uint64_t *lost);
struct fdri_arena_part *__wrap_fdri_memory_room(struct fdri_thread *t, uint32_t *slot, uint32_t depth, uint32_t class_,
                                                uint32_t band, uint64_t *reduced, uint64_t *lost)
{
    bool asks = *slot != FDRI_THREAD_GATE_CLOSED; /* else the event is only counted */
    touched = 0;
    uint64_t from = cpu_ns();
    struct fdri_arena_part *p = __real_fdri_memory_room(t, slot, depth, class_, band, reduced, lost);
    uint64_t took = cpu_ns() - from;
    if (asks && step < STEPS_MOST) {
        if (took < least[step]) least[step] = (uint32_t)took;
        bins[step++] = touched;
    }
    return p;
}

static uint32_t one(uint32_t off) { return off != 0; }
static uint32_t many(uint32_t count) { return count; }

/* Counts bins that change hands. A bin that is only looked at does not count. */
#define GETS(name, bins_of, parameters, arguments)                                                                     \
    uint32_t __real_##name parameters;                                                                                 \
    uint32_t __wrap_##name parameters;                                                                                 \
    uint32_t __wrap_##name parameters                                                                                  \
    {                                                                                                                  \
        uint32_t off = __real_##name arguments;                                                                        \
        touched += bins_of(off);                                                                                       \
        return off;                                                                                                    \
    }
#define GIVES(name, parameters, arguments)                                                                             \
    void __real_##name parameters;                                                                                     \
    void __wrap_##name parameters;                                                                                     \
    void __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        touched++;                                                                                                     \
        __real_##name arguments;                                                                                       \
    }
GETS(fdri_bins_part_pop, one,
     (struct fdri_bins_arena * a, struct fdri_arena_part *p, uint32_t *size, struct fdri_bins_given *g),
     (a, p, size, g))
GETS(fdri_bins_part_pop_older, one,
     (struct fdri_bins_arena * a, struct fdri_arena_part *p, uint64_t tick, uint32_t *size, struct fdri_bins_given *g),
     (a, p, tick, size, g))
GETS(fdri_bins_part_claim, one,
     (struct fdri_bins_arena * a, struct fdri_arena_part *p, uint32_t *size, struct fdri_bins_given *g),
     (a, p, size, g))
GETS(fdri_bins_take, one, (struct fdri_bins_arena * a, uint32_t node), (a, node))
GETS(fdri_bins_run_pop, many,
     (struct fdri_bins_arena * a, struct fdri_arena_part *p, uint32_t most, bool small, struct fdri_bins_run *r,
      struct fdri_bins_given *g),
     (a, p, most, small, r, g))
GIVES(fdri_bins_piece_give, (struct fdri_bins_arena * a, struct fdri_arena_location *l, uint32_t off, uint32_t size),
      (a, l, off, size))
GIVES(fdri_bins_give, (struct fdri_bins_arena * a, uint32_t off), (a, off))

/* ---- workloads, at presented times ---- */

static uint64_t now, seed;
/* Durations of all four bands, most of them short. */
static void work(void)
{
    now += rnd(&seed, 8)   ? 20 + rnd(&seed, 200)
           : rnd(&seed, 8) ? 300 + rnd(&seed, 4000)
           : rnd(&seed, 8) ? 5000 + rnd(&seed, 200000)
                           : 300000 + rnd(&seed, 1000000);
}

static void one_call(uint32_t depth, uint32_t most)
{
    fdr_region r = region[rnd(&seed, 8) ? depth % 8 : rnd(&seed, REGIONS)];
    fdr_enter_at(r, now);
    work();
    uint32_t children = depth < most ? rnd(&seed, 3) + (depth < 4) : 0;
    for (uint32_t i = 0; i < children; i++) one_call(depth + 1, most);
    if (!rnd(&seed, 16)) fdr_marker_at(1 + rnd(&seed, 3), now, now);
    work();
    fdr_leave_at(r, now);
}

/* Loops in a program of ordinary depth. */
static void loops(uint32_t calls)
{
    for (uint64_t until = fdr_usage().presented + calls; fdr_usage().presented < until;) one_call(1, 10);
}

/* Recursion 300 levels deep: more than a thousand partitions. */
static void deep(uint32_t calls)
{
    for (uint32_t n = 0; n < calls;) {
        uint32_t depth = 200 + rnd(&seed, 100);
        for (uint32_t d = 0; d < depth; d++, n++) {
            fdr_enter_at(region[d % 8], now);
            work();
        }
        for (uint32_t d = depth; d--; work()) fdr_leave_at(region[d % 8], now);
    }
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t from_environment(const char *name, uint32_t otherwise)
{
    const char *v = getenv(name);
    return v && atoi(v) > 0 ? (uint32_t)atoi(v) : otherwise;
}

static uint64_t clock_cost(void)
{
    uint64_t cost = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        uint64_t from = cpu_ns();
        cost = fdri_bits_min(cost, cpu_ns() - from);
    }
    return cost;
}

/* Runs one round and returns the number of its steps. */
static uint32_t run(void (*workload)(uint32_t calls), uint32_t calls, const char *strategy, const char *buffer)
{
    struct fdr_config c = oracle_config(oracle_directory());
    char text[16];
    c.strategy = strategy;
    c.buffer = buffer;
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < REGIONS; i++) {
        snprintf(text, sizeof text, "r%d", i);
        region[i] = fdr_region_define(text, __FILE__, (unsigned)i);
    }
    step = 0;
    now = 1000;
    seed = 88172645463325252u;
    workload(calls);
    struct fdr_usage u = fdr_usage();
    assert_true(u.reduced > 0);
    assert_int_equal(u.lost, 0);
    fdr_finalize();
    return step;
}

static void measure(const char *name, void (*workload)(uint32_t calls), uint32_t calls, const char *strategy,
                    const char *buffer)
{
    uint32_t rounds = from_environment("FDR_STEP_ROUNDS", 3), count = 0, most = 0;
    uint64_t all = 0, clock = clock_cost();
    memset(least, 0xff, sizeof least);
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t steps = run(workload, calls, strategy, buffer);
        assert_true(!round || steps == count); /* each round has the same steps */
        count = steps;
    }
    assert_true(count > 100 && count < STEPS_MOST);
    for (uint32_t i = 0; i < count; i++) {
        most = (uint32_t)fdri_bits_max(bins[i], most);
        all += bins[i];
        least[i] -= (uint32_t)fdri_bits_min(clock, least[i]);
    }
    qsort(least, count, sizeof *least, compare);
    print_message("steps\t%s\t%s\t%s\t%u\t%u\t%u\t%u\t%u\t%.2f\n", name, strategy, buffer, count, least[count / 2],
                  least[count - count / 100 - 1], least[count - 1], most, (double)all / count);
    assert_true(most <= BINS_MOST);
}

static void P2_a_step_touches_few_bins(void **state)
{
    (void)state;
    static const char *const strategies[] = {"telescope", "whole", "last"};
    for (int i = 0; i < 3; i++) {
        measure("loops", loops, 200000, strategies[i], "256K");
        measure("loops", loops, 800000, strategies[i], "1M");
        measure("deep", deep, 400000, strategies[i], "1M");
        if (!getenv("FDR_STEP_LARGE")) {
            if (!i) measure("deep", deep, 3000000, strategies[i], "16M"); /* a thousand partitions in small pieces */
            continue;
        }
        measure("loops", loops, 10000000, strategies[i], "16M");
        measure("deep", deep, 10000000, strategies[i], "16M");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_a_step_touches_few_bins)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
