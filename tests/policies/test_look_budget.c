/* SPDX-License-Identifier: MIT */
/* ctest: promise=P10
 * P10: looks at threads take at most a hundredth of a processor, on a simulated clock. That holds with one thread and
 * with thousands, with cheap and with costly looks, beside other work of fdr's thread, and after a pause. Threads get
 * their looks in turn, and each look that fits is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

#include "policies/looks.h"

enum { MS = 1000000, SECOND = 1000000000, THREADS_MOST = 10000 };

/* The simulated thread of fdr: a wake-up and each look cost processor time; so does listing the threads. */
static struct {
    struct fdri_policies_looks account;
    struct fdri_policies_looks_round round;
    uint64_t period_ns, wake_ns, look_ns, list_ns; /* list_ns: at each round in which it may work */
    uint32_t threads;
    uint64_t begin_ns, now_ns, cpu_ns;
    uint64_t looks, rounds, most_ahead_ns;
    uint32_t next;
    uint32_t looked_at[THREADS_MOST];
} sim;

static void begin(uint32_t threads, uint64_t period_ns, uint64_t wake_ns, uint64_t look_ns)
{
    memset(&sim, 0, sizeof sim);
    sim.threads = threads;
    sim.period_ns = period_ns;
    sim.wake_ns = wake_ns;
    sim.look_ns = look_ns;
    sim.begin_ns = sim.now_ns = 5ull * SECOND;
    sim.round = fdri_policies_looks_step(&sim.account, sim.now_ns, sim.cpu_ns, 0, 0, period_ns, threads);
}

/* The use so far beyond a hundredth of the time so far. */
static uint64_t ahead(void)
{
    uint64_t share = (sim.now_ns - sim.begin_ns) / FDRI_POLICIES_LOOKS_SHARE;
    return sim.cpu_ns > share ? sim.cpu_ns - share : 0;
}

static void one_round(void)
{
    assert_true(sim.round.periods >= 1);
    assert_true(sim.round.looks <= sim.threads);
    sim.now_ns += sim.round.periods * sim.period_ns;
    sim.cpu_ns += sim.wake_ns;
    if (fdri_policies_looks_may_work(&sim.account)) sim.cpu_ns += sim.list_ns;
    for (uint32_t i = 0; i < sim.round.looks; i++) sim.looked_at[sim.next++ % sim.threads]++;
    uint64_t looks_ns = sim.round.looks * sim.look_ns;
    sim.cpu_ns += looks_ns;
    sim.looks += sim.round.looks;
    sim.rounds++;
    if (ahead() > sim.most_ahead_ns) sim.most_ahead_ns = ahead();
    sim.round = fdri_policies_looks_step(&sim.account, sim.now_ns, sim.cpu_ns, looks_ns, sim.round.looks, sim.period_ns,
                                         sim.threads);
}

static void run(uint64_t ns)
{
    for (uint64_t until = sim.now_ns + ns; sim.now_ns < until;) one_round();
}

/* At no time is more used than the share of the time so far, the credit, and the work of one round. */
static void P10_share_holds_at_any_number_of_threads(void **state)
{
    (void)state;
    static const uint32_t threads[] = {1, 2, 15, 16, 17, 200, 1000, THREADS_MOST};
    static const uint64_t costs[] = {500, 5000, 50000, 2000000}, periods[] = {100000, MS, 50 * MS, SECOND};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
        for (size_t c = 0; c < sizeof costs / sizeof *costs; c++)
            for (size_t p = 0; p < sizeof periods / sizeof *periods; p++) {
                begin(threads[t], periods[p], 45000, costs[c]);
                run(200ull * SECOND);
                uint64_t span = periods[p] > FDRI_POLICIES_LOOKS_AHEAD_NS ? periods[p] : FDRI_POLICIES_LOOKS_AHEAD_NS;
                uint64_t first = (threads[t] < 16 ? threads[t] : 16) * costs[c] + 45000; /* its cost was not known */
                if (sim.most_ahead_ns > 2 * span / FDRI_POLICIES_LOOKS_SHARE + 2 * first)
                    fail_msg("%u threads, %llu ns a look, each %llu ns: %llu ns ahead", threads[t],
                             (unsigned long long)costs[c], (unsigned long long)periods[p],
                             (unsigned long long)sim.most_ahead_ns);
                assert_true(sim.looks > 0);
            }
}

/* The share is used up: looks are left out only for its sake. */
static void share_is_used(void **state)
{
    (void)state;
    begin(200, MS, 45000, 5000);
    run(100ull * SECOND);
    assert_true(sim.cpu_ns > 95ull * SECOND / 100); /* of 1 s */
    assert_true(sim.looks > 100ull * 1000);         /* a round of 16 costs 125 us, so the share allows 1,280 a second */
    begin(3, 50 * MS, 45000, 5000);
    run(100ull * SECOND);
    assert_int_equal(sim.looks, 3 * 2000); /* 3 threads, 20 times a second: everything fits */
    assert_int_equal(sim.rounds, 2000);
}

static void all_threads_get_the_same(void **state)
{
    (void)state;
    begin(200, MS, 45000, 5000);
    run(100ull * SECOND);
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < sim.threads; i++) {
        if (sim.looked_at[i] < least) least = sim.looked_at[i];
        if (sim.looked_at[i] > most) most = sim.looked_at[i];
    }
    assert_true(least > 0 && most - least <= 1);
}

/* Other work makes looks rarer; the share holds for both. */
static void P10_other_work_counts(void **state)
{
    (void)state;
    begin(100, MS, 45000, 5000);
    sim.list_ns = 20 * MS; /* as listing ten thousand threads */
    run(100ull * SECOND);
    assert_true(sim.most_ahead_ns <= 2ull * sim.list_ns + 4ull * MS);
    assert_true(sim.looks > 0);
}

/* A process that was stopped for a minute does not look for a minute's share at once. */
static void P10_pause_saves_up_nothing(void **state)
{
    (void)state;
    begin(THREADS_MOST, MS, 45000, 5000);
    run(10ull * SECOND);
    sim.now_ns += 60ull * SECOND;
    uint64_t before = sim.cpu_ns, from = sim.now_ns;
    run(SECOND);
    assert_true(sim.cpu_ns - before <= (sim.now_ns - from) / FDRI_POLICIES_LOOKS_SHARE + 2 * MS);
}

/* The cost of a look changes, as it does when the machine becomes busy. */
static void cost_is_learned_anew(void **state)
{
    (void)state;
    begin(200, MS, 45000, 3000);
    run(10ull * SECOND);
    sim.look_ns = 60000;
    run(20ull * SECOND);
    assert_true(sim.account.each_ns > 50000 && sim.account.each_ns <= 60000);
    sim.look_ns = 3000;
    run(20ull * SECOND);
    assert_true(sim.account.each_ns < 4000);
}

static void no_threads_no_looks(void **state)
{
    (void)state;
    begin(0, MS, 45000, 5000);
    run(10ull * SECOND);
    assert_int_equal(sim.looks, 0);
    assert_true(sim.cpu_ns <= SECOND / 10 + 2 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_share_holds_at_any_number_of_threads),
                                       cmocka_unit_test(share_is_used),
                                       cmocka_unit_test(all_threads_get_the_same),
                                       cmocka_unit_test(P10_other_work_counts),
                                       cmocka_unit_test(P10_pause_saves_up_nothing),
                                       cmocka_unit_test(cost_is_learned_anew),
                                       cmocka_unit_test(no_threads_no_looks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
