/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * P10: a seccomp filter kills the program on every system call that docs/CRASH.md does not list, from before fdr
 * starts. The program uses threads, definitions, all kinds of snapshots and the watchdog, ends, and dies. The list in
 * this file equals the list on that page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "tests/support/syscall_lists.h"

static const struct call published[] = {
    CALL(brk),
    CALL(clock_gettime),
    CALL(clock_nanosleep),
    CALL(clone),
    CALL(clone3),
    CALL(close),
    CALL(exit),
    CALL(exit_group),
    CALL(faccessat2),
    CALL(fallocate),
    CALL(fchmod),
    CALL(fcntl),
    CALL(flock),
    CALL(fstat),
    CALL(fstatfs),
    CALL(ftruncate),
    CALL(futex),
    CALL(get_mempolicy),
    CALL(getcwd),
    CALL(getdents64),
    CALL(geteuid),
    CALL(getpid),
    CALL(getppid),
    CALL(getrandom),
    CALL(gettid),
    CALL(getuid),
    CALL(kill),
    CALL(linkat),
    CALL(lseek),
    CALL(madvise),
    CALL(mbind),
    CALL(membarrier),
    CALL(mkdirat),
    CALL(mmap),
    CALL(mprotect),
    CALL(munmap),
    CALL(nanosleep),
    CALL(newfstatat),
    CALL(openat),
    CALL(ppoll),
    CALL(prctl),
    CALL(pread64),
    CALL(prlimit64),
    CALL(pwrite64),
    CALL(read),
    CALL(readlinkat),
    CALL(renameat2),
    CALL(restart_syscall),
    CALL(rseq),
    CALL(rt_sigaction),
    CALL(rt_sigpending),
    CALL(rt_sigprocmask),
    CALL(rt_sigreturn),
    CALL(rt_sigtimedwait),
    CALL(rt_tgsigqueueinfo),
    CALL(sched_getaffinity),
    CALL(sched_yield),
    CALL(set_mempolicy),
    CALL(set_robust_list),
    CALL(sigaltstack),
    CALL(tgkill),
    CALL(uname),
    CALL(unlinkat),
    CALL(utimensat),
    CALL(write),
#ifdef SYS_unlink
    CALL(mkdir),
    CALL(readlink),
    CALL(unlink),
#else /* this architecture has only the calls that end in "at" */
    {"mkdir", -1},
    {"readlink", -1},
    {"unlink", -1},
#endif
};
enum { PUBLISHED = sizeof published / sizeof *published };

/* ---- the program ---- */

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static fdr_region region;
static bool stop;

static void *record(void *unused)
{
    for (int i = 0; i < 100000; i++) fdr_enter(region), fdr_leave(region);
    return unused;
}

static void *hang(void *unused)
{
    fdr_region waits = fdr_region_define("barrier", NULL, 0); /* a name that says that it waits for others */
    fdr_enter(waits);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) usleep(10000);
    fdr_leave(waits);
    return unused;
}

/* Waits until this many snapshots are complete. It cannot search directories: the filter forbids that. */
static void wait_for(uint64_t snapshots)
{
    for (int i = 0; i < 2000 && fdr_usage().snapshots < snapshots; i++) usleep(10000);
    if (fdr_usage().snapshots < snapshots) _exit(51);
}

/* Another process stops and continues this one. Then the kernel itself restarts waits that have a time limit, by
 * another system call. */
static void be_stopped(void)
{
    pid_t me = getpid(), other = fork();
    for (int i = 0; other == 0 && i < 40; i++) {
        if (kill(me, i % 2 ? SIGCONT : SIGSTOP)) break;
        usleep(5000);
    }
    if (other == 0) kill(me, SIGCONT), _exit(0);
}

static const char *arena;
static void live(void)
{
    pthread_t t;
    struct fdr_config c = death_config(death_place_as_it_is());
    c.arena = arena;
    c.signal = "USR1";
    c.watchdog = "50ms";
    c.triggers = "count: event mark count 3";
    be_stopped();
    if (!calls_filter(published, PUBLISHED)) _exit(77);
    if (fdr_init(&c)) _exit(52);
    region = fdr_region_define("region", "file.c", 1);
    fdr_marker_id mark = fdr_marker_define("mark");
    record(NULL);
    if (pthread_create(&t, NULL, record, NULL) || pthread_join(t, NULL)) _exit(53);
    fdr_note("key", "value");
    fdr_enter_address((const void *)(uintptr_t)&live);
    fdr_leave_address((const void *)(uintptr_t)&live);
    if (fdr_snapshot("by the API")) _exit(54);
    raise(SIGUSR1);
    wait_for(2);
    for (int i = 0; i < 3; i++) fdr_marker(mark, 1);
    wait_for(3);
    if (pthread_create(&t, NULL, hang, NULL)) _exit(55);
    wait_for(4);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    record(NULL);
}
static void live_and_end(void) { live(), fdr_finalize(), exit(5); }
static void live_and_die(void)
{
    live();
    for (pthread_t t; pthread_create(&t, NULL, hang, NULL);) {}
    *nowhere = 1;
}
static void live_and_abort(void) { live(), abort(); }

static void each(void (*die)(void), int expected)
{
    static const char *const arenas[] = {"mapped", "anonymous"};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers make other system calls */
#endif
    for (int i = 0; i < 2; i++) {
        pid_t pid;
        const struct death_place *p = death_place();
        arena = arenas[i];
        int status = death_of(NULL, die, &pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) fail_msg("a call that is not on the list");
        assert_int_equal(status & ~0x80, expected);
        assert_int_equal(death_count(p->dir, ".fdr"), 4 + WIFSIGNALED(expected));
        assert_int_equal(death_count(p->dir, ".crash.fdr"), WIFSIGNALED(expected));
        assert_string_equal(death_file(p->live), "");
    }
}

static void P10_filtered_process_ends(void **state) { (void)state, each(live_and_end, 5 << 8); }
static void P10_filtered_process_faults(void **state) { (void)state, each(live_and_die, SIGSEGV); }
static void P10_filtered_process_aborts(void **state) { (void)state, each(live_and_abort, SIGABRT); }

static void page_lists_the_calls(void **state)
{
    (void)state;
    calls_compare("System calls of a whole run", published, PUBLISHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_lists_the_calls), cmocka_unit_test(P10_filtered_process_ends),
        cmocka_unit_test(P10_filtered_process_faults), cmocka_unit_test(P10_filtered_process_aborts)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
