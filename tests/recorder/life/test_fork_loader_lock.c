/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=180 promise=P10
 * P10: another thread holds the C library's loader lock during a fork, so the child finds it held for ever. The
 * child must still record and end, but without names for addresses, samples and counters. A child forked at another
 * moment has all of these, although no fork handler of fdr ran. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <fdr/fdr.h>

#include "base/system/loader.h"

static sem_t inside, go;
static int stay(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info, (void)size, (void)unused;
    sem_post(&inside);
    sem_wait(&go);
    return 1;
}
static void *has_the_lock(void *unused)
{
    dl_iterate_phdr(stay, NULL);
    return unused;
}

static void called(void) {}

/* Does the loader work in the child? 2: the child recorded nothing. */
static int records(void)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .arena = "anonymous",
                           .buffer = "4M",
                           .signal = "none",
                           .sample = "100Hz",
                           .counters = "task:page-faults",
                           .edge_counters = "task:page-faults"};
    if (fdr_init(&c)) return 2;
    fdr_region region = fdr_region_define("in the child", NULL, 0);
    fdr_enter(region);
    fdr_enter_address((void *)(uintptr_t)called);
    fdr_leave_address((void *)(uintptr_t)called);
    fdr_leave(region);
    bool all = fdr_usage().presented >= 2;
    fdr_finalize();
    return all ? fdri_system_loader_works() : 2;
}

/* Waits at most 60 s; -1: the child did not end by itself. */
static int status_of_child(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) _exit(records());
    for (int i = 0; i < 6000; i++, usleep(10000))
        if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

static void P10_children_can_use_the_loader(void **recording)
{
    pthread_t t;
    const char *sanitizers = getenv("FDR_SANITIZE");
    if (sanitizers && strstr(sanitizers, "thread")) skip(); /* it allows no threads after fork */
    struct fdr_config c = {.size = sizeof c, .ignore_environment = 1, .arena = "anonymous", .buffer = "4M"};
    if (*recording) assert_int_equal(fdr_init(&c), 0);
    assert_int_equal(status_of_child(), true);
    sem_init(&inside, 0, 0);
    sem_init(&go, 0, 0);
    assert_int_equal(pthread_create(&t, NULL, has_the_lock, NULL), 0);
    sem_wait(&inside);
    assert_int_equal(status_of_child(), false);
    sem_post(&go);
    pthread_join(t, NULL);
    assert_int_equal(status_of_child(), true);
    assert_true(fdri_system_loader_works());
    fdr_finalize();
}

int main(void)
{
    static char recording[] = "the parent records";
    const struct CMUnitTest tests[] = {
        {"parent without a recording", P10_children_can_use_the_loader, NULL, NULL, NULL},
        {recording, P10_children_can_use_the_loader, NULL, NULL, recording},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
