/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P7,P10
 * P6, P7, P10: the kernel refuses system calls of fdr. A filter returns errors for getpid or openat, or no descriptor
 * is free. The recording goes on under its name. The program dies as without fdr, and its bundle has all available
 * data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/support/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static fdr_region region;

static void refuse(int call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        _exit(77);
}

static void *beside(void *unused)
{
    fdr_enter(region);
    for (;;) pause();
    return unused;
}

static void record(void)
{
    pthread_t t;
    region = fdr_region_define("r", NULL, 0);
    for (int i = 0; i < 1000; i++) fdr_enter(region), fdr_leave(region);
    if (pthread_create(&t, NULL, beside, NULL)) _exit(51);
    usleep(10000);
}

/* Opens a snapshot or bundle, and checks that it is of process `pid` and has the recorded events. */
static struct fdr_file *opened(const char *path, pid_t pid)
{
    struct fdr_file *f;
    char message[200] = "", part[32];
    snprintf(part, sizeof part, ".%d.", (int)pid);
    assert_non_null(strstr(path, part));
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    assert_null(death_check(f));
    assert_int_equal(fdr_file_info(f)->pid, pid);
    const struct fdr_ledger_row *row;
    uint64_t presented = 0;
    for (size_t i = 0, n = fdr_ledger(f, &row); i < n; i++) presented += row[i].presented;
    assert_true(presented >= 1000);
    return f;
}

/* ---- getpid ---- */

static bool with_snapshot;
static void die_without_number(void)
{
    record();
    refuse(SYS_getpid);
    if (with_snapshot) syscall(SYS_exit_group, fdr_snapshot("s") ? 52 : 5);
    *nowhere = 1;
}
static void be_ended_without_number(void)
{
    pid_t me = getpid();
    record();
    refuse(SYS_getpid);
    kill(me, SIGTERM);
    for (int i = 0; i < 500; i++) usleep(10000);
}
static void start_without_number(void)
{
    struct fdr_config c = death_config(death_place_as_it_is());
    refuse(SYS_getpid);
    if (fdr_init(&c)) _exit(53);
    record();
    *nowhere = 1;
}

static void P6_refused_getpid(void **state)
{
    (void)state;
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    with_snapshot = true;
    int status = death_of(&c, die_without_number, &pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 5);
    fdr_file_close(opened(death_file(p->dir), pid)); /* fdr must not take the process for a restored copy of another */

    with_snapshot = false;
    death_place();
    assert_int_equal(death_of(&c, die_without_number, &pid) & ~0x80, SIGSEGV);
    fdr_file_close(opened(death_file(p->dir), pid));
    assert_string_equal(death_file(p->live), "");

    death_place();
    assert_int_equal(death_of(&c, be_ended_without_number, &pid), SIGTERM); /* it ends as without fdr */
    fdr_file_close(opened(death_file(p->live), pid));
    assert_true(death_ends_with(death_file(p->live), ".crash.fdr"));

    death_place();
    assert_int_equal(death_of(NULL, start_without_number, &pid) & ~0x80, SIGSEGV);
    fdr_file_close(opened(death_file(p->dir), pid));
    assert_string_equal(death_file(p->live), "");
}

/* ---- descriptors ---- */

static void refuse_opening(void) { refuse(SYS_openat); }
static void use_all_descriptors(void)
{
    struct rlimit few = {200, 200};
    if (setrlimit(RLIMIT_NOFILE, &few)) _exit(54);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {}
}

static void (*without)(void);
static bool asked_to_end;
static void die_without_files(void)
{
    record();
    without();
    if (asked_to_end) raise(SIGTERM);
    *nowhere = 1;
}

/* Checks that the same file stays as after a normal death of this kind, and opens it. */
static struct fdr_file *left(void (*what)(void), bool ended)
{
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    without = what;
    asked_to_end = ended;
    int status = death_of(&c, die_without_files, &pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_int_equal(status & ~0x80, ended ? SIGTERM : SIGSEGV);
    assert_string_equal(death_file(ended ? p->dir : p->live), "");
    const char *path = death_file(ended ? p->live : p->dir);
    assert_true(death_ends_with(path, ".crash.fdr"));
    return opened(path, pid);
}

static void P6_refused_open(void **state)
{
    (void)state;
    for (int ended = 0; ended < 2; ended++) fdr_file_close(left(refuse_opening, ended));
}

static void P6_no_free_descriptor(void **state)
{
    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        struct fdr_file *f = left(use_all_descriptors, ended);
        const struct fdr_crash_thread_info *thread;
        size_t bytes, n = fdr_crash_threads(f, &thread), with_registers = 0;
        for (size_t i = 0; i < n; i++) with_registers += thread[i].register_count > 0;
        assert_int_equal(with_registers, 2);
        assert_non_null(fdr_crash_text(f, "maps", &bytes));
        fdr_file_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P6_refused_getpid), cmocka_unit_test(P6_refused_open),
                                       cmocka_unit_test(P6_no_free_descriptor)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
