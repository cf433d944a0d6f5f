/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 promise=P8
 * P8: strategy `telescope`, where accounts of epochs need the room of events. Giving back for them must never take
 * the bin that was just opened for the next record. Otherwise that record would go to offset 0, the superblock; the
 * test checks the superblock for changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include <fdr/fdr.h>

#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "recorder/recording.h"

enum { RECORDINGS = 40, THREADS = 4, STEPS = 60000 };

static fdr_region region[5];
static fdr_marker_id mark;

/* Nested calls of several depths and durations, with points between them. */
static void *record(void *unused)
{
    uint32_t open[16], depth = 0, random = 12345;
    for (uint32_t i = 0; i < STEPS; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t dice = random >> 24;
        if (dice < 40) fdr_marker(mark, i);
        else if (depth < 12 && (dice < 140 || depth == 0)) fdr_enter(region[open[depth++] = (random >> 12) % 5]);
        else if (depth) fdr_leave(region[open[--depth]]);
    }
    while (depth) fdr_leave(region[open[--depth]]);
    return unused;
}

static void check_superblock(int recording)
{
    const uint8_t *header = fdri_life_recording.arena.base;
    struct fdri_arena_spare spare;
    memcpy(&spare, header + FDRI_ARENA_SPARE_OFF, sizeof spare);
    assert_int_equal(spare.magic, FDRI_ARENA_SPARE_MAGIC);
    for (int i = 0; i < FDRI_ARENA_SPARE_FIXED; i++) {
        uint32_t from = fdri_arena_spare_fixed[i].from, bytes = fdri_arena_spare_fixed[i].to - from;
        if (memcmp(header + from, spare.copy + from, bytes))
            fail_msg("recording %d: the superblock changed in [%u, %u)", recording, from, from + bytes);
    }
}

static void P8_the_superblock_stays(void **state)
{
    (void)state;
    for (int n = 0; n < RECORDINGS; n++) {
        struct fdr_config c = {.size = sizeof c,
                               .ignore_environment = 1,
                               .buffer = "1M",
                               .arena = "anonymous",
                               .strategy = "telescope",
                               .signal = "none",
                               .crash = "0"};
        pthread_t t[THREADS];
        assert_int_equal(fdr_init(&c), 0);
        for (int i = 0; i < 5; i++) region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, NULL, 0);
        mark = fdr_marker_define("m");
        for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, record, NULL), 0);
        for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
        check_superblock(n);
        fdr_finalize();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_the_superblock_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
