/* SPDX-License-Identifier: MIT */
/* ctest: label=unit wrap=fdri_system_read_task promise=P10
 * P10: /proc's view of a thread is understood, whichever of its files may be read. States that cannot be known are
 * unknown. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "base/system/procfs.h"
#include "base/system/task_look.h"
#include "base/system/task_state.h"

/* The simulated /proc: the texts of three files, or the errors of reading them. */
static struct {
    const char *text;
    int error;
} of_syscall, of_stat, of_wchan;

size_t __wrap_fdri_system_read_task(uint32_t tid, const char *file, char *text, size_t bytes);
size_t __wrap_fdri_system_read_task(uint32_t tid, const char *file, char *text, size_t bytes)
{
    const char *from = NULL;
    int error = ENOENT;
    assert_int_equal(tid, 4711);
    text[0] = 0;
    if (!strcmp(file, "syscall")) from = of_syscall.text, error = of_syscall.error;
    if (!strcmp(file, "stat")) from = of_stat.text, error = of_stat.error;
    if (!strcmp(file, "wchan")) from = of_wchan.text, error = of_wchan.error;
    errno = error;
    if (!from) return 0;
    snprintf(text, bytes, "%s", from);
    return strlen(text);
}

static const char *described(struct fdri_system_task *t)
{
    static char text[80];
    *t = fdri_system_task_look(4711);
    fdri_system_task_describe(t, text, sizeof text);
    return text;
}

static void set(const char *call, int call_error, const char *stat, int stat_error, const char *wchan)
{
    of_syscall.text = call;
    of_syscall.error = call_error;
    of_stat.text = stat;
    of_stat.error = stat_error;
    of_wchan.text = wchan;
    of_wchan.error = EACCES;
}

static void system_calls_are_named(void **state)
{
    struct fdri_system_task t;
    char text[200];
    const struct {
        long call;
        unsigned first, second;
        const char *says;
    } calls[] = {{SYS_futex, 0x1000, 0, "blocked in futex_wait"},
                 {SYS_futex, 0x1000, 0x189, "blocked in futex_wait"},
                 {SYS_futex, 0x1000, 0x86, "blocked in futex_lock_pi"},
                 {SYS_clock_nanosleep, 0, 0, "blocked in clock_nanosleep"},
                 {SYS_read, 3, 0, "blocked in read"},
                 {SYS_ppoll, 0, 0, "blocked in ppoll"},
                 {987654, 0, 0, "blocked in system call 987654"}};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        snprintf(text, sizeof text, "%ld 0x%x 0x%x 0x0 0x0 0x0 0x0 0x7ffcf7bd09f8 0x7f65136c7503\n", calls[i].call,
                 calls[i].first, calls[i].second);
        set(text, 0, NULL, 0, NULL);
        assert_string_equal(described(&t), calls[i].says);
        assert_int_equal(t.kind, FDRI_SYSTEM_TASK_WAITS);
        assert_true(t.placed);
        assert_int_equal(t.sp, 0x7ffcf7bd09f8);
        assert_int_equal(t.pc, 0x7f65136c7503);
    }
}

static enum fdri_system_wait wait_after(long call, unsigned flags, const void *second, const char *wchan, long is)
{
    char text[200];
    struct fdri_system_call c;
    snprintf(text, sizeof text, "%ld 0x1000 0x%x 0x%jx 0x0 0x0 0x0 0x7ffcf7bd09f8 0x7f65136c7503\n", call, flags,
             (uintmax_t)(uintptr_t)second);
    set(text, 0, NULL, 0, wchan);
    assert_true(fdri_system_call_read(0, 4711, &c));
    assert_int_equal(c.number, is);
    return fdri_system_wait_of(0, &c);
}

/* As after SIGSTOP and SIGCONT, with a debugger, and on a machine that slept. */
static void restarted_calls_are_known(void **state)
{
    static const struct timespec second = {1, 0};
    const long restart = SYS_restart_syscall;
    (void)state;
    assert_int_equal(wait_after(restart, 1, NULL, "poll_schedule_timeout.constprop.0", SYS_ppoll),
                     FDRI_SYSTEM_WAIT_INPUT);
    assert_int_equal(wait_after(restart, 2, NULL, "do_sys_poll", SYS_ppoll), FDRI_SYSTEM_WAIT_EVENTS);
    assert_int_equal(wait_after(restart, 0x189, NULL, "futex_do_wait", SYS_futex), FDRI_SYSTEM_WAIT_CONDITION);
    assert_int_equal(wait_after(restart, 0, &second, "hrtimer_nanosleep", SYS_clock_nanosleep), FDRI_SYSTEM_WAIT_SLEEP);
    assert_int_equal(wait_after(restart, 0, NULL, "0", restart), FDRI_SYSTEM_WAIT_TIME);
    assert_int_equal(wait_after(restart, 0, NULL, NULL, restart), FDRI_SYSTEM_WAIT_TIME);
}

