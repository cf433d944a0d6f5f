/* SPDX-License-Identifier: MIT */
/* Common parts of the tests of fair shares: threads that record on command, and a check of recordings of many threads.
 * Tests include this file. */
#ifndef FDRI_TESTS_SHARES_H
#define FDRI_TESTS_SHARES_H

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bins/bins.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"

static fdr_region region[8];

struct turn { /* one thread that records on command */
    pthread_t thread;
    sem_t go, done;
    uint64_t calls, seed, presented;
    bool begun, end;
};

static inline void work(struct turn *w)
{
    for (uint64_t i = 0; i < w->calls; i += 3) {
        fdr_enter(region[0]);
        fdr_enter(region[1 + rnd(&w->seed, 3)]);
        fdr_enter(region[4 + rnd(&w->seed, 4)]);
        while (fdri_record_self.loc && fdri_record_self.loc->depth) fdr_leave(fdri_record_self.top->region);
        w->presented += 3;
    }
}

static inline void *turns(void *argument)
{
    struct turn *w = argument;
    for (;;) {
        sem_wait(&w->go);
        if (w->end) return NULL;
        work(w);
        sem_post(&w->done);
    }
}

static inline void end(struct turn *w)
{
    w->end = true;
    w->begun = false;
    sem_post(&w->go);
    pthread_join(w->thread, NULL);
}

static inline void begin(struct turn *w, uint64_t seed)
{
    if (w->begun) end(w); /* a failed test left its thread running */
    *w = (struct turn){.seed = seed * 7919 + 88172645463325252u, .begun = true};
    sem_init(&w->go, 0, 0);
    sem_init(&w->done, 0, 0);
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 128 * 1024);
    assert_int_equal(pthread_create(&w->thread, &a, turns, w), 0);
    pthread_attr_destroy(&a);
}

static inline void turn(struct turn *w, uint64_t calls)
{
    w->calls = calls;
    sem_post(&w->go);
    sem_wait(&w->done);
}

static const char *timer; /* for the next recordings; NULL: the default timer */

static inline void start(const char *strategy, const char *buffer)
{
    struct fdr_config c = oracle_config(oracle_directory());
    char name[16];
    c.strategy = strategy;
    c.buffer = buffer;
    c.timer = timer;
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, "shares", (unsigned)i);
    }
}

/* Checks the arena, a snapshot against the oracle's rules, the ledger and the totals. Stores kept events and bins by
 * location id. */
static inline void check(uint64_t bytes, uint64_t presented, uint64_t *kept, uint32_t *bins, size_t most)
{
    const char *wrong = NULL;
    char text[160];
    uint64_t events = 0, sum = 0, sums = 0;
    const char *bad = fdri_bins_check(&fdri_life_recording.arena, text, sizeof text);
    if (bad) print_message("%s\n", bad);
    assert_null(bad);
    struct fdr_file *f = oracle_snapshot(bytes, &wrong);
    if (!wrong) wrong = oracle_check_any(f, &events);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    memset(kept, 0, most * sizeof *kept);
    memset(bins, 0, most * sizeof *bins);
    for (size_t i = 0; i < n; i++) {
        assert_true(rows[i].presented == rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost);
        sum += rows[i].presented;
        if (rows[i].location < most) kept[rows[i].location] += rows[i].kept;
    }
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        if (l->id < most) bins[l->id] = (uint32_t)l->bins;
    }
    const struct fdr_total *totals;
    n = fdr_totals(f, &totals);
    for (size_t i = 0; i < n; i++) sums += totals[i].calls;
    fdr_file_close(f);
    assert_int_equal(sum, presented);
    assert_int_equal(sums, presented);
}
#endif
