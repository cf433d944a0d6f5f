/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P8 */
/* P8: a table of tallies finds each key again, and refuses the same keys for ever. No prefix of a key and no flipped
 * bit is ever read as a key that nobody made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "format/tallies/tally_table.h"

enum { LOG2 = 6, ROWS = 1 << LOG2, PROBES = 12 };

static struct fdri_arena_tallies *table(void)
{
    struct fdri_arena_tallies *t = aligned_alloc(64, fdri_arena_tallies_bytes(LOG2));
    memset(t, 0, fdri_arena_tallies_bytes(LOG2));
    t->log2 = LOG2;
    return t;
}

static struct fdri_tallies_key numbered(uint32_t kind, uint64_t n)
{
    uint64_t key[3] = {n, ~n, n * n};
    return fdri_tallies_key(kind, key);
}

static void rows_are_found_again(void **state)
{
    (void)state;
    struct fdri_arena_tallies *t = table();
    struct fdri_arena_tally *row[40];
    for (uint64_t n = 0; n < 40; n++) {
        struct fdri_tallies_key k = numbered(1 + n % 3, n / 3); /* equal keys of several kinds, too */
        row[n] = fdri_tallies_row(t, &k, PROBES);
        assert_non_null(row[n]);
        for (uint64_t m = 0; m < n; m++) assert_ptr_not_equal(row[n], row[m]);
    }
    for (uint64_t n = 0; n < 40; n++) {
        struct fdri_tallies_key k = numbered(1 + n % 3, n / 3);
        uint32_t kind;
        uint64_t key[3];
        assert_ptr_equal(fdri_tallies_row(t, &k, PROBES), row[n]);
        assert_int_equal(fdri_tallies_read(row[n], &kind, (void *)key), FDRI_TALLIES_WHOLE);
        assert_int_equal(kind, 1 + n % 3);
        assert_true(key[0] == n / 3 && key[1] == ~key[0] && key[2] == key[0] * key[0]);
    }
    free(t);
}

static void a_full_table_refuses_the_same_keys_for_ever(void **state)
{
    (void)state;
    struct fdri_arena_tallies *t = table();
    static struct fdri_arena_tally *row[1000];
    uint32_t got = 0;
    for (uint64_t n = 0; n < 1000; n++) {
        struct fdri_tallies_key k = numbered(7, n);
        row[n] = fdri_tallies_row(t, &k, PROBES);
        got += row[n] != NULL;
    }
    assert_true(got > ROWS * 3 / 4 && got <= ROWS);
    for (uint64_t n = 0; n < 1000; n++) {
        struct fdri_tallies_key k = numbered(7, n);
        assert_ptr_equal(fdri_tallies_row(t, &k, PROBES), row[n]);
    }
    free(t);
}

/* At 10,000 keys in 16,384 places 12 probes nearly always suffice. */
static void a_table_is_well_filled(void **state)
{
    (void)state;
    enum { LARGE = 14, KEYS = 10000 };
    struct fdri_arena_tallies *t = aligned_alloc(64, fdri_arena_tallies_bytes(LARGE));
    memset(t, 0, fdri_arena_tallies_bytes(LARGE));
    t->log2 = LARGE;
    uint32_t refused = 0;
    for (uint32_t n = 0; n < KEYS; n++) { /* as of messages: peer, tag, communicator */
        uint32_t envelope[6] = {n & 1, n / 20, 0, n / 2 % 10, 0, 1};
        struct fdri_tallies_key k = fdri_tallies_key(3, envelope);
        refused += !fdri_tallies_row(t, &k, FDRI_ARENA_TALLY_PROBES_FURTHER);
    }
    print_message("%u of %u keys refused\n", refused, KEYS);
    assert_true(refused <= 10);
    free(t);
}

/* A thread that stops behind any word leaves an incomplete key. A thread with that key completes it; one with another
 * key passes it by. */
static void a_key_in_the_making_is_completed(void **state)
{
    (void)state;
    struct fdri_tallies_key k = numbered(5, 1), other = k;
    other.word[FDRI_ARENA_TALLY_WORDS - 1] ^= 1; /* the same hash and beginning, so the same places */
    for (uint32_t words = 1; words < FDRI_ARENA_TALLY_WORDS; words++) {
        struct fdri_arena_tallies *t = table();
        struct fdri_arena_tally *row = fdri_tallies_row(t, &k, PROBES);
        uint32_t kind;
        uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES];
        for (uint32_t i = words; i < FDRI_ARENA_TALLY_WORDS; i++) row->key[i] = 0;
        assert_int_equal(fdri_tallies_read(row, &kind, key), FDRI_TALLIES_HALF);
        assert_ptr_equal(fdri_tallies_row(t, &k, PROBES), row);
        assert_int_equal(fdri_tallies_read(row, &kind, key), FDRI_TALLIES_WHOLE);
        assert_ptr_not_equal(fdri_tallies_row(t, &other, PROBES), row);
        free(t);
    }
}

static void a_flipped_bit_makes_no_key(void **state)
{
    (void)state;
    struct fdri_arena_tallies *t = table();
    struct fdri_tallies_key k = numbered(5, 12345);
    struct fdri_arena_tally *row = fdri_tallies_row(t, &k, PROBES);
    uint32_t kind, damaged = 0;
    uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES];
    for (uint32_t bit = 0; bit < 64 * FDRI_ARENA_TALLY_WORDS; bit++) {
        row->key[bit / 64] ^= (uint64_t)1 << bit % 64;
        enum fdri_tallies_state s = fdri_tallies_read(row, &kind, key);
        assert_int_not_equal(s, FDRI_TALLIES_WHOLE);
        damaged += s == FDRI_TALLIES_DAMAGED;
        row->key[bit / 64] ^= (uint64_t)1 << bit % 64;
    }
    assert_int_equal(damaged, 64 * FDRI_ARENA_TALLY_WORDS);
    free(t);
}

static void names_are_keys(void **state)
{
    (void)state;
    const char *names[] = {"", "slow", "exactly twenty-three by", "exactly twenty-four byte",
                           "exactly twenty-four bytf"};
    uint8_t key[5][FDRI_ARENA_TALLY_KEY_BYTES];
    for (int i = 0; i < 5; i++) {
        fdri_tallies_name_key(names[i], key[i]);
        for (int j = 0; j < i; j++) assert_memory_not_equal(key[i], key[j], sizeof key[i]);
        assert_int_equal(key[i][FDRI_ARENA_TALLY_KEY_BYTES - 1], strlen(names[i]) > FDRI_ARENA_TALLY_NAME_SHORT);
    }
    assert_string_equal((char *)key[2], names[2]);
    assert_memory_equal(key[3], names[3], FDRI_ARENA_TALLY_NAME_BEGIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_again),       cmocka_unit_test(a_full_table_refuses_the_same_keys_for_ever),
        cmocka_unit_test(a_table_is_well_filled),     cmocka_unit_test(a_key_in_the_making_is_completed),
        cmocka_unit_test(a_flipped_bit_makes_no_key), cmocka_unit_test(names_are_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
