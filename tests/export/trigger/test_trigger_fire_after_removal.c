/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 wrap=fdri_trigger_seen
 * A thread fires a trigger while another thread removes it and adds a new one. The new trigger does not count the
 * firing of the old one: it gets the place only after that firing has ended. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/view.h"
#include "tests/support/wait_for_snapshots.h"
#include "tests/support/observed_process.h"

enum { OTHERS = 63, TRIES = 200 };
static int first, others[OTHERS];
static bool replaced;

/* In the middle of a firing, its trigger is removed. A new trigger must not get the place, however long it tries. */
void __real_fdri_trigger_seen(uint32_t slot, const struct fdri_export_seen *seen);
void __wrap_fdri_trigger_seen(uint32_t slot, const struct fdri_export_seen *seen);
static void *replace(void *unused)
{
    assert_int_equal(fdr_trigger_remove(first), 0);
    for (int i = 0; i < TRIES && !replaced; i++, usleep(1000)) replaced = fdr_trigger_add("new: api") > 0;
    return unused;
}
void __wrap_fdri_trigger_seen(uint32_t slot, const struct fdri_export_seen *seen)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, replace, NULL), 0);
    pthread_join(t, NULL);
    __real_fdri_trigger_seen(slot, seen);
}

static void removed_while_fired(void **state)
{
    (void)state;
    snapshots_start((struct fdr_config){.buffer = "1M", .holdoff = "0"});
    assert_true((first = fdr_trigger_add("old: api")) > 0);
    for (int i = 0; i < OTHERS; i++) assert_true((others[i] = fdr_trigger_add("other: api")) > 0);
    assert_int_equal(fdr_trigger_add("one_more: api"), -ENOSPC);
    fdr_marker(0, 0); /* registers this thread with liburcu */
    fdr_trigger_fire(first, 1);
    assert_false(replaced);
    int id = -ENOSPC; /* now the place becomes free */
    for (int i = 0; i < 10000 && id == -ENOSPC; i++, usleep(1000)) id = fdr_trigger_add("new: api");
    assert_true(id > 0 && id != first);
    assert_int_equal(fdr_trigger_count(id), 0);
    assert_int_equal(fdr_trigger_count(first), 0);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(removed_while_fired)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
