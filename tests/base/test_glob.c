/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60
 * Patterns of rules and triggers match as the C library's fnmatch does, for random patterns and texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fnmatch.h>
#include <string.h>

#include "base/text/glob.h"
#include "tests/support/random_numbers.h"

static void patterns_of_the_manual(void **state)
{
    (void)state;
    assert_true(fdri_text_glob("", ""));
    assert_false(fdri_text_glob("", "a"));
    assert_true(fdri_text_glob("*", ""));
    assert_true(fdri_text_glob("std::*", "std::sort<int*>"));
    assert_true(fdri_text_glob("*/third_party/*", "/a/b/third_party/c/d.c"));
    assert_false(fdri_text_glob("parse_*", "xparse_"));
    assert_true(fdri_text_glob("a?c", "a\xc3\xa9"
                                      "c"));
    assert_true(fdri_text_glob("[!0-9]x", "ax"));
    assert_false(fdri_text_glob("[^0-9]x", "4x"));
    assert_true(fdri_text_glob("[]a]", "]"));
    assert_true(fdri_text_glob("[[:digit:]_]*", "_1"));
    assert_true(fdri_text_glob("operator\\[\\]", "operator[]"));
    assert_true(fdri_text_glob("operator[", "operator["));
    assert_true(fdri_text_glob("\xff?", "\xff\xfe"));
    assert_true(fdri_text_glob("[\xc3\xa0-\xc3\xbf]", "\xc3\xa9"));
    assert_false(
        fdri_text_glob("*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void any_text(uint64_t *seed, char *text, uint32_t most, const char *const *piece, uint32_t pieces)
{
    *text = 0;
    for (uint32_t n = rnd(seed, most); n; n--) strcat(text, piece[rnd(seed, pieces)]);
}

static void agrees_with_fnmatch(void **state)
{
    (void)state;
    static const char *const of_pattern[] = {"a",     "b",   "-",           "*", "*",      "?",   "[ab]", "[!a]",
                                             "[a-c]", "\\*", "[[:alpha:]]", "]", "[^b-c]", "\\a", "[a-]", "]x]"};
    static const char *const of_text[] = {"a", "b", "c", "-", "*", "[", "]", "x"};
    uint64_t seed = 88172645463325252u, matched = 0;
    char pattern[256], text[128];
    for (int i = 0; i < 400000; i++) {
        any_text(&seed, pattern, 8, of_pattern, sizeof of_pattern / sizeof *of_pattern);
        any_text(&seed, text, 8, of_text, sizeof of_text / sizeof *of_text);
        bool is = fdri_text_glob(pattern, text), should = !fnmatch(pattern, text, 0);
        if (is != should) fail_msg("%s matches %s: %d, %d", pattern, text, is, should);
        matched += is;
    }
    assert_true(matched > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(patterns_of_the_manual), cmocka_unit_test(agrees_with_fnmatch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
