/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,slow timeout=300 promise=P2,P3,P5,P8
 * P2, P3, P5, P8: an epoch ends in a thread that calls thousands of functions. No operation walks all their totals
 * rows. At any moment of the walk, totals, epochs and ledger equal those of the oracle. test_epoch_walk [FIRST
 * [ROUNDS]] runs other random programs. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/oracle_clock.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { ROUNDS = SANITIZED ? 3 : 12, MOST = 4000, LOOKS = 24 };
static uint64_t seed;
static fdr_region region[MOST];

static struct fdri_arena_epochs *epochs(void)
{
    return fdri_record_self.loc ? fdri_strategy_epochs(&fdri_record_self) : NULL;
}

/* Number of rows of the base that changed since the last call. */
static uint32_t moved(uint64_t *was)
{
    const struct fdri_arena_epoch_base *b = fdri_bins_at(&fdri_life_recording.arena, epochs()->base_first);
    uint32_t n = 0, changed = 0;
    for (;; b = fdri_bins_at(&fdri_life_recording.arena, b->next)) {
        for (uint32_t k = 0; k < b->count; k++, n++) {
            changed += was[n] != b->row[k].calls;
            was[n] = b->row[k].calls;
        }
        if (!b->next) return changed;
    }
}

static void P2_no_operation_walks_them_all(void **state)
{
    enum { REGIONS = 4000, EVENTS = 1500000, STEP = 600 };
    static uint64_t was[REGIONS + 8];
    uint32_t version = 0, worst = 0, epoch = 0, cuts = 0;
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "8M", .timer = "monotonic"});
    define_regions(region, REGIONS);
    seed = 88172645463325252u;
    for (uint64_t i = 0, time = 1000; i < EVENTS; i++) {
        fdr_region r = region[rnd(&seed, REGIONS)];
        fdr_enter_at(r, time += 1 + rnd(&seed, 100));
        for (int leaves = 0; leaves < 2; leaves++) {
            if (leaves) fdr_leave_at(r, time += rnd(&seed, 2000));
            if (!epochs() || epochs()->version == version) continue;
            uint32_t rows = moved(was);
            cuts += fdri_record_self.loc->epoch != epoch;
            if (version && rows > worst) worst = rows;
            version = epochs()->version;
            epoch = fdri_record_self.loc->epoch;
        }
    }
    assert_true(cuts > 10 && worst); /* else the test proves nothing */
    assert_in_range(worst, 1, STEP);
    fdr_finalize();
}

static uint32_t tracked(void) { return epochs() ? epochs()->tracked : 0; }

/* Each row gets its base when epochs begin. A thread with thousands of functions begins epochs while it has few
 * rows. */
static void P2_no_operation_lists_them_all(void **state)
{
    enum { REGIONS = 4000, EVENTS = 200000, MOST_LISTED = 400 };
    uint32_t before = 0, worst = 0;
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "16M", .timer = "monotonic"});
    define_regions(region, REGIONS);
    for (uint64_t i = 0, time = 1000; i < EVENTS; i++) {
        fdr_enter_at(region[i % REGIONS], time += 10);
        fdr_leave_at(region[i % REGIONS], time += 10);
        worst = (uint32_t)fdri_bits_max(worst, tracked() - before);
        before = tracked();
    }
    assert_in_range(before, REGIONS, REGIONS + 8);
    assert_in_range(worst, 2, MOST_LISTED);
    fdr_finalize();
}

struct program {
    struct fdr_config config;
    struct oracle_rules rules;
    uint32_t events, deepest, regions, recursive;
    bool comes_late; /* the program calls new functions while rows are walked */
};
#define PICK(list) list[rnd(&seed, sizeof list / sizeof *list)]

static struct program program_of(uint64_t round)
{
    static const char *const buffers[] = {"1M", "2M", "4M", "8M", "16M"};
    static const uint32_t shifts[] = {0, 0, 7};
    static const char *const deepest[] = {NULL, NULL, "12"};
    seed = (round + 1) * 0x9E3779B97F4A7C15u;
    for (int i = 0; i < 8; i++) rnd(&seed, 2);
    struct program p = {.config = {.strategy = "telescope", .buffer = PICK(buffers), .timer = "tsc"}};
    p.config.depth = PICK(deepest);
    p.rules.shift = PICK(shifts);
    p.rules.depth = p.config.depth ? (uint32_t)atoi(p.config.depth) : 0;
    p.events = 100000 + rnd(&seed, 400000);
    p.deepest = 1 + rnd(&seed, rnd(&seed, 3) ? 12 : 60);
    p.regions = 600 + rnd(&seed, MOST - 600);
    p.recursive = rnd(&seed, 2) * rnd(&seed, 8);
    p.comes_late = rnd(&seed, 2);
    return p;
}

/* Some regions are called often and recursively, most of them now and then. */
static fdr_region choose(const struct program *p, uint32_t number)
{
    uint32_t known = p->comes_late ? p->regions / 3 + (uint32_t)((uint64_t)p->regions * 2 / 3 * number / p->events)
                                   : p->regions;
    if (o.depth && rnd(&seed, 10) < p->recursive) return o.event[o.open[o.depth - 1]].id;
    return region[rnd(&seed, rnd(&seed, 4) ? 40 : known)];
}

