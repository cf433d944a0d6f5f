/* SPDX-License-Identifier: MIT */
/* The public header, function by function: what is promised of each, read back from a snapshot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>

#include "recorder/recorder.h"
#include "tests/oracle.h"

static struct oracle o;

static void begin(const struct fdr_config *more)
{
    struct fdr_config c = oracle_config(oracle_directory());
    if (more) {
        const char *const *from = (const void *)&more->enable;
        const char **to = (void *)&c.enable;
        for (size_t i = 0; i < (sizeof c - offsetof(struct fdr_config, enable)) / sizeof *to; i++)
            if (from[i]) to[i] = from[i];
    }
    oracle_free(&o);
    fdr_finalize(); /* of a test that failed */
    assert_int_equal(fdr_init(&c), 0);
}

static struct fdr_file *take(void)
{
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(0, &wrong);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    return f;
}

static void end(struct fdr_file *f)
{
    char text[160];
    const char *bins = fdri_bins_check(&fdri_rec.arena, text, sizeof text);
    fdr_file_close(f);
    fdr_finalize();
    if (bins) print_message("%s\n", bins);
    assert_null(bins);
}

/* Snapshot, everything against the oracle, end. */
static void check(struct oracle_rules r)
{
    struct fdr_file *f = take();
    const char *wrong = oracle_check(&o, &r, f, fdr_location_info(f, 0)->id);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    end(f);
}

static const struct fdr_ledger_row *row(struct fdr_file *f, uint32_t location, uint32_t class_, uint32_t depth)
{
    static const struct fdr_ledger_row none;
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n; i++)
        if (rows[i].location == location && rows[i].class_ == class_ && rows[i].depth == depth) return &rows[i];
    return &none;
}
static const struct fdr_total *total(struct fdr_file *f, uint32_t class_, uint32_t id)
{
    static const struct fdr_total none;
    const struct fdr_total *rows;
    size_t n = fdr_totals(f, &rows);
    for (size_t i = 0; i < n; i++)
        if (rows[i].class_ == class_ && rows[i].id == id && !rows[i].rest) return &rows[i];
    return &none;
}
/* kept + filtered + reduced + lost = presented in every row; returns presented of all. */
static uint64_t balance(struct fdr_file *f)
{
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(rows[i].presented, rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost);
        sum += rows[i].presented;
    }
    return sum;
}
static size_t load(struct fdr_file *f, struct fdr_read_event *e, size_t room)
{
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    size_t n = 0;
    while (n < room && fdr_iter_next(it, &e[n])) n++;
    fdr_iter_close(it);
    return n;
}

/* ---- definitions ---- */

static void P3_definitions_are_idempotent(void **state)
{
    (void)state;
    assert_int_equal(fdr_region_define("early", NULL, 0), 0); /* nothing records yet */
    begin(NULL);
    fdr_region a = fdr_region_define("a", "f.c", 1);
    assert_int_not_equal(a, 0);
    assert_int_equal(fdr_region_define("a", "f.c", 1), a);
    assert_int_not_equal(fdr_region_define("a", "f.c", 2), a);
    assert_int_not_equal(fdr_region_define("a", "g.c", 1), a);
    fdr_region bare = fdr_region_define("a", NULL, 0);
    assert_int_equal(fdr_region_define("a", "", 0), bare);
    assert_int_equal(fdr_marker_define("m"), fdr_marker_define("m"));
    assert_int_equal(fdr_metric_define("x", "s", FDR_U64, FDR_METRIC_GAUGE), fdr_metric_define("x", "s", FDR_U64, FDR_METRIC_GAUGE));
    assert_int_not_equal(fdr_metric_define("x", "s", FDR_U64, FDR_METRIC_GAUGE), fdr_metric_define("x", "s", FDR_F64, FDR_METRIC_GAUGE));
    const uint32_t ranks[] = {3, 1, 4}, others[] = {3, 1, 5};
    fdr_comm_id comm = fdr_comm_define("c", ranks, 3);
    assert_int_not_equal(comm, 0);
    assert_int_equal(fdr_comm_define("c", ranks, 3), comm);
    assert_int_not_equal(fdr_comm_define("c", others, 3), comm);
    static char endless[9000];
    memset(endless, 'n', sizeof endless - 1);
    fdr_region huge = fdr_region_define(endless, endless, 7);
    assert_int_equal(fdr_region_define(endless, endless, 7), huge);
    fdr_region empty = fdr_region_define(NULL, NULL, 0);
    assert_int_not_equal(empty, 0);
    fdr_enter(a);
    fdr_leave(a);
    struct fdr_file *f = take();
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, a)->name, "a");
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, a)->file, "f.c");
    assert_int_equal(fdr_definition(f, FDR_REGION_DEFINITION, a)->line, 1);
    assert_int_equal(strlen(fdr_definition(f, FDR_REGION_DEFINITION, huge)->name), 4095);
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, 999999)->name, "[unknown 999999]");
    end(f);
}

