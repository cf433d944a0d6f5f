/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P2 without=tsan (its threads take turns)
 * P2: a thread works now and then and stays far below its fair share. A busy thread beside it calls 30 and 40
 * levels deep, and its oldest bins are pieces of many partitions. The first thread must keep nearly all of its
 * events, at least 98 %. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "recorder/thread/thread_state.h"
#include "tests/support/fair_share_fixture.h"

enum { REGIONS = 40, TURNS = 300, BUSY = 60000, SLOW = 20 };

struct deep { /* a thread that calls this deep when it gets its turn */
    pthread_t thread;
    sem_t go, done;
    uint32_t deepest, calls;
    uint64_t seed, presented;
    bool end;
};

static fdr_region deep_region[REGIONS];

static void go_deep(struct deep *w)
{
    uint32_t made = 0;
    while (made < w->calls) {
        uint32_t deep = 1 + (uint32_t)rnd(&w->seed, w->deepest);
        for (uint32_t d = 0; d < deep; d++) fdr_enter(deep_region[rnd(&w->seed, REGIONS)]);
        while (fdri_record_self.loc && fdri_record_self.loc->depth) fdr_leave(fdri_record_self.top->region);
        made += deep;
    }
    w->presented += made;
}

static void *deep_turns(void *argument)
{
    struct deep *w = argument;
    for (;;) {
        sem_wait(&w->go);
        if (w->end) return NULL;
        go_deep(w);
        sem_post(&w->done);
    }
}

static void begin_deep(struct deep *w, uint32_t deepest, uint64_t seed)
{
    *w = (struct deep){.deepest = deepest, .seed = seed * 7919 + 88172645463325252u};
    sem_init(&w->go, 0, 0);
    sem_init(&w->done, 0, 0);
    assert_int_equal(pthread_create(&w->thread, NULL, deep_turns, w), 0);
}

static void turn_deep(struct deep *w, uint32_t calls)
{
    w->calls = calls;
    sem_post(&w->go);
    sem_wait(&w->done);
}

static void end_deep(struct deep *w)
{
    w->end = true;
    sem_post(&w->go);
    pthread_join(w->thread, NULL);
}

static void start_deep(const char *buffer)
{
    char name[16];
    start("telescope", buffer);
    for (uint32_t i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "deep%u", i);
        deep_region[i] = fdr_region_define(name, "shares", i);
    }
}

static void slow_beside(uint32_t deepest)
{
    static struct deep busy, slow;
    uint64_t kept[4];
    uint32_t bins[4];
    start_deep("4M");
    begin_deep(&busy, deepest, 1);
    begin_deep(&slow, 15, 2);
    for (int i = 0; i < TURNS; i++) {
        turn_deep(&busy, BUSY);
        turn_deep(&slow, SLOW);
    }
    check(4 << 20, busy.presented + slow.presented, kept, bins, 4);
    print_message("beside %u levels: %llu of %llu calls of the slow one are kept, in %u bins of %u\n", deepest,
                  (unsigned long long)kept[1], (unsigned long long)slow.presented, bins[1], bins[0]);
    assert_true(kept[1] > slow.presented / 100 * 98);
    end_deep(&busy);
    end_deep(&slow);
    fdr_finalize();
}

static void P2_occasional_thread_beside_deep_ones(void **state)
{
    (void)state;
    slow_beside(30);
    slow_beside(40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_occasional_thread_beside_deep_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
