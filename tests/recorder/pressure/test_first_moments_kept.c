/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads,slow timeout=300 promise=P3,P4,P9 without=tsan (its threads take turns)
 * P3, P4, P9: FDR_PIN keeps the first moments of a thread exactly, however long the run. The ledger must balance,
 * and only presented events may be shown. */
#include <unistd.h>

#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { REGIONS = 12, MOST_FIRST = 200000 };

static fdr_region region[REGIONS];
static fdr_marker_id mark;
static uint64_t seed = 88172645463325252u;

static void start(const char *strategy, const char *buffer, const char *pin, const char *resolution)
{
    begin(&(struct fdr_config){.strategy = strategy, .buffer = buffer, .pin = pin, .resolution = resolution});
    for (int i = 0; i < REGIONS; i++) region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "pin.c", 1);
    mark = fdr_marker_define("mark");
}

/* Calls of several depths and durations, with markers between them. */
static void present(uint32_t events, uint64_t *now)
{
    for (uint32_t i = 0; i < events; i++) {
        uint32_t what = rnd(&seed, 20);
        *now += rnd(&seed, 30) == 0 ? rnd(&seed, 20000) : rnd(&seed, 60);
        if (what == 0) both_marker(&o, mark, i, *now);
        else if (o.depth < 2 || (o.depth < 9 && what < 10)) both_enter(&o, region[rnd(&seed, REGIONS)], *now);
        else both_leave(&o, *now);
    }
}

static void P3_P4_P9_whatever_the_strategy(void **state)
{
    static const char *const strategies[] = {"telescope", "whole", "last", "first"};
    static const char *const resolutions[] = {"0", "128ns"};
    (void)state;
    for (int i = 0; i < 7; i++) { /* strategy `first` never pins, so one round is enough */
        uint64_t now = 1000000;
        start(strategies[i / 2], "256K", "1ms", resolutions[i % 2]);
        present(600000, &now);
        struct fdr_file *f = take();
        const struct fdr_location_info *l = fdr_location_info(f, 0);
        assert_true(fdr_usage().reduced > 0);
        /* the pinned time ends with the next new bin */
        if (i < 6) assert_in_range(l->pinned_to_ns, 2000000 - 256, 3000000);
        /* strategy `first` keeps the beginning anyway */
        else assert_int_equal(l->pinned_to_ns, 0);
        fdr_file_close(f);
        check((struct oracle_rules){.shift = i % 2 ? 7 : 0, .prefix = i >= 6});
    }
}

/* Hundreds of calls in one tick, many of them open when the pinned time ends. The calls inside of these are kept
 * and lack their parents. All calls that count as kept must be shown at their place. */
static void P3_P9_many_calls_in_a_unit(void **state)
{
    static const struct {
        const char *strategy, *buffer, *pin, *resolution;
        uint32_t shift, deepest, at_once; /* percent of the events that share the time of the previous event */
    } program[] = {{"telescope", "320K", "1ms", "65536ns", 16, 24, 95},
                   {"telescope", "320K", "1ms", "65536ns", 16, 60, 33},
                   {"whole", "768K", "20us", "128ns", 7, 40, 95}};
    (void)state;
    for (uint32_t k = 0; k < (SANITIZED ? 4 : 12); k++) {
        uint64_t now = 1000000;
        begin(&(struct fdr_config){.strategy = program[k % 3].strategy,
                                   .buffer = program[k % 3].buffer,
                                   .pin = program[k % 3].pin,
                                   .resolution = program[k % 3].resolution,
                                   .bin = "16K"});
        for (uint32_t i = 0; i < 80000; i++) {
            uint32_t what = rnd(&seed, 40);
            now += rnd(&seed, 100) < program[k % 3].at_once ? 0 : rnd(&seed, 40) ? rnd(&seed, 300) : rnd(&seed, 20000);
            if (what == 0) both_marker(&o, 1, i, now);
            else if (!o.depth || (o.depth < program[k % 3].deepest && what <= 20)) both_enter(&o, 1 + what % 16, now);
            else both_leave(&o, now);
        }
        check((struct oracle_rules){.shift = program[k % 3].shift});
    }
}

/* A call of length 0 and its callers began in one tick. Only the outermost of these callers is still stored; the
 * others ended after the pinned time and were given back. At their depths, some calls were too short to be stored,
 * or none. */
