/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=600 promise=P5 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions)
 * P5: a handler leaves by longjmp at each instruction of an enter and of a leave; of slow ones, at some. Each call
 * must be in the totals once, with its time, or be open. All time is the exclusive time of one call. A call's time
 * is part of its callers' times, and each call is in its histogram. */
#include "format/arena/arena.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEPTHS = 4, FRESH = 12000, EACH = 192 }; /* EACH: the fast paths have fewer instructions */
/* One region for each depth, so that the sums of a depth are those of its regions. */
static fdr_region usual[DEPTHS + 1], fresh[FRESH];
static uint8_t depth_of[FRESH + DEPTHS + 64];
static uint32_t fresh_used, now_ms;
static volatile int place[DEPTHS + 1]; /* their addresses serve as function addresses */

static uint32_t depth_now(void) { return fdri_record_self.loc->depth; }

/* ---- ways to call `next`: by id, by address, at a given time ---- */

static fdr_region next;
static void enter(void) { fdr_enter(next); }
static void leave(void) { fdr_leave(fdri_thread_level(&fdri_record_self, depth_now())->region); }
static void enter_function(void) { fdr_enter_address((const void *)&place[depth_now() + 1]); }
static void leave_function(void) { fdr_leave_address((const void *)&place[depth_now()]); }
static void enter_at(void) { fdr_enter_at(next, ++now_ms * 1000000ull); }
static void leave_at_time(void)
{
    fdr_leave_at(fdri_thread_level(&fdri_record_self, depth_now())->region, ++now_ms * 1000000ull);
}

static void (*enter_any)(void), (*leave_any)(void);

static void go_in(bool new)
{
    uint32_t depth = depth_now() + 1;
    next = new ? fresh[fresh_used++] : usual[depth];
    assert_true(fresh_used < FRESH);
    depth_of[next] = (uint8_t)depth;
    enter_any();
}

static void to_depth(uint32_t depth)
{
    while (depth_now() < depth) go_in(false);
    while (depth_now() > depth) leave_any();
}

/* ---- checks of the totals ---- */

struct sums {
    uint64_t calls, untimed, sum, exclusive;
};

static void look_at_histogram(const struct fdri_arena_row *r, uint32_t n)
{
    const uint64_t *count = fdri_thread_at(&fdri_record_self, (uint32_t)r->histogram);
    uint32_t first = fdri_arena_histogram_first(r->histogram), end = first + fdri_arena_histogram_count(r->histogram);
    uint64_t all = 0;
    uint32_t late = fdri_record_self.loc->pending_counter_off;
    for (uint32_t b = first; b < end; b++) all += count[b] + (late == (uint32_t)r->histogram + b * 8);
    if (r->histogram && all != r->calls)
        fail_msg("left at %u: region %u has %llu calls, %llu of them in its histogram", n, r->key & 0xffffff,
                 (unsigned long long)r->calls, (unsigned long long)all);
}

static void add_row(struct sums *by_depth, const struct fdri_arena_row *r)
{
    uint32_t id = r->key & 0xffffff;
    struct sums *s = &by_depth[fdri_arena_row_of_calls(r->key) && id < sizeof depth_of ? depth_of[id] : 0];
    s->calls += r->calls, s->untimed += r->untimed, s->sum += r->sum, s->exclusive += r->exclusive;
}

static void look(uint32_t n)
{
    const struct fdri_thread *t = &fdri_record_self;
    struct sums by_depth[DEPTHS + 1] = {{0}};
    for (uint32_t i = 0; i < 1u << (32 - t->row_shift); i++) {
        if (!t->row_slot[i]) continue;
        const struct fdri_arena_row *r = fdri_thread_at(t, t->row_slot[i]);
        look_at_histogram(r, n);
        add_row(by_depth, r);
    }
    for (uint32_t d = 1; d <= DEPTHS; d++) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d), *above = fdri_thread_level(t, d - 1);
        const struct sums *s = &by_depth[d], *caller = &by_depth[d - 1];
        uint64_t open = d <= depth_now() && !(v->flags & FDRI_ARENA_LEVEL_UNTIMED);
        uint64_t spent = d > 1 ? caller->sum - caller->exclusive : 0; /* time spent in this depth by ended calls */
        if (d - 1 <= depth_now()) spent += above->child_ticks;
        if (s->calls + s->untimed + open != v->presented)
            fail_msg("left at %u: depth %u: %llu presented, %llu in the totals, %llu open", n, d,
                     (unsigned long long)v->presented, (unsigned long long)(s->calls + s->untimed),
                     (unsigned long long)open);
        if (s->sum != spent)
            fail_msg("left at %u: depth %u: a time of %llu in the totals, %llu in their callers'", n, d,
                     (unsigned long long)s->sum, (unsigned long long)spent);
    }
}

