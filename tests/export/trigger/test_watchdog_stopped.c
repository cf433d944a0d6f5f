/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=60
 * A process is stopped (SIGSTOP, a debugger, a frozen cgroup) for longer than the watchdog's time. That time does not
 * count, so the watchdog takes no snapshot. */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/racy.h"
#include "export/snapshot/snapshot.h"
#include "export/view.h"
#include "tests/support/deaths.h"

enum { STOPPED_S = 6 };

static sem_t goes_on;

/* Called by fdr's thread between its look and its wait. */
static uint64_t stops(uint64_t now)
{
    (void)now;
    fdri_snapshot_view.poll = NULL;
    raise(SIGSTOP);
    sem_post(&goes_on);
    return UINT64_MAX;
}

/* The thread reads it each time it wakes up. */
FDRI_RACY static void stop_in_a_look(void)
{
    fdri_snapshot_view.poll = stops;
    fdri_trigger_dumper_wake();
}

/* By its name the region waits for others, so the thread is not idle. Runs for 1 s, is stopped, and runs for 2 s more.
 * The 2 s exceed the time from the first look after the stop to the look that makes sure. */
static void stand(bool in_a_look)
{
    fdr_enter(fdr_region_define("barrier", NULL, 0));
    sleep(1);
    if (in_a_look) {
        stop_in_a_look();
        while (sem_wait(&goes_on)) {}
    } else {
        raise(SIGSTOP);
    }
    sleep(2);
    fdr_finalize();
    _exit(0);
}

static void is_stopped(bool in_a_look)
{
    int status = 0;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    c.watchdog = "4s";
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        death_child();
        if (fdr_init(&c)) _exit(98);
        stand(in_a_look);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    sleep(STOPPED_S);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(death_count(p->dir, ".fdr"), 0);
}

static void stopped_process_has_no_hanging_thread(void **state)
{
    (void)state;
    is_stopped(false);
}

static void stopped_while_fdr_works(void **state)
{
    (void)state;
    is_stopped(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stopped_process_has_no_hanging_thread),
                                       cmocka_unit_test(stopped_while_fdr_works)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
