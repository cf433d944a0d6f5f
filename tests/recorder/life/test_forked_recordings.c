/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=240 promise=P3,P10
 * ctest: without=asan,tsan (their locks stay locked in the child of a process with threads)
 * P3, P10: recordings that begin by themselves in forked children: when they begin, what they inherit, and which
 * children they leave alone. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "format/arena/arena.h"
#include "recorder/life/life.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/deaths.h"

static fdr_region outer, inner;

static void begin(const char *which)
{
    struct fdr_config c = death_config(death_place());
    c.fork = which;
    signal(SIGSEGV, SIG_DFL); /* cmocka's handler would continue the test in the child */
    fdr_finalize();
    assert_int_equal(fdr_init(&c), 0);
    outer = fdr_region_define("outer", NULL, 0);
    inner = fdr_region_define("inner", NULL, 0);
}

static void record(int n)
{
    for (int i = 0; i < n; i++) fdr_enter(outer), fdr_enter(inner), fdr_leave(inner), fdr_leave(outer);
}

static bool records(void) { return fdri_atomic_load_relaxed(&fdr_switch_.on) != 0; }
static uint32_t open_depth(void) { return fdri_record_self.loc->depth; }
static bool is_named(void) { return !fdri_life_recording.nameless && access(fdri_life_recording.live_path, F_OK) == 0; }
static bool has_ended(void) { return !records(); }
static bool parent_ended(void);

/* Waits at most 60 s. */
static bool soon(bool (*happened)(void))
{
    for (int i = 0; i < 6000 && !happened(); i++) usleep(10000);
    return happened();
}

/* As if this much time had passed for the thread that decides what becomes of a recording. */
static void later(uint64_t seconds) { fdri_life_poll_forked(fdri_clock_ns(CLOCK_MONOTONIC) + seconds * 1000000000u); }

/* Takes a snapshot and checks its ledger. Returns the events presented in it. */
static uint64_t presented(void)
{
    struct fdr_file *f = NULL;
    char message[200] = "";
    const struct fdr_ledger_row *row;
    uint64_t sum = 0;
    if (fdr_snapshot("end") || fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message) != FDR_WHOLE)
        return UINT64_MAX;
    for (size_t i = 0, n = fdr_ledger(f, &row); i < n; i++) sum += row[i].presented;
    if (death_check(f)) sum = UINT64_MAX;
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
    return sum;
}

