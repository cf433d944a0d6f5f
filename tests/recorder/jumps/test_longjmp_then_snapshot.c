/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=300 promise=P3 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions)
 * P3: a handler leaves an operation by longjmp, at any instruction, and the thread records nothing after it. A
 * snapshot that this thread takes must still be exact, and so must the final one. A failure shows as calls that are
 * neither over nor open. */
#include "tests/support/api_fixture.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
#include <glob.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/scratch_directory.h"

enum { DEPTH = 3, CALLS = 200 };
static fdr_region region[DEPTH + 1];

static void enter(void) { fdr_enter(region[DEPTH]); }
static void leave(void) { fdr_leave(region[DEPTH - 1]); }

static void start(const char *finalize)
{
    setenv("FDR_SYMBOLS", "0", 1);
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "1M",
                           .signal = "none",
                           .crash = "0",
                           .timer = "tsc",
                           .finalize = finalize,
                           .dir = scratch};
    fdr_finalize(); /* for a test that failed before it ended its recording */
    assert_int_equal(fdr_init(&c), 0);
    define_regions(region, DEPTH + 1);
    for (int i = 0; i < CALLS; i++) {
        for (int d = 0; d < DEPTH; d++) fdr_enter(region[d]);
        for (int d = DEPTH; d-- > 0;) fdr_leave(region[d]);
    }
    for (int d = 0; d < DEPTH; d++) fdr_enter(region[d]);
}

/* Each presented call is either over or open. */
static void look_at(const char *path, uint32_t n)
{
    struct fdr_file *f = NULL;
    char message[300] = "";
    const struct fdr_total *total;
    const struct fdr_ledger_row *row;
    uint64_t over = 0, presented = 0;
    if (fdr_file_open(path, &f, message, sizeof message) != FDR_WHOLE) fail_msg("%s", message);
    uint64_t open = fdr_location_info(f, 0)->open_count;
    size_t totals = fdr_totals(f, &total), rows = fdr_ledger(f, &row);
    for (size_t i = 0; i < totals; i++)
        if (total[i].class_ == FDR_IN_REGION) over += total[i].calls + total[i].untimed;
    for (size_t i = 0; i < rows; i++)
        if (row[i].class_ == FDR_IN_REGION) presented += row[i].presented;
    if (over + open != presented)
        fail_msg("left at %u: %llu calls over, %llu open, %llu presented", n, (unsigned long long)over,
                 (unsigned long long)open, (unsigned long long)presented);
    fdr_file_close(f);
    unlink(path);
}

static void leave_each(void (*f)(void), bool at_the_end)
{
    uint32_t n = 0;
    bool left;
    do {
        start(at_the_end ? "snapshot" : "none");
        steps_begin();
        left = leave_at(f, n = instruction_after(n, 60));
        if (!at_the_end) {
            assert_int_equal(fdr_snapshot(NULL), 0);
            look_at(fdr_last_snapshot(), n);
        }
        fdr_finalize();
        if (at_the_end) look_at(fdr_last_snapshot(), n);
    } while (left);
    assert_true(n > 30); /* else the test proves nothing */
}

static void P3_own_snapshot_after_longjmp(void **state)
{
    (void)state;
    leave_each(enter, false);
    leave_each(leave, false);
}
static void P3_last_snapshot_after_longjmp(void **state)
{
    (void)state;
    leave_each(enter, true);
    leave_each(leave, true);
}

/* The same for the final snapshot at exit, for which the program calls nothing. */
static void P3_exit_after_longjmp(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 700; n = instruction_after(n, 60)) {
        int status;
        pid_t pid = fork();
        if (!pid) {
            start("snapshot");
            steps_begin();
            leave_at(enter, n);
            exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        glob_t g;
        char pattern[400];
        snprintf(pattern, sizeof pattern, "%s/*.fdr", scratch);
        assert_int_equal(glob(pattern, 0, NULL, &g), 0);
        assert_int_equal(g.gl_pathc, 1);
        look_at(g.gl_pathv[0], n);
        globfree(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_own_snapshot_after_longjmp),
                                       cmocka_unit_test(P3_last_snapshot_after_longjmp),
                                       cmocka_unit_test(P3_exit_after_longjmp)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
#endif
