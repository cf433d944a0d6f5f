/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=240 promise=P3,P10 without=tsan (it does not follow children of threads)
 * P3, P10: a vfork child records as its waiting parent thread, whatever it does and however it ends. Storms of
 * children of every kind must leave the parent's recording exact, and no files of their own. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <cmocka.h>

#include "recorder/recording.h"
#include "tests/support/deaths.h"

static fdr_region outer, inner;

static void begin(const char *arena)
{
    struct fdr_config c = death_config(death_place());
    c.arena = arena;
    c.buffer = "8M";
    c.signal = "USR2";
    signal(SIGSEGV, SIG_DFL); /* cmocka's handler would continue the test in the child */
    assert_int_equal(fdr_init(&c), 0);
    outer = fdr_region_define("outer", NULL, 0);
    inner = fdr_region_define("inner", NULL, 0);
}

static void record(int n)
{
    for (int i = 0; i < n; i++) fdr_enter(outer), fdr_enter(inner), fdr_leave(inner), fdr_leave(outer);
}

struct found {
    uint64_t presented, kept;
    uint32_t tid, locations;
    char name[40];
};
static struct found snapshot(void)
{
    struct found found = {0};
    struct fdr_file *f = NULL;
    char message[200] = "";
    const struct fdr_ledger_row *row;
    assert_int_equal(fdr_snapshot("end"), 0);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    const char *wrong = death_check(f);
    if (wrong) fail_msg("%s", wrong);
    for (size_t i = 0, n = fdr_ledger(f, &row); i < n; i++)
        found.presented += row[i].presented, found.kept += row[i].kept;
    found.locations = (uint32_t)fdr_location_count(f);
    for (size_t i = 0; i < fdr_location_count(f); i++)
        if (fdr_location_info(f, i)->live) found.tid = fdr_location_info(f, i)->tid;
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
    return found;
}

/* ---- children of a handler that interrupted a record ---- */

enum { HANDLED = 120 };
static volatile unsigned made, is_child, went_wrong;
static pid_t (*volatile make)(void);

/* One signal at a time. With a periodic timer and a child that takes longer than the period, the program would make
 * no progress. */
static void soon(void)
{
    const struct itimerval once = {{0, 0}, {0, 900}};
    setitimer(ITIMER_REAL, &once, NULL);
}

/* The child returns into the record, too. The parent's handler waits until the child has ended. */
static void make_one(int unused)
{
    (void)unused;
    int status = 0;
    pid_t pid = make();
    if (pid == 0) {
        is_child = 1;
        return;
    }
    if (pid > 0) {
        made++;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
        went_wrong += status != 0;
    }
    if (made < HANDLED) soon();
}

/* Now and then the child begins a recording of its own, in which the ids keep their meaning. */
static void be_child(void)
{
    if (made % 20 == 0) {
        struct fdr_config c = death_config(death_place_as_it_is());
        c.buffer = "256K";
        if (fdr_init(&c)) _exit(1);
        record(10);
        if (fdr_region_define("inner", NULL, 0) != inner || fdr_usage().buffer_bytes == 0) _exit(2);
        fdr_finalize();
    }
    _exit(0);
}

