/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P8
 * P8: tallies of a snapshot are damaged: a key, a counter, a table. The recovered file is whole and has the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <fdr/tally.h>

#include "format/arena/arena.h"
#include "format/tallies/tally_table.h"
#include "tests/support/snapshot_bytes.h"

enum { KIND = 40000, MADE = 100 };

static char folder[] = "/tmp/fdr-tallies-XXXXXX", recovered[64];

static uint8_t *snapshot(size_t *bytes)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "1M",
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .dir = folder};
    assert_int_equal(fdr_init(&c), 0);
    for (uint32_t n = 0; n < MADE; n++) {
        uint32_t key[6] = {n};
        fdr_tally t;
        assert_int_equal(fdr_tally_make(KIND, key, &t), 0);
        assert_int_equal(fdr_tally_add(t, 0, n + 1, NULL), 0);
    }
    uint8_t *all = snapshot_bytes(bytes);
    fdr_finalize();
    return all;
}

/* The number of tallies in the recovered file, which must be whole. Each has the count that it was given. */
static size_t recovered_tallies(uint8_t *all, size_t bytes)
{
    struct fdr_file *f, *g;
    const struct fdr_tally_row *row;
    char message[200] = "";
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_DAMAGED);
    assert_int_equal(fdr_file_recover(f, recovered, message, sizeof message), 0);
    fdr_file_close(f);
    assert_int_equal(fdr_file_open(recovered, &g, message, sizeof message), FDR_WHOLE);
    size_t n = fdr_tallies(g, &row);
    assert_int_equal(fdr_tally_room(g).damaged, 0);
    assert_int_equal(fdr_file_verify(g), FDR_WHOLE);
    for (size_t i = 0; i < n; i++) {
        uint32_t key;
        memcpy(&key, row[i].key, sizeof key);
        assert_int_equal(row[i].counter[0], key + 1);
    }
    fdr_file_close(g);
    unlink(recovered);
    return n;
}

static struct fdri_arena_tallies *first_table(uint8_t *all)
{
    const struct fdri_arena_superblock *sb = (const void *)all;
    assert_true(fdri_arena_section_is(&sb->section[0], FDRI_ARENA_SECTION_TALLIES));
    return (void *)(all + sb->section[0].off);
}

static struct fdri_arena_tallies *larger_table(uint8_t *all)
{
    assert_true(first_table(all)->larger > FDRI_ARENA_TALLIES_NEVER);
    return (void *)(all + first_table(all)->larger);
}

static size_t whole_rows(const struct fdri_arena_tallies *t)
{
    size_t whole = 0;
    uint32_t kind;
    uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES];
    for (uint32_t i = 0; i < 1u << t->log2; i++)
        whole += fdri_tallies_read(&t->row[i], &kind, key) == FDRI_TALLIES_WHOLE;
    return whole;
}

static void P8_a_damaged_key_or_counter(void **state)
{
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    struct fdri_arena_tallies *t = larger_table(all);
    uint32_t at = 0;
    while (!t->row[at].key[0]) at++;
    t->row[at].key[2] ^= 4;
    size_t n = recovered_tallies(all, bytes);
    assert_in_range(n, 1, MADE - 1);
    t->row[at].key[2] ^= 4;
    t->row[at].counter[0] ^= 4; /* the checks show it */
    n = recovered_tallies(all, bytes);
    assert_in_range(n, 1, MADE - 1);
    free(all);
}

static void P8_a_damaged_table(void **state)
{
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    size_t in_first = whole_rows(first_table(all));
    assert_int_equal(in_first + whole_rows(larger_table(all)), MADE);
    larger_table(all)->head.kind = FDRI_ARENA_META_DEFS;
    assert_true(recovered_tallies(all, bytes) <= in_first);
    larger_table(all)->head.kind = FDRI_ARENA_META_TALLIES;
    first_table(all)->head.kind = FDRI_ARENA_META_GOVERNOR;
    assert_int_equal(recovered_tallies(all, bytes), 0);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_a_damaged_key_or_counter),
                                       cmocka_unit_test(P8_a_damaged_table)};
    if (!mkdtemp(folder)) return 1;
    snprintf(recovered, sizeof recovered, "%s/recovered.fdr", folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
