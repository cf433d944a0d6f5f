/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60
 * Recordings of one host, exported together to Chrome's format. Recordings of one boot share one time line, even if the
 * wall clock was set in between. Recordings of two boots, or of two hosts, are placed by their wall clocks. */
#include "tests/support/api_fixture.h"

/* Microseconds between the enters of "r" in the two recordings, the second minus the first. */
static double apart(struct fdr_file *const *two)
{
    char path[512], line[4096];
    double ts[2] = {-1, -1};
    snprintf(path, sizeof path, "%s/both.json", oracle_directory());
    assert_int_equal(fdr_export_chrome(two, 2, NULL, path), 0);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        const char *pid = strstr(line, "\"pid\":"), *at = strstr(line, "\"ts\":");
        if (!strstr(line, "\"name\":\"r\"") || !pid || !at) continue;
        unsigned long i = strtoul(pid + 6, NULL, 10);
        assert_in_range(i, 1, 2);
        ts[i - 1] = strtod(at + 5, NULL);
    }
    fclose(in);
    unlink(path);
    assert_true(ts[0] >= 0 && ts[1] >= 0);
    return ts[1] - ts[0];
}

static void lines_of_time(void **state)
{
    const int64_t second = 1000000000;
    struct fdr_file *two[2] = {NULL, NULL};
    (void)state;
    begin(&(struct fdr_config){0});
    fdr_region r = fdr_region_define("r", NULL, 0);
    fdr_enter(r);
    fdr_leave(r);
    assert_int_equal(fdr_snapshot("one"), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(fdr_file_open(fdr_last_snapshot(), &two[i], NULL, 0), FDR_WHOLE);
    struct fdr_file_info *info = (struct fdr_file_info *)(uintptr_t)fdr_file_info(two[1]); /* edited below */
    int64_t offset = info->realtime_offset_ns, up = (int64_t)info->last_ns;
    assert_true(up > 2 * second);

    assert_true(apart(two) == 0);
    info->realtime_offset_ns = offset + up / 2; /* the wall clock was set, or the machine suspended */
    assert_true(apart(two) == 0);
    info->realtime_offset_ns = offset - up / 2;
    assert_true(apart(two) == 0);
    info->realtime_offset_ns = offset + up + second; /* another boot */
    assert_true(apart(two) > (double)up / 1e3);
    info->realtime_offset_ns = offset - up - second;
    assert_true(apart(two) < -(double)up / 1e3);
    info->realtime_offset_ns = offset + second; /* another host */
    info->host = "another";
    assert_true(apart(two) > 999999 && apart(two) < 1000001);
    for (int i = 0; i < 2; i++) fdr_file_close(two[i]);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_of_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
