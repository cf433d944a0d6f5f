/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=300 promise=P1,P2
 * ctest: without=tsan (samples come further apart, so they take more bytes than it expects)
 * P1, P2: the reserve for new threads stays theirs. The program writes notes under thousands of keys, or a hundred
 * sampled threads record nothing but samples. Neither may use the reserve; fdr refuses them with one line. New
 * threads then lose no event. */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { CALLS = 1000, THREADS_MOST = 4, KEYS = 3000, SAMPLED = 100, SAMPLES = 200 };
static fdr_region region;
static pthread_barrier_t all_recorded;

static void *thread(void *unused)
{
    for (int i = 0; i < CALLS; i++) {
        fdr_enter(region);
        fdr_leave(region);
    }
    pthread_barrier_wait(&all_recorded);
    return unused;
}

/* All threads are alive at the same time, because an ended one would make room for the next. */
static void newcomers_have_room(int threads)
{
    pthread_t t[THREADS_MOST];
    assert_int_equal(pthread_barrier_init(&all_recorded, NULL, (unsigned)threads), 0);
    struct fdr_usage before = fdr_usage();
    for (int i = 0; i < threads; i++) assert_int_equal(pthread_create(&t[i], NULL, thread, NULL), 0);
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    pthread_barrier_destroy(&all_recorded);
    struct fdr_usage u = fdr_usage();
    assert_int_equal(u.lost - before.lost, 0);
    assert_int_equal(u.presented - before.presented, (uint64_t)threads * CALLS);
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
    newcomers_have_room(THREADS_MOST);
    struct fdr_file *f = take();
    const struct fdr_note_info *note;
    assert_in_range(fdr_notes(f, &note), 100, KEYS - 1);
    fdr_file_close(f);
    fdr_finalize();
}

/* In a buffer with room for all notes, none is missing. A value that is too long ends at a character boundary. */
static void all_notes(void **state)
{
    char key[32];
    const struct fdr_note_info *note;
    (void)state;
    begin(&(struct fdr_config){.buffer = "16M"});
    fdr_note("input", "not known yet");
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "request %d", i);
        fdr_note(key, "done");
    }
    fdr_note("input", "a.dat");
    fdr_note("a key of thirty-seven bytes, and then\u20ac", "a value of one hundred and one bytes that goes on and on "
                                                            "and on and on and on and on and on and then\U0001f600");
    struct fdr_file *f = take();
    size_t n = fdr_notes(f, &note);
    assert_int_equal(n, KEYS + 2);
    assert_string_equal(note[0].key, "input");
    assert_string_equal(note[0].value, "a.dat");
    assert_string_equal(note[n - 1].key, "a key of thirty-seven bytes, and then");
    assert_int_equal(strlen(note[n - 1].value), strspn(note[n - 1].value, "abcdefghijklmnopqrstuvwxyz- "));
    fdr_file_close(f);
    fdr_finalize();
}

enum { MANY = 24, DEEP = 20, FILL = SANITIZED ? 5000 : 20000 };
static fdr_region deep[DEEP];
static pthread_barrier_t full;

static void *fills(void *seed)
{
    uint64_t s = 88172645463325252u * (1 + (uintptr_t)seed);
    for (int i = 0; i < FILL; i++) {
        int depth = 1 + (int)rnd(&s, DEEP);
        for (int d = 0; d < depth; d++) fdr_enter(deep[(d + i) % DEEP]), fdr_metric_u64(0, s);
        for (int d = depth; d--;) fdr_leave(deep[(d + i) % DEEP]);
    }
    pthread_barrier_wait(&full); /* the threads stay alive until the second barrier */
    pthread_barrier_wait(&full);
    return NULL;
}

/* Events have taken all memory. Some must still be left for notes and sample streams. */
static void late_ones(void **state)
{
    char key[32];
    const struct fdr_note_info *note;
    uint32_t streams = 0;
    pthread_t t[MANY];
    (void)state;
    begin(&(struct fdr_config){.buffer = "8M"});
    define_regions(deep, DEEP);
    pthread_barrier_init(&full, NULL, MANY + 1);
    for (uintptr_t i = 0; i < MANY; i++) assert_int_equal(pthread_create(&t[i], NULL, fills, (void *)i), 0);
    pthread_barrier_wait(&full);
    assert_true(fdr_usage().reduced > 0);
    for (uint32_t i = 0; i < 4; i++) streams += fdr_sampled_open(1000 + i, "late", FDR_BY_CPU_TIME, 1000000) != NULL;
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "late %d", i);
        fdr_note(key, "done");
    }
    struct fdr_file *f = take();
    assert_int_equal(streams, 4);
    assert_in_range(fdr_notes(f, &note), 31, 100);
    fdr_file_close(f);
    newcomers_have_room(THREADS_MOST);
    pthread_barrier_wait(&full);
    for (int i = 0; i < MANY; i++) pthread_join(t[i], NULL);
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
    newcomers_have_room(buffer[0] == '2' ? 2 : THREADS_MOST); /* 256K has four bins in reserve; each takes up to two */
    for (uint32_t i = 0; i < SAMPLED; i++)
        if (s[i]) fdr_sampled_close(s[i]);
    fdr_finalize();
}

int main(void)
{
    static char small[] = "256K", larger[] = "1M";
    const struct CMUnitTest tests[] = {cmocka_unit_test(beside_notes), cmocka_unit_test(all_notes),
                                       cmocka_unit_test(late_ones), cmocka_unit_test_prestate(beside_samples, small),
                                       cmocka_unit_test_prestate(beside_samples, larger)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
