/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=60 promise=P10
 * P10: threads begin to record when the system gives no more memory (RLIMIT_AS, as set by `ulimit -v`). fdr counts
 * such threads, and the program goes on. A failure shows as a program that ends by a signal or with an error. */
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

static void refuse_memory(unsigned long left)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1) _exit(2);
    fclose(f);
    const rlim_t most = pages * (unsigned long)sysconf(_SC_PAGESIZE) + left;
    const struct rlimit limit = {most, most};
    if (setrlimit(RLIMIT_AS, &limit)) _exit(3);
}

static void begin(void)
{
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .arena = "anonymous",
                                 .buffer = "16M",
                                 .signal = "none",
                                 .crash = "0"};
    if (fdr_init(&c)) _exit(1);
    region = fdr_region_define("r", NULL, 0);
}

static void threads_without_memory(void)
{
    pthread_t t[THREADS];
    pthread_attr_t small;
    begin();
    fdr_enter(region), fdr_leave(region);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_barrier_init(&at, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], &small, run, NULL)) _exit(4);
    refuse_memory(0);
    pthread_barrier_wait(&at);
    pthread_barrier_wait(&at);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    struct fdr_usage u = fdr_usage();
    if (!u.lost || u.presented != u.stored + u.lost) _exit(5);
}

/* A thread that recorded before needs no more memory, and one more thread needs only little. */
static void threads_that_need_little(void)
{
    pthread_t t;
    begin();
    fdr_enter(region), fdr_leave(region);
    fdr_finalize();
    begin();
    pthread_barrier_init(&at, NULL, 2);
    if (pthread_create(&t, NULL, run, NULL)) _exit(4);
    refuse_memory(512 << 10);
    pthread_barrier_wait(&at);
    pthread_barrier_wait(&at);
    refuse_memory(0);
    for (int i = 0; i < CALLS; i++) fdr_enter(region), fdr_leave(region);
    pthread_join(t, NULL);
    struct fdr_usage u = fdr_usage();
    if (u.lost || u.presented != 2 * CALLS) _exit(5);
}

static unsigned stay;
static pthread_barrier_t all_recorded;
static void *stays(void *unused)
{
    fdr_enter(region), fdr_leave(region);
    pthread_barrier_wait(&all_recorded);
    for (;;) pause();
    return unused;
}

/* These threads are from an earlier recording. liburcu still has them registered, and has no room for one more. */
static void threads_that_stay(void)
{
    pthread_t t;
    pthread_attr_t small;
    begin();
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&all_recorded, NULL, stay + 1);
    pthread_barrier_init(&at, NULL, 2);
    for (unsigned i = 0; i < stay; i++)
        if (pthread_create(&t, &small, stays, NULL)) _exit(4);
    pthread_barrier_wait(&all_recorded);
    fdr_finalize();
    begin();
    if (pthread_create(&t, &small, run, NULL)) _exit(4);
    refuse_memory(100 << 10);
    pthread_barrier_wait(&at);
    pthread_barrier_wait(&at);
    struct fdr_usage u = fdr_usage();
    if (!u.presented || u.presented != u.stored + u.lost) _exit(5);
}

static void ends_well(void (*program)(void))
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); /* sanitizers have mapped more than any limit allows */
#endif
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        program();
        fdr_finalize();
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) fail_msg("the program ended with status %#x", status);
}

static void P10_threads_without_memory(void **state)
{
    (void)state;
    ends_well(threads_without_memory);
}

static void P10_threads_that_need_little(void **state)
{
    (void)state;
    ends_well(threads_that_need_little);
}

/* liburcu begins with room for a few threads and doubles it. At one of these numbers it is full. */
static void P10_threads_that_stay(void **state)
{
    (void)state;
    for (stay = 500; stay < 514; stay++) ends_well(threads_that_stay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_threads_without_memory),
                                       cmocka_unit_test(P10_threads_that_need_little),
                                       cmocka_unit_test(P10_threads_that_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