static void one_event(const struct program *p, uint32_t number)
{
    if (o.depth == p->deepest || (o.depth && rnd(&seed, 20) < 10)) {
        fdr_leave(o.event[o.open[o.depth - 1]].id);
        oracle_leave(&o, now());
    } else {
        fdr_region r = choose(p, number);
        fdr_enter(r);
        oracle_enter(&o, r, now());
    }
}

static const char *look(struct program *p)
{
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(0, &wrong);
    if (!wrong) wrong = oracle_check(&o, &p->rules, f, fdr_location_info(f, 0)->id);
    if (f) fdr_file_close(f);
    return wrong;
}

static bool right(uint64_t round, uint32_t *in_the_middle)
{
    struct program p = program_of(round);
    const char *wrong = NULL;
    begin(&p.config);
    if (!fdri_life_recording.ticks) skip(); /* fdr can use no counter of this machine, and has reported that */
    ticks_are_ns(p.rules.shift);
    define_regions(region, (int)p.regions);
    for (uint32_t i = 0, looks = 0; i < p.events && !wrong; i++) {
        one_event(&p, i);
        if (!epochs() || !epochs()->totals_pending || looks == LOOKS || rnd(&seed, 40)) continue;
        looks++;
        wrong = look(&p);
        ++*in_the_middle;
    }
    if (!wrong) wrong = look(&p);
    if (wrong)
        print_message("program %llu (buffer %s, shift %u, depth %s, %u events, %u regions): %s\n",
                      (unsigned long long)round, p.config.buffer, p.rules.shift, p.config.depth ? p.config.depth : "-",
                      p.events, p.regions, wrong);
    fdr_finalize();
    return !wrong;
}

static uint64_t first = 1, rounds = ROUNDS;
static void P3_P5_in_the_middle(void **state)
{
    uint64_t wrong = 0;
    uint32_t in_the_middle = 0;
    (void)state;
    for (uint64_t i = 0; i < rounds; i++) wrong += !right(first + i, &in_the_middle);
    oracle_free(&o);
    assert_int_equal(wrong, 0);
    assert_true(in_the_middle); /* else the test proves nothing */
}

/* To merge two epochs, the reader looks up each totals row among those of the first. A block with more rows than
 * any valid one is damaged; the reader must not search it that often. */
static void P8_rows_without_end(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "8M", .timer = "monotonic"});
    define_regions(region, MOST);
    seed = 88172645463325252u;
    for (uint64_t time = 1000; !epochs() || !epochs()->totals_pending || epochs()->count < 3;) {
        fdr_region r = region[rnd(&seed, MOST)];
        fdr_enter_at(r, time += 10);
        fdr_leave_at(r, time += 1 + rnd(&seed, 2000));
    }
    const struct fdri_arena_superblock *sb = fdri_life_recording.arena.super;
    size_t bytes = sb->arena_bytes;
    uint8_t *all = malloc(bytes);
    for (int damaged = 0; damaged < 2; damaged++) {
        memcpy(all, sb, bytes); /* as after a kill: no block has a check */
        struct fdri_arena_epochs *e = (void *)(all + fdri_record_self.loc->epochs_off);
        struct fdri_arena_epoch *begun = &e->epoch[e->count - 2];
        struct fdri_arena_epoch_rows *b = (void *)(all + begun->rows_off);
        uint32_t virgin = (uint32_t)(sb->bins_off + (sb->virgin & UINT32_MAX) * sb->bin_bytes), most = 16384;
        assert_true(virgin + most < (sb->virgin >> 32) * FDRI_ARENA_META_ALIGN);
        if (damaged) {
            memcpy(all + virgin, b, sizeof *b + b->count * sizeof b->row[0]);
            b = (void *)(all + (begun->rows_off = virgin));
            b->head.bytes = most;
            /* the other rows are 0, so the sums of the block do not change */
            b->count = (most - sizeof *b) / sizeof b->row[0];
        }
        struct fdr_file *f;
        const struct fdr_epoch_info *r;
        assert_in_range(fdr_file_open_memory(all, bytes, &f, NULL, 0), FDR_WHOLE, FDR_DAMAGED);
        size_t n = fdr_epochs(f, &r);
        assert_true(n > 1);
        for (size_t i = 0; i < n; i++) assert_int_equal(r[i].exact, !damaged || i + 1 < n);
        fdr_file_close(f);
    }
    free(all);
    fdr_finalize();
}

int main(int argc, char **argv)
{
    if (argc > 1) first = strtoull(argv[1], NULL, 10), rounds = 1;
    if (argc > 2) rounds = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_no_operation_walks_them_all),
                                       cmocka_unit_test(P2_no_operation_lists_them_all),
                                       cmocka_unit_test(P3_P5_in_the_middle), cmocka_unit_test(P8_rows_without_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
