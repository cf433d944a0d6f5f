/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300
 * Bands 1 and 2 become one where memory is little for many partitions, and only there; what is shown stays true. */
#include "tests/api_fixture.h"
#include "tests/rnd.h"

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

/* Calls of all bands but the longest, down to `most`, in ticks that they share now and then. */
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

static bool is_joined(void)
{
    const struct fdri_arena *a = &fdri_rec.arena;
    const struct fdr_location *l = fdri_at(a, a->super->location_first);
    while (!(l->flags & FDR_LOCATION_LIVE)) l = fdri_at(a, l->next);
    return l->flags & FDR_LOCATION_JOINED;
}

/* Since the bands are one nothing is added to any partition of band 1. */
static uint64_t newest_of_band(uint32_t band)
{
    const struct fdri_arena *a = &fdri_rec.arena;
    const struct fdr_location *l = fdri_self.loc;
    uint64_t newest = 0;
    for (uint32_t off = l->parts_first; off;) {
        const struct fdr_part *p = fdri_at(a, off);
        if (p->class_ == FDR_CLASS_REGION && p->band == band) newest = fdr_max(newest, p->last_tick);
        off = p->next;
    }
    return newest;
}

static void P3_P4_P9_what_is_shown_stays_true(void **state)
{
    static const char *const resolutions[] = {"0", "128ns"}, *const pins[] = {"0", "1ms"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        start("256K", pins[i / 2], resolutions[i % 2]);
        present(3000, 24);
        assert_false(is_joined());
        present(300000, 24);
        assert_true(is_joined());
        uint64_t before = newest_of_band(1);
        present(100000, 24);
        assert_int_equal(newest_of_band(1), before);
        assert_true(newest_of_band(2) > before);
        check((struct oracle_rules){.shift = i % 2 ? 7 : 0});
    }
}

static bool names_both(struct fdr_file *f)
{
    const struct fdr_reduction_info *r;
    size_t n = fdr_reductions(f, &r);
    for (size_t i = 0; i < n; i++)
        if (strstr(r[i].what, "of 256 ns .. 262")) return true;
    return false;
}

static void the_ledger_says_what_went(void **state)
{
    (void)state;
    start("256K", "0", "0");
    present(600000, 24);
    struct fdr_file *f = take();
    assert_true(is_joined() && names_both(f));
    balance(f);
    end(f);
    start("1M", "0", "0");
    present(2000000, 36);
    f = take();
    assert_true(is_joined() && fdr_file_info(f)->memory_balance > 0.84);
    end(f);
}

/* A rewind to a mark of the time before. */
static void a_rewind_reaches_back(void **state)
{
    (void)state;
    start("512K", "0", "0");
    present(3000, 24);
    while (o.depth) both_leave(&o, now += 10);
    fdr_rewind_mark();
    assert_false(is_joined());
    for (int i = 0; i < 400000 && !is_joined(); i++) {
        uint32_t depth = 1 + rnd(&seed, 24);
        for (uint32_t d = 0; d < depth; d++) fdr_enter_at(region[d % REGIONS], now += rnd(&seed, 300));
        for (uint32_t d = 0; d < depth; d++) fdr_leave_at(region[(depth - 1 - d) % REGIONS], now += rnd(&seed, 300));
    }
    assert_true(is_joined());
    fdr_rewind();
    present(100000, 24);
    struct fdr_file *f = take();
    balance(f);
    end(f);
}

static void not_where_there_is_room(void **state)
{
    (void)state;
    start("1M", "0", "0");
    present(1500000, 3);
    assert_true(fdr_usage().reduced > 0);
    assert_false(is_joined());
    check((struct oracle_rules){0});
    start("8M", "0", "0");
    present(300000, 24);
    assert_int_equal(fdr_usage().reduced, 0);
    assert_false(is_joined());
    check((struct oracle_rules){0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_P4_P9_what_is_shown_stays_true),
        cmocka_unit_test(the_ledger_says_what_went),
        cmocka_unit_test(a_rewind_reaches_back),
        cmocka_unit_test(not_where_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
