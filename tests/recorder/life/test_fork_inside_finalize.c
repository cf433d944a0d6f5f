/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=60 promise=P10 without=tsan (it forks in handlers)
 * ctest: wrap=pwrite,pthread_mutex_lock,pthread_mutex_trylock,pthread_mutex_unlock
 * P10: a signal handler forks while its thread is inside of fdr_init, fdr_finalize or fdr_ending. The thread must
 * not wait for itself. The recording continues, and the final snapshot is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
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

/* A handler runs while fdr_finalize writes a snapshot and holds fdr's lock. */
static int fault; /* the signal raised at that moment; 0: none */
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
    assert_int_equal(fdr_init(&c), 0); /* the lock is free again */
    fdr_finalize();
    snapshot_is_whole();
    assert_int_equal(rmdir(directory), 0);
    signal(SIGSEGV, SIG_DFL);
}

/* ---- a handler right before and right after each operation on a lock, so the thread may hold it or not ---- */

static _Thread_local volatile sig_atomic_t at_locks; /* the signal raised there; 0: none */

static void at_a_lock(void)
{
    sig_atomic_t signal = at_locks;
    at_locks = 0; /* not during the fork of the handler */
    if (signal) raise(signal);
    at_locks = signal;
}

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_trylock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    at_a_lock();
    int e = __real_pthread_mutex_lock(lock);
    at_a_lock();
    return e;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
    at_a_lock();
    int e = __real_pthread_mutex_trylock(lock);
    at_a_lock();
    return e;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    at_a_lock();
    int e = __real_pthread_mutex_unlock(lock);
    at_a_lock();
    return e;
}

static void remove_directory(void)
{
    char path[300];
    DIR *d = opendir(directory);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (e->d_name[0] != '.') assert_int_equal(unlink(path), 0);
    }
    closedir(d);
    assert_int_equal(rmdir(directory), 0);
}

static void forks_at_locks(int number)
{
    const struct fdr_config c = in_a_directory("1M", "USR1");
    assert_true(signal(number, forker) != SIG_ERR);
    forks = 0;
    at_locks = number == SIGUSR1 ? 0 : number; /* fdr's handler is not installed yet */
    assert_int_equal(fdr_init(&c), 0);
    at_locks = 0; /* nor at the locks of a definition */
    fdr_region r = fdr_region_define("work", NULL, 0);
    fdr_enter(r), fdr_leave(r);
    at_locks = number;
    int before = forks;
    assert_int_equal(fdr_ending("test", 3), 0); /* FDR_CRASH=0 allows no bundle */
    assert_true(forks >= before + 4);
    before = forks;
    if (number == SIGUSR1) at_locks = 0, fault = number; /* this signal is blocked until fdr_finalize is done */
    fdr_finalize();
    at_locks = 0;
    assert_true(number == SIGUSR1 ? own_waits && forks == before + 1 : forks >= before + 4);
    snapshot_is_whole();
    signal(number, SIG_DFL);
    remove_directory();
}

static void P10_the_handler_of_a_fault_forks_at_a_lock(void **state)
{
    (void)state;
    forks_at_locks(SIGTRAP);
}

/* In fdr_ending, which blocks no signals. */
static void P10_a_handler_behind_the_snapshot_signals_forks_at_a_lock(void **state)
{
    (void)state;
    forks_at_locks(SIGUSR1);
}

static void P10_a_handler_forks_in_init_and_finalize(void **state)
{
    struct itimerval often = {{0, 40000}, {0, 40000}}, never = {{0, 0}, {0, 0}};
    sigset_t alarms, before;
    (void)state;
    assert_int_equal(sigemptyset(&alarms) | sigaddset(&alarms, SIGALRM), 0);
    const struct fdr_config c = in_a_directory("16M", "none");
    assert_true(signal(SIGALRM, forker) != SIG_ERR);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < ROUNDS_MOST && forks < FORKS; i++) {
        assert_int_equal(fdr_init(&c), 0);
        fdr_region r = fdr_region_define("work", NULL, 0);
        for (int k = 0; k < CALLS; k++) fdr_enter(r), fdr_leave(r);
        fdr_finalize();
        assert_int_equal(pthread_sigmask(SIG_BLOCK, &alarms, &before), 0); /* a fork inside of malloc would hang */
        snapshot_is_whole();
        assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_true(forks >= FORKS);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_a_handler_forks_in_init_and_finalize),
                                       cmocka_unit_test(P10_the_handler_of_a_fault_forks_in_finalize),
                                       cmocka_unit_test(P10_the_handler_of_a_fault_forks_at_a_lock),
                                       cmocka_unit_test(P10_a_handler_behind_the_snapshot_signals_forks_at_a_lock)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
