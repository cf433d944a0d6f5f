/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P3,P5
 * P3, P5: the totals do not fit into memory. Histograms go first; then the regions used least share the row [rest].
 * A region with a row of its own has exact totals. No call is counted twice or missing. */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { MANY = 5000, EARLY = 8, HOT = 8, LONG_NAME = 24 };

static fdr_region region[MANY];
static uint64_t calls_of[MANY], time_of[MANY], now;

static void call(int i, uint64_t ns)
{
    fdr_enter_at(region[i], now += 10);
    fdr_leave_at(region[i], now += ns);
    calls_of[i]++;
    time_of[i] += ns;
}

/* A few regions are called often from the start. Then come thousands that are called once, as when a program
 * starts. When all rows are in use, the hot regions begin. */
static void define_all(void)
{
    char name[LONG_NAME];
    memset(calls_of, 0, sizeof calls_of);
    memset(time_of, 0, sizeof time_of);
    now = 1000;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, "full", 0);
        assert_int_not_equal(region[i], 0);
    }
}

static void run(void)
{
    for (int k = 0; k < 2000; k++) call(k % EARLY, 100);
    for (int i = EARLY; i < MANY - HOT; i++) {
        call(i, 50);
        if (i % 16 == 0) call(i / 16 % EARLY, 100);
    }
    for (int k = 0; k < 200000; k++) call(MANY - HOT + k % HOT, 200 + (uint64_t)k % 5);
}

static int index_of(uint32_t id)
{
    for (int i = 0; i < MANY; i++)
        if (region[i] == id) return i;
    return -1;
}

struct seen {
    uint64_t calls, inclusive, rest_calls;
    int early, hot;
};

/* Compares every row with the calls made. */
static struct seen check_rows(struct fdr_file *f)
{
    struct seen s = {0};
    const struct fdr_total *rows;
    for (size_t k = 0, n = fdr_totals(f, &rows); k < n; k++) {
        const struct fdr_total *t = &rows[k];
        if (t->class_ != FDR_IN_REGION) continue;
        s.calls += t->calls;
        s.inclusive += t->inclusive_ns;
        if (t->rest) {
            s.rest_calls += t->calls;
            continue;
        }
        int i = index_of(t->id);
        assert_true(i >= 0);
        assert_false(t->at_least);
        assert_true(t->calls == calls_of[i] && t->inclusive_ns == time_of[i]);
        uint64_t in_histogram = 0;
        for (int b = 0; b < 64; b++) in_histogram += t->histogram[b];
        if (t->has_histogram) assert_true(in_histogram == t->calls);
        s.early += i < EARLY;
        s.hot += i >= MANY - HOT;
    }
    return s;
}

static void least_used_fold(const char *strategy, const char *buffer)
{
    begin(&(struct fdr_config){.buffer = buffer, .strategy = strategy, .timer = "monotonic"});
    fdr_metric_id metric = fdr_metric_define("late", "1", FDR_F64, FDR_METRIC_GAUGE);
    define_all();
    run();
    uint64_t calls = 0, time = 0;
    for (int i = 0; i < MANY; i++) calls += calls_of[i], time += time_of[i];
    for (int k = 0; k < 1000; k++)
        fdr_metric_f64_at(metric, -0.5, now += 10), fdr_message_send_at(1, 2, 0, 1ull << 40, now);
    struct fdr_file *f = take();
    struct seen s = check_rows(f);
    const struct fdr_total *m = total(f, FDR_IN_METRIC, metric), *sent = total(f, FDR_IN_MESSAGE, 1);
    assert_true(m->calls == 1000 && m->sum_u == bits(-500.0));
    assert_true(sent->calls == 1000 && sent->sum_u == 1000ull << 40);
    assert_true(s.rest_calls > 0); /* else the test proves nothing */
    assert_true(s.calls == calls && s.inclusive == time);
    assert_int_equal(s.early, EARLY);
    assert_int_equal(s.hot, HOT);
    balance(f);
    end(f);
}

static void P5_telescope_keeps_what_is_used(void **state)
{
    (void)state;
    least_used_fold("telescope", "1M");
}
static void P5_whole_keeps_what_is_used(void **state)
{
    (void)state;
    least_used_fold("whole", "1M");
}

/* A few calls of long duration are worth a row. */
static void P5_long_region_has_a_row(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "1M", .strategy = "telescope", .timer = "monotonic"});
    define_all();
    for (int k = 0; k < 3; k++) call(0, 3600000000000u);
    for (int i = 1; i < MANY; i++)
        for (int k = 0; k < 10; k++) call(i, 50);
    struct fdr_file *f = take();
    assert_true(check_rows(f).rest_calls > 0); /* else the test proves nothing */
    assert_int_equal(total(f, FDR_IN_REGION, region[0])->calls, 3);
    end(f);
}

/* The totals of the epochs sum up to rows and [rest], whatever region a row stood for before. */
static void P5_epochs_stay_sums(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "1M", .strategy = "telescope", .timer = "monotonic"});
    define_all();
    run();
    uint64_t calls = 0, all = 0;
    for (int i = 0; i < MANY; i++) calls += calls_of[i];
    struct fdr_file *f = take();
    const struct fdr_epoch_info *e;
    size_t n = fdr_epochs(f, &e);
    assert_true(n > 1);
    for (size_t i = 0; i < n; i++) all += e[i].calls;
    assert_true(all == calls);
    end(f);
}

