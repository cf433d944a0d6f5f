/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=300 clock=tsc promise=P10
 * ctest: without=tsan (it does not follow children of threads)
 * P10: children of every kind (fork, _Fork, system). No child may write into its parent's recording, and a child
 * that starts a recording gets its own. */
#include <errno.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/oracle.h"

static fdr_region outer, inner;

static void record(int n)
{
    for (int i = 0; i < n; i++)
        fdr_enter(outer), fdr_enter(inner), fdr_marker(1, 5), fdr_leave(inner), fdr_leave(outer);
}

static void begin(bool mapped)
{
    struct fdr_config c = oracle_config(oracle_directory());
    static char live[300];
    snprintf(live, sizeof live, "/dev/shm/fdr-test-fork-%d", (int)getpid());
    c.live_dir = live;
    c.arena = mapped ? "mapped" : "anonymous";
    c.signal = "USR2";
    c.buffer = "16M";
    c.keep = "256,newest"; /* one thread takes as many as it can */
    fdr_finalize();
    assert_int_equal(fdr_init(&c), 0);
    outer = fdr_region_define("outer", NULL, 0);
    inner = fdr_region_define("inner", NULL, 0);
}

/* Presented events of one location in the file, or of all. */
static uint64_t presented(struct fdr_file *f)
{
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].presented != rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost) return UINT64_MAX;
        sum += rows[i].presented;
    }
    return sum;
}

static uint64_t snapshot_presented(void)
{
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(16 << 20, &wrong);
    if (!f) {
        fprintf(stderr, "%s\n", wrong);
        return UINT64_MAX;
    }
    uint64_t n = presented(f), events = 0;
    wrong = oracle_check_any(f, &events);
    if (wrong) fprintf(stderr, "%s\n", wrong);
    fdr_file_close(f);
    return wrong ? UINT64_MAX : n;
}

/* Waits at most 60 s. A child that hangs is killed, and the result is 99. */
static int exit_of(pid_t pid)
{
    int status;
    for (int i = 0; i < 6000; i++) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid) {
            if (WIFSIGNALED(status)) print_message("child ended by signal %d\n", WTERMSIG(status));
            return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
        }
        usleep(10000);
    }
    print_message("child hangs\n");
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return 99;
}

static void *recorder_thread(void *argument)
{
    record((int)(intptr_t)argument);
    return NULL;
}

#if defined(__SANITIZE_THREAD__)
enum { CHILD_THREADS = 0 }; /* ThreadSanitizer forbids threads in the child of a process with threads */
#define CHILD_SIGNAL(s) "none"
#else
enum { CHILD_THREADS = 6 };
#define CHILD_SIGNAL(s) (s)
#endif

/* AddressSanitizer's allocator has locks that a child of fork would find held for ever by threads it does not have. One
 * of them is fdr's own thread, at work at any moment. */
#if defined(__SANITIZE_ADDRESS__)
enum { CHILDREN_MAY_ALLOCATE = 0 };
#else
enum { CHILDREN_MAY_ALLOCATE = 1 };
#endif

/* Runs in a child: a recording of its own, with threads and with ids of the parent. Returns 0 if all is well. */
static int own_recording(const char *signal_name)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.buffer = "16M";
    c.signal = CHILD_SIGNAL(signal_name);
    c.name = "child";
    (void)signal_name;
    if (fdr_init(&c)) return 2;
    record(10);
    if (fdr_region_define("outer", NULL, 0) != outer || fdr_region_define("inner", NULL, 0) != inner) return 3;
    pthread_t t[CHILD_THREADS + 1];
    for (int i = 0; i < CHILD_THREADS; i++)
        if (pthread_create(&t[i], NULL, recorder_thread, (void *)100)) return 4;
    for (int i = 0; i < CHILD_THREADS; i++) pthread_join(t[i], NULL);
    fdr_enter_address((const void *)(uintptr_t)&own_recording);
    fdr_leave_address((const void *)(uintptr_t)&own_recording);
    uint64_t n = snapshot_presented();
    if (n != 30 + 300 * CHILD_THREADS + 1) {
        fprintf(stderr, "child presented %llu\n", (unsigned long long)n);
        return 5;
    }
    fdr_finalize();
    return 0;
}

static bool defines_something(void)
{
    static const struct fdr_field field = {"n", FDR_U64, 0};
    static const uint32_t rank = 0;
    return fdr_region_define("of a child", NULL, 0) || fdr_marker_define("of a child") ||
           fdr_metric_define("of a child", "1", FDR_U64, FDR_METRIC_GAUGE) || fdr_comm_define("of a child", &rank, 1) ||
           fdr_event_define("of a child", &field, 1);
}

static int no_recording(void)
{
    record(1000);
    if (defines_something()) return 4;
    if (fdr_usage().presented) return 2;
    if (fdr_snapshot("child") == 0) return 3;
    return 0;
}

enum way { BY_FORK, BY_BARE_FORK };
static pid_t make(enum way w)
{
    fflush(NULL);
    return w == BY_FORK ? fork() : _Fork();
}

