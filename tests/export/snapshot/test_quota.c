/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * P10: the file system returns EDQUOT when fdr creates the live file or writes a snapshot or a bundle. fdr says so once
 * and the program runs on. A seccomp filter returns the error, because the superuser and many kernels know no quota. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tests/support/deaths.h"

/* ---- the filter ---- */

/* The call fails if (argument & `any`) != 0, or if argument >= `from`. Only the low half of the argument counts. */
struct refused {
    long number;
    unsigned argument;
    uint32_t any, from;
};

static void refuse(const struct refused *r)
{
    uint32_t arg = (uint32_t)offsetof(struct seccomp_data, args) + 8 * r->argument;
    uint16_t by = r->any ? BPF_JMP | BPF_JSET | BPF_K : BPF_JMP | BPF_JGE | BPF_K;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r->number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg),
        BPF_JUMP(by, r->any ? r->any : r->from, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDQUOT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) _exit(77);
}

static const struct refused room = {SYS_fallocate, 0, 0, 0}, entry = {SYS_linkat, 0, 0, 0},
                            bytes = {SYS_pwrite64, 0, 0, 0}, more = {SYS_pwrite64, 3, 0, 65536},
                            file = {SYS_openat, 2, O_CREAT | (O_TMPFILE & ~O_DIRECTORY), 0},
                            name = {SYS_renameat2, 0, 0, 0};

/* ---- a program ---- */

enum { CALLS = 20000 };
static struct fdr_config config;
static fdr_region region;
static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;

static void begin(void)
{
    if (fdr_init(&config) || !fdr_usage().buffer_bytes) _exit(51);
    region = fdr_region_define("region", "file.c", 1);
}
static void record(void)
{
    for (int i = 0; i < CALLS; i++) fdr_enter(region), fdr_leave(region);
}

static char said[8192]; /* standard error of the child */

/* Runs `body` in a child; returns its wait status. 77: this machine allows no filters. */
static int run(void (*body)(void), const char *arena)
{
    char path[600];
    const struct death_place *p = death_place();
    config = death_config(p);
    config.arena = arena;
    snprintf(path, sizeof path, "%s/said", p->dir);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        death_child();
        alarm(60);
        if (!freopen(path, "w", stderr)) _exit(50);
        body();
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    said[fread(said, 1, sizeof said - 1, f)] = 0;
    fclose(f);
    return status;
}

static bool said_once(const char *what)
{
    const char *at = strstr(said, "Disk quota exceeded");
    if (!at || strstr(at + 1, "Disk quota exceeded") || !strstr(said, what)) {
        print_message("said: %s", said);
        return false;
    }
    return true;
}

/* Is there no recording, and no file that was to become one? */
static bool is_empty(const char *dir) { return !death_file(dir)[0]; }

/* Checks the only file: it has `calls` calls (0: any number). It is whole, or its damage is the text in `wrong`. */
static void has(const char *dir, const char *end, uint64_t calls, const char *wrong)
{
    char message[256] = "";
    struct fdr_file *f = NULL;
    const struct fdr_total *row;
    uint64_t n = 0;
    const char *path = death_file(dir);
    if (!death_ends_with(path, end)) fail_msg("'%s' in %s", path, dir);
    enum fdr_verdict v = fdr_file_open(path, &f, message, sizeof message);
    assert_non_null(f);
    assert_int_equal(v == FDR_WHOLE, !wrong);
    if (!wrong) assert_null(death_check(f));
    else if (!strstr(message, wrong)) fail_msg("'%s' in '%s'", wrong, message);
    for (size_t i = 0, rows = fdr_totals(f, &row); i < rows; i++)
        if (row[i].class_ == FDR_IN_REGION) n += row[i].calls;
    if (calls) assert_int_equal(n, calls);
    fdr_file_close(f);
}

/* ---- at the start ---- */

static void start_without_room(void) { refuse(&room), begin(), record(), fdr_snapshot("later"); }
static void start_without_entry(void) { refuse(&entry), begin(), record(), fdr_snapshot("later"); }
static void start_without_file(void) { refuse(&file), begin(), record(); }

