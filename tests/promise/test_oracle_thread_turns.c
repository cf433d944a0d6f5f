/* SPDX-License-Identifier: MIT */
/* ctest: label=threads,slow timeout=300 promise=P3,P4,P5,P9 without=tsan (its threads take turns)
 * P3, P4, P5, P9: threads of 2 to 150 levels take turns in one small buffer, end, and start again. All strategies and
 * bin sizes take part. After each turn the test walks all bins. After some turns it compares the ledger, the totals and
 * each thread's events with the oracle. FDR_TEST_ROUNDS=N runs N such programs, from number FDR_TEST_FIRST on. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bins/bins.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { MOST = 40, REGIONS = 40, ROUNDS = SANITIZED ? 1 : 10, TURNS_MOST = 40 };

struct turner {
    pthread_t thread;
    sem_t go, done;
    uint32_t levels, steps, depth, location;
    bool there, ends, leaves_open, attached;
    uint64_t seed, calls;
    struct oracle presented;
};

static struct turner turner[MOST];
static fdr_region region[REGIONS];
static uint64_t seed, now, calls_of_ended;
#define PICK(list) list[rnd(&seed, sizeof list / sizeof *list)]

static void leave(struct turner *w, uint64_t time)
{
    both_leave(&w->presented, time);
    w->depth--;
    w->calls++;
}

static void leave_all(struct turner *w)
{
    while (w->depth) leave(w, ++now);
}

/* Up and down, in some turns always below a certain depth. */
static void walk(struct turner *w)
{
    uint64_t *s = &w->seed;
    uint32_t least = rnd(s, 3) ? 0 : rnd(s, w->levels), dwell = rnd(s, 2), gap = rnd(s, 3);
    gap = 1 + gap * rnd(s, 3000);
    for (uint32_t i = 0; i < w->steps; i++) {
        now += rnd(s, gap + 1);
        bool in = w->depth == 0 || w->depth < least || (w->depth < w->levels && rnd(s, 2 + dwell));
        if (!in) {
            leave(w, now);
            continue;
        }
        both_enter(&w->presented, region[rnd(s, REGIONS)], now);
        w->depth++;
    }
    if (!w->leaves_open) leave_all(w);
    w->attached = fdri_record_self.loc != NULL;
    if (w->attached) w->location = fdri_record_self.loc->id;
}

static void *turns(void *argument)
{
    struct turner *w = argument;
    for (;;) {
        sem_wait(&w->go);
        bool ends = w->ends;
        if (ends) leave_all(w);
        else walk(w);
        sem_post(&w->done);
        if (ends) return NULL;
    }
}

static void turn(struct turner *w)
{
    sem_post(&w->go);
    sem_wait(&w->done);
}

static void begin(struct turner *w)
{
    static const uint32_t levels[] = {2, 4, 8, 12, 20, 30, 40, 60, 100, 150};
    oracle_free(&w->presented);
    memset(w, 0, sizeof *w);
    w->seed = 88172645463325252u + rnd(&seed, 1000000) * 7919ull;
    w->levels = PICK(levels);
    w->there = true;
    w->leaves_open = rnd(&seed, 3) == 0;
    sem_init(&w->go, 0, 0);
    sem_init(&w->done, 0, 0);
    assert_int_equal(pthread_create(&w->thread, NULL, turns, w), 0);
}

static void end(struct turner *w)
{
    w->ends = true;
    turn(w);
    pthread_join(w->thread, NULL);
    calls_of_ended += w->calls;
    w->there = false;
}

/* A thread that found no room has no location. Then the test cannot assign its events. */
static const char *sums_wrong(struct fdr_file *f, uint64_t nowhere)
{
    uint64_t calls = calls_of_ended, open = 0, in_ledger = 0, in_totals = 0;
    for (uint32_t i = 0; i < MOST; i++) {
        calls += turner[i].there ? turner[i].calls : 0;
        open += turner[i].there ? turner[i].depth : 0;
    }
    const struct fdr_ledger_row *row;
    for (size_t n = fdr_ledger(f, &row), i = 0; i < n; i++) {
        in_ledger += row[i].presented;
        if (row[i].presented != row[i].kept + row[i].filtered + row[i].reduced + row[i].lost) return "P3 a row";
    }
    const struct fdr_total *total;
    for (size_t n = fdr_totals(f, &total), i = 0; i < n; i++) in_totals += total[i].calls;
    if (in_ledger + nowhere < calls || in_ledger > calls + open || (!nowhere && in_ledger < calls)) return "P3 the sum";
    return in_totals > calls ? "P5 the sum of totals" : NULL;
}

