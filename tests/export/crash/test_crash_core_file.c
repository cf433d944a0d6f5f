/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=60 promise=P10
 * P10: the core file of a process that died while recording equals the core file without fdr. The test compares
 * instruction, stack pointer, signal and siginfo. It skips where the kernel writes no core file into the working
 * directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/core_files.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static volatile int zero, many = 1 << 30;

static void record(void)
{
    fdr_region r = fdr_region_define("outer", NULL, 0);
    for (int i = 0; i < 1000; i++) fdr_enter(r), fdr_leave(r);
    fdr_enter(r);
}
static void by_segv(void) { record(), *nowhere = 1; }
static void by_fpe(void) { record(), zero = many / zero; }
static void by_ill(void) { record(), __builtin_trap(); }
static void by_abort(void) { record(), abort(); }
static void by_kill(void)
{
    record(), kill(getpid(), SIGSEGV);
    for (;;) pause();
}

static void P10_the_core_is_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*die)(void);
        int signal;
    } deaths[] = {{"segv", by_segv, SIGSEGV},
                  {"fpe", by_fpe, SIGFPE},
                  {"ill", by_ill, SIGILL},
                  {"abort", by_abort, SIGABRT},
                  {"kill", by_kill, SIGSEGV}};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        struct fdr_config c = death_config(death_place());
        int without, with;
        struct core_note a = core_of(NULL, deaths[i].die, &without), b = core_of(&c, deaths[i].die, &with);
        if (!a.found) {
            print_message("%s: no core file here: skipped\n", deaths[i].name);
            skip();
        }
        assert_true(b.found);
        assert_int_equal(without, with);
        if (a.signal != deaths[i].signal || b.signal != a.signal)
            fail_msg("%s: signal %d, without %d", deaths[i].name, b.signal, a.signal);
        if (a.pc != b.pc || a.sp != b.sp)
            fail_msg("%s: pc %llx sp %llx, without %llx %llx", deaths[i].name, (unsigned long long)b.pc,
                     (unsigned long long)b.sp, (unsigned long long)a.pc, (unsigned long long)a.sp);
        assert_int_equal(a.info.si_signo, b.info.si_signo);
        assert_int_equal(a.info.si_code, b.info.si_code);
        if (a.info.si_code > 0) assert_ptr_equal(a.info.si_addr, b.info.si_addr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_the_core_is_the_same)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
