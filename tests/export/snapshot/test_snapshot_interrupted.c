/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10 wrap=fdri_snapshot_put_checks
 * P10: a fault handler interrupts fdr_snapshot of its own thread. It exits, jumps out, forks, or requests another
 * snapshot. Nothing hangs, no partial file stays, and each named snapshot is whole. Only handlers of faults can
 * interrupt; other signals wait for the end of the snapshot. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/arena.h"
#include "tests/support/sanitized.h"
#include "tests/support/wait_for_snapshots.h"
#include "tests/support/observed_process.h"

#include <cmocka.h>

#include <fdr/reader.h>

static void (*_Atomic meanwhile)(void); /* the action of the handler, once; the dumper thread looks at it, too */
static int with = SIGFPE;
int __real_fdri_snapshot_put_checks(int fd, uint64_t virgin, uint32_t tail_bytes, struct fdri_arena_spare *spare);
int __wrap_fdri_snapshot_put_checks(int fd, uint64_t virgin, uint32_t tail_bytes, struct fdri_arena_spare *spare);
int __wrap_fdri_snapshot_put_checks(int fd, uint64_t virgin, uint32_t tail_bytes, struct fdri_arena_spare *spare)
{
    if (meanwhile) raise(with);
    return __real_fdri_snapshot_put_checks(fd, virgin, tail_bytes, spare);
}

static void on_signal(int number)
{
    void (*what)(void) = atomic_exchange(&meanwhile, NULL);
    (void)number;
    if (what) what();
}

static void record(const char *finalize, const char *arena)
{
    signal(with, on_signal);
    snapshots_start((struct fdr_config){.finalize = finalize, .arena = arena, .buffer = "1M"});
    fdr_region r = fdr_region_define("r", NULL, 0);
    for (int i = 0; i < 10000; i++) fdr_enter(r), fdr_leave(r);
}

static unsigned parts(void)
{
    unsigned n = 0;
    DIR *d = opendir(directory);
    for (const struct dirent *e; d && (e = readdir(d));)
        n += strstr(e->d_name, ".part") != NULL || strstr(e->d_name, ".live") != NULL;
    if (d) closedir(d);
    return n;
}

/* Checks that the newest `count` snapshots exist and are whole. */
static void are_whole(unsigned count)
{
    char path[600];
    assert_int_equal(parts(), 0);
    assert_int_equal(snapshots(path, sizeof path), count);
    for (unsigned left = count; left; left--) {
        struct fdr_file *f = NULL;
        assert_int_equal(snapshots(path, sizeof path), left);
        assert_int_equal(fdr_file_open(path, &f, NULL, 0), FDR_WHOLE);
        assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
        fdr_file_close(f);
        unlink(path);
    }
}

static int status_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

enum { STATUS = 7, LONG = 60, COMING = 300, CALLS = SANITIZED ? 1500 : 20000 };
static void ends(void) { exit(STATUS); }

static void exits(const char *finalize, unsigned left)
{
    pid_t pid = fork();
    if (!pid) {
        alarm(LONG);
        record(finalize, "mapped");
        meanwhile = ends;
        fdr_snapshot("interrupted by exit");
        _exit(1);
    }
    assert_int_equal(status_of(pid), STATUS);
    are_whole(left);
}

static void by_exit(void **state)
{
    (void)state;
    exits("none", 0);
    exits("snapshot", 1);
}

static int inner;
static void asks(void) { inner = fdr_snapshot("inside"); }

static sigjmp_buf back;
static void jumps(void) { siglongjmp(back, 1); }

static void *calls(void *region)
{
    for (int i = 0; i < CALLS; i++) fdr_enter(*(fdr_region *)region), fdr_leave(*(fdr_region *)region);
    return NULL;
}

/* Memory of ended threads is used again: the snapshot that was left no longer holds it. */
static void threads_come_and_go(void)
{
    fdr_region r = fdr_region_define("later", NULL, 0);
    pthread_t t;
    for (int i = 0; i < COMING; i++)
        if (!pthread_create(&t, NULL, calls, &r)) pthread_join(t, NULL);
    assert_true(fdr_usage().presented >= (uint64_t)COMING * CALLS);
    assert_int_equal(fdr_usage().lost, 0);
}

