/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,slow timeout=240 promise=P3,P4,P5,P8 wrap=pwrite
 * P3, P4, P5, P8: a snapshot is many writes. The program records a burst between two of them, at each place in turn.
 * The file is whole and balances. New blocks of accounts may replace bins that the file already holds. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/arena/arena.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { REGIONS = 24, DEEPEST = 24, PLACES = SANITIZED ? 20 : 60 };
static fdr_region region[REGIONS];
static uint64_t seed, now;
static uint32_t depth;
static unsigned writes, when;
static uint32_t burst;
static bool rewinds;
static bool leaves_only;
static void (*instead)(void);
static const char *timer = "monotonic", *pin;
static uint64_t cut_earlier;
static char dir[] = "/tmp/fdr-between-XXXXXX";

static void calls(uint32_t events)
{
    for (uint32_t i = 0; i < events; i++) {
        now += rnd(&seed, 40) == 0 ? rnd(&seed, 20000) : rnd(&seed, 300);
        if (depth < DEEPEST && (depth < 1 || rnd(&seed, 2))) fdr_enter_at(region[depth++], now);
        else fdr_leave_at(region[--depth], now);
    }
}

struct tail { /* of a file with one location */
    struct fdri_arena_tail head;
    struct fdri_arena_tail_entry entry;
};
ssize_t __real_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t count, off_t off)
{
    if (writes++ == when) {
        if (instead) instead();
        if (rewinds) fdr_rewind();
        if (leaves_only)
            while (depth) fdr_leave_at(region[--depth], ++now);
        if (!instead) calls(burst);
    }
    struct tail tail;
    if (cut_earlier && count == sizeof tail && *(const uint32_t *)bytes == FDRI_ARENA_TAIL_MAGIC) {
        memcpy(&tail, bytes, sizeof tail);
        tail.entry.cut_tick -= cut_earlier;
        return __real_pwrite(fd, &tail, sizeof tail, off);
    }
    return __real_pwrite(fd, bytes, count, off);
}

static void start(const char *strategy)
{
    char name[16];
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .arena = "anonymous",
                                 .buffer = "256K",
                                 .strategy = strategy,
                                 .signal = "none",
                                 .dir = dir,
                                 .keep = "2,newest",
                                 .pin = pin,
                                 .timer = timer};
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    seed = 5;
    now = 1000000;
    depth = 0;
}

static unsigned later;

static void count_closed(void *context, const struct fdr_call *call)
{
    if (!call->open && !call->reduced) ++*(uint64_t *)context;
}

static void count_open(void *context, const struct fdr_call *call)
{
    if (call->open && !call->reduced) ++*(uint64_t *)context;
}

static void count_shown(struct fdr_file *f, uint64_t *closed, uint64_t *open)
{
    const struct fdr_call_visitor of_closed = {.context = closed, .leave = count_closed};
    const struct fdr_call_visitor of_open = {.context = open, .leave = count_open};
    *closed = *open = 0;
    assert_int_equal(fdr_visit_calls(f, NULL, &of_closed), 0);
    assert_int_equal(fdr_visit_calls(f, NULL, &of_open), 0);
}

/* The kept events of all epochs are the shown calls. Calls after the cut do not count, although bins hold some. */
static void look_at_kept(struct fdr_file *f, const struct fdr_epoch_info *e, size_t epochs)
{
    uint64_t shown, open, kept = 0;
    count_shown(f, &shown, &open);
    for (size_t i = 0; i < epochs; i++) kept += e[i].kept_events;
    if (epochs) assert_int_equal(kept, 2 * shown);
    const struct fdr_ledger_row *row;
    kept = 0;
    for (size_t n = fdr_ledger(f, &row), i = 0; i < n; i++) kept += row[i].kept;
    assert_int_equal(kept, shown + open);
}

/* The file has no damage, so the recovered file shows the same. */
static void look_at_recovered(struct fdr_file *f)
{
    char path[64], message[300] = "";
    struct fdr_file *g;
    uint64_t closed, open, closed_then, open_then;
    snprintf(path, sizeof path, "%s/recovered.fdr", dir);
    assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
    assert_int_equal(fdr_file_open(path, &g, message, sizeof message), FDR_WHOLE);
    count_shown(f, &closed, &open);
    count_shown(g, &closed_then, &open_then);
    if (closed != closed_then || open != open_then || fdr_location_info(f, 0)->to_ns != fdr_location_info(g, 0)->to_ns)
        fail_msg("%u events at write %u of %u: %llu calls and %llu open, recovered %llu and %llu", burst, when, writes,
                 (unsigned long long)closed, (unsigned long long)open, (unsigned long long)closed_then,
                 (unsigned long long)open_then);
    fdr_file_close(g);
    unlink(path);
}

