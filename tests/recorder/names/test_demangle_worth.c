/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60
 * Names that fdr does not demangle cannot match any pattern. Of names whose shown forms are known, each that a pattern
 * matches is found worth demangling. And patterns with an identifier spare the other names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/elf/shown_name.h"
#include "base/text/glob.h"
#include "recorder/names/module_symbols.h"
#include "recorder/names/region_rules.h"
#include "recorder/names/names.h"
#include "tests/support/scratch_directory.h"

static const struct {
    const char *mangled, *shown, *brief;
} names[] = {
    {"_ZN4grid5solveEi", "grid::solve(int)", "grid::solve"},
    {"_ZN12_GLOBAL__N_16hiddenEi", "(anonymous namespace)::hidden(int)", "(anonymous namespace)::hidden"},
    {"_ZN4grid3mixIdiEET_S1_T0_", "double grid::mix<double, int>(double, int)", "grid::mix<double, int>"},
    {"_ZN4grid5FieldC2Ev", "grid::Field::Field()", "grid::Field::Field"},
    {"_ZNK4grid5FieldclEi", "grid::Field::operator()(int) const", "grid::Field::operator()"},
    {"_ZN4grid5FieldcvbEv", "grid::Field::operator bool()", "grid::Field::operator bool"},
    {"_ZN4gridlsERSoRKNS_5FieldE", "grid::operator<<(std::ostream&, grid::Field const&)", "grid::operator<<"},
    {"_ZN4grid4callEPFvjE", "grid::call(void (*)(unsigned int))", "grid::call"},
    {"_ZN4grid4bulkILm10EEEvv", "void grid::bulk<10ul>()", "grid::bulk<10ul>"},
    {"_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)",
     "std::vector<int, std::allocator<int> >::push_back"},
    {"_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"},
};
enum { NAMES = sizeof names / sizeof *names };

static const struct {
    const char *rule, *pattern;
    int worth; /* how many of the names are; negative: not said here */
} patterns[] = {
    {"name", "grid::solve", 1},
    {"name", "grid::so*", -1},
    {"name", "*hidden*", 1},
    {"name", "*anonymous*", -1},
    {"name", "grid::Field::*", -1},
    {"name", "*<double*>*", -1},
    {"name", "*operator<<*", -1},
    {"name", "*bulk<10ul>*", 1},
    {"name", "*unsigned*", -1},
    {"name", "std::*", -1},
    {"name", "*push_back*", 1},
    {"name", "[a-z]*::call*", -1},
    {"name", "*lambda*", -1},
    {"exact", "main::{lambda(int)#1}::operator()(int) const", 1},
    {"exact", "grid::mix<double, int>", -1},
    {"name", "_ZN4grid5solve*", 0}, /* the symbol matches it */
    {"name", "*", 0},
    {"name", "?", -1},
};

static void load(const char *rule, const char *pattern)
{
    char path[64];
    snprintf(path, sizeof path, "%s/rules", scratch);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "exclude %s %s\n", rule, pattern);
    fclose(f);
    fdri_names_rules_load(path, false, "");
    unlink(path);
    fdri_names_worth_collect();
}

static void what_matches_is_worth_it(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        bool exact = !strcmp(patterns[p].rule, "exact");
        load(patterns[p].rule, patterns[p].pattern);
        for (int i = 0; i < NAMES; i++) {
            const char *form[] = {names[i].shown, names[i].brief};
            for (int k = 0; k < 2; k++) {
                bool hit = exact ? !strcmp(patterns[p].pattern, form[k]) : fdri_text_glob(patterns[p].pattern, form[k]);
                if (hit && patterns[p].worth && !fdri_names_worth(names[i].mangled))
                    fail_msg("'%s' matches %s", patterns[p].pattern, form[k]);
            }
        }
    }
}

static void others_are_spared(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        int worth = 0;
        load(patterns[p].rule, patterns[p].pattern);
        for (int i = 0; i < NAMES; i++) worth += fdri_names_worth(names[i].mangled);
        if (patterns[p].worth >= 0) assert_int_equal(worth, patterns[p].worth);
    }
}

static char *as_known(const char *name, char *buffer, size_t *length, int *status)
{
    (void)buffer, (void)length, (void)status;
    for (int i = 0; i < NAMES; i++)
        if (!strcmp(names[i].mangled, name)) return strdup(names[i].shown);
    return NULL;
}

static void shown_and_brief(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        char *shown = fdri_elf_shown_name(names[i].mangled, as_known);
        struct fdri_elf_brief b = fdri_elf_brief_name(shown);
        assert_string_equal(shown, names[i].shown);
        assert_int_equal(b.bytes, strlen(names[i].brief));
        assert_memory_equal(shown + b.begin, names[i].brief, b.bytes);
        free(shown);
    }
    char *plain = fdri_elf_shown_name("solve.constprop.0", NULL),
         *fortran = fdri_elf_shown_name("__grid_MOD_solve", NULL);
    assert_string_equal(plain, "solve");
    assert_string_equal(fortran, "grid::solve");
    free(plain);
    free(fortran);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_matches_is_worth_it),
        cmocka_unit_test(others_are_spared),
        cmocka_unit_test(shown_and_brief),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
