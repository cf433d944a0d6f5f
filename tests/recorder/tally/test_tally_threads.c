/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads promise=P5,P6 */
/* P5, P6: threads that make the same keys at the same time, while the table grows and snapshots are taken. Sums are
 * exact, no key is there twice, and every snapshot shows keys that were made and counts that had been reached. */
#include <fdr/tally.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/support/api_fixture.h"

enum { THREADS = 4, KEYS = 200, ROUNDS = 20, KIND = FDR_TALLY_YOURS + 1 };
static pthread_barrier_t together;
static uint32_t refused[KEYS]; /* atomic: threads that heard "no room" */

static void key_of(uint32_t n, uint64_t key[3]) { key[0] = n, key[1] = n * 7919u, key[2] = 42; }

/* Half of the threads have recorded; the others never attach. Each goes through the keys in an order of its own. */
static void *count(void *argument)
{
    static const uint32_t stride[THREADS] = {1, 3, 7, 9}; /* without a common factor with KEYS */
    uint32_t me = (uint32_t)(uintptr_t)argument;
    if (me % 2) fdr_marker(fdr_marker_define("begin"), me);
    pthread_barrier_wait(&together);
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < KEYS; i++) {
            uint32_t n = i * stride[me] % KEYS;
            uint64_t key[3];
            fdr_tally t;
            key_of(n, key);
            int e = fdr_tally_make(KIND, key, &t);
            if (e == -ENOSPC && !round) __atomic_add_fetch(&refused[n], 1, __ATOMIC_RELAXED);
            if (e) continue;
            assert_int_equal(fdr_tally_add(t, 0, 1, NULL), 0);
            assert_int_equal(fdr_tally_add(t, 1, n, NULL), 0);
        }
    return NULL;
}

static size_t look(struct fdr_file *f, uint64_t *sum)
{
    const struct fdr_tally_row *rows;
    size_t n = fdr_tallies(f, &rows), mine = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t key[3], right[3];
        if (rows[i].kind != KIND) continue;
        memcpy(key, rows[i].key, sizeof key);
        assert_true(key[0] < KEYS);
        key_of((uint32_t)key[0], right);
        assert_memory_equal(key, right, sizeof key);
        assert_true(rows[i].counter[0] <= THREADS * ROUNDS);
        if (i) assert_true(memcmp(rows[i - 1].key, rows[i].key, sizeof rows[i].key) != 0);
        *sum += rows[i].counter[0];
        mine++;
    }
    assert_int_equal(fdr_tally_room(f).damaged, 0);
    return mine;
}

/* 1 MiB has 16 places, and 256 more when these do not suffice. */
static void P5_P6_threads_make_the_same_keys(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    uint64_t sum = 0, before = 0, expected = 0;
    begin(&(struct fdr_config){.buffer = "1M"});
    memset(refused, 0, sizeof refused);
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, count, (void *)i);
    pthread_barrier_wait(&together);
    for (int i = 0; i < 5; i++) {
        uint64_t now = 0;
        struct fdr_file *f = oracle_snapshot(0, &(const char *){NULL});
        assert_non_null(f);
        look(f, &now);
        assert_true(now >= before);
        before = now;
        fdr_file_close(f);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    struct fdr_file *f = take();
    size_t found = look(f, &sum), some = 0;
    for (uint32_t n = 0; n < KEYS; n++) {
        assert_true(refused[n] == 0 || refused[n] == THREADS); /* all hear the same */
        some += refused[n] == 0;
    }
    expected = (uint64_t)some * THREADS * ROUNDS;
    assert_int_equal(found, some);
    assert_true(some > KEYS * 9 / 10);
    assert_int_equal(sum, expected);
    assert_int_equal(fdr_tally_room(f).half, 0);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P5_P6_threads_make_the_same_keys)};
    pthread_barrier_init(&together, NULL, THREADS + 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