struct definer { pthread_t thread; fdr_region id[200]; };
static void *define_many(void *argument)
{
    struct definer *d = argument;
    char name[20];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "many%d", i);
        d->id[i] = fdr_region_define(name, "many.c", 0);
    }
    return NULL;
}
static void P3_definitions_by_many_threads_agree(void **state)
{
    (void)state;
    static struct definer d[4];
    begin(NULL);
    for (int i = 0; i < 4; i++) pthread_create(&d[i].thread, NULL, define_many, &d[i]);
    for (int i = 0; i < 4; i++) pthread_join(d[i].thread, NULL);
    for (int i = 1; i < 4; i++) assert_memory_equal(d[0].id, d[i].id, sizeof d[0].id);
    end(take());
}

static int helper(int n)
{
    FDR_FUNCTION();
    if (n == 1) return 1; /* left here too */
    for (int i = 0; i < 3; i++) {
        FDR_REGION("inner") {
            if (i == 1) continue;
            if (n == 2 && i == 2) return 2;
        }
    }
    return 0;
}
static void P9_scopes_are_left_on_every_way_out(void **state)
{
    (void)state;
    begin(NULL);
    for (int n = 0; n < 3; n++)
        FDR_REGION("outer") { helper(n); }
    for (int i = 0; i < 3; i++)
        FDR_REGION("broken") { if (i == 2) break; }
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->kept, 6);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->kept, 3);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 3)->kept, 6);
    assert_int_equal(fdr_location_info(f, 0)->unbalanced + fdr_location_info(f, 0)->stray_leaves, 0);
    struct fdr_read_event e[64];
    load(f, e, 64);
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, e[0].id)->name, "outer");
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, e[1].id)->name, "helper");
    end(f);
}

/* ---- calls ---- */

static void P3_recursion_deeper_than_the_stack(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "16M"});
    uint64_t t = 1000;
    for (int round = 0; round < 3; round++) {
        for (uint32_t d = 0; d < 3000; d++) both_enter(&o, 1 + d % 7, t += 10);
        for (uint32_t d = 0; d < 3000; d++) both_leave(&o, t += 10);
    }
    both_enter(&o, 5, t += 10); /* not lost track of */
    both_enter(&o, 6, t += 10);
    both_leave(&o, t += 10);
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->open_count, 1);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 0);
    assert_int_equal(balance(f), 9002);
    uint64_t lost = 0, deepest = 0;
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n; i++) lost += rows[i].lost, deepest = rows[i].depth > deepest ? rows[i].depth : deepest;
    assert_int_equal(deepest, 1025);
    assert_int_equal(lost, 3 * (3000 - 1024));
    fdr_file_close(f);
    check((struct oracle_rules){0});
}

static void recurse(fdr_region r, int depth, jmp_buf *out)
{
    char big[512];
    memset(big, depth, sizeof big);
    fdr_enter(r);
    if (depth > 1) recurse(r, depth - 1, out);
    else if (out) longjmp(*out, 1);
    if (big[10] != (char)depth) abort(); /* keeps the frame */
    fdr_leave(r);
}
static void P3_live_recursion_and_longjmp_out_of_it(void **state)
{
    (void)state;
    static jmp_buf out;
    begin(&(struct fdr_config){.buffer = "16M"});
    fdr_region r = fdr_region_define("r", NULL, 0), top = fdr_region_define("top", NULL, 0);
    fdr_enter(top);
    recurse(r, 2000, NULL);
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->open_count, 1);
    fdr_file_close(f);
    if (setjmp(out) == 0) recurse(r, 2000, &out);
    fdr_leave(top); /* closes what longjmp skipped */
    fdr_enter(r);
    fdr_leave(r);
    f = take();
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(balance(f), 4002);
    assert_int_equal(fdr_location_info(f, 0)->unbalanced, 1023);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->kept, 2);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 0);
    end(f);
}

static void P9_leaves_that_do_not_match(void **state)
{
    (void)state;
    begin(NULL);
    uint64_t t = 5000;
    fdr_leave_at(3, t);
    for (uint32_t d = 1; d <= 6; d++) both_enter(&o, d, t += 7);
    fdr_leave_at(99, t += 3);       /* not open: counted, ignored */
    t += 4;
    fdr_leave_at(2, t);             /* closes 6 5 4 3 and 2 */
    for (int i = 0; i < 5; i++) oracle_leave(&o, t);
    fdr_leave_at(6, t);
    both_enter(&o, 4, t += 7);
    both_leave(&o, t += 7);
    both_leave(&o, t += 7);
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 3);
    assert_int_equal(fdr_location_info(f, 0)->unbalanced, 4);
    fdr_file_close(f);
    check((struct oracle_rules){.complete = true});
}

