/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P3
 * P3: `exclude exact NAME` keeps out the calls of that name, whatever bytes it has, and of no other. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/api_fixture.h"

/* A thousand rules, each with a name of C++ whole: blanks, commas, signs of comments and of patterns, 3000 bytes. Of
 * two names that a pattern would confuse, only the named one is kept out. */
static void P3_exact_rules_take_names_whole(void **state)
{
    (void)state;
    enum { NAMES = 1000, BYTES = 3000 };
    static char name[NAMES][BYTES + 200], text[NAMES * 300 + 2 * BYTES];
    char *at = text;
    for (int i = 0; i < NAMES; i++) {
        snprintf(name[i], sizeof name[i],
                 "T* ns::Map<int, std::pair<char const*, A%d> >::operator[](K const&)::{lambda()#1}", i);
        if (i == 7) memset(name[i] + strlen(name[i]), 'x', BYTES);
        at += sprintf(at, "exclude exact %s%s\n", name[i], i % 2 ? " \t" : "");
    }
    char *rules = write_rules(text);
    begin(&(struct fdr_config){.filter = rules, .buffer = "16M"});
    uint64_t t = 0;
    for (int i = 0; i < NAMES; i++) {
        fdr_region out = fdr_region_define(name[i], "map.hpp", 1);
        name[i][0] = 'U';
        fdr_region in = fdr_region_define(name[i], "map.hpp", 1);
        fdr_enter_at(out, t += 100), fdr_leave_at(out, t += 100);
        fdr_enter_at(in, t += 100), fdr_leave_at(in, t += 100);
    }
    struct fdr_file *f = take();
    uint64_t out = 0, in = 0;
    for (uint32_t id = 1; id <= fdr_definition_count(f, FDR_REGION_DEFINITION); id++) {
        const struct fdr_total *w = total(f, FDR_IN_REGION, id);
        if (w->untimed) assert_int_equal(fdr_definition(f, FDR_REGION_DEFINITION, id)->symbol[0], 'T');
        out += w->untimed;
        in += w->calls;
    }
    assert_int_equal(out, NAMES);
    assert_int_equal(in, NAMES);
    end(f);
    unlink(rules);
}

/* Patterns and exact names in one file: the last one that matches decides. Blanks around a name, and lines without a
 * name, are no part of any rule. */
static void P3_exact_rules_beside_patterns(void **state)
{
    (void)state;
    char *rules = write_rules(
        "exclude name op*   # all\n  include exact op *[a] # b \r\nexclude exact \nevery 2 exact two words\n"
        "exclude exact\nmin 5us exact op#\nfirst 1 exact x y extra");
    begin(&(struct fdr_config){.filter = rules, .buffer = "16M"});
    static const char *const names[] = {"op", "op *[a] # b", "op#", "two words", "x y extra", "x"};
    static const uint64_t timed[] = {0, 4, 4, 2, 1, 4};
    uint64_t t = 0;
    fdr_region id[6];
    for (int i = 0; i < 6; i++) id[i] = fdr_region_define(names[i], "", 0);
    for (int i = 0; i < 24; i++) fdr_enter_at(id[i % 6], t += 100), fdr_leave_at(id[i % 6], t += 100);
    struct fdr_file *f = take();
    for (int i = 0; i < 6; i++) assert_int_equal(total(f, FDR_IN_REGION, id[i])->calls, timed[i]);
    end(f);
    unlink(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_exact_rules_take_names_whole),
        cmocka_unit_test(P3_exact_rules_beside_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
