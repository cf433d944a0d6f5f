/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P4,P8,P9 wrap=clock_gettime
 * P4, P8, P9: clocks that jump. A trap replaces the processor's counter, and a wrapper replaces CLOCK_MONOTONIC.
 * After a step back of more than a millisecond, recorded time continues, and the reader reports the step. A jump
 * forward is a gap. No event may be out of order. */
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "recorder/recording.h"
#include "tests/support/command_path.h"
#include "tests/support/oracle.h"

static int64_t counter_apart, monotonic_apart; /* offsets of the test's clocks from the machine's, in ticks and ns */
#define RUNNING_NS                                                                                                     \
    (24 * 3600 * 1000000000ll) /* no clock steps back before its own zero: the machine has seemingly run for a day */

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    int e = __real_clock_gettime(clock, t);
    if (e || clock != CLOCK_MONOTONIC) return e;
    int64_t ns = (int64_t)t->tv_sec * 1000000000 + t->tv_nsec + RUNNING_NS +
                 __atomic_load_n(&monotonic_apart, __ATOMIC_RELAXED);
    *t = (struct timespec){ns / 1000000000, ns % 1000000000};
    return 0;
}

/* ---- the counter ---- */

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TRAPPED __attribute__((no_sanitize("address")))
static uint8_t *code_from, *code_to; /* code of this program; other code reads the machine's own counter */
static volatile sig_atomic_t trapped;
extern uint8_t __executable_start[], etext[];

/* Emulates rdtsc and rdtscp, which the process is not allowed to execute. */
TRAPPED static void on_trap(int number, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint8_t *at = (uint8_t *)(uintptr_t)r[REG_RIP];
    bool p = at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xf9;
    (void)info;
    trapped = 1;
    if (!p && !(at[0] == 0x0f && at[1] == 0x31)) {
        signal(number, SIG_DFL);
        return;
    }
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
    uint64_t t = __builtin_ia32_rdtsc();
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    if (at >= code_from && at < code_to) t += (uint64_t)__atomic_load_n(&counter_apart, __ATOMIC_RELAXED);
    r[REG_RAX] = (greg_t)(t & 0xffffffffu);
    r[REG_RDX] = (greg_t)(t >> 32);
    if (p) r[REG_RCX] = 0;
    r[REG_RIP] += p ? 3 : 2;
}

static bool trap(bool on)
{
    struct sigaction a = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    code_from = __executable_start;
    code_to = etext;
    if (on) sigaction(SIGSEGV, &a, NULL);
    trapped = 0;
    bool good = prctl(PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE) == 0;
    if (on) __builtin_ia32_rdtsc();
    if (on && !trapped) print_message("this machine says that the counter may not be read, and lets it be read\n");
    if (on && trapped) return good;
    signal(SIGSEGV, SIG_DFL);
    prctl(PR_SET_TSC, PR_TSC_ENABLE);
    return good && !on;
}
#else
static bool trap(bool on) { return !on; }
#endif

/* ---- recording and reading ---- */

static fdr_region outer, inner;
static fdr_marker_id number;
enum { BEFORE = 20, AFTER = 30 };

static void begin(const char *timer)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.buffer = "1M";
    c.timer = timer;
    c.crash = "0";
    assert_int_equal(fdr_init(&c), 0);
    outer = fdr_region_define("outer", NULL, 0);
    inner = fdr_region_define("inner", NULL, 0);
    number = fdr_marker_define("number");
}

static void record(int from, int to)
{
    for (int i = from; i < to; i++) {
        fdr_enter(inner);
        fdr_marker(number, (uint64_t)i);
        fdr_leave(inner);
    }
}

/* Checks that the events are in order, and returns the longest time between two of them. */
static uint64_t longest_gap(struct fdr_file *f, int markers)
{
    struct fdr_select all = {0};
    struct fdr_iter *it = fdr_iter_open(f, &all);
    struct fdr_read_event e;
    uint64_t last = 0, gap = 0;
    int n = 0;
    while (fdr_iter_next(it, &e)) {
        assert_true(e.time_ns >= last);
        if (last && e.time_ns - last > gap) gap = e.time_ns - last;
        last = e.time_ns;
        if (e.kind == FDR_MARKER) assert_int_equal(e.field[0], n++);
    }
    fdr_iter_close(it);
    assert_int_equal(n, markers);
    return gap;
}

