/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=240 promise=P7
 * P7: SIGKILL at every store (tests/support/kill_at_every_store.h) of the work that a call which opened a bin
 * deferred. A traced thread is too slow to reach that work by itself, so the test calls it directly. The file must
 * be whole after each kill. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "recorder/pressure/recorder_pressure.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/kill_at_every_store.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 5, DEEPEST = 8, CALLS_MOST = 20000000 };
static uint64_t seed;

static void some_call(fdr_region *open, uint32_t *depth)
{
    static volatile uint32_t spins;
    if (*depth < DEEPEST && rnd(&seed, 2)) {
        fdr_enter(open[(*depth)++] = 1 + rnd(&seed, REGIONS));
    } else if (*depth) {
        for (uint32_t k = rnd(&seed, 3) ? 0 : rnd(&seed, 60); k; k--) spins++;
        fdr_leave(open[--*depth]);
    }
}

/* Records until work of the kind `what` was deferred for the nth time. Returns false if no work is ever deferred,
 * as without a tick counter. */
static bool record(uint32_t what, uint32_t nth)
{
    static const char *const names[REGIONS] = {"a", "b", "c", "d", "e"};
    fdr_region open[DEEPEST];
    uint32_t depth = 0;
    seed = nth;
    for (int i = 0; i < REGIONS; i++) fdr_region_define(names[i], NULL, 0);
    for (uint32_t i = 0, before = 0, now; nth && i < CALLS_MOST; i++, before = now) {
        some_call(open, &depth);
        now = fdri_record_self.deferred & what;
        nth -= now && !before;
    }
    return !nth;
}

static void look(const uint8_t *bytes, size_t count)
{
    struct fdr_file *f;
    char message[256] = "";
    if (fdr_file_open_memory(bytes, count, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
    const char *wrong = death_check(f);
    if (wrong) fail_msg("%s", wrong);
    fdr_file_close(f);
}

static uint64_t killed(const char *strategy, uint32_t what, uint32_t nth)
{
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    int status;
    c.strategy = strategy;
    c.buffer = "256K";
    c.bin = "512";
    c.timer = "tsc";
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        death_child();
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        if (fdr_init(&c)) _exit(1);
        if (!record(what, nth)) _exit(1);
        raise(SIGSTOP);
        while (fdri_record_self.deferred) fdri_do_later();
        raise(SIGKILL);
    }
    struct killed_run run = killed_at_every_store(pid, p->live, look);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    death_clear(p->live);
    if (!run.traced) skip(); /* ptrace or the tick counter is not available here */
    print_message("%s: %llu instructions, %llu of them changed the arena\n", strategy,
                  (unsigned long long)run.instructions, (unsigned long long)run.changes);
    return run.changes;
}

static void P7_killed_at_every_store_of_a_step_ahead(void **state)
{
    static const char *const strategies[] = {"telescope", "last", "whole"};
    (void)state;
    for (uint32_t i = 0; i < 9; i++) assert_true(killed(strategies[i % 3], FDRI_LATER_BIN, 1 + i * i) > 10);
}

static void P7_killed_at_every_store_of_a_step_of_the_epochs(void **state)
{
    uint64_t changes = 0;
    (void)state;
    for (uint32_t i = 0; i < 8; i++) changes += killed("telescope", FDRI_LATER_EPOCH, 1 + i * i);
    assert_true(changes > 100); /* without epochs to merge, this work changes almost nothing */
}

static int begin(void **state)
{
    (void)state;
    return setenv("FDR_SYMBOLS", "0", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P7_killed_at_every_store_of_a_step_ahead),
        cmocka_unit_test(P7_killed_at_every_store_of_a_step_of_the_epochs),
    };
    return cmocka_run_group_tests(tests, begin, death_place_leave);
}
