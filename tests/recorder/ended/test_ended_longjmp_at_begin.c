/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=300 promise=P3 excuse=x86-64 without=asan,tsan (steps single instructions)
 * ctest: wrap=fdri_thread_location_number
 * P3: a handler leaves by longjmp the operation that creates the location [ended], at the moment it gets its
 * number. Every later snapshot must be whole and contain all calls of the ended threads. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
enum { DEPTH = 30, CALLS = 200, THREADS = 6, REGIONS = 40, FILLING = 400000, MOST = 4000, STRIDE = 150 };
static fdr_region region[REGIONS];
static volatile uint32_t leave_in; /* countdown to the jump; 0: no jump */
static uint32_t reached;

void __real_fdri_thread_location_number(struct fdri_thread *t);
void __wrap_fdri_thread_location_number(struct fdri_thread *t);
void __wrap_fdri_thread_location_number(struct fdri_thread *t)
{
    if (!leave_in || strcmp(t->loc->name, "[ended]")) {
        __real_fdri_thread_location_number(t);
        return;
    }
    steps_until = leave_in;
    leave_in = 0;
    reached++;
    steps_on();
    __real_fdri_thread_location_number(t);
    steps_off();
    steps_until = 0;
}

static void *thread(void *unused)
{
    for (int i = 0; i < CALLS; i++) {
        for (int d = 0; d < DEPTH; d++) fdr_enter(region[d]);
        for (int d = DEPTH; d-- > 0;) fdr_leave(region[d]);
    }
    return unused;
}

/* Presents so many events that the memory of ended threads is needed. */
static void fill(void)
{
    static volatile uint32_t i;
    i = 0;
    sigsetjmp(steps_away, 1);
    for (; i < FILLING; i++) {
        fdr_enter(region[i % REGIONS]);
        fdr_leave(region[i % REGIONS]);
    }
}

static uint64_t ended_calls(const struct fdr_file *f)
{
    const struct fdr_total *total;
    uint64_t calls = 0;
    size_t n = fdr_totals(f, &total);
    for (size_t i = 0; i < n; i++)
        if (total[i].class_ == FDR_IN_REGION && total[i].location != 0) calls += total[i].calls + total[i].untimed;
    return calls;
}

static void P3_ids_of_ended_threads_stay_unique(void **state)
{
    (void)state;
    for (uint32_t at = 1; at < MOST; at += STRIDE) {
        begin(&(struct fdr_config){.buffer = "1M", .timer = "tsc"});
        define_regions(region, REGIONS);
        fdr_enter(region[0]); /* the main thread gets the first location */
        fdr_leave(region[0]);
        steps_begin();
        for (int i = 0; i < THREADS; i++) {
            pthread_t t;
            assert_int_equal(pthread_create(&t, NULL, thread, NULL), 0);
            pthread_join(t, NULL);
        }
        leave_in = at;
        fill();
        struct fdr_file *f = take();
        if (ended_calls(f) != THREADS * CALLS * DEPTH)
            fail_msg("left at %u: %llu calls of ended threads", at, (unsigned long long)ended_calls(f));
        fdr_file_close(f);
        fdr_finalize();
    }
    assert_true(reached > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_ids_of_ended_threads_stay_unique)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
