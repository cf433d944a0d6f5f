/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,tools timeout=60
 * Names of C++ functions: their parts, their short form for tables, and the part that gcc's list of excluded functions
 * compares. Any bytes are a name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/support/random_numbers.h"
#include "tools/common/cxx_name.c"

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

static const struct {
    const char *whole, *brief, *parameters, *item; /* item NULL: none */
} names[] = {
    {"main", "main", "main", "main"},
    {"grid::flux(double, double)", "grid::flux", "grid::flux(double, double)", "grid::flux"},
    {"double ns::Box<int>::conv<double>(double)", "ns::Box<int>::conv<double>", "ns::Box<int>::conv<double>(double)",
     "ns::Box<int>::conv"},
    {"ns::Box<" STRING " >::get(int) const", "ns::Box<std::string>::get", "ns::Box<std::string>::get(int) const",
     ">::get"},
    {"std::vector<" STRING ", std::allocator<" STRING " > >::push_back(" STRING "&&)",
     "std::vector<std::string>::push_back", "std::vector<std::string>::push_back(std::string&&)", ">::push_back"},
    {"std::map<" STRING ", int, std::less<" STRING " >, std::allocator<std::pair<" STRING " const, int> > >::at(" STRING
     " const&)",
     "std::map<std::string, int>::at", "std::map<std::string, int>::at(std::string const&)", ">::at"},
    {"unsigned long const& std::max<unsigned long>(unsigned long const&, unsigned long const&)",
     "std::max<unsigned long>", "std::max<unsigned long>(unsigned long const&, unsigned long const&)", "std::max"},
    {"(anonymous namespace)::anon(int)", "(anonymous namespace)::anon", "(anonymous namespace)::anon(int)",
     "{anonymous}::anon"},
    {"ns::Box<int>::operator()(int, int)", "ns::Box<int>::operator()", "ns::Box<int>::operator()(int, int)",
     "ns::Box<int>::operator()"},
    {"bool ns::operator< <int>(A<int> const&, A<int> const&)", "ns::operator< <int>",
     "ns::operator< <int>(A<int> const&, A<int> const&)", "ns::operator<"},
    {"ns::C::operator,(int)", "ns::C::operator,", "ns::C::operator,(int)", "ns::C::operator"},
    {"ns::C::operator->() const", "ns::C::operator->", "ns::C::operator->() const", "ns::C::operator->"},
    {"ns::operator\"\" _x(unsigned long long)", "ns::operator\"\" _x", "ns::operator\"\" _x(unsigned long long)",
     "ns::operator\"\"_x"},
    {"A::operator new(unsigned long)", "A::operator new", "A::operator new(unsigned long)", "A::operator new"},
    {"ns::Box<int>::operator unsigned int() const", "ns::Box<int>::operator unsigned int",
     "ns::Box<int>::operator unsigned int() const", NULL},
    {"main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()",
     "main::{lambda(int)#1}::operator()(int) const", NULL},
    {"f(int) const::Local::run()", "f(int) const::Local::run", "f(int) const::Local::run()", NULL},
    {"my_operator(int)", "my_operator", "my_operator(int)", "my_operator"},
    {"grid::flux", "grid::flux", "grid::flux", "flux"}, /* Fortran */
    {"solve_", "solve_", "solve_", "solve"},
    {"inner.0", "inner.0", "inner.0", "inner"},
};

static void known_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool none;
        char *brief = cxx_name_short(names[i].whole, false), *parameters = cxx_name_short(names[i].whole, true),
             *item = cxx_name_gcc_item(names[i].whole, &none);
        assert_string_equal(brief, names[i].brief);
        assert_string_equal(parameters, names[i].parameters);
        assert_int_equal(none, names[i].item == NULL);
        if (names[i].item) assert_string_equal(item, names[i].item);
        free(brief);
        free(parameters);
        free(item);
    }
}

/* AddressSanitizer checks the bounds. No form is longer than the name. */
static void any_bytes(void **state)
{
    static const char *const pieces[] = {"<",         ">",
                                         "(",         ")",
                                         "{",         "}",
                                         "[",         "]",
                                         ", ",        "std::allocator<",
                                         "::",        " ",
                                         "a",         "operator",
                                         "operator<", "-",
                                         ">",         "(anonymous namespace)",
                                         " const",    "std::",
                                         "_",         ".",
                                         "\"\"",      "~"};
    (void)state;
    uint64_t seed = 0x9E3779B97F4A7C15u;
    for (int round = 0; round < 20000; round++) {
        char name[600] = "";
        for (uint32_t n = rnd(&seed, 20); n > 0; n--) strcat(name, pieces[rnd(&seed, sizeof pieces / sizeof *pieces)]);
        bool none;
        char *exact = strdup(name); /* without room behind */
        char *form[] = {cxx_name_short(exact, false), cxx_name_short(exact, true), cxx_name_qualified(exact),
                        cxx_name_gcc_item(exact, &none)};
        for (size_t i = 0; i < 4; i++) {
            assert_true(strlen(form[i]) <= strlen(name));
            free(form[i]);
        }
        free(exact);
    }
}

/* Time is linear: 20,000 open brackets, each after a default argument. */
static void deep_brackets(void **state)
{
    enum { DEEP = 20000, PIECE = sizeof ", std::less<" - 1 };
    (void)state;
    char *name = calloc(DEEP, PIECE + 1);
    for (size_t i = 0; i < DEEP; i++) memcpy(name + i * PIECE, ", std::less<", PIECE);
    char *brief = cxx_name_short(name, false);
    assert_true(strlen(brief) <= strlen(name));
    free(brief);
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_names),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(deep_brackets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