static void P9_clocks_that_step_back_are_clamped(void **state)
{
    (void)state;
    begin(NULL);
    both_enter(&o, 1, 1000);
    both_enter(&o, 2, 900);
    both_marker(&o, 1, 7, 850);
    both_leave(&o, 990);
    both_enter(&o, 3, 1001);
    both_leave(&o, 10);
    both_leave(&o, 2000);
    struct fdr_file *f = take();
    assert_int_equal(o.clamped, 4);
    assert_int_equal(fdr_location_info(f, 0)->clamped, o.clamped);
    fdr_file_close(f);
    check((struct oracle_rules){.complete = true});
}

static void P10_times_near_the_end_of_time(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter_at(1, 0);
    fdr_enter_at(2, UINT64_MAX - 5);
    fdr_marker_at(1, UINT64_MAX, UINT64_MAX);
    fdr_leave_at(2, UINT64_MAX);
    fdr_leave_at(1, 17);
    struct fdr_file *f = take();
    uint64_t events = 0;
    const char *wrong = oracle_check_any(f, &events);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    assert_int_equal(events, 5);
    assert_int_equal(balance(f), 3);
    end(f);
}

static void P10_ids_that_nobody_defined(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter(0);
    fdr_enter(UINT32_MAX);
    fdr_enter(0x1000000);
    fdr_leave(0x1000000);
    fdr_leave(UINT32_MAX);
    fdr_leave(0);
    fdr_enter(4000000);
    fdr_leave(4000000);
    fdr_metric_u64(UINT32_MAX, 1);
    fdr_marker(UINT32_MAX, 1);
    fdr_event(UINT32_MAX, "x");
    fdr_event(7, NULL);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 8);
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 0);
    uint64_t events = 0;
    assert_null(oracle_check_any(f, &events));
    assert_int_equal(events, 12);
    end(f);
}

static void P3_pause_counts_only(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter_at(1, 100);
    fdr_pause();
    fdr_pause();
    fdr_enter_at(2, 200);
    fdr_marker_at(1, 5, 250);
    fdr_leave_at(2, 300);
    fdr_resume();
    fdr_enter_at(2, 400);  /* still paused */
    fdr_resume();
    fdr_resume();          /* one too many: nothing */
    fdr_enter_at(3, 500);
    fdr_leave_at(3, 600);
    fdr_leave_at(2, 700);  /* entered in the pause: untimed */
    fdr_enter_at(2, 800);
    fdr_leave_at(2, 850);
    fdr_leave_at(1, 900);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 6);
    const struct fdr_total *t = total(f, FDR_IN_REGION, 2);
    assert_int_equal(t->untimed, 2);
    assert_int_equal(t->calls, 1);
    assert_int_equal(t->inclusive_ns, 50);
    assert_int_equal(total(f, FDR_IN_REGION, 1)->inclusive_ns, 800);
    assert_int_equal(total(f, FDR_IN_REGION, 3)->inclusive_ns, 100);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->filtered, 2);
    assert_int_equal(row(f, 0, FDR_IN_MARKER, 2)->filtered, 1);
    end(f);
}

static void P3_depth_limit_counts_only(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.depth = "3"});
    uint64_t t = 0;
    for (int round = 0; round < 50; round++) {
        for (uint32_t d = 1; d <= 40; d++) both_enter(&o, d, t += 5);
        for (uint32_t d = 1; d <= 40; d++) both_leave(&o, t += 5);
    }
    check((struct oracle_rules){.depth = 3});
}

static void P4_minimum_duration_is_taken_before_rounding(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        begin(&(struct fdr_config){.min_duration = "1us", .resolution = k ? "128ns" : "0"});
        uint64_t t = 77;
        for (uint32_t i = 0; i < 3000; i++) {
            both_enter(&o, 1, t += 1000);
            both_enter(&o, 2, t);
            both_leave(&o, t += 990 + i % 20); /* around the edge */
            both_leave(&o, t += i % 3);
        }
        check((struct oracle_rules){.min_duration = 1000, .shift = k ? 7 : 0});
    }
}

/* Ties: everything happens in few ticks. Exact in lossless time, valid in reduced. */
static void P4_equal_time_stamps_keep_their_order(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        begin(&(struct fdr_config){.buffer = "32M", .resolution = (const char *[]){"0", "128ns", "1us"}[k]});
        uint64_t t = 1 << 20, seed = 12345;
        for (int i = 0; i < 300000; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t x = (uint32_t)(seed >> 33) % 16;
            if (x < 3) t += x == 0 ? 300 : 1;
            if (x < 6 && o.depth < 10) both_enter(&o, 1 + (uint32_t)(seed >> 50) % 5, t);
            else if (x < 12 && o.depth) both_leave(&o, t);
            else if (x == 13) both_marker(&o, 1, (uint64_t)i, t);
            else if (x == 14) both_message(&o, i & 1, 3, -1, 0, (uint64_t)i, t);
        }
        check((struct oracle_rules){.complete = true, .shift = (uint32_t[]){0, 7, 9}[k]});
    }
}

