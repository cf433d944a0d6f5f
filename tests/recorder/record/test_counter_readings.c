/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300 promise=P3,P8 */
/* P3, P8: counter readings in little memory. The kept ones are spread evenly over the whole run. The increments
 * between any two of them are exact for running counts. The ledger counts all other readings.
 * FDR_READINGS_TEST=1000000000 presents that many. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/arena/arena.h"
#include "tests/support/thinned_recording.h"

#define BUFFER (256u << 10)
enum { SERIES = 5, LEAST_HELD = 64 }; /* of one series, at any time */

struct reading {
    uint64_t series, number, count, gauge;
};
static const struct fdr_field fields[] = {
    {"series", FDR_U64, 0}, {"reading", FDR_U64, 8}, {"count", FDR_U64, 16}, {"gauge", FDR_U64, 24}};

static void start(const char *strategy) { thinned_start("readings", strategy, "256K"); }

static struct fdr_file *finish(void)
{
    assert_true(fdr_usage().buffer_bytes <= BUFFER);
    return thinned_finish();
}

static uint64_t how_many(uint64_t usual)
{
    const char *said = getenv("FDR_READINGS_TEST"), *sanitizers = getenv("FDR_SANITIZE");
    if (said) return strtoull(said, NULL, 10);
    return sanitizers && *sanitizers ? usual / 20 : usual; /* sanitizers slow the test down by that much */
}

/* The value of a running counter at reading n, and of a gauge. */
static uint64_t count_at(uint64_t series, uint64_t n) { return n * (1000 + series) + (n * 0x9E3779B97F4A7C15u >> 58); }
static uint64_t gauge_at(uint64_t series, uint64_t n) { return (n * 0xBF58476D1CE4E5B9u >> 54) + series; }

static void present(fdr_event_type type, uint64_t series, uint64_t before, uint64_t n)
{
    struct reading r = {series, n, count_at(series, n), gauge_at(series, n)};
    fdr_reading(type, &r, before, n);
}

/* ---- checks of every recording ---- */

static void check_ledger(struct fdr_file *f, uint64_t presented)
{
    const struct fdr_ledger_row *row;
    const struct fdr_reduction_info *step;
    uint64_t sum = 0, given = 0, reduced = 0;
    size_t n = fdr_ledger(f, &row), steps;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(row[i].presented, row[i].kept + row[i].filtered + row[i].reduced + row[i].lost);
        assert_int_equal(row[i].lost, 0);
        if (row[i].class_ != FDR_IN_USER) continue;
        sum += row[i].presented;
        reduced += row[i].reduced;
    }
    assert_int_equal(sum, presented);
    steps = fdr_reductions(f, &step);
    for (size_t i = 0; i < steps; i++) given += step[i].events;
    assert_true(steps > 0 && given <= reduced);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE); /* the reader knows the lines of all steps */
}

struct held {
    uint64_t count, first, last, least, most, sum, risen; /* gaps between neighbours, without those at both ends */
};

static void look_through(struct fdr_file *f, struct held *held)
{
    struct fdr_select select = {.classes = 1u << FDR_IN_USER};
    struct fdr_iter *it = fdr_iter_open(f, &select);
    struct fdr_read_event e;
    uint64_t value[SERIES] = {0}, gap_before[SERIES] = {0};
    assert_non_null(it);
    memset(held, 0, SERIES * sizeof *held);
    while (fdr_iter_next(it, &e)) {
        uint64_t s = e.field[0], n = e.field[1];
        struct held *h = &held[s];
        assert_true(s < SERIES && e.depth == 0);
        assert_int_equal(e.field[2], count_at(s, n));
        assert_int_equal(e.field[3], gauge_at(s, n));
        if (!h->count) {
            h->first = n;
            h->least = UINT64_MAX;
        } else {
            uint64_t gap = n - h->last;
            assert_true(n > h->last);
            h->sum += e.field[2] - value[s]; /* the increment since the last kept reading; none is counted twice */
            if (h->count > 1) {              /* the first reading lies on no grid, so its gap does not count */
                if (gap < h->least) h->least = gap;
                if (gap > h->most) h->most = gap;
                h->risen += gap > gap_before[s];
                gap_before[s] = gap;
            } else {
                gap_before[s] = UINT64_MAX;
            }
        }
        h->count++;
        h->last = n;
        value[s] = e.field[2];
    }
    fdr_iter_close(it);
}

/* ---- tests ---- */

