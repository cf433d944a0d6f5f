/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P8 wrap=fdri_system_call_read,fdri_system_read_memory */
/* P8: the kernel hides the system calls and the memory of a process, as it does under yama. fdr_process_look then says
 * so, in one line; the states are there, no thread is taken for idle, and no stack is invented. */
#include <errno.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/system/procfs.h"
#include "base/system/task_state.h"
#include "tests/support/observed_process.h"

static bool hidden;

bool __real_fdri_system_call_read(uint32_t pid, uint32_t tid, struct fdri_system_call *c);
bool __wrap_fdri_system_call_read(uint32_t pid, uint32_t tid, struct fdri_system_call *c);
bool __wrap_fdri_system_call_read(uint32_t pid, uint32_t tid, struct fdri_system_call *c)
{
    if (!hidden) return __real_fdri_system_call_read(pid, tid, c);
    memset(c, 0, sizeof *c);
    errno = EPERM;
    return false;
}
bool __real_fdri_system_read_memory(uint32_t pid, uint64_t address, void *to, size_t bytes);
bool __wrap_fdri_system_read_memory(uint32_t pid, uint64_t address, void *to, size_t bytes);
bool __wrap_fdri_system_read_memory(uint32_t pid, uint64_t address, void *to, size_t bytes)
{
    return !hidden && __real_fdri_system_read_memory(pid, address, to, bytes);
}

static void idles(void *directory)
{
    int forever[2];
    char c;
    struct fdr_config config = {.size = sizeof config, .buffer = "1M", .live_dir = directory, .dir = directory};
    config.live_force = "1";
    config.ignore_environment = 1;
    if (fdr_init(&config) || pipe(forever)) _exit(98);
    fdr_enter(fdr_region_define("reads", NULL, 0));
    victim_ready();
    while (read(forever[0], &c, 1) < 0) {}
}

static void look(const struct victim *v, int expected, int idle, const char *waits_for)
{
    char message[400] = "";
    struct fdr_file *f = NULL;
    const struct fdr_task_info *t;
    assert_int_not_equal(fdr_process_open((uint32_t)v->pid, false, &f, message, sizeof message), FDR_UNREADABLE);
    int e = fdr_process_look(f, (uint32_t)v->pid, message, sizeof message);
    assert_int_equal(e, expected);
    assert_true((message[0] != 0) == (e != 0));
    if (e && !strstr(message, "cannot be seen")) fail_msg("'%s'", message);
    size_t n = fdr_tasks(f, &t), i = 0;
    while (i < n && t[i].tid != (uint32_t)v->pid) i++;
    assert_true(i < n);
    assert_int_equal(t[i].state, 'S');
    assert_string_equal(t[i].waits_for, waits_for);
    assert_int_equal(fdr_location_idle(f, 0), idle);
    const struct fdr_crash_thread_info *threads;
    assert_true((fdr_crash_threads(f, &threads) > 0) == !e);
    fdr_file_close(f);
}

static void P8_what_the_kernel_hides_is_said(void **state)
{
    char directory[256];
    (void)state;
    test_directory(directory, sizeof directory);
    struct victim v = victim_start(idles, directory);
    victim_wait_ready(&v);
    while (state_of(v.pid) != 'S') usleep(1000);
    look(&v, 0, 1, "input");
    hidden = true;
    look(&v, -EPERM, -1, "");
    victim_end(&v, SIGKILL);
    remove_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_what_the_kernel_hides_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