static void P3_P9_inside_of_what_was_open(void **state)
{
    (void)state;
    for (uint64_t least = 0; least <= 1000; least += 1000) {
        uint64_t now = 10 << 16;
        begin(&(struct fdr_config){.strategy = "last",
                                   .buffer = "256K",
                                   .pin = "1ms",
                                   .resolution = "65536ns",
                                   .min_duration = least ? "1us" : "0"});
        for (uint32_t d = 1; d <= 4; d++) both_enter(&o, d, now + d);
        both_leave(&o, now += 2000);
        for (uint32_t i = 0; i < 4000; i++) both_enter(&o, 5, now += 700), both_leave(&o, now += 1100);
        both_leave(&o, now), both_leave(&o, now);
        for (uint32_t i = 0; i < 300000; i++) {
            both_enter(&o, 6, now += rnd(&seed, 200000)), both_enter(&o, 7, now);
            both_leave(&o, now += rnd(&seed, 200000));
            both_leave(&o, now);
        }
        check((struct oracle_rules){.shift = 16, .min_duration = least});
    }
}

/* The same, but events after the pinned time find no room in some of these buffers. These are lost, and none were
 * lost before. */
static void P3_P9_inside_of_what_was_lost_later(void **state)
{
    (void)state;
    uint32_t short_of_room = 0;
    for (uint32_t kib = 96; kib <= 256; kib += 8) {
        uint64_t now = 1000000;
        char buffer[16];
        snprintf(buffer, sizeof buffer, "%uK", kib);
        begin(&(struct fdr_config){.strategy = "last", .buffer = buffer, .pin = "2ms", .resolution = "65536ns"});
        for (uint32_t i = 0; i < 70000; i++) {
            uint32_t what = rnd(&seed, 10);
            now += rnd(&seed, 80);
            if (what == 0) both_coll_begin(&o, 10, now);
            else if (what <= 2) both_message(&o, what == 1, i, 1, 0, i, now);
            else if (!o.depth || (o.depth < 60 && rnd(&seed, 10) < (o.depth < 58 ? 9 : 5)))
                both_enter(&o, 1 + rnd(&seed, 50), now);
            else both_leave(&o, now);
        }
        short_of_room += fdr_usage().lost > 0;
        check((struct oracle_rules){.shift = 16});
    }
    assert_true(short_of_room > 0);
}

/* Calls and markers that had ended within the pinned time. */
struct seen {
    uint64_t enter, leave;
    uint32_t id, depth;
};
static struct seen first[MOST_FIRST];

static size_t first_ones(uint64_t to)
{
    size_t n = 0;
    for (size_t i = 0; i < o.count; i++) {
        const struct oracle_event *p = &o.event[i];
        if (p->kind == FDR_LEAVE || (p->kind == FDR_ENTER && p->mate == ORACLE_NONE)) continue;
        uint64_t leave = p->kind == FDR_ENTER ? o.event[p->mate].time : p->time;
        if (leave > to) continue;
        assert_true(n < MOST_FIRST);
        first[n++] = (struct seen){p->time, leave, p->id, p->depth};
    }
    return n;
}

static void are_all_there(struct fdr_file *f, uint64_t to)
{
    size_t wanted = first_ones(to), n = 0;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    while (n < wanted && fdr_iter_next(it, &e)) {
        bool call = e.kind == FDR_ENTER;
        uint64_t leave = call ? e.time_ns + e.duration_ns : e.time_ns;
        if (e.kind == FDR_LEAVE || leave > to) continue;
        if (first[n].enter == e.time_ns && first[n].leave == leave && first[n].id == e.id && first[n].depth == e.depth)
            n++;
        else if (!call || e.duration_ns) /* otherwise the call is open or made up by the reader */
            fail_msg("event %zu of %zu: %llu, id %u, depth %u", n, wanted, (unsigned long long)e.time_ns, e.id,
                     e.depth);
    }
    fdr_iter_close(it);
    assert_int_equal(n, wanted);
}

/* The oracle gets only the events of the beginning. A hundred times the buffer's size follows, which the oracle
 * does not see. */
static void P4_a_hundred_buffers_later(void **state)
{
    (void)state;
    uint64_t now = 1000000;
    start("telescope", "256K", "1ms", "0");
    present(150000, &now);
    while (o.depth) both_leave(&o, now += 10);
    const unsigned buffers = SANITIZED ? 10 : 100;
    while (fdr_usage().reduced < buffers * (256u << 10) / 2) { /* a call takes about two bytes */
        uint32_t depth = 0, open[9];
        for (uint32_t i = 0; i < 100000; i++) {
            now += rnd(&seed, 30) == 0 ? rnd(&seed, 20000) : rnd(&seed, 60);
            if (depth < 2 || (depth < 9 && rnd(&seed, 2)))
                fdr_enter_at(region[open[depth++] = rnd(&seed, REGIONS)], now);
            else fdr_leave_at(region[open[--depth]], now);
        }
        while (depth) fdr_leave_at(region[open[--depth]], now += 10);
    }
    struct fdr_file *f = take();
    const struct fdr_location_info *l = fdr_location_info(f, 0);
    assert_true(l->pinned_to_ns > 1900000 && l->pinned_bytes > 4096 && !l->pinned_cut);
    assert_true(l->pinned_bytes < 256u << 8);
    are_all_there(f, l->pinned_to_ns);
    assert_true(balance(f) > buffers * 100000);
    end(f);
}

