/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=60 promise=P4 without=tsan (its threads take turns)
 * P4: an ended thread gives back its oldest events first. The call around its whole life ended last, so it goes
 * last, and the last calls inside of it stay as long as anything does. A failure shows as a thread that holds bins
 * without any kept call. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/fair_share_fixture.h"

enum { DEEP = 60 };

struct life {
    uint64_t seed, calls;
    uint32_t deepest;
    uint64_t made, now;
};

static void descend(struct life *its, uint32_t depth)
{
    fdr_enter_at(region[rnd(&its->seed, 8)], its->now += 20 + rnd(&its->seed, 40));
    its->made++;
    while (depth < its->deepest && its->made < its->calls && rnd(&its->seed, 4)) descend(its, depth + 1);
    fdr_leave_at(fdri_record_self.top->region, its->now += 20 + rnd(&its->seed, 40));
}

/* All calls lie inside one outer call. */
static void *live(void *argument)
{
    struct life *its = argument;
    fdr_enter_at(region[0], its->now += 100);
    its->made = 1;
    while (its->made < its->calls) descend(its, 2);
    fdr_leave_at(region[0], its->now += 100);
    return NULL;
}

static uint64_t one(uint64_t seed, uint64_t calls, uint32_t deepest)
{
    struct life its = {.seed = seed * 7919 + 88172645463325252u, .calls = calls, .deepest = deepest};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, live, &its), 0);
    pthread_join(t, NULL);
    return its.made;
}

/* The least number of kept calls of all locations that hold bins; *threads: the number of these locations. */
static uint64_t least_kept(uint64_t *threads)
{
    const char *wrong = NULL;
    uint64_t events = 0, least = UINT64_MAX;
    struct fdr_file *f = oracle_snapshot(fdri_life_recording.arena.super->arena_bytes, &wrong);
    if (!wrong) wrong = oracle_check_any(f, &events);
    if (wrong) fail_msg("%s", wrong);
    *threads = 0;
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        const struct fdr_ledger_row *row;
        uint64_t kept = 0;
        for (size_t n = fdr_ledger(f, &row); n; n--) kept += row[n - 1].location == l->id ? row[n - 1].kept : 0;
        if (!l->bins) continue;
        least = kept < least ? kept : least;
        ++*threads;
    }
    fdr_file_close(f);
    return least;
}

/* The bins are too small for a block of levels. [ended] must find room for this thread's accounts among the
 * thread's own bins. */
static void P4_deep_ended_thread_keeps_its_newest_events(void **state)
{
    (void)state;
    static const char *const bins[] = {"512", "1K", "2K", "4K"};
    for (int i = 0; i < 4; i++) {
        struct fdr_config c = oracle_config(oracle_directory());
        uint64_t threads, kept;
        c.buffer = "256K";
        c.strategy = "telescope";
        c.bin = bins[i];
        c.timer = NULL;
        assert_int_equal(fdr_init(&c), 0);
        for (int r = 0; r < 8; r++) region[r] = fdr_region_define((const char[]){(char)('a' + r), 0}, NULL, 0);
        one(1, 200000, DEEP);
        kept = least_kept(&threads);
        print_message("bins of %s: %llu kept\n", bins[i], (unsigned long long)kept);
        assert_true(threads == 1 && kept > 10000);
        fdr_finalize();
    }
}

/* At any moment one ended thread has given some of its bins, and older threads all of theirs. */
static void P4_short_ended_threads_keep_their_newest_events(void **state)
{
    (void)state;
    static const char *const buffers[] = {"256K", "288K", "320K"};
    for (int b = 0; b < 3; b++) {
        uint64_t threads, least;
        start("telescope", buffers[b]);
        for (uint32_t n = 1; n <= 12; n++) {
            one(n, 10000, 12);
            least = least_kept(&threads);
            print_message("%s: after %u threads %llu hold something, the one with least %llu calls\n", buffers[b], n,
                          (unsigned long long)threads, (unsigned long long)least);
            assert_true(threads && least > 0);
        }
        fdr_finalize();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P4_deep_ended_thread_keeps_its_newest_events),
                                       cmocka_unit_test(P4_short_ended_threads_keep_their_newest_events)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
