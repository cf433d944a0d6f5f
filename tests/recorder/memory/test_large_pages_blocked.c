/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=60 promise=P10 wrap=madvise
 * P10: a request for a large page may block in the kernel until every processor has drained its lists. Recordings
 * must begin without waiting for it. Here the request blocks until two recordings are over. A forked child has no
 * blocked thread and makes its own request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fdr/fdr.h>

#include "base/system/topology.h"

enum { COLLAPSE = 25, PAGES = 4 };
static sem_t asked, go_on;
static bool waiting;

int __real_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice)
{
    if (advice != COLLAPSE) return __real_madvise(at, bytes, advice);
    bool wait = waiting;
    sem_post(&asked);
    while (wait && sem_wait(&go_on)) {}
    return 0;
}

static void begin_and_end(void)
{
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .arena = "anonymous",
                                 .buffer = "8M",
                                 .signal = "none",
                                 .crash = "0"};
    assert_int_equal(fdr_init(&c), 0);
    fdr_region r = fdr_region_define("r", NULL, 0);
    for (int i = 0; i < 1000; i++) fdr_enter(r), fdr_leave(r);
    struct fdr_usage u = fdr_usage();
    assert_int_equal(u.presented, 1000);
    fdr_finalize();
}

static unsigned asked_for(void)
{
    unsigned n = 0;
    while (sem_trywait(&asked) == 0) n++;
    return n;
}

/* Repeats until the request was made. On a busy machine, the requesting thread may run late and overlap with the
 * next recording. */
static void begin_until_asked(void)
{
    do begin_and_end();
    while (sem_trywait(&asked));
}

static void P10_a_kernel_that_waits(void **state)
{
    int status;
    (void)state;
    begin_until_asked();
    assert_in_range(asked_for(), 0, PAGES - 1);
    waiting = true;
    begin_until_asked();
    assert_int_equal(asked_for(), 0);
    begin_and_end(); /* the first request still blocks */
    assert_int_equal(asked_for(), 0);
    pid_t child = fork();
    if (child == 0) {
        waiting = false;
        begin_until_asked();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    waiting = false;
    sem_post(&go_on);
}

/* fdr requests large pages only on a machine with one NUMA node. */
static int one_node(void **state)
{
    static const struct fdri_system_topology one = {.nodes = 1};
    (void)state;
    fdri_system_topology_given = &one;
    return sem_init(&asked, 0, 0) || sem_init(&go_on, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_a_kernel_that_waits)};
    return cmocka_run_group_tests(tests, one_node, NULL);
}
