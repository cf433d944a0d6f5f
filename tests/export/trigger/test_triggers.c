/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,stress,threads timeout=120 wrap=fdri_trigger_serve */
/* Triggers: each source fires when its condition holds and at no other time. Windows, hold-offs and caps hold, also for
 * triggers that are added and removed while threads record. */
#include <fdr/fdr.h>
#include <fdr/tally.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "export/trigger/trigger.h"
#include "export/view.h"
#include "recorder/life/settings.h"
#include "recorder/watch/watch_table.h"
#include "tests/support/wait_for_snapshots.h"
#include "tests/support/observed_process.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fdr/reader.h>

static void start(const char *triggers, const char *more_keep)
{
    snapshots_start(
        (struct fdr_config){.holdoff = "0", .triggers = triggers, .keep = more_keep ? more_keep : "100,oldest"});
}

static struct fdr_file *newest(void)
{
    char path[600] = "", message[256];
    struct fdr_file *f = NULL;
    snapshots(path, sizeof path);
    if (fdr_file_open(path, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s: %s", path, message);
    if (fdr_file_verify(f) != FDR_WHOLE) fail_msg("%s: %s", path, fdr_file_damage(f, 0));
    return f;
}

static void expect_reason(const char *name, const char *part)
{
    struct fdr_file *f = newest();
    const struct fdr_file_info *i = fdr_file_info(f);
    assert_string_equal(i->reason_kind, "trigger");
    assert_true(i->has_trigger);
    assert_string_equal(i->trigger_name, name);
    if (!strstr(i->reason, part)) fail_msg("'%s' does not say '%s'", i->reason, part);
    fdr_file_close(f);
}

static void call(fdr_region r, unsigned ms)
{
    fdr_enter(r);
    if (ms) sleep_ms(ms);
    fdr_leave(r);
}

/* ---- the sources ---- */

static void region_over(void **state)
{
    (void)state;
    start("slow: region step* over 20ms holdoff 3600s", NULL);
    fdr_region step = fdr_region_define("step_a", NULL, 0), other = fdr_region_define("other", NULL, 0);
    call(other, 30);
    assert_int_equal(fdr_trigger_count(1), 0);
    call(step, 25);
    assert_true(comes(1));
    expect_reason("slow", "step_a: ");
    struct fdr_file *f = newest();
    assert_true(fdr_file_info(f)->trigger_value >= 20000000);
    assert_int_equal(fdr_file_info(f)->trigger_location, 0);
    fdr_file_close(f);
    forget_snapshots();
}

/* Triggers also see calls that are not stored. These end on the fast path, between the trigger's bound and
 * FDR_MIN_DURATION. */
static void region_over_below_the_minimum(void **state)
{
    (void)state;
    snapshots_start((struct fdr_config){.holdoff = "0", .triggers = "region step over 5ms", .min_duration = "10s"});
    fdr_region step = fdr_region_define("step", NULL, 0);
    uint64_t fired, began;
    do { /* repeats a call that lost its processor and so was not short */
        fired = fdr_trigger_count(1);
        began = fdri_clock_ns(CLOCK_MONOTONIC);
        call(step, 0);
    } while (fdri_clock_ns(CLOCK_MONOTONIC) - began >= 5000000);
    assert_int_equal(fdr_trigger_count(1), fired);
    call(step, 300);
    for (int i = 0; i < 5; i++) call(step, 20);
    assert_int_equal(fdr_trigger_count(1), fired + 6);
    forget_snapshots();
}

/* The program gives the times (`_at`): the location counts in ns. */
static void region_over_at(void **state)
{
    (void)state;
    start("slow: region at over 1s", NULL);
    fdr_region at = fdr_region_define("at", NULL, 0);
    fdr_enter_at(at, 1000);
    fdr_leave_at(at, 900000000);
    assert_int_equal(fdr_trigger_count(1), 0);
    fdr_enter_at(at, 1000000000);
    fdr_leave_at(at, 2500000000u);
    assert_int_equal(fdr_trigger_count(1), 1);
    assert_true(comes(1));
    forget_snapshots();
}

static void region_over_p99(void **state)
{
    (void)state;
    start("odd: region p over 100p99", NULL);
    fdr_region p = fdr_region_define("p", NULL, 0);
    uint64_t at = 1;
    for (int i = 0; i < 2000; i++, at += 2000) fdr_enter_at(p, at), fdr_leave_at(p, at + 1000 + (uint64_t)i / 20);
    sleep_ms(400); /* the 99th percentile is computed every 100 ms */
    fdr_enter_at(p, at), fdr_leave_at(p, at + 50000);
    assert_int_equal(fdr_trigger_count(1), 0);
    at += 100000;
    for (int i = 0; i < 6000 && fdr_trigger_count(1) == 0; i++, at += 2000000, sleep_ms(10))
        fdr_enter_at(p, at), fdr_leave_at(p, at + 1000000);
    assert_int_equal(fdr_trigger_count(1), 1);
    assert_true(comes(1));
    expect_reason("odd", "over 100p99");
    forget_snapshots();
}

static void region_stuck(void **state)
{
    (void)state;
    start("hung: region outer stuck 60ms", NULL);
    fdr_region outer = fdr_region_define("outer", NULL, 0), inner = fdr_region_define("inner", NULL, 0);
    fdr_enter(outer);
    fdr_enter(inner);
    assert_true(comes(1));
    sleep_ms(150);
    assert_int_equal(snapshots(NULL, 0), 1); /* once for each call */
    expect_reason("hung", "outer: ");
    struct fdr_file *f = newest();
    assert_int_equal(fdr_location_info(f, 0)->open_count, 2);
    fdr_file_close(f);
    fdr_leave(inner);
    fdr_leave(outer);
    forget_snapshots();
}

enum { STANDING = 100 };
static void *stand(void *region)
{
    fdr_enter(*(fdr_region *)region);
    for (int i = 0; i < 6000 && (fdr_trigger_count(1) < STANDING || fdr_trigger_count(2) == 0); i++) sleep_ms(10);
    sleep_ms(300); /* fdr looks many times more */
    fdr_leave(*(fdr_region *)region);
    return NULL;
}

/* Each call fires each trigger once, also with more stuck threads than fdr keeps a list for. */
static void many_stuck(void **state)
{
    (void)state;
    pthread_t thread[STANDING];
    start("a: region outer stuck 40ms;b: region outer stuck 400ms", NULL);
    fdr_region outer = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < STANDING; i++) assert_int_equal(pthread_create(&thread[i], NULL, stand, &outer), 0);
    for (int i = 0; i < STANDING; i++) pthread_join(thread[i], NULL);
    assert_int_equal(fdr_trigger_count(1), STANDING);
    assert_in_range(fdr_trigger_count(2), 1, STANDING);
    fdr_finalize();
    forget_snapshots();
}

static void metric_above_and_below(void **state)
{
    (void)state;
    start("high: metric load above 10 ; low: metric load below -5", NULL);
    fdr_metric_id load = fdr_metric_define("load", "1", FDR_F64, FDR_METRIC_GAUGE);
    for (int i = 0; i < 100; i++) fdr_metric_f64(load, (double)(i % 10));
    assert_int_equal(fdr_trigger_count(1), 0);
    for (int i = 0; i < 100; i++) fdr_metric_f64(load, 11.5); /* once: the condition holds all the time */
    assert_int_equal(fdr_trigger_count(1), 1);
    fdr_metric_f64(load, 0);
    fdr_metric_f64(load, 12);
    assert_int_equal(fdr_trigger_count(1), 2);
    assert_true(comes(1));
    assert_int_equal(fdr_trigger_count(2), 0);
    forget_snapshots();
    fdr_metric_f64(load, -5.5);
    assert_true(comes(1));
    sleep_ms(50);
    expect_reason("low", "load: -5.5");
    forget_snapshots();
}

static void metric_rate(void **state)
{
    (void)state;
    start("storm: metric faults rate above 1000", NULL);
    fdr_metric_id faults = fdr_metric_define("faults", "1", FDR_U64, FDR_METRIC_COUNTER);
    uint64_t n = 0;
    for (int i = 0; i < 30; i++, sleep_ms(10)) fdr_metric_u64(faults, n += 1);
    assert_int_equal(fdr_trigger_count(1), 0);
    for (int i = 0; i < 6000 && !fdr_trigger_count(1); i++, sleep_ms(10)) fdr_metric_u64(faults, n += 100000);
    assert_int_equal(fdr_trigger_count(1), 1);
    assert_true(comes(1));
    forget_snapshots();
}

/* One pattern matches several metrics: each is compared with its own previous value. */
static void metrics_side_by_side(void **state)
{
    (void)state;
    start("high: metric load.* above 10;storm: metric load.* rate above 1000", NULL);
    fdr_metric_id a = fdr_metric_define("load.a", "1", FDR_U64, FDR_METRIC_GAUGE);
    fdr_metric_id b = fdr_metric_define("load.b", "1", FDR_U64, FDR_METRIC_GAUGE);
    for (uint64_t i = 0; i < 30; i++, sleep_ms(10)) fdr_metric_u64(a, 1000000), fdr_metric_u64(b, i % 7);
    assert_int_equal(fdr_trigger_count(1), 1);
    assert_int_equal(fdr_trigger_count(2), 0);
    for (uint64_t n = 0; n < 1000000000 && !fdr_trigger_count(2); sleep_ms(10))
        fdr_metric_u64(a, 1000000), fdr_metric_u64(b, n += 100000);
    assert_int_equal(fdr_trigger_count(2), 1);
    assert_true(comes(2));
    forget_snapshots();
}

struct payload {
    uint32_t a;
    int64_t b;
};
static void field_of_an_event(void **state)
{
    (void)state;
    static const struct fdr_field fields[] = {{"a", FDR_U32, offsetof(struct payload, a)},
                                              {"b", FDR_I64, offsetof(struct payload, b)}};
    start("neg: metric io.b below 0", NULL);
    fdr_event_type io = fdr_event_define("io", fields, 2);
    fdr_event(io, &(struct payload){5, 7});
    assert_int_equal(fdr_trigger_count(1), 0);
    fdr_event(io, &(struct payload){5, -7});
    assert_int_equal(fdr_trigger_count(1), 1);
    assert_true(comes(1));
    expect_reason("neg", "io.b: -7");
    forget_snapshots();
}

static void event_count_and_rate(void **state)
{
    (void)state;
    start("tenth: event retry count 10;burst: event retry rate 50/10s;msg: event send count 3", NULL);
    fdr_marker_id retry = fdr_marker_define("retry"), other = fdr_marker_define("other");
    for (int i = 0; i < 35; i++) fdr_marker(retry, 1), fdr_marker(other, 1);
    assert_int_equal(fdr_trigger_count(1), 3);
    assert_int_equal(fdr_trigger_count(2), 0);
    for (int i = 0; i < 15; i++) fdr_marker(retry, 1);
    assert_int_equal(fdr_trigger_count(2), 1);
    for (int i = 0; i < 3; i++) fdr_message_send(1, 1, 0, 8);
    assert_int_equal(fdr_trigger_count(3), 1);
    assert_true(comes(3));
    forget_snapshots();
}

/* N events within any interval of the given length, wherever it begins. */
static void rate_of_a_burst(void **state)
{
    (void)state;
    start("burst: event retry rate 10/1s holdoff 3600s", NULL);
    fdr_marker_id retry = fdr_marker_define("retry");
    const uint64_t ms = 1000000;
    uint64_t now = 1000 * ms;
    fdr_marker_at(retry, 1, now);
    for (int i = 0; i < 9; i++) fdr_marker_at(retry, 1, now + 990 * ms); /* ten in all, within 1 s */
    assert_int_equal(fdr_trigger_count(1), 1);
    for (int i = 0; i < 30; i++) fdr_marker_at(retry, 1, now + 995 * ms); /* the condition still holds */
    assert_int_equal(fdr_trigger_count(1), 1);
    now += 10000 * ms;
    fdr_marker_at(retry, 1, now);
    for (int i = 0; i < 5; i++) fdr_marker_at(retry, 1, now + 900 * ms);
    /* nine within 300 ms; whole seconds count six and four */
    for (int i = 0; i < 4; i++) fdr_marker_at(retry, 1, now + 1200 * ms);
    assert_int_equal(fdr_trigger_count(1), 1);
    fdr_marker_at(retry, 1, now + 1300 * ms); /* the tenth within 400 ms */
    assert_int_equal(fdr_trigger_count(1), 2);
    now += 20000 * ms;
    for (int i = 0; i < 200; i++) fdr_marker_at(retry, 1, now += 120 * ms); /* nine a second */
    assert_int_equal(fdr_trigger_count(1), 2);
    assert_true(comes(1));
    expect_reason("burst", "retry: 10");
    forget_snapshots();
}

/* The rate needs more events than fdr keeps times. */
static void rate_of_many(void **state)
{
    (void)state;
    start("many: event retry rate 100000/1s", NULL);
    fdr_marker_id retry = fdr_marker_define("retry");
    uint64_t now = 1000000000;
    for (int i = 0; i < 300000; i++) fdr_marker_at(retry, 1, now += 10100); /* 99,009 a second */
    assert_int_equal(fdr_trigger_count(1), 0);
    now += 2000000000;
    for (int i = 0; i < 100000 + 100000 / 255 + 1; i++) fdr_marker_at(retry, 1, now += 9000);
    assert_int_equal(fdr_trigger_count(1), 1);
    assert_true(comes(1));
    forget_snapshots();
}

/* Each thread has a value of its own. One hold-off gives one snapshot, however many threads exceed the bound, and the
 * snapshot names one of them. */
static void *own_value(void *metric)
{
    for (int i = 0; i < 20; i++) fdr_metric_u64(*(fdr_metric_id *)metric, i % 2 ? 2000 : 10);
    return NULL;
}
static void values_of_threads(void **state)
{
    pthread_t t[64];
    (void)state;
    start("high: metric load above 1000 holdoff 3600s", NULL);
    fdr_metric_id load = fdr_metric_define("load", "1", FDR_U64, FDR_METRIC_GAUGE);
    for (int i = 0; i < 64; i++) assert_int_equal(pthread_create(&t[i], NULL, own_value, &load), 0);
    for (int i = 0; i < 64; i++) pthread_join(t[i], NULL);
    assert_true(fdr_trigger_count(1) > 0);
    assert_true(comes(1));
    sleep_ms(300);
    assert_int_equal(snapshots(NULL, 0), 1);
    expect_reason("high", "load: 2000");
    struct fdr_file *f = newest();
    const struct fdr_location_info *l = NULL;
    for (size_t i = 0; i < fdr_location_count(f) && !l; i++)
        if (fdr_location_info(f, i)->id == fdr_file_info(f)->trigger_location) l = fdr_location_info(f, i);
    assert_non_null(l);
    fdr_file_close(f);
    forget_snapshots();
}

/* Each of very many metrics crosses the bound once. While it stays above, it does not fire again, however long it is
 * silent. */
static void of_many_metrics(void **state)
{
    enum { MANY = 2500 };
    static fdr_metric_id m[MANY];
    const uint64_t second = 1000000000;
    char name[24];
    (void)state;
    start("high: metric load.* above 1000 holdoff 3600s;jump: metric load.* rate above 400 holdoff 3600s", NULL);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "load.%d", i);
        m[i] = fdr_metric_define(name, "1", FDR_U64, FDR_METRIC_GAUGE);
        fdr_metric_u64_at(m[i], 10, second + (uint64_t)i);
    }
    for (uint64_t at = 3; at < 12; at += 2)
        for (int i = 0; i < MANY; i++) fdr_metric_u64_at(m[i], 2000, at * second + (uint64_t)i);
    assert_int_equal(fdr_trigger_count(1), MANY);
    assert_int_equal(fdr_trigger_count(2), MANY); /* a rate of 995 a second, then of 0 */
    assert_true(comes(1));
    forget_snapshots();
}