/* ---- points ---- */

static uint64_t bits(double v)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    return u;
}

static void P4_metrics_of_every_type(void **state)
{
    (void)state;
    begin(NULL);
    fdr_metric_id u = fdr_metric_define("u", "1", FDR_U64, FDR_METRIC_COUNTER), i = fdr_metric_define("i", "1", FDR_I32, FDR_METRIC_GAUGE),
                  d = fdr_metric_define("d", "s", FDR_F64, FDR_METRIC_GAUGE);
    const double odd[] = {0.0, -0.0, 1.5, -2.25e300, (double)NAN, (double)INFINITY, -(double)INFINITY, 5e-324};
    const int64_t whole[] = {0, -1, INT64_MIN, INT64_MAX, 42};
    uint64_t t = 100, field[64];
    size_t n = 0;
    for (size_t k = 0; k < 8; k++) fdr_metric_f64_at(d, odd[k], t += 3), field[n++] = bits(odd[k]);
    for (size_t k = 0; k < 5; k++) fdr_metric_i64_at(i, whole[k], t += 3), field[n++] = (uint64_t)whole[k];
    fdr_metric_u64_at(u, UINT64_MAX, t += 3), field[n++] = UINT64_MAX;
    fdr_metric_u64_at(u, 3, t += 3), field[n++] = 3;
    fdr_metric_f64_at(u, -7.5, t += 3), field[n++] = 0;             /* given in another type: converted */
    fdr_metric_f64_at(i, -7.5, t += 3), field[n++] = (uint64_t)-7;
    fdr_metric_i64_at(d, -7, t += 3), field[n++] = bits(-7.0);
    fdr_metric_f64_at(i, (double)NAN, t += 3), field[n++] = 0;
    struct fdr_file *f = take();
    struct fdr_read_event e[64];
    assert_int_equal(load(f, e, 64), n);
    for (size_t k = 0; k < n; k++) {
        assert_int_equal(e[k].kind, FDR_METRIC);
        assert_int_equal(e[k].field_count, 1);
        assert_true(e[k].field[0] == field[k]);
        assert_int_equal(e[k].time_ns, 103 + 3 * k);
    }
    assert_int_equal(total(f, FDR_IN_METRIC, i)->calls, 7);
    assert_true(total(f, FDR_IN_METRIC, i)->min_u == (uint64_t)INT64_MIN);
    assert_true(total(f, FDR_IN_METRIC, i)->max_u == (uint64_t)INT64_MAX);
    assert_int_equal(total(f, FDR_IN_METRIC, u)->calls, 3);
    assert_true(total(f, FDR_IN_METRIC, u)->max_u == UINT64_MAX && total(f, FDR_IN_METRIC, u)->min_u == 0);
    assert_true(total(f, FDR_IN_METRIC, d)->min_u == bits(-(double)INFINITY));
    assert_true(total(f, FDR_IN_METRIC, d)->max_u == bits((double)INFINITY));
    assert_int_equal(fdr_definition(f, FDR_METRIC_DEFINITION, d)->value_type, 2);
    assert_string_equal(fdr_definition(f, FDR_METRIC_DEFINITION, d)->file, "s");
    end(f);
}

/* A NaN that comes first must not hide the others. */
static void P5_nan_is_not_the_extreme(void **state)
{
    (void)state;
    begin(NULL);
    fdr_metric_id d = fdr_metric_define("nan first", "1", FDR_F64, FDR_METRIC_GAUGE);
    fdr_metric_f64_at(d, (double)NAN, 10);
    fdr_metric_f64_at(d, 2.0, 20);
    fdr_metric_f64_at(d, 3.0, 30);
    struct fdr_file *f = take();
    bool low = total(f, FDR_IN_METRIC, d)->min_u == bits(2.0), high = total(f, FDR_IN_METRIC, d)->max_u == bits(3.0);
    end(f);
    assert_true(low && high);
}

