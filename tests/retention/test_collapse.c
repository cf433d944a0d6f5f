/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P7
 * Bundles of one fingerprint collapse, and the counter is exact. The cases are 1,000 of them, a kill at every system
 * call, files that were read, and several processes at once. Other files stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "retention/retention.h"

enum { LIKE = 77 };
static char place[] = "/tmp/fdr-collapse-XXXXXX";
static int dir;
static const struct fdri_policies_retention rule = {.most = {.share = 1}, .unused = {.share = 0}};

static void make_named(const char *name, uint64_t fingerprint, unsigned n, uint64_t run_ns, unsigned state)
{
    static struct fdri_arena_superblock s;
    memset(&s, 0, sizeof s);
    memcpy(s.magic, FDRI_ARENA_MAGIC, 8);
    s.format_version = FDRI_ARENA_FORMAT_VERSION;
    s.state = state;
    s.pid = n;
    s.created_realtime_ns = 1000 + n;
    s.cause_realtime_ns = s.created_realtime_ns + run_ns;
    s.fingerprint = fingerprint;
    strcpy(s.host, "vm");
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, &s, sizeof s), sizeof s);
    close(fd);
}

static void make(uint64_t fingerprint, unsigned n, uint64_t run_ns)
{
    char name[64];
    snprintf(name, sizeof name, "prog.vm.%u.1.crash.fdr", n);
    make_named(name, fingerprint, n, run_ns, FDRI_ARENA_STATE_CRASHED);
}

static struct fdri_retention_result tidy(void)
{
    struct fdri_retention_order o = {.rule = &rule, .now_ns = 5000, .looks = UINT32_MAX, .removes = UINT32_MAX};
    struct fdri_retention_result r;
    fdri_retention_tidy(dir, &o, &r);
    return r;
}

/* Deaths that the files of this fingerprint tell of, and the number of files. */
static uint64_t deaths(uint64_t fingerprint, unsigned *files)
{
    struct fdri_retention_list l;
    uint64_t sum = 0;
    *files = 0;
    assert_true(fdri_retention_find(dir, UINT32_MAX, &l));
    for (uint32_t i = 0; i < l.count; i++)
        if (l.fate[i].fingerprint == fingerprint) sum += 1 + l.bundle[i].alike, ++*files;
    fdri_retention_free(&l);
    return sum;
}

static bool is_file(unsigned n)
{
    char name[64];
    struct stat st;
    snprintf(name, sizeof name, "prog.vm.%u.1.crash.fdr", n);
    return fstatat(dir, name, &st, 0) == 0;
}

static void clear(void)
{
    DIR *d = opendir(place);
    for (struct dirent *e; (e = readdir(d));) unlinkat(dir, e->d_name, 0);
    closedir(d);
}

static void a_thousand(void **state)
{
    (void)state;
    unsigned files;
    for (unsigned n = 0; n < 1000; n++) make(LIKE, n, n == 400 ? 90 : 50);
    make(LIKE + 1, 2000, 1);
    struct fdri_retention_result r = tidy();
    assert_int_equal(deaths(LIKE, &files), 1000);
    assert_int_equal(files, 3);
    assert_true(is_file(0) && is_file(400) && is_file(999) && is_file(2000));
    assert_int_equal(r.gone, 997);
    assert_int_equal(r.known_count, 2);
    make(LIKE, 1001, 50);
    assert_int_equal(tidy().gone, 1);
    assert_int_equal(deaths(LIKE, &files), 1001);
    assert_int_equal(files, 3);
    clear();
}

/* Renamed by the user, not a bundle, of another fingerprint, or not known: stay. */
static void others_stay(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 6; n++) make(n < 3 ? 0 : LIKE + n, n, 50);
    for (unsigned n = 10; n < 16; n++) {
        char name[64];
        snprintf(name, sizeof name, "bug%u.crash.fdr", n);
        make_named(name, LIKE, n, 50, FDRI_ARENA_STATE_CRASHED);
        snprintf(name, sizeof name, "prog.vm.%u.1.crash.fdr", n);
        make_named(name, LIKE, n, 50, FDRI_ARENA_STATE_RECORDING);
    }
    assert_int_equal(tidy().gone, 0);
    clear();
}

/* Root may write to every file, so it becomes somebody else, who owns them. */
static void tidy_as_user(void)
{
    int status;
    if (getuid() == 0) {
        DIR *d = opendir(place);
        for (struct dirent *e; (e = readdir(d));)
            if (strcmp(e->d_name, "..") != 0) assert_int_equal(fchownat(dir, e->d_name, 65534, 65534, 0), 0);
        closedir(d);
    }
    if (fork() == 0) {
        if (getuid() == 0 && setuid(65534)) _exit(1);
        _exit(tidy().gone != 3);
    }
    wait(&status);
    assert_int_equal(status, 0);
    DIR *d = getuid() ? NULL : opendir(place);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, "..") != 0) fchownat(dir, e->d_name, 0, 0, 0);
    if (d) closedir(d);
}

/* `fdr` takes the right to write from files that it has read. Without root that right matters. */
static void a_read_one_counts(void **state)
{
    (void)state;
    unsigned files;
    struct stat before, after;
    for (unsigned n = 0; n < 6; n++) make(LIKE, n, 50);
    assert_int_equal(fchmodat(dir, "prog.vm.0.1.crash.fdr", 0400, 0), 0);
    assert_int_equal(fstatat(dir, "prog.vm.0.1.crash.fdr", &before, 0), 0);
    tidy_as_user();
    assert_int_equal(deaths(LIKE, &files), 6);
    assert_int_equal(fstatat(dir, "prog.vm.0.1.crash.fdr", &after, 0), 0);
    assert_int_equal(after.st_mode, before.st_mode);
    assert_int_equal(after.st_mtime, before.st_mtime);
    clear();
}

/* Runs tidy() in a child that is killed at its nth stop at a system call. False: it ended before. */
static bool killed_at(unsigned n)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        tidy();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(ptrace(PTRACE_SYSCALL, pid, 0, 0), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status)) return false;
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return true;
}

static void killed_anywhere(void **state)
{
    (void)state;
    unsigned files, n = 0;
    for (bool killed = true; killed; n++) {
        for (unsigned i = 0; i < 5; i++) make(LIKE, i, i == 2 ? 80 : 50);
        killed = killed_at(n);
        make(LIKE, 1000, 99); /* so that another one is the newest, and of the longest run */
        tidy();
        uint64_t told = deaths(LIKE, &files);
        if (told != 6 || files != 3) fail_msg("killed at system call %u: %lu deaths in %u files", n, (long)told, files);
        clear();
    }
    assert_true(n > 40); /* it did run step by step */
}

static void several_at_once(void **state)
{
    (void)state;
    unsigned files;
    for (unsigned n = 0; n < 200; n++) make(LIKE, n, 50);
    for (int i = 0; i < 8; i++)
        if (fork() == 0) _exit(tidy().stay == 0);
    while (wait(NULL) > 0) {}
    tidy();
    assert_int_equal(deaths(LIKE, &files), 200);
    assert_int_equal(files, 3);
    clear();
}

static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(place)) return -1;
    dir = open(place, O_RDONLY | O_DIRECTORY);
    return dir < 0;
}
static int end(void **state)
{
    (void)state;
    close(dir);
    return rmdir(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_thousand), cmocka_unit_test(others_stay),
                                       cmocka_unit_test(a_read_one_counts), cmocka_unit_test(killed_anywhere),
                                       cmocka_unit_test(several_at_once)};
    return cmocka_run_group_tests(tests, begin, end);
}
