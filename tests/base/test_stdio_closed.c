/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * P10: a program without standard input, output and error, like a daemon, goes on writing to descriptors 0 to 2. None
 * of its bytes may get into a file of fdr's, under any limit of descriptors. Its calls must fail as they would without
 * fdr. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/support/deaths.h"

#ifdef __SANITIZE_THREAD__
void __tsan_ignore_thread_begin(void); /* of its runtime */
void __tsan_ignore_thread_end(void);
#endif
enum { SNAPSHOTS = 40, THREADS = 2, GOT_THROUGH = 3, NO_SNAPSHOT = 4, NO_START = 5 };

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static unsigned rounds, through; /* atomic */
static uint64_t limit_files;     /* 0: the limit stays as it is */
static const char *edge_counters;
static fdr_region region;

/* ---- the program: a thread that blocks all signals writes to the closed descriptors ---- */

static void write_once(int fd)
{
    static const char text[] = "a message to standard error that goes nowhere\n";
    /* not write(): fdr opens a descriptor that the program writes to, on purpose; ThreadSanitizer calls it a race */
    if (syscall(SYS_write, fd, text, sizeof text - 1) >= 0 || errno != EBADF)
        __atomic_fetch_add(&through, 1, __ATOMIC_RELAXED);
}

static void *writes(void *unused)
{
    for (;;) {
        for (int fd = 0; fd < 3; fd++) write_once(fd);
        __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

static void start_writing(void)
{
    pthread_t t;
    sigset_t all, old;
    for (int fd = 0; fd < 3; fd++) close(fd);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&t, NULL, writes, NULL)) _exit(NO_START);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    while (!__atomic_load_n(&rounds, __ATOMIC_RELAXED)) usleep(100);
}

static void record(int n)
{
    for (int i = 0; i < n; i++) fdr_enter(region), fdr_leave(region);
}

static void *begins_and_ends(void *unused)
{
    record(10);
    return unused;
}

/* Threads come and go meanwhile. With counters at the edges of calls each opens descriptors of its own. */
static void *many(void *unused)
{
    pthread_t t;
    for (;;)
        if (!pthread_create(&t, NULL, begins_and_ends, NULL)) pthread_join(t, NULL);
    return unused;
}

static void start(void)
{
    struct rlimit files = {limit_files, limit_files};
    struct fdr_config c = death_config(death_place_as_it_is());
    c.keep = "100";
    c.sample = "1kHz";
    c.edge_counters = edge_counters;
    if (limit_files && setrlimit(RLIMIT_NOFILE, &files)) _exit(NO_START);
    start_writing();
    if (fdr_init(&c)) _exit(NO_START);
    region = fdr_region_define("r", NULL, 0);
    record(1000);
}

static void must_have_failed(void)
{
    if (__atomic_load_n(&through, __ATOMIC_RELAXED)) _exit(GOT_THROUGH);
}

static void snapshots_then_killed(void)
{
    start();
    for (int i = 0; i < THREADS && edge_counters; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, many, NULL)) _exit(NO_START);
    }
    for (int i = 0; i < SNAPSHOTS; i++) {
        record(1000);
        if (fdr_snapshot("s")) _exit(NO_SNAPSHOT);
    }
    must_have_failed();
    raise(SIGKILL);
}

/* The crash handler must open again the files that the program has closed. */
static void crashes(void)
{
    start();
    must_have_failed();
#ifdef __SANITIZE_THREAD__
    __tsan_ignore_thread_begin(); /* it closes descriptors that fdr's threads use, on purpose */
#endif
    for (int fd = 3; fd < 1024; fd++) close(fd);
#ifdef __SANITIZE_THREAD__
    __tsan_ignore_thread_end();
#endif
    *nowhere = 1;
}

/* ---- the files that it left ---- */

static void is_whole(const char *path)
{
    struct fdr_file *f;
    char message[200] = "";
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    fdr_file_close(f);
}

static void all_whole(const char *directory, int count)
{
    DIR *d = opendir(directory);
    char path[600];
    int n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (!death_ends_with(e->d_name, ".fdr")) continue;
        snprintf(path, sizeof path, "%.255s/%.255s", directory, e->d_name);
        is_whole(path);
        n++;
    }
    closedir(d);
    assert_int_equal(n, count);
}

static void snapshots_of(uint64_t limit, const char *counters)
{
    pid_t pid;
    const struct death_place *p = death_place();
    limit_files = limit;
    edge_counters = counters;
    int status = death_of(NULL, snapshots_then_killed, &pid);
    if (WIFEXITED(status)) assert_int_not_equal(WEXITSTATUS(status), GOT_THROUGH);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    all_whole(p->dir, SNAPSHOTS);
    all_whole(p->live, 1);
}

static void snapshots_and_the_live_file_are_whole(void **state)
{
    (void)state;
    snapshots_of(0, NULL);
}

static void snapshots_are_whole_without_high_descriptors(void **state)
{
    (void)state;
    snapshots_of(64, NULL);
}

static void snapshots_are_whole_while_threads_open_counters(void **state)
{
    (void)state;
    snapshots_of(0, "perf:page-faults task:minor-faults");
}

static void crash_of(uint64_t limit)
{
    pid_t pid;
    const struct death_place *p = death_place();
    limit_files = limit;
    edge_counters = NULL;
    int status = death_of(NULL, crashes, &pid);
    if (WIFEXITED(status)) assert_int_not_equal(WEXITSTATUS(status), GOT_THROUGH);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    assert_int_equal(death_count(p->dir, ".crash.fdr") + death_count(p->live, ".crash.fdr"), 1);
    all_whole(death_count(p->dir, ".crash.fdr") ? p->dir : p->live, 1);
}

static void bundle_is_whole(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) crash_of(i % 2 ? 64 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(snapshots_and_the_live_file_are_whole),
                                       cmocka_unit_test(snapshots_are_whole_without_high_descriptors),
                                       cmocka_unit_test(snapshots_are_whole_while_threads_open_counters),
                                       cmocka_unit_test(bundle_is_whole)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
