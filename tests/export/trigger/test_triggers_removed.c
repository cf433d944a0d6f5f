/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,stress,threads timeout=120 promise=P10
 * ctest: wrap=fdri_snapshot_take,fdri_thread_after_grace,malloc,calloc,realloc
 * P10: a trigger is removed, and its place is given to another, at the worst moments. A thread reports to it, its
 * snapshot is under way, or its place is freed late. Also, definitions for triggers call no allocator. */
#include <fdr/fdr.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "export/snapshot/snapshot.h"
#include "export/trigger/trigger.h"
#include "export/view.h"
#include "tests/support/wait_for_snapshots.h"
#include "tests/support/observed_process.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <time.h>

static void start(void) { snapshots_start((struct fdr_config){.buffer = "1M", .holdoff = "0"}); }

/* ---- replacements of parts of the library ---- */

/* The work that waits for a grace period, until the test runs it. */
static struct {
    void (*what)(void *);
    void *with;
} late[8];
static unsigned late_count;
void __wrap_fdri_thread_after_grace(void (*what)(void *), void *with);
void __wrap_fdri_thread_after_grace(void (*what)(void *), void *with)
{
    assert_true(late_count < 8);
    late[late_count].what = what;
    late[late_count++].with = with;
}
static void grace_is_over(void)
{
    for (unsigned i = 0; i < late_count; i++) late[i].what(late[i].with);
    late_count = 0;
}

/* A snapshot that lasts as long as the test wants. */
static sem_t inside, go_on;
static char taken[8][64];
static unsigned taken_count; /* atomic */
int __wrap_fdri_snapshot_take(const struct fdri_snapshot_why *why, const struct fdri_snapshot_quota *quota,
                              bool by_signal);
int __wrap_fdri_snapshot_take(const struct fdri_snapshot_why *why, const struct fdri_snapshot_quota *quota,
                              bool by_signal)
{
    (void)quota;
    (void)by_signal;
    snprintf(taken[taken_count % 8], sizeof taken[0], "%s", why->name);
    __atomic_fetch_add(&taken_count, 1, __ATOMIC_RELEASE);
    sem_post(&inside);
    while (sem_wait(&go_on) && errno == EINTR) {}
    return 0;
}

static _Thread_local unsigned allocations;
void *__real_malloc(size_t);
void *__wrap_malloc(size_t);
void *__wrap_malloc(size_t bytes)
{
    allocations++;
    return __real_malloc(bytes);
}
void *__real_calloc(size_t, size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_calloc(size_t count, size_t bytes)
{
    allocations++;
    return __real_calloc(count, bytes);
}
void *__real_realloc(void *, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_realloc(void *p, size_t bytes)
{
    allocations++;
    return __real_realloc(p, bytes);
}

/* ---- during a report ---- */

static void *report; /* the report lies on a page that cannot be read at first */
static void while_it_is_read(int number)
{
    (void)number;
    fdri_trigger_disarm(0);
    mprotect(report, 4096, PROT_READ);
}

/* A report that is under way must not arm the removed trigger again. */
static void disarmed_during_a_match(void **state)
{
    (void)state;
    struct sigaction old, new = {.sa_handler = while_it_is_read};
    start();
    assert_int_equal(fdr_trigger_add("old: api"), 1);
    report = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(report != MAP_FAILED);
    sigaction(SIGSEGV, &new, &old);
    fdri_trigger_seen(0, report);
    sigaction(SIGSEGV, &old, NULL);
    munmap(report, 4096);
    assert_false(fdri_trigger_any());
    sem_post(&go_on); /* lets a snapshot end that should not exist */
    fdr_finalize();
    grace_is_over();
    assert_int_equal(taken_count, 0);
    assert_int_equal(sem_trywait(&go_on), 0);
}

/* ---- during its snapshot ---- */

static bool comes_in(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    int e;
    while ((e = sem_timedwait(&inside, &until)) && errno == EINTR) {}
    return e == 0;
}

/* Each trigger keeps one snapshot. That of the first does not count for the second, which has its place. */
static void replaced_while_taken(void **state)
{
    (void)state;
    start();
    assert_int_equal(fdr_trigger_add("old: api keep 1"), 1);
    fdr_trigger_fire(1, 1);
    assert_true(comes_in());
    assert_int_equal(fdr_trigger_remove(1), 0);
    grace_is_over();
    assert_int_equal(fdr_trigger_add("new: api keep 1"), 65);
    sem_post(&go_on);
    fdr_trigger_fire(1, 3);
    assert_int_equal(fdr_trigger_count(65), 0); /* id 1 belonged to the old trigger */
    assert_int_equal(fdr_trigger_count(1), 0);
    assert_int_equal(fdr_trigger_remove(1), -ENOENT);
    fdr_trigger_fire(65, 2);
    sem_post(&go_on);
    assert_true(comes_in());
    fdr_finalize();
    grace_is_over();
    assert_int_equal(__atomic_load_n(&taken_count, __ATOMIC_ACQUIRE), 2);
    assert_string_equal(taken[0], "old");
    assert_string_equal(taken[1], "new");
}

/* ---- before its place is free ---- */

static void slot_freed_after_grace_period(void **state)
{
    (void)state;
    start();
    assert_int_equal(fdr_trigger_add("old: api"), 1);
    assert_int_equal(fdr_trigger_remove(1), 0);
    assert_int_equal(fdr_trigger_remove(1), -ENOENT);
    assert_int_equal(fdr_trigger_add("second: api"), 2); /* the first place is not free yet */
    fdr_finalize();
    start();
    assert_int_equal(fdr_trigger_add("new: api"), 1);
    grace_is_over(); /* of the recording before */
    assert_int_equal(fdr_trigger_add("other: api"), 2);
    assert_int_equal(fdr_trigger_remove(1), 0);
    assert_int_equal(fdr_trigger_add("third: api"), 3);
    grace_is_over();
    assert_int_equal(fdr_trigger_add("again: api"), 65);
    fdr_finalize();
    grace_is_over();
}

/* ---- definitions ---- */

/* A signal handler may define a region, and may have interrupted the allocator. */
static void definitions_ask_no_allocator(void **state)
{
    (void)state;
    char name[32];
    start();
    assert_int_equal(fdr_trigger_add("region r* over 1s"), 1);
    fdr_region_define("first", NULL, 0); /* allocates what is allocated once, without attaching the thread */
    allocations = 0;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "r%d", i);
        fdr_region_define(name, NULL, 0);
    }
    assert_int_equal(allocations, 0);
    fdr_region last = fdr_region_define("r999", NULL, 0);
    fdr_enter_at(last, 1);
    fdr_leave_at(last, 2000000000);
    sem_post(&go_on);
    assert_int_equal(fdr_trigger_count(1), 1);
    fdr_finalize();
    grace_is_over();
}

static int enter(void **state)
{
    sem_init(&inside, 0, 0);
    sem_init(&go_on, 0, 0);
    return snapshots_enter(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disarmed_during_a_match), cmocka_unit_test(replaced_while_taken),
        cmocka_unit_test(slot_freed_after_grace_period), cmocka_unit_test(definitions_ask_no_allocator)};
    return cmocka_run_group_tests(tests, enter, snapshots_leave);
}
