/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=60 promise=P10 without=tsan (it delivers signals between operations only)
 * ctest: wrap=fdri_names_symbols_of
 * P10: a signal that arrives while a thread attaches, or while a code address becomes a region, waits until that is
 * done. Its handler may then leave by longjmp, and the thread still records. A handler may also leave by longjmp
 * while an event is only counted. */
#include <dlfcn.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <cmocka.h>

#include "recorder/names/module_symbols.h"
#include "recorder/names/names.h"
#include "recorder/recording.h"
#include "tests/support/oracle.h"

static volatile sig_atomic_t armed; /* which function raises the signal */
static volatile sig_atomic_t jumps;
static sigjmp_buf away;

enum { BY_ATTACH = 1, BY_ADDRESS };

static void interrupt(int by)
{
    if (armed != by) return;
    armed = 0;
    raise(SIGUSR2);
}

/* Attaching and defining call these functions midway, so the signal arrives there. */
int pthread_setspecific(pthread_key_t key, const void *value)
{
    static int (*next)(pthread_key_t, const void *);
    if (!next) next = (int (*)(pthread_key_t, const void *))dlsym(RTLD_NEXT, "pthread_setspecific");
    interrupt(BY_ATTACH);
    return next(key, value);
}
void __real_fdri_names_symbols_of(uint32_t module, uint64_t address, struct fdri_names_called *called);
void __wrap_fdri_names_symbols_of(uint32_t module, uint64_t address, struct fdri_names_called *called);
void __wrap_fdri_names_symbols_of(uint32_t module, uint64_t address, struct fdri_names_called *called)
{
    interrupt(BY_ADDRESS);
    __real_fdri_names_symbols_of(module, address, called);
}

static void leave(int unused)
{
    (void)unused;
    jumps++;
    siglongjmp(away, 1);
}

static void interrupted(int by, fdr_region r)
{
    armed = (sig_atomic_t)by;
    if (sigsetjmp(away, 1)) return;
    if (by == BY_ADDRESS) fdr_region_define_address((const void *)(uintptr_t)&leave);
    else fdr_enter(r);
}

/* One recording in which the thread attaches, gets a signal at `by`, and makes some calls. */
static void recording(int by, const char *rules)
{
    enum { CALLS = 1000 };
    struct fdr_config c = oracle_config(oracle_directory());
    const char *wrong;
    const struct fdr_total *totals;
    uint64_t calls = 0;
    c.filter = rules;
    assert_int_equal(fdr_init(&c), 0);
    fdr_region r = fdr_region_define("work", NULL, 0);
    jumps = 0;
    if (by) interrupted(by, r);
    assert_int_equal(jumps, by != 0);
    for (int i = 0; i < CALLS; i++) fdr_enter(r), fdr_leave(r);
    struct fdr_file *f = oracle_snapshot(8 << 20, &wrong);
    assert_null(wrong);
    size_t n = fdr_totals(f, &totals);
    for (size_t i = 0; i < n; i++) calls += totals[i].calls;
    assert_int_equal(calls, CALLS);
    assert_int_equal(fdr_file_info(f)->lost_unattached, 0);
    fdr_file_close(f);
    fdr_finalize();
}

static void jump(int by)
{
    struct sigaction a = {.sa_handler = leave}, old;
    char rules[600];
    snprintf(rules, sizeof rules, "%s/rules", oracle_directory());
    FILE *file = fopen(rules, "w");
    fputs("exclude name nobody\n", file); /* with rules, fdr names an address at once */
    fclose(file);
    assert_int_equal(sigaction(SIGUSR2, &a, &old), 0);
    recording(by, rules);
    recording(0, rules); /* the thread attaches anew */
    sigaction(SIGUSR2, &old, NULL);
}

static void P10_a_jump_at_the_end_of_attaching(void **state)
{
    (void)state;
    jump(BY_ATTACH);
}

static void P10_a_jump_at_the_end_of_defining_an_address(void **state)
{
    (void)state;
    jump(BY_ADDRESS);
}

enum { JUMPS = 1000, THREADS = 300 };
static volatile uint64_t counted; /* events of without_room() that no handler left */

static void only_here(int how)
{
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(how, &alarm, NULL);
}

/* The thread only counts its events; a handler leaves some of these by longjmp. On a slow machine the next signal may
 * come before the first event, so the thread also asks for events that no handler left. */
static void *without_room(void *unused)
{
    struct itimerval soon = {{0, 0}, {0, 50}}, never = {{0, 0}, {0, 0}};
    counted = 0;
    sigsetjmp(away, 1);
    only_here(SIG_UNBLOCK);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (jumps < JUMPS || counted < JUMPS) {
        fdr_enter(1);
        counted = counted + 1;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    only_here(SIG_BLOCK);
    return unused;
}

static pthread_barrier_t all_came;
static void *comes_and_waits(void *unused)
{
    fdr_enter(1);
    pthread_barrier_wait(&all_came);
    pthread_barrier_wait(&all_came);
    return unused;
}

/* More threads than the buffer has room for. */
static void P10_a_jump_out_of_an_event_that_finds_no_room(void **state)
{
    (void)state;
    struct sigaction a = {.sa_handler = leave}, old;
    struct fdr_config c = oracle_config(oracle_directory());
    pthread_t thread[THREADS], last;
    c.buffer = "192K";
    jumps = 0;
    assert_int_equal(sigaction(SIGALRM, &a, &old), 0);
    assert_int_equal(fdr_init(&c), 0);
    only_here(SIG_BLOCK);
    pthread_barrier_init(&all_came, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, comes_and_waits, NULL), 0);
    pthread_barrier_wait(&all_came);
    assert_int_equal(pthread_create(&last, NULL, without_room, NULL), 0);
    pthread_join(last, NULL);
    pthread_barrier_wait(&all_came);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    assert_true(fdri_life_recording.arena.super->lost_unattached >= counted);
    pthread_barrier_destroy(&all_came);
    signal(SIGALRM, SIG_IGN); /* discards a pending signal */
    only_here(SIG_UNBLOCK);
    sigaction(SIGALRM, &old, NULL);
    fdr_finalize();
    assert_int_equal(fdr_init(&c), 0); /* fails if a thread still counts as inside of an operation */
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_a_jump_at_the_end_of_attaching),
        cmocka_unit_test(P10_a_jump_at_the_end_of_defining_an_address),
        cmocka_unit_test(P10_a_jump_out_of_an_event_that_finds_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
