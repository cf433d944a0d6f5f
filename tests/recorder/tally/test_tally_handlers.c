/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=300 without=asan,tsan (steps single instructions) promise=P2,P5 */
/* P2, P5: a signal handler at every instruction of a tally's making and counting makes the same key, and others, and
 * counts. It also leaves by longjmp. No key is there twice, nothing is counted twice or not at all. */
#define _GNU_SOURCE
#include <fdr/tally.h>
#include <stdlib.h>

#include "tests/support/api_fixture.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
enum { KIND = FDR_TALLY_YOURS + 2 };
static volatile uint32_t when, passed, handled;
static uint64_t key[3];

static int count_key(uint64_t last)
{
    uint64_t k[3] = {key[0], key[1], last};
    fdr_tally t;
    int e = fdr_tally_make(KIND, k, &t);
    return e ? e : fdr_tally_add(t, 0, 1, NULL);
}

/* Counts the same key, and one that differs at its end. Then the steps end. */
static void at_step(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (++passed != when) return;
    handled++;
    if (count_key(0) || count_key(1)) abort();
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

static uint64_t counted(const struct fdr_tally_row *rows, size_t n, uint64_t first, uint64_t last)
{
    uint64_t sum = 0, found = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t k[3];
        memcpy(k, rows[i].key, sizeof k);
        if (k[0] != first || k[2] != last) continue;
        sum += rows[i].counter[0];
        found++;
    }
    assert_true(found <= 1);
    return sum;
}

static void P2_P5_handlers_at_every_instruction(void **state)
{
    (void)state;
    uint32_t steps = 0;
    begin(&(struct fdr_config){.buffer = "64M"});
    fdr_marker(fdr_marker_define("begin"), 1);
    sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = at_step, .sa_flags = SA_SIGINFO}, NULL);
    do {
        key[0] = key[1] = ++steps;
        when = steps;
        passed = handled = 0;
        steps_on();
        int e = count_key(0);
        steps_off();
        assert_int_equal(e, 0);
    } while (handled);
    assert_true(steps > 100);
    struct fdr_file *f = take();
    const struct fdr_tally_row *rows;
    size_t n = fdr_tallies(f, &rows);
    for (uint32_t i = 1; i < steps; i++) {
        assert_int_equal(counted(rows, n, i, 0), 2);
        assert_int_equal(counted(rows, n, i, 1), 1);
    }
    assert_int_equal(fdr_tally_room(f).half + fdr_tally_room(f).damaged, 0);
    end(f);
}

static void leave(void) { count_key(0); }

static void P2_P5_handlers_leave_by_longjmp(void **state)
{
    (void)state;
    uint32_t n = 0, seen = 0;
    begin(&(struct fdr_config){.buffer = "64M"});
    fdr_marker_id marker = fdr_marker_define("begin");
    steps_begin();
    do {
        fdr_marker(marker, n); /* mends what the last jump left, at full speed */
        key[0] = key[1] = ++n;
    } while (leave_at(leave, n));
    struct fdr_file *f = take();
    const struct fdr_tally_row *rows;
    size_t count = fdr_tallies(f, &rows);
    for (uint32_t i = 1; i < n; i++) {
        uint64_t c = counted(rows, count, i, 0);
        assert_true(c <= 1);
        seen += c == 0;
    }
    assert_true(seen > 10 && fdr_tally_room(f).half > 2); /* keys that were left in the making */
    key[0] = key[1] = n + 1;
    assert_int_equal(count_key(0), 0);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_P5_handlers_at_every_instruction),
                                       cmocka_unit_test(P2_P5_handlers_leave_by_longjmp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
