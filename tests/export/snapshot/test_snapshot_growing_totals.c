/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P5 wrap=pwrite
 * P5: totals in a snapshot are exact although their histograms grow, and move, between two writes of the copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { REGIONS = 2500, BEFORE = 6, FIRST_WRITES = 6 };
static fdr_region region[REGIONS];
static uint64_t now;
static unsigned writes, when, length; /* calls last 2^length ns */
static char dir[] = "/tmp/fdr-totals-XXXXXX";

static void call_all(void)
{
    for (int i = 0; i < REGIONS; i++) {
        fdr_enter_at(region[i], now += 10);
        fdr_leave_at(region[i], now += 1ull << length);
    }
}

/* Each histogram gets a bucket that does not fit, so it moves. */
ssize_t __real_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off)
{
    if (writes++ == when) {
        length += 8;
        call_all();
    }
    return __real_pwrite(fd, bytes, count, off);
}

static void start(void)
{
    char name[16];
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .arena = "anonymous",
                                 .buffer = "4M",
                                 .signal = "none",
                                 .dir = dir,
                                 .timer = "monotonic"};
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    now = 1000000;
    length = 4;
    when = UINT32_MAX;
    for (int i = 0; i < BEFORE; i++) call_all();
}

static void P5_histograms_that_move_during_a_copy(void **state)
{
    uint64_t left_out = 0;
    (void)state;
    for (unsigned at = 0; at < FIRST_WRITES; at++) {
        const struct fdr_total *t;
        struct fdr_file *f;
        char message[300];
        start();
        writes = 0;
        when = at;
        assert_int_equal(fdr_snapshot("totals"), 0);
        assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
        for (size_t n = fdr_totals(f, &t), i = 0; i < n; i++) {
            uint64_t in = 0;
            for (int b = 0; b < 64; b++) in += t[i].histogram[b];
            assert_in_range(t[i].calls, BEFORE, BEFORE + 1);
            if (t[i].has_histogram) assert_in_range(in, t[i].calls - 1, BEFORE + 1);
        }
        left_out += fdr_file_info(f)->histograms_left_out;
        fdr_file_close(f);
        unlink(fdr_last_snapshot());
        fdr_finalize();
    }
    rmdir(dir);
    assert_in_range(left_out, 1, 20);
}

int main(void)
{
    if (!mkdtemp(dir)) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_histograms_that_move_during_a_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