static void P10_full_quota_at_the_start(void **state)
{
    (void)state;
    const struct death_place *p = death_place();
    assert_int_equal(run(start_without_room, "mapped"), 0);
    assert_true(said_once("recording into anonymous memory, which a SIGKILL loses"));
    assert_true(is_empty(p->live));
    has(p->dir, ".1.fdr", CALLS, NULL);
    assert_int_equal(run(start_without_entry, "mapped"), 0);
    assert_true(said_once("a SIGKILL loses the recording"));
    assert_true(is_empty(p->live));
    has(p->dir, ".1.fdr", CALLS, NULL);
    assert_int_equal(run(start_without_file, "mapped"), 0);
    assert_true(said_once("recording into anonymous memory, which a SIGKILL loses"));
    assert_true(is_empty(p->live) && is_empty(p->dir));
}

/* ---- a snapshot ---- */

static const struct refused *refused;
static void *refused_snapshot(void *result)
{
    refuse(refused);
    *(int *)result = fdr_snapshot("no room");
    return NULL;
}

/* Only the new thread meets the quota. The next snapshot of this thread succeeds, as if space had become free. */
static void snapshot_twice(void)
{
    int result = 0;
    pthread_t t;
    begin();
    record();
    if (pthread_create(&t, NULL, refused_snapshot, &result) || pthread_join(t, NULL)) _exit(53);
    if (result != -EDQUOT) _exit(54);
    if (!is_empty(config.dir)) _exit(55);
    record();
    if (fdr_snapshot("room")) _exit(56);
    fdr_finalize();
}
/* The dumper thread takes one snapshot for a trigger; the recording's end takes another. */
static void snapshot_by_others(void)
{
    config.triggers = "count: event mark count 3";
    config.finalize = "snapshot";
    refuse(&more);
    begin();
    record();
    fdr_marker_id mark = fdr_marker_define("mark");
    for (int i = 0; i < 3; i++) fdr_marker(mark, 1);
    fdr_finalize(); /* waits for the snapshot of the trigger */
    exit(0);
}

static void P10_full_quota_at_a_snapshot(void **state)
{
    (void)state;
    /* with the first and the last no file gets a name */
    const struct refused *const each[] = {&file, &bytes, &more, &name};
    const struct death_place *p = death_place();
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        refused = each[i];
        int status = run(snapshot_twice, "mapped");
        if (status) fail_msg("refused call %zu: status %d; said: %s", i, status, said);
        assert_true(said_once(i % 3 ? "recording goes on" : "no snapshot was written"));
        has(p->dir, ".fdr", 2 * CALLS, NULL);
        assert_true(is_empty(p->live));
    }
    assert_int_equal(run(snapshot_by_others, "mapped"), 0);
    assert_non_null(strstr(said, "Disk quota exceeded"));
    assert_true(is_empty(p->dir) && is_empty(p->live));
}

/* ---- a bundle ---- */

static void die(void)
{
    begin();
    record();
    refuse(refused);
    *nowhere = 1;
}

static void P10_full_quota_at_a_bundle(void **state)
{
    (void)state;
    const struct refused *const each[] = {&bytes, &more, &file, &entry};
    const struct death_place *p = death_place();
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        refused = each[i];
        int status = run(die, "mapped");
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        /* A copy if one can be made, else the mapped file renamed to a bundle. Without pwrite that file cannot grow. */
        has(is_empty(p->dir) ? p->live : p->dir, ".crash.fdr", CALLS,
            each[i] == &more || each[i] == &bytes ? "the crash section is missing" : NULL);
        assert_true(is_empty(p->dir) || is_empty(p->live));
    }
    refused = &bytes; /* an anonymous arena: no bundle, or a part that says so */
    assert_true(WIFSIGNALED(run(die, "anonymous")));
    assert_true(is_empty(p->dir) && is_empty(p->live));
    refused = &more;
    assert_true(WIFSIGNALED(run(die, "anonymous")));
    has(p->dir, ".crash.fdr", 0, "quota was full, or RLIMIT_FSIZE reached");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_full_quota_at_the_start),
                                       cmocka_unit_test(P10_full_quota_at_a_snapshot),
                                       cmocka_unit_test(P10_full_quota_at_a_bundle)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