static void P4_user_events_with_typed_fields(void **state)
{
    (void)state;
    struct payload { uint64_t a; int64_t b; double c; uint32_t d; int32_t e; float g; };
    static const struct fdr_field fields[] = {
        {"a", FDR_U64, offsetof(struct payload, a)}, {"b", FDR_I64, offsetof(struct payload, b)}, {"c", FDR_F64, offsetof(struct payload, c)},
        {"d", FDR_U32, offsetof(struct payload, d)}, {"e", FDR_I32, offsetof(struct payload, e)}, {"g", FDR_F32, offsetof(struct payload, g)},
        {"a field with a name far longer than fits", FDR_U64, 0}};
    static struct fdr_field many[40];
    begin(NULL);
    fdr_event_type type = fdr_event_define("typed", fields, 7), none = fdr_event_define("empty", NULL, 0);
    assert_int_not_equal(type, 0);
    assert_int_equal(fdr_event_define("typed", fields, 7), type);
    assert_int_not_equal(fdr_event_define("typed", fields, 6), type);
    for (int i = 0; i < 40; i++) many[i] = (struct fdr_field){"x", FDR_U64, 0};
    fdr_event_type most = fdr_event_define("most", many, 16);
    assert_int_not_equal(most, 0);
    many[3].type = (enum fdr_type)99;
    assert_int_equal(fdr_event_define("bad", many, 16), 0);
    const struct payload values[] = {{UINT64_MAX, INT64_MIN, -0.0, UINT32_MAX, INT32_MIN, -1.5f}, {0, 0, 0, 0, 0, 0}, {7, -7, 1e-300, 7, -7, 3.5f}};
    uint64_t t = 0;
    for (int i = 0; i < 3; i++) fdr_event_at(type, &values[i], t += 11);
    fdr_event_at(none, NULL, t += 11);
    fdr_event_at(most, &values[0], t += 11);
    struct fdr_file *f = take();
    struct fdr_read_event e[8];
    assert_int_equal(load(f, e, 8), 5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(e[i].kind, FDR_EVENT);
        assert_int_equal(e[i].id, type);
        assert_int_equal(e[i].field_count, 7);
        assert_true(e[i].field[0] == values[i].a && e[i].field[1] == (uint64_t)values[i].b && e[i].field[2] == bits(values[i].c));
        assert_true(e[i].field[3] == values[i].d && e[i].field[4] == (uint64_t)(int64_t)values[i].e && e[i].field[5] == bits((double)values[i].g));
    }
    assert_int_equal(e[3].field_count, 0);
    assert_int_equal(e[4].field_count, 16);
    for (int i = 0; i < 16; i++) assert_true(e[4].field[i] == UINT64_MAX);
    const struct fdr_definition *d = fdr_definition(f, FDR_EVENT_DEFINITION, type);
    assert_int_equal(d->field_count, 7);
    assert_string_equal(d->field_name[4], "e");
    assert_int_equal(d->field_type[4], 1);
    assert_int_equal(total(f, FDR_IN_USER, type)->calls, 3);
    end(f);
}

static void P4_messages_and_collectives(void **state)
{
    (void)state;
    begin(NULL);
    uint64_t t = 0;
    both_message(&o, true, 0, INT32_MIN, 0, 0, t += 5);
    both_message(&o, false, UINT32_MAX, INT32_MAX, UINT32_MAX, UINT64_MAX, t += 5);
    both_enter(&o, 1, t += 5);
    both_coll_begin(&o, 13, t += 5);
    both_message(&o, true, 3, -1, 2, 1 << 20, t);
    both_coll_end(&o, 13, 2, -1, UINT32_MAX, 8, t += 5);
    both_coll_begin(&o, 4095, t += 5);
    both_coll_end(&o, 4095, 0, 0, 0, 0, t);
    both_marker(&o, 1, UINT64_MAX, t += 5);
    both_marker(&o, 2, 0, t);
    both_leave(&o, t += 5);
    check((struct oracle_rules){.complete = true});
}

/* ---- rules, phases, rewind ---- */

static char *write_rules(const char *text)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/rules", oracle_directory());
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
    return path;
}

static void P3_rules_keep_out_what_they_say(void **state)
{
    (void)state;
    char *rules = write_rules("# comment\n exclude name mpi_*\ninclude name mpi_init\nfirst 3 name warm*\nevery 4 name often\n"
                              "min 5us name brief\nexclude file */noise.c\n");
    begin(&(struct fdr_config){.filter = rules});
    const char *const names[] = {"mpi_send", "mpi_init", "warmup", "often", "brief", "plain", "other"};
    const uint64_t kept[] = {0, 20, 3, 5, 10, 20, 0}, untimed[] = {20, 0, 17, 15, 0, 0, 20};
    fdr_region id[7];
    for (int i = 0; i < 7; i++) id[i] = fdr_region_define(names[i], i == 6 ? "src/noise.c" : "src/main.c", 1);
    uint64_t t = 0;
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 7; i++) {
            fdr_enter_at(id[i], t += 100);
            fdr_enter_at(id[5], t += 100); /* inside all of them; never kept out */
            fdr_leave_at(id[5], t += 100);
            fdr_leave_at(id[i], t += i == 4 && round % 2 ? 6000 : 100);
        }
    struct fdr_file *f = take();
    uint64_t shown[7] = {0};
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e))
        for (int i = 0; i < 7; i++) shown[i] += e.kind == FDR_ENTER && e.id == id[i] && !e.reduced;
    fdr_iter_close(it);
    for (int i = 0; i < 7; i++) {
        uint64_t expect = i == 5 ? 20 + 140 : kept[i];
        const struct fdr_total *w = total(f, FDR_IN_REGION, id[i]);
        if (shown[i] != expect || w->untimed != untimed[i])
            print_message("%s: %llu shown, %llu expected; untimed %llu, expected %llu\n", names[i], (unsigned long long)shown[i],
                          (unsigned long long)expect, (unsigned long long)w->untimed, (unsigned long long)untimed[i]);
        assert_int_equal(shown[i], expect);
        assert_int_equal(w->untimed, untimed[i]);
    }
    assert_int_equal(total(f, FDR_IN_REGION, id[4])->calls, 20); /* a minimum stops storage, not the clock */
    assert_int_equal(balance(f), 20 * 14);
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves + fdr_location_info(f, 0)->unbalanced, 0);
    end(f);
    unlink(rules);
}

