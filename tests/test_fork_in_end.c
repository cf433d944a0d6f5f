/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=60 wrap=pwrite
 * A handler that forks while its thread is in fdr_init or fdr_finalize: neither waits for itself, the recording goes on
 * and the snapshot at the end is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

enum { FORKS = 12, ROUNDS_MOST = 500, CALLS = 200000 };

static char directory[32];
static volatile sig_atomic_t forks;

static void forker(int signal)
{
    (void)signal;
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
    forks++;
}

static struct fdr_config in_a_directory(const char *buffer, const char *signal)
{
    assert_non_null(mkdtemp(strcpy(directory, "/tmp/fdr-fork-XXXXXX")));
    return (struct fdr_config){.size = sizeof(struct fdr_config),
                               .ignore_environment = 1,
                               .buffer = buffer,
                               .signal = signal,
                               .crash = "0",
                               .arena = "anonymous",
                               .finalize = "snapshot",
                               .dir = directory,
                               .live_dir = directory};
}

static void snapshot_is_whole(void)
{
    char message[200] = "";
    struct fdr_file *f;
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
}

/* What a handler finds that comes while a snapshot is written in fdr_finalize, under fdr's lock. */
static int fault; /* the signal that comes then; 0: none */
static bool own_waits, programs_wait;

ssize_t __real_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off)
{
    sigset_t now;
    int signal = fault;
    fault = 0;
    if (signal) {
        assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
        own_waits = sigismember(&now, SIGUSR1);
        programs_wait = sigismember(&now, SIGALRM);
        raise(signal);
    }
    return __real_pwrite(fd, bytes, count, off);
}

static void P10_the_handler_of_a_fault_forks_in_finalize(void **state)
{
    (void)state;
    const struct fdr_config c = in_a_directory("1M", "USR1");
    assert_true(signal(SIGALRM, forker) != SIG_ERR && signal(SIGSEGV, forker) != SIG_ERR);
    assert_int_equal(fdr_init(&c), 0);
    fdr_region r = fdr_region_define("work", NULL, 0);
    fdr_enter(r), fdr_leave(r);
    forks = 0;
    fault = SIGSEGV;
    fdr_finalize();
    assert_int_equal(forks, 1);
    assert_true(programs_wait);
    assert_false(own_waits);
    snapshot_is_whole();
    assert_int_equal(fdr_init(&c), 0); /* the lock is as it was */
    fdr_finalize();
    snapshot_is_whole();
    assert_int_equal(rmdir(directory), 0);
    signal(SIGSEGV, SIG_DFL);
}

static void P10_a_handler_forks_in_init_and_finalize(void **state)
{
    struct itimerval often = {{0, 40000}, {0, 40000}}, never = {{0, 0}, {0, 0}};
    (void)state;
    const struct fdr_config c = in_a_directory("16M", "none");
    assert_true(signal(SIGALRM, forker) != SIG_ERR);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < ROUNDS_MOST && forks < FORKS; i++) {
        assert_int_equal(fdr_init(&c), 0);
        fdr_region r = fdr_region_define("work", NULL, 0);
        for (int k = 0; k < CALLS; k++) fdr_enter(r), fdr_leave(r);
        fdr_finalize();
        snapshot_is_whole();
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_true(forks >= FORKS);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_a_handler_forks_in_init_and_finalize),
                                       cmocka_unit_test(P10_the_handler_of_a_fault_forks_in_finalize)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
