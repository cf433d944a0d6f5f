/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=60 promise=P2,P10
 * ctest: without=tsan (it runs handlers where its own functions wait)
 * P2, P10: the fatal path makes only the system calls that docs/CRASH.md lists; the record path of an attached thread
 * makes none. A seccomp filter kills the process with SIGSYS on any other call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "tests/support/syscall_lists.h"

static const struct call fatal_path[] = {
    CALL(clock_gettime), CALL(close),        CALL(fstat),          CALL(getdents64),   CALL(getpid),
    CALL(gettid),        CALL(linkat),       CALL(madvise),        CALL(mmap),         CALL(nanosleep),
    CALL(newfstatat),    CALL(openat),       CALL(prlimit64),      CALL(pwrite64),     CALL(read),
    CALL(renameat2),     CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(rt_tgsigqueueinfo),
    CALL(tgkill),        CALL(unlinkat),     CALL(rt_sigpending)};
enum { FATAL_PATH = sizeof fatal_path / sizeof *fatal_path };
static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static fdr_region region;

static void record(int n)
{
    for (int i = 0; i < n; i++) fdr_enter(region), fdr_leave(region);
}

static void *beside(void *unused)
{
    fdr_enter(region);
    for (volatile int go = 1; go;) {}
    return unused;
}

static void die_filtered(void)
{
    pthread_t t;
    region = fdr_region_define("r", NULL, 0);
    record(1000);
    pthread_create(&t, NULL, beside, NULL);
    usleep(10000);
    if (!calls_filter(fatal_path, FATAL_PATH)) _exit(77);
    *nowhere = 1;
}

/* ---- handlers installed before fdr that restore the default action ---- */

static size_t allowed; /* the filter allows so many of the list; the last one is needed only for such handlers */
static void returns(int number) { signal(number, SIG_DFL); }
static void raises(int number) { signal(number, SIG_DFL), raise(number); }

static void begin_behind(void (*handler)(int))
{
    struct fdr_config c = death_config(death_place_as_it_is());
    signal(SIGSEGV, handler);
    if (fdr_init(&c)) _exit(52);
    region = fdr_region_define("r", NULL, 0);
    record(1000);
    if (!calls_filter(fatal_path, allowed)) _exit(77);
}
static void fault_returns(void) { begin_behind(returns), *nowhere = 1; } /* the instruction faults again */
static void fault_raises(void) { begin_behind(raises), *nowhere = 1; }
static void sent_returns(void) { begin_behind(returns), raise(SIGSEGV), *nowhere = 1; } /* raise returns */
static void sent_raises(void) { begin_behind(raises), raise(SIGSEGV); }

static void record_filtered(void)
{
    static const struct call end[] = {CALL(exit_group)};
    region = fdr_region_define("r", NULL, 0);
    record(1000);
    if (!calls_filter(end, 1)) _exit(77);
    record(2000000); /* enough calls for reductions: the arena is small */
    syscall(SYS_exit_group, 5);
}

/* Checks that the process died of SIGSEGV and left a bundle in `dir`. */
static void died_well(int status, const char *dir)
{
    struct fdr_file *f;
    char message[200] = "";
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV); /* SIGSYS would mean a call that is not listed */
    assert_int_equal(fdr_file_open(death_file(dir), &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_file_info(f)->cause_signal, SIGSEGV);
    fdr_file_close(f);
}

static void fatal_path_keeps_to_its_calls(void **state)
{
    (void)state;
    static const char *const arenas[] = {"mapped", "anonymous", "mapped"};
    for (int i = 0; i < 3; i++) {
        pid_t pid;
        const struct death_place *p = death_place();
        struct fdr_config c = death_config(p);
        c.arena = arenas[i];
        if (i == 2) c.dir = p->live; /* same file system: the bundle is moved, not copied */
        died_well(death_of(&c, die_filtered, &pid), c.dir);
    }
}

/* With one call less on the list each of these deaths fails. So each really needs that call. */
static void fatal_path_behind_a_handler_keeps_to_its_calls(void **state)
{
    (void)state;
    static void (*const deaths[])(void) = {fault_returns, fault_raises, sent_returns, sent_raises};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers run between a signal and its handler */
#endif
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        pid_t pid;
        const struct death_place *p = death_place();
        allowed = FATAL_PATH;
        died_well(death_of(NULL, deaths[i], &pid), p->dir);
        death_place();
        allowed = FATAL_PATH - 1;
        int status = death_of(NULL, deaths[i], &pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSYS);
    }
}

static void page_lists_the_calls(void **state)
{
    (void)state;
    calls_compare("System calls of the fatal path", fatal_path, FATAL_PATH);
}

static void P2_the_record_path_makes_no_call(void **state)
{
    (void)state;
    pid_t pid;
    struct fdr_config c = death_config(death_place());
    int status = death_of(&c, record_filtered, &pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 5);
    death_place();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(page_lists_the_calls),
                                       cmocka_unit_test(fatal_path_keeps_to_its_calls),
                                       cmocka_unit_test(fatal_path_behind_a_handler_keeps_to_its_calls),
                                       cmocka_unit_test(P2_the_record_path_makes_no_call)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
