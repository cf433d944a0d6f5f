/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=120 wrap=fdri_copy_arena,statvfs
 * P10: snapshots that cannot be written: what is said of them, what counts, what stays of those that were, and what a
 * child that is made meanwhile does to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "victim.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "export/export.h"
#include "tests/snapshots_seen.h"

/* ---- a file system as the test wants it ---- */

static unsigned failing, copies; /* so many of the next ones fail */
static int failure;
static bool standing; /* the next one stays there */
static sem_t inside, go_on;
int __real_fdri_copy_arena(int fd, const struct fdri_why *why, uint64_t number);
int __wrap_fdri_copy_arena(int fd, const struct fdri_why *why, uint64_t number);
int __wrap_fdri_copy_arena(int fd, const struct fdri_why *why, uint64_t number)
{
    copies++;
    if (failing) return failing--, -failure;
    if (standing) {
        sem_post(&inside);
        while (sem_wait(&go_on) && errno == EINTR) {}
    }
    return __real_fdri_copy_arena(fd, why, number);
}

static uint64_t room; /* bytes */
int __wrap_statvfs(const char *path, struct statvfs *s);
int __wrap_statvfs(const char *path, struct statvfs *s)
{
    (void)path;
    *s = (struct statvfs){.f_bsize = 4096, .f_frsize = 4096, .f_bavail = room / 4096, .f_bfree = room / 4096};
    return 0;
}

/* `count` snapshots, each of which fails so. */
static void fails(unsigned count, int error)
{
    for (unsigned i = 0; i < count; i++) {
        failing = 2; /* also where it is tried again */
        failure = error;
        assert_int_equal(fdr_snapshot("that fails"), -error);
    }
    failing = 0;
}

/* ---- what is said ---- */

static char said[8192];
static int said_fd = -1, error_fd;
static void listen(void)
{
    char path[300];
    snprintf(path, sizeof path, "%s/said", directory);
    error_fd = dup(STDERR_FILENO);
    said_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(error_fd >= 0 && said_fd >= 0);
    dup2(said_fd, STDERR_FILENO);
}
static void listened(void)
{
    dup2(error_fd, STDERR_FILENO);
    ssize_t n = pread(said_fd, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    close(said_fd);
    close(error_fd);
}
static unsigned times(const char *what)
{
    unsigned n = 0;
    for (const char *at = said; (at = strstr(at, what)); at++) n++;
    return n;
}

static void each_error_is_said_once(void **state)
{
    (void)state;
    snapshots_start((struct fdr_config){.buffer = "1M"});
    listen();
    fails(5, ENOSPC);
    fails(3, EIO);
    fails(1, ENOSPC);
    assert_int_equal(fdr_snapshot("one that is written"), 0);
    fails(1, EIO);
    fdr_finalize();
    snapshots_start((struct fdr_config){.buffer = "1M"}); /* a recording of its own */
    fails(1, EIO);
    fdr_finalize();
    listened();
    if (times("\n") != 4) print_message("%s", said);
    assert_int_equal(times("No space left on device"), 1);
    assert_int_equal(times("Input/output error"), 2);
    assert_int_equal(times("8 more snapshots failed"), 1);
    assert_int_equal(times("\n"), 4);
}

static void a_directory_that_is_gone_is_said_once(void **state)
{
    char live[300], dir[320];
    (void)state;
    snprintf(live, sizeof live, "%s", directory);
    snprintf(dir, sizeof dir, "%s/gone", live);
    assert_int_equal(mkdir(dir, 0700), 0);
    fdr_finalize();
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .live_dir = live,
                                 .dir = dir,
                                 .signal = "none",
                                 .crash = "0",
                                 .buffer = "1M",
                                 .name = "t"};
    assert_int_equal(fdr_init(&c), 0);
    assert_int_equal(rmdir(dir), 0);
    listen();
    for (int i = 0; i < 3; i++) assert_int_equal(fdr_snapshot("nowhere"), -ENOENT);
    fdr_finalize();
    listened();
    if (times("\n") != 2) print_message("%s", said);
    assert_int_equal(times("No such file or directory"), 1);
    assert_int_equal(times("2 more snapshots failed"), 1);
    assert_int_equal(times("\n"), 2);
}

/* ---- what counts ---- */

static void those_that_were_written_count(void **state)
{
    (void)state;
    snapshots_start((struct fdr_config){.buffer = "1M"});
    fails(2, ENOSPC);
    fails(1, EDQUOT);
    assert_int_equal(fdr_usage().snapshots, 0);
    assert_int_equal(fdr_snapshot("written"), 0);
    fails(1, EIO);
    assert_int_equal(fdr_usage().snapshots, 1);
    assert_int_equal(fdr_snapshot("written"), 0);
    assert_int_equal(fdr_usage().snapshots, 2);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_error_is_said_once),
                                       cmocka_unit_test(a_directory_that_is_gone_is_said_once),
                                       cmocka_unit_test(those_that_were_written_count)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
