/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=120 promise=P10
 * P10: handlers for one signal only, installed before fdr (SA_RESETHAND, or restoring the default action themselves). A
 * program that survives the first signal without fdr survives it with fdr. It dies of the next signal and leaves a
 * bundle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>

#include "tests/support/deaths.h"

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static volatile sig_atomic_t seen;
static bool recorded, by_hand; /* by_hand: the handler restores the default action; else the kernel does */
static int number;

static void once(int n)
{
    seen++;
    if (by_hand) signal(n, SIG_DFL);
}
static void repair_once(int n)
{
    once(n);
    mprotect((void *)((uintptr_t)nowhere & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

static void start(void (*handler)(int))
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = by_hand ? 0 : (int)SA_RESETHAND};
    sigaction(number, &a, NULL);
    struct fdr_config c = death_config(death_place_as_it_is());
    if (recorded && fdr_init(&c)) _exit(1);
    FDR_REGION("outer") {}
}

static void sent(void)
{
    start(once);
    kill(getpid(), number);
    if (seen != 1) _exit(2);
    FDR_REGION("behind") {}
    fdr_finalize();
    exit(3);
}
static void sent_twice(void)
{
    start(once);
    raise(number);
    if (seen != 1) _exit(2);
    raise(number);
}
static void repaired(void)
{
    number = SIGSEGV;
    start(repair_once);
    nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *nowhere = 1;
    if (seen != 1) _exit(2);
    fdr_finalize();
    exit(3);
}
static void not_repaired(void)
{
    number = SIGSEGV;
    start(once);
    *nowhere = 1;
}
static void aborts(void)
{
    number = SIGABRT;
    start(once);
    abort();
}

/* Runs `what` with or without a recording: the result must be the same. */
static int end_of(void (*what)(void), int n)
{
    pid_t pid;
    death_place();
    number = n;
    recorded = false;
    int status = death_of(NULL, what, &pid);
    recorded = true;
    assert_int_equal(death_of(NULL, what, &pid), status);
    return status;
}

static void bundle_is_of(int signal, uint64_t addr)
{
    struct fdr_file *f;
    char message[256] = "";
    const char *left = death_file(death_place_as_it_is()->dir);
    assert_true(death_ends_with(left, ".crash.fdr"));
    if (fdr_file_open(left, &f, message, sizeof message) != FDR_WHOLE) fail_msg("'%s': %s", left, message);
    assert_int_equal(fdr_file_info(f)->cause_signal, signal);
    if (addr) assert_int_equal(fdr_file_info(f)->cause_addr, addr);
    fdr_file_close(f);
}

static void lives(void (*what)(void), int n)
{
    int status = end_of(what, n);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    assert_string_equal(death_file(death_place_as_it_is()->dir), "");
    assert_string_equal(death_file(death_place_as_it_is()->live), "");
}

static void P10_handlers_for_one_signal(void **state)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    (void)state;
    for (int hand = 0; hand < 2; hand++) {
        by_hand = hand;
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            lives(sent, numbers[i]);
            assert_int_equal(WTERMSIG(end_of(sent_twice, numbers[i])), numbers[i]);
            bundle_is_of(numbers[i], 0);
        }
        lives(repaired, 0);
        assert_int_equal(WTERMSIG(end_of(not_repaired, 0)), SIGSEGV);
        bundle_is_of(SIGSEGV, 8);
        assert_int_equal(WTERMSIG(end_of(aborts, 0)), SIGABRT);
        bundle_is_of(SIGABRT, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_handlers_for_one_signal)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