/* All time is the exclusive time of one call; no call is open. */
static void look_at_times(uint32_t n)
{
    const struct fdri_thread *t = &fdri_record_self;
    uint64_t exclusive = 0;
    for (uint32_t i = 0; i < 1u << (32 - t->row_shift); i++)
        if (t->row_slot[i] &&
            fdri_arena_row_of_calls(((struct fdri_arena_row *)fdri_thread_at(t, t->row_slot[i]))->key))
            exclusive += ((struct fdri_arena_row *)fdri_thread_at(t, t->row_slot[i]))->exclusive;
    if (exclusive != fdri_thread_level(t, 0)->child_ticks)
        fail_msg("left at %u: an exclusive time of %llu, of %llu", n, (unsigned long long)exclusive,
                 (unsigned long long)fdri_thread_level(t, 0)->child_ticks);
}

/* ---- left at each instruction ---- */

/* The next operation repairs the abandoned one. Then all calls end, and each has its time. */
static void settle(uint32_t depth, uint32_t n)
{
    fdr_marker(1, n);
    look(n);
    to_depth(depth);
    look(n);
    to_depth(0);
    look(n);
}

/* The abandoned operation has closed the bins. One call as slow as a single-stepped one opens a bin, so that the
 * next one takes the fast path. */
static void open_bins(void)
{
    go_in(false);
    steps_on();
    for (volatile int i = 0; i < 8; i++) {}
    steps_off();
    leave_any();
}

static void leaves(uint32_t depth, bool new, bool with_child)
{
    uint32_t n = 1;
    for (bool left = true; left; n = instruction_after(n, EACH)) {
        to_depth(depth - 1);
        if (!new) open_bins(), open_bins();
        go_in(new);
        if (with_child) to_depth(depth + 1), to_depth(depth);
        left = leave_at(leave_any, n);
        settle(depth, n);
    }
    assert_true(n > 30);
}

static void enters(uint32_t depth, bool new)
{
    uint32_t n = 1;
    for (bool left = true; left; n = instruction_after(n, EACH)) {
        to_depth(depth - 1);
        next = new ? fresh[fresh_used++] : usual[depth];
        assert_true(fresh_used < FRESH);
        depth_of[next] = (uint8_t)depth;
        left = leave_at(enter_any, n);
        settle(depth - 1, n);
    }
    assert_true(n > 30);
}

static void start(struct fdr_config c)
{
    char name[16];
    c.buffer = "32M";
    if (!c.timer) c.timer = oracle_clock("tsc");
    begin(&c);
    fresh_used = 0;
    now_ms = 0;
    memset(depth_of, 0, sizeof depth_of);
    fdr_marker_define("m");
    for (uint32_t i = 0; i < FRESH; i++) {
        snprintf(name, sizeof name, "f%u", i);
        fresh[i] = fdr_region_define(name, NULL, 0);
    }
    for (uint32_t d = 1; d <= DEPTHS; d++) {
        snprintf(name, sizeof name, "u%u", d);
        usual[d] = fdr_region_define(name, NULL, 0);
        depth_of[fdr_region_define_address((const void *)&place[d])] = (uint8_t)d;
    }
}

/* Makes a single-stepped call take the fast path, slow as it is: its duration lies between the shortest and the
 * longest call. */
static void make_usual(void)
{
    for (int i = 0; i < 3; i++) to_depth(DEPTHS), to_depth(0);
    to_depth(DEPTHS);
    usleep(300000);
    to_depth(0);
    for (int i = 0; i < 3; i++) to_depth(DEPTHS), to_depth(0);
}

static void all(struct fdr_config c)
{
    start(c);
    steps_begin();
    make_usual();
    for (uint32_t depth = 1; depth <= 2; depth++) {
        leaves(depth, false, false);
        leaves(depth, false, true);
        enters(depth, false);
    }
    if (enter_any != enter_function) leaves(2, true, true), enters(2, true);
    assert_true(fdri_record_self.loc->abandoned > 100);
    struct fdr_file *f = take();
    balance(f);
    fdr_file_close(f);
    fdr_finalize(); /* bins under way stay unused: tests/support/single_step.h */
}

static void P5_longjmp_keeps_totals_of_regions(void **state)
{
    (void)state;
    enter_any = enter, leave_any = leave;
    all((struct fdr_config){0});
    all((struct fdr_config){.resolution = "128ns"});
    all((struct fdr_config){.min_duration = "1s"});
}

static void P5_longjmp_keeps_totals_of_functions(void **state)
{
    (void)state;
    enter_any = enter_function, leave_any = leave_function;
    all((struct fdr_config){0});
    all((struct fdr_config){.depth = "1"});
}

