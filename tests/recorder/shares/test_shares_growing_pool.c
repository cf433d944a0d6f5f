/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P2 without=tsan (its threads take turns)
 * P2: a pool of threads grows to half of the number that the buffer guarantees. They work one at a time, for hours
 * of presented time. Each new thread must find a bin for its first call, although the others fell asleep only a
 * moment ago. A failure shows as lost events. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"

enum { MOST = 126, REGIONS = 20, DEEPEST = 4, EVENTS = 2000000, SEEDS = 6 };

static uint64_t now, seed, left; /* left: events left in this turn; one thread runs at a time */
static fdr_region region[REGIONS];
struct worker {
    pthread_t thread;
    sem_t go, done;
    bool end;
};

static void call(uint32_t depth)
{
    fdr_region r = region[rnd(&seed, REGIONS)];
    fdr_enter_at(r, now += 1 + rnd(&seed, 400));
    left -= left != 0;
    for (uint64_t n = depth < DEEPEST && rnd(&seed, 5) < 3 ? 1 + rnd(&seed, 6) : 0; n; n--) call(depth + 1);
    fdr_leave_at(r, now += 1 + rnd(&seed, rnd(&seed, 10) ? 400 : 9000));
}

static void *work(void *argument)
{
    struct worker *w = argument;
    for (;;) {
        sem_wait(&w->go);
        if (w->end) return NULL;
        while (left) call(1);
        sem_post(&w->done);
    }
}

static void begin(struct worker *w)
{
    *w = (struct worker){0};
    sem_init(&w->go, 0, 0);
    sem_init(&w->done, 0, 0);
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
}

static void one_pool(uint64_t with)
{
    static struct worker pool[MOST];
    struct fdr_config c = oracle_config(oracle_directory());
    uint32_t count = 0, want = 1;
    char name[16];
    c.buffer = "4M";
    c.timer = NULL;
    assert_int_equal(fdr_init(&c), 0);
    assert_true(fdr_usage().locations_sure >= MOST);
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    now = 1000000000;
    seed = with;
    for (uint64_t events = 0; events < EVENTS;) {
        for (; count < want; count++) begin(&pool[count]);
        uint64_t each = fdri_bits_max(EVENTS / 40 / want, 1);
        for (uint32_t i = 0; i < count; i++, events += each) {
            left = each;
            sem_post(&pool[i].go);
            sem_wait(&pool[i].done);
        }
        now += 600000000000;
        /* the last threads come when memory has been full for long */
        if (events > EVENTS / 160 * want) want = fdri_bits_min(want * 2, MOST);
    }
    struct fdr_usage u = fdr_usage();
    const struct fdri_arena_superblock *s = fdri_life_recording.arena.super;
    print_message("seed %llu: %llu presented by %u threads, %llu lost, %llu of threads without room\n",
                  (unsigned long long)with, (unsigned long long)u.presented, count, (unsigned long long)u.lost,
                  (unsigned long long)s->lost_unattached);
    assert_int_equal(u.lost + s->lost_unattached + s->lost_locations, 0);
    for (uint32_t i = 0; i < count; i++) {
        pool[i].end = true;
        sem_post(&pool[i].go);
        pthread_join(pool[i].thread, NULL);
    }
    fdr_finalize();
}

static void P2_each_newcomer_finds_a_first_bin(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= SEEDS; i++) one_pool(i * 7919 + 88172645463325252u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_each_newcomer_finds_a_first_bin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