static void memory_above(void **state)
{
    (void)state;
    start("fat: memory above 1M", NULL);
    assert_true(comes(1));
    expect_reason("fat", "bytes");
    sleep_ms(250);
    assert_int_equal(snapshots(NULL, 0), 1);
    forget_snapshots();
}

/* ---- after the firing ---- */

/* The file has the events of the window. */
static void window(void **state)
{
    (void)state;
    uint64_t began;
    unsigned early;
    do { /* repeats if this thread lost its processor until the window was over */
        start("w: api window 200ms", NULL);
        fdr_marker_id after = fdr_marker_define("after");
        fdr_marker(after, 0);
        began = fdri_clock_ns(CLOCK_MONOTONIC);
        fdr_trigger_fire(1, 42);
        early = snapshots(NULL, 0);
        fdr_marker(after, 1);
        fdr_trigger_fire(1, 43); /* during the window a firing is only counted */
    } while (fdri_clock_ns(CLOCK_MONOTONIC) - began >= 200000000);
    assert_int_equal(early, 0);
    assert_true(comes(1));
    struct fdr_file *f = newest();
    const struct fdr_total *rows;
    size_t n = fdr_totals(f, &rows);
    uint64_t calls = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].class_ == FDR_IN_MARKER) calls += rows[i].calls;
    assert_int_equal(calls, 2);
    double value;
    memcpy(&value, &fdr_file_info(f)->trigger_value, 8);
    assert_true(value == 42);
    fdr_file_close(f);
    assert_int_equal(fdr_trigger_count(1), 2);
    forget_snapshots();
}