static void long_sleeps(void **state)
{
    static const struct timespec tenth = {0, 100000000}, less = {0, 99999999};
    const long call = SYS_clock_nanosleep;
    (void)state;
    assert_int_equal(wait_after(call, 0, &tenth, NULL, call), FDRI_SYSTEM_WAIT_SLEEP);
    assert_int_equal(wait_after(call, 0, &less, NULL, call), FDRI_SYSTEM_WAIT_TIME);
    assert_int_equal(wait_after(call, 1, &tenth, NULL, call), FDRI_SYSTEM_WAIT_TIME); /* until a moment */
    assert_int_equal(wait_after(call, 0, NULL, NULL, call), FDRI_SYSTEM_WAIT_TIME);   /* nothing to read there */
}

static void other_states(void **state)
{
    struct fdri_system_task t;
    (void)state;
    set("running\n", 0, NULL, 0, NULL);
    assert_string_equal(described(&t), "runs, place unknown");
    assert_false(t.placed);
    set("-1 0x7ffc0 0x7f651\n", 0, NULL, 0, NULL);
    assert_string_equal(described(&t), "blocked outside of system calls");
    assert_true(t.placed && t.sp == 0x7ffc0 && t.pc == 0x7f651);
}

/* A process that is not dumpable may not open its `syscall`. */
static void place_is_unknown_without_the_right_to_read_it(void **state)
{
    struct fdri_system_task t;
    const int errors[] = {EACCES, EPERM, ENOENT, EINVAL};
    (void)state;
    for (int i = 0; i < 4; i++) {
        set(NULL, errors[i], "4711 (a) ) b) S 1 2 3", 0, "futex_wait_queue");
        assert_string_equal(described(&t), "blocked in futex_wait_queue");
        assert_false(t.placed);
        set(NULL, errors[i], "4711 (name) S 1 2 3", 0, "0");
        assert_string_equal(described(&t), "blocked, place unknown");
        set(NULL, errors[i], "4711 (name) D 1 2 3", 0, NULL);
        assert_string_equal(described(&t), "blocked, place unknown");
        set(NULL, errors[i], "4711 (name) R 1 2 3", 0, NULL);
        assert_string_equal(described(&t), "runs, place unknown");
        set(NULL, errors[i], "4711 (name) T 1 2 3", 0, NULL);
        assert_string_equal(described(&t), "stopped, place unknown");
        set(NULL, errors[i], "4711 (name) Z 1 2 3", 0, NULL);
        assert_int_equal(fdri_system_task_look(4711).kind, FDRI_SYSTEM_TASK_GONE);
    }
}

static void nothing_can_be_read(void **state)
{
    struct fdri_system_task t;
    const int errors[] = {EACCES, EPERM, EMFILE, ENOMEM};
    (void)state;
    for (int i = 0; i < 4; i++) {
        set(NULL, errors[i], NULL, errors[i], NULL);
        assert_string_equal(described(&t), "state unknown");
    }
    set(NULL, ENOENT, NULL, ENOENT, NULL);
    assert_int_equal(fdri_system_task_look(4711).kind, FDRI_SYSTEM_TASK_GONE);
    set(NULL, ESRCH, NULL, ESRCH, NULL);
    assert_int_equal(fdri_system_task_look(4711).kind, FDRI_SYSTEM_TASK_GONE);
}

static void odd_texts_are_refused(void **state)
{
    const char *odd[] = {"", "7", "7 0x0 0x1", "-1", "-1 0x0", "runs", "blocked", "-2 0 0 0 0 0 0 0 0", "x 0x1 0x2"};
    struct fdri_system_task t;
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) assert_false(fdri_system_task_parse(odd[i], &t));
    set("garbage", 0, "garbage", 0, NULL);
    assert_string_equal(described(&t), "state unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(system_calls_are_named),
                                       cmocka_unit_test(restarted_calls_are_known),
                                       cmocka_unit_test(long_sleeps),
                                       cmocka_unit_test(other_states),
                                       cmocka_unit_test(place_is_unknown_without_the_right_to_read_it),
                                       cmocka_unit_test(nothing_can_be_read),
                                       cmocka_unit_test(odd_texts_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
