/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300 promise=P3,P4,P9
 * P3, P4, P9: fdr joins duration bands, in up to three steps, if memory is short for many partitions, and only
 * then. All shown events must stay true. A failure shows as a wrong number of steps, or as events that differ from
 * the oracle's. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { REGIONS = 16 };
static fdr_region region[REGIONS];
static fdr_marker_id mark;
static uint64_t seed, now;

static void start(const char *buffer, const char *pin, const char *resolution)
{
    seed = 11;
    now = 1000000;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = buffer, .pin = pin, .resolution = resolution});
    for (int i = 0; i < REGIONS; i++) region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "join.c", 1);
    mark = fdr_marker_define("mark");
}

/* Calls of all bands except the longest, down to depth `most`; some share a tick. */
static void present(uint32_t events, uint32_t most)
{
    for (uint32_t i = 0; i < events; i++) {
        uint32_t what = rnd(&seed, 40);
        now += rnd(&seed, 3) == 0 ? 0 : rnd(&seed, 40) == 0 ? rnd(&seed, 20000) : rnd(&seed, 300);
        if (what == 0) both_marker(&o, mark, i, now);
        else if (o.depth < 1 || (o.depth < most && what <= 20)) both_enter(&o, region[rnd(&seed, REGIONS)], now);
        else both_leave(&o, now);
    }
}

static int steps(void)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    const struct fdri_arena_location *l = fdri_bins_at(a, a->super->location_first);
    while (!(l->flags & FDRI_ARENA_LOCATION_LIVE)) l = fdri_bins_at(a, l->next);
    int joined = l->flags & FDRI_ARENA_LOCATION_JOINED, longest = l->flags & FDRI_ARENA_LOCATION_JOINED_LONG,
        all = l->flags & FDRI_ARENA_LOCATION_JOINED_ALL;
    assert_true((joined || !longest) && (longest || !all));
    return (joined != 0) + (longest != 0) + (all != 0);
}

/* After a band was joined to another one, its own partitions get no more events. */
static uint64_t newest_of_band(uint32_t band)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    const struct fdri_arena_location *l = fdri_record_self.loc;
    uint64_t newest = 0;
    for (uint32_t off = l->parts_first; off;) {
        const struct fdri_arena_part *p = fdri_bins_at(a, off);
        if (p->class_ == FDRI_ARENA_CLASS_REGION && p->band == band) newest = fdri_bits_max(newest, p->last_tick);
        off = p->next;
    }
    return newest;
}

/* steps: number of joins in such a buffer, with calls down to depth `most`. what: the ledger's words for calls of
 * the joined bands. */
static const struct joined {
    const char *buffer;
    uint32_t most;
    int steps;
    const char *what;
} joined[] = {
    {"768K", 8, 1, "calls of 256 ns .. 262"}, {"1M", 16, 2, "calls >= 256 ns"}, {"256K", 24, 3, "calls at depth"}};

static void goes_on(const struct joined *j)
{
    uint64_t before[FDRI_ARENA_BANDS];
    for (uint32_t b = 0; b < FDRI_ARENA_BANDS; b++) before[b] = newest_of_band(b);
    present(100000, j->most);
    for (uint32_t b = 0; b < FDRI_ARENA_BANDS - 1; b++) {
        bool gone = j->steps == 3 || (b && (int)b <= j->steps);
        if (gone) assert_int_equal(newest_of_band(b), before[b]);
        else assert_true(newest_of_band(b) > before[b]);
    }
    if (j->steps > 1) assert_true(newest_of_band(FDRI_ARENA_BANDS - 1) > before[FDRI_ARENA_BANDS - 1]);
}

static void P3_P4_P9_what_is_shown_stays_true(void **state)
{
    static const char *const resolutions[] = {"0", "128ns"}, *const pins[] = {"0", "1ms"};
    (void)state;
    for (int i = 0; i < 12; i++) {
        const struct joined *j = &joined[i / 4];
        start(j->buffer, pins[i / 2 % 2], resolutions[i % 2]);
        present(60, j->most);
        assert_int_equal(steps(), 0);
        present(400000, j->most);
        assert_int_equal(steps(), j->steps);
        if (i / 2 % 2 == 0) goes_on(j);
        check((struct oracle_rules){.shift = i % 2 ? 7 : 0});
    }
}

/* Most calls end in a tick in which others ended while bands are joined. The reader must distinguish later
 * calls of that tick from those stored before. */
static void P9_calls_of_one_tick(void **state)
{
    (void)state;
    for (uint64_t at = 1; at < 80; at++) {
        bool pin = at % 2; /* with FDR_PIN, pinned partitions come before both */
        start("256K", pin ? "20us" : "0", pin ? "4096ns" : "65536ns");
        seed = at * 0x9E3779B97F4A7C15u;
        present(4000, 24);
        assert_int_equal(steps(), 3);
        check((struct oracle_rules){.shift = pin ? 12 : 16});
    }
}