static void assert_child(pid_t pid)
{
    int status = -1;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Runs f in a forked child, which ends with its result: 0, or the number of what went wrong. */
static void in_child(int (*f)(void))
{
    pid_t pid = fork();
    if (pid == 0) _exit(f());
    assert_child(pid);
}

/* ---- setsid ---- */

static int leads(void)
{
    char live[sizeof fdri_life_recording.live_path];
    if (records()) return 1;
    if (setsid() != getpid()) return 2;
    if (!records() || fdri_life_recording.pid != getpid()) return 3;
    if (open_depth() != 2) return 4;
    record(10);
    fdr_leave(inner);
    fdr_leave(outer);
    if (open_depth() != 0 || fdr_usage().presented != 22) return 5;
    if (presented() != 22) return 6;
    if (fdr_region_define("inner", NULL, 0) != inner) return 7;
    if (!soon(is_named)) return 8;
    strcpy(live, fdri_life_recording.live_path);
    fdr_finalize();
    return access(live, F_OK) == 0 ? 9 : 0;
}

static void P3_a_child_that_leads_a_session_inherits_the_open_calls(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter(outer);
    fdr_enter(inner);
    in_child(leads);
    record(1);
    fdr_leave(inner);
    fdr_leave(outer);
    assert_int_equal(presented(), 4);
    assert_true(is_named());
    fdr_finalize();
}

static int leads_unrecorded(void)
{
    if (setsid() != getpid()) return 1;
    record(1);
    return records() ? 2 : 0;
}
static int leads_after_finalize(void)
{
    fdr_finalize();
    return leads_unrecorded();
}

static void P10_no_recording_where_none_is_wanted(void **state)
{
    (void)state;
    begin("off");
    in_child(leads_unrecorded);
    begin("daemon");
    in_child(leads_after_finalize);
    fdr_finalize();
    in_child(leads_unrecorded); /* its parent does not record */
}

/* The program's own fdr_init goes first if it brings settings. */
static int init_after_setsid(void)
{
    setsid();
    uint32_t number = fdri_life_recording.number;
    if (fdr_init(NULL) || fdri_life_recording.number != number) return 1;
    struct fdr_config c = death_config(death_place_as_it_is());
    c.name = "own";
    if (fdr_init(&c) || strcmp(fdri_life_recording.settings.name, "own") != 0) return 2;
    record(1);
    if (open_depth() || presented() != 2) return 3;
    fdr_finalize();
    return 0;
}

static void P10_fdr_init_goes_before_a_recording_that_began_by_itself(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter(outer);
    in_child(init_after_setsid);
    fdr_finalize();
}

static int exits(void)
{
    setsid();
    return records() ? 0 : 1;
}

static void P10_a_child_that_ends_at_once_leaves_nothing(void **state)
{
    (void)state;
    begin(NULL);
    in_child(exits);
    fdr_finalize();
    assert_string_equal(death_file(death_place_as_it_is()->live), "");
}

/* ---- other children ---- */

static int is_not_recorded(void) { return records(); }

static void P10_a_vfork_child_that_leads_a_session_changes_nothing(void **state)
{
    (void)state;
    begin(NULL);
    record(1);
    uint32_t number = fdri_life_recording.number;
    pid_t pid = vfork();
    if (pid == 0) {
        setsid();
        _exit(0);
    }
    assert_child(pid);
    assert_int_equal(fdri_life_recording.number, number);
    in_child(is_not_recorded); /* its parent did not lead a session */
    in_child(exits);
    assert_int_equal(presented(), 2);
    fdr_finalize();
}

static void P10_a_bare_child_that_leads_a_session_records(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter(outer);
    pid_t pid = _Fork();
    if (pid == 0) {
        int bad = exits();
        record(1);
        if (!bad && (open_depth() != 0 || presented() != 2)) bad = 2;
        _exit(bad);
    }
    assert_child(pid);
    fdr_leave(outer);
    assert_int_equal(presented(), 1);
    fdr_finalize();
}

/* ---- a daemon forked by the process that called setsid ---- */

static pid_t intermediate;
static bool parent_ended(void) { return getppid() != intermediate; }

static int first_child_of_living(void)
{
    if (!records() || open_depth() != 1) return 1;
    later(1);
    later(2);
    if (!records()) return 2;
    later(30);
    return soon(has_ended) ? 0 : 3;
}

static int living_leader(void)
{
    int status[2] = {-1, -1}, (*f[])(void) = {first_child_of_living, is_not_recorded};
    setsid();
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) _exit(f[i]());
        waitpid(pid, &status[i], 0);
    }
    return status[0] ? status[0] >> 8 : status[1] ? 9 : 0;
}

static void P10_a_worker_of_a_daemon_is_no_daemon(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter(outer);
    in_child(living_leader);
    fdr_finalize();
}

static int daemon_of_dead_leader(void)
{
    if (!soon(parent_ended)) return 1;
    record(5);
    later(2);
    if (!soon(is_named) || !records()) return 2;
    if (open_depth() != 1 || presented() != 11) return 3;
    fdr_finalize();
    return 0;
}

