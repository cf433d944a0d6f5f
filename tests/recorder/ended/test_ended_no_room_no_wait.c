/* SPDX-License-Identifier: MIT */
/* ctest: label=threads,slow timeout=120 promise=P2 without=asan,tsan (its threads take turns)
 * P2: one thread, 300 levels deep, has filled a small buffer, and accounts of later threads have no place in
 * [ended]. New threads then find no room and must not wait, because no other thread could free any. A failure shows
 * as voluntary context switches. */
#include "tests/support/api_fixture.h"

#include <sys/resource.h>

enum { REGIONS = 40, DEEP = 300, THREADS = 30 };
static fdr_region region[REGIONS];
static long waits; /* voluntary context switches of the threads */

static void down(int depth)
{
    fdr_enter(region[depth % REGIONS]);
    if (depth < DEEP) down(depth + 1);
    fdr_leave(region[depth % REGIONS]);
}

static void *work(void *state)
{
    struct rusage u;
    for (int i = 0; i < 100; i++) down(1);
    getrusage(RUSAGE_THREAD, &u);
    waits += u.ru_nvcsw;
    return state;
}

static void P2_turned_away_without_waiting(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "256K"});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('A' + i), 0}, "ended_full.c", 1);
    work(NULL);
    waits = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, work, NULL), 0);
        pthread_join(t, NULL);
    }
    struct fdr_file *f = take();
    assert_true(fdr_file_info(f)->lost_unattached > 0); /* else the test proves nothing */
    assert_in_range(waits, 0, 8 * THREADS);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_turned_away_without_waiting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
