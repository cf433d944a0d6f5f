/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=300 serial clock=monotonic promise=P1,P3,P7,P10
 * ctest: without=tsan (it delivers signals between operations only)
 * P1, P3, P7, P10: signal handlers that record, or leave by longjmp, and snapshots by signal. The program's own
 * handlers stay in place. ThreadSanitizer never delivers a signal in the middle of a record, so the test does not run
 * there. */
#include <dirent.h>
#include <errno.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "bins/bins.h"
#include "recorder/recording.h"
#include "tests/support/oracle.h"
#include "tests/support/sanitized.h"

enum { TICKS = SANITIZED ? 300 : 5000 };

static void begin(const char *signal_name, const char *holdoff, const char *keep, const char *disk)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.signal = signal_name;
    c.holdoff = holdoff;
    c.buffer = "8M";
    c.timer = oracle_clock("tsc");
    if (keep) c.keep = keep;
    if (disk) c.disk = disk;
    fdr_finalize();
    assert_int_equal(fdr_init(&c), 0);
}

static int files(void)
{
    int n = 0;
    DIR *d = opendir(oracle_directory());
    struct dirent *e;
    while ((e = readdir(d))) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}
static void clean(void)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf %s/*", oracle_directory());
    assert_int_equal(system(command), 0);
}

/* ---- a handler that records while the thread it interrupts records ---- */

static volatile sig_atomic_t ticks;
static uint64_t by_handler;
static fdr_region in_main, in_main_deep, in_handler;

static void on_tick(int unused)
{
    (void)unused;
    fdr_enter(in_handler);
    fdr_enter(in_handler);
    fdr_marker(1, 7);
    fdr_leave(in_handler);
    fdr_leave(in_handler);
    by_handler += 3;
    ticks++;
}

static void every(int microseconds)
{
    struct itimerval it = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &it, NULL);
}

static void P3_a_handler_that_records_loses_nothing(void **state)
{
    (void)state;
    begin("none", NULL, NULL, NULL);
    in_main = fdr_region_define("main", NULL, 0);
    in_main_deep = fdr_region_define("deep", NULL, 0);
    in_handler = fdr_region_define("handler", NULL, 0);
    struct sigaction a = {.sa_handler = on_tick, .sa_flags = SA_RESTART}, old;
    sigaction(SIGALRM, &a, &old);
    uint64_t by_main = 0;
    ticks = 0;
    by_handler = 0;
    every(100);
    while (ticks < TICKS) {
        fdr_enter(in_main);
        fdr_enter(in_main_deep);
        fdr_marker(2, by_main);
        fdr_leave(in_main_deep);
        fdr_leave(in_main);
        by_main += 3;
    }
    every(0);
    sigaction(SIGALRM, &old, NULL);
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(8 << 20, &wrong);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    uint64_t sum = 0, events = 0, calls = 0, lane = 0, abandoned = 0;
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n; i++) {
        sum += rows[i].presented;
        assert_int_equal(rows[i].presented, rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost);
        if (rows[i].location) lane += rows[i].presented;
    }
    const struct fdr_total *totals;
    n = fdr_totals(f, &totals);
    for (size_t i = 0; i < n; i++) calls += totals[i].calls;
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        abandoned += l->abandoned;
        assert_int_equal(l->open_count, 0);
        assert_int_equal(l->stray_leaves + l->unbalanced, 0);
        if (i) assert_int_equal(l->parent, 0);
    }
    wrong = oracle_check_any(f, &events);
    if (wrong) print_message("%s\n", wrong);
    uint64_t missed = fdr_file_info(f)->lost_unattached;
    fdr_file_close(f);
    fdr_finalize();
    print_message("%llu by main, %llu by the handler, %llu of these in its lane, %zu locations\n",
                  (unsigned long long)by_main, (unsigned long long)by_handler, (unsigned long long)lane,
                  n ? (size_t)2 : (size_t)0);
    assert_null(wrong);
    assert_int_equal(missed, 0);
    assert_int_equal(abandoned, 0);
    assert_int_equal(sum, by_main + by_handler);
    assert_int_equal(calls, by_main + by_handler);
#if !defined(__SANITIZE_THREAD__) /* it delivers signals between operations only */
    assert_true(lane > 0);        /* else no signal hit the middle of a record */
#endif
}

/* ---- a handler that leaves by longjmp ---- */

static sigjmp_buf away;
static void on_tick_leave(int unused)
{
    (void)unused;
    ticks++;
    siglongjmp(away, 1);
}