static void P3_thinned_evenly_over_the_whole_run(void **state)
{
    (void)state;
    uint64_t count = how_many(3000000), before = 1;
    struct held held[SERIES], *h = &held[0];
    start("whole");
    fdr_event_type type = fdr_event_define("reading", fields, 4);
    present(type, 0, 1, 1);
    for (uint64_t n = 2; n <= count; before = n++) present(type, 0, before, n);
    present(type, 0, count + 1, count + 1);
    struct fdr_file *f = finish();
    look_through(f, held);
    check_ledger(f, count + 1);
    print_message("%llu readings: one of %llu kept, %llu in all\n", (unsigned long long)count,
                  (unsigned long long)h->most, (unsigned long long)h->count);
    assert_int_equal(h->first, 1);
    assert_int_equal(h->last, count + 1);
    assert_int_equal(h->sum, count_at(0, count + 1) - count_at(0, 1));
    assert_true(h->count > LEAST_HELD);
    uint64_t step = h->most;
    assert_true(step > 1 && (step & (step - 1)) == 0);
    /* evenly spread up to the last reading */
    assert_true(h->least == step || h->least == count + 1 - count / step * step);
    assert_int_equal(h->count, 2 + count / step);
    fdr_file_close(f);
}

/* Threads are read in turn. Some have news at every reading, others seldom. */
static void P3_series_of_different_pace(void **state)
{
    (void)state;
    uint64_t count = how_many(1000000), presented = 0, before[SERIES] = {0};
    struct held held[SERIES];
    start("whole");
    fdr_event_type type = fdr_event_define("reading", fields, 4);
    for (uint64_t n = 1; n <= count; n++)
        for (uint64_t s = 0; s < SERIES; s++) {
            bool last = n == count;
            if (n > 1 && !last && n % (3 * s + 1)) continue;
            present(type, s, n == 1 || last ? n : before[s], n);
            before[s] = n;
            presented++;
        }
    struct fdr_file *f = finish();
    look_through(f, held);
    check_ledger(f, presented);
    for (uint64_t s = 0; s < SERIES; s++) {
        assert_int_equal(held[s].first, 1);
        assert_int_equal(held[s].last, count);
        assert_int_equal(held[s].sum, count_at(s, count) - count_at(s, 1));
        assert_true(held[s].count > LEAST_HELD);
        /* one reading for each stretch of 2^k, so two neighbours lie less than two stretches apart */
        assert_true(held[s].most < 4 * held[0].most);
    }
    fdr_file_close(f);
}

/* The newest readings are complete, older ones ever sparser, and the first one is kept. */
static void P3_telescope_thins_with_age(void **state)
{
    (void)state;
    uint64_t count = how_many(1000000), before = 1;
    struct held held[SERIES], *h = &held[0];
    start("telescope");
    fdr_event_type type = fdr_event_define("reading", fields, 4);
    present(type, 0, 1, 1);
    for (uint64_t n = 2; n <= count; before = n++) present(type, 0, before, n);
    struct fdr_file *f = finish();
    look_through(f, held);
    check_ledger(f, count);
    print_message("%llu readings: %llu kept, gaps of %llu to %llu\n", (unsigned long long)count,
                  (unsigned long long)h->count, (unsigned long long)h->most, (unsigned long long)h->least);
    assert_int_equal(h->first, 1);
    assert_int_equal(h->last, count);
    assert_int_equal(h->least, 1);
    assert_int_equal(h->sum, count_at(0, count) - count_at(0, 1));
    assert_true(h->count > LEAST_HELD && h->most < count / 4);
    fdr_file_close(f);
}

/* Events of the same type that are no readings, also inside calls, before or after the readings. */
static void beside_other_events(void **state)
{
    (void)state;
    struct held held[SERIES];
    struct reading r = {1, 7, count_at(1, 7), gauge_at(1, 7)};
    for (int calls_first = 0; calls_first < 2; calls_first++) {
        start("whole");
        fdr_event_type type = fdr_event_define("reading", fields, 4);
        fdr_region region = fdr_region_define("call", NULL, 0);
        struct fdr_select select = {.classes = 1u << FDR_IN_USER};
        struct fdr_read_event e;
        uint64_t inside = 0;
        if (!calls_first) present(type, 0, 0, 1);
        fdr_enter(region);
        fdr_event(type, &r);
        present(type, 0, 1, 2);
        fdr_leave(region);
        present(type, 0, 2, 3);
        struct fdr_file *f = finish();
        struct fdr_iter *it = fdr_iter_open(f, &select);
        while (fdr_iter_next(it, &e)) inside += e.depth;
        fdr_iter_close(it);
        assert_int_equal(inside, calls_first ? 2 : 0);
        if (!calls_first) {
            look_through(f, held);
            assert_int_equal(held[0].count, 3);
            assert_int_equal(held[1].count, 1);
        }
        fdr_file_close(f);
    }
}