/* An epoch that claims to be complete is complete. An epoch that began after the copy of its location claims
 * nothing. */
static void look_at_epochs(struct fdr_file *f)
{
    const struct fdr_epoch_info *e;
    size_t epochs = fdr_epochs(f, &e);
    look_at_kept(f, e, epochs);
    uint64_t to = fdr_location_info(f, 0)->to_ns, before, after;
    fdr_ledger_bounds(f, 0, &before, &after);
    for (size_t i = 0; i < epochs; i++) {
        bool all = e[i].exact && e[i].calls && e[i].complete_depth[0] == e[i].deepest && e[i].to_ns <= to;
        if (all) assert_int_equal(e[i].kept_events, 2 * e[i].calls);
        if (before == after || e[i].from_ns <= to) continue;
        for (int b = 0; b < 4; b++) assert_int_equal(e[i].complete_depth[b], 0);
        later++;
    }
}

static void look(const char *strategy)
{
    struct fdr_file *f;
    char message[300] = "";
    writes = 0;
    assert_int_equal(fdr_snapshot("between"), 0);
    if (fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message) != FDR_WHOLE || fdr_file_verify(f) != FDR_WHOLE)
        fail_msg("%s, %u events at write %u of %u: %s", strategy, burst, when, writes,
                 message[0] ? message : fdr_file_damage(f, 0));
    look_at_recovered(f);
    if (!rewinds) look_at_epochs(f); /* a rewind removes events, but not their totals */
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
}

static void P8_any_operation_during_a_copy(void **state)
{
    static const char *const strategies[] = {"telescope", "whole", "last"};
    static const uint32_t bursts[] = {300, 3000, 20000};
    (void)state;
    for (int s = 0; s < 3; s++)
        for (int b = 0; b < 3; b++) {
            start(strategies[s]);
            when = UINT32_MAX;
            burst = bursts[b];
            calls(2000); /* accounts grow most at the start of a recording */
            look(strategies[s]);
            for (uint32_t step = 0, all = 1; step < all; step += 1 + all / PLACES) {
                when = step;
                look(strategies[s]);
                all = writes;
            }
            fdr_finalize();
        }
    rmdir(dir);
    assert_true(later > 0);
}

/* The rewind frees the newest bins, and blocks of accounts take their place. Links in the file may lead there. */
static void P8_rewind_during_a_copy(void **state)
{
    static const uint32_t bursts[] = {300, 3000, 20000};
    (void)state;
    rewinds = true;
    for (int b = 0; b < 3; b++) {
        start("telescope");
        burst = bursts[b];
        when = UINT32_MAX;
        calls(2000);
        for (uint32_t step = 0, all = 1; step < all; step += 1 + all / PLACES) {
            fdr_rewind_mark();
            calls(3000);
            when = step;
            look("telescope, rewinds");
            all = writes;
        }
        fdr_finalize();
    }
    rewinds = false;
}

/* Three calls begin after the copy of the newest tick and before the copy of the stack. They end before the bins are
 * copied. Each is counted once. */
static void P3_calls_between_the_cut_and_the_stack(void **state)
{
    enum { OPEN = 3, APART = 1000 };
    const struct fdr_ledger_row *rows;
    char message[300] = "";
    (void)state;
    start("telescope");
    burst = 0;
    when = UINT32_MAX;
    calls(2000);
    while (depth) fdr_leave_at(region[--depth], ++now);
    for (int i = 0; i < OPEN; i++) fdr_enter_at(region[depth++], now += APART);
    writes = 0;
    assert_int_equal(fdr_snapshot("as it is"), 0);
    unlink(fdr_last_snapshot());
    for (uint32_t step = 0, all = writes; step < all; step++) {
        struct fdr_file *f;
        uint64_t before, after, sum = 0;
        while (depth) fdr_leave_at(region[--depth], ++now);
        for (int i = 0; i < OPEN; i++) fdr_enter_at(region[depth++], now += APART);
        leaves_only = true;
        cut_earlier = OPEN * APART - 1;
        writes = 0;
        when = step;
        assert_int_equal(fdr_snapshot("calls that end"), 0);
        leaves_only = false;
        cut_earlier = 0;
        assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
        fdr_ledger_bounds(f, 0, &before, &after);
        for (size_t n = fdr_ledger(f, &rows), i = 0; i < n; i++)
            sum += rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost;
        if (sum < before || sum > after)
            fail_msg("at write %u of %u: %llu .. %llu, but %llu", step, all, (unsigned long long)before,
                     (unsigned long long)after, (unsigned long long)sum);
        fdr_file_close(f);
        unlink(fdr_last_snapshot());
    }
    fdr_finalize();
}

