/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=300 promise=P3,P10
 * P3, P10: threads rewind while others claim their bins, while snapshots are taken, and while the process forks.
 * The bursts differ in length, so the shares change all the time. The buffer is so small that claims and reductions
 * never stop. Each snapshot must balance. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/fair_share_fixture.h"
#include "tests/support/sanitized.h"

enum { ROUNDS = SANITIZED ? 3 : 30, THREADS = 3, REWINDS = 10 * ROUNDS, BUFFER = 512 << 10 };

static bool stop;
static uint64_t presented, rewinds;

/* A stretch of calls, either between a mark and its rewind or to be kept. */
static uint64_t stretch(uint64_t *seed, uint64_t calls)
{
    struct turn w = {.calls = calls, .seed = *seed};
    work(&w);
    *seed = w.seed;
    return w.presented;
}

static void *rewinder(void *number)
{
    uint64_t seed = (uintptr_t)number * 7919 + 88172645463325252u, sum = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        sum += stretch(&seed, rnd(&seed, 4) ? rnd(&seed, 300) : rnd(&seed, 60000));
        fdr_rewind_mark();
        sum += stretch(&seed, rnd(&seed, 3) ? rnd(&seed, 300) : rnd(&seed, 30000));
        if (!rnd(&seed, 3)) continue;
        usleep(rnd(&seed, 500)); /* so that a snapshot may find only rewound calls of this thread */
        fdr_rewind();
        __atomic_fetch_add(&rewinds, 1, __ATOMIC_RELAXED);
        usleep(rnd(&seed, 500));
    }
    __atomic_fetch_add(&presented, sum, __ATOMIC_RELAXED);
    return NULL;
}

/* Number of claims of bins of other locations, from the ledgers. */
static uint64_t claims(void)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint64_t steps = 0;
    for (uint32_t off = a->super->location_first; off;) {
        const struct fdri_arena_location *l = fdri_bins_at(a, off);
        const struct fdri_arena_reductions_block *b = l->reductions_off ? fdri_bins_at(a, l->reductions_off) : NULL;
        for (uint32_t i = 0; b && i < l->reduction_count && i < FDRI_ARENA_REDUCTION_LINES; i++)
            if (b->line[i].step == FDRI_ARENA_STEP_CLAIM) steps += b->line[i].steps;
        off = l->next;
    }
    return steps;
}

static void one_storm(const char *strategy, const char *(*round)(void))
{
    pthread_t thread[THREADS];
    uint64_t kept[THREADS];
    uint32_t bins[THREADS];
    const char *wrong = NULL;
    start(strategy, "512K");
    stop = false;
    presented = rewinds = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, rewinder, (void *)(i + 1)), 0);
    const struct fdri_arena_superblock *super = fdri_life_recording.arena.super;
    for (int i = 0; i < 6000 && !fdr_usage().reductions && !fdri_atomic_load_relaxed(&super->lost_unattached); i++)
        usleep(10000);
    for (int i = 0; (i < ROUNDS || __atomic_load_n(&rewinds, __ATOMIC_RELAXED) < REWINDS) && !wrong; i++)
        wrong = round();
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    uint64_t claimed = claims();
    print_message("%s: %llu presented, %llu rewinds, %llu bins claimed\n", strategy, (unsigned long long)presented,
                  (unsigned long long)rewinds, (unsigned long long)claimed);
    if (wrong) print_message("%s: %s\n", strategy, wrong);
    check(BUFFER, presented, kept, bins, THREADS); /* all threads are quiet now, so the accounts are exact */
    fdr_finalize();
    assert_null(wrong);
    assert_true(rewinds > 0 && claimed > 0);
}

static const char *snapshot(void)
{
    const char *wrong = NULL;
    uint64_t events = 0;
    struct fdr_file *f = oracle_snapshot(BUFFER, &wrong);
    if (!wrong) wrong = oracle_check_any(f, &events);
    if (f) fdr_file_close(f);
    return wrong;
}

/* A child forked at any moment records nothing into its parent's buffer. A recording of its own is whole. */
static int in_child(void)
{
    uint64_t seed = 1, events = 0, sum = 0;
    const char *wrong = NULL;
    struct fdr_config c = oracle_config(oracle_directory());
    const struct fdr_ledger_row *rows;
    fdr_rewind_mark();
    stretch(&seed, 300);
    fdr_rewind();
    if (fdr_usage().presented) return 2;
    c.buffer = "512K";
    c.name = "child";
    if (fdr_init(&c)) return 3;
    fdr_enter(region[0]);
    fdr_leave(region[0]);
    fdr_rewind_mark();
    fdr_enter(region[1]);
    fdr_leave(region[1]);
    fdr_rewind();
    struct fdr_file *f = oracle_snapshot(BUFFER, &wrong);
    if (!wrong) wrong = oracle_check_any(f, &events);
    if (wrong) return 4;
    for (size_t n = fdr_ledger(f, &rows), i = 0; i < n; i++) sum += rows[i].kept + 10 * rows[i].filtered;
    return sum == 11 ? 0 : 5;
}

static const char *child(void)
{
    static char text[80];
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) _exit(in_child());
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return "no child";
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return NULL;
    snprintf(text, sizeof text, "a child's status is 0x%x", (unsigned)status);
    return text;
}

static void P3_rewinds_beside_claims_and_snapshots(void **state)
{
    (void)state;
    one_storm("telescope", snapshot);
    one_storm("whole", snapshot);
    one_storm("last", snapshot);
}

static void P3_P10_rewinds_beside_claims_and_forks(void **state)
{
    (void)state;
    one_storm("telescope", child);
    one_storm("last", child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_rewinds_beside_claims_and_snapshots),
                                       cmocka_unit_test(P3_P10_rewinds_beside_claims_and_forks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