static struct fdr_file *end(void)
{
    const char *wrong;
    uint64_t events = 0;
    struct fdr_file *f = oracle_snapshot(1 << 20, &wrong);
    fdr_finalize();
    counter_apart = monotonic_apart = 0;
    if (!f) fail_msg("%s", wrong);
    wrong = oracle_check_any(f, &events);
    if (wrong) fail_msg("%s", wrong);
    return f;
}

enum { SECOND = 1000000000 };
static int64_t ticks(int64_t ns) { return ns * (int64_t)(fdri_life_recording.ticks_per_second / 1000000) / 1000; }

/* Records before and after a jump, inside an open call. */
static struct fdr_file *around(const char *timer, int64_t by_ns)
{
    begin(timer);
    fdr_enter(outer);
    record(0, BEFORE);
    if (*timer == 't') counter_apart = ticks(by_ns);
    else monotonic_apart = by_ns;
    record(BEFORE, BEFORE + AFTER);
    fdr_leave(outer);
    return end();
}

static void check_step(struct fdr_file *f, uint32_t steps, uint64_t back)
{
    const struct fdr_file_info *i = fdr_file_info(f);
    assert_int_equal(i->clock_steps, steps);
    assert_int_equal(i->clock_step_count, steps);
    for (uint32_t k = 0; k < steps; k++) {
        assert_in_range(i->clock_step[k].back_ns, back - back / 10, back);
        assert_in_range(i->clock_step[k].time_ns, i->first_ns, i->last_ns);
    }
}

static void back(const char *timer)
{
    struct fdr_file *f = around(timer, -5ll * SECOND);
    check_step(f, 1, 5ull * SECOND);
    uint64_t gap = longest_gap(f, BEFORE + AFTER);
    const struct fdr_location_info *l = fdr_location_info(f, 0);
    assert_true(l->clamped >= 1 && l->clamped <= 3); /* the event at the step; later ones have times of their own */
    if (gap > 4ull * SECOND) fail_msg("a gap of %llu ns", (unsigned long long)gap);
    fdr_file_close(f);
}

static void little(const char *timer)
{
    struct fdr_file *f = around(timer, -900000);
    check_step(f, 0, 0);
    longest_gap(f, BEFORE + AFTER);
    fdr_file_close(f);
}

static void forward(const char *timer)
{
    struct fdr_file *f = around(timer, 3000ll * SECOND);
    check_step(f, 0, 0);
    assert_in_range(longest_gap(f, BEFORE + AFTER), 2990ull * SECOND, 3600ull * SECOND);
    fdr_file_close(f);
}

static void P9_monotonic_jumps(void **state)
{
    (void)state;
    back("monotonic");
    little("monotonic");
    forward("monotonic");
}

static void with_counter(void (*what)(const char *))
{
    begin("tsc");
    bool counter = fdri_life_recording.ticks;
    fdr_finalize();
    if (!counter || !trap(true)) skip();
    what("tsc");
    trap(false);
}
static void P9_the_counter_steps_back(void **state) { (void)state, with_counter(back); }
static void P9_the_counter_stands_still(void **state) { (void)state, with_counter(little); }
static void P9_the_counter_jumps_forward(void **state) { (void)state, with_counter(forward); }

/* `fdr dump` prints a line for each step, in order of time with the events; tables contain events only. */
static void dumped(const char *path, const struct fdr_file_info *info)
{
    char command[2200], line[400];
    const char *fdr = command_path();
    double last = 0;
    uint32_t steps = 0;
    snprintf(command, sizeof command, "%s dump %s", fdr, path);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    while (fgets(line, sizeof line, p)) {
        if (line[0] == '#') continue;
        double seconds = strtod(line, NULL);
        assert_true(seconds >= last);
        last = seconds;
        if (!strstr(line, "the clock stepped back by ")) continue;
        assert_true(fabs(seconds - (double)(info->clock_step[steps].time_ns - info->first_ns) / 1e9) < 1e-6);
        steps++;
    }
    assert_int_equal(pclose(p), 0);
    assert_int_equal(steps, info->clock_step_count);
    snprintf(command, sizeof command, "%s dump --tsv %s | grep -c stepped | grep -qx 0", fdr, path);
    assert_int_equal(system(command), 0);
}

