/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=240 promise=P4,P8 wrap=pwrite
 * P4, P8: events happen before and after the copy of a stack, all within the tick of its newest event. Times cannot
 * order them. Still each call is shown once, in its own parent. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/random_numbers.h"

enum { REGIONS = 64, DEEPEST = 4, DEEPER = 24, OTHERS = 40 };
static fdr_region region[REGIONS];
static fdr_marker_id marker;
static uint64_t seed, now;
static uint32_t depth;
static unsigned writes, when;
static void (*meanwhile)(void); /* called at write `when` */
static char dir[] = "/tmp/fdr-tick-XXXXXX";

ssize_t __real_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off)
{
    if (writes++ == when) meanwhile();
    return __real_pwrite(fd, bytes, count, off);
}

static void enter(void)
{
    fdr_enter_at(region[depth], now);
    depth++;
}
static void leave(void)
{
    depth--;
    fdr_leave_at(region[depth], now);
}

static void calls(uint32_t events)
{
    for (uint32_t i = 0; i < events; i++) {
        now += rnd(&seed, 40) == 0 ? rnd(&seed, 20000) : 1 + rnd(&seed, 300);
        if (depth < DEEPEST && (depth < 1 || rnd(&seed, 2))) enter();
        else leave();
    }
}

static void start(void)
{
    char name[16];
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .arena = "anonymous",
                                 .buffer = "1M",
                                 .signal = "none",
                                 .dir = dir,
                                 .keep = "2,newest",
                                 .timer = "monotonic"};
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    marker = fdr_marker_define("m");
    seed = 5;
    now = 1000000;
    depth = 0;
    calls(3000);
}

static struct fdr_file *snapshot(unsigned at)
{
    struct fdr_file *f;
    char message[300] = "";
    uint64_t before, after, sum = 0;
    const struct fdr_ledger_row *rows;
    writes = 0;
    when = at;
    assert_int_equal(fdr_snapshot("tick"), 0);
    if (fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message) != FDR_WHOLE || fdr_file_verify(f) != FDR_WHOLE)
        fail_msg("at write %u of %u: %s", at, writes, message[0] ? message : fdr_file_damage(f, 0));
    unlink(fdr_last_snapshot());
    fdr_ledger_bounds(f, 0, &before, &after);
    for (size_t n = fdr_ledger(f, &rows), i = 0; i < n; i++)
        sum += rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost;
    if (sum < before || sum > after)
        fail_msg("at write %u of %u: %llu .. %llu, but %llu", at, writes, (unsigned long long)before,
                 (unsigned long long)after, (unsigned long long)sum);
    return f;
}

/* Counts the enters of each region at `tick`. *stray counts points that stand deeper than the calls around them. */
static void count(struct fdr_file *f, uint64_t tick, uint32_t *of, uint32_t *stray)
{
    struct fdr_select all = {0};
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, &all);
    uint32_t open = 0;
    memset(of, 0, REGIONS * sizeof *of);
    *stray = 0;
    while (fdr_iter_next(it, &e)) {
        if (e.kind == FDR_MARKER) *stray += e.depth != open;
        if (e.kind == FDR_LEAVE) open--;
        if (e.kind != FDR_ENTER) continue;
        open++;
        for (int i = 0; i < REGIONS && !e.reduced && e.time_ns == tick; i++) of[i] += region[i] == e.id;
    }
    fdr_iter_close(it);
}

static void leave_all(void)
{
    while (depth) leave();
}

static void leave_all_and_call(void)
{
    leave_all();
    fdr_enter_at(region[OTHERS], now);
    fdr_leave_at(region[OTHERS], now);
}

/* A call of length 0 may be open in the copied stack and have a record in a bin that was copied later. It is one
 * call. */
static void P4_calls_that_end_in_the_tick_of_the_cut(void **state)
{
    uint32_t of[REGIONS], stray;
    (void)state;
    start();
    meanwhile = leave_all_and_call;
    for (unsigned at = 0, all = 1; at < all; at++) {
        leave_all();
        now += 1000;
        for (int i = 0; i < 3; i++) enter();
        struct fdr_file *f = snapshot(at);
        count(f, now, of, &stray);
        for (int i = 0; i < REGIONS; i++)
            if (of[i] > 1) fail_msg("at write %u of %u: call %d is there %u times", at, writes, i, of[i]);
        fdr_file_close(f);
        all = writes;
    }
    fdr_finalize();
}

/* No other calls happen. So the first bins of partitions are opened after the copy of their place. */
static void P8_nothing_but_calls_that_end_in_the_tick_of_the_cut(void **state)
{
    (void)state;
    meanwhile = leave_all;
    for (unsigned at = 0, all = 1; at < all; at += 2) {
        start();
        while (depth < DEEPER) now++, enter();
        fdr_file_close(snapshot(at));
        all = writes;
        fdr_finalize();
    }
}

static void leave_later(void)
{
    now += 300;
    leave_all();
}

static void mark_and_leave(void)
{
    fdr_marker_at(marker, 1, now); /* so the marker's record names the calls around it */
    leave_later();
}

/* A call of length 0 and a point lie in the tick in which the calls around them began. They are shown inside those
 * calls, whether these ended before or during the snapshot. */
static void what_is_in_calls_of_the_tick(void (*does)(void))
{
    uint32_t of[REGIONS], stray;
    start();
    meanwhile = does;
    for (unsigned at = 0, all = 1; at < all; at++) {
        leave_all();
        now += 1000;
        uint64_t tick = now;
        for (int i = 0; i < 3; i++) enter();
        fdr_enter_at(region[OTHERS], now);
        fdr_leave_at(region[OTHERS], now);
        struct fdr_file *f = snapshot(at);
        count(f, tick, of, &stray);
        if (of[OTHERS] != 1 || stray)
            fail_msg("at write %u of %u: the call is there %u times, %u points are in no call", at, writes, of[OTHERS],
                     stray);
        fdr_file_close(f);
        all = writes;
    }
    fdr_finalize();
}

static void P4_what_is_in_calls_of_the_tick_of_the_cut(void **state)
{
    (void)state;
    what_is_in_calls_of_the_tick(leave_later);
    what_is_in_calls_of_the_tick(mark_and_leave);
}

static int remove_dir(void **state)
{
    (void)state;
    rmdir(dir);
    return 0;
}

int main(void)
{
    if (!mkdtemp(dir)) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(P4_calls_that_end_in_the_tick_of_the_cut),
                                       cmocka_unit_test(P4_what_is_in_calls_of_the_tick_of_the_cut),
                                       cmocka_unit_test(P8_nothing_but_calls_that_end_in_the_tick_of_the_cut)};
    return cmocka_run_group_tests(tests, NULL, remove_dir);
}
