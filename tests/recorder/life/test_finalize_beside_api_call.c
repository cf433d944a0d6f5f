/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,stress,threads timeout=120 promise=P10 wrap=dladdr,fdri_bins_meta_take,fdri_trigger_start
 * P10: a recording ends, or has only just begun, while another thread is inside of a call that does not record. The
 * memory must stay until that call returns, and the next recording must begin without leftovers. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/system/helper_threads.h"
#include "bins/bins.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/oracle.h"

/* ---- a thread that stops at a chosen place ---- */

static sem_t inside, go_on;
static uint32_t holding; /* atomic; the next thread that comes there stops */

static void stand_here(void)
{
    if (!__atomic_exchange_n(&holding, 0, __ATOMIC_ACQ_REL)) return;
    sem_post(&inside);
    while (sem_wait(&go_on) && errno == EINTR) {}
}

int __real_dladdr(const void *address, Dl_info *info);
int __wrap_dladdr(const void *address, Dl_info *info);
int __wrap_dladdr(const void *address, Dl_info *info)
{
    stand_here();
    return __real_dladdr(address, info);
}

uint32_t __real_fdri_bins_meta_take(struct fdri_bins_arena *a, enum fdri_arena_meta_kind kind, uint32_t bytes,
                                    uint32_t location);
uint32_t __wrap_fdri_bins_meta_take(struct fdri_bins_arena *a, enum fdri_arena_meta_kind kind, uint32_t bytes,
                                    uint32_t location);
uint32_t __wrap_fdri_bins_meta_take(struct fdri_bins_arena *a, enum fdri_arena_meta_kind kind, uint32_t bytes,
                                    uint32_t location)
{
    if (kind == FDRI_ARENA_META_NOTES) stand_here();
    return __real_fdri_bins_meta_take(a, kind, bytes, location);
}

static void (*at_start)(void);
int __real_fdri_trigger_start(const struct fdri_export_view *view);
int __wrap_fdri_trigger_start(const struct fdri_export_view *view);
int __wrap_fdri_trigger_start(const struct fdri_export_view *view)
{
    if (at_start) at_start();
    return __real_fdri_trigger_start(view);
}

/* ---- helpers ---- */

static int start(void)
{
    struct fdr_config c = oracle_config(oracle_directory());
    return fdr_init(&c);
}

static bool has_one(void)
{
    bool has = false;
    char path[300], name[32] = "";
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "re");
        if (f && fgets(name, sizeof name, f))
            has = has || !strncmp(name, FDRI_SYSTEM_THREAD_DUMPER, strlen(FDRI_SYSTEM_THREAD_DUMPER));
        if (f) fclose(f);
    }
    closedir(d);
    return has;
}

/* The kernel may list a joined thread for a moment longer. */
static bool has_dumper(void)
{
    for (int i = 0; i < 1000 && has_one(); i++) usleep(1000);
    return has_one();
}

/* Ends the recording while `call` is stopped midway. No other recording can begin before that call has returned. */
static void end_under(void *(*call)(void *), void *result)
{
    pthread_t t;
    __atomic_store_n(&holding, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_create(&t, NULL, call, result), 0);
    while (sem_wait(&inside) && errno == EINTR) {}
    fdr_finalize();
    assert_int_equal(start(), -EBUSY);
    sem_post(&go_on);
    pthread_join(t, NULL);
}

static void *add(void *result)
{
    *(int *)result = fdr_trigger_add("late: region r* over 1us");
    return NULL;
}

static void P10_end_while_a_trigger_is_added(void **state)
{
    (void)state;
    int result = 0;
    assert_int_equal(start(), 0);
    fdr_region_define("r", "file.c", 1);
    /* fdr looks up its name with dladdr */
    assert_true(fdr_region_define_address((const void *)(uintptr_t)&fdr_init) > 0);
    end_under(add, &result);
    assert_int_equal(result, -ESRCH);
    assert_false(has_dumper());
    assert_int_equal(start(), 0);
    assert_false(has_dumper()); /* the interrupted call has added no trigger to this recording either */
    assert_int_equal(fdr_trigger_add("first: api"), 1);
    assert_true(has_one());
    fdr_finalize();
    assert_false(has_dumper());
}

static void *note(void *unused)
{
    (void)unused;
    fdr_note("key", "of the first");
    return NULL;
}

static void P10_end_while_a_note_is_made(void **state)
{
    (void)state;
    assert_int_equal(start(), 0);
    end_under(note, NULL);
    assert_int_equal(start(), 0);
    assert_int_equal(fdri_life_recording.arena.super->notes_off, 0);
    fdr_note("key", "of the second");
    assert_int_not_equal(fdri_life_recording.arena.super->notes_off, 0);
    fdr_finalize();
}

/* ---- a recording that has begun and cannot take snapshots yet ---- */

static int early_snapshot, early_trigger;
static void call_early(void)
{
    early_snapshot = fdr_snapshot("early");
    early_trigger = fdr_trigger_add("early: api");
    fdr_trigger_fire(early_trigger, 1);
}

/* Runs first, so that no state of an earlier recording exists that could be taken for this one's. */
static void P10_calls_before_snapshots_can_be_taken(void **state)
{
    (void)state;
    at_start = call_early;
    assert_int_equal(start(), 0);
    at_start = NULL;
    assert_int_equal(early_snapshot, -ESRCH);
    assert_int_equal(early_trigger, 1);
    assert_int_equal(fdr_trigger_count(early_trigger), 1);
    assert_true(has_one());
    fdr_finalize(); /* a snapshot that was requested and not taken yet is taken now */
    assert_non_null(strstr(fdr_last_snapshot(), ".fdr"));
    assert_false(has_dumper());
}

int main(void)
{
    sem_init(&inside, 0, 0);
    sem_init(&go_on, 0, 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_calls_before_snapshots_can_be_taken),
                                       cmocka_unit_test(P10_end_while_a_trigger_is_added),
                                       cmocka_unit_test(P10_end_while_a_note_is_made)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
