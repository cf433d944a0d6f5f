/* SPDX-License-Identifier: MIT */
/* ctest: label=threads promise=P3
 * P3: another thread was entering a call while a snapshot was copied: the call is counted as presented, and is in no
 * other account yet. It is not lost, and recovery of the snapshot does not count it as lost. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "base/atomic.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/thread/thread.h"

enum { CALLS = 100 };
static char directory[] = "/tmp/fdr-under-way-XXXXXX";

static void *snapshot(void *unused)
{
    assert_int_equal(fdr_snapshot("under way"), 0);
    return unused;
}

/* Leaves this thread's location as an enter does between its stores, while another thread takes a snapshot. */
static void snapshot_within_enter(void)
{
    struct fdri_arena_location *l = fdri_record_self.loc;
    struct fdri_arena_level *v = fdri_thread_level(&fdri_record_self, 1);
    pthread_t other;
    fdri_atomic_store_relaxed(&l->busy, FDRI_RECORD_HERE());
    fdri_atomic_bump_relaxed(&v->presented, 1);
    assert_int_equal(pthread_create(&other, NULL, snapshot, NULL), 0);
    pthread_join(other, NULL);
    fdri_atomic_bump_relaxed(&v->presented, -1);
    fdri_atomic_store_release(&l->busy, 0);
}

static void sums(struct fdr_file *f, uint64_t *presented, uint64_t *lost)
{
    const struct fdr_ledger_row *row;
    *presented = *lost = 0;
    for (size_t i = 0, n = fdr_ledger(f, &row); i < n; i++) {
        *presented += row[i].presented;
        *lost += row[i].lost;
    }
}

static void P3_not_lost_after_recovery(void **state)
{
    char out[64], message[300] = "";
    struct fdr_file *f, *g;
    uint64_t presented, lost;
    struct fdr_config c = {
        .size = sizeof c, .ignore_environment = 1, .signal = "none", .crash = "0", .arena = "anonymous"};
    (void)state;
    assert_non_null(mkdtemp(directory));
    c.dir = c.live_dir = directory;
    assert_int_equal(fdr_init(&c), 0);
    fdr_region region = fdr_region_define("work", NULL, 0);
    for (int i = 0; i < CALLS; i++) {
        fdr_enter(region);
        fdr_leave(region);
    }
    snapshot_within_enter();
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    sums(f, &presented, &lost);
    assert_int_equal(presented, CALLS + 1);
    assert_int_equal(lost, 0);
    snprintf(out, sizeof out, "%s/recovered.fdr", directory);
    assert_int_equal(fdr_file_recover(f, out, message, sizeof message), 0);
    assert_int_equal(fdr_file_open(out, &g, message, sizeof message), FDR_WHOLE);
    sums(g, &presented, &lost);
    assert_int_equal(presented, CALLS + 1);
    assert_int_equal(lost, 0);
    assert_int_equal(fdr_file_verify(g), FDR_WHOLE);
    fdr_file_close(g);
    fdr_file_close(f);
    unlink(out);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_not_lost_after_recovery)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