static void P3_a_daemon_whose_parent_called_setsid(void **state)
{
    (void)state;
    int report[2], result = -1;
    begin(NULL);
    fdr_enter(outer);
    assert_int_equal(pipe(report), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        intermediate = getpid();
        if (fork()) _exit(0);
        int bad = daemon_of_dead_leader();
        _exit(write(report[1], &bad, sizeof bad) != sizeof bad);
    }
    assert_child(pid);
    assert_int_equal(read(report[0], &result, sizeof result), sizeof result);
    close(report[0]);
    close(report[1]);
    fdr_finalize();
    assert_int_equal(result, 0);
}

/* ---- the limit of memory ---- */

enum { FAMILY = 4 }; /* as many whole buffers */

static void P10_daemons_share_a_limit_of_memory(void **state)
{
    (void)state;
    int go[2], report[2];
    char c = 0;
    unsigned begun = 0, again = 0;
    pid_t pid[FAMILY + 2];
    begin(NULL);
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(report), 0);
    for (int i = 0; i < FAMILY + 2; i++) {
        if (i == FAMILY + 1) { /* all others end, and their memory is free */
            close(go[1]);
            for (int j = 0; j <= FAMILY; j++) assert_int_equal(waitpid(pid[j], NULL, 0), pid[j]);
        }
        pid[i] = fork();
        if (pid[i] == 0) {
            death_child(); /* says nothing */
            setsid();
            c = (char)records();
            close(go[1]);
            _exit(write(report[1], &c, 1) != 1 || (i <= FAMILY && read(go[0], &c, 1) != 0));
        }
        assert_int_equal(read(report[0], &c, 1), 1);
        if (i <= FAMILY) begun += (unsigned)c;
        else again = (unsigned)c;
    }
    assert_child(pid[FAMILY + 1]);
    close(go[0]);
    close(report[0]);
    close(report[1]);
    fdr_finalize();
    assert_int_equal(begun, FAMILY);
    assert_int_equal(again, 1);
}

/* ---- threads ---- */

static bool stop;
static void *busy(void *unused)
{
    char name[24];
    for (unsigned i = 0; !fdri_atomic_load_relaxed(&stop); i++) {
        record(20);
        snprintf(name, sizeof name, "r%u", i % 500);
        fdr_region_define(name, NULL, 0);
    }
    return unused;
}

static int daemon_of_threads(void)
{
    pthread_t t;
    stop = true;
    setsid();
    if (!records() || open_depth() != 1) return 1;
    if (pthread_create(&t, NULL, busy, NULL) || pthread_join(t, NULL)) return 2;
    record(1);
    return presented() == 3 ? 0 : 3;
}

/* Forks while others record, define and snapshot: any lock may be held. */
static void P10_a_daemon_of_a_program_with_threads(void **state)
{
    (void)state;
    pthread_t t[3];
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* its allocator's locks are held in children of threads that fork at the same time */
#endif
    begin(NULL);
    stop = false;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, busy, NULL), 0);
    fdr_enter(outer);
    for (int i = 0; i < 20; i++) {
        in_child(daemon_of_threads);
        assert_int_equal(fdr_snapshot("busy"), 0);
        unlink(fdr_last_snapshot());
    }
    fdri_atomic_store_relaxed(&stop, true);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_a_child_that_leads_a_session_inherits_the_open_calls),
        cmocka_unit_test(P10_no_recording_where_none_is_wanted),
        cmocka_unit_test(P10_fdr_init_goes_before_a_recording_that_began_by_itself),
        cmocka_unit_test(P10_a_child_that_ends_at_once_leaves_nothing),
        cmocka_unit_test(P10_a_vfork_child_that_leads_a_session_changes_nothing),
        cmocka_unit_test(P10_a_bare_child_that_leads_a_session_records),
        cmocka_unit_test(P10_a_worker_of_a_daemon_is_no_daemon),
        cmocka_unit_test(P3_a_daemon_whose_parent_called_setsid),
        cmocka_unit_test(P10_daemons_share_a_limit_of_memory),
        cmocka_unit_test(P10_a_daemon_of_a_program_with_threads),
    };
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