/* The end of the recording ends the window. */
static void window_at_the_end(void **state)
{
    (void)state;
    start("w: api window 3600s", NULL);
    fdr_trigger_fire(1, 1);
    fdr_finalize();
    assert_int_equal(snapshots(NULL, 0), 1);
    forget_snapshots();
}

/* The dumper takes snapshots of triggers. It arms them again before it returns, but after it has counted them. */
static bool serving; /* atomic */
uint64_t __real_fdri_trigger_serve(uint64_t now);
uint64_t __wrap_fdri_trigger_serve(uint64_t now);
uint64_t __wrap_fdri_trigger_serve(uint64_t now)
{
    __atomic_store_n(&serving, true, __ATOMIC_SEQ_CST);
    uint64_t next = __real_fdri_trigger_serve(now);
    __atomic_store_n(&serving, false, __ATOMIC_SEQ_CST);
    return next;
}

static void fire_until_taken(int id, double value)
{
    uint64_t before = fdr_usage().snapshots;
    fdr_trigger_fire(id, value);
    for (int i = 0; i < 6000 && fdr_usage().snapshots == before; i++) sleep_ms(10);
    while (__atomic_load_n(&serving, __ATOMIC_SEQ_CST)) sleep_ms(1);
    assert_int_equal(fdr_usage().snapshots, before + 1);
}