/* Opens the snapshot during whose write number `at` the events come; *all gets the number of writes. */
static struct fdr_file *beside(void (*events)(void), uint32_t at, uint32_t *all)
{
    struct fdr_file *f;
    char message[300] = "";
    instead = events;
    writes = 0;
    when = at;
    assert_int_equal(fdr_snapshot("between"), 0);
    instead = NULL;
    *all = writes;
    if (fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message) != FDR_WHOLE || fdr_file_verify(f) != FDR_WHOLE)
        fail_msg("at write %u of %u: %s", at, writes, message[0] ? message : fdr_file_damage(f, 0));
    unlink(fdr_last_snapshot());
    return f;
}

static uint32_t tens;
static void open_call(void)
{
    for (uint32_t i = 0; i < tens; i++) {
        fdr_enter_at(region[0], now += 10);
        fdr_leave_at(region[0], now += 10);
    }
    fdr_enter_at(region[1], now += 10);
}

/* An attached thread has no event yet. Its first event decides that the location counts in ns. `before` calls end
 * before the open one. With 0 there is no bin either that says so. */
static void first_event_meanwhile(uint32_t before)
{
    uint64_t seen = 0, told = 0;
    timer = "tsc";
    tens = before;
    for (uint32_t step = 0, all = 1; step < all; step++) {
        const struct fdr_total *t;
        struct fdr_read_event e;
        start("telescope");
        fdr_thread_name("begins later");
        struct fdr_file *f = beside(open_call, step, &all);
        struct fdr_iter *it = fdr_iter_open(f, NULL);
        for (; fdr_iter_next(it, &e); seen++) assert_in_range(e.time_ns, 1000000, now);
        fdr_iter_close(it);
        for (size_t i = 0, n = fdr_totals(f, &t); i < n; i++)
            assert_true(t[i].min_ns == 10 && t[i].max_ns == 10 && t[i].inclusive_ns == 10 * t[i].calls);
        uint64_t began = fdr_location_info(f, 0)->start_ns;
        if (seen) assert_true(began == 1000010 || began == 0);
        told += began != 0;
        fdr_file_close(f);
        fdr_finalize();
    }
    timer = "monotonic";
    assert_true(seen > 0 && told > 0);
}

static void P4_P5_first_event_during_a_copy(void **state)
{
    (void)state;
    first_event_meanwhile(0);
    first_event_meanwhile(3000);
}

static void thousands(void) { calls(20000); }

static uint64_t ended_by(struct fdr_file *f, uint64_t by)
{
    uint64_t n = 0;
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e)) n += e.kind == FDR_LEAVE && !e.repaired && e.time_ns <= by;
    fdr_iter_close(it);
    return n;
}

/* The first moments end during the snapshot. The file says that they are pinned only if all parts of it say so. */
static void P3_first_moments_that_end_during_a_copy(void **state)
{
    uint32_t told = 0, untold = 0;
    (void)state;
    pin = "1ms";
    for (uint32_t step = 0, all = 1; step < all; step++) {
        start("telescope");
        while (now < 1990000) calls(1);
        struct fdr_file *f = beside(thousands, step, &all);
        const struct fdr_location_info *l = fdr_location_info(f, 0);
        if (l->pinned_to_ns) assert_in_range(l->pinned_to_ns, 2000000, l->to_ns);
        assert_int_equal(l->pinned_events, 2 * ended_by(f, l->pinned_to_ns));
        *(l->pinned_to_ns ? &told : &untold) += 1;
        fdr_file_close(f);
        fdr_finalize();
    }
    pin = NULL;
    assert_true(told > 0 && untold > 0);
}

int main(void)
{
    if (!mkdtemp(dir)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_calls_between_the_cut_and_the_stack), cmocka_unit_test(P4_P5_first_event_during_a_copy),
        cmocka_unit_test(P3_first_moments_that_end_during_a_copy), cmocka_unit_test(P8_rewind_during_a_copy),
        cmocka_unit_test(P8_any_operation_during_a_copy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
