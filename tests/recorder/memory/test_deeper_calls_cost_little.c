/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120
 * Memory has long been in small pieces when a program calls deeper than ever before. The new levels of the shadow
 * stack must cost few stored events, at most 5 %. Presented times make each run the same. */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 600, USUAL = 15, PIECES_FROM = 400000 };

static fdr_region region[REGIONS], open_region[300];
static uint32_t depth;
static uint64_t seed = 88172645463325252u, now = 1000, events;

static void pass_time(void)
{
    now += rnd(&seed, 8)   ? 20 + rnd(&seed, 200)
           : rnd(&seed, 8) ? 300 + rnd(&seed, 4000)
           : rnd(&seed, 8) ? 5000 + rnd(&seed, 200000)
                           : 300000 + rnd(&seed, 1000000);
}

static void go_to(uint32_t to)
{
    for (; depth < to; events++, pass_time()) {
        open_region[depth] = region[rnd(&seed, REGIONS)];
        fdr_enter_at(open_region[depth++], now);
    }
    for (; depth > to; events++, pass_time()) fdr_leave_at(open_region[--depth], now);
}

static uint64_t kept(void)
{
    struct fdr_file *f = take();
    const struct fdr_ledger_row *rows;
    uint64_t n = 0;
    size_t count = fdr_ledger(f, &rows);
    for (size_t i = 0; i < count; i++) n += rows[i].kept;
    fdr_file_close(f);
    return n;
}

static void deeper_calls_cost_little_history(void **state)
{
    static const uint32_t deeper[] = {17, 25, 33, 41, 49, 57, 65};
    char name[16];
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "1M"});
    for (uint32_t i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%u", i);
        region[i] = fdr_region_define(name, "deeper.c", i);
    }
    while (events < PIECES_FROM) go_to(!depth || (depth < USUAL && rnd(&seed, 2)) ? depth + 1 : depth - 1);
    assert_true(fdr_usage().reductions > 100);
    for (size_t i = 0; i < sizeof deeper / sizeof *deeper; i++) {
        go_to(0);
        uint64_t before = kept();
        go_to(deeper[i]);
        uint64_t after = kept();
        print_message("to level %u: %llu calls kept, then %llu\n", deeper[i], (unsigned long long)before,
                      (unsigned long long)after);
        assert_true(after >= before - before / 20);
        go_to(0);
        for (uint64_t until = events + 40000; events < until;)
            go_to(!depth || (depth < USUAL && rnd(&seed, 2)) ? depth + 1 : depth - 1);
    }
    assert_int_equal(fdr_usage().lost, 0);
    go_to(0);
    end(take());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(deeper_calls_cost_little_history)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