static __attribute__((noinline)) void record_for_ever(uint64_t *n)
{
    for (;;) {
        fdr_enter(in_main);
        __atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
        fdr_marker(2, *n);
        fdr_leave(in_main);
    }
}

static void P10_a_handler_that_leaves_by_longjmp(void **state)
{
    (void)state;
    begin("none", NULL, NULL, NULL);
    in_main = fdr_region_define("main", NULL, 0);
    struct sigaction a = {.sa_handler = on_tick_leave, .sa_flags = SA_RESTART | SA_NODEFER}, old;
    sigaction(SIGALRM, &a, &old);
    static uint64_t n;
    n = 0;
    ticks = 0;
    sigsetjmp(away, 1);
    if (ticks < TICKS / 5) {
        struct itimerval once_ = {{0, 0}, {0, 50 + ticks % 97}};
        setitimer(ITIMER_REAL, &once_, NULL);
        record_for_ever(&n);
    }
    every(0);
    sigaction(SIGALRM, &old, NULL);
    const char *wrong;
    uint64_t events = 0, sum = 0;
    struct fdr_file *f = oracle_snapshot(8 << 20, &wrong);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    wrong = oracle_check_within(f, &events, (uint64_t)ticks); /* P3: each broken record may cost one event */
    if (wrong) print_message("%s\n", wrong);
    const struct fdr_ledger_row *rows;
    size_t count = fdr_ledger(f, &rows);
    for (size_t i = 0; i < count; i++) sum += rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost;
    uint64_t abandoned = fdr_location_info(f, 0)->abandoned, unattached = fdr_file_info(f)->lost_unattached;
    fdr_file_close(f);
    char text[160];
    const char *bins = fdri_bins_check(&fdri_life_recording.arena, text, sizeof text);
    fdr_finalize();
    if (bins) print_message("%s\n", bins);
    print_message("%llu calls, %d jumps, %llu in mid-record, %llu events accounted, %llu nowhere\n",
                  (unsigned long long)n, (int)ticks, (unsigned long long)abandoned, (unsigned long long)sum,
                  (unsigned long long)unattached);
    assert_null(wrong);
    /* a jump out of a refill may leak a bin or leave a wrong count, but never breaks a list */
    if (bins) assert_true(strstr(bins, "miscounted") || strstr(bins, "bins lost"));
    /* each jump may cost the interrupted event and the event that found the broken state */
    assert_true(sum + unattached + 3 * (uint64_t)ticks >= 2 * n && sum <= 2 * n + (uint64_t)ticks);
    assert_int_equal(unattached, 0);
}

/* ---- snapshots by signal ---- */

static volatile sig_atomic_t chained, chained_info;
static void plain_handler(int unused)
{
    (void)unused;
    chained++;
}
static void info_handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info && number == SIGUSR1) chained_info++;
}

static void wait_for_snapshots(uint64_t n)
{
    for (int i = 0; i < 6000 && fdr_usage().snapshots < n; i++) usleep(10000);
    usleep(100000); /* one more would exceed the limit */
}

static void P10_the_previous_handler_is_called_and_put_back(void **state)
{
    (void)state;
    struct sigaction first = {.sa_handler = plain_handler},
                     second = {.sa_sigaction = info_handler, .sa_flags = SA_SIGINFO}, now;
    sigaction(SIGUSR1, &first, NULL);
    begin("USR1", "0", NULL, NULL);
    raise(SIGUSR1);
    wait_for_snapshots(1);
    assert_int_equal(fdr_usage().snapshots, 1);
    assert_int_equal(chained, 1);
    fdr_finalize();
    sigaction(SIGUSR1, NULL, &now);
    assert_true(now.sa_handler == plain_handler);
    sigaction(SIGUSR1, &second, NULL);
    begin("SIGUSR1", "0", NULL, NULL);
    raise(SIGUSR1);
    wait_for_snapshots(1);
    assert_int_equal(fdr_usage().snapshots, 1);
    assert_int_equal(chained_info, 1);
    sigaction(SIGUSR1, &first, NULL); /* the program installs another handler: it stays */
    fdr_finalize();
    sigaction(SIGUSR1, NULL, &now);
    assert_true(now.sa_handler == plain_handler);
    signal(SIGUSR1, SIG_DFL);
    clean();
}

