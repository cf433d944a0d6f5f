/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads promise=P4,P5
 * P4, P5: points of the public header. The test records metrics, user events and operations, and reads them back
 * from a snapshot. Values and totals must be exact. */
#include "format/codec/record_codec.h"
#include "tests/support/api_fixture.h"

/* ---- points ---- */

static void P4_metrics_of_every_type(void **state)
{
    (void)state;
    begin(NULL);
    fdr_metric_id u = fdr_metric_define("u", "1", FDR_U64, FDR_METRIC_COUNTER),
                  i = fdr_metric_define("i", "1", FDR_I32, FDR_METRIC_GAUGE),
                  d = fdr_metric_define("d", "s", FDR_F64, FDR_METRIC_GAUGE);
    const double odd[] = {0.0, -0.0, 1.5, -2.25e300, (double)NAN, (double)INFINITY, -(double)INFINITY, 5e-324};
    const int64_t whole[] = {0, -1, INT64_MIN, INT64_MAX, 42};
    uint64_t t = 100, field[64];
    size_t n = 0;
    for (size_t k = 0; k < 8; k++) fdr_metric_f64_at(d, odd[k], t += 3), field[n++] = bits(odd[k]);
    for (size_t k = 0; k < 5; k++) fdr_metric_i64_at(i, whole[k], t += 3), field[n++] = (uint64_t)whole[k];
    fdr_metric_u64_at(u, UINT64_MAX, t += 3), field[n++] = UINT64_MAX;
    fdr_metric_u64_at(u, 3, t += 3), field[n++] = 3;
    fdr_metric_f64_at(u, -7.5, t += 3), field[n++] = 0; /* given in another type, so fdr converts the value */
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
    assert_int_equal(fdr_metric_info(f, d)->type, FDR_VALUE_F64);
    assert_string_equal(fdr_metric_info(f, d)->unit, "s");
    end(f);
}

/* A value of another type than the metric's becomes the nearest value that fits. A NaN becomes 0. */
static void P4_metrics_of_another_type(void **state)
{
    (void)state;
    static const struct {
        double v;
        uint64_t u;
        int64_t i;
    } real[] = {{5e18, 5000000000000000000u, 5000000000000000000},
                {0x1p63, 1ull << 63, INT64_MAX},
                {1e19, 10000000000000000000u, INT64_MAX},
                {0x1.fffffffffffffp63, UINT64_MAX - 2047, INT64_MAX},
                {0x1p64, UINT64_MAX, INT64_MAX},
                {(double)INFINITY, UINT64_MAX, INT64_MAX},
                {0.9, 0, 0},
                {-0.9, 0, 0},
                {-0x1p63, 0, INT64_MIN},
                {-1e19, 0, INT64_MIN},
                {-(double)INFINITY, 0, INT64_MIN},
                {(double)NAN, 0, 0}};
    enum { REAL = sizeof real / sizeof real[0] };
    begin(NULL);
    fdr_metric_id u = fdr_metric_define("u", "1", FDR_U64, FDR_METRIC_GAUGE),
                  i = fdr_metric_define("i", "1", FDR_I64, FDR_METRIC_GAUGE),
                  d = fdr_metric_define("d", "1", FDR_F64, FDR_METRIC_GAUGE);
    uint64_t t = 100, field[2 * REAL + 5];
    size_t n = 0;
    for (size_t k = 0; k < REAL; k++) {
        fdr_metric_f64_at(u, real[k].v, t += 3), field[n++] = real[k].u;
        fdr_metric_f64_at(i, real[k].v, t += 3), field[n++] = (uint64_t)real[k].i;
    }
    fdr_metric_i64_at(u, -1, t += 3), field[n++] = 0;
    fdr_metric_i64_at(u, INT64_MIN, t += 3), field[n++] = 0;
    fdr_metric_i64_at(u, INT64_MAX, t += 3), field[n++] = INT64_MAX;
    fdr_metric_u64_at(i, UINT64_MAX, t += 3), field[n++] = INT64_MAX;
    fdr_metric_u64_at(d, UINT64_MAX, t += 3), field[n++] = bits(0x1p64);
    fdr_metric_f64_at(d, 1e19, t += 3), fdr_metric_f64_at(d, 0x1p62, t += 3);
    struct fdr_file *f = take();
    struct fdr_read_event e[64];
    assert_int_equal(load(f, e, 64), n + 2);
    for (size_t k = 0; k < n; k++) assert_true(e[k].field[0] == field[k]);
    const struct fdr_total *reals = total(f, FDR_IN_METRIC, d);
    assert_true(reals->has_histogram && reals->histogram[62] == 1 && reals->histogram[63] == 2);
    end(f);
}