static void holdoff_and_cap(void **state)
{
    (void)state;
    start("h: api holdoff 3600s; c: api keep 2; n: api keep 2,newest", NULL);
    fdr_trigger_fire(1, 1);
    assert_true(comes(1));
    sleep_ms(20);
    fdr_trigger_fire(1, 2);
    sleep_ms(50);
    assert_int_equal(snapshots(NULL, 0), 1);
    for (unsigned i = 0; i < 2; i++) fire_until_taken(2, i);
    for (unsigned i = 2; i < 6; i++) fdr_trigger_fire(2, i), sleep_ms(20);
    assert_int_equal(snapshots(NULL, 0), 3);
    for (unsigned i = 0; i < 6; i++) fire_until_taken(3, i);
    for (int i = 0; i < 6000 && snapshots(NULL, 0) != 5; i++) sleep_ms(10);
    assert_int_equal(snapshots(NULL, 0), 5);
    expect_reason("n", "api");
    assert_int_equal(fdr_trigger_count(3), 6);
    forget_snapshots();
}

/* The counts of trigger `name` in the newest snapshot. */
static void expect_counts(const char *name, uint64_t seen, uint64_t dropped, uint64_t taken)
{
    struct fdr_file *f = newest();
    const struct fdr_tally_row *row;
    size_t n = fdr_tallies(f, &row), i = 0;
    char key[64] = "";
    for (; i < n; i++) {
        fdr_tally_key_text(&row[i], key, sizeof key);
        if (row[i].kind == 1 && strcmp(key, name) == 0) break;
    }
    assert_true(i < n);
    assert_int_equal(row[i].counter[0], seen);
    assert_int_equal(row[i].counter[1], dropped);
    assert_int_equal(row[i].counter[2], taken);
    fdr_file_close(f);
}

