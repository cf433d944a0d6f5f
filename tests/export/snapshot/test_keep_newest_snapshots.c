/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 */
/* FDR_KEEP keeps the newest snapshots, as many as fdr can keep by name. This also holds when two triggers, or a trigger
 * and fdr_snapshot, request them at the same time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/observed_process.h"
#include "tests/support/wait_for_snapshots.h"

enum { MOST = 256, TAKEN = 300 };

static void start(void) { snapshots_start((struct fdr_config){.keep = "256,newest", .buffer = "256K", .disk = "10G"}); }

/* The trigger's snapshot before counts as written a moment before the trigger is armed again; a match in between is
 * dropped. So the trigger fires again if nothing comes. */
static void taken_by(int trigger, uint64_t so_far)
{
    for (int i = 0; i < 60000 && fdr_usage().snapshots == so_far; i++) {
        if (i % 5000 == 0) fdr_trigger_fire(trigger, 1);
        usleep(1000);
    }
    assert_int_equal(fdr_usage().snapshots, so_far + 1);
}

/* The trigger's snapshot counts as written while fdr still removes older files. Until it is over, it also serves the
 * program. */
static void taken_by_program(uint64_t so_far)
{
    while (fdr_usage().snapshots == so_far) assert_int_equal(fdr_snapshot("by the program"), 0);
    assert_int_equal(fdr_usage().snapshots, so_far + 1);
}

/* Checks that the newest of all written snapshots are there. */
static void the_newest_stay(void)
{
    static int number; /* the number continues in the next recording */
    char path[600], end[32];
    assert_int_equal(snapshots(path, sizeof path), MOST);
    snprintf(end, sizeof end, ".%d.fdr", number += TAKEN);
    assert_non_null(strstr(path, end));
    fdr_finalize();
    forget_snapshots();
}

static void of_two_triggers(void **state)
{
    (void)state;
    start();
    int t[2] = {fdr_trigger_add("a: api holdoff 0"), fdr_trigger_add("b: api holdoff 0")};
    assert_true(t[0] >= 0 && t[1] >= 0);
    for (uint64_t i = 0; i < TAKEN; i++) taken_by(t[i % 2], i);
    the_newest_stay();
}

static void of_a_trigger_and_the_program(void **state)
{
    (void)state;
    start();
    int t = fdr_trigger_add("a: api holdoff 0");
    assert_true(t >= 0);
    for (uint64_t i = 0; i < TAKEN; i++) {
        if (i % 2) taken_by_program(i);
        else taken_by(t, i);
    }
    the_newest_stay();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_two_triggers),
                                       cmocka_unit_test(of_a_trigger_and_the_program)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
