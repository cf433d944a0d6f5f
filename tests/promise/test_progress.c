/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P2
 * P2, counted: an attached thread records without system calls, allocations and page faults. This holds through
 * thousands of full bins and reductions, with each strategy. If the allocator's words are contended for ever, a record
 * gives up after a bounded number of tries. */
#include <errno.h>
#include <fdr/fdr.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(FDRI_ATOMIC_TSAN)
#define INSTRUMENTED 1 /* it would count the sanitizer's own calls */
#else
#define INSTRUMENTED 0
#endif

/* ---- the program's allocator, counting ---- */

static __thread volatile bool watched; /* volatile: compilers know that malloc does not touch it */
static volatile unsigned asked;
#if !INSTRUMENTED
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t n) { return asked += watched, __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return asked += watched, __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return asked += watched, __libc_realloc(p, n); }
void free(void *p) { asked += watched && p, __libc_free(p); }
#endif

/* ---- a program ---- */

enum { REGIONS = 200, CALLS = 300000 };
struct sample {
    int32_t a;
    uint64_t b;
};
static fdr_region region[REGIONS];
static fdr_marker_id marker;
static fdr_metric_id metric;
static fdr_event_type event;

static uint32_t calls(uint64_t *seed, uint32_t depth)
{
    uint32_t n = 1, children = depth < 40 ? rnd(seed, depth < 4 ? 5 : 3) : 0;
    fdr_region r = region[rnd(seed, REGIONS)];
    fdr_enter(r);
    for (uint32_t i = 0; i < children; i++) n += calls(seed, depth + 1);
    struct sample s = {(int32_t)n, depth};
    switch (rnd(seed, 16)) {
    case 0: fdr_marker(marker, n); break;
    case 1: fdr_metric_f64(metric, n); break;
    case 2: fdr_event(event, &s); break;
    case 3: fdr_message_send(1, 2, 0, n); break;
    case 4:
        for (volatile uint32_t k = 0; k < 4000; k++) {}
        break;
    default: break;
    }
    fdr_leave(r);
    return n;
}

static const char *live_directory(void)
{
    static char path[64];
    if (!*path) snprintf(path, sizeof path, "/dev/shm/fdr-test-progress-%d", (int)getpid());
    return path;
}

static void start(const char *strategy, const char *arena)
{
    static const struct fdr_field fields[] = {{"a", FDR_I32, offsetof(struct sample, a)},
                                              {"b", FDR_U64, offsetof(struct sample, b)}};
    struct fdr_config c = oracle_config(oracle_directory());
    char name[16];
    c.strategy = strategy;
    c.buffer = "1M";
    c.arena = arena;
    c.live_dir = live_directory();
    c.timer = NULL;
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, __FILE__, (unsigned)i);
    }
    marker = fdr_marker_define("marker");
    metric = fdr_metric_define("metric", "1", FDR_F64, FDR_METRIC_GAUGE);
    event = fdr_event_define("event", fields, 2);
    fdr_enter(region[0]); /* attaches */
    fdr_leave(region[0]);
}

/* From here on any system call but exit_group and write kills the thread with SIGSYS. */
static int forbid_system_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void on_system_call(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    char text[] = "a system call was made while recording: 000\n";
    for (int i = 0, n = info->si_syscall; i < 3; i++, n /= 10) text[sizeof text - 3 - (size_t)i] = (char)('0' + n % 10);
    if (write(2, text, sizeof text - 1) < 0) {}
    _exit(3);
}

static void P2_recording_makes_no_system_call(void **state)
{
    (void)state;
    if (INSTRUMENTED) skip();
    static const char *const strategies[] = {"telescope", "whole", "last", "first"};
    live_directory();
    for (int i = -1; i < 8; i++) {
        pid_t child = fork();
        if (child == 0) {
            start(i < 0 ? "first" : strategies[i / 2], i % 2 ? "mapped" : "anonymous");
            struct sigaction a = {.sa_sigaction = on_system_call, .sa_flags = SA_SIGINFO};
            sigaction(SIGSYS, &a, NULL);
            uint64_t seed = 88172645463325252u;
            if (forbid_system_calls()) _exit(4);
            if (i < 0) getppid(); /* proves that the filter works */
            for (uint32_t n = 0; n < CALLS;) n += calls(&seed, 1);
            _exit(i / 2 < 3 && !fdr_usage().reductions ? 5 : 0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 4) {
            print_message("no seccomp here: not checked\n");
            skip();
        }
        if (i < 0) {
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
            continue;
        }
        if (status)
            print_message("%s, %s: status %x\n", strategies[i / 2], i % 2 ? "mapped" : "anonymous", (unsigned)status);
        assert_int_equal(status, 0);
    }
    char command[300]; /* live files of children that left by _exit */
    snprintf(command, sizeof command, "rm -rf %s", live_directory());
    assert_int_equal(system(command), 0);
}

static long faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_minflt + u.ru_majflt;
}

static void P2_recording_asks_for_no_memory(void **state)
{
    (void)state;
    if (INSTRUMENTED) skip();
    static const char *const strategies[] = {"telescope", "whole", "last", "first"};
    watched = true;
    void *volatile p = malloc(1);
    free(p);
    watched = false;
    assert_int_equal(asked, 2); /* proves that the counter works */
    for (int i = 0; i < 8; i++) {
        start(strategies[i / 2], i % 2 ? "mapped" : "anonymous");
        uint64_t seed = 88172645463325252u;
        for (uint32_t n = 0; n < 2000;) n += calls(&seed, 1); /* touches the pages of this stack first */
        asked = 0;
        watched = true;
        long before = faults();
        for (uint32_t n = 0; n < CALLS;) n += calls(&seed, 1);
        long after = faults();
        watched = false;
        struct fdr_usage u = fdr_usage();
        fdr_finalize();
        rmdir(live_directory());
        assert_int_equal(asked, 0);
        if (!getenv("FDR_TEST_EMULATED")) assert_int_equal(after - before, 0); /* an emulator has faults of its own */
        assert_true(i / 2 == 3 || u.reductions > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P2_recording_makes_no_system_call),
        cmocka_unit_test(P2_recording_asks_for_no_memory),
    };
    oracle_directory(); /* here, so that no child leaves a directory behind */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
