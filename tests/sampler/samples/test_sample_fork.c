/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=180 promise=P10
 * ctest: without=asan (it looks for leaks in a child that is cancelled) wrap=dl_iterate_phdr */
/* P10: children of a sampled program work. The test forks while fdr's helper thread holds the loader's lock, also from
 * a thread with a pending cancellation. The loader must work in the child (otherwise the child hangs), and the child
 * can be sampled itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>

typedef int callback(struct dl_phdr_info *, size_t, void *);
int __real_dl_iterate_phdr(callback *, void *);
int __wrap_dl_iterate_phdr(callback *, void *);

static unsigned inside; /* atomic; 1: asks the helper to stay in the loader; 2: it is there */

static int stay(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info, (void)size, (void)unused;
    __atomic_store_n(&inside, 2, __ATOMIC_RELEASE);
    usleep(50000); /* holding the loader's lock: a child forked now would inherit the lock and never get it */
    return 1;
}

int __wrap_dl_iterate_phdr(callback *call, void *with)
{
    char name[16] = "";
    unsigned asked = 1;
    prctl(PR_GET_NAME, name);
    if (!strcmp(name, "fdr-sampler") &&
        __atomic_compare_exchange_n(&inside, &asked, 3, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        __real_dl_iterate_phdr(stay, NULL);
    return __real_dl_iterate_phdr(call, with);
}

static int first(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info, (void)size, (void)unused;
    return 1;
}

/* Waits at most 60 s for the child's end. */
static bool ends(pid_t pid)
{
    int status;
    for (int i = 0; i < 6000; i++, usleep(10000))
        if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return false;
}

static void a_child_can_load(void **state)
{
    (void)state;
    char dir[] = "/tmp/fdr-fork-XXXXXX";
    struct fdr_config c = {.size = sizeof c, .sample = "1kHz", .arena = "anonymous", .buffer = "8M"};
    assert_non_null(c.dir = mkdtemp(dir));
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < 5; i++) {
        __atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&inside, __ATOMIC_ACQUIRE) != 2) usleep(1000);
        pid_t pid = fork();
        if (pid == 0) {
            __real_dl_iterate_phdr(first, NULL);
            _exit(dlopen("libm.so.6", RTLD_NOW) == NULL);
        }
        assert_true(ends(pid));
    }
    fdr_finalize();
    rmdir(dir);
}

static void *forks_and_is_cancelled(void *child)
{
    pthread_cancel(pthread_self()); /* a pending cancellation; this calls the loader, too */
    __atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&inside, __ATOMIC_ACQUIRE) != 2) sched_yield();
    pid_t pid = fork(); /* fork must not become a cancellation point while it waits for the helper */
    if (pid == 0) _exit(0);
    *(pid_t *)child = pid;
    pthread_testcancel();
    return NULL;
}

static void cancelled_thread_returns_from_fork(void **state)
{
    (void)state;
    char dir[] = "/tmp/fdr-fork-XXXXXX";
    struct fdr_config c = {.size = sizeof c, .sample = "1kHz", .arena = "anonymous", .buffer = "8M"};
    pthread_t t;
    pid_t child = 0;
    void *result;
    assert_non_null(c.dir = mkdtemp(dir));
    assert_int_equal(fdr_init(&c), 0);
    assert_int_equal(pthread_create(&t, NULL, forks_and_is_cancelled, &child), 0);
    assert_int_equal(pthread_join(t, &result), 0);
    assert_true(child > 0 && ends(child));
    assert_ptr_equal(result, PTHREAD_CANCELED);
    fdr_finalize();
    rmdir(dir);
}

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Milliseconds of the calling thread that the samples represent. */
static uint64_t sampled_here(struct fdr_config *c)
{
    char message[300];
    static volatile double sink;
    const struct fdr_sample_stream *s;
    struct fdr_file *f;
    uint64_t ms = 0;
    if (fdr_init(c)) return 0;
    FDR_REGION("spin") for (double end = cpu() + 0.3; cpu() < end;) sink = sink * 1.0000001 + 0.1;
    if (fdr_snapshot("end") || fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message) != FDR_WHOLE) return 0;
    for (size_t n = fdr_sample_streams(f, &s); n--; s++)
        if (s->tid == (uint32_t)gettid()) ms += s->presented;
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    return ms;
}

/* A thread was sampled in an earlier recording. In a child it has another thread id. */
static void child_of_a_sampled_thread(void **state)
{
    (void)state;
    char dir[] = "/tmp/fdr-fork-XXXXXX";
    struct fdr_config c = {.size = sizeof c, .sample = "1kHz,wall,signal", .arena = "anonymous", .buffer = "8M"};
    assert_non_null(c.dir = mkdtemp(dir));
    assert_true(sampled_here(&c) > 0);
    pid_t pid = fork();
    if (pid == 0) _exit(sampled_here(&c) == 0);
    assert_true(ends(pid));
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_can_load),
                                       cmocka_unit_test(cancelled_thread_returns_from_fork),
                                       cmocka_unit_test(child_of_a_sampled_thread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
