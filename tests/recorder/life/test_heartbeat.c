/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P7 */
/* P7: the heartbeat of fdr's thread. A file says when the process lived, the longest time without an event that is
 * over, and the processor time since the newest event. The looks come by a clock of the test. */
#include <time.h>
#include <unistd.h>

#include "recorder/life/life.h"
#include "tests/support/api_fixture.h"

static const uint64_t second = 1000000000u;
static uint64_t look_ns;

static void look(void) { fdri_life_poll_heartbeat(look_ns += 2 * second); }

static void call(fdr_region r)
{
    fdr_enter(r);
    fdr_leave(r);
}

static struct fdr_file_info seen(void)
{
    struct fdr_file *f = take();
    struct fdr_file_info info = *fdr_file_info(f);
    fdr_file_close(f);
    return info;
}

static void compute_for(uint64_t ns)
{
    struct timespec from, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while ((uint64_t)(now.tv_sec - from.tv_sec) * second + (uint64_t)now.tv_nsec - (uint64_t)from.tv_nsec < ns);
}

static void P7_a_file_says_what_is_usual(void **state)
{
    (void)state;
    const struct fdr_config c = {.signal = "none"};
    begin(&c);
    fdr_region r = fdr_region_define("step", "heart.c", 1);
    call(r);
    look();
    struct fdr_file_info first = seen();
    assert_true(first.alive_ns >= first.last_ns);
    assert_int_equal(first.longest_still_ns, 0);
    usleep(20000);
    look(); /* it stands, and that is not over */
    assert_int_equal(seen().longest_still_ns, 0);
    call(r);
    look(); /* it stood for at least 20 ms */
    uint64_t longest = seen().longest_still_ns;
    assert_true(longest >= 20000000);
    call(r);
    look(); /* shorter times change nothing */
    call(r);
    look();
    assert_true(seen().longest_still_ns >= longest);
    compute_for(30000000);
    look();
    assert_true(seen().still_cpu_ns >= 30000000);
    fdr_finalize();
}

static void P7_each_recording_has_its_own(void **state)
{
    (void)state;
    const struct fdr_config c = {.signal = "none"};
    begin(&c);
    look();
    call(fdr_region_define("step", "heart.c", 1));
    look();
    struct fdr_file_info info = seen();
    assert_true(info.alive_ns > 0);
    assert_int_equal(info.longest_still_ns, 0);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P7_a_file_says_what_is_usual),
        cmocka_unit_test(P7_each_recording_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