/* The hold-off ends when the test says so. Matches in it are counted; the recording and its snapshots have the
 * counts. */
static void matches_in_the_holdoff_are_counted(void **state)
{
    (void)state;
    start("slow: api holdoff 3600s", NULL);
    fire_until_taken(1, 1);
    expect_counts("slow", 1, 0, 0);
    for (unsigned i = 0; i < 3; i++) fdr_trigger_fire(1, i);
    fdri_trigger_serve(fdri_clock_ns(CLOCK_MONOTONIC) + 3600 * 1000000000ull);
    assert_int_equal(fdr_snapshot("after it"), 0);
    expect_counts("slow", 4, 3, 1);
    forget_snapshots();
}

/* A second slow call, 0.8 s after the first, gets a snapshot. */
static void triggers_on_regions_have_a_shorter_holdoff(void **state)
{
    static const struct {
        const char *line;
        uint64_t ms;
    } lines[] = {{"region * over 10ms", 250},
                 {"region * over 20p99", 250},
                 {"region * stuck 5s", 250},
                 {"region * over 10ms keep 2", 250},
                 {"metric * above 5", 1000},
                 {"memory above 1G", 1000},
                 {"region * over 1ms holdoff 3s", 3000},
                 {"api", 1000},
                 {"region * over 1ms keep 2,newest", 1000}};
    static struct fdri_life_settings set;
    struct fdri_watch w;
    (void)state;
    for (int given = 0; given < 2; given++) {
        struct fdr_config c = {.size = sizeof c, .ignore_environment = 1, .holdoff = given ? "2s" : NULL};
        assert_int_equal(fdri_life_settings_parse(&set, &c), 0);
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
            assert_null(fdri_watch_parse(lines[i].line, &set, &w));
            uint64_t ms = given && !strstr(lines[i].line, "holdoff") ? 2000 : lines[i].ms;
            assert_true(w.trigger.holdoff_ns == ms * 1000000);
        }
    }
}

