/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60 promise=P3
 * P3: fdr_usage().reductions still counts the steps of an ended thread after its accounts were merged into [ended].
 * The reader still shows the newest lines of the reduction log when its counter wraps. A failure shows as a count
 * that falls, or a missing line. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bins/bins.h"
#include "bins/partition.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/strategy/strategy.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"

enum { CALLS = 300000, OTHERS = 200 };
static fdr_region region;

static void *record(void *calls)
{
    for (uintptr_t i = 0; i < (uintptr_t)calls; i++) fdr_enter(region), fdr_leave(region);
    return NULL;
}

static void run(uintptr_t calls)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, record, (void *)calls), 0);
    pthread_join(t, NULL);
}

static void start(void)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.buffer = "256K";
    c.timer = NULL;
    assert_int_equal(fdr_init(&c), 0);
    region = fdr_region_define("work", NULL, 0);
}

static void P3_steps_of_threads_that_ended(void **state)
{
    (void)state;
    start();
    run(CALLS);
    uint64_t steps = fdr_usage().reductions;
    assert_true(steps > 0);
    for (int i = 0; i < OTHERS; i++) {
        run(10);
        uint64_t now = fdr_usage().reductions;
        if (now < steps) fail_msg("%llu reductions, then %llu", (unsigned long long)steps, (unsigned long long)now);
        steps = now;
    }
    fdr_finalize();
}

/* The 32-bit counter reaches its end after weeks at full speed. It must stay there and not wrap. */
static void P3_steps_never_become_fewer(void **state)
{
    (void)state;
    start();
    record((void *)(uintptr_t)CALLS);
    assert_true(fdri_record_self.loc->reduction_steps > 0);
    fdri_record_self.loc->reduction_steps = UINT32_MAX - 1;
    struct fdri_arena_reductions_block *b = fdri_bins_at(&fdri_life_recording.arena,
                                                         fdri_record_self.loc->reductions_off);
    for (int i = 0; i < FDRI_ARENA_REDUCTION_LINES; i++) b->line[i].steps = UINT32_MAX - 1;
    record((void *)(uintptr_t)(4 * CALLS));
    assert_int_equal(fdri_record_self.loc->reduction_steps, UINT32_MAX);
    bool any = false;
    for (int i = 0; i < FDRI_ARENA_REDUCTION_LINES; i++) any |= b->line[i].steps == UINT32_MAX;
    assert_true(any);
    fdr_finalize();
}

/* Adds lines for steps that never happened, one event each. Each is of another kind, so no two share a line. */
static void begin_lines(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        fdri_strategy_note_claim(&fdri_record_self, i, &(struct fdri_bins_given){.events = 1, .bytes = 32});
}

/* The reader shows the newest 48 lines, oldest first, and one line that sums up the earlier ones. */
static void lines_are_read(uint32_t begun)
{
    const struct fdr_reduction_info *r;
    struct fdr_file *f = take();
    size_t n = fdr_reductions(f, &r);
    char what[80];
    assert_int_equal(n, FDRI_ARENA_REDUCTION_LINES + 1);
    assert_string_equal(r[0].step, "earlier");
    assert_int_equal(r[0].events, begun - FDRI_ARENA_REDUCTION_LINES);
    for (uint32_t i = 1; i < n; i++) {
        snprintf(what, sizeof what, "taken from location %u,", begun - FDRI_ARENA_REDUCTION_LINES + i - 1);
        if (strncmp(r[i].what, what, strlen(what)) != 0) fail_msg("line %u of %u: %s", i, begun, r[i].what);
    }
    fdr_file_close(f);
}

/* At its end, the count of lines goes on at 48 and not at 0. No line may be missing, and overwritten lines are
 * summed up. */
static void P3_lines_stay_when_their_count_is_at_its_end(void **state)
{
    enum { BEFORE = 2 * FDRI_ARENA_REDUCTION_LINES - 3 };
    (void)state;
    start();
    record((void *)(uintptr_t)10);
    struct fdri_arena_location *l = fdri_record_self.loc;
    assert_int_equal(l->reduction_count, 0);
    begin_lines(0, BEFORE);
    assert_int_equal(l->reduction_count, BEFORE);
    lines_are_read(BEFORE);
    l->reduction_count = FDRI_ARENA_REDUCTION_COUNT_END - 3;
    for (uint32_t i = BEFORE; i < BEFORE + FDRI_ARENA_REDUCTION_LINES + 5; i++) {
        begin_lines(i, i + 1);
        assert_true(l->reduction_count >= FDRI_ARENA_REDUCTION_LINES &&
                    l->reduction_count < FDRI_ARENA_REDUCTION_COUNT_END);
        lines_are_read(i + 1);
    }
    assert_int_equal(l->reduction_count, 2 * FDRI_ARENA_REDUCTION_LINES + 2);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_steps_of_threads_that_ended),
                                       cmocka_unit_test(P3_steps_never_become_fewer),
                                       cmocka_unit_test(P3_lines_stay_when_their_count_is_at_its_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