/* Strategies `first` and `last` keep stretches of time. They treat readings like other events. */
static void other_strategies_know_no_levels(void **state)
{
    (void)state;
    static const char *const strategy[] = {"first", "last"};
    struct held held[SERIES];
    for (int i = 0; i < 2; i++) {
        start(strategy[i]);
        fdr_event_type type = fdr_event_define("reading", fields, 4);
        for (uint64_t n = 1; n <= 100000; n++) present(type, 0, n - 1, n);
        struct fdr_file *f = finish();
        look_through(f, held);
        assert_int_equal(held[0].most, 1);
        assert_int_equal(i ? held[0].last : held[0].first, i ? 100000 : 1);
        fdr_file_close(f);
    }
}

static size_t in_calls(struct fdr_file *f)
{
    size_t n = 0;
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e)) n += e.kind == FDR_EVENT && e.depth;
    fdr_iter_close(it);
    return n;
}

/* The location's block is lost, and with it the mark that its events are readings. The reader must still show them
 * outside of all calls, also after recovery of the file. */
static void P8_known_without_their_location(void **state)
{
    (void)state;
    static _Alignas(64) uint8_t image[BUFFER * 2];
    char message[200];
    struct fdr_file *f;
    /* first with all levels, then with the lowest ones given back */
    for (uint64_t count = 40; count < 1000000; count *= 100) {
        start("whole");
        fdr_event_type type = fdr_event_define("reading", fields, 4);
        for (uint64_t n = 1; n <= count; n++) present(type, 0, n - 1, n);
        assert_int_equal(fdr_snapshot("test"), 0);
        FILE *in = fopen(fdr_last_snapshot(), "r");
        size_t bytes = fread(image, 1, sizeof image, in);
        fclose(in);
        const struct fdri_arena_superblock *sb = (const void *)image;
        assert_int_equal(sb->location_count, 1);
        memset(image + sb->location_first, 0, sizeof(struct fdri_arena_location));
        assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_DAMAGED);
        assert_int_equal(in_calls(f), 0);
        assert_int_equal(fdr_file_recover(f, fdr_last_snapshot(), message, sizeof message), 0);
        fdr_file_close(f);
        assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
        assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
        assert_int_equal(in_calls(f), 0);
        fdr_file_close(f);
        unlink(fdr_last_snapshot());
        fdr_finalize();
    }
}

/* User events inside of open calls. Without their location, they must not be taken for readings. */
static void P8_events_in_open_calls_are_no_readings(void **state)
{
    (void)state;
    static _Alignas(64) uint8_t image[BUFFER * 2];
    char message[200];
    struct fdr_file *f;
    start("whole");
    fdr_event_type type = fdr_event_define("reading", fields, 4);
    const uint64_t values[4] = {0};
    uint64_t now = 1000;
    fdr_enter_at(fdr_region_define("outer", NULL, 0), now);
    for (int i = 0; i < 100; i++) fdr_event_at(type, values, ++now);
    fdr_enter_at(fdr_region_define("inner", NULL, 0), ++now);
    for (int i = 0; i < 200; i++) fdr_event_at(type, values, ++now);
    assert_int_equal(fdr_snapshot("test"), 0);
    FILE *in = fopen(fdr_last_snapshot(), "r");
    size_t bytes = fread(image, 1, sizeof image, in);
    fclose(in);
    memset(image + ((const struct fdri_arena_superblock *)(void *)image)->location_first, 0,
           sizeof(struct fdri_arena_location));
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_DAMAGED);
    assert_int_equal(in_calls(f), 300);
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
    fdr_finalize();
}

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/fdr-readings-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int drop_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_thinned_evenly_over_the_whole_run),
        cmocka_unit_test(P3_series_of_different_pace),
        cmocka_unit_test(P3_telescope_thins_with_age),
        cmocka_unit_test(beside_other_events),
        cmocka_unit_test(other_strategies_know_no_levels),
        cmocka_unit_test(P8_known_without_their_location),
        cmocka_unit_test(P8_events_in_open_calls_are_no_readings),
    };
    return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