static __attribute__((noinline)) void finalize_further_down(void)
{
    volatile uint8_t frame[1 << 14];
    frame[0] = 1;
    fdr_finalize();
    frame[1] = frame[0];
}

static void by_longjmp(void **state)
{
    (void)state;
    record("none", "mapped");
    meanwhile = jumps;
    if (!sigsetjmp(back, 1)) fdr_snapshot("left");
    assert_null(meanwhile);
    assert_int_equal(fdr_snapshot("behind it"), 0);
    threads_come_and_go();
    meanwhile = jumps;
    if (!sigsetjmp(back, 1)) fdr_snapshot("left");
    finalize_further_down();
    are_whole(1);
}

static bool can_be_cancelled(void)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    return state == PTHREAD_CANCEL_ENABLE;
}

/* The handler of another signal runs after the snapshot. */
static void others_wait(void **state)
{
    (void)state;
    with = SIGUSR2;
    exits("none", 1);
    exits("snapshot", 2);
    record("none", "mapped");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL); /* whatever an earlier jump has left */
    meanwhile = jumps;
    if (!sigsetjmp(back, 1)) fdr_snapshot("not left");
    assert_null(meanwhile);
    assert_true(can_be_cancelled());
    meanwhile = asks;
    inner = -1;
    assert_int_equal(fdr_snapshot("outside"), 0);
    assert_int_equal(inner, 0);
    threads_come_and_go();
    fdr_finalize();
    are_whole(3);
    with = SIGFPE;
}

/* The same for a handler that the program installed before fdr's own. */
static void one_behind_ours_waits(void **state)
{
    (void)state;
    with = SIGUSR1;
    signal(SIGUSR1, on_signal);
    snapshots_start((struct fdr_config){.finalize = "none", .signal = "USR1", .buffer = "1M"});
    meanwhile = asks;
    inner = -1;
    assert_int_equal(fdr_snapshot("outside"), 0);
    assert_null(meanwhile);
    assert_int_equal(inner, 0);
    fdr_finalize();
    assert_int_equal(parts(), 0);
    forget_snapshots();
    signal(SIGUSR1, SIG_DFL);
    with = SIGFPE;
}

static void another(int flags)
{
    record("none", "mapped");
    sigaction(with, &(struct sigaction){.sa_handler = on_signal, .sa_flags = flags}, NULL);
    meanwhile = asks;
    assert_int_equal(fdr_snapshot("outside"), 0);
    assert_int_equal(inner, -EDEADLK);
    fdr_finalize();
    are_whole(1);
}

static void by_another(void **state)
{
    static uint8_t low[1 << 16]; /* an alternate stack below the stack */
    uint8_t high[1 << 16];       /* and one above the frames in question */
    (void)state;
    another(0);
    sigaltstack(&(stack_t){.ss_sp = low, .ss_size = sizeof low}, NULL);
    another(SA_ONSTACK);
    sigaltstack(&(stack_t){.ss_sp = high, .ss_size = sizeof high}, NULL);
    another(SA_ONSTACK);
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
}

static pid_t child;
static int go[2];
static void forks(void)
{
    char byte;
    child = fork();
    if (!child && read(go[0], &byte, 1) != 1) _exit(1); /* the parent's snapshot is complete then */
}

static void by_fork(void **state)
{
    const char *const arenas[] = {"mapped", "anonymous"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe(go), 0);
        record("none", arenas[i]);
        meanwhile = forks;
        int result = fdr_snapshot("forked");
        if (!child) _exit(result == -ECANCELED ? STATUS : 1);
        assert_int_equal(result, 0);
        assert_int_equal(write(go[1], "", 1), 1);
        assert_int_equal(status_of(child), STATUS);
        fdr_finalize();
        are_whole(1);
        close(go[0]);
        close(go[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_exit),     cmocka_unit_test(by_longjmp),
                                       cmocka_unit_test(by_another),  cmocka_unit_test(by_fork),
                                       cmocka_unit_test(others_wait), cmocka_unit_test(one_behind_ours_waits)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
