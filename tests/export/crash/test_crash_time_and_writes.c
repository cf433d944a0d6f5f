/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P7,P10
 * ctest: without=tsan (it runs handlers where its own functions wait)
 * P7, P10: the bounds of docs/CRASH.md on time and writes of the fatal path hold. No write exceeds 1 MiB. No write of
 * the arena follows the deadline. The waits for silent threads add up to 200 ms at most. A tracing parent counts system
 * calls, so the load of the machine does not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "tests/support/deaths.h"

enum { MIB = 1 << 20, DEADLINE_MS = 1500 };
static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;

/* ---- the child: its first thread stops at each system call for the parent, then dies ---- */

static void be_traced(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) _exit(77);
    raise(SIGSTOP);
}

static void die_full(void)
{
    fdr_region r = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < 4000000; i++) fdr_enter(r), fdr_leave(r);
    be_traced();
    *nowhere = 1;
}

static volatile bool gone;
static void *waits_for_a_child(void *unused) /* a thread in vfork gets no signal until the child ends */
{
    if (vfork() == 0) {
        struct timespec long_time = {.tv_sec = 60};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        gone = true;
        syscall(SYS_nanosleep, &long_time, NULL);
        _exit(0);
    }
    return unused;
}

static void die_beside_a_silent_one(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, waits_for_a_child, NULL)) _exit(1);
    while (!gone) usleep(1000);
    be_traced();
    *nowhere = 1;
}

/* ---- the parent ---- */

struct seen {
    bool traced; /* false: this machine allows no tracing */
    int status;
    uint64_t largest, writes, wholes; /* wholes: writes of exactly 1 MiB */
    uint64_t late_bytes;              /* bytes written after the deadline */
    uint64_t waits, waited_ns, last_ns;
};

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t)) {}
}

static uint64_t nap_of(pid_t pid, uint64_t at)
{
    errno = 0;
    long s = ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)at, NULL);
    long ns = ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)(at + 8), NULL);
    return errno ? 0 : (uint64_t)s * 1000000000u + (uint64_t)ns;
}

/* Counts one system call. At write number `hold` the child is held until its deadline is over (0: never). */
static void see_call(pid_t pid, const struct __ptrace_syscall_info *call, uint64_t hold, struct seen *s)
{
    if (call->entry.nr == SYS_pwrite64) {
        uint64_t bytes = call->entry.args[2];
        if (hold && s->wholes >= hold) s->late_bytes += bytes;
        if (bytes > s->largest) s->largest = bytes;
        s->writes++;
        s->wholes += bytes == MIB;
        if (hold && s->wholes == hold && bytes == MIB) sleep_ms(DEADLINE_MS + 500);
    } else if (call->entry.nr == SYS_nanosleep) {
        s->waits++;
        s->waited_ns += s->last_ns = nap_of(pid, call->entry.args[0]);
    }
}

/* Traces the child until its end; the result has its wait status. */
static struct seen watch(const struct fdr_config *c, void (*die)(void), uint64_t hold)
{
    struct seen s = {0};
    struct __ptrace_syscall_info call;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = {0, 0};
        death_child();
        setrlimit(RLIMIT_CORE, &none);
        if (fdr_init(c)) _exit(98);
        die();
        _exit(99);
    }
    if (waitpid(pid, &s.status, 0) != pid || !WIFSTOPPED(s.status)) return s;
    ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
    s.traced = true;
    for (int deliver = 0; ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)deliver) == 0;) {
        if (waitpid(pid, &s.status, 0) != pid || !WIFSTOPPED(s.status)) return s;
        deliver = WSTOPSIG(s.status);
        if (deliver != (SIGTRAP | 0x80)) continue;
        deliver = 0;
        if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof call, &call) <= 0) s.traced = false;
        else if (call.op == PTRACE_SYSCALL_INFO_ENTRY) see_call(pid, &call, hold, &s);
    }
    return s;
}

static struct seen watched(const struct fdr_config *c, void (*die)(void), uint64_t hold)
{
    struct seen s = watch(c, die, hold);
    if (!s.traced) {
        print_message("a child cannot be traced here: skipped\n");
        skip();
    }
    assert_true(WIFSIGNALED(s.status));
    assert_int_equal(WTERMSIG(s.status), SIGSEGV);
    return s;
}

/* ---- tests ---- */

static struct fdr_config full(const char *arena)
{
    struct fdr_config c = death_config(death_place());
    c.arena = arena;
    c.buffer = "12M";
    return c;
}

static struct fdr_file *left(const char *directory, enum fdr_verdict expected)
{
    struct fdr_file *f;
    char message[200] = "";
    assert_int_equal(fdr_file_open(death_file(directory), &f, message, sizeof message), expected);
    assert_int_equal(fdr_file_info(f)->cause_signal, SIGSEGV);
    return f;
}

static void writes_are_of_a_mebibyte_at_most(void **state)
{
    (void)state;
    static const char *const arenas[] = {"mapped", "anonymous"};
    for (int i = 0; i < 2; i++) {
        struct fdr_config c = full(arenas[i]);
        c.crash_deadline = "100s";
        struct seen s = watched(&c, die_full, 0);
        print_message("%s: %llu writes, %llu of 1 MiB\n", arenas[i], (unsigned long long)s.writes,
                      (unsigned long long)s.wholes);
        assert_true(s.largest <= MIB);
        assert_true(s.wholes >= 3); /* the arena took several writes */
        fdr_file_close(left(c.dir, FDR_WHOLE));
    }
}

/* The deadline ends during the second whole write. After it come only the superblock of a partial file, or the section
 * of a live file. Returns the number of threads in the file. */
static size_t late(bool mapped)
{
    struct fdr_config c = full(mapped ? "mapped" : "anonymous");
    const struct fdr_crash_thread_info *t;
    c.crash_deadline = "1500ms";
    struct seen s = watched(&c, die_full, 2);
    assert_true(s.late_bytes < MIB);
    struct fdr_file *f = mapped ? left(c.live_dir, FDR_WHOLE) : left(c.dir, FDR_DAMAGED);
    size_t threads = fdr_crash_threads(f, &t);
    fdr_file_close(f);
    return threads;
}

static void no_write_of_the_arena_comes_after_the_deadline(void **state)
{
    (void)state;
    late(false);
    /* the section has 100 ms, which a busy machine may exceed */
    for (int tries = 20; late(true) != 1; tries--) assert_true(tries);
}

static void others_are_waited_for_200_ms_at_most(void **state)
{
    (void)state;
    struct fdr_config c = death_config(death_place());
    const struct fdr_crash_thread_info *t;
    c.crash_deadline = "10s";
#if defined(__SANITIZE_THREAD__)
    skip(); /* under a sanitizer vfork is fork, so every thread answers */
#endif
    struct seen s = watched(&c, die_beside_a_silent_one, 0);
    print_message("%llu waits of %.1f ms in all\n", (unsigned long long)s.waits, (double)s.waited_ns / 1e6);
    assert_true(s.waited_ns - s.last_ns < 200000000);
    assert_true(s.last_ns <= 2000000);
    struct fdr_file *f = left(c.dir, FDR_WHOLE);
    assert_int_equal(fdr_crash_threads(f, &t), 2);
    assert_true(t[0].answered && !t[1].answered); /* the thread in vfork did not answer */
    fdr_file_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(writes_are_of_a_mebibyte_at_most),
                                       cmocka_unit_test(no_write_of_the_arena_comes_after_the_deadline),
                                       cmocka_unit_test(others_are_waited_for_200_ms_at_most)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