static void P5_longjmp_keeps_totals_of_given_times(void **state)
{
    (void)state;
    enter_any = enter_at, leave_any = leave_at_time;
    all((struct fdr_config){0});
}

static void P5_longjmp_keeps_totals_of_counted_calls(void **state)
{
    (void)state;
    enter_any = enter, leave_any = leave;
    all((struct fdr_config){.depth = "1"});
    start((struct fdr_config){0});
    steps_begin();
    make_usual();
    fdr_pause();
    enters(2, false);
    enters(2, true);
    fdr_resume();
    fdr_finalize();
}

static void P5_longjmp_keeps_totals_of_excluded_calls(void **state)
{
    (void)state;
    enter_any = enter, leave_any = leave;
    char *rules = write_rules("every 2 name u2\n");
    start((struct fdr_config){.filter = rules});
    steps_begin();
    make_usual();
    enters(2, false);
    fdr_finalize();
    unlink(rules);
}

/* ---- totals are full, so that a row gives way to each new region ---- */

static const struct fdri_arena_row *row_of(uint32_t slot)
{
    const struct fdri_thread *t = &fdri_record_self;
    const struct fdri_arena_row *r = fdri_thread_at(t, t->row_slot[slot]);
    return t->row_slot[slot] && r->key >> 24 == FDRI_ARENA_DEF_REGION && r->key != FDRI_ARENA_ROW_KEY_REST ? r : NULL;
}

/* A region is either in [rest] or has a row. It must not have a row and calls in [rest]. */
static void look_for_both(uint32_t n)
{
    for (uint32_t i = 0; i < 1u << (32 - fdri_record_self.row_shift); i++) {
        const struct fdri_arena_row *r = row_of(i);
        if (r && r->max && !r->calls)
            fail_msg("left at %u: region %u has a row and is in [rest]", n, r->key & 0xffffff);
    }
}

static void P5_longjmp_keeps_totals_while_rows_are_evicted(void **state)
{
    enum { REGIONS = 6000, FULL = 4000, EACH_FULL = 100 };
    (void)state;
    char name[16];
    enter_any = enter, leave_any = leave;
    begin(&(struct fdr_config){.buffer = "1M", .timer = oracle_clock("tsc")});
    for (uint32_t i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "f%u", i);
        fresh[i] = fdr_region_define(name, NULL, 0);
    }
    fdr_marker_define("m");
    fdr_region around = fdr_region_define("around", NULL, 0);
    fdr_enter(around);
    for (uint32_t i = 0; i < FULL; i++) fdr_enter(fresh[i]), fdr_leave(fresh[i]);
    uint64_t folded = fdri_record_self.loc->rows_folded, entered = fdri_thread_level(&fdri_record_self, 1)->enter_tick;
    assert_true(folded > 0);
    steps_begin();
    uint32_t i = FULL, n = 1;
    for (bool left = true; left; n = instruction_after(n, EACH_FULL)) {
        assert_true(i < REGIONS);
        next = fresh[i++];
        left = leave_at(enter, n);
        fdr_marker(1, n);
        if (!depth_now() || fdri_thread_level(&fdri_record_self, 1)->enter_tick != entered)
            fail_msg("left at %u: the call around it is closed", n);
        look_for_both(n);
        while (depth_now() > 1) fdr_leave(fdri_thread_level(&fdri_record_self, depth_now())->region);
    }
    assert_true(n > 500 && fdri_record_self.loc->rows_folded > folded);
    fdr_finalize();
}

/* A pause that began outside of a call ends inside of it. The call is only counted; its later callees have times. */
static void P5_longjmp_keeps_totals_of_a_call_in_which_a_pause_ends(void **state)
{
    (void)state;
    enter_any = enter, leave_any = leave;
    start((struct fdr_config){0});
    steps_begin();
    make_usual();
    uint32_t n = 1;
    for (bool left = true; left; n = instruction_after(n, EACH)) {
        to_depth(1);
        fdr_pause();
        to_depth(2);
        fdr_resume();
        to_depth(3), to_depth(2);
        left = leave_at(leave_any, n);
        fdr_marker(1, n);
        to_depth(0);
        look_at_times(n);
    }
    assert_true(n > 100);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_longjmp_keeps_totals_of_regions),
                                       cmocka_unit_test(P5_longjmp_keeps_totals_of_functions),
                                       cmocka_unit_test(P5_longjmp_keeps_totals_of_given_times),
                                       cmocka_unit_test(P5_longjmp_keeps_totals_of_counted_calls),
                                       cmocka_unit_test(P5_longjmp_keeps_totals_of_excluded_calls),
                                       cmocka_unit_test(P5_longjmp_keeps_totals_while_rows_are_evicted),
                                       cmocka_unit_test(P5_longjmp_keeps_totals_of_a_call_in_which_a_pause_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