/* FDR_PIN keeps a quarter of the fair share at most, and the recording says that it stopped there. */
static void it_has_a_cap(void **state)
{
    (void)state;
    uint64_t now = 1000000;
    start("telescope", "256K", "1000s", "0");
    present(600000, &now);
    struct fdr_file *f = take();
    const struct fdr_location_info *l = fdr_location_info(f, 0);
    assert_true(l->pinned_cut);
    assert_in_range(l->pinned_bytes, 16384, 65536);
    are_all_there(f, l->pinned_to_ns);
    fdr_file_close(f);
    check((struct oracle_rules){0});
}

/* The caller presents times, and the pinned time starts with the thread's first event. The times may be later than
 * this machine's clock, as from a machine with a longer uptime. */
static void times_of_a_later_clock(void **state)
{
    static const char *const timers[] = {"monotonic", "tsc"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        uint64_t began = 1000000000000000000, now = began;
        begin(&(struct fdr_config){.buffer = "256K", .pin = "1ms", .timer = timers[i]});
        fdr_enter_at(1, now);
        for (uint32_t k = 0; k < 100000; k++) fdr_enter_at(2, now += 70), fdr_leave_at(2, now += rnd(&seed, 500));
        struct fdr_file *f = take();
        assert_in_range(fdr_location_info(f, 0)->pinned_to_ns, began + 999000, began + 1500000);
        assert_true(fdr_location_info(f, 0)->pinned_events > 4000);
        balance(f);
        end(f);
    }
}

/* Definitions have used up the room for accounts, and the encoder's table for points fits no bin. Points after the
 * pinned time go on with the table of the pinned partitions. */
static void points_go_on_where_accounts_have_no_room(void **state)
{
    (void)state;
    uint64_t now = 1000000;
    begin(&(struct fdr_config){.buffer = "512K", .bin = "512", .pin = "100us"});
    for (uint32_t i = 0; i < 100000; i++) {
        for (unsigned k = 0; i == 10 && k < 6000; k++)
            fdr_region_define("one of many functions with a name", "pin.c", k);
        fdr_enter_at(1, now += 70), fdr_leave_at(1, now += rnd(&seed, 500));
        fdr_marker_at(1, i, now += 20);
    }
    struct fdr_file *f = take();
    assert_true(fdr_location_info(f, 0)->pinned_events > 500);
    assert_int_equal(row(f, fdr_location_info(f, 0)->id, FDR_IN_MARKER, 0)->presented, 100000);
    assert_int_equal(row(f, fdr_location_info(f, 0)->id, FDR_IN_MARKER, 0)->lost, 0);
    balance(f);
    end(f);
}

/* A rewind to a mark within the pinned time also drops the later events of the pinned partitions. */
static void a_rewind_reaches_back(void **state)
{
    (void)state;
    start("telescope", "256K", "1ms", "0");
    for (uint64_t i = 0; i < 2000; i++)
        fdr_enter_at(region[0], 1000000 + i * 100), fdr_leave_at(region[0], 1000050 + i * 100);
    fdr_rewind_mark();
    for (uint64_t i = 2000; i < 40000; i++)
        fdr_enter_at(region[1], 1000000 + i * 100), fdr_leave_at(region[1], 1000050 + i * 100);
    assert_int_equal(fdr_usage().reduced, 0);
    fdr_rewind();
    struct fdr_file *f = take();
    assert_int_equal(row(f, fdr_location_info(f, 0)->id, FDR_IN_REGION, 1)->kept, 2000);
    assert_int_equal(row(f, fdr_location_info(f, 0)->id, FDR_IN_REGION, 1)->filtered, 38000);
    assert_true(fdr_location_info(f, 0)->pinned_to_ns > 0);
    balance(f);
    end(f);
}

static pthread_barrier_t turn;
static void *sleeper(void *unused)
{
    for (uint64_t i = 0; i < 4000; i++)
        fdr_enter_at(region[2], 1000000 + i * 100), fdr_leave_at(region[2], 1000050 + i * 100);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn); /* the thread sleeps while another one fills the buffer */
    return unused;
}

static const struct fdr_location_info *the_other(struct fdr_file *f)
{
    for (size_t i = 0; i < fdr_location_count(f); i++)
        if (fdr_location_info(f, i)->tid != (uint32_t)gettid()) return fdr_location_info(f, i);
    return NULL;
}

