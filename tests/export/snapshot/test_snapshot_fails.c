/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10 wrap=fdri_snapshot_copy_arena,statvfs,fstatvfs
 * P10: snapshots cannot be written. fdr reports each cause once and counts only written snapshots. It removes at most
 * one old snapshot to make room. A child forked during a snapshot leaves the file of its parent alone. */
#include <fdr/fdr.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "export/snapshot/snapshot.h"
#include "tests/support/wait_for_snapshots.h"
#include "tests/support/observed_process.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

/* ---- a file system that fails as the test wants ---- */

static unsigned failing, copies; /* so many of the next copies fail */
static int failure;
static bool standing; /* the next copy waits */
static sem_t inside, go_on;
int __real_fdri_snapshot_copy_arena(int fd, const struct fdri_snapshot_why *why, uint64_t number);
int __wrap_fdri_snapshot_copy_arena(int fd, const struct fdri_snapshot_why *why, uint64_t number);
int __wrap_fdri_snapshot_copy_arena(int fd, const struct fdri_snapshot_why *why, uint64_t number)
{
    copies++;
    if (failing) return failing--, -failure;
    if (standing) {
        sem_post(&inside);
        while (sem_wait(&go_on) && errno == EINTR) {}
    }
    return __real_fdri_snapshot_copy_arena(fd, why, number);
}

static uint64_t room; /* free bytes */
int __wrap_statvfs(const char *path, struct statvfs *s);
int __wrap_statvfs(const char *path, struct statvfs *s)
{
    (void)path;
    *s = (struct statvfs){.f_bsize = 4096, .f_frsize = 4096, .f_bavail = room / 4096, .f_bfree = room / 4096};
    return 0;
}
int __wrap_fstatvfs(int fd, struct statvfs *s);
int __wrap_fstatvfs(int fd, struct statvfs *s)
{
    (void)fd;
    return __wrap_statvfs("", s);
}

/* Takes `count` snapshots, each of which fails with `error`. */
static void fails(unsigned count, int error)
{
    for (unsigned i = 0; i < count; i++) {
        failing = 2; /* the second attempt fails as well */
        failure = error;
        assert_int_equal(fdr_snapshot("that fails"), -error);
    }
    failing = 0;
}

/* ---- messages ---- */

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

static void each_error_is_reported_once(void **state)
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
    snapshots_start((struct fdr_config){.buffer = "1M"}); /* in a recording of its own */
    fails(1, EIO);
    fdr_finalize();
    listened();
    if (times("\n") != 4) print_message("%s", said);
    assert_int_equal(times("No space left on device"), 1);
    assert_int_equal(times("Input/output error"), 2);
    assert_int_equal(times("8 more snapshots failed"), 1);
    assert_int_equal(times("\n"), 4);
}

static void missing_directory_is_reported_once(void **state)
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

static void trigger_cap_is_reported_once(void **state)
{
    (void)state;
    snapshots_start((struct fdr_config){.buffer = "1M", .holdoff = "0", .triggers = "mine: api keep 1"});
    listen();
    fdr_trigger_fire(1, 1);
    assert_true(comes(1));
    for (int i = 0; i < 60; i++) fdr_trigger_fire(1, 2), sleep_ms(20);
    fdr_finalize();
    listened();
    assert_int_equal(times("no more snapshots of trigger mine: it keeps as many as its limit allows"), 1);
    assert_int_equal(times("\n"), 1);
}

/* More snapshots come and go than fdr keeps by name. */
static void older_snapshots_still_count(void **state)
{
    enum { KEPT = 2, MORE = 300 };
    char path[600];
    (void)state;
    snapshots_start((struct fdr_config){.buffer = "256K", .keep = "2,oldest"});
    assert_int_equal(fdr_snapshot("first"), 0);
    for (int i = 0; i < MORE; i++) {
        assert_int_equal(fdr_snapshot("one that is moved"), 0);
        assert_int_equal(fdr_snapshot("one too many"), -EDQUOT);
        assert_int_equal(snapshots(path, sizeof path), KEPT);
        unlink(path);
    }
    assert_int_equal(fdr_snapshot("second"), 0);
    assert_int_equal(fdr_snapshot("third"), -EDQUOT);
    assert_int_equal(snapshots(NULL, 0), KEPT);
    fdr_finalize();
}

static void refusal_is_reported_once(void **state)
{
    (void)state;
    listen();
    for (int i = 0; i < 2; i++) { /* once in each recording */
        snapshots_start((struct fdr_config){.buffer = "1M", .keep = "1,oldest"});
        assert_int_equal(fdr_snapshot("first"), 0);
        for (int j = 0; j < 3; j++) assert_int_equal(fdr_snapshot("one more"), -EDQUOT);
        fdr_finalize();
    }
    listened();
    if (times("\n") != 2) print_message("%s", said);
    assert_int_equal(times("no more snapshots: FDR_KEEP is reached"), 2);
    assert_int_equal(times("\n"), 2);
}