/* A call that a rule keeps out, and one of the same region that it does not, may be open at the same time. */
static void P3_recursion_of_a_region_that_is_kept_out(void **state)
{
    (void)state;
    char *rules = write_rules("every 2 name r\n");
    begin(&(struct fdr_config){.filter = rules});
    fdr_region r = fdr_region_define("r", NULL, 0), s = fdr_region_define("s", NULL, 0);
    for (int i = 0; i < 8; i++) fdr_enter(r), fdr_enter(s);
    for (int i = 0; i < 8; i++) fdr_leave(s), fdr_leave(r);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 16);
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves + fdr_location_info(f, 0)->unbalanced, 0);
    end(f);
    unlink(rules);
}

static void P3_phases_store_only_inside(void **state)
{
    (void)state;
    char *rules = write_rules("phase solve*\n");
    begin(&(struct fdr_config){.filter = rules});
    fdr_enter_at(1, 100);
    fdr_leave_at(1, 200);
    fdr_phase_begin("other");
    fdr_enter_at(1, 300);
    fdr_leave_at(1, 400);
    fdr_phase_end("other");
    fdr_phase_begin("solver");
    fdr_enter_at(2, 500);
    fdr_leave_at(2, 600);
    fdr_phase_end("solver");
    fdr_enter_at(1, 700);
    fdr_leave_at(1, 800);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 4);
    uint64_t kept = row(f, 0, FDR_IN_REGION, 1)->kept, filtered = row(f, 0, FDR_IN_REGION, 1)->filtered;
    end(f);
    unlink(rules);
    assert_int_equal(kept, 1); /* docs: a thread stores only between begin and end of a named one */
    assert_int_equal(filtered, 3);
}

static void P3_rewind_forgets_exactly(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "8M"});
    fdr_rewind(); /* no mark: nothing */
    uint64_t t = 0, forgotten = 0;
    fdr_enter_at(1, t += 10);
    for (int round = 0; round < 60; round++) {
        fdr_rewind_mark();
        uint64_t n = 0;
        for (int i = 0; i < 400; i++) {
            fdr_enter_at(2, t += 10);
            fdr_enter_at(3, t += 10);
            fdr_marker_at(1, 5, t);
            fdr_leave_at(3, t += 300);
            fdr_leave_at(2, t += 5000);
            n += 3;
        }
        if (round % 3) fdr_rewind(), forgotten += n;
    }
    fdr_leave_at(1, t += 10);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 1 + 60 * 1200);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->filtered + row(f, 0, FDR_IN_REGION, 3)->filtered + row(f, 0, FDR_IN_MARKER, 3)->filtered, forgotten);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->kept, 20 * 400);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->kept, 1);
    assert_int_equal(total(f, FDR_IN_REGION, 2)->calls, 60 * 400); /* totals stay */
    assert_int_equal(total(f, FDR_IN_MARKER, 1)->calls, 60 * 400);
    uint64_t events = 0;
    assert_null(oracle_check_any(f, &events));
    assert_int_equal(events, 20 * 400 * 5 + 2);
    end(f);
}

/* Rewinds while reductions go on, marks whose bins are long gone, calls that span the mark. */
static void P3_rewind_in_a_small_buffer(void **state)
{
    static const char *const strategies[] = {"whole", "last", "first"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        begin(&(struct fdr_config){.buffer = "256K", .bin = "1K", .strategy = strategies[k]});
        uint64_t t = 0, n = 0, seed = 99;
        uint32_t depth = 0;
        for (int i = 0; i < 400000; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t x = (uint32_t)(seed >> 33) % 1000;
            t += x % 7 == 0 ? 3000 : x % 11;
            if (x < 430 && depth < 20) fdr_enter_at(1 + depth++, t), n++;
            else if (x < 900 && depth) fdr_leave_at(depth--, t);
            else if (x < 940) fdr_marker_at(1, 9, t), n++;
            else if (x == 950) fdr_rewind_mark();
            else if (x == 951) fdr_rewind();
        }
        struct fdr_file *f = take();
        assert_int_equal(balance(f), n);
        uint64_t events = 0;
        const char *wrong = oracle_check_any(f, &events);
        if (wrong) print_message("%s: %s\n", strategies[k], wrong);
        assert_null(wrong);
        end(f);
    }
}

