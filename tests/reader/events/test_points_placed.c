/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P9
 * P9: the reader places a point among the calls of its tick. It must do so where the parents of these calls are lost,
 * and where the point's record names only the innermost call. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/arena/arena.h"
#include "tests/support/api_fixture.h"

enum { ROOM = 4000, OUTER = 190, HIDDEN, DEEPER, LEVELS = 80 };
static struct fdr_read_event e[ROOM];
static size_t events;
static fdr_region region[200];
static fdr_marker_id marker;

static void start(void)
{
    begin(&(struct fdr_config){.buffer = "1M"});
    define_regions(region, 200);
    marker = fdr_marker_define("m");
    fdr_enter_at(region[OUTER], 900);
}

/* Damages all bins of calls at one depth. */
static void damage(uint8_t *all, size_t bytes, uint32_t depth)
{
    uint32_t bins = 0;
    for (size_t at = 0; at + sizeof(struct fdri_arena_bin) + 1 < bytes; at += 64) {
        const struct fdri_arena_bin *h = (const void *)(all + at);
        if (h->magic != FDRI_ARENA_BIN_MAGIC || h->class_ != FDRI_ARENA_CLASS_REGION || h->depth != depth) continue;
        all[at + sizeof *h] ^= 0x55;
        bins++;
    }
    assert_true(bins > 0);
}

/* Finishes and loads the file. Bins of calls from depth 2 to `deepest` are damaged; 0: none. */
static void finish(uint32_t deepest)
{
    static uint8_t all[4 << 20];
    char path[300];
    struct fdr_file *f = NULL;
    fdr_leave_at(region[OUTER], 2000);
    assert_int_equal(fdr_snapshot(NULL), 0);
    FILE *file = fopen(fdr_last_snapshot(), "r");
    size_t bytes = fread(all, 1, sizeof all, file);
    fclose(file);
    assert_true(bytes > 0 && bytes < sizeof all);
    for (uint32_t d = 2; d <= deepest; d++) damage(all, bytes, d);
    snprintf(path, sizeof path, "%s/placed.fdr", oracle_directory());
    file = fopen(path, "w");
    assert_int_equal(fwrite(all, 1, bytes, file), bytes);
    fclose(file);
    fdr_file_open(path, &f, NULL, 0);
    assert_non_null(f);
    if (!deepest) balance(f);
    events = load(f, e, ROOM);
    end(f);
}

/* Returns the number of calls around the marker with this value; *before gets the number of enters before it. */
static int around(uint64_t value, int *before)
{
    int depth = 0;
    *before = 0;
    for (size_t i = 0; i < events; i++) {
        if (e[i].kind == FDR_MARKER && e[i].field[0] == value) return depth;
        if (e[i].kind == FDR_ENTER) depth++, ++*before;
        if (e[i].kind == FDR_LEAVE) depth--;
    }
    fail_msg("marker %llu is not shown", (unsigned long long)value);
    return -1;
}

static void call(int which)
{
    fdr_enter_at(region[which], 1000);
    fdr_leave_at(region[which], 1000);
}

/* Two markers in a nest of calls: one in the innermost call, one in the outermost after all others have ended. */
static void nest(int levels)
{
    int before;
    start();
    for (int i = 0; i < levels; i++) fdr_enter_at(region[i], 1000);
    fdr_marker_at(marker, 1, 1000);
    for (int i = levels - 1; i; i--) fdr_leave_at(region[i], 1000);
    fdr_marker_at(marker, 2, 1000);
    fdr_leave_at(region[0], 1000);
    finish(0);
    assert_int_equal(around(1, &before), levels + 1);
    assert_int_equal(around(2, &before), 2);
    assert_int_equal(before, levels + 1);
}

static void a_point_deeper_than_its_record_tells_stays_inside(void **state)
{
    (void)state;
    nest(50);
    nest(LEVELS);
}

/* The point lies between two calls, each of which lost its parent. */
static void a_point_between_parents_that_are_missing(void **state)
{
    int before;
    (void)state;
    start();
    fdr_enter_at(region[HIDDEN], 1000);
    call(1);
    fdr_leave_at(region[HIDDEN], 1000);
    fdr_marker_at(marker, 1, 1000);
    fdr_enter_at(region[HIDDEN], 1000);
    call(2);
    fdr_leave_at(region[HIDDEN], 1000);
    finish(2);
    around(1, &before);
    assert_int_equal(before, 3); /* outer, one made-up parent, region 1 */
}

/* The same with two parents each. The first two began in an earlier tick. A point in the next call decides. */
static void a_point_before_one_in_the_next_call(void **state)
{
    int before;
    (void)state;
    start();
    fdr_enter_at(region[HIDDEN], 950);
    fdr_enter_at(region[DEEPER], 950);
    call(1);
    fdr_leave_at(region[DEEPER], 1000);
    fdr_leave_at(region[HIDDEN], 1000);
    fdr_marker_at(marker, 1, 1000);
    fdr_enter_at(region[HIDDEN], 1000);
    fdr_enter_at(region[DEEPER], 1000);
    fdr_enter_at(region[2], 1000);
    fdr_marker_at(marker, 2, 1000);
    fdr_leave_at(region[2], 1000);
    fdr_leave_at(region[DEEPER], 1000);
    fdr_leave_at(region[HIDDEN], 1000);
    finish(3);
    around(1, &before);
    assert_int_equal(before, 4); /* outer, two made-up parents, region 1 */
    assert_int_equal(around(2, &before), 4);
    assert_int_equal(before, 7); /* two more made-up parents, region 2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_point_deeper_than_its_record_tells_stays_inside),
                                       cmocka_unit_test(a_point_between_parents_that_are_missing),
                                       cmocka_unit_test(a_point_before_one_in_the_next_call)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
