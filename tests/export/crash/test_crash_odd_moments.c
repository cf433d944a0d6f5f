/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=180 promise=P7 wrap=pthread_join
 * P7: the process dies at moments that are hard to handle, and each death leaves a whole recording with its cause.
 * Moments: while snapshots are written or the recording ends, in the allocator, in an exit handler, after pthread_exit
 * of the main thread, in exec. Stacks: the smallest that is allowed, and the program's own alternate stack. Also: no
 * signal number is free for requests to other threads, and two processes of one program die at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include "tests/support/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;

static void record(int n)
{
    fdr_region r = fdr_region_define("outer", NULL, 0), s = fdr_region_define("inner", NULL, 0);
    for (int i = 0; i < n; i++) fdr_enter(r), fdr_enter(s), fdr_leave(s), fdr_leave(r);
    fdr_enter(r);
}

/* ---- checks ---- */

/* Every recording in `dir` is whole. The one whose name ends in `end` has this cause (0: none). */
static void expect(const char *dir, const char *end, int signal)
{
    struct fdr_file *f = NULL;
    char message[200] = "";
    assert_int_equal(death_count(dir, end), 1);
    enum fdr_verdict v = fdr_file_open(death_find(dir, end), &f, message, sizeof message);
    if (v != FDR_WHOLE) fail_msg("%s: %s", death_find(dir, end), message);
    const char *wrong = death_check(f);
    if (wrong) fail_msg("%s", wrong);
    assert_int_equal(fdr_file_info(f)->has_cause ? fdr_file_info(f)->cause_signal : 0, signal);
    fdr_file_close(f);
}

static void dies_of(void (*die)(void), int signal)
{
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    int status = death_of(&c, die, &pid);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != signal) fail_msg("wait status %x", (unsigned)status);
    expect(p->dir, ".crash.fdr", signal);
    assert_int_equal(death_count(p->live, ".fdr"), 0);
}

/* ---- while snapshots are written ---- */

static unsigned moment_us;
static void *snapshots(void *unused)
{
    for (;;) fdr_snapshot("again");
    return unused;
}
static void die_beside_snapshots(void)
{
    pthread_t t;
    record(20000);
    pthread_create(&t, NULL, snapshots, NULL);
    usleep(moment_us);
    *nowhere = 1;
}
static void P7_while_snapshots_are_written(void **state)
{
    (void)state;
    static const char *const arenas[] = {"mapped", "anonymous"};
    int parts = 0;
    for (int i = 0; i < 20; i++) {
        pid_t pid;
        const struct death_place *p = death_place();
        struct fdr_config c = death_config(p);
        c.arena = arenas[i % 2];
        c.keep = "256,newest";
        moment_us = (unsigned)(500 + i * 733);
        int status = death_of(&c, die_beside_snapshots, &pid);
        assert_int_equal(WTERMSIG(status), SIGSEGV);
        expect(p->dir, ".crash.fdr", SIGSEGV);
        parts += death_count(p->dir, ".part");
        assert_int_equal(death_count(p->live, ".fdr"), 0);
    }
    assert_in_range(parts, 0, 2); /* a thread without a processor for 200 ms may begin its file late and leave a part */
}

/* ---- while the recording ends: fdr_finalize waits for the dumper thread ---- */

static bool dies_in_join;
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result)
{
    if (dies_in_join) *nowhere = 1;
    return __real_pthread_join(thread, result);
}
static void die_in_finalize(void)
{
    record(10);
    dies_in_join = true;
    fdr_finalize();
}
static void P7_while_the_recording_ends(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    c.signal = "USR1";
    assert_int_equal(WTERMSIG(death_of(&c, die_in_finalize, &pid)), SIGSEGV);
    expect(p->dir, ".crash.fdr", SIGSEGV);
    assert_int_equal(death_count(p->live, ".fdr"), 0);
}

/* ---- in the allocator, before the thread's local data of the C++ library is allocated ---- */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
static void P7_in_the_allocator_beside_cxx(void **state) { (void)state, skip(); } /* the sanitizer has its own */
#else
static void *spoil_the_heap(void *unused)
{
    record(10);
    volatile char *volatile block = malloc(50000);
    for (int i = 0; i < 50064; i++) block[i] = -1; /* free memory behind the block, too */
    block = malloc(50000);
    (void)unused;
    abort();
}
static void die_in_the_allocator(void)
{
    pthread_t t;
    struct fdr_config c = death_config(death_place_as_it_is());
    if (!dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL)) _exit(96);
    if (fdr_init(&c)) _exit(95);
    pthread_create(&t, NULL, spoil_the_heap, NULL);
    pthread_join(t, NULL);
}
static void P7_in_the_allocator_beside_cxx(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    int status = death_of(NULL, die_in_the_allocator, &pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 96) skip();
    if (status == -1) fail_msg("it hangs");
    assert_int_equal(WTERMSIG(status), SIGABRT);
    expect(p->dir, ".crash.fdr", SIGABRT);
}
#endif

/* ---- stacks ---- */

