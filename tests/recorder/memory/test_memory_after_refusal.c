/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P3,P5
 * P3, P5: a thread that was refused memory gets it later, when there is some again: partitions, levels, totals
 * rows. An event without room takes no memory from other kinds of events. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>

#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 3000, FEW = 5, LATER = 300, DEEP = 300, BINS = 4096 };
static fdr_region region[REGIONS];
static uint64_t now;

static void start(int regions)
{
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "1M", .timer = "monotonic"});
    define_regions(region, regions);
    now = 1000;
}

static void deep(int depth)
{
    for (int d = 0; d < depth; d++) fdr_enter_at(region[d % 4], now += 10);
    while (depth--) fdr_leave_at(region[depth % 4], now += 10);
}

static void once(fdr_region r)
{
    fdr_enter_at(r, now += 10);
    fdr_leave_at(r, now += 10);
}

/* Simulates other threads that take all free bins, and then give them back. */
static uint32_t taken[BINS], count;
static void take_all(void)
{
    uint32_t off;
    for (count = 0; count < BINS && (off = fdri_bins_take(&fdri_life_recording.arena, 0)); count++) taken[count] = off;
    assert_in_range(count, 1, BINS - 1);
}
static void give_all(void)
{
    while (count) fdri_bins_give(&fdri_life_recording.arena, taken[--count]);
}

/* A burst has made the thread search rarely, and the thread records rarely itself. It must still find the memory
 * soon. */
static void P3_slow_thread_finds_memory_soon(void **state)
{
    enum { SLOW = 100, APART_NS = 20000000 };
    (void)state;
    start(REGIONS);
    deep(3);
    take_all();
    for (int i = 0; i < 50; i++) deep(DEEP);
    give_all();
    fdr_marker_id marker = fdr_marker_define("slow");
    uint64_t lost = fdr_usage().lost;
    for (int i = 0; i < SLOW; i++) fdr_marker_at(marker, 1, now += APART_NS);
    assert_in_range(fdr_usage().lost - lost, 0, 1);
    fdr_finalize();
}

/* Calls without a level stay counted at the depth at which levels ended, even when more levels exist later. */
static void P3_calls_without_level_keep_their_depth(void **state)
{
    enum { AGAIN = 50, PAUSE_NS = 20000000 };
    uint64_t lost = 0, presented = 0;
    (void)state;
    start(FEW);
    deep(3);
    take_all();
    for (int i = 0; i < 20; i++) deep(DEEP);
    uint32_t from = fdri_record_self.loc->no_level_depth,
             levels = fdri_arena_levels_in(fdri_record_self.loc->level_blocks);
    uint64_t refused = fdri_record_self.loc->presented_overflow;
    assert_true(from == levels + 1 && from < DEEP); /* else the test proves nothing */
    assert_int_equal(refused, 20 * (DEEP - levels));
    give_all();
    now += PAUSE_NS;
    for (int i = 0; i < AGAIN; i++) deep(DEEP);
    assert_true(fdri_arena_levels_in(fdri_record_self.loc->level_blocks) >= DEEP);
    struct fdr_file *f = take();
    const struct fdr_location_info *l = fdr_location_info(f, 0);
    assert_int_equal(l->levels_refused, refused);
    assert_int_equal(l->levels_refused_from, from);
    assert_int_equal(row(f, 0, FDR_IN_REGION, from)->presented, refused + AGAIN);
    assert_true(row(f, 0, FDR_IN_REGION, from)->lost >= refused);
    for (uint32_t d = 1; d <= DEEP; d++) {
        if (d > from) assert_int_equal(row(f, 0, FDR_IN_REGION, d)->presented, AGAIN);
        presented += row(f, 0, FDR_IN_REGION, d)->presented;
        lost += row(f, 0, FDR_IN_REGION, d)->lost;
    }
    assert_int_equal(presented, 3 + (20 + AGAIN) * DEEP);
    assert_int_equal(lost, fdr_usage().lost);
    assert_true(row(f, 0, FDR_IN_REGION, DEEP)->kept);
    balance(f);
    end(f);
}

