/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 promise=P5
 * P5: a thread ended long ago and has begun to give its memory back. A snapshot from outside shows it as one from
 * inside does: the same totals and the same ledger. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"

enum { CALLS = 60000 };

static char directory[] = "/tmp/fdr-ended-XXXXXX";
static fdr_region old, newer;

static void *work(void *unused)
{
    for (int i = 0; i < CALLS; i++) {
        fdr_enter(old);
        fdr_leave(old);
    }
    return unused;
}

/* The number of locations that have begun to give their memory back. */
static unsigned folding(const char *path)
{
    struct fdri_arena_superblock super;
    struct fdri_arena_location l;
    unsigned n = 0;
    int fd = open(path, O_RDONLY);
    assert_int_equal(pread(fd, &super, sizeof super, 0), sizeof super);
    for (uint64_t off = super.location_first; off; off = l.next) {
        assert_int_equal(pread(fd, &l, sizeof l, (off_t)off), sizeof l);
        n += !(l.flags & FDRI_ARENA_LOCATION_FREE) && l.flags & FDRI_ARENA_LOCATION_FOLDING;
    }
    close(fd);
    return n;
}

static struct fdr_file *opened(const char *path)
{
    struct fdr_file *f;
    char message[300] = "";
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    return f;
}

static void same_rows(struct fdr_file *a, struct fdr_file *b)
{
    const struct fdr_total *x, *y;
    size_t n = fdr_totals(a, &x);
    assert_int_equal(fdr_totals(b, &y), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(x[i].location, y[i].location);
        assert_int_equal(x[i].id, y[i].id);
        assert_int_equal(x[i].calls, y[i].calls);
        assert_int_equal(x[i].inclusive_ns, y[i].inclusive_ns);
        assert_int_equal(x[i].at_least, y[i].at_least);
    }
}

static void same_ledger(struct fdr_file *a, struct fdr_file *b)
{
    const struct fdr_ledger_row *x, *y;
    size_t n = fdr_ledger(a, &x);
    assert_int_equal(fdr_ledger(b, &y), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(x[i].presented, y[i].presented);
        assert_int_equal(x[i].kept, y[i].kept);
        assert_int_equal(x[i].reduced, y[i].reduced);
        assert_int_equal(x[i].lost, y[i].lost);
    }
}

static void P5_totals_of_a_thread_that_gave_bins_back(void **state)
{
    pthread_t thread;
    char path[64], message[300] = "";
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "256K",
                           .signal = "none",
                           .crash = "0",
                           .keep = "256,newest",
                           .timer = "monotonic", /* its ns do not depend on the moment of reading */
                           .arena = "anonymous"};
    (void)state;
    assert_non_null(mkdtemp(directory));
    c.dir = c.live_dir = directory;
    assert_int_equal(fdr_init(&c), 0);
    old = fdr_region_define("old", NULL, 0);
    newer = fdr_region_define("new", NULL, 0);
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    pthread_join(thread, NULL);
    bool begun = false;
    for (int i = 0; i < 500 && !begun; i++) { /* until the ended thread gives its first bin back */
        for (int j = 0; j < 500; j++) {
            fdr_enter(newer);
            fdr_leave(newer);
        }
        assert_int_equal(fdr_snapshot("inside"), 0);
        begun = folding(fdr_last_snapshot()) == 1;
        if (!begun) unlink(fdr_last_snapshot());
    }
    assert_true(begun);
    snprintf(path, sizeof path, "%s/outside.fdr", directory);
    assert_int_equal(fdr_process_snapshot((uint32_t)getpid(), path, NULL, message, sizeof message), 0);
    struct fdr_file *inside = opened(fdr_last_snapshot()), *outside = opened(path);
    assert_int_equal(fdr_file_info(outside)->threads_gone, 0);
    same_rows(inside, outside);
    same_ledger(inside, outside);
    fdr_file_close(inside);
    fdr_file_close(outside);
    unlink(path);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_totals_of_a_thread_that_gave_bins_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