/* Band 0 has calls of the tick in which bands were joined. They are given back before later calls of that tick, at
 * great depth, where most bins are open. */
static void P3_P9_later_in_the_tick(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 40; at++) {
        seed = (64 + 72 * at) * 0x9E3779B97F4A7C15u;
        now = 1000000;
        begin(&(struct fdr_config){.buffer = "256K", .bin = "4K", .resolution = "4096ns"});
        for (uint32_t i = 1000 + rnd(&seed, 8000); i; i--) {
            uint32_t what = rnd(&seed, 40);
            now += rnd(&seed, 100) < 80 ? 0 : rnd(&seed, rnd(&seed, 40) ? 300 : 20000);
            if (!rnd(&seed, 600)) now += rnd(&seed, 2000000);
            if (what == 0) both_marker(&o, 1, i, now);
            else if (!o.depth || (o.depth < 60 && what <= 20)) both_enter(&o, 1 + rnd(&seed, 16), now);
            else both_leave(&o, now);
        }
        check((struct oracle_rules){.shift = 12});
    }
}

static bool names(struct fdr_file *f, const char *what)
{
    const struct fdr_reduction_info *r;
    size_t n = fdr_reductions(f, &r);
    for (size_t i = 0; i < n; i++)
        if (strstr(r[i].what, what)) return true;
    return false;
}

static void the_ledger_says_what_went(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        start(joined[i].buffer, "0", "0");
        present(1500000, joined[i].most);
        struct fdr_file *f = take();
        assert_int_equal(steps(), joined[i].steps);
        assert_true(names(f, joined[i].what));
        assert_true(fdr_file_info(f)->memory_balance > 0.84);
        balance(f);
        end(f);
    }
    start("1M", "0", "0"); /* now deeper */
    present(2000000, 36);
    struct fdr_file *f = take();
    assert_true(steps() > 0 && fdr_file_info(f)->memory_balance > 0.84);
    end(f);
}

/* A rewind to a mark set before bands were joined. */
static void a_rewind_reaches_back(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        start(all ? "256K" : "512K", "0", "0");
        present(30, 24);
        while (o.depth) both_leave(&o, now += 10);
        fdr_rewind_mark();
        assert_int_equal(steps(), 0);
        for (int i = 0; i < 400000 && steps() < (all ? 3 : 1); i++) {
            uint32_t depth = 1 + rnd(&seed, 24);
            for (uint32_t d = 0; d < depth; d++) fdr_enter_at(region[d % REGIONS], now += rnd(&seed, 300));
            for (uint32_t d = 0; d < depth; d++)
                fdr_leave_at(region[(depth - 1 - d) % REGIONS], now += rnd(&seed, 300));
        }
        assert_true(steps() >= (all ? 3 : 1));
        fdr_rewind();
        present(100000, 24);
        struct fdr_file *f = take();
        balance(f);
        end(f);
    }
}

/* Every ended call that counts as kept is shown. */
static void all_kept_is_shown(struct fdr_file *f)
{
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    uint64_t kept = 0, shown = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].class_ == FDRI_ARENA_CLASS_REGION) kept += rows[i].kept;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    for (struct fdr_read_event e; fdr_iter_next(it, &e);) shown += e.kind == FDR_ENTER && !e.reduced;
    fdr_iter_close(it);
    assert_true(kept > 0);
    assert_int_equal(shown, kept);
}

/* A rewind to a mark set after bands were joined, in ticks with many calls. */
static void P9_a_rewind_in_a_tick(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < (SANITIZED ? 4 : 40); round++) {
        start("256K", "0", "65536ns");
        seed = (round + 1) * 0x9E3779B97F4A7C15u;
        present(4000, 24);
        assert_int_equal(steps(), 3);
        for (int i = 0; i < 20; i++) {
            fdr_rewind_mark();
            present(rnd(&seed, 50), 24);
            fdr_rewind();
            present(rnd(&seed, 50), 24);
        }
        while (o.depth) both_leave(&o, now);
        struct fdr_file *f = take();
        balance(f);
        all_kept_is_shown(f);
        end(f);
    }
}

static void not_where_there_is_room(void **state)
{
    (void)state;
    start("1M", "0", "0");
    present(1500000, 3);
    assert_true(fdr_usage().reduced > 0);
    assert_int_equal(steps(), 0);
    check((struct oracle_rules){0});
    start("8M", "0", "0");
    present(300000, 24);
    assert_int_equal(fdr_usage().reduced, 0);
    assert_int_equal(steps(), 0);
    check((struct oracle_rules){0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_P4_P9_what_is_shown_stays_true),
        cmocka_unit_test(P9_calls_of_one_tick),
        cmocka_unit_test(P3_P9_later_in_the_tick),
        cmocka_unit_test(the_ledger_says_what_went),
        cmocka_unit_test(a_rewind_reaches_back),
        cmocka_unit_test(P9_a_rewind_in_a_tick),
        cmocka_unit_test(not_where_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