/* A handler left by longjmp after the call was presented and before any other account counted it. */
static void left_when_presented(uint64_t *presented)
{
    ++*presented;
    fdri_record_self.loc->busy = 1; /* set by a frame that no longer exists */
    once(region[0]);
    assert_int_equal(fdri_record_self.loc->abandoned, 1);
    struct fdr_file *f = take();
    balance(f);
    end(f);
}

static void P3_longjmp_between_two_accounts(void **state)
{
    (void)state;
    start(FEW);
    deep(3);
    take_all();
    deep(DEEP);
    assert_true(fdri_record_self.loc->presented_overflow > 0); /* the call has no level */
    give_all();
    left_when_presented(&fdri_record_self.loc->presented_overflow);
    begin(&(struct fdr_config){.buffer = "1M", .timer = "monotonic", .depth = "2"});
    region[0] = fdr_region_define("again", "room_again.c", 1);
    for (int d = 1; d <= 2; d++) fdr_enter_at(region[0], now += 10);
    left_when_presented(&fdri_thread_level(&fdri_record_self, 3)->presented); /* the call lies deeper than FDR_DEPTH */
}

static void P5_rows(void **state)
{
    (void)state;
    int i = 0, own = 0;
    start(REGIONS);
    deep(3);
    take_all();
    while (!fdri_record_self.loc->rows_folded && i < REGIONS - LATER - FEW) once(region[i++]);
    assert_true(fdri_record_self.loc->rows_folded); /* else the test proves nothing */
    for (int k = 0; k < FEW; k++, i++) once(region[i]);
    give_all();
    for (int k = 0; k < LATER; k++) once(region[i + k]);
    struct fdr_file *f = take();
    for (int k = 0; k < LATER; k++) own += total(f, FDR_IN_REGION, region[i + k])->calls == 1;
    assert_in_range(own, LATER / 2, LATER);
    end(f);
}

/* The encoder's table of an event with many fields may be larger than any bin. If it comes when the meta end is
 * used up, such events find no room, but calls still do. */
static void P3_an_event_without_room_costs_no_calls(void **state)
{
    enum { EVENTS = 300000, FIELDS = 16 };
    static const uint64_t payload[FIELDS];
    struct fdr_field field[FIELDS];
    uint64_t seed = 5, calls = 0, events = 0;
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "256K", .bin = "512", .timer = "monotonic"});
    for (int i = 0; i < FIELDS; i++)
        field[i] = (struct fdr_field){.name = "f", .type = FDR_U64, .offset = (size_t)i * sizeof payload[0]};
    fdr_event_type wide = fdr_event_define("wide", field, FIELDS);
    for (int i = 0; i < 8; i++) region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "room_again.c", 1);
    now = 1000;
    for (int i = 0; i < EVENTS; i++) {
        uint32_t depth = fdri_record_self.loc ? fdri_record_self.loc->depth : 0;
        now += 1 + rnd(&seed, 1ull << rnd(&seed, 16));
        if (i > EVENTS / 2 && i % 10 == 0) fdr_event_at(wide, payload, now);
        else if (!depth || (depth < 12 && rnd(&seed, 2))) fdr_enter_at(region[rnd(&seed, 8)], now);
        else fdr_leave_at(fdri_record_self.top->region, now);
    }
    struct fdr_file *f = take();
    for (uint32_t d = 0; d <= 12; d++) {
        calls += row(f, 0, FDR_IN_REGION, d)->lost;
        events += row(f, 0, FDR_IN_USER, d)->lost;
    }
    assert_true(events > 1000); /* else the test proves nothing */
    assert_int_equal(calls, 0);
    balance(f);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {/* this one runs first: with many definitions there would be no room for these */
                                       cmocka_unit_test(P3_an_event_without_room_costs_no_calls),
                                       cmocka_unit_test(P3_calls_without_level_keep_their_depth),
                                       cmocka_unit_test(P3_longjmp_between_two_accounts),
                                       cmocka_unit_test(P3_slow_thread_finds_memory_soon), cmocka_unit_test(P5_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
