/* SPDX-License-Identifier: MIT */
/* ctest: label=threads timeout=60
 * P5: what [ended] says of the threads that it stands for is what they were: when the first of them began. */
#include "tests/api_fixture.h"

enum { BEGAN = 1000000000, LATER = 2000000000, SHALLOW = 3 };
static fdr_region region;

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

/* All memory comes by once, so that of those that ended only [ended] is left. */
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
    for (int first = 0; first < 2; first++) { /* the one without events ends first, or last */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_when_the_first_began)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