/* The clock steps back twice and then forward to its place. All events stay in order, and each step back is marked. */
static void P9_back_and_forth(void **state)
{
    (void)state;
    char path[1024];
    static const int64_t apart[] = {-2ll * SECOND, -9ll * SECOND, 0, -3ll * SECOND};
    begin("monotonic");
    record(0, 10);
    for (int i = 0; i < 4; i++) {
        monotonic_apart = apart[i];
        record(10 * i + 10, 10 * i + 20);
    }
    assert_int_equal(fdr_snapshot("to be dumped"), 0);
    snprintf(path, sizeof path, "%s", fdr_last_snapshot());
    struct fdr_file *f = end();
    const struct fdr_file_info *info = fdr_file_info(f);
    assert_int_equal(info->clock_steps, 3);
    assert_in_range(info->clock_step[1].back_ns, 6ull * SECOND, 7ull * SECOND);
    assert_true(info->clock_step[0].time_ns < info->clock_step[1].time_ns);
    longest_gap(f, 50);
    dumped(path, info);
    unlink(path);
    fdr_file_close(f);
}

/* The recording describes only the newest steps, and counts all of them. */
static void P8_many_steps(void **state)
{
    (void)state;
    begin("monotonic");
    for (int i = 0; i < 21; i++) {
        record(i, i + 1);
        monotonic_apart -= (i + 1) * (int64_t)SECOND;
    }
    struct fdr_file *f = end();
    const struct fdr_file_info *info = fdr_file_info(f);
    assert_int_equal(info->clock_steps, 20);
    assert_int_equal(info->clock_step_count, 8);
    for (uint32_t k = 0; k < 8; k++)
        assert_in_range(info->clock_step[k].back_ns, (12ull + k) * SECOND, (13ull + k) * SECOND);
    longest_gap(f, 21);
    fdr_file_close(f);
}

/* ---- many threads at one step ---- */

static pthread_barrier_t gate;
static void *meet(void *unused)
{
    fdr_enter(outer);
    pthread_barrier_wait(&gate); /* all threads have recorded */
    pthread_barrier_wait(&gate); /* the clock has jumped */
    for (int i = 0; i < 100; i++) fdr_enter(inner), fdr_leave(inner);
    fdr_leave(outer);
    return unused;
}
static void P9_one_step_for_all(void **state)
{
    (void)state;
    pthread_t t[4];
    begin("monotonic");
    pthread_barrier_init(&gate, NULL, 5);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, meet, NULL), 0);
    pthread_barrier_wait(&gate);
    monotonic_apart = -3600ll * SECOND;
    pthread_barrier_wait(&gate);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    fdr_enter(outer), fdr_leave(outer); /* a later thread begins with the new offset */
    struct fdr_file *f = end();
    const struct fdr_file_info *info = fdr_file_info(f);
    /* more than one if a thread has a newer event than the others */
    assert_true(info->clock_steps >= 1 && info->clock_steps <= 4);
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        assert_true(l->to_ns - info->first_ns < 60ull * SECOND);
    }
    fdr_file_close(f);
}

/* ---- times presented by the caller are no clock ---- */

static void P4_the_callers_times_are_clamped(void **state)
{
    (void)state;
    begin("monotonic");
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
    fdr_enter(outer);
    fdr_enter_at(inner, now + 3600ull * SECOND);
    fdr_leave_at(inner, now + 10ull * SECOND); /* back */
    record(0, 5);                              /* the clock stands an hour before these times */
    fdr_leave(outer);
    struct fdr_file *f = end();
    const struct fdr_file_info *info = fdr_file_info(f);
    assert_int_equal(info->clock_steps, 0);
    assert_int_equal(info->last_ns, now + 3600ull * SECOND);
    fdr_file_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P9_monotonic_jumps),          cmocka_unit_test(P9_the_counter_steps_back),
        cmocka_unit_test(P9_the_counter_stands_still), cmocka_unit_test(P9_the_counter_jumps_forward),
        cmocka_unit_test(P9_back_and_forth),           cmocka_unit_test(P8_many_steps),
        cmocka_unit_test(P9_one_step_for_all),         cmocka_unit_test(P4_the_callers_times_are_clamped),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