/* ---- calls of MPI, as libfdr-mpi counts them ---- */

/* The row of this thread. */
static fdr_tally row_of_this_thread(void)
{
    const struct {
        uint32_t tid, rest[5];
    } key = {.tid = (uint32_t)syscall(SYS_gettid)};
    fdr_tally row;
    assert_int_equal(fdr_tally_make(FDR_TALLY_CALL, &key, &row), 0);
    return row;
}

enum { WAITS_IN_COLLECTIVE = 5, WAITS_FOR_NOTHING = 9 };
static void is_in_mpi(fdr_tally row, uint64_t calls, fdr_region region, unsigned kind, uint64_t since_ns)
{
    const uint64_t words[] = {calls << 20 | region, (since_ns & ~(uint64_t)0xffff) | (calls & 0xffff),
                              (uint64_t)kind << 32 | (calls & 0xffff)};
    assert_int_equal(fdr_tally_set_all(&row, 1, words), 0);
}

/* Once for each call that lasts so long; this thread runs, which does not matter. The times are made up, and lie ahead
 * of those at which fdr's own thread looks. */
static void stuck_in_mpi(void **state)
{
    const uint64_t second = 1000000000u, t0 = fdri_clock_ns(CLOCK_MONOTONIC) + 3600 * second;
    (void)state;
    start("late: stuck in mpi over 30s", NULL);
    fdr_region in = fdr_region_define("MPI_Allreduce", "mpi:coll", 0),
               test = fdr_region_define("MPI_Test", "mpi:p2p", 0);
    fdr_enter(in), fdr_leave(in);
    fdr_tally row = row_of_this_thread();
    is_in_mpi(row, 7, in, WAITS_IN_COLLECTIVE, t0);
    fdri_watch_see_mpi(t0 + 29 * second);
    assert_int_equal(fdr_trigger_count(1), 0);
    fdri_watch_see_mpi(t0 + 31 * second);
    assert_int_equal(fdr_trigger_count(1), 1);
    assert_true(comes(1));
    expect_reason("late", "MPI_Allreduce (mpi:coll:0): 31.000 s");
    for (uint64_t s = 32; s < 100; s++) fdri_watch_see_mpi(t0 + s * second);
    assert_int_equal(fdr_trigger_count(1), 1);
    is_in_mpi(row, 8, test, WAITS_FOR_NOTHING, t0 + 100 * second);
    fdri_watch_see_mpi(t0 + 200 * second);
    assert_int_equal(fdr_trigger_count(1), 1);
    is_in_mpi(row, 9, in, WAITS_IN_COLLECTIVE, t0 + 200 * second);
    fdri_watch_see_mpi(t0 + 229 * second);
    assert_int_equal(fdr_trigger_count(1), 1);
    fdri_watch_see_mpi(t0 + 232 * second);
    assert_int_equal(fdr_trigger_count(1), 2);
    assert_int_equal(fdr_tally_set(row, 0, (uint64_t)10 << 20), 0); /* it is in no call */
    fdri_watch_see_mpi(t0 + 900 * second);
    assert_int_equal(fdr_trigger_count(1), 2);
    forget_snapshots();
}