static const char *shown_wrong(uint64_t bytes, bool prefix)
{
    const char *wrong = NULL;
    uint64_t events, nowhere = fdri_life_recording.arena.super->lost_unattached;
    struct fdr_file *f = oracle_snapshot(bytes, &wrong);
    if (!f) return wrong;
    if (!wrong) wrong = oracle_check_any(f, &events);
    if (!wrong) wrong = sums_wrong(f, nowhere);
    struct oracle_rules rules = {.prefix = prefix, .buffer = bytes};
    for (uint32_t i = 0; i < MOST && !wrong && !nowhere; i++) {
        struct turner *w = &turner[i];
        if (w->there && w->attached && w->presented.count) wrong = oracle_check(&w->presented, &rules, f, w->location);
    }
    fdr_file_close(f);
    return wrong;
}

/* Runs one program; returns an error in its recording, or NULL. */
static const char *program(uint64_t number)
{
    static const char *const bins[] = {"1K", "2K", "4K", "16K", "64K", "4K"};
    static const char *const strategies[] = {"telescope", "whole", "last", "first", "telescope"};
    static const char *const buffers[] = {"256K", "512K", "1M", "2M", "4M"};
    seed = number * 2654435761u + 1;
    for (int i = 0; i < 8; i++) rnd(&seed, 2);
    struct fdr_config c = oracle_config(oracle_directory());
    uint32_t size = rnd(&seed, 5);
    c.buffer = buffers[size];
    c.bin = PICK(bins);
    c.strategy = PICK(strategies);
    if (rnd(&seed, 4) == 0) c.pin = "300us";
    if (rnd(&seed, 4) == 0) c.timer = NULL;
    uint32_t count = rnd(&seed, 3) ? 5 : 39;
    count = 2 + rnd(&seed, count);
    print_message("%llu: %s in bins of %s, %s%s%s, %u threads\n", (unsigned long long)number, c.buffer, c.bin,
                  c.strategy, c.pin ? ", the first " : "", c.pin ? c.pin : "", count);
    assert_int_equal(fdr_init(&c), 0);
    uint64_t bytes = fdr_usage().buffer_bytes;
    for (int i = 0; i < REGIONS; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    now = 1000;
    calls_of_ended = 0;
    for (uint32_t i = 0; i < count; i++) begin(&turner[i]);
    const char *wrong = NULL;
    char text[200];
    uint32_t most = (256u << 10 << size) / 12 / (count > 8 ? 4 : 1),
             all = 3 * count > TURNS_MOST ? 40 + count : 3 * count + 6;
    for (uint32_t i = 0; i < all && !wrong; i++) {
        struct turner *w = &turner[i < count ? i : rnd(&seed, count)];
        if (i >= count && rnd(&seed, 4) == 0) {
            end(w);
            begin(w);
        }
        uint32_t part = rnd(&seed, 8);
        w->steps = most / (1 + part * rnd(&seed, 2));
        turn(w);
        wrong = fdri_bins_check(&fdri_life_recording.arena, text, sizeof text);
        if (!wrong && (i == all - 1 || rnd(&seed, count) == 0))
            wrong = shown_wrong(bytes, !strcmp(c.strategy, "first"));
    }
    for (uint32_t i = 0; i < count; i++) end(&turner[i]);
    if (!wrong) wrong = shown_wrong(bytes, !strcmp(c.strategy, "first"));
    fdr_finalize();
    return wrong;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 0) : otherwise;
}

static bool is_wrong(uint64_t number)
{
    const char *wrong = program(number);
    if (wrong) print_error("%llu: %s\n", (unsigned long long)number, wrong);
    return wrong != NULL;
}

static void P3_P4_P9_threads_that_take_turns(void **state)
{
    (void)state;
    /* these programs failed once: outer calls gave bins during a search; the stop had no room for the open calls */
    static const uint64_t found[] = {107, 95, 101, 355, 363, 406, 3029, 3035, 86, 207, 226, 234, 389};
    uint64_t first = setting("FDR_TEST_FIRST", 1), rounds = setting("FDR_TEST_ROUNDS", ROUNDS), wrong = 0;
    for (size_t i = 0; i < (SANITIZED ? 2 : sizeof found / sizeof *found); i++) wrong += is_wrong(found[i]);
    for (uint64_t i = first; i < first + rounds; i++) wrong += is_wrong(i);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_P4_P9_threads_that_take_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
