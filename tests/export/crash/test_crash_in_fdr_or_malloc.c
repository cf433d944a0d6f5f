/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P7
 * P7: the process crashes in malloc, in the recorder, in several places of the crash handler, or in two threads at
 * once. It must die of its own signal and leave as much of the recording as can be read. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "recorder/recording.h"
#include "tests/support/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;

static void record(void)
{
    fdr_region r = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < 1000; i++) fdr_enter(r), fdr_leave(r);
    fdr_enter(r);
}

static void protect(uint64_t from, int how)
{
    if (mprotect(fdri_life_recording.arena.base + from, fdri_life_recording.arena.super->arena_bytes - from, how))
        _exit(1);
}

static void in_malloc(void)
{
    record();
    void **volatile p = malloc(24), **volatile q = malloc(24);
    free((void *)q);
    free((void *)p);
    p[0] = (void *)(uintptr_t)0x4141414141414141u; /* malloc looks for the next block of this size here */
    for (int i = 0; i < 4; i++) q = malloc(24), q[0] = NULL;
    abort(); /* in case the C library did not notice */
}

/* The next store of the recorder faults: all of the arena except the superblock is read-only. */
static void in_the_recorder(void)
{
    record();
    protect(4096, PROT_READ);
    for (;;) record();
}

/* The superblock is read-only as well. The first step of the handler faults; the others must still run. */
static void in_the_handler(void)
{
    record();
    protect(0, PROT_READ);
    *nowhere = 1;
}

/* No byte of the arena can be read. So no bundle can be written. */
static void all_over_the_handler(void)
{
    record();
    protect(0, PROT_NONE);
    *nowhere = 1;
}

static pthread_barrier_t together;
static void *fault(void *unused)
{
    pthread_barrier_wait(&together);
    __atomic_store_n(nowhere, 1, __ATOMIC_RELAXED);
    return unused;
}
static void everybody(void)
{
    enum { THREADS = 12 };
    pthread_t t[THREADS];
    record();
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, fault, NULL);
    for (;;) pause();
}

static struct fdr_file *left_by(void (*die)(void), int signal, const char **path)
{
    pid_t pid;
    struct fdr_file *f = NULL;
    char message[200] = "";
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    int status = death_of(&c, die, &pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal);
    *path = *death_file(p->dir) ? death_file(p->dir) : death_file(p->live);
    if (fdr_file_open(*path, &f, message, sizeof message) != FDR_WHOLE) fail_msg("'%s': %s", *path, message);
    const char *wrong = death_check(f);
    if (wrong) fail_msg("%s: %s", *path, wrong);
    return f;
}

static void P7_crash_in_malloc(void **state)
{
    const char *path;
    (void)state;
    struct fdr_file *f = left_by(in_malloc, SIGABRT, &path);
    assert_true(death_ends_with(path, ".crash.fdr"));
    assert_int_equal(fdr_file_info(f)->cause_signal, SIGABRT);
    fdr_file_close(f);
}

static void P7_crash_in_the_recorder(void **state)
{
    const char *path;
    (void)state;
    struct fdr_file *f = left_by(in_the_recorder, SIGSEGV, &path);
    assert_true(death_ends_with(path, ".crash.fdr"));
    assert_int_equal(fdr_file_info(f)->cause_signal, SIGSEGV);
    assert_string_equal(fdr_file_info(f)->state, "crashed");
    assert_true(fdr_location_info(f, 0)->open_count >= 1);
    fdr_file_close(f);
}

static void P7_crash_in_the_handler(void **state)
{
    const char *path;
    const struct fdr_crash_cause_info *cause;
    const struct fdr_crash_thread_info *thread;
    (void)state;
    struct fdr_file *f = left_by(in_the_handler, SIGSEGV, &path);
    assert_true(death_ends_with(path, ".crash.fdr"));
    assert_int_equal(fdr_crash_causes(f, &cause), 2);
    assert_int_equal(cause[0].signal, SIGSEGV);
    assert_int_equal(cause[0].addr, 8);
    assert_true(cause[1].in_handler);
    assert_true(fdr_crash_threads(f, &thread) >= 1);
    assert_true(thread[0].faulting);
    fdr_file_close(f);
}

static void P7_crash_at_any_point_of_the_handler(void **state)
{
    const char *path;
    (void)state;
    fdr_file_close(left_by(all_over_the_handler, SIGSEGV, &path));
    assert_non_null(strstr(path, death_place_as_it_is()->live)); /* the live file stays, as after SIGKILL */
}

static void P7_all_threads_crash_at_once(void **state)
{
    const struct fdr_crash_cause_info *cause;
    (void)state;
    for (int round = 0; round < 20; round++) {
        const char *path;
        struct fdr_file *f = left_by(everybody, SIGSEGV, &path);
        assert_true(death_ends_with(path, ".crash.fdr"));
        size_t n = fdr_crash_causes(f, &cause);
        assert_true(n >= 1);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(cause[i].signal, SIGSEGV);
            assert_int_equal(cause[i].addr, 8);
            assert_int_equal(cause[i].also, i > 0);
        }
        fdr_file_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P7_crash_in_malloc), cmocka_unit_test(P7_crash_in_the_recorder),
                                       cmocka_unit_test(P7_crash_in_the_handler),
                                       cmocka_unit_test(P7_crash_at_any_point_of_the_handler),
                                       cmocka_unit_test(P7_all_threads_crash_at_once)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