static void bad_lines(void **state)
{
    (void)state;
    static const char *const bad[] = {"region",
                                      "region x",
                                      "region x over",
                                      "region x over 5",
                                      "region x over 0ms",
                                      "nonsense",
                                      "metric m",
                                      "metric m above",
                                      "metric m above x",
                                      "metric m above 1e400",
                                      "event e count 0",
                                      "event e count -5",
                                      "event e count 99999999999999999999",
                                      "event e rate -5/1s",
                                      "event e rate 5",
                                      "event e rate 5/",
                                      "memory",
                                      "memory above",
                                      "memory above -1M",
                                      "memory above 1.5",
                                      "memory above 0.0001K",
                                      "memory above -5%",
                                      "memory above 0%",
                                      "memory above 101%",
                                      "api extra",
                                      "stuck",
                                      "stuck in mpi",
                                      "stuck in mpi over",
                                      "stuck in mpi over 0s",
                                      "stuck in io over 5s",
                                      "region x over 1ms keep 0",
                                      "region x over 1ms window",
                                      "",
                                      "   # only a comment"};
    start("glued:api;region first over 1s", NULL);
    assert_int_equal(fdr_trigger_add("third:region x over 1ms"), 3);
    fdr_trigger_fire(1, 1);
    assert_true(comes(1));
    expect_reason("glued", "trigger glued: api (1)");
    fdr_region first = fdr_region_define("first", NULL, 0);
    fdr_enter_at(first, 0), fdr_leave_at(first, 2000000000);
    assert_true(comes(2));
    expect_reason("region first over 1s", "trigger region first over 1s (first: 2000.000 ms)");
    forget_snapshots();
    start("", NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_int_equal(fdr_trigger_add(bad[i]), -EINVAL);
    assert_int_equal(fdr_trigger_add(NULL), -EINVAL);
    for (int i = 1; i <= 64; i++) assert_int_equal(fdr_trigger_add("api"), i);
    assert_int_equal(fdr_trigger_add("api"), -ENOSPC);
    assert_int_equal(fdr_trigger_remove(0), -ENOENT);
    assert_int_equal(fdr_trigger_remove(65), -ENOENT);
    fdr_finalize();
    assert_int_equal(fdr_trigger_add("api"), -ESRCH);
}

/* ---- while others record ---- */

static bool stop;
static void *busy(void *unused)
{
    fdr_region a = fdr_region_define("busy", NULL, 0);
    fdr_marker_id m = fdr_marker_define("busy_marker");
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        fdr_enter(a);
        for (int i = 0; i < 200; i++) __asm__ volatile("");
        fdr_marker(m, 1);
        fdr_leave(a);
    }
    return NULL;
}

/* Regions are defined before and after the trigger, which is added and removed again and again under load. */
static void added_while_others_record(void **state)
{
    (void)state;
    pthread_t t[3];
    char name[32];
    start("", "4,newest");
    fdr_region before = fdr_region_define("mine_before", NULL, 0);
    stop = false;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, busy, NULL), 0);
    int id = fdr_trigger_add("region mine_* over 5ms");
    assert_true(id > 0);
    fdr_region after = fdr_region_define("mine_after", NULL, 0);
    call(before, 6);
    call(after, 6);
    assert_int_equal(fdr_trigger_count(id), 2);
    for (int i = 0; i < 200; i++) {
        int other = fdr_trigger_add(i % 2 ? "region busy over 300ns keep 1" : "event busy_marker count 10000 keep 1");
        assert_true(other == -ENOSPC || other > 0);
        snprintf(name, sizeof name, "filler_%d", i);
        fdr_region_define(name, NULL, 0);
        if (other > 0) assert_int_equal(fdr_trigger_remove(other), 0);
    }
    assert_int_equal(fdr_trigger_remove(id), 0);
    call(before, 6);
    assert_int_equal(fdr_trigger_count(id), 0);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    assert_true(comes(1));
    fdr_finalize();
    forget_snapshots();
}

/* Triggers come and go as long as the program runs. The tables for them must not grow. */
static void tables_stay_small(void **state)
{
    (void)state;
    char name[32];
    start("", NULL);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "many_%d", i);
        fdr_region_define(name, NULL, 0);
    }
    for (int i = 0; i < 200; i++) {
        int id = fdr_trigger_add("region many_* over 1s");
        while (id == -ENOSPC) { /* removed triggers free their places after a grace period */
            sleep_ms(1);
            id = fdr_trigger_add("region many_* over 1s");
        }
        assert_int_equal(fdr_trigger_remove(id), 0);
    }
    assert_in_range(fdri_watch_table->log2, 6, 10);
    fdri_trigger_dumper_wake(); /* frees the replaced tables */
    for (int i = 0; i < 10000 && fdri_atomic_load_relaxed(&fdri_watch_table->older); i++) sleep_ms(1);
    assert_null(fdri_atomic_load_relaxed(&fdri_watch_table->older));
    fdr_finalize();
    forget_snapshots();
}

