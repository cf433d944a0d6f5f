/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P7,P10
 * P6, P10: a process finds itself restored from a checkpoint. The test simulates this: it changes the data that
 * tell one life of the process from the next. The process must leave the old recording as it is and begin a new
 * one. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/racy.h"
#include "recorder/life/life.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/deaths.h"

static fdr_region outer, inner;

static void begin(const char *signal_name)
{
    struct fdr_config c = death_config(death_place());
    c.signal = signal_name;
    assert_int_equal(fdr_init(&c), 0);
    outer = fdr_region_define("outer", NULL, 0);
    inner = fdr_region_define("inner", NULL, 0);
}

static void record(int n)
{
    for (int i = 0; i < n; i++) fdr_enter(inner), fdr_leave(inner);
}

enum what { BOOT, PID, START };
/* Changes them behind the recorder's back. */
FDRI_RACY static void restore(enum what what)
{
    if (what == BOOT) fdri_life_recording.identity.boot ^= 1;
    if (what == PID) fdri_life_recording.identity.pid = 1 << 23; /* higher than any real pid */
    if (what == START) fdri_life_recording.identity.start_time++;
}

/* Number of presented events; all of them must be kept and the file whole. */
static uint64_t presented(const char *path, const char *state)
{
    struct fdr_file *f = NULL;
    char message[200] = "";
    const struct fdr_ledger_row *row;
    uint64_t sum = 0;
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    const char *wrong = death_check(f);
    if (wrong) fail_msg("%s", wrong);
    assert_string_equal(fdr_file_info(f)->state, state);
    for (size_t i = 0, n = fdr_ledger(f, &row); i < n; i++) sum += row[i].presented;
    fdr_file_close(f);
    return sum;
}

static void P6_a_new_recording_begins(void **state)
{
    (void)state;
    for (enum what w = BOOT; w <= START; w++) {
        char old[512], fresh[512];
        begin("none");
        record(100);
        uint32_t first = fdri_life_recording.number;
        snprintf(old, sizeof old, "%s", fdri_life_recording.live_path);
        restore(w);
        /* checks for a restore first, so the snapshot belongs to the new recording */
        assert_int_equal(fdr_snapshot("after"), 0);
        assert_true(fdri_life_recording.number > first);
        snprintf(fresh, sizeof fresh, "%s", fdri_life_recording.live_path);
        assert_string_not_equal(old, fresh);
        assert_int_equal(presented(fdr_last_snapshot(), "recording"), 0);
        assert_int_equal(fdr_region_define("inner", NULL, 0), inner);
        record(7);
        assert_int_equal(fdr_snapshot("later"), 0);
        assert_int_equal(presented(fdr_last_snapshot(), "recording"), 7);
        fdr_finalize();
        assert_int_equal(presented(old, "recording"), 100); /* unchanged */
        assert_int_not_equal(access(fresh, F_OK), 0);
    }
}

/* ---- without a call of the public header ---- */

static bool stop;
static uint32_t recorded; /* recording in which the thread recorded last */
static void *go_on(void *unused)
{
    fdr_enter(outer); /* open at the restore: the new recording begins with an empty shadow stack */
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        record(100);
        __atomic_store_n(&recorded, fdri_record_self.recording, __ATOMIC_RELAXED);
    }
    fdr_leave(outer);
    return unused;
}

static uint32_t in_recording(void) { return __atomic_load_n(&recorded, __ATOMIC_RELAXED); }

static void P10_restore_is_noticed_without_a_call(void **state)
{
    (void)state;
    pthread_t t[3];
    begin("USR2");
    uint32_t first = fdri_life_recording.number;
    char old[512];
    snprintf(old, sizeof old, "%s", fdri_life_recording.live_path);
    stop = false;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, go_on, NULL), 0);
    while (in_recording() != first) usleep(1000);
    restore(START);
    /* for a moment there is no recording, until the new one begins */
    for (int i = 0; i < 6000 && in_recording() != first + 1; i++) usleep(10000);
    assert_int_equal(in_recording(), first + 1);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    assert_int_equal(fdr_snapshot("after"), 0);
    assert_true(presented(fdr_last_snapshot(), "recording") > 0);
    assert_int_equal(fdri_life_recording.number, first + 1); /* only one new recording */
    fdr_finalize();
    assert_true(presented(old, "recording") >= 100);
}

/* A step of the clock makes the recorder check for a restore at once. */
static void P10_restore_is_noticed_by_the_clock(void **state)
{
    (void)state;
    begin("USR2");
    uint32_t first = fdri_life_recording.number;
    record(10);
    usleep(20000); /* the dumper thread has made its own check */
    restore(BOOT);
    fdri_life_suspect_restored();
    for (int i = 0; i < 400 && fdri_atomic_load_relaxed(&fdr_switch_.on) != first + 1; i++) usleep(10000);
    assert_int_equal(fdri_atomic_load_relaxed(&fdr_switch_.on), first + 1);
    fdr_finalize();
}

/* ---- changes that are no restore ---- */

static void P10_children_are_no_restored_processes(void **state)
{
    (void)state;
    int status;
    begin("none");
    record(10);
    uint32_t first = fdri_life_recording.number;
    pid_t pid = vfork();
    if (pid == 0) {
        fdri_life_check_restored();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    fdri_life_check_restored();
    fdri_life_recording.identity.start_time = 0; /* /proc was not available */
    fdri_life_check_restored();
    assert_int_equal(fdri_atomic_load_relaxed(&fdr_switch_.on), first);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P6_a_new_recording_begins),
        cmocka_unit_test(P10_restore_is_noticed_without_a_call),
        cmocka_unit_test(P10_restore_is_noticed_by_the_clock),
        cmocka_unit_test(P10_children_are_no_restored_processes),
    };
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