static void P10_a_signal_that_is_ignored_stays_ignored(void **state)
{
    (void)state;
    struct sigaction now;
    signal(SIGUSR1, SIG_IGN);
    begin("USR1", "0", NULL, NULL);
    sigaction(SIGUSR1, NULL, &now);
    assert_true(now.sa_handler == SIG_IGN);
    raise(SIGUSR1);
    usleep(200000);
    assert_int_equal(fdr_usage().snapshots, 0);
    fdr_finalize();
    sigaction(SIGUSR1, NULL, &now);
    assert_true(now.sa_handler == SIG_IGN);
    signal(SIGUSR1, SIG_DFL);
}

static void P10_another_signal_by_number(void **state)
{
    (void)state;
    begin("12", "0", NULL, NULL); /* SIGUSR2 */
    raise(SIGUSR2);
    wait_for_snapshots(1);
    assert_int_equal(fdr_usage().snapshots, 1);
    fdr_finalize();
    clean();
}

static void P10_holdoff_and_requests_that_come_together(void **state)
{
    (void)state;
    begin("USR1", "1000s", NULL, NULL);
    for (int i = 0; i < 200; i++) raise(SIGUSR1);
    wait_for_snapshots(1);
    for (int i = 0; i < 20; i++) raise(SIGUSR1);
    usleep(300000);
    assert_int_equal(fdr_usage().snapshots, 1);
    assert_int_equal(fdr_snapshot("the API has no hold-off"), 0);
    assert_int_equal(fdr_usage().snapshots, 2);
    fdr_finalize();
    assert_int_equal(files(), 2);
    clean();
}