static void child_without(bool mapped, enum way way)
{
    begin(mapped);
    record(100);
    pid_t pid = make(way);
    if (pid == 0) {
        int bad = no_recording();
#if !defined(__SANITIZE_ADDRESS__)     /* its leak check at exit would wait for the parent's threads */
        if (way == BY_FORK) exit(bad); /* with its exit handlers */
#endif
        _exit(bad);
    }
    record(50);
    int code = exit_of(pid);
    record(50);
    uint64_t n = snapshot_presented();
    struct stat st;
    bool live = !mapped || stat(fdri_life_recording.live_path, &st) == 0;
    fdr_finalize();
    assert_int_equal(code, 0);
    assert_int_equal(n, 600);
    assert_true(live); /* the end of the child did not remove the parent's file */
}

static void P10_a_child_without_its_own_records_nothing(void **state)
{
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++)
        for (int way = BY_FORK; way <= BY_BARE_FORK; way++) child_without(mapped, (enum way)way);
}

static void child_with(bool mapped, enum way way, const char *signal_name)
{
    begin(mapped);
    fdr_enter(outer); /* open during the fork: the child's shadow stack begins empty */
    record(100);
    pid_t pid = make(way);
    if (pid == 0) _exit(own_recording(signal_name));
    record(50);
    int code = exit_of(pid);
    uint64_t n = snapshot_presented();
    fdr_finalize();
    assert_int_equal(code, 0);
    assert_int_equal(n, 451);
}

static void P10_a_forked_child_starts_its_own(void **state)
{
    (void)state;
    if (!CHILDREN_MAY_ALLOCATE) skip();
    child_with(false, BY_FORK, "USR2");
    child_with(true, BY_FORK, "none");
}

static void P10_a_bare_forked_child_starts_its_own(void **state)
{
    (void)state;
    if (!CHILDREN_MAY_ALLOCATE) skip();
    child_with(false, BY_BARE_FORK, "USR2");
    child_with(true, BY_BARE_FORK, "none");
}

static void P10_a_grandchild_too(void **state)
{
    (void)state;
    if (!CHILDREN_MAY_ALLOCATE) skip();
    begin(false);
    record(10);
    pid_t pid = make(BY_FORK);
    if (pid == 0) {
        int bad = own_recording("USR2");
        struct fdr_config c = oracle_config(oracle_directory());
        if (!bad && fdr_init(&c) == 0) {
            pid_t again = make(BY_FORK);
            if (again == 0) _exit(own_recording("USR2"));
            bad = exit_of(again);
            fdr_finalize();
        }
        _exit(bad);
    }
    assert_int_equal(exit_of(pid), 0);
    assert_int_equal(snapshot_presented(), 30);
    fdr_finalize();
}

/* ---- another thread is inside of fork(), after fdr's own handler ---- */

static int held; /* 1: the next forking thread waits there; 2: a thread waits */
static void hold_fork(void)
{
    if (__atomic_load_n(&held, __ATOMIC_ACQUIRE) != 1) return;
    __atomic_store_n(&held, 2, __ATOMIC_RELEASE);
    while (__atomic_load_n(&held, __ATOMIC_ACQUIRE)) usleep(1000);
}
static void *forks(void *status)
{
    pid_t pid = fork();
    if (pid == 0) _exit(0);
    *(int *)status = exit_of(pid);
    return NULL;
}

/* A child made without fork handlers does not have the arena. Its end waits for no thread, because it has none of
 * the parent's. */
static int bare_child_meanwhile(void)
{
    unsigned char there;
    if (mincore(fdri_life_recording.arena.base, 4096, &there) == 0 || errno != ENOMEM) return 2;
    record(10);
    if (defines_something()) return 4;
    fdr_finalize();
    return 0;
}

static void P10_a_bare_child_while_another_thread_forks(void **state)
{
    (void)state;
    pthread_t t;
    int other = -1;
    begin(true);
    held = 1;
    assert_int_equal(pthread_create(&t, NULL, forks, &other), 0);
    while (__atomic_load_n(&held, __ATOMIC_ACQUIRE) != 2) usleep(1000);
    pid_t pid = make(BY_BARE_FORK);
    if (pid == 0) _exit(bare_child_meanwhile());
    int code = exit_of(pid);
    __atomic_store_n(&held, 0, __ATOMIC_RELEASE);
    pthread_join(t, NULL);
    fdr_finalize();
    assert_int_equal(code, 0);
    assert_int_equal(other, 0);
}

/* A signal handler that interrupts a record forks. In the child, the interrupted record must find its memory, and
 * that memory is the child's own. */
