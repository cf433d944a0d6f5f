/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=60 promise=P10 wrap=fdri_trigger_seen
 * P10: a handler leaves a liburcu read section by longjmp, in the middle of a record that a trigger looks at. The
 * section must end with the thread's next record; otherwise no grace period of the process would ever end. A
 * wrapped function puts the test inside of the section. */
#include <fdr/fdr.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "export/view.h"
#include "fdr/fdr.h"
#include "recorder/thread/grace_period.h"

static sigjmp_buf away;
static int jumps, seen;
static uint32_t inside; /* nested sections of this thread, at most */
static bool over;       /* atomic */
static fdr_metric_id depth;

static void leave(int signal)
{
    (void)signal;
    siglongjmp(away, 1);
}

void __wrap_fdri_trigger_seen(uint32_t slot, const struct fdri_export_seen *s);
void __wrap_fdri_trigger_seen(uint32_t slot, const struct fdri_export_seen *s)
{
    (void)slot;
    (void)s;
    seen++;
    inside = fdri_thread_reading.count > inside ? fdri_thread_reading.count : inside;
    if (jumps++ < 3) raise(SIGUSR2);
}

static void grace(void *unused)
{
    (void)unused;
    fdri_atomic_store_release(&over, true);
}

static void cross(void)
{
    fdr_metric_f64(depth, 0);
    fdr_metric_f64(depth, 20);
}

static bool is_over_within(unsigned ms)
{
    for (; ms && !fdri_atomic_load_acquire(&over); ms--) usleep(1000);
    return fdri_atomic_load_acquire(&over);
}

static void a_section_that_was_left(void **state)
{
    (void)state;
    struct fdr_config c = {.size = sizeof c, .ignore_environment = 1, .buffer = "1M", .finalize = "none", .crash = "0"};
    struct sigaction action = {.sa_handler = leave};
    assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
    assert_int_equal(fdr_init(&c), 0);
    depth = fdr_metric_define("depth", "count", FDR_F64, FDR_METRIC_GAUGE);
    assert_true(fdr_trigger_add("metric depth above 10") > 0);
    volatile int left = 0;
    while (left < 3) {
        if (sigsetjmp(away, 1)) left++;
        else cross();
    }
    assert_true(urcu_bp_read_ongoing()); /* else the test proves nothing */
    fdri_thread_after_grace(grace, NULL);
    assert_false(is_over_within(200));
    for (int i = 0; i < 10; i++) cross();
    assert_int_equal(seen, 13);
    assert_int_equal(inside, 1);
    assert_false(urcu_bp_read_ongoing());
    assert_true(is_over_within(20000));
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_section_that_was_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
