/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=60 promise=P3,P5 without=tsan (its threads take turns)
 * P3, P5: the location [ended] describes the merged threads correctly. It has the start of the earliest thread, and
 * the number of calls that found no level of the shadow stack. A location whose memory serves a new thread keeps
 * nothing of the ended one. A failure shows as a wrong start time, a wrong count, or lost events. */
#include "base/atomic.h"
#include "bins/bins.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

enum { BEGAN = 1000000000, LATER = 2000000000, SHALLOW = 3, DEEP = 60, DEEPER = 300, BINS = 4096 };
static fdr_region region;
static uint32_t taken[BINS], count;
static sem_t there, go;

static void calls(uint64_t *now, int deep)
{
    for (int i = 0; i < deep; i++) fdr_enter_at(region, *now += 10);
    for (int i = 0; i < deep; i++) fdr_leave_at(region, *now += 10);
}

static void *records(void *deep)
{
    uint64_t now = BEGAN;
    for (int i = 0; i < 50; i++) calls(&now, (int)(intptr_t)deep);
    return NULL;
}

static void *only_names_itself(void *unused)
{
    fdr_thread_name("helper");
    return unused;
}

static void one(void *(*work)(void *), intptr_t deep)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, work, (void *)deep), 0);
    pthread_join(t, NULL);
}

static void start(const char *buffer)
{
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = buffer, .timer = "monotonic"});
    region = fdr_region_define("r", "ended_says.c", 1);
}

/* Fills the buffer, so that all ended threads are merged into [ended]. */
static void fill(void)
{
    uint64_t now = LATER;
    for (int i = 0; i < 400000; i++) calls(&now, SHALLOW);
}

static const struct fdr_location_info *the_ended(struct fdr_file *f, uint32_t threads)
{
    const struct fdr_location_info *l = NULL;
    for (size_t i = 0; i < fdr_location_count(f); i++)
        if (fdr_location_info(f, i)->ended_threads) l = fdr_location_info(f, i);
    assert_non_null(l);
    assert_int_equal(l->ended_threads, threads);
    return l;
}

static void P5_when_the_first_began(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) { /* in turn, the thread without an event ends first, or last */
        start("256K");
        if (first) one(only_names_itself, 0);
        one(records, SHALLOW);
        if (!first) one(only_names_itself, 0);
        fill();
        struct fdr_file *f = take();
        assert_int_equal(the_ended(f, 2)->start_ns, BEGAN + 10);
        end(f);
    }
}

/* Takes all free bins before the deep calls, so that these find no level. */
static void *finds_no_level(void *refused)
{
    uint64_t now = BEGAN;
    uint32_t off;
    calls(&now, SHALLOW);
    for (count = 0; count < BINS && (off = fdri_bins_take(&fdri_life_recording.arena, 0)); count++) taken[count] = off;
    for (int i = 0; i < 20; i++) calls(&now, DEEPER);
    ((uint64_t *)refused)[0] = fdri_record_self.loc->presented_overflow;
    ((uint64_t *)refused)[1] = fdri_record_self.loc->no_level_depth;
    while (count) fdri_bins_give(&fdri_life_recording.arena, taken[--count]);
    sem_post(&there);
    sem_wait(&go);
    return NULL;
}

/* An earlier thread had levels of that depth. The merged ledger must still count the calls of the other thread. */
static void P3_how_many_found_no_level(void **state)
{
    uint64_t refused[2];
    pthread_t t;
    (void)state;
    start("1M");
    sem_init(&there, 0, 0);
    sem_init(&go, 0, 0);
    assert_int_equal(pthread_create(&t, NULL, finds_no_level, refused), 0);
    sem_wait(&there);
    assert_true(refused[0] > 0 && refused[1] < DEEP); /* else the test proves nothing */
    one(records, DEEP);
    sem_post(&go);
    pthread_join(t, NULL);
    fill();
    struct fdr_file *f = take();
    const struct fdr_location_info *l = the_ended(f, 2);
    assert_int_equal(l->levels_refused, refused[0]);
    assert_int_equal(l->levels_refused_from, refused[1]);
    assert_int_equal(row(f, l->id, FDR_IN_REGION, (uint32_t)refused[1])->presented, refused[0] + 50);
    balance(f);
    end(f);
}

/* Calls of many lengths. They need so many bins that a thread which found only its own bins would lose events. */
static void varied(uint64_t seed, int times)
{
    while (times--) {
        uint32_t deep = 1 + (uint32_t)rnd(&seed, 6);
        for (uint32_t i = 0; i < deep; i++) fdr_enter(1 + (uint32_t)rnd(&seed, 40));
        while (fdri_record_self.loc && deep--) fdr_leave(fdri_record_self.top->region);
    }
}

/* Simulates handlers that leave by longjmp between the count of a bin and its first use. */
static void *leaves_bins(void *where)
{
    enum { LEFT = 20 };
    varied(11, 50);
    *(void **)where = fdri_record_self.loc;
    for (int i = 0; i < LEFT; i++)
        if (fdri_bins_take(&fdri_life_recording.arena, 0))
            fdri_atomic_add_relaxed(&fdri_record_self.loc->bins_held, 1u);
    return NULL;
}

static void *comes_later(void *where)
{
    varied(17, 1);
    assert_ptr_equal(fdri_record_self.loc, *(void **)where); /* else the test proves nothing */
    varied(19, 20000);
    return NULL;
}

static void P3_abandoned_events_count_for_no_thread(void **state)
{
    void *where = NULL;
    (void)state;
    start("256K");
    one(leaves_bins, (intptr_t)&where);
    varied(5, 200000);
    uint64_t before = fdr_usage().presented, lost = fdr_usage().lost;
    one(comes_later, (intptr_t)&where);
    assert_in_range(fdr_usage().lost - lost, 0, (fdr_usage().presented - before) / 100);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_when_the_first_began),
                                       cmocka_unit_test(P3_how_many_found_no_level),
                                       cmocka_unit_test(P3_abandoned_events_count_for_no_thread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