static void fork_inside_a_record(bool mapped)
{
    begin(mapped);
    record(1);
    struct fdri_arena_superblock *super = fdri_life_recording.arena.super;
    uint64_t bytes = super->arena_bytes;
    fdri_record_self.loc->busy = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    pid_t pid = fork();
    if (pid == 0) {
        int bad = super->arena_bytes == bytes && fdri_record_self.loc->busy ? 0 : 2;
        super->rank = 77;
        _exit(bad);
    }
    int code = exit_of(pid), rank = super->rank;
    fdri_record_self.loc->busy = 0;
    fdr_finalize();
    assert_int_equal(code, 0);
    assert_int_not_equal(rank, 77);
}
static void P10_a_fork_inside_a_record(void **state)
{
    (void)state;
    fork_inside_a_record(false);
    fork_inside_a_record(true);
}

static bool stop;
static int under_way; /* threads that have completed one round */
static uint64_t done;

/* Where children may not allocate, no thread of this test allocates at the moment of the fork; else any thread may. */
static pthread_mutex_t allocating = PTHREAD_MUTEX_INITIALIZER;
static void allocator(bool mine)
{
    if (CHILDREN_MAY_ALLOCATE) return;
    mine ? pthread_mutex_lock(&allocating) : pthread_mutex_unlock(&allocating);
}

static void *busy(void *unused)
{
    uint64_t n = 0;
    (void)unused;
    char name[24];
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        record(20);
        n += 60;
        snprintf(name, sizeof name, "r%llu", (unsigned long long)n / 60 % 500); /* takes the lock of definitions, too */
        allocator(true);
        fdr_region_define(name, NULL, 0);
        allocator(false);
        if (n == 60) __atomic_fetch_add(&under_way, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_add(&done, n, __ATOMIC_RELAXED);
    return NULL;
}
static void *snapshots(void *unused)
{
    uint64_t n = 0;
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        allocator(true);
        if (!fdr_snapshot("busy")) unlink(fdr_last_snapshot());
        allocator(false);
        if (!n++) __atomic_fetch_add(&under_way, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Forks while four threads record and one takes snapshots, so any lock may be held at that moment. */
static void P10_fork_while_others_record(void **state)
{
    (void)state;
    begin(false);
    stop = false;
    done = 0;
    pthread_t t[5];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&t[i], NULL, busy, NULL), 0);
    assert_int_equal(pthread_create(&t[4], NULL, snapshots, NULL), 0);
    while (__atomic_load_n(&under_way, __ATOMIC_RELAXED) < 5) usleep(1000);
    int bad = 0;
    for (int i = 0; i < 20 && !bad; i++) {
        record(10);
        allocator(true);
        pid_t pid = make(BY_FORK);
        allocator(false);
        if (pid == 0) _exit((i & 1) && CHILDREN_MAY_ALLOCATE ? own_recording("USR2") : no_recording());
        bad = exit_of(pid);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
    uint64_t n = snapshot_presented();
    fdr_finalize();
    assert_int_equal(bad, 0);
    assert_int_equal(n, done + 600);
}

static void P10_vfork_and_exec(void **state)
{
    (void)state;
    begin(true);
    record(10);
    for (int i = 0; i < 20; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        record(10);
    }
    assert_int_equal(system("exit 3") >> 8, 3);
    uint64_t n = snapshot_presented();
    fdr_finalize();
    assert_int_equal(n, 21 * 30);
}

/* However a child ends, its parent still takes snapshots by signal. The child's own signal handling is as without
 * fdr. */
static void P10_a_child_gets_the_signal(void **state)
{
    (void)state;
    begin(false);
    record(10);
    for (int way = BY_FORK; way <= BY_BARE_FORK; way++) {
        pid_t pid = make((enum way)way);
        if (pid == 0) {
            signal(SIGUSR2, SIG_IGN);
            raise(SIGUSR2);
            _exit(no_recording());
        }
        assert_int_equal(exit_of(pid), 0);
    }
    pid_t pid = fork();
    if (pid == 0) {
        raise(SIGUSR2); /* as before fdr: the default action */
        _exit(7);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR2);
    uint64_t before = fdr_usage().snapshots;
    raise(SIGUSR2);
    for (int i = 0; i < 1000 && fdr_usage().snapshots == before; i++) usleep(10000);
    assert_int_equal(fdr_usage().snapshots, before + 1);
    fdr_finalize();
    unlink(fdr_last_snapshot());
}

int main(void)
{
    pthread_atfork(hold_fork, NULL, NULL); /* registered before fdr's handler, so it runs after that */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_a_child_without_its_own_records_nothing),
        cmocka_unit_test(P10_a_forked_child_starts_its_own),
        cmocka_unit_test(P10_a_bare_forked_child_starts_its_own),
        cmocka_unit_test(P10_a_grandchild_too),
        cmocka_unit_test(P10_a_bare_child_while_another_thread_forks),
        cmocka_unit_test(P10_a_fork_inside_a_record),
        cmocka_unit_test(P10_fork_while_others_record),
        cmocka_unit_test(P10_vfork_and_exec),
        cmocka_unit_test(P10_a_child_gets_the_signal),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    char live[100];
    snprintf(live, sizeof live, "/dev/shm/fdr-test-fork-%d", (int)getpid());
    rmdir(live);
    return bad;
}
