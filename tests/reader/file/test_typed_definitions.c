/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60
 * Definitions as the reader types them: unit, kind and type of metrics, fields of events, members of communicators.
 * Fields of fdr's own events have the unit of the metric that they are named for, also if their name was cut. Fields of
 * the program's events have none. An id without a definition has a name and nothing else. */
#include "tests/support/api_fixture.h"

static void metrics(void **state)
{
    (void)state;
    begin(&(struct fdr_config){0});
    fdr_metric_id load = fdr_metric_define("load", "", FDR_F64, FDR_METRIC_GAUGE);
    fdr_metric_id sent = fdr_metric_define("sent", "bytes", FDR_U32, FDR_METRIC_COUNTER);
    fdr_metric_id drift = fdr_metric_define("drift", "um", FDR_I64, FDR_METRIC_GAUGE);
    struct fdr_file *f = take();
    const struct fdr_metric_info *m = fdr_metric_info(f, load);
    assert_true(m->id == load && !strcmp(m->name, "load") && !*m->unit && m->type == FDR_VALUE_F64 && !m->counter);
    m = fdr_metric_info(f, sent);
    assert_true(!strcmp(m->name, "sent") && !strcmp(m->unit, "bytes") && m->type == FDR_VALUE_U64 && m->counter);
    m = fdr_metric_info(f, drift);
    assert_true(!strcmp(m->unit, "um") && m->type == FDR_VALUE_I64 && !m->counter);
    assert_string_equal(fdr_definition(f, FDR_METRIC_DEFINITION, drift)->file, ""); /* a unit is no file */
    m = fdr_metric_info(f, 77);
    assert_true(m->id == 77 && !strcmp(m->name, "[unknown 77]") && !*m->unit && m->type == FDR_VALUE_U64);
    end(f);
}

static void events(void **state)
{
    char cut[28];
    struct fdr_field own[] = {{"thread", FDR_U64, 0},
                              {"series", FDR_U64, 8},
                              {"reading", FDR_U64, 16},
                              {"idle", FDR_U64, 24},
                              {"source:temperature", FDR_F64, 32},
                              {cut, FDR_U64, 40},
                              {"source:a-name-that-is-longer-than-27", FDR_U64, 48},
                              {"source:unknown", FDR_U64, 56}};
    (void)state;
    begin(&(struct fdr_config){0});
    fdr_metric_define("thread", "no unit of thread ids", FDR_U64, FDR_METRIC_GAUGE);
    fdr_metric_id temperature = fdr_metric_define("source:temperature", "K", FDR_F64, FDR_METRIC_GAUGE);
    fdr_metric_id first = fdr_metric_define("source:a-name-that-is-longer-than-27 1", "one", FDR_U64, FDR_METRIC_GAUGE);
    fdr_metric_id second = fdr_metric_define("source:a-name-that-is-longer-than-27 2", "two", FDR_U64,
                                             FDR_METRIC_GAUGE);
    int digits = snprintf(cut, sizeof cut, "#%u", second);
    snprintf(cut, sizeof cut, "%.*s#%u", 27 - digits, "source:a-name-that-is-longer-than-27 2", second);
    fdr_event_type reading = fdr_event_define("fdr.counters.0", own, 8);
    fdr_event_type program = fdr_event_define("program", own, 8);
    struct fdr_file *f = take();
    const struct fdr_event_info *e = fdr_event_info(f, reading);
    assert_true(e->id == reading && e->field_count == 8);
    const uint32_t expected[] = {0, 0, 0, 0, temperature, second, first, 0};
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(e->field[i].metric, expected[i]);
        assert_string_equal(e->field[i].unit, expected[i] ? fdr_metric_info(f, expected[i])->unit : "");
    }
    assert_int_equal(e->field[4].type, FDR_VALUE_F64);
    e = fdr_event_info(f, program);
    assert_string_equal(e->field[4].name, "source:temperature");
    for (uint32_t i = 0; i < 8; i++) assert_true(!e->field[i].metric && !*e->field[i].unit);
    assert_true(fdr_event_info(f, 99)->field_count == 0 && !strcmp(fdr_event_info(f, 99)->name, "[unknown 99]"));
    end(f);
}

static void communicators(void **state)
{
    static const uint32_t row[] = {4, 5, 7};
    (void)state;
    begin(&(struct fdr_config){0});
    fdr_comm_id of_row = fdr_comm_define("row 1", row, 3), of_none = fdr_comm_define("nobody", NULL, 0);
    struct fdr_file *f = take();
    const struct fdr_comm_info *c = fdr_comm_info(f, of_row);
    assert_true(c->id == of_row && c->size == 3 && !strcmp(c->name, "row 1"));
    assert_memory_equal(c->world_rank, row, sizeof row);
    assert_int_equal(fdr_comm_info(f, of_none)->size, 0);
    assert_true(fdr_comm_info(f, 0)->size == 0 && !strcmp(fdr_comm_info(f, 0)->name, "[unknown]"));
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(metrics), cmocka_unit_test(events),
                                       cmocka_unit_test(communicators)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
