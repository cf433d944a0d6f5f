/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 clock=tsc promise=P3,P5
 * P3, P5: calls by the real clock on the fastest path: enter, leave, leaves that skip calls or match none,
 * recursion, pauses, points, rewinds. The times are unknown beforehand. So the test compares counts with its own,
 * and times with one another. */
#include "base/bits.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 6, DEEPEST = 64, OPS = 60000, BY_ADDRESS = 3 /* the last ones are known by address */ };

struct plan {
    uint32_t limit;        /* FDR_DEPTH; 0: none */
    uint64_t min_ns;       /* FDR_MIN_DURATION */
    bool lossless, rewind; /* rewind: with marks and rewinds */
};

/* The test's own counts. Levels count from 1. */
static struct {
    uint32_t depth, region[DEEPEST + 1], pauses;
    bool untimed[DEEPEST + 1], marked, open_at_mark[DEEPEST + 1];
    uint64_t presented[DEEPEST + 1], uncounted[DEEPEST + 1], closed[DEEPEST + 1], at_mark[DEEPEST + 1];
    uint64_t calls[REGIONS], untimed_calls[REGIONS], stray, skipped, markers, all_markers, marker_at_mark, spun;
} mine;
static fdr_region id[REGIONS];
static char code[REGIONS];
static uint64_t seed;

static void enter(const struct plan *p, uint32_t r)
{
    if (mine.depth == DEEPEST) return;
    if (r < BY_ADDRESS) fdr_enter(id[r]);
    else fdr_enter_address(&code[r]);
    uint32_t d = ++mine.depth;
    mine.region[d] = r;
    mine.presented[d]++;
    mine.open_at_mark[d] = false;
    mine.untimed[d] = (p->limit && d > p->limit) || mine.pauses;
    if (mine.untimed[d]) mine.uncounted[d]++, mine.untimed_calls[r]++;
}

static void leave(uint32_t r)
{
    if (r < BY_ADDRESS) fdr_leave(id[r]);
    else fdr_leave_address(&code[r]);
    uint32_t d = mine.depth;
    while (d && mine.region[d] != r) d--;
    if (!d) {
        mine.stray++;
        return;
    }
    for (; mine.depth >= d; mine.depth--) {
        mine.skipped += mine.depth > d;
        if (mine.untimed[mine.depth]) continue;
        mine.calls[mine.region[mine.depth]]++;
        mine.closed[mine.depth]++;
        mine.at_mark[mine.depth] += mine.open_at_mark[mine.depth]; /* no rewind takes it back */
    }
}

static void mark_or_rewind(void)
{
    if (!mine.marked) {
        fdr_rewind_mark();
        memcpy(mine.at_mark, mine.closed, sizeof mine.closed);
        for (uint32_t d = 1; d <= DEEPEST; d++) mine.open_at_mark[d] = d <= mine.depth;
        mine.marker_at_mark = mine.markers;
    } else {
        fdr_rewind();
        for (uint32_t d = 1; d <= DEEPEST; d++) {
            mine.uncounted[d] += mine.closed[d] - mine.at_mark[d];
            mine.closed[d] = mine.at_mark[d];
        }
        mine.markers = mine.marker_at_mark;
    }
    mine.marked = !mine.marked;
}

static void do_something(const struct plan *p)
{
    uint32_t x = rnd(&seed, 1000);
    for (uint32_t i = rnd(&seed, 50) ? rnd(&seed, 20) : 5000; i; i--) mine.spun += i ^ (mine.spun << 1);
    if (x < 430) enter(p, rnd(&seed, REGIONS));
    else if (x < 830 && mine.depth) leave(mine.region[mine.depth]);
    else if (x < 845) leave(rnd(&seed, REGIONS));
    else if (x < 950) fdr_marker(1, x), mine.markers += !mine.pauses, mine.all_markers++;
    else if (x < 953 && mine.pauses < 3) fdr_pause(), mine.pauses++;
    else if (x < 960) fdr_resume(), mine.pauses -= mine.pauses > 0;
    else if (x < 962 && p->rewind) mark_or_rewind();
}

/* Sums of the shown calls. */
struct shown {
    uint64_t calls, time, shortest, longest, at[DEEPEST + 1], markers;
};

static void look(struct fdr_file *f, struct shown *of)
{
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    for (uint32_t r = 0; r < REGIONS; r++) of[r].shortest = UINT64_MAX;
    while (fdr_iter_next(it, &e)) {
        if (e.kind == FDR_MARKER) of->markers++;
        if (e.kind == FDR_ENTER && !e.reduced) of->at[e.depth]++;
        if (e.kind != FDR_LEAVE || e.repaired) continue; /* an open call has a made-up leave */
        uint32_t r = 0;
        while (r < REGIONS && id[r] != e.id) r++;
        assert_true(r < REGIONS);
        of[r].calls++;
        of[r].time += e.duration_ns;
        of[r].shortest = fdri_bits_min(of[r].shortest, e.duration_ns);
        of[r].longest = fdri_bits_max(of[r].longest, e.duration_ns);
    }
    fdr_iter_close(it);
}

/* The totals contain all calls, stored or not. If all calls are stored, the totals equal the sums of the shown
 * calls, except for rounding to ns. */
