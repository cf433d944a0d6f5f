/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P3 without=tsan (its threads take turns)
 * P3: threads come and go in buffers so small that the accounts of a few threads fill them. Each thread finds room,
 * whatever earlier threads left behind. No presented event is missing in the accounts. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "recorder/recording.h"
#include "tests/support/oracle.h"

enum { THREADS = 24, EVENTS = 3000 };

static uint64_t presented;

struct life {
    uint32_t seed, deepest;
};

/* Calls and markers, deeper with each thread, so that the accounts of [ended] must grow all the time. */
static void *live(void *argument)
{
    const struct life *its = argument;
    uint32_t open[128], depth = 0, random = its->seed;
    for (uint32_t i = 0; i < EVENTS || depth; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t dice = random >> 24;
        if (dice < 40) {
            fdr_marker(1, i);
            presented++;
        } else if (i < EVENTS && depth < its->deepest && (dice < (i % 400 < 300 ? 170u : 110u) || depth == 0)) {
            fdr_enter(open[depth++] = 1 + (random >> 12) % 5);
            presented++;
        } else if (depth) {
            fdr_leave(open[--depth]);
        }
    }
    return NULL;
}

static void each_finds_room(const char *strategy, const char *buffer, const char *bin, uint32_t deeper)
{
    struct fdr_config c = oracle_config(oracle_directory());
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    const char *wrong = NULL;
    uint64_t events, sum;
    c.strategy = strategy;
    c.buffer = buffer;
    c.bin = bin;
    c.timer = NULL;
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < 5; i++) fdr_region_define(names[i], NULL, 0);
    fdr_marker_define("m");
    presented = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        struct life its = {.seed = 12346 + i, .deepest = 8 + deeper * i};
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, live, &its), 0);
        assert_int_equal(pthread_join(t, NULL), 0);
    }
    if (fdri_life_recording.arena.super->lost_locations)
        fail_msg("%s, %s in bins of %s: %u of %d threads turned away, %llu events", strategy, buffer, bin,
                 fdri_life_recording.arena.super->lost_locations, THREADS,
                 (unsigned long long)fdri_life_recording.arena.super->lost_unattached);
    struct fdr_file *f = oracle_snapshot(fdri_life_recording.arena.super->arena_bytes, &wrong);
    if (!wrong) wrong = oracle_check_any(f, &events);
    if (wrong) fail_msg("%s, %s in bins of %s: %s", strategy, buffer, bin, wrong);
    const struct fdr_ledger_row *row;
    sum = fdr_file_info(f)->lost_unattached; /* markers of a depth for which accounts of markers found no room */
    for (size_t n = fdr_ledger(f, &row), i = 0; i < n; i++) sum += row[i].presented;
    assert_int_equal(sum, presented);
    fdr_file_close(f);
    fdr_finalize();
}

static void P3_threads_of_a_tiny_buffer_one_after_another(void **state)
{
    (void)state;
    static const char *const strategies[] = {"whole", "last", "telescope"}, *const bins[] = {"512", "1K", "2K", "4K"},
                             *const buffers[] = {"100K", "128K", "160K", "256K"};
    for (int s = 0; s < 3; s++)
        for (int n = 0; n < 4; n++)
            for (int b = 0; b < 4; b++)
                for (uint32_t deeper = 0; deeper <= 4; deeper += 4)
                    each_finds_room(strategies[s], buffers[n], bins[b], deeper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_threads_of_a_tiny_buffer_one_after_another)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
