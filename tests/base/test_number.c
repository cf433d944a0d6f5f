/* SPDX-License-Identifier: MIT */
/* ctest: label=unit
 * Numbers in settings are read as strtod reads them in the C locale, in every locale of the program. Any other text is
 * an error. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <locale.h>

#include "base/text/number.h"

static void same_as_strtod(void **state)
{
    static const char *const texts[] = {"0",
                                        "1",
                                        "2.5",
                                        "0.1us",
                                        "4.5M",
                                        "-3",
                                        "+7x",
                                        "1e3",
                                        "1E-2s",
                                        "1.e2",
                                        ".5",
                                        "5.",
                                        "1e",
                                        "1e+",
                                        "00012",
                                        "1.2.3",
                                        "1,5",
                                        "5e-324",
                                        "1e400",
                                        "1e-400",
                                        "18446744073709551615",
                                        "12345678901234567890123",
                                        "0.30000000000000004",
                                        "100000000000000000000000e-20"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *there;
        const char *end;
        double expected = strtod(texts[i], &there), value = fdri_text_number(texts[i], &end);
        print_message("%s\n", texts[i]);
        assert_ptr_equal(end, there);
        assert_true(value == expected || fabs(value - expected) <= fabs(expected) * 1e-15);
    }
}

static void no_numbers(void **state)
{
    static const char *const texts[] = {"",    "x",   "-",   "+",        ".",  "-.", "e5",
                                        ".e5", "nan", "inf", "infinity", " 1", ",5"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *end;
        fdri_text_number(texts[i], &end);
        assert_ptr_equal(end, texts[i]);
    }
}

static void hexadecimal_is_a_zero_and_a_unit(void **state)
{
    (void)state;
    const char *end, *text = "0x10";
    assert_true(fdri_text_number(text, &end) == 0);
    assert_string_equal(end, "x10");
}

/* A locale with a decimal comma, if the machine has one, must make no difference. */
static void text_has_a_point(void **state)
{
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "C"};
    static const struct {
        int decimals;
        double value;
        const char *text;
    } cases[] = {{3, 1234.5678, "1234.568"}, {3, 0, "0.000"},     {0, 7.6, "8"},
                 {-1, 2.5, "2.5"},           {-1, 1e30, "1e+30"}, {-1, -0.25, "-0.25"}};
    (void)state;
    for (size_t k = 0; k < sizeof locales / sizeof *locales; k++) {
        setlocale(LC_ALL, locales[k]);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char text[40];
            fdri_text_print_number(text, sizeof text, cases[i].decimals, cases[i].value);
            assert_string_equal(text, cases[i].text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_strtod),
        cmocka_unit_test(no_numbers),
        cmocka_unit_test(hexadecimal_is_a_zero_and_a_unit),
        cmocka_unit_test(text_has_a_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
