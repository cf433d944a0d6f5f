/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120
 * What is claimed of a thread that sleeps goes by age, as if it gave it itself: its newest moments stay whole, and
 * detail falls with age. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/rnd.h"

enum { THREADS = 4, EVENTS = 2000000, DEEPEST = 24, REGIONS = 64 };
static char directory[] = "/tmp/fdr-ages-XXXXXX";
static fdr_region region[REGIONS];
static sem_t done, over;

/* One after another all record the same, and sleep. */
static void *record(void *own)
{
    uint64_t seed = 88172645463325252u, t = 1000000000;
    uint32_t depth = 0, open[DEEPEST];
    for (int i = 0; i < EVENTS; i++) {
        t += rnd(&seed, 1000) ? 1 + rnd(&seed, 40) : rnd(&seed, 1 << 20);
        if (!depth || (depth < DEEPEST && rnd(&seed, 2))) {
            open[depth] = (uint32_t)rnd(&seed, REGIONS);
            fdr_enter_at(region[open[depth++]], t);
        } else fdr_leave_at(region[open[--depth]], t);
    }
    while (depth) fdr_leave_at(region[open[--depth]], ++t);
    sem_post(&done);
    sem_wait(&over);
    return own;
}

static void look_at(struct fdr_file *f, uint32_t location)
{
    const struct fdr_epoch_info *e;
    size_t n = fdr_epochs(f, &e), first = 0, last;
    while (first < n && e[first].location != location) first++;
    for (last = first; last < n && e[last].location == location; last++) continue;
    assert_true(last - first > 4);
    assert_true(e[first].kept_events > e[first].calls / 5);      /* of its 2 a call: there is something of it */
    assert_true(e[first].kept_events < e[first].calls / 10 * 9); /* and something was given back */
    for (size_t i = first; i < last; i++) {
        if (!e[i].tier) assert_int_equal(e[i].kept_events, 2 * e[i].calls);
        for (int b = 0; b < 4 && i > first; b++) assert_true(e[i].complete_depth[b] >= e[i - 1].complete_depth[b]);
    }
}

static void P6_claims_go_by_age(void **state)
{
    pthread_t thread[THREADS];
    char message[200] = "";
    struct fdr_file *f;
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "8M",
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .finalize = "none"};
    (void)state;
    assert_non_null(mkdtemp(directory));
    c.dir = directory;
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < REGIONS; i++) region[i] = fdr_region_define((char[]){(char)('0' + i), 0}, NULL, 0);
    assert_int_equal(sem_init(&done, 0, 0) | sem_init(&over, 0, 0), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, record, NULL), 0);
        sem_wait(&done);
    }
    assert_int_equal(fdr_snapshot(NULL), 0);
    for (int i = 0; i < THREADS; i++) sem_post(&over);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_location_count(f), THREADS);
    for (size_t i = 0; i < THREADS; i++) look_at(f, fdr_location_info(f, i)->id);
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P6_claims_go_by_age)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
