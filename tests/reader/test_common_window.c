/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60 promise=P8
 * P8: the window in which all locations have their events. A location that began late and gave nothing back does not
 * narrow it. A location that gave its beginning back does, and so does one whose beginning is damaged. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"

static fdr_region region;
static uint64_t now;

static void record(int calls)
{
    for (int i = 0; i < calls; i++) {
        fdr_enter_at(region, now += 1000);
        fdr_leave_at(region, now += 100 + (uint64_t)i * 7919 % 500);
    }
}
static void *late(void *calls)
{
    fdr_thread_name("late");
    record(*(int *)calls);
    return NULL;
}

/* Flips a bit of the first record in the location's first bin. */
static void damage_first(const char *path, uint32_t location)
{
    FILE *file = fopen(path, "r+");
    struct fdri_arena_bin b;
    long at = 0;
    assert_non_null(file);
    for (;; at += FDRI_ARENA_BIN_MIN_BYTES) {
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        if (fread(&b, sizeof b, 1, file) != 1) fail_msg("location %u has no bin", location);
        if (b.magic == FDRI_ARENA_BIN_MAGIC && b.location == location && b.seq == 1) break;
    }
    fseek(file, at + (long)sizeof b, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at + (long)sizeof b, SEEK_SET);
    fputc(byte ^ 16, file);
    assert_int_equal(fclose(file), 0);
}

/* Records, and reads `first_ns` and `common_from_ns` of the file, and the begin of the late thread. */
static void window(int calls, bool damaged, uint64_t *first, uint64_t *common, uint64_t *from)
{
    char folder[] = "/tmp/fdr-common-XXXXXX", path[600], message[200] = "";
    struct fdr_file *f = NULL;
    pthread_t t;
    assert_non_null(mkdtemp(folder));
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .name = "common",
                           .buffer = "1M",
                           .strategy = "last",
                           .arena = "anonymous",
                           .signal = "none",
                           .timer = "monotonic",
                           .dir = folder};
    assert_int_equal(fdr_init(&c), 0);
    region = fdr_region_define("r", NULL, 0);
    now = 1000000;
    record(100);
    now += 1000000000;
    pthread_create(&t, NULL, late, &calls);
    pthread_join(t, NULL);
    assert_int_equal(fdr_snapshot("window"), 0);
    snprintf(path, sizeof path, "%s", fdr_last_snapshot());
    fdr_finalize();
    if (damaged) damage_first(path, 1);
    fdr_file_open(path, &f, message, sizeof message);
    assert_non_null(f);
    *first = fdr_file_info(f)->first_ns;
    *common = fdr_file_info(f)->common_from_ns;
    *from = 0;
    for (size_t i = 0; i < fdr_location_count(f); i++)
        if (!strcmp(fdr_location_info(f, i)->name, "late")) *from = fdr_location_info(f, i)->from_ns;
    fdr_file_close(f);
    unlink(path);
    rmdir(folder);
}

static void who_began_late_does_not_narrow_it(void **state)
{
    (void)state;
    uint64_t first, common, from;
    window(100, false, &first, &common, &from);
    assert_true(from > first);
    assert_int_equal(common, first);
}

static void who_gave_up_its_beginning_does(void **state)
{
    (void)state;
    uint64_t first, common, from;
    window(400000, false, &first, &common, &from);
    assert_true(from > first);
    assert_int_equal(common, from);
}

static void of_which_that_is_damaged_does(void **state)
{
    (void)state;
    uint64_t first, common, from;
    window(100000, true, &first, &common, &from);
    assert_true(from > first + 1000000000);
    assert_int_equal(common, from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_began_late_does_not_narrow_it),
                                       cmocka_unit_test(who_gave_up_its_beginning_does),
                                       cmocka_unit_test(of_which_that_is_damaged_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
