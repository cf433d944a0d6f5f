/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300
 * Memory balance in 1 MiB (Wagner 2015, eq. 4.1: average use of the bins over the greatest use of one). The
 * programs call deep, with calls of all durations at each depth. The test checks the balance at the first
 * reduction, and its average over the second half. Presented times make each run the same. */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { REGIONS_MOST = 600, LOOK_EVERY = 1024, EVENTS = 1200000 };

static fdr_region region[REGIONS_MOST], open_region[600];
static uint32_t regions, depth, lengths;
static uint64_t seed, now, events;

/* Durations of the calls: equally many of each order of magnitude; mostly short; all short. */
enum { ALL_LENGTHS, MOSTLY_SHORT, SHORT };
static void pass_time(void)
{
    if (lengths == ALL_LENGTHS) now += rnd(&seed, 1u << rnd(&seed, 22));
    else if (lengths == SHORT || rnd(&seed, 8)) now += 20 + rnd(&seed, 200);
    else
        now += rnd(&seed, 8)   ? 300 + rnd(&seed, 4000)
               : rnd(&seed, 8) ? 5000 + rnd(&seed, 200000)
                               : 300000 + rnd(&seed, 1000000);
}

static void go_to(uint32_t to)
{
    for (; depth < to; events++, pass_time()) {
        open_region[depth] = region[rnd(&seed, 8) ? depth % regions : rnd(&seed, regions)];
        fdr_enter_at(open_region[depth++], now);
    }
    for (; depth > to; events++, pass_time()) fdr_leave_at(open_region[--depth], now);
}

/* One step of the program; `deep` is the greatest depth. */
static void walk(uint32_t deep) { go_to(!depth || (depth < deep && rnd(&seed, 2)) ? depth + 1 : depth - 1); }
static void dive(uint32_t deep)
{
    go_to(deep * 2 / 3 + rnd(&seed, deep / 3));
    go_to(0);
}
static void saw(uint32_t deep) { go_to(1 + rnd(&seed, deep)); }
static void at_the_bottom(uint32_t deep)
{
    go_to(deep - 20 + rnd(&seed, 20));
    if (!rnd(&seed, 5000)) go_to(rnd(&seed, deep - 20));
}
static void spikes(uint32_t deep)
{
    go_to(1 + rnd(&seed, 5));
    go_to(rnd(&seed, 3));
    if (!rnd(&seed, 2000)) go_to(deep);
}

static const struct program {
    const char *name;
    void (*step)(uint32_t deep);
    uint32_t deep, lengths, regions;
    double first, later; /* the least balance required */
} programs[] = {
    {"walk", walk, 20, ALL_LENGTHS, 8, 0.9, 0.9},
    {"walk", walk, 25, ALL_LENGTHS, 8, 0.9, 0.9},
    {"saw", saw, 25, ALL_LENGTHS, 8, 0.9, 0.9},
    /* less than 0.90 at the first reduction: 0.884 */
    {"dive", dive, 25, ALL_LENGTHS, 8, 0.88, 0.9},
    {"walk", walk, 30, ALL_LENGTHS, 8, 0.9, 0.9},
    {"walk", walk, 30, MOSTLY_SHORT, 600, 0.9, 0.9},
    {"walk", walk, 40, MOSTLY_SHORT, 600, 0.9, 0.9},
    {"saw", saw, 40, ALL_LENGTHS, 8, 0.9, 0.9},
    {"dive", dive, 40, SHORT, 8, 0.9, 0.9},
    {"saw", saw, 50, MOSTLY_SHORT, 600, 0.75, 0.75},
    {"walk", walk, 100, MOSTLY_SHORT, 600, 0.75, 0.75},
    {"walk", walk, 200, ALL_LENGTHS, 8, 0.75, 0.75},
    {"walk", walk, 300, MOSTLY_SHORT, 600, 0.75, 0.75},
    {"saw", saw, 300, ALL_LENGTHS, 8, 0.75, 0.75},
    {"dive", dive, 300, MOSTLY_SHORT, 8, 0.75, 0.75},
    {"spikes", spikes, 300, MOSTLY_SHORT, 8, 0.75, 0.75},
    /* The accounts and one bin of 512 bytes for each of so many depths fill the buffer, and most of these bins are
     * hardly used. */
    {"bottom", at_the_bottom, 300, SHORT, 8, 0.70, 0.72},
    {"bottom", at_the_bottom, 300, SHORT, 600, 0.64, 0.68},
    {"spikes", spikes, 300, MOSTLY_SHORT, 600, 0.70, 0.75},
    {"dive", dive, 500, MOSTLY_SHORT, 8, 0.66, 0.75},
};

static double look(void)
{
    struct fdr_file *f = take();
    double balance = fdr_file_info(f)->memory_balance;
    fdr_file_close(f);
    return balance;
}

static void begin_program(const struct program *p)
{
    char name[16];
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "1M"});
    regions = p->regions;
    for (uint32_t i = 0; i < regions; i++) {
        snprintf(name, sizeof name, "r%u", i);
        region[i] = fdr_region_define(name, "deep.c", i);
    }
    lengths = p->lengths;
    seed = 88172645463325252u;
    now = 1000;
    depth = 0;
    events = 0;
}

static void run(const struct program *p)
{
    double first = 0, sum = 0;
    uint32_t looks = 0;
    uint64_t reductions = 0;
    begin_program(p);
    for (uint32_t round = 0; events < EVENTS; round++) {
        for (uint64_t until = events + LOOK_EVERY; events < until;) p->step(p->deep);
        reductions = fdr_usage().reductions;
        if (first == 0 && reductions) first = look();
        if (events < EVENTS / 2 || round % 32) continue;
        sum += look();
        looks++;
    }
    assert_true(first > 0 && reductions > 100);
    print_message("%-8s to %3u, %3u regions, lengths %u: %.3f, then %.3f on average; %llu of %llu events, %llu steps\n",
                  p->name, p->deep, p->regions, p->lengths, first, sum / looks,
                  (unsigned long long)fdr_usage().stored * 2, (unsigned long long)events,
                  (unsigned long long)reductions);
    assert_true(first >= p->first);
    assert_true(sum / looks >= p->later);
    assert_int_equal(fdr_usage().lost, 0);
    struct fdr_file *f = take();
    balance(f);
    end(f);
}

static void few_bins_are_half_empty(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) run(&programs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_bins_are_half_empty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
