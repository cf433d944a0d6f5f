/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=60 promise=P10
 * P10: a signal requests a snapshot right before the recording ends. fdr takes the snapshot and the program runs on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

enum { ROUNDS = 30 };

static void P10_a_signal_before_the_end(void **state)
{
    char directory[] = "/tmp/fdr-last-XXXXXX", message[200] = "";
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "1M",
                           .signal = "USR1",
                           .crash = "0",
                           .finalize = "none",
                           .arena = "anonymous"};
    (void)state;
    assert_non_null(mkdtemp(directory));
    c.dir = c.live_dir = directory;
    for (int i = 0; i < ROUNDS; i++) {
        struct fdr_file *f;
        assert_int_equal(fdr_init(&c), 0);
        FDR_REGION("work") raise(SIGUSR1);
        fdr_finalize();
        assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
        assert_string_equal(fdr_file_info(f)->reason_kind, "signal");
        fdr_file_close(f);
        assert_int_equal(unlink(fdr_last_snapshot()), 0); /* so that the next round cannot find this file */
    }
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_a_signal_before_the_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
