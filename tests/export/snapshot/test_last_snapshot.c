/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60
 * The path that fdr_last_snapshot returned stays valid until the same thread asks again. Snapshots by other threads do
 * not change it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/observed_process.h"

#include "tests/support/wait_for_snapshots.h"

static void *take_one(void *seen)
{
    assert_int_equal(fdr_snapshot("another thread's"), 0);
    snprintf(seen, 300, "%s", fdr_last_snapshot());
    return NULL;
}

static void the_path_stays(void **state)
{
    char first[300], other[300];
    pthread_t t;
    (void)state;
    snapshots_start((struct fdr_config){.buffer = "1M", .holdoff = "0"});
    assert_int_equal(fdr_snapshot("first"), 0);
    const char *path = fdr_last_snapshot();
    snprintf(first, sizeof first, "%s", path);
    assert_int_equal(access(first, F_OK), 0);
    assert_int_equal(pthread_create(&t, NULL, take_one, other), 0);
    pthread_join(t, NULL);
    fdr_trigger_fire(fdr_trigger_add("mine: api"), 1); /* fdr's own thread takes this one */
    assert_true(comes(3));
    assert_string_equal(path, first);
    assert_int_equal(access(other, F_OK), 0);
    assert_string_not_equal(other, first);
    /* the file exists before its name is stored */
    for (int i = 0; i < 1000 && !strcmp(fdr_last_snapshot(), other); i++) sleep_ms(10);
    assert_string_not_equal(fdr_last_snapshot(), first);
    assert_string_not_equal(fdr_last_snapshot(), other);
    assert_int_equal(access(fdr_last_snapshot(), F_OK), 0);
    fdr_finalize();
    assert_int_equal(access(fdr_last_snapshot(), F_OK), 0); /* also after the recording has ended */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_path_stays)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
