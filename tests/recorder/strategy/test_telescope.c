/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300 promise=P3,P4,P5,P9
 * P3, P4, P5, P9: strategy `telescope` over a long run. One stretch of calls repeats at later times, so the test
 * knows the presented events of any moment without storing them. FDR_SOAK=10000 (`./dev soak`) sets the number of
 * repeats (default 60) and adds half a minute without events after each: days of a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "tests/support/corpus_stream.h"
#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 40, EVENTS = 24000, EVENTS_MOST = 240000, DEPTH_MOST = 12 };
static const uint64_t IDLE = 30000000000u;

/* One stretch: times from its start; each call in it also ends in it. */
struct step {
    uint64_t time, duration;
    uint32_t region, depth;
    bool enter;
};
static struct step step[EVENTS_MOST];
static uint32_t steps, calls;
static uint64_t span, idle; /* length of the stretch; length of the pause behind it */
static uint32_t region[REGIONS], outer;

static uint32_t open_step[DEPTH_MOST], depth;
static uint64_t seed;

static void add_enter(uint64_t t, uint32_t k)
{
    open_step[depth++] = steps;
    step[steps++] = (struct step){t, 0, k, depth + 1, true};
}

static void add_leave(uint64_t t)
{
    struct step *e = &step[open_step[--depth]];
    step[steps++] = (struct step){t, t - e->time, e->region, depth + 2, false};
    e->duration = t - e->time;
    calls++;
}

enum program { DEEP, FLAT, STREAM };
static const char *const program_name[] = {"deep", "flat", "npb-cg"};

/* FLAT: all calls have one depth and nearly the same duration. */
static void make_stretch(bool flat)
{
    uint64_t t = 10;
    seed = 42;
    while (steps < EVENTS - DEPTH_MOST || depth) {
        bool enter = depth == 0 || (!flat && depth < DEPTH_MOST && rnd(&seed, 2) && steps < EVENTS - 2 * DEPTH_MOST);
        t += flat ? 20 + rnd(&seed, 50) : rnd(&seed, 300) ? rnd(&seed, 200) : rnd(&seed, 400000);
        if (enter) add_enter(t, flat ? rnd(&seed, 3) : (depth + 1) * 3 + rnd(&seed, 3));
        else add_leave(t);
    }
    span = t + 1000;
}

