/* SPDX-License-Identifier: MIT */
/* ctest: label=unit clock=tsc promise=P10
 * P10: ids outlive a recording. If a later, smaller recording has no room for all names, no other name may get one
 * of their ids. */
#include "tests/support/api_fixture.h"

enum { NAMES = 6000 };

static fdr_region id[NAMES];

/* Long and short names by turns: a short one may fit where a long one did not. */
static char *name_of(unsigned i)
{
    static char name[256];
    snprintf(name, sizeof name, i % 2 ? "%u" : "%u of a long name%0200u", i, 0);
    return name;
}

static void P10_no_id_gets_another_name(void **state)
{
    struct fdr_config small = oracle_config(oracle_directory());
    unsigned cut = 0, gone = 0;
    (void)state;
    begin(&(struct fdr_config){.buffer = "64M"});
    for (unsigned i = 0; i < NAMES; i++) assert_int_not_equal(id[i] = fdr_region_define(name_of(i), NULL, 0), 0);
    fdr_finalize();
    small.buffer = "256K";
    assert_int_equal(fdr_init(&small), 0);
    fdr_region more = fdr_region_define("more", NULL, 0);
    for (unsigned i = 0; i < NAMES; i++) {
        fdr_region again = fdr_region_define(name_of(i), NULL, 0);
        assert_true(again == id[i] || again == 0);
    }
    struct fdr_file *f = take();
    for (unsigned i = 0; i < NAMES; i++) {
        const struct fdr_definition *d = fdr_definition(f, FDR_REGION_DEFINITION, id[i]);
        if (!d || *d->name == '[') {
            gone++;
            continue;
        }
        size_t same = strcspn(d->name, ".");
        cut += d->name[same] == '.';
        assert_memory_equal(d->name, name_of(i), same);
        assert_true(d->name[same] || strlen(name_of(i)) == same);
    }
    print_message("%u names are cut, %u gone\n", cut, gone);
    assert_true(cut > 0 && gone > 0);
    assert_int_equal(more, 0);
    assert_true(fdr_file_info(f)->lost_definitions > 0);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_no_id_gets_another_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