/* Adds a trigger in the place of a removed one: ids in one place are 64 apart. */
static int new_trigger_in_a_freed_slot(int removed, const char *line)
{
    for (;; sleep_ms(1)) { /* removed triggers free their places after a grace period */
        int id = fdr_trigger_add(line);
        assert_true(id > 0);
        if (id % 64 == removed % 64) return id;
        assert_int_equal(fdr_trigger_remove(id), 0);
    }
}

/* The cap of a trigger does not count the snapshots of an earlier trigger in its place, nor remove them. */
static void caps_of_removed_triggers(const char *line)
{
    int id = 0;
    start("", NULL);
    for (unsigned i = 1; i <= 3; i++) {
        id = id ? new_trigger_in_a_freed_slot(id, line) : fdr_trigger_add(line);
        fdr_trigger_fire(id, i);
        assert_true(comes(i));
        assert_int_equal(fdr_trigger_remove(id), 0);
    }
    fdr_finalize();
    assert_int_equal(snapshots(NULL, 0), 3);
    forget_snapshots();
}
static void cap_of_a_reused_slot(void **state)
{
    (void)state;
    caps_of_removed_triggers("mine: api keep 1");
    caps_of_removed_triggers("mine: api keep 1,newest");
}

/* A trigger at its cap takes snapshots again when its files have been moved away. */
static void cap_until_they_are_moved(void **state)
{
    (void)state;
    start("mine: api keep 2", NULL);
    for (unsigned i = 1; i <= 2; i++) {
        fdr_trigger_fire(1, i);
        assert_true(comes(i));
    }
    for (unsigned i = 0; i < 4; i++) fdr_trigger_fire(1, i), sleep_ms(20);
    assert_int_equal(snapshots(NULL, 0), 2);
    forget_snapshots();
    for (int i = 0; i < 3000 && !snapshots(NULL, 0); i++) fdr_trigger_fire(1, 3), sleep_ms(20);
    assert_true(comes(1));
    forget_snapshots();
}

static void in_a_handler(int number)
{
    (void)number;
    fdr_trigger_fire(1, 7);
}

static void fired_in_a_handler(void **state)
{
    (void)state;
    start("sig: api", NULL);
    signal(SIGUSR2, in_a_handler);
    raise(SIGUSR2);
    assert_true(comes(1));
    expect_reason("sig", "7");
    signal(SIGUSR2, SIG_DFL);
    forget_snapshots();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(region_over),
                                       cmocka_unit_test(region_over_below_the_minimum),
                                       cmocka_unit_test(region_over_at),
                                       cmocka_unit_test(region_over_p99),
                                       cmocka_unit_test(region_stuck),
                                       cmocka_unit_test(many_stuck),
                                       cmocka_unit_test(metric_above_and_below),
                                       cmocka_unit_test(metric_rate),
                                       cmocka_unit_test(metrics_side_by_side),
                                       cmocka_unit_test(field_of_an_event),
                                       cmocka_unit_test(event_count_and_rate),
                                       cmocka_unit_test(rate_of_a_burst),
                                       cmocka_unit_test(rate_of_many),
                                       cmocka_unit_test(values_of_threads),
                                       cmocka_unit_test(of_many_metrics),
                                       cmocka_unit_test(memory_above),
                                       cmocka_unit_test(window),
                                       cmocka_unit_test(window_at_the_end),
                                       cmocka_unit_test(holdoff_and_cap),
                                       cmocka_unit_test(matches_in_the_holdoff_are_counted),
                                       cmocka_unit_test(triggers_on_regions_have_a_shorter_holdoff),
                                       cmocka_unit_test(stuck_in_mpi),
                                       cmocka_unit_test(bad_lines),
                                       cmocka_unit_test(added_while_others_record),
                                       cmocka_unit_test(tables_stay_small),
                                       cmocka_unit_test(cap_of_a_reused_slot),
                                       cmocka_unit_test(cap_until_they_are_moved),
                                       cmocka_unit_test(fired_in_a_handler)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
