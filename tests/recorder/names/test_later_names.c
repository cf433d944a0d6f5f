/* SPDX-License-Identifier: MIT */
/* ctest: label=unit
 * A region, metric or marker may get another name after its events. It is shown with the newest one, also in a later
 * recording of the process. Names for ids that do not exist change nothing. */
#include "tests/support/api_fixture.h"

static fdr_region region, other;
static fdr_metric_id metric;
static fdr_marker_id marker;

static void check_names(struct fdr_file *f)
{
    const struct fdr_definition *d = fdr_definition(f, FDR_REGION_DEFINITION, region);
    assert_string_equal(d->name, "newest");
    assert_string_equal(d->symbol, "newest");
    assert_string_equal(d->file, "newest.c");
    assert_int_equal(d->line, 7);
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, other)->name, "other");
    assert_string_equal(fdr_metric_info(f, metric)->name, "pressure");
    assert_string_equal(fdr_metric_info(f, metric)->unit, "bar");
    assert_int_equal(fdr_metric_info(f, metric)->type, FDR_VALUE_F64);
    assert_string_equal(fdr_id_name(f, FDR_IN_MARKER, marker), "checkpoint");
    assert_int_equal(fdr_definition_count(f, FDR_REGION_DEFINITION), 2);
}

static void later_names_are_shown(void **state)
{
    (void)state;
    begin(NULL);
    region = fdr_region_define("first", "first.c", 1);
    other = fdr_region_define("other", "", 0);
    metric = fdr_metric_define("m", "", FDR_F64, FDR_METRIC_GAUGE);
    marker = fdr_marker_define("k");
    fdr_enter(region);
    fdr_leave(region);
    fdr_region_rename(region, "second", "second.c", 2);
    fdr_region_rename(region, "newest", "newest.c", 7);
    fdr_metric_rename(metric, "pressure", "bar");
    fdr_marker_rename(marker, "checkpoint");
    fdr_region_rename(99, "nobody", "", 0);
    fdr_region_rename(0, "unknown", "", 0);
    struct fdr_file *f = take();
    check_names(f);
    assert_int_equal(fdr_region_define("first", "first.c", 1), region);
    end(f);
    begin(NULL);
    f = take();
    check_names(f);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(later_names_are_shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
