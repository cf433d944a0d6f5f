/* SPDX-License-Identifier: MIT */
/* ctest: label=threads promise=P1,P5 timeout=120
 * P1, P5: the governor counts the calls of all threads. It mutes the region that costs most for the worth of its calls,
 * lets it back, and says so in the file. The test looks itself, at times that it makes up, also of the processor. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "recorder/governor/governor.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "tests/support/api_fixture.h"

enum { LOOKS = 25, AT_MOST = 200, BURN_NS = 2000000 };
static uint64_t now_ns, cpu_ns;
static fdr_region tiny, longer, ruled, watched;

static void start(const char *buffer, double target)
{
    begin(&(struct fdr_config){.buffer = buffer,
                               .timer = "tsc",
                               .filter = write_rules("min 1ns name ruled\n"),
                               .triggers = "slow: region watched over 100s",
                               .overhead = "off"});
    assert_true(fdri_governor_start(target));
    tiny = fdr_region_define("tiny", NULL, 0);
    longer = fdr_region_define("longer", NULL, 0);
    ruled = fdr_region_define("ruled", NULL, 0);
    watched = fdr_region_define("watched", NULL, 0);
    cpu_ns = BURN_NS;
    now_ns = fdri_governor_look(1000000000, cpu_ns);
}

static void call(fdr_region r, int times)
{
    for (int i = 0; i < times; i++) fdr_enter(r), fdr_leave(r);
}

/* Calls of r, and a long call around. */
static void work(fdr_region r, int times)
{
    fdr_enter(longer);
    call(r, times);
    fdr_leave(longer);
}

/* The program has used 2 ms since the last look. */
static void look(void)
{
    uint64_t next_ns = fdri_governor_look(now_ns, cpu_ns += BURN_NS);
    assert_true(next_ns > now_ns);
    now_ns = next_ns;
}

static void P1_mutes_and_lets_back(void **state)
{
    (void)state;
    start("4M", 0.05);
    for (int i = 0; i < LOOKS; i++) work(tiny, 5000), look();
    assert_true(fdri_names_is_muted(tiny));
    assert_false(fdri_names_is_muted(longer));
    for (int i = 0; i < AT_MOST && fdri_names_is_muted(tiny); i++) work(0, 0), look(); /* no calls: it comes back */
    assert_false(fdri_names_is_muted(tiny));
    assert_true(fdri_names_was_muted(tiny));
    struct fdr_file *f = take();
    const struct fdr_governor *g = fdr_governor(f);
    assert_non_null(g);
    assert_int_equal(g->regions, 1);
    assert_int_equal(g->region[0].region, tiny);
    assert_int_equal(g->region[0].times, 1);
    assert_int_equal(g->muted_now, 0);
    assert_int_equal(g->changes, 2);
    assert_int_equal(g->changes_made, 2);
    assert_true(g->change[0].muted && !g->change[1].muted && g->change[0].time_ns < g->change[1].time_ns);
    assert_true(g->change[0].share > 0.05 && g->change[0].all_shares >= g->change[0].share / 2);
    assert_true(g->recorded_call_ns > g->muted_call_ns && g->muted_call_ns > 0 && g->target == 0.05);
    assert_true(fdr_region_was_muted(f, tiny) && !fdr_region_was_muted(f, longer));
    end(f);
}

static void P1_spares_rules_and_triggers(void **state)
{
    (void)state;
    start("4M", 0);
    for (int i = 0; i < LOOKS; i++) work(ruled, 2000), work(watched, 2000), work(tiny, 2000), look();
    assert_true(fdri_names_is_muted(tiny));
    assert_false(fdri_names_was_muted(ruled) || fdri_names_was_muted(watched));
    end(take());
}

static void P5_counts_stay_exact(void **state)
{
    const struct fdr_total *rows;
    uint64_t untimed = 0, all = 0;
    (void)state;
    start("4M", 0.02);
    for (int i = 0; i < LOOKS; i++) {
        call(tiny, 5000), all += 5000;
        look();
    }
    struct fdr_file *f = take();
    for (size_t n = fdr_totals(f, &rows), i = 0; i < n; i++) {
        if (rows[i].class_ != FDR_IN_REGION || rows[i].id != tiny) continue;
        all -= rows[i].calls + rows[i].untimed;
        untimed += rows[i].untimed;
    }
    assert_int_equal(all, 0);
    assert_true(untimed > 0);
    end(f);
}

/* A region that does not fit the account is not muted, and the account says so. */
static void P1_says_when_there_is_no_room(void **state)
{
    enum { MANY = 300 };
    fdr_region many[MANY];
    char name[16];
    (void)state;
    start("1M", 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many%d", i);
        many[i] = fdr_region_define(name, NULL, 0);
    }
    for (int i = 0; i < LOOKS; i++) {
        for (int k = 0; k < MANY; k++) call(many[k], 100);
        look();
    }
    struct fdr_file *f = take();
    const struct fdr_governor *g = fdr_governor(f);
    uint32_t muted = 0;
    for (int k = 0; k < MANY; k++) muted += fdri_names_is_muted(many[k]);
    muted += fdri_names_is_muted(tiny) + fdri_names_is_muted(longer);
    assert_true(g->no_room && g->regions > 0);
    assert_int_equal(g->muted_now, g->regions);
    assert_int_equal(muted, g->regions);
    end(f);
}

static void *thread(void *times)
{
    work(tiny, *(int *)times);
    return NULL;
}

/* Calls of threads that have ended count, too. */
static void P1_counts_ended_threads(void **state)
{
    int times = 5000;
    (void)state;
    start("4M", 0.005);
    for (int i = 0; i < LOOKS; i++) {
        pthread_t t;
        pthread_create(&t, NULL, thread, &times);
        pthread_join(t, NULL);
        look();
    }
    assert_true(fdri_names_is_muted(tiny));
    end(take());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P1_mutes_and_lets_back),  cmocka_unit_test(P1_spares_rules_and_triggers),
        cmocka_unit_test(P5_counts_stay_exact),    cmocka_unit_test(P1_says_when_there_is_no_room),
        cmocka_unit_test(P1_counts_ended_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