static void check_totals(const struct plan *p, struct fdr_file *f, const struct shown *of)
{
    for (uint32_t r = 0; r < REGIONS; r++) {
        const struct fdr_total *t = total(f, FDR_IN_REGION, id[r]);
        uint64_t in_histogram = 0;
        for (int b = 0; b < 64; b++) in_histogram += t->histogram[b];
        assert_int_equal(t->calls, mine.calls[r]);
        assert_int_equal(t->untimed, mine.untimed_calls[r]);
        assert_true(t->has_histogram && in_histogram == mine.calls[r]);
        assert_true(t->exclusive_ns <= t->inclusive_ns && t->min_ns <= t->max_ns);
        if (of[r].calls) assert_true(!p->lossless || of[r].longest <= t->max_ns + 1);
        if (of[r].calls && p->lossless) assert_true(of[r].shortest + 1 >= fdri_bits_max(p->min_ns, t->min_ns));
        if (p->min_ns || p->rewind || !p->lossless) continue;
        assert_int_equal(of[r].calls, mine.calls[r]);
        assert_true(of[r].time <= t->inclusive_ns + mine.calls[r] && t->inclusive_ns <= of[r].time + mine.calls[r]);
        assert_true(of[r].shortest <= t->min_ns + 1 && t->max_ns <= of[r].longest + 1);
    }
}

static void check_ledger(const struct plan *p, struct fdr_file *f, const struct shown *of)
{
    uint64_t all = 0;
    for (uint32_t d = 1; d <= DEEPEST; d++) {
        const struct fdr_ledger_row *w = row(f, 0, FDR_IN_REGION, d);
        uint64_t open = d <= mine.depth && !mine.untimed[d];
        all += mine.presented[d];
        assert_int_equal(w->presented, mine.presented[d]);
        assert_int_equal(w->reduced + w->lost, 0);
        /* filtered also counts calls that are too short, and calls of length 0 in a pause (test_api_rules) */
        bool more = p->min_ns || !p->lossless;
        assert_true(more ? w->filtered >= mine.uncounted[d] : w->filtered == mine.uncounted[d]);
        assert_true(more || w->kept == mine.closed[d] + open);
        assert_int_equal(of->at[d], w->kept);
    }
    assert_int_equal(of->markers, mine.markers);
    assert_int_equal(balance(f), all + mine.all_markers);
}

static void live(struct plan p, const char *limit, const char *min_duration, const char *resolution)
{
    static struct shown of[REGIONS];
    memset(&mine, 0, sizeof mine);
    memset(of, 0, sizeof of);
    begin(
        &(struct fdr_config){.buffer = "32M", .depth = limit, .min_duration = min_duration, .resolution = resolution});
    for (uint32_t r = 0; r < REGIONS; r++) {
        char name[] = {(char)('a' + r), 0};
        id[r] = r < BY_ADDRESS ? fdr_region_define(name, "", 0) : fdr_region_define_address(&code[r]);
    }
    for (int i = 0; i < OPS; i++) do_something(&p);
    struct fdr_file *f = take();
    const struct fdr_location_info *l = fdr_location_info(f, 0);
    assert_int_equal(l->stray_leaves, mine.stray);
    assert_int_equal(l->unbalanced, mine.skipped);
    assert_int_equal(l->open_count, mine.depth);
    for (uint32_t d = 1; d <= mine.depth; d++) {
        assert_int_equal(l->open[d - 1].region, id[mine.region[d]]);
        assert_true(l->open[d - 1].untimed == mine.untimed[d]);
    }
    look(f, of);
    check_totals(&p, f, of);
    check_ledger(&p, f, of);
    end(f);
}

static void P3_P5_live_calls(void **state)
{
    (void)state;
    live((struct plan){.lossless = true}, NULL, NULL, NULL);
    live((struct plan){0}, NULL, NULL, "128ns");
    live((struct plan){0}, NULL, NULL, "1ms");
}
static void P3_P5_live_calls_deeper_than_the_limit(void **state)
{
    (void)state;
    live((struct plan){.limit = 3, .lossless = true}, "3", NULL, NULL);
    live((struct plan){.limit = 16, .lossless = true}, "16", NULL, NULL);
    live((struct plan){.limit = 1}, "1", NULL, "128ns");
}
static void P3_P5_live_calls_of_a_minimum_duration(void **state)
{
    (void)state;
    live((struct plan){.min_ns = 300, .lossless = true}, NULL, "300ns", NULL);
    live((struct plan){.min_ns = 300}, NULL, "300ns", "128ns");
    live((struct plan){.min_ns = 1000, .limit = 5, .lossless = true}, "5", "1us", NULL);
}
static void P3_P5_live_calls_rewound(void **state)
{
    (void)state;
    live((struct plan){.rewind = true, .lossless = true}, NULL, NULL, NULL);
    live((struct plan){.rewind = true, .limit = 4, .lossless = true}, "4", NULL, NULL);
    live((struct plan){.rewind = true}, NULL, NULL, "128ns");
}

int main(void)
{
    seed = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_P5_live_calls), cmocka_unit_test(P3_P5_live_calls_deeper_than_the_limit),
        cmocka_unit_test(P3_P5_live_calls_of_a_minimum_duration), cmocka_unit_test(P3_P5_live_calls_rewound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
