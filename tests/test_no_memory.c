/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=60
 * P10: threads that begin to record where the system gives no more memory (RLIMIT_AS, as `ulimit -v` sets it) are
 * counted, and the program goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fdr/fdr.h>

enum { THREADS = 200, CALLS = 10 };
static pthread_barrier_t at;
static fdr_region region;

static void *run(void *unused)
{
    pthread_barrier_wait(&at);
    for (int i = 0; i < CALLS; i++) fdr_enter(region), fdr_leave(region);
    pthread_barrier_wait(&at);
    return unused;
}

static void no_more_memory(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1) _exit(2);
    fclose(f);
    const struct rlimit limit = {pages * (unsigned long)sysconf(_SC_PAGESIZE),
                                 pages * (unsigned long)sysconf(_SC_PAGESIZE)};
    if (setrlimit(RLIMIT_AS, &limit)) _exit(3);
}

static void child(void)
{
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .arena = "anonymous",
                                 .buffer = "16M",
                                 .signal = "none",
                                 .crash = "0"};
    pthread_t t[THREADS];
    pthread_attr_t small;
    if (fdr_init(&c)) _exit(1);
    region = fdr_region_define("r", NULL, 0);
    fdr_enter(region), fdr_leave(region);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_barrier_init(&at, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], &small, run, NULL)) _exit(4);
    no_more_memory();
    pthread_barrier_wait(&at);
    pthread_barrier_wait(&at);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    struct fdr_usage u = fdr_usage();
    if (!u.lost || u.presented != u.stored + u.lost) _exit(5);
    fdr_finalize();
    _exit(0);
}

static void P10_threads_without_memory(void **state)
{
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); /* these have mapped more than any limit allows */
#endif
    int status;
    pid_t pid = fork();
    if (pid == 0) child();
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("the program ended with status %#x", status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_threads_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