/* The first calls of a recorded stream. Calls still open at the end are closed there. */
static void take_stream(const struct stream *in)
{
    uint64_t t = in->head->t0_ns;
    struct stream_event e;
    for (uint64_t i = 0; i < in->head->records && steps + 2 * DEPTH_MOST < EVENTS_MOST; i++) {
        if (!stream_event(in, i, &t, &e)) continue;
        uint64_t at = t - in->head->t0_ns + 10;
        if (e.kind == STREAM_ENTER) {
            assert_true(e.value < REGIONS && depth < DEPTH_MOST);
            add_enter(at, e.value);
        } else if (e.kind == STREAM_LEAVE && depth) {
            add_leave(at);
        }
    }
    while (depth) add_leave(t - in->head->t0_ns + 10);
    span = t - in->head->t0_ns + 1000;
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void present(uint64_t base)
{
    for (uint32_t i = 0; i < steps; i++) {
        if (step[i].enter) fdr_enter_at(region[step[i].region], base + step[i].time);
        else fdr_leave_at(region[step[i].region], base + step[i].time);
    }
}

/* Every shown event was presented at its time. */
static const char *survivors(struct fdr_file *f, uint64_t t0, uint64_t repeats, uint64_t *shown)
{
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    const char *wrong = NULL;
    uint64_t now = 0;
    while (!wrong && fdr_iter_next(it, &e)) {
        if (e.time_ns < now) wrong = oracle_wrong("P9: time steps back");
        now = e.time_ns;
        if (e.repaired || e.reduced || e.id == outer) continue;
        uint64_t off = (e.time_ns - t0) % (span + idle);
        uint32_t low = 0, high = steps;
        while (low < high) {
            uint32_t i = low + (high - low) / 2;
            if (step[i].time < off) low = i + 1;
            else high = i;
        }
        bool enter = e.kind == FDR_ENTER, found = false;
        for (; low < steps && step[low].time == off && !found; low++)
            found = step[low].enter == enter && region[step[low].region] == e.id && step[low].depth == e.depth &&
                    step[low].duration == e.duration_ns;
        if (!found || (e.time_ns - t0) / (span + idle) >= repeats)
            wrong = oracle_wrong("P4: an event at %llu was never presented", (unsigned long long)e.time_ns);
        ++*shown;
    }
    fdr_iter_close(it);
    return wrong;
}

/* Counts again the sums of every epoch and the exact rows, and compares. */
static const char *epochs(struct fdr_file *f, uint64_t repeats)
{
    const struct fdr_epoch_info *e;
    const struct fdr_epoch_total *rows;
    size_t n = fdr_epochs(f, &e), count = fdr_epoch_totals(f, &rows), row = 0;
    uint64_t all = 0;
    uint32_t at = 0;
    if (n < 4 || n > 60) return oracle_wrong("%zu epochs", n);
    for (size_t i = 0; i < n; i++) {
        uint64_t sum[REGIONS] = {0}, inclusive[REGIONS] = {0}, ns = 0, rest = 0, of_rows = 0;
        if (!e[i].exact || (i && (e[i].from_ns != e[i - 1].to_ns || e[i].tier > e[i - 1].tier)))
            return oracle_wrong("epoch %zu does not follow", i);
        for (int b = 0; b < 4; b++)
            if (i && e[i].complete_depth[b] < e[i - 1].complete_depth[b])
                return oracle_wrong("epoch %zu: less detail than the older one", i);
        for (uint64_t c = 0; c < e[i].calls; at = (at + 1) % steps) {
            if (step[at].enter) continue;
            sum[step[at].region]++;
            inclusive[step[at].region] += step[at].duration;
            ns += step[at].duration;
            c++;
        }
        if (ns != e[i].inclusive_ns)
            return oracle_wrong("epoch %zu: %llu ns, presented %llu", i, (unsigned long long)e[i].inclusive_ns,
                                (unsigned long long)ns);
        for (; row < count && rows[row].epoch == i; row++) {
            of_rows += rows[row].calls;
            if (rows[row].rest) rest = rows[row].calls;
            for (int k = 0; k < REGIONS && !rows[row].rest; k++)
                if (region[k] == rows[row].region && !rows[row].at_least &&
                    (rows[row].calls != sum[k] || rows[row].inclusive_ns != inclusive[k]))
                    return oracle_wrong("epoch %zu region %d: %llu calls, presented %llu", i, k,
                                        (unsigned long long)rows[row].calls, (unsigned long long)sum[k]);
        }
        if (of_rows != e[i].calls || rest > e[i].calls) return oracle_wrong("epoch %zu: rows and rest are not all", i);
        all += e[i].calls;
    }
    return all == repeats * calls ? NULL
                                  : oracle_wrong("the epochs have %llu calls, presented were %llu",
                                                 (unsigned long long)all, (unsigned long long)(repeats * calls));
}

static const char *accounts(struct fdr_file *f, uint64_t repeats)
{
    const struct fdr_ledger_row *ledger;
    const struct fdr_total *total;
    uint64_t presented = 0, sum = 0;
    size_t n = fdr_ledger(f, &ledger);
    for (size_t i = 0; i < n; i++) {
        if (ledger[i].presented != ledger[i].kept + ledger[i].filtered + ledger[i].reduced + ledger[i].lost ||
            ledger[i].lost)
            return oracle_wrong("P3: depth %u", ledger[i].depth);
        presented += ledger[i].presented;
    }
    n = fdr_totals(f, &total);
    for (size_t i = 0; i < n; i++) sum += total[i].calls;
    if (presented != repeats * calls + 1 || sum != repeats * calls)
        return oracle_wrong("P3, P5: %llu presented, %llu in totals", (unsigned long long)presented,
                            (unsigned long long)sum);
    return NULL;
}

static const char *bin; /* NULL: the default size */

static void run_of(enum program program, const struct stream *in, const char *buffer, uint64_t bytes,
                   const char *shares, uint64_t repeats)
{
    struct fdr_config c = oracle_config(oracle_directory());
    const uint64_t t0 = 1000000;
    uint64_t first = 0, last = 0, shown = 0, begin, part = repeats / 10 + 1;
    const char *wrong;
    c.buffer = buffer;
    c.strategy = "telescope";
    c.telescope = shares;
    c.bin = bin;
    assert_int_equal(fdr_init(&c), 0);
    steps = calls = depth = 0;
    if (program == STREAM) take_stream(in);
    else make_stretch(program == FLAT);
    outer = fdr_region_define("main", "test.c", 1);
    for (unsigned i = 0; i < REGIONS; i++) {
        char name[16];
        snprintf(name, sizeof name, "region %u", i);
        region[i] = fdr_region_define(name, "test.c", 10 + i);
    }
    fdr_enter_at(outer, t0);
    for (uint64_t i = 0; i < repeats; i++) {
        begin = cpu_ns();
        present(t0 + i * (span + idle));
        if (i < part) first += cpu_ns() - begin;
        if (i + part >= repeats) last += cpu_ns() - begin;
    }
    struct fdr_usage u = fdr_usage();
    struct fdr_file *f = oracle_snapshot(bytes, &wrong);
    if (!wrong) wrong = accounts(f, repeats);
    if (!wrong) wrong = epochs(f, repeats);
    if (!wrong) wrong = survivors(f, t0, repeats, &shown);
    if (wrong) fail_msg("%s %s: %s", buffer, program_name[program], wrong);
    const struct fdr_file_info *info = fdr_file_info(f);
    const struct fdr_epoch_info *e;
    double tenth = (double)part * steps;
    print_message("%s, %s, shares %s: %llu events in %.2f days, %llu shown, %zu epochs, %llu steps, balance %.3f, "
                  "CPU time per event of the first tenth %.1f ns, of the last %.1f ns (x %.2f)\n",
                  buffer, program_name[program], shares ? shares : "equal", (unsigned long long)(repeats * steps),
                  (double)(repeats * (span + idle)) / 86400e9, (unsigned long long)shown, fdr_epochs(f, &e),
                  (unsigned long long)u.reductions, info->memory_balance, (double)first / tenth, (double)last / tenth,
                  (double)last / (double)first);
    fflush(stdout);
    if (u.reductions) assert_true(u.bytes_stored + u.meta_bytes >= bytes * 8 / 10);
    assert_true(fdr_location_info(f, 0)->from_ns <= t0 + span || program == FLAT);
    fdr_file_close(f);
    fdr_finalize();
}

static void run(const char *buffer, uint64_t bytes, const char *shares, bool flat, uint64_t repeats)
{
    run_of(flat ? FLAT : DEEP, NULL, buffer, bytes, shares, repeats);
}

static uint64_t repeats(void)
{
    const char *v = getenv("FDR_SOAK");
    return v && atoi(v) > 0 ? (uint64_t)atoi(v) : 60;
}

static void P3_P4_P5_P9_a_long_run(void **state)
{
    (void)state;
    run("256K", 256u << 10, NULL, false, repeats());
    run("1M", 1u << 20, NULL, false, repeats() * 2);
    run("1M", 1u << 20, "8,4,1", false, repeats());
    run("512K", 512u << 10, "1,2,4,8", false, repeats());
    idle = IDLE;
    run("1M", 1u << 20, NULL, false, repeats());
    if (getenv("FDR_SOAK")) {
        run("4M", 4u << 20, NULL, false, repeats());
        run("8M", 8u << 20, NULL, false, repeats());
        run("64M", 64u << 20, NULL, false, repeats());
    }
    idle = 0;
}

static void P3_P4_P5_P9_a_recorded_stream(void **state)
{
    struct stream in;
    (void)state;
    if (!evt_load(&in, "npb-cg.r0.t0")) {
        print_message("skipped: no npb-cg.r0.t0.evt.zst in %s (FDR_CORPUS says where)\n", evt_folder());
        skip();
    }
    idle = IDLE;
    if (getenv("FDR_SOAK")) run_of(STREAM, &in, "8M", 8u << 20, NULL, repeats());
    else run_of(STREAM, &in, "1M", 1u << 20, NULL, 30);
    idle = 0;
    evt_free(&in);
}

static void P3_P4_P5_P9_a_flat_program(void **state)
{
    (void)state;
    run("256K", 256u << 10, NULL, true, repeats());
    run("1M", 1u << 20, NULL, true, repeats());
}

static void P3_P4_P5_P9_bins_of_any_size(void **state)
{
    static const char *const sizes[] = {"512", "1K", "16K"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        bin = sizes[i];
        run("1M", 1u << 20, NULL, false, repeats() / 2 + 1);
    }
    bin = NULL;
}

/* Pauses, then bursts. Partitions whose last record is old must not keep the memory that a burst needs. */
static void P3_idle_phases_and_bursts(void **state)
{
    struct fdr_config c = oracle_config(oracle_directory());
    struct oracle_rules r = {.buffer = 256u << 10};
    static struct oracle o;
    const char *wrong;
    uint64_t t = 1000;
    (void)state;
    c.buffer = "256K";
    c.strategy = "telescope";
    assert_int_equal(fdr_init(&c), 0);
    uint32_t id[64];
    for (unsigned i = 0; i < 64; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%u", i);
        id[i] = fdr_region_define(name, "b.c", i);
    }
    seed = 7;
    for (int phase = 0; phase < 60; phase++) {
        uint32_t deep = 1 + rnd(&seed, 60), length = rnd(&seed, 3) ? 50 : 5000;
        for (int i = 0; i < 6000 / (int)deep; i++) {
            for (uint32_t d = 0; d < deep; d++) both_enter(&o, id[d], t += rnd(&seed, length));
            for (uint32_t d = 0; d < deep; d++) both_leave(&o, t += rnd(&seed, length));
        }
        t += rnd(&seed, 4) ? 1000000 : 3600000000000u;
    }
    struct fdr_file *f = oracle_snapshot(r.buffer, &wrong);
    if (!wrong) wrong = oracle_check(&o, &r, f, fdr_location_info(f, 0)->id);
    if (wrong) fail_msg("%s", wrong);
    const struct fdr_ledger_row *ledger;
    size_t n = fdr_ledger(f, &ledger);
    for (size_t i = 0; i < n; i++) assert_int_equal(ledger[i].lost, 0);
    fdr_file_close(f);
    fdr_finalize();
    oracle_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_P4_P5_P9_a_long_run),     cmocka_unit_test(P3_P4_P5_P9_a_recorded_stream),
        cmocka_unit_test(P3_P4_P5_P9_a_flat_program), cmocka_unit_test(P3_P4_P5_P9_bins_of_any_size),
        cmocka_unit_test(P3_idle_phases_and_bursts),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