/* No other thread claims pinned bins. */
static void others_leave_it(void **state)
{
    (void)state;
    uint64_t now = 1000000;
    pthread_t t;
    start("telescope", "256K", "100us", "0");
    assert_int_equal(pthread_barrier_init(&turn, NULL, 2), 0);
    assert_int_equal(pthread_create(&t, NULL, sleeper, NULL), 0);
    pthread_barrier_wait(&turn);
    struct fdr_file *f = take();
    uint64_t events = the_other(f)->pinned_events;
    assert_true(the_other(f)->pinned_to_ns > 1100000 - 256 && events > 500);
    fdr_file_close(f);
    for (int i = 0; i < 400000; i++)
        fdr_enter_at(region[i % 5], now += 70), fdr_leave_at(region[i % 5], now += rnd(&seed, 500));
    f = take();
    assert_int_equal(the_other(f)->pinned_events, events);
    balance(f);
    pthread_barrier_wait(&turn);
    pthread_join(t, NULL);
    end(f);
    pthread_barrier_destroy(&turn);
}

/* ---- a thread that ended ---- */

static void *comes_and_ends(void *unused)
{
    uint64_t now = 1000000000;
    for (uint32_t i = 0, lean = 10; i < 100000; i++) {
        if (rnd(&seed, 500) == 0) lean = 7 + rnd(&seed, 7);
        if (rnd(&seed, 4) == 0) now += rnd(&seed, 3) == 0 ? rnd(&seed, 400000) : rnd(&seed, 300);
        if (o.depth == 9 || (o.depth && rnd(&seed, 20) < lean)) both_leave(&o, now);
        else both_enter(&o, 1 + rnd(&seed, rnd(&seed, 3) ? 8 : 58), now);
    }
    while (o.depth) both_leave(&o, now += rnd(&seed, 50));
    return unused;
}

static uint64_t ended_by(uint64_t to)
{
    uint64_t n = 0;
    for (size_t i = 0; i < o.count; i++) n += o.event[i].kind == FDR_LEAVE && o.event[i].time <= to;
    return n;
}

static uint64_t shown_by(struct fdr_file *f, uint32_t location, uint64_t to)
{
    uint64_t n = 0;
    struct fdr_iter *it = fdr_iter_open(f, &(struct fdr_select){.locations = &location, .location_count = 1});
    for (struct fdr_read_event e; fdr_iter_next(it, &e);) n += e.kind == FDR_LEAVE && !e.repaired && e.time_ns <= to;
    fdr_iter_close(it);
    return n;
}

static void what_is_said_is_true(struct fdr_file *f, const struct fdr_location_info *l)
{
    const char *wrong = oracle_check(&o, &(struct oracle_rules){0}, f, l->id);
    if (wrong) fail_msg("%s", wrong);
    if (l->pinned_to_ns) assert_int_equal(shown_by(f, l->id, l->pinned_to_ns), ended_by(l->pinned_to_ns));
    else assert_true(l->pinned_given && !l->pinned_events && !l->pinned_bytes && !l->pinned_cut);
    balance(f);
}

/* An ended thread's bins go to another thread a few at a time, the pinned ones among them. The remaining events
 * lack only parents that were open then, and the recording no longer claims that they are complete. */
static void P3_P9_of_a_thread_that_ended(void **state)
{
    static const char *const strategies[] = {"telescope", "whole", "last"};
    uint32_t whole = 0, partly = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        uint64_t now = 1000000000;
        const struct fdr_location_info *l;
        begin(&(struct fdr_config){.strategy = strategies[i], .buffer = "1M", .pin = "200ms"});
        assert_int_equal(pthread_create(&t, NULL, comes_and_ends, NULL), 0);
        pthread_join(t, NULL);
        struct fdr_file *f = take();
        for (; (l = the_other(f)) && !l->ended_threads && l->bytes_stored; f = take()) {
            bool given = l->pinned_given;
            *(given ? &partly : &whole) += 1;
            what_is_said_is_true(f, l);
            fdr_file_close(f);
            for (int k = 0; k < (given ? 4000 : 30000); k++)
                fdr_enter_at(1, now += 70), fdr_leave_at(1, now += rnd(&seed, 500));
        }
        end(f);
    }
    assert_true(whole >= 3 && partly >= 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_P4_P9_whatever_the_strategy), cmocka_unit_test(P3_P9_many_calls_in_a_unit),
        cmocka_unit_test(P3_P9_inside_of_what_was_open),  cmocka_unit_test(P3_P9_inside_of_what_was_lost_later),
        cmocka_unit_test(P4_a_hundred_buffers_later),     cmocka_unit_test(it_has_a_cap),
        cmocka_unit_test(times_of_a_later_clock),         cmocka_unit_test(points_go_on_where_accounts_have_no_room),
        cmocka_unit_test(a_rewind_reaches_back),          cmocka_unit_test(others_leave_it),
        cmocka_unit_test(P3_P9_of_a_thread_that_ended)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
