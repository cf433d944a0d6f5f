/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=240 promise=P5,P7
 * P5, P7: SIGKILL at every store (tests/support/kill_at_every_store.h) while the least used totals rows give way to
 * other regions. After each kill, the file must count every call exactly once, in a row or in [rest]. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/kill_at_every_store.h"

enum { MANY = 900, STEPPED = 24, LONG_NS = 1000 };

static struct shared {
    volatile uint64_t done; /* number of ended calls */
} * shared;
static uint64_t moments, rest_first, rest_last, newest;

static void call(fdr_region r, uint64_t *now)
{
    fdr_enter_at(r, *now += 10);
    fdr_leave_at(r, *now += LONG_NS);
    shared->done++;
}

static void look(const uint8_t *bytes, size_t count)
{
    struct fdr_file *f;
    char message[256] = "";
    uint64_t done = shared->done, calls = 0, inclusive = 0;
    if (fdr_file_open_memory(bytes, count, &f, message, sizeof message) != FDR_WHOLE)
        fail_msg("after %llu: %s", (unsigned long long)done, message);
    const char *wrong = death_check(f);
    if (wrong) fail_msg("after %llu: %s", (unsigned long long)done, wrong);
    const struct fdr_total *rows;
    for (size_t i = 0, n = fdr_totals(f, &rows); i < n; i++) {
        calls += rows[i].calls;
        inclusive += rows[i].inclusive_ns;
        if (rows[i].rest) rest_last = rows[i].calls;
        else newest = rows[i].id;
        if (!rows[i].rest && rows[i].calls > 1) fail_msg("after %llu: a row of two", (unsigned long long)done);
    }
    fdr_file_close(f);
    /* the call under way may be counted without its time yet */
    if (calls < done || calls > done + 1 || inclusive / LONG_NS < done || inclusive / LONG_NS > done + 1)
        fail_msg("%llu calls of %llu ns, presented %llu", (unsigned long long)calls, (unsigned long long)inclusive,
                 (unsigned long long)done);
    if (!moments++) rest_first = rest_last;
}

/* Calls every region once; the last calls are stepped through. */
static void record(void)
{
    static fdr_region region[MANY];
    uint64_t now = 1000;
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    for (int i = 0; i < MANY; i++) {
        if (i == MANY - STEPPED) raise(SIGSTOP);
        call(region[i], &now);
    }
    raise(SIGKILL);
}

static void stepped(const char *strategy)
{
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    int status;
    c.buffer = "192K";
    c.bin = "512";
    c.strategy = strategy;
    shared->done = moments = newest = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        death_child();
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        if (fdr_init(&c)) _exit(1);
        record();
    }
    struct killed_run run = killed_at_every_store(pid, p->live, look);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (!run.traced) skip(); /* ptrace is not available here */
    assert_true(moments > STEPPED);
    assert_true(rest_last > rest_first && newest == MANY); /* rows gave way to other regions, the newest among them */
}

static void P5_P7_killed_while_rows_give_way(void **state)
{
    (void)state;
    stepped("whole");
}
static void P5_P7_killed_while_rows_of_epochs_give_way(void **state)
{
    (void)state;
    stepped("telescope");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_P7_killed_while_rows_give_way),
                                       cmocka_unit_test(P5_P7_killed_while_rows_of_epochs_give_way)};
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