/* A NaN that comes first must not hide the minimum and maximum of later values. */
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
    struct payload {
        uint64_t a;
        int64_t b;
        double c;
        uint32_t d;
        int32_t e;
        float g;
    };
    static const struct fdr_field fields[] = {{"a", FDR_U64, offsetof(struct payload, a)},
                                              {"b", FDR_I64, offsetof(struct payload, b)},
                                              {"c", FDR_F64, offsetof(struct payload, c)},
                                              {"d", FDR_U32, offsetof(struct payload, d)},
                                              {"e", FDR_I32, offsetof(struct payload, e)},
                                              {"g", FDR_F32, offsetof(struct payload, g)},
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
    const struct payload values[] = {
        {UINT64_MAX, INT64_MIN, -0.0, UINT32_MAX, INT32_MIN, -1.5f}, {0, 0, 0, 0, 0, 0}, {7, -7, 1e-300, 7, -7, 3.5f}};
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
        assert_true(e[i].field[0] == values[i].a && e[i].field[1] == (uint64_t)values[i].b &&
                    e[i].field[2] == bits(values[i].c));
        assert_true(e[i].field[3] == values[i].d && e[i].field[4] == (uint64_t)(int64_t)values[i].e &&
                    e[i].field[5] == bits((double)values[i].g));
    }
    assert_int_equal(e[3].field_count, 0);
    assert_int_equal(e[4].field_count, 16);
    for (int i = 0; i < 16; i++) assert_true(e[4].field[i] == UINT64_MAX);
    const struct fdr_event_info *d = fdr_event_info(f, type);
    assert_int_equal(d->field_count, 7);
    assert_string_equal(d->field[4].name, "e");
    assert_int_equal(d->field[4].type, FDR_VALUE_I64);
    assert_int_equal(total(f, FDR_IN_USER, type)->calls, 3);
    end(f);
}

static void *few_calls(void *unused)
{
    for (int i = 0; i < 100; i++) fdr_enter(1), fdr_marker(1, 1), fdr_leave(1);
    return unused;
}
/* More names than the memory holds must not keep threads from recording. */
static void P5_names_leave_room_for_threads(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "1M"});
    uint32_t defined = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        char name[64];
        snprintf(name, sizeof name, "some_namespace::function_number_%u", i);
        defined += fdr_region_define(name, "file.cc", i) != 0;
    }
    assert_true(defined > 2000 && defined < 20000);
    for (int i = 0; i < 4; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, few_calls, NULL), 0);
        pthread_join(t, NULL);
    }
    struct fdr_file *f = take();
    assert_int_equal(fdr_file_info(f)->lost_unattached, 0);
    assert_int_equal(balance(f), 800);
    end(f);
}

/* Operations with numbers that no table names. */
static void P4_numbers_of_operations(void **state)
{
    static const uint32_t operation[] = {0, 4095, 65536, 99999, FDRI_CODEC_OPERATION_END - 1}, n = 5;
    (void)state;
    begin(NULL);
    for (uint32_t i = 0; i < n; i++) fdr_collective_begin(operation[i]), fdr_collective_end(operation[i], 0, -1, 1, 2);
    struct fdr_file *f = take();
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    for (uint32_t i = 0; i < 2 * n; i++) {
        assert_true(fdr_iter_next(it, &e));
        assert_int_equal(e.kind, i % 2 ? FDR_COLL_END : FDR_COLL_BEGIN);
        assert_int_equal(e.id, operation[i / 2]);
    }
    fdr_iter_close(it);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P4_metrics_of_every_type),        cmocka_unit_test(P4_metrics_of_another_type),
        cmocka_unit_test(P5_nan_is_not_the_extreme),       cmocka_unit_test(P4_user_events_with_typed_fields),
        cmocka_unit_test(P4_messages_and_collectives),     cmocka_unit_test(P4_numbers_of_operations),
        cmocka_unit_test(P5_names_leave_room_for_threads),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_free(&o);
    return bad;
}
