/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120
 * Memory that threads to come begin with stays theirs: what an application notes under thousands of keys, and samples
 * of a hundred threads that record nothing, leave it alone, and are refused with a line. */
#include "tests/api_fixture.h"

enum { THREADS = 4, CALLS = 1000, KEYS = 3000, SAMPLED = 100, SAMPLES = 200 };
static fdr_region region;

static void *thread(void *unused)
{
    for (int i = 0; i < CALLS; i++) {
        fdr_enter(region);
        fdr_leave(region);
    }
    return unused;
}

/* All at a time: one that ends makes room for the next. */
static void newcomers_have_room(void)
{
    pthread_t t[THREADS];
    struct fdr_usage before = fdr_usage();
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, thread, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    struct fdr_usage u = fdr_usage();
    assert_int_equal(u.lost - before.lost, 0);
    assert_int_equal(u.presented - before.presented, THREADS * CALLS);
}

static void beside_notes(void **state)
{
    char key[32];
    (void)state;
    begin(&(struct fdr_config){.buffer = "1M"});
    region = fdr_region_define("region", NULL, 0);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "request %d", i);
        fdr_note(key, "done");
    }
    newcomers_have_room();
    struct fdr_file *f = take();
    const struct fdr_note_info *note;
    assert_in_range(fdr_notes(f, &note), 100, KEYS - 1);
    fdr_file_close(f);
    fdr_finalize();
}

static void beside_samples(void **state)
{
    struct fdr_sampled *s[SAMPLED];
    unsigned streams = 0;
    const char *const buffer = *state;
    begin(&(struct fdr_config){.buffer = buffer});
    region = fdr_region_define("region", NULL, 0);
    for (uint32_t i = 0; i < SAMPLED; i++) {
        s[i] = fdr_sampled_open(1000 + i, "idle", FDR_BY_CPU_TIME, 1000000);
        streams += s[i] != NULL;
    }
    for (uint32_t n = 0; n < SAMPLES; n++)
        for (uint32_t i = 0; i < SAMPLED; i++)
            if (s[i]) fdr_sample(s[i], &(struct fdr_look){.weight = 1, .pc = n + 1});
    assert_true(streams >= 4);
    newcomers_have_room();
    for (uint32_t i = 0; i < SAMPLED; i++)
        if (s[i]) fdr_sampled_close(s[i]);
    fdr_finalize();
}

int main(void)
{
    static char small[] = "256K", larger[] = "1M";
    const struct CMUnitTest tests[] = {cmocka_unit_test(beside_notes), cmocka_unit_test_prestate(beside_samples, small),
                                       cmocka_unit_test_prestate(beside_samples, larger)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
