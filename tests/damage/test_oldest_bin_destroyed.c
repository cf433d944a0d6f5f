/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P3,P8
 * P3, P8: the header of a partition's oldest bin is destroyed. The count of records given back before it stays right,
 * and the bin's records count as lost. The file that recovery writes balances, too. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/arena/arena.h"
#include "tests/support/api_fixture.h"

static uint8_t *image, *copy;
static size_t bytes;

static void fill(const char *strategy)
{
    begin(&(struct fdr_config){.strategy = strategy, .buffer = "512K", .bin = "1K", .timer = "monotonic"});
    uint64_t t = 1000, seed = 7;
    for (int i = 0; i < 300000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        fdr_enter_at(1, t += 40);
        fdr_enter_at(2, t += 30), fdr_leave_at(2, t += 20 + (seed >> 40) % 3000);
        if (seed >> 60 == 1) fdr_marker_at(1, seed, t += 5);
        fdr_leave_at(1, t += 20 + (seed >> 33) % 9000);
    }
    assert_int_equal(fdr_snapshot("oldest"), 0);
    FILE *f = fopen(fdr_last_snapshot(), "rb");
    assert_non_null(f);
    image = malloc(1 << 20), copy = malloc(1 << 20);
    bytes = fread(image, 1, 1 << 20, f);
    fclose(f);
    unlink(fdr_last_snapshot());
    fdr_finalize();
}

/* The sums of a file's ledger. Each row balances; with `holes`, the lost records may be missing from it. */
static struct fdr_ledger_row sums(struct fdr_file *f, bool holes)
{
    struct fdr_ledger_row s = {0};
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost;
        assert_true(holes ? sum <= rows[i].presented : sum == rows[i].presented);
        s.presented += rows[i].presented;
        s.kept += rows[i].kept;
        s.reduced += rows[i].reduced;
        s.lost += rows[i].lost;
    }
    return s;
}

static struct fdr_file *opened(const void *p, size_t count)
{
    char message[256];
    struct fdr_file *f;
    fdr_file_open_memory(p, count, &f, message, sizeof message);
    assert_non_null(f);
    fdr_file_verify(f);
    return f;
}

/* Destroys the header of the oldest bin of one partition. */
static void destroy(const struct fdri_arena_part *p, const struct fdr_ledger_row *whole)
{
    char message[256], path[300];
    memcpy(copy, image, bytes);
    struct fdri_arena_bin *b = (void *)(copy + (uint32_t)p->list_head);
    uint64_t records = FDRI_ARENA_COMMIT_RECORDS(b->commit);
    memset(b, 0x5a, offsetof(struct fdri_arena_bin, commit));
    struct fdr_file *f = opened(copy, bytes);
    struct fdr_ledger_row damaged = sums(f, true);
    snprintf(path, sizeof path, "%s/oldest.fdr", oracle_directory());
    assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
    fdr_file_close(f);
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    struct fdr_ledger_row now = sums(f, false);
    fdr_file_close(f);
    unlink(path);
    assert_int_equal(now.presented, whole->presented);
    /* records whose parents were given back counted as reduced before (FORMAT.md, 7.3) */
    uint64_t alone = whole->reduced - damaged.reduced;
    assert_in_range(alone, 0, records - 1);
    assert_int_equal(damaged.kept + records - alone, whole->kept);
    assert_int_equal(now.lost, records);
    /* the calls inside of lost ones have lost their parents; they may count as reduced */
    assert_true(now.reduced >= damaged.reduced && now.kept <= damaged.kept);
    assert_int_equal(now.kept + now.reduced + now.lost, whole->kept + whole->reduced + whole->lost);
}

static void destroys_each(const char *strategy, unsigned least_tried, unsigned least_with_past)
{
    fill(strategy);
    struct fdr_file *f = opened(image, bytes);
    struct fdr_ledger_row whole = sums(f, false);
    fdr_file_close(f);
    unsigned tried = 0, with_past = 0;
    for (size_t off = 0; off + sizeof(struct fdri_arena_part) <= bytes; off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_part *p = (const void *)(image + off);
        if (p->head.magic != FDRI_ARENA_META_MAGIC || p->head.kind != FDRI_ARENA_META_PART || !(uint32_t)p->list_head)
            continue;
        const struct fdri_arena_bin *b = (const void *)(image + (uint32_t)p->list_head);
        if (!b->next || FDRI_ARENA_COMMIT_RECORDS(b->commit) < 2) continue;
        tried++;
        with_past += b->first_index > 0;
        destroy(p, &whole);
    }
    assert_true(tried >= least_tried && with_past >= least_with_past); /* else the test tried nothing */
    free(image), free(copy);
}

static void P3_oldest_bin_destroyed_telescope(void **state)
{
    (void)state;
    destroys_each("telescope", 3, 3);
}
static void P3_oldest_bin_destroyed_whole(void **state)
{
    (void)state;
    destroys_each("whole", 1, 0); /* here the oldest bins are the first of their partitions */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_oldest_bin_destroyed_telescope),
                                       cmocka_unit_test(P3_oldest_bin_destroyed_whole)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
