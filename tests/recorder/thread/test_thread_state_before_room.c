/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120
 * A thread that has no location yet sets its name, pauses, or begins a phase. This state must hold when the thread
 * finds room later. A failure shows as a missing name, or as calls timed that should not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "tests/support/scratch_directory.h"

enum { SLEEPERS = 300, INSIDE = 5000, BEHIND = 10 };
static char rules[64];
static pthread_t sleeper[SLEEPERS];
static sem_t ready, leave_now, said, go_on;
static fdr_region s, inside, behind, at_end;
static bool in_phase;
static pthread_key_t second_round;

static void call(fdr_region r, int n)
{
    for (int i = 0; i < n; i++) fdr_enter(r), fdr_leave(r);
}

static void *sleeps(void *unused)
{
    call(s, 30);
    sem_post(&ready);
    while (sem_wait(&leave_now)) {}
    return unused;
}

/* In the second round of destructors the recorder has already ended the thread; the thread then attaches once more. */
static void ends(void *round)
{
    if ((uintptr_t)round > 1) pthread_setspecific(second_round, (void *)((uintptr_t)round - 1));
    else call(at_end, BEHIND);
}

static void *comes(void *unused)
{
    pthread_setspecific(second_round, (void *)2);
    fdr_thread_name("newcomer");
    if (in_phase) fdr_phase_begin("solve");
    else fdr_pause();
    sem_post(&said);
    while (sem_wait(&go_on)) {}
    call(inside, INSIDE);
    if (in_phase) fdr_phase_end("solve");
    else fdr_resume();
    call(behind, BEHIND);
    return unused;
}

/* The sleepers have all the room when the new thread comes; they have ended when it makes its calls. */
static void record(unsigned sleepers)
{
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .arena = "anonymous",
                                 .buffer = "1M",
                                 .signal = "none",
                                 .crash = "0",
                                 .dir = scratch,
                                 .filter = in_phase ? rules : NULL};
    pthread_t newcomer;
    assert_int_equal(fdr_init(&c), 0);
    s = fdr_region_define("s", NULL, 0);
    inside = fdr_region_define("inside", NULL, 0);
    behind = fdr_region_define("behind", NULL, 0);
    at_end = fdr_region_define("at end", NULL, 0);
    for (unsigned i = 0; i < sleepers; i++) {
        assert_int_equal(pthread_create(&sleeper[i], NULL, sleeps, NULL), 0);
        sem_wait(&ready);
    }
    if (sleepers) assert_true(fdr_usage().lost > 0);
    assert_int_equal(pthread_create(&newcomer, NULL, comes, NULL), 0);
    sem_wait(&said);
    for (unsigned i = 0; i < sleepers; i++) sem_post(&leave_now);
    for (unsigned i = 0; i < sleepers; i++) pthread_join(sleeper[i], NULL);
    sem_post(&go_on);
    pthread_join(newcomer, NULL);
    assert_int_equal(fdr_snapshot(NULL), 0);
    fdr_finalize();
}

static bool is_named(const struct fdr_file *f, const char *name)
{
    for (size_t i = 0; i < fdr_location_count(f); i++)
        if (!strcmp(fdr_location_info(f, i)->name, name)) return true;
    return false;
}

/* Number of timed calls of a region; the other ones are only counted. */
static uint64_t timed_of(struct fdr_file *f, fdr_region r, uint64_t *all)
{
    const struct fdr_total *t;
    uint64_t timed = 0;
    *all = 0;
    for (size_t i = fdr_totals(f, &t); i-- > 0;) {
        if (t[i].rest || t[i].class_ != FDR_IN_REGION || t[i].id != r) continue;
        timed += t[i].calls;
        *all += t[i].calls + t[i].untimed;
    }
    return timed;
}

static void holds(bool phase, unsigned sleepers)
{
    struct fdr_file *f;
    char message[200] = "", path[256];
    uint64_t all;
    in_phase = phase;
    record(sleepers);
    snprintf(path, sizeof path, "%s", fdr_last_snapshot());
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    unlink(path);
    assert_true(is_named(f, "newcomer"));
    uint64_t timed = timed_of(f, inside, &all);
    assert_in_range(all, INSIDE / 2, INSIDE); /* the first calls come before the thread looks for room again */
    assert_int_equal(timed, phase ? all : 0);
    timed = timed_of(f, behind, &all);
    assert_int_equal(all, BEHIND);
    assert_int_equal(timed, phase ? 0 : BEHIND);
    timed = timed_of(f, at_end, &all);
    assert_int_equal(all, BEHIND);
    /* the state set before the first attach does not apply to the second */
    assert_int_equal(timed, phase ? 0 : BEHIND);
    fdr_file_close(f);
}

static void wishes_before_room_are_kept(void **state)
{
    (void)state;
    holds(false, 0);
    holds(true, 0);
    holds(false, SLEEPERS);
    holds(true, SLEEPERS);
}

static int enter(void **state)
{
    if (scratch_make(state)) return 1;
    snprintf(rules, sizeof rules, "%s/rules", scratch);
    FILE *f = fopen(rules, "w");
    if (!f) return 1;
    fputs("phase solve\n", f);
    if (fclose(f)) return 1;
    if (pthread_key_create(&second_round, ends)) return 1;
    return sem_init(&ready, 0, 0) || sem_init(&leave_now, 0, 0) || sem_init(&said, 0, 0) || sem_init(&go_on, 0, 0);
}

static int leave(void **state)
{
    unlink(rules);
    return scratch_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wishes_before_room_are_kept)};
    return cmocka_run_group_tests(tests, enter, leave);
}