/* ---- start and end ---- */

static void everything(void)
{
    static const uint32_t ranks[] = {0};
    fdr_region r = fdr_region_define("x", NULL, 0);
    fdr_enter(r), fdr_leave(r), fdr_enter_at(r, 5), fdr_leave_at(r, 6);
    fdr_enter_address((const void *)(uintptr_t)&everything), fdr_leave_address((const void *)(uintptr_t)&everything);
    fdr_region_define_address((const void *)(uintptr_t)&everything);
    fdr_metric_u64(1, 1), fdr_metric_i64_at(1, 1, 1), fdr_metric_f64(1, 1);
    fdr_marker(fdr_marker_define("m"), 1);
    fdr_message_send(1, 1, fdr_comm_define("c", ranks, 1), 1), fdr_message_recv_at(1, 1, 1, 1, 1);
    fdr_collective_begin(1), fdr_collective_end(1, 1, 1, 1, 1);
    fdr_event(fdr_event_define("e", NULL, 0), NULL);
    fdr_thread_name("x"), fdr_pause(), fdr_resume(), fdr_rewind_mark(), fdr_rewind();
    fdr_phase_begin("p"), fdr_phase_end("p");
    FDR_REGION("macro") {}
}

static void P10_calls_before_init_and_after_finalize(void **state)
{
    (void)state;
    everything();
    assert_int_equal(fdr_usage().buffer_bytes, 0);
    assert_int_not_equal(fdr_snapshot("none"), 0);
    fdr_finalize();
    begin(NULL);
    everything();
    fdr_finalize();
    everything();
    fdr_finalize();
    assert_int_equal(fdr_usage().presented, 0);
    assert_int_not_equal(fdr_snapshot("none"), 0);
}

static void P10_two_recordings_keep_their_ids(void **state)
{
    (void)state;
    fdr_region a = 0, b = 0;
    for (int round = 0; round < 3; round++) {
        begin(NULL);
        fdr_region again = fdr_region_define("keeps its id", "x.c", 1), other = fdr_region_define("me too", "x.c", 2);
        if (round) assert_true(a == again && b == other);
        a = again, b = other;
        fdr_metric_id m = fdr_metric_define("double", "1", FDR_F64, FDR_METRIC_GAUGE);
        fdr_enter(a), fdr_enter(b), fdr_leave(b), fdr_leave(a);
        fdr_metric_f64(m, 0.5);
        struct fdr_file *f = take();
        assert_int_equal(balance(f), 3);
        assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, b)->name, "me too");
        struct fdr_read_event e[8];
        assert_int_equal(load(f, e, 8), 5);
        assert_true(e[4].field[0] == bits(0.5));
        end(f);
    }
}

static void P10_a_failed_start_is_harmless(void **state)
{
    (void)state;
    struct fdr_config c = oracle_config(oracle_directory());
    struct fdr_config off = c;
    off.enable = "0";
    assert_int_equal(fdr_init(&off), 0);
    everything();
    assert_int_equal(fdr_usage().buffer_bytes, 0);
    fdr_finalize();
    c.size = offsetof(struct fdr_config, bin); /* an older caller's structure */
    assert_int_equal(fdr_init(&c), 0);
    assert_int_equal(fdr_init(&c), 0);         /* idempotent */
    everything();
    assert_true(fdr_usage().presented > 5);
    fdr_finalize();
}

/* ---- threads ---- */

static void *one_call(void *argument)
{
    fdr_thread_name((const char *)argument);
    fdr_enter(1);
    fdr_marker(1, 2);
    fdr_leave(1);
    return NULL;
}

static void P3_threads_come_and_go(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "16M"});
    fdr_enter(2);
    for (int i = 0; i < 200; i++) {
        pthread_t t;
        char name[64];
        snprintf(name, sizeof name, "thread %d with a name that is much too long for it", i);
        assert_int_equal(pthread_create(&t, NULL, one_call, name), 0);
        pthread_join(t, NULL);
    }
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_count(f), 201);
    assert_int_equal(balance(f), 401);
    assert_true(fdr_location_info(f, 0)->live);
    for (size_t i = 1; i <= 200; i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        char name[64];
        snprintf(name, sizeof name, "thread %d with a name that is much too long for it", (int)i - 1);
        name[31] = 0;
        assert_string_equal(l->name, name);
        assert_false(l->live);
        assert_true(l->end_ns >= l->start_ns && l->end_ns > 0);
        assert_int_equal(row(f, l->id, FDR_IN_REGION, 1)->kept, 1);
    }
    assert_int_equal(fdr_file_info(f)->lost_locations, 0);
    end(f);
}