/* Regions that first appear when calls have filled the memory must be in the epochs, too. */
static void P5_epochs_include_late_regions(void **state)
{
    (void)state;
    enum { FILLING = 1500000, LATE = 2500 };
    begin(&(struct fdr_config){.buffer = "4M", .strategy = "telescope", .timer = "monotonic"});
    define_all();
    uint64_t seed = 0x9E3779B97F4A7C15u, all = 0;
    for (int k = 0; k < FILLING + LATE * 4; k++) {
        now += rnd(&seed, 1 << 16);
        call(k < FILLING ? k % EARLY : EARLY + (k - FILLING) % LATE, rnd(&seed, 1 << 16));
    }
    struct fdr_file *f = take();
    const struct fdr_epoch_info *e;
    size_t n = fdr_epochs(f, &e);
    for (size_t i = 0; i < n; i++) {
        assert_true(e[i].exact);
        all += e[i].calls;
    }
    assert_true(fdr_usage().reduced > 0); /* else the test proves nothing */
    assert_true(all == FILLING + LATE * 4);
    balance(f);
    end(f);
}

/* All regions are called equally often. A region takes over a row once, not at every call. */
static void P5_equal_rows_do_not_evict_each_other(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "1M", .strategy = "whole", .timer = "monotonic"});
    define_all();
    for (int k = 0; k < 60; k++)
        for (int i = 0; i < MANY; i++) call(i, 50);
    struct fdr_file *f = take();
    struct seen s = check_rows(f);
    assert_true(s.calls == 60ull * MANY && s.rest_calls > 0);
    assert_true(s.rest_calls % 60 == 0); /* a region in [rest] has all its calls there */
    end(f);
}

/* Histograms that grow upwards, downwards and by turns are moved. Other histograms and rows of new regions then use
 * their old places. */
static void P5_histograms_that_grow(void **state)
{
    (void)state;
    enum { GROWING = 40, BUCKETS = 36, MIDDLE = 18 };
    static uint32_t expected[GROWING + BUCKETS * 2][64];
    memset(expected, 0, sizeof expected);
    begin(&(struct fdr_config){.buffer = "8M", .strategy = "telescope", .timer = "monotonic"});
    define_all();
    for (int wide = 1; wide <= BUCKETS; wide++) {
        for (int i = 0; i < GROWING; i++) {
            int bucket = i % 3 == 0 ? wide : i % 3 == 1 ? BUCKETS - wide : MIDDLE + (wide & 1 ? wide / 2 : -wide / 2);
            call(i, (1ull << bucket) + 1);
            expected[i][bucket == 0 ? 1 : bucket]++;
        }
        for (int k = 0; k < 2; k++) { /* a new region */
            int i = GROWING + 2 * wide - 2 + k;
            call(i, 100);
            expected[i][6]++;
        }
    }
    struct fdr_file *f = take();
    check_rows(f);
    for (int i = 0; i < GROWING + BUCKETS * 2; i++) {
        const struct fdr_total *t = total(f, FDR_IN_REGION, region[i]);
        assert_true(t->has_histogram);
        for (int b = 0; b < 64; b++) assert_int_equal(t->histogram[b], expected[i][b]);
    }
    balance(f);
    end(f);
}

/* Regions that a rule names keep their rows. If such a region comes when no row is left, it goes to [rest], and the
 * rule still holds. A leave must match the call that the rule left out. */
static void P3_rules_hold_without_a_row(void **state)
{
    (void)state;
    enum {
        /* r1...: excluded; r2...: two calls; r3...: every fifth call; r4...: all calls */
        FIRST = 1000,
        LAST = 4999,
        CALLS = 10,
        EACH = 1000
    };
    char *rules = write_rules("exclude name r1???\nfirst 2 name r2???\nevery 5 name r3???\nmin 1ns name r4???\n");
    begin(&(struct fdr_config){.buffer = "1M", .strategy = "whole", .filter = rules});
    define_all();
    for (int k = 0; k < CALLS; k++) {
        for (int i = LAST; i >= FIRST; i--) { /* r4... first, so that these get the rows there are */
            fdr_enter_at(region[i], now += 10);
            fdr_enter_at(region[0], now += 10);
            fdr_leave_at(region[0], now += 50);
            fdr_leave_at(region[i], now += 10);
        }
    }
    struct fdr_file *f = take();
    const struct fdr_ledger_row *outer = row(f, 0, FDR_IN_REGION, 1), *inner = row(f, 0, FDR_IN_REGION, 2);
    assert_true(fdr_location_info(f, 0)->rows_folded >= 2 * EACH * CALLS); /* else the test proves nothing */
    assert_int_equal(inner->presented + outer->presented, 8 * EACH * CALLS);
    /* inside of calls of r4... and every fifth of r3... */
    assert_int_equal(inner->presented, EACH * (CALLS + CALLS / 5));
    assert_int_equal(outer->filtered + inner->filtered, EACH * (CALLS + CALLS + CALLS / 5 * 4));
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves + fdr_location_info(f, 0)->unbalanced, 0);
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    balance(f);
    end(f);
    unlink(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P5_telescope_keeps_what_is_used), cmocka_unit_test(P5_whole_keeps_what_is_used),
        cmocka_unit_test(P5_long_region_has_a_row),        cmocka_unit_test(P5_epochs_stay_sums),
        cmocka_unit_test(P5_epochs_include_late_regions),  cmocka_unit_test(P5_equal_rows_do_not_evict_each_other),
        cmocka_unit_test(P5_histograms_that_grow),         cmocka_unit_test(P3_rules_hold_without_a_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