static void P10_keep_oldest_and_newest(void **state)
{
    (void)state;
    struct stat st;
    char first[1024];
    begin("none", NULL, "3,oldest", NULL);
    assert_int_equal(fdr_snapshot("1"), 0);
    snprintf(first, sizeof first, "%s", fdr_last_snapshot());
    for (int i = 0; i < 2; i++) assert_int_equal(fdr_snapshot("x"), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(fdr_snapshot("too many"), -EDQUOT);
    fdr_finalize();
    assert_int_equal(files(), 3);
    assert_int_equal(stat(first, &st), 0);
    clean();
    begin("none", NULL, "3,newest", NULL);
    assert_int_equal(fdr_snapshot("1"), 0);
    snprintf(first, sizeof first, "%s", fdr_last_snapshot());
    for (int i = 0; i < 9; i++) assert_int_equal(fdr_snapshot("x"), 0);
    assert_int_equal(stat(fdr_last_snapshot(), &st), 0);
    fdr_finalize();
    assert_int_equal(files(), 3);
    assert_int_equal(stat(first, &st), -1);
    clean();
}

/* A run may write more snapshots than FDR_KEEP and FDR_DISK allow if another program moves them away. */
static void P10_moved_snapshots_make_room(void **state)
{
    static const char *const limit[][2] = {{"2,oldest", NULL}, {"100,oldest", "1M"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        char first[1024], moved[1040];
        int held, e;
        begin("none", NULL, limit[i][0], limit[i][1]);
        for (int n = 0; n < 100000; n++) fdr_marker(1, (uint64_t)n * (uint64_t)n);
        assert_int_equal(fdr_snapshot("1"), 0);
        snprintf(first, sizeof first, "%s", fdr_last_snapshot());
        for (held = 1; !(e = fdr_snapshot("x")); held++) assert_true(held < 100);
        assert_int_equal(e, -EDQUOT);
        snprintf(moved, sizeof moved, "%s.moved", first);
        assert_int_equal(rename(first, moved), 0);
        assert_int_equal(fdr_snapshot("in its place"), 0);
        assert_int_equal(fdr_snapshot("one too many"), -EDQUOT);
        assert_int_equal(unlink(moved), 0);
        assert_int_equal(files(), held);
        fdr_finalize();
        clean();
    }
}

/* FDR_KEEP keeps the newest. An old snapshot is not removed for a new one that then cannot be written. */
static void P10_a_snapshot_that_fails_costs_no_other(void **state)
{
    (void)state;
    struct stat st;
    struct rlimit whole, little = {4096, 4096};
    char first[1024];
    begin("none", NULL, "1,newest", NULL);
    assert_int_equal(fdr_snapshot("1"), 0);
    snprintf(first, sizeof first, "%s", fdr_last_snapshot());
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
    little.rlim_max = whole.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_int_equal(fdr_snapshot("too large"), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
    assert_int_equal(stat(first, &st), 0);
    assert_int_equal(fdr_snapshot("2"), 0);
    assert_int_equal(stat(first, &st), -1);
    fdr_finalize();
    clean();
    begin("none", NULL, "8,newest", "600K");
    assert_int_equal(fdr_snapshot("1"), 0);
    snprintf(first, sizeof first, "%s", fdr_last_snapshot());
    for (int i = 0; i < 1000000; i++) fdr_marker(1, (uint64_t)i * (uint64_t)i * 7919);
    assert_int_equal(fdr_snapshot("more than FDR_DISK by itself"), -EDQUOT);
    assert_int_equal(stat(first, &st), 0);
    fdr_finalize();
    clean();
}

static void P1_snapshots_take_no_more_disk_than_allowed(void **state)
{
    static const char *const keep[] = {"1000,oldest", "1000,newest"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        begin("none", NULL, keep[k], "1M");
        for (int i = 0; i < 100000; i++) fdr_marker(1, (uint64_t)i * i);
        int written = 0;
        for (int i = 0; i < 40; i++) written += fdr_snapshot("x") == 0;
        fdr_finalize();
        uint64_t used = 0;
        DIR *d = opendir(oracle_directory());
        struct dirent *e;
        while ((e = readdir(d))) {
            char path[600];
            struct stat st;
            snprintf(path, sizeof path, "%s/%s", oracle_directory(), e->d_name);
            if (e->d_name[0] != '.' && stat(path, &st) == 0) used += (uint64_t)st.st_blocks * 512;
        }
        closedir(d);
        print_message("%s: %d written, %d stay, %llu bytes\n", keep[k], written, files(), (unsigned long long)used);
        assert_true(used <= 1 << 20);
        assert_true(files() >= 1);
        assert_true(k ? written == 40 : written < 40);
        clean();
    }
}

static void P10_a_file_of_another_is_never_overwritten(void **state)
{
    (void)state;
    char host[64] = "", path[512], text[8] = "";
    gethostname(host, sizeof host - 1);
    begin("none", NULL, NULL, NULL);
    assert_int_equal(fdr_snapshot("x"), 0);
    const char *dot = strrchr(fdr_last_snapshot(), '.');
    while (dot[-1] != '.') dot--;
    int number = atoi(dot);
    snprintf(path, sizeof path, "%s/test.%s.%d.%d.fdr", oracle_directory(), host, (int)getpid(), number + 1);
    FILE *f = fopen(path, "w");
    fputs("mine", f);
    fclose(f);
    assert_int_equal(fdr_snapshot("x"), 0);
    assert_string_not_equal(fdr_last_snapshot(), path);
    f = fopen(path, "r");
    assert_int_equal(fread(text, 1, 7, f), 4);
    fclose(f);
    assert_string_equal(text, "mine");
    fdr_finalize();
    clean();
}

static void P7_finalize_takes_the_last_snapshot(void **state)
{
    (void)state;
    struct fdr_config c = oracle_config(oracle_directory());
    char message[200];
    struct fdr_file *f;
    c.finalize = "snapshot";
    c.keep = "1,oldest";
    assert_int_equal(fdr_init(&c), 0);
    fdr_enter(1);
    fdr_leave(1);
    assert_int_equal(fdr_snapshot("one"), 0);
    fdr_finalize(); /* the limit does not apply to the final snapshot */
    assert_int_equal(files(), 2);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    assert_string_equal(fdr_file_info(f)->state, "finalized");
    assert_string_equal(fdr_file_info(f)->reason, "finalize");
    fdr_file_close(f);
    clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_a_handler_that_records_loses_nothing),
        cmocka_unit_test(P10_a_handler_that_leaves_by_longjmp),
        cmocka_unit_test(P10_the_previous_handler_is_called_and_put_back),
        cmocka_unit_test(P10_a_signal_that_is_ignored_stays_ignored),
        cmocka_unit_test(P10_another_signal_by_number),
        cmocka_unit_test(P10_holdoff_and_requests_that_come_together),
        cmocka_unit_test(P10_keep_oldest_and_newest),
        cmocka_unit_test(P10_moved_snapshots_make_room),
        cmocka_unit_test(P10_a_snapshot_that_fails_costs_no_other),
        cmocka_unit_test(P1_snapshots_take_no_more_disk_than_allowed),
        cmocka_unit_test(P10_a_file_of_another_is_never_overwritten),
        cmocka_unit_test(P7_finalize_takes_the_last_snapshot),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
