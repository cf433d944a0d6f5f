/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=120 without=tsan (its threads take turns)
 * Other threads claim bins of a sleeping thread in the order in which it would give them back itself, oldest first.
 * Its newest events must stay complete, and detail must fall with age. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/random_numbers.h"

enum { THREADS_MOST = 32, DEEPEST = 24, REGIONS = 64 };
static char directory[] = "/tmp/fdr-ages-XXXXXX";
static fdr_region region[REGIONS];
static sem_t done, over;
static int events;

/* The threads record the same events one after another, and then sleep. */
static void *record(void *own)
{
    uint64_t seed = 88172645463325252u, t = 1000000000;
    uint32_t depth = 0, open[DEEPEST];
    for (int i = 0; i < events; i++) {
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

static void look_at(struct fdr_file *f, const struct fdr_location_info *l, bool whole)
{
    const struct fdr_epoch_info *e;
    size_t n = fdr_epochs(f, &e), first = 0, last;
    while (first < n && e[first].location != l->id) first++;
    for (last = first; last < n && e[last].location == l->id; last++) continue;
    assert_true(last - first > 3);
    for (size_t i = first; i < last; i++) {
        if (!e[i].tier && whole) assert_int_equal(e[i].kept_events, 2 * e[i].calls);
        for (int b = 0; b < 4 && i > first; b++) assert_true(e[i].complete_depth[b] >= e[i - 1].complete_depth[b]);
    }
    if (!whole) return;
    /* each call has 2 events: some of these epochs' events are kept */
    assert_true(e[first].kept_events > e[first].calls / 5);
    assert_true(e[first].kept_events < e[first].calls / 10 * 9); /* and some were given back */
}

/* Number of kept events in the newest tier of a location, and in all older ones. */
static void kept_of(struct fdr_file *f, uint32_t location, uint64_t *older, uint64_t *newest)
{
    const struct fdr_epoch_info *e;
    *older = *newest = 0;
    for (size_t n = fdr_epochs(f, &e), i = 0; i < n; i++)
        if (e[i].location == location) *(e[i].tier ? older : newest) += e[i].kept_events;
}

static struct fdr_file *one_after_another(const char *buffer, int threads, int each)
{
    pthread_t thread[THREADS_MOST];
    char message[200] = "";
    struct fdr_file *f;
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = buffer,
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .finalize = "none",
                           .dir = directory};
    events = each;
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < REGIONS; i++) region[i] = fdr_region_define((char[]){(char)('0' + i), 0}, NULL, 0);
    assert_int_equal(sem_init(&done, 0, 0) | sem_init(&over, 0, 0), 0);
    for (int i = 0; i < threads; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, record, NULL), 0);
        sem_wait(&done);
    }
    assert_int_equal(fdr_snapshot(NULL), 0);
    for (int i = 0; i < threads; i++) sem_post(&over);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_location_count(f), threads);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    return f;
}

static void P6_claims_go_by_age(void **state)
{
    (void)state;
    struct fdr_file *f = one_after_another("8M", 4, 2000000);
    for (size_t i = 0; i < fdr_location_count(f); i++) look_at(f, fdr_location_info(f, i), true);
    fdr_file_close(f);
}

/* Others claim so much that the newest tier is above its share. Then it gives, too, and the whole run stays covered. */
static void P6_the_newest_does_not_push_out_the_rest(void **state)
{
    (void)state;
    struct fdr_file *f = one_after_another("16M", 32, 1000000);
    for (size_t i = 0; i < 6; i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        uint64_t older, newest;
        look_at(f, l, false);
        kept_of(f, l->id, &older, &newest);
        assert_true(older > 20000 && newest > 4000);
        assert_true(l->from_ns - l->start_ns < (l->to_ns - l->start_ns) / 100);
    }
    fdr_file_close(f);
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) == NULL;
}
static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P6_claims_go_by_age),
                                       cmocka_unit_test(P6_the_newest_does_not_push_out_the_rest)};
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