static volatile int most = INT_MAX;
static int deeper(int n)
{
    volatile char room[512];
    room[0] = (char)n;
    return n < most ? deeper(n + 1) + room[0] : 0;
}
static void *overflow(void *unused)
{
    record(3);
    return deeper(0) ? unused : NULL;
}
static void die_on_a_small_stack(void)
{
    pthread_t t;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t)PTHREAD_STACK_MIN);
    record(10);
    if (pthread_create(&t, &small, overflow, NULL)) _exit(1);
    pthread_join(t, NULL);
}
static void on_own_stack(int number)
{
    (void)number;
    record(3);
    *nowhere = 1;
}
static void die_on_an_own_stack(void)
{
    static char own[65536];
    stack_t stack = {.ss_sp = own, .ss_size = sizeof own};
    struct sigaction a = {.sa_handler = on_own_stack, .sa_flags = SA_ONSTACK};
    record(10);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR2, &a, NULL);
    raise(SIGUSR2);
}
static void P7_small_and_own_stacks(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    bool small = false, own = false; /* ThreadSanitizer delays signals and runs handlers elsewhere */
#elif defined(__SANITIZE_ADDRESS__)
    bool small = false, own = true; /* AddressSanitizer itself needs a larger stack */
#else
    bool small = true, own = true;
#endif
    if (small) dies_of(die_on_a_small_stack, SIGSEGV);
    if (own) dies_of(die_on_an_own_stack, SIGSEGV);
}

/* ---- ends ---- */

static void at_exit(void) { record(3), abort(); }
static void die_at_exit(void) { record(10), atexit(at_exit), exit(0); }
static void *later(void *unused)
{
    usleep(50000);
    *nowhere = 1;
    return unused;
}
static void die_without_main(void)
{
    pthread_t t;
    record(10);
    pthread_create(&t, NULL, later, NULL);
    pthread_exit(NULL);
}
static void die_without_permissions(void) { record(10), umask(0777), *nowhere = 1; }
static void P7_crashes_after_main(void **state)
{
    (void)state;
    dies_of(die_at_exit, SIGABRT);
    dies_of(die_without_main, SIGSEGV);
    dies_of(die_without_permissions, SIGSEGV);
}

/* ---- no signal number is free for requests to other threads ---- */

static void nothing(int number) { (void)number; }
static void *waits(void *unused)
{
    record(3);
    for (;;) pause();
    return unused;
}
static void die_with_all_signals_taken(void)
{
    pthread_t t;
    for (int n = SIGRTMIN; n <= SIGRTMAX; n++) signal(n, nothing);
    record(10);
    pthread_create(&t, NULL, waits, NULL);
    usleep(10000);
    *nowhere = 1;
}
static void P7_other_threads_block_all_signals(void **state)
{
    (void)state;
    const struct fdr_crash_thread_info *t;
    struct fdr_file *f;
    char message[200], name[48];
    dies_of(die_with_all_signals_taken, SIGSEGV);
    assert_int_equal(fdr_file_open(death_find(death_place_as_it_is()->dir, ".crash.fdr"), &f, message, sizeof message),
                     FDR_WHOLE);
    size_t n = fdr_crash_threads(f, &t);
    assert_true(n >= 2 && t[0].faulting && t[0].answered);
    for (size_t i = 1; i < n; i++) {
        assert_false(t[i].answered);
        snprintf(name, sizeof name, "task/%u/syscall", t[i].tid);
        assert_non_null(fdr_crash_text(f, name, NULL));
    }
    fdr_file_close(f);
}

/* ---- exec ---- */

static void *exec_true(void *unused)
{
    record(3);
    execl("/bin/true", "true", NULL);
    return unused;
}
static void exec_in_a_thread(void)
{
    pthread_t t;
    record(10);
    pthread_create(&t, NULL, exec_true, NULL);
    for (;;) pause();
}
static void P7_exec_in_a_thread(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    assert_int_equal(death_of(&c, exec_in_a_thread, &pid), 0);
    expect(p->live, ".live.fdr", 0);
    assert_int_equal(death_count(p->dir, ".fdr"), 0);
}

/* exec keeps the process id. The new program's file must not overwrite the live file of the old one. */
static char own_path[512];
static void exec_itself(void)
{
    record(10);
    execl(own_path, own_path, "--again", death_place_as_it_is()->dir, death_place_as_it_is()->live, NULL);
}
static int again(const char *dir, const char *live)
{
    struct death_place p;
    snprintf(p.dir, sizeof p.dir, "%s", dir);
    snprintf(p.live, sizeof p.live, "%s", live);
    struct fdr_config c = death_config(&p);
    death_child();
    if (fdr_init(&c)) return 1;
    record(20);
    *nowhere = 1;
    return 2;
}
static void P7_exec_of_itself(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    ssize_t n = readlink("/proc/self/exe", own_path, sizeof own_path - 1);
    assert_true(n > 0);
    assert_int_equal(WTERMSIG(death_of(&c, exec_itself, &pid)), SIGSEGV);
    expect(p->live, ".live.fdr", 0);
    expect(p->dir, ".crash.fdr", SIGSEGV);
}

/* ---- two at once ---- */

static void P7_two_processes_crash_at_once(void **state)
{
    (void)state;
    enum { TWINS = 4 };
    pid_t pid[TWINS];
    int status;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    fflush(NULL);
    for (int i = 0; i < TWINS; i++)
        if ((pid[i] = fork()) == 0) {
            death_child();
            if (fdr_init(&c)) _exit(1);
            record(1000);
            *nowhere = 1;
        }
    for (int i = 0; i < TWINS; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(WTERMSIG(status), SIGSEGV);
    }
    assert_int_equal(death_count(p->dir, ".crash.fdr"), TWINS);
    assert_int_equal(death_count(p->live, ".fdr"), 0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--again")) return again(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(P7_while_snapshots_are_written),
                                       cmocka_unit_test(P7_while_the_recording_ends),
                                       cmocka_unit_test(P7_in_the_allocator_beside_cxx),
                                       cmocka_unit_test(P7_small_and_own_stacks),
                                       cmocka_unit_test(P7_crashes_after_main),
                                       cmocka_unit_test(P7_other_threads_block_all_signals),
                                       cmocka_unit_test(P7_exec_in_a_thread),
                                       cmocka_unit_test(P7_exec_of_itself),
                                       cmocka_unit_test(P7_two_processes_crash_at_once)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
