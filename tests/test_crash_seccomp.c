/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=60
 * The fatal path makes the system calls that docs/CRASH.md lists and no other: a filter kills on anything else. And the record
 * path, once its thread is attached, makes none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/deaths.h"

static const int fatal_path[] = {SYS_clock_gettime, SYS_close,          SYS_fstat,        SYS_getdents64,
                                 SYS_getpid,        SYS_gettid,         SYS_linkat,       SYS_madvise,
                                 SYS_mmap,          SYS_nanosleep,      SYS_newfstatat,   SYS_openat,
                                 SYS_prlimit64,     SYS_pwrite64,       SYS_read,         SYS_renameat2,
                                 SYS_rt_sigaction,  SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_tgsigqueueinfo,
                                 SYS_tgkill,        SYS_unlinkat};
static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static fdr_region region;

/* Allows `count` calls, kills on others. False: no filters here. */
static bool filter(const int *allowed, size_t count)
{
    struct sock_filter code[64];
    unsigned n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {(unsigned short)n, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

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
    if (!filter(fatal_path, sizeof fatal_path / sizeof *fatal_path)) _exit(77);
    *nowhere = 1;
}

static void record_filtered(void)
{
    static const int end[] = {SYS_exit_group};
    region = fdr_region_define("r", NULL, 0);
    record(1000);
    if (!filter(end, 1)) _exit(77);
    record(2000000); /* through reductions: the arena is small */
    syscall(SYS_exit_group, 5);
}

static void fatal_path_keeps_to_its_calls(void **state)
{
    (void)state;
    static const char *const arenas[] = {"mapped", "anonymous", "mapped"};
    for (int i = 0; i < 3; i++) {
        struct fdr_file *f;
        char message[200] = "";
        pid_t pid;
        const struct death_place *p = death_place();
        struct fdr_config c = death_config(p);
        c.arena = arenas[i];
        if (i == 2) c.dir = p->live; /* moved, not copied */
        int status = death_of(&c, die_filtered, &pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
        assert_int_equal(WTERMSIG(status), SIGSEGV); /* SIGSYS: a call that is not on the list */
        assert_int_equal(fdr_file_open(death_file(c.dir), &f, message, sizeof message), FDR_WHOLE);
        assert_int_equal(fdr_file_info(f)->cause_signal, SIGSEGV);
        fdr_file_close(f);
    }
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

static int clean(void **state)
{
    (void)state;
    death_place_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fatal_path_keeps_to_its_calls),
                                       cmocka_unit_test(P2_the_record_path_makes_no_call)};
    return cmocka_run_group_tests(tests, NULL, clean);
}