/* ---- counts ---- */

static void written_snapshots_count(void **state)
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

/* ---- removal of old snapshots ---- */

static void record(unsigned calls)
{
    fdr_region r = fdr_region_define("r", "file.c", 1);
    uint64_t seed = 1, at = 1000000;
    for (unsigned i = 0; i < calls; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        fdr_enter_at(r, at += seed >> 58), fdr_leave_at(r, at += 100 + (seed >> 52));
    }
}

static void fill(const char *keep, unsigned count)
{
    snapshots_start((struct fdr_config){.buffer = "1M", .keep = keep});
    record(1000);
    for (unsigned i = 0; i < count; i++) assert_int_equal(fdr_snapshot("good"), 0);
    assert_int_equal(snapshots(NULL, 0), count);
    copies = 0;
}

/* The oldest snapshot would be removed after the new one is written. Without room it is removed before. */
static void oldest_snapshot_makes_room(void **state)
{
    char newest[600];
    (void)state;
    fill("2,newest", 2);
    room = 1 << 20;
    failing = 1;
    failure = ENOSPC;
    assert_int_equal(fdr_snapshot("newer"), 0);
    assert_int_equal(copies, 2);
    assert_int_equal(snapshots(newest, sizeof newest), 2);
    assert_string_equal(newest, fdr_last_snapshot());
    assert_int_equal(fdr_usage().snapshots, 3);
}

/* The space of the removed one does not suffice. fdr removes no other, however often it fails. */
static void at_most_one_is_removed_in_vain(void **state)
{
    char newest[600];
    (void)state;
    fill("3,newest", 3);
    room = 1 << 20;
    fails(5, ENOSPC);
    assert_int_equal(snapshots(newest, sizeof newest), 2);
    assert_string_equal(newest, fdr_last_snapshot());
    assert_int_equal(copies, 6);
}

/* fdr removes none if its space would not suffice, if it is the only one, if the oldest are kept, or for other
 * errors. */
static void nothing_is_removed_otherwise(void **state)
{
    (void)state;
    fill("2,newest", 2);
    room = 0;
    record(200000);
    fails(2, ENOSPC);
    assert_int_equal(snapshots(NULL, 0), 2);
    room = 1 << 20;
    fails(2, EIO);
    assert_int_equal(snapshots(NULL, 0), 2);
    fill("1,newest", 1);
    fails(2, ENOSPC);
    assert_int_equal(snapshots(NULL, 0), 1);
    fill("3,oldest", 2);
    fails(2, ENOSPC);
    assert_int_equal(snapshots(NULL, 0), 2);
}

/* ---- a child forked during a snapshot dies ---- */

static void *take(void *result)
{
    *(int *)result = fdr_snapshot("its parent's");
    return NULL;
}

static void die(void)
{
    const struct rlimit none = {0, 0};
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .live_dir = directory,
                                 .dir = directory,
                                 .signal = "none",
                                 .name = "child",
                                 .buffer = "1M"};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGSEGV, SIG_DFL);
    alarm(60);
    if (fdr_init(&c)) _exit(1);
    raise(SIGSEGV);
    _exit(2);
}

static void a_child_leaves_the_file_alone(void **state)
{
    int result = -1, status = 0;
    pthread_t t;
    (void)state;
    snapshots_start((struct fdr_config){.buffer = "1M"});
    sem_init(&inside, 0, 0);
    sem_init(&go_on, 0, 0);
    standing = true;
    assert_int_equal(pthread_create(&t, NULL, take, &result), 0);
    while (sem_wait(&inside) && errno == EINTR) {}
    standing = false;
    pid_t child = fork();
    if (!child) die();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    sem_post(&go_on);
    pthread_join(t, NULL);
    assert_int_equal(result, 0);
    assert_int_equal(access(fdr_last_snapshot(), F_OK), 0);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_error_is_reported_once),  cmocka_unit_test(missing_directory_is_reported_once),
        cmocka_unit_test(trigger_cap_is_reported_once), cmocka_unit_test(older_snapshots_still_count),
        cmocka_unit_test(refusal_is_reported_once),     cmocka_unit_test(written_snapshots_count),
        cmocka_unit_test(oldest_snapshot_makes_room),   cmocka_unit_test(at_most_one_is_removed_in_vain),
        cmocka_unit_test(nothing_is_removed_otherwise), cmocka_unit_test(a_child_leaves_the_file_alone)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