static void P3_more_threads_than_the_buffer_holds(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "192K"});
    enum { THREADS = 400 };
    for (int i = 0; i < THREADS; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, one_call, "t"), 0);
        pthread_join(t, NULL);
    }
    struct fdr_file *f = take();
    const struct fdr_file_info *info = fdr_file_info(f);
    size_t held = fdr_location_count(f);
    uint64_t sum = balance(f);
    print_message("%zu of %d threads held, %llu turned away, %llu events of those\n", held, THREADS,
                  (unsigned long long)info->lost_locations, (unsigned long long)info->lost_unattached);
    assert_true(held > 0 && held < THREADS);
    assert_int_equal(info->lost_locations, THREADS - held);
    assert_true(sum <= 2 * held);
    /* a thread without a location counts what it presents; an event that found no account counts too */
    assert_true(sum + info->lost_unattached >= 2 * THREADS);
    end(f);
}

/* ---- clocks and usage ---- */

static void P3_usage_agrees_with_the_ledger(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "512K"});
    uint64_t t = 0;
    for (int i = 0; i < 200000; i++) fdr_enter_at(1 + i % 50, t += 10), fdr_marker_at(1, 1, t), fdr_leave_at(1 + i % 50, t += 1 + i % 5000);
    struct fdr_usage u = fdr_usage();
    struct fdr_file *f = take();
    uint64_t kept = 0, reduced = 0;
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n; i++) kept += rows[i].kept, reduced += rows[i].reduced;
    assert_int_equal(u.presented, balance(f));
    assert_int_equal(u.presented, u.stored + u.filtered + u.reduced + u.lost);
    assert_true(u.stored >= kept && u.reduced <= reduced); /* the reader drops what lost its parents */
    assert_true(u.reductions > 0 && u.bins_free < u.bins && u.bytes_stored <= u.buffer_bytes);
    assert_int_equal(u.buffer_bytes, 512 << 10);
    assert_int_equal(u.locations, 1);
    end(f);
}

static void P4_at_times_on_a_live_location(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.timer = "tsc"});
    struct timespec now;
    fdr_enter(1); /* live first: the location has the live clock */
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    fdr_enter_at(2, ns + 1000000000u);
    fdr_leave_at(2, ns + 3000000000u);
    fdr_leave_at(1, ns + 3000000000u);
    struct fdr_file *f = take();
    struct fdr_read_event e[8];
    assert_int_equal(load(f, e, 8), 4);
    int64_t off = (int64_t)(e[1].time_ns - ns) - 1000000000, length = (int64_t)e[1].duration_ns - 2000000000;
    print_message("off by %lld ns, length by %lld ns\n", (long long)off, (long long)length);
    assert_true(off > -20000000 && off < 20000000 && length > -2000000 && length < 2000000);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_calls_before_init_and_after_finalize), cmocka_unit_test(P3_definitions_are_idempotent), cmocka_unit_test(P3_definitions_by_many_threads_agree),
        cmocka_unit_test(P9_scopes_are_left_on_every_way_out), cmocka_unit_test(P3_recursion_deeper_than_the_stack),
        cmocka_unit_test(P3_live_recursion_and_longjmp_out_of_it), cmocka_unit_test(P9_leaves_that_do_not_match),
        cmocka_unit_test(P9_clocks_that_step_back_are_clamped), cmocka_unit_test(P10_times_near_the_end_of_time),
        cmocka_unit_test(P10_ids_that_nobody_defined), cmocka_unit_test(P3_pause_counts_only),
        cmocka_unit_test(P3_depth_limit_counts_only), cmocka_unit_test(P4_minimum_duration_is_taken_before_rounding),
        cmocka_unit_test(P4_equal_time_stamps_keep_their_order), cmocka_unit_test(P4_metrics_of_every_type),
        cmocka_unit_test(P5_nan_is_not_the_extreme), cmocka_unit_test(P4_user_events_with_typed_fields),
        cmocka_unit_test(P4_messages_and_collectives), cmocka_unit_test(P3_rules_keep_out_what_they_say),
        cmocka_unit_test(P3_recursion_of_a_region_that_is_kept_out), cmocka_unit_test(P3_phases_store_only_inside),
        cmocka_unit_test(P3_rewind_forgets_exactly), cmocka_unit_test(P3_rewind_in_a_small_buffer),
        cmocka_unit_test(P10_two_recordings_keep_their_ids),
        cmocka_unit_test(P10_a_failed_start_is_harmless), cmocka_unit_test(P3_threads_come_and_go),
        cmocka_unit_test(P3_more_threads_than_the_buffer_holds), cmocka_unit_test(P3_usage_agrees_with_the_ledger),
        cmocka_unit_test(P4_at_times_on_a_live_location),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(oracle_directory());
    return bad;
}