static void made_in_handlers(const char *arena, pid_t (*how)(void))
{
    struct itimerval never = {{0, 0}, {0, 0}};
    struct sigaction a = {.sa_handler = make_one, .sa_flags = SA_RESTART}, old;
    uint64_t calls = 0;
    begin(arena);
    made = is_child = went_wrong = 0;
    make = how;
    sigaction(SIGALRM, &a, &old);
    soon();
    for (; made < HANDLED; calls += 2) {
        record(1);
        if (is_child) be_child();
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    if (is_child) be_child(); /* the child was made after the loop */
    assert_int_equal(went_wrong, 0);
    struct found f = snapshot();
    assert_true(f.presented >= calls && f.presented <= calls + 2); /* the last call may come after the count */
    fdr_finalize();
    assert_string_equal(death_file(death_place_as_it_is()->live), "");
}

static void P10_vfork_in_handlers(void **state)
{
    (void)state;
#if !defined(__SANITIZE_THREAD__) /* it loses track of such children, and they hang */
    made_in_handlers("mapped", _Fork);
    made_in_handlers("anonymous", _Fork);
    made_in_handlers("mapped", fork);
    made_in_handlers("anonymous", fork);
#else
    (void)made_in_handlers;
#endif
}

/* ---- vfork ---- */

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static struct fdr_config *volatile again;

/* Calls that POSIX forbids in such a child, and that programs make all the same. */
static int in_vfork(int way)
{
    volatile int w = way;
    pid_t pid = vfork();
    if (pid == 0) {
        record(5);
        if (w == 1) *nowhere = 1;
        if (w == 2) execl("/nowhere", "nowhere", NULL);
        if (w == 3) execl("/bin/true", "true", NULL);
        if (w == 4) fdr_init(again), fdr_finalize();
        if (w == 5) raise(SIGKILL);
        _exit(3);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void P10_a_vfork_child_records_as_its_parent(void **state)
{
    (void)state;
    static const int status[] = {3 << 8, SIGSEGV, 3 << 8, 0, 3 << 8, SIGKILL};
#if defined(__SANITIZE_THREAD__)
    skip(); /* it turns vfork into fork */
#endif
    struct fdr_config c = death_config(death_place_as_it_is());
    again = &c;
    begin("mapped");
    record(1);
    uint32_t number = fdri_life_recording.number;
    for (int way = 0; way < 6; way++) {
        assert_int_equal(in_vfork(way) & ~0x80, status[way]);
        record(1);
    }
    assert_int_equal(fdri_life_recording.number, number);
    struct found f = snapshot();
    assert_int_equal(f.presented, 2 * (7 + 6 * 5));
    assert_int_equal(f.kept, f.presented);
    assert_int_equal(f.locations, 1);
    assert_string_equal(death_file(death_place_as_it_is()->dir), ""); /* no bundle of the child that crashed */
    assert_int_equal(access(fdri_life_recording.live_path, F_OK), 0);
    fdr_finalize();
}

/* The thread's first event happens in the child: the location belongs to the waiting thread. */
static void *never_recorded(void *tid)
{
    *(uint32_t *)tid = (uint32_t)syscall(SYS_gettid);
    assert_int_equal(in_vfork(0), 3 << 8);
    record(1);
    struct found f = snapshot();
    assert_int_equal(f.tid, *(uint32_t *)tid);
    assert_int_equal(f.presented, 12);
    return NULL;
}
static void P10_a_vfork_child_comes_first(void **state)
{
    (void)state;
    uint32_t tid = 0;
    pthread_t t;
#if defined(__SANITIZE_THREAD__)
    skip();
#endif
    begin("mapped");
    assert_int_equal(pthread_create(&t, NULL, never_recorded, &tid), 0);
    pthread_join(t, NULL);
    fdr_finalize();
}

/* ---- storms ---- */

static bool stop;
static uint64_t done;
static void *busy(void *unused)
{
    uint64_t n = 0;
    for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); n += 40) record(20);
    __atomic_fetch_add(&done, n, __ATOMIC_RELAXED);
    return unused;
}

static int one_child(int i)
{
    if (i % 8 == 1) return system("exit 0");
    if (i % 8 == 2) return in_vfork(0) == 3 << 8 ? 0 : 1;
    pid_t pid = i % 2 ? fork() : _Fork();
    if (pid == 0) {
        record(3); /* goes to no recording */
        if (i % 8 == 3 && fork() == 0) record(3), _exit(0);
        if (i % 16 == 5) {
            struct fdr_config c = death_config(death_place_as_it_is());
            c.name = "child";
            if (fdr_init(&c)) _exit(2);
            record(3);
            fdr_finalize();
        }
        if (i % 16 == 7) raise(SIGKILL);
        _exit(0);
    }
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return 1;
    return i % 16 == 7 ? status != SIGKILL : status;
}

enum { FORKERS = 4, CHILDREN = 64 };
static void *storm(void *unused)
{
    (void)unused;
    intptr_t bad = 0;
    for (int i = 0; i < CHILDREN; i++) {
        record(1);
        bad += one_child(i) != 0;
    }
    return (void *)bad; /* NOLINT: a number */
}

static void P10_many_vforks_at_once(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); /* their allocators' locks are held in children of threads that fork at the same time */
#endif
    pthread_t b[2], f[FORKERS];
    intptr_t bad = 0;
    for (int mapped = 0; mapped < 2; mapped++) {
        begin(mapped ? "mapped" : "anonymous");
        stop = false;
        done = 0;
        for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&b[i], NULL, busy, NULL), 0);
        for (int i = 0; i < FORKERS; i++) assert_int_equal(pthread_create(&f[i], NULL, storm, NULL), 0);
        for (int i = 0; i < FORKERS; i++) {
            void *wrong;
            pthread_join(f[i], &wrong);
            bad += (intptr_t)wrong;
        }
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        for (int i = 0; i < 2; i++) pthread_join(b[i], NULL);
        struct found found = snapshot();
        const char *live = death_file(death_place_as_it_is()->live);
        fdr_finalize();
        assert_int_equal(bad, 0);
        /* each forking thread: its own calls and those of its vfork children */
        assert_int_equal(found.presented, done + FORKERS * (CHILDREN * 2 + CHILDREN / 8 * 10));
        if (mapped) assert_string_not_equal(live, "2"); /* only the parent's own */
    }
    assert_string_equal(death_file(death_place_as_it_is()->live), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_vfork_in_handlers),
        cmocka_unit_test(P10_a_vfork_child_records_as_its_parent),
        cmocka_unit_test(P10_a_vfork_child_comes_first),
        cmocka_unit_test(P10_many_vforks_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
