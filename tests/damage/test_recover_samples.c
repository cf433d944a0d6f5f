/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P3,P8
 * P3, P8: the recovered file is whole and its ledger balances. Cases, found by fuzz_reader: a damaged bin of samples,
 * damaged epochs, and a row of totals whose key names a kind without totals. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/arena/arena.h"
#include "tests/support/api_fixture.h"
#include "tests/support/snapshot_bytes.h"

struct image {
    uint8_t *bytes;
    size_t count;
};

static void record(void)
{
    fdr_region outer = fdr_region_define("outer", NULL, 0);
    struct fdr_sampled *s = fdr_sampled_open(1, "sampled", FDR_BY_WALL_TIME, 1000);
    for (uint64_t i = 1; i <= 5000; i++) {
        fdr_enter_at(outer, i * 1000);
        fdr_sample_at(s, &(struct fdr_look){.weight = 1, .pc = 4711 + i % 7, .path = &outer, .path_count = 1},
                      i * 1000);
        fdr_leave_at(outer, i * 1000 + 10);
    }
}

static struct image snapshot(void)
{
    struct image m = {NULL, 0};
    m.bytes = snapshot_bytes(&m.count);
    return m;
}

/* Recovers the file and checks it. Returns the number of locations whose accounts recovery made anew. */
static uint64_t recovered_is_whole(const struct image *m)
{
    char message[256], path[] = "/tmp/fdr-recover-XXXXXX";
    const struct fdr_ledger_row *r;
    const struct fdr_total *totals;
    const struct fdr_epoch_info *epochs;
    struct fdr_file *f, *g;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    fdr_file_open_memory(m->bytes, m->count, &f, message, sizeof message);
    assert_non_null(f);
    assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
    fdr_file_close(f);
    assert_int_equal(fdr_file_open(path, &g, message, sizeof message), FDR_WHOLE);
    unlink(path);
    assert_int_equal(fdr_file_verify(g), FDR_WHOLE);
    fdr_totals(g, &totals);
    fdr_epochs(g, &epochs);
    if (fdr_file_damage_count(g)) fail_msg("%s", fdr_file_damage(g, 0));
    for (size_t i = 0, n = fdr_ledger(g, &r); i < n; i++) {
        assert_int_equal(r[i].presented, r[i].kept + r[i].filtered + r[i].reduced + r[i].lost);
        assert_true(r[i].presented < 1ull << 40); /* more than the test ever records */
    }
    uint64_t anew = fdr_file_info(g)->accounts_anew;
    fdr_file_close(g);
    return anew;
}

/* A location of samples has no levels. Recovery must not take that for damage. */
static void P8_nothing_is_made_anew_where_nothing_is_damaged(void **state)
{
    (void)state;
    begin(NULL);
    record();
    struct image m = snapshot();
    assert_int_equal(recovered_is_whole(&m), 0);
    free(m.bytes);
    end(NULL);
}

static void P3_P8_damaged_bins_of_samples(void **state)
{
    unsigned tried = 0;
    (void)state;
    begin(NULL);
    record();
    struct image m = snapshot();
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + 512 <= m.count && tried < 20; off += 512) {
        struct fdri_arena_bin *h = (void *)(m.bytes + off);
        if (h->magic != FDRI_ARENA_BIN_MAGIC || h->class_ != FDRI_ARENA_CLASS_SAMPLE ||
            FDRI_ARENA_COMMIT_RECORDS(h->commit) < 2)
            continue;
        uint8_t *in = m.bytes + off + 64 + FDRI_ARENA_COMMIT_BITS(h->commit) / 16;
        *in ^= 4;
        recovered_is_whole(&m);
        *in ^= 4;
        tried++;
    }
    assert_true(tried > 1);
    free(m.bytes);
    end(NULL);
}

static void P8_keys_without_totals(void **state)
{
    static const uint32_t keys[] = {FDRI_ARENA_DEF_COMM << 24 | 1, FDRI_ARENA_DEF_MODULE << 24 | 1, 3};
    unsigned tried = 0;
    (void)state;
    begin(NULL);
    record();
    struct image m = snapshot();
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + 64 <= m.count; off += 64) {
        const struct fdri_arena_rowtable *t = (void *)(m.bytes + off);
        if (t->head.magic != FDRI_ARENA_META_MAGIC || t->head.kind != FDRI_ARENA_META_ROWTABLE) continue;
        const uint32_t *slot = (const void *)(t + 1);
        for (uint32_t i = 0; i < 1u << t->log2; i++) {
            struct fdri_arena_row *r = slot[i] ? (void *)(m.bytes + slot[i]) : NULL;
            if (!r || r->key == FDRI_ARENA_ROW_KEY_REST) continue;
            uint32_t key = r->key;
            for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
                r->key = keys[k];
                recovered_is_whole(&m);
            }
            r->key = key;
            tried++;
        }
    }
    assert_true(tried > 0);
    free(m.bytes);
    end(NULL);
}

static void P8_damaged_epochs(void **state)
{
    unsigned tried = 0;
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "256K"});
    record();
    for (int k = 0; k < 40; k++) record(); /* epochs begin once memory is full */
    struct image m = snapshot();
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + sizeof(struct fdri_arena_epochs) <= m.count; off += 64) {
        struct fdri_arena_epochs *e = (void *)(m.bytes + off);
        if (e->head.magic != FDRI_ARENA_META_MAGIC || e->head.kind != FDRI_ARENA_META_EPOCHS) continue;
        uint32_t count = e->count;
        e->count = UINT32_MAX;
        recovered_is_whole(&m);
        e->count = count;
        tried++;
    }
    assert_true(tried > 0);
    free(m.bytes);
    end(NULL);
}

/* The file claims an impossible number of samples, or more levels than a thread can have. Recovery believes neither. */
static void P8_damaged_counts(void **state)
{
    unsigned samples = 0, locations = 0;
    (void)state;
    begin(NULL);
    record();
    struct image m = snapshot();
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + sizeof(struct fdri_arena_samples) <= m.count;
         off += FDRI_ARENA_META_ALIGN) {
        struct fdri_arena_meta_head *h = (void *)(m.bytes + off);
        if (h->magic == FDRI_ARENA_META_MAGIC && h->kind == FDRI_ARENA_META_SAMPLES) {
            struct fdri_arena_samples *s = (void *)h;
            s->level[0].presented ^= 1ull << 60;
            recovered_is_whole(&m);
            s->level[0].presented ^= 1ull << 60;
            samples++;
        }
        if (h->magic == FDRI_ARENA_META_MAGIC && h->kind == FDRI_ARENA_META_LOCATION) {
            struct fdri_arena_location *l = (void *)h;
            l->level_blocks ^= 1u << 31;
            recovered_is_whole(&m);
            l->level_blocks ^= 1u << 31;
            locations++;
        }
    }
    assert_true(samples > 0 && locations > 1);
    free(m.bytes);
    end(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_nothing_is_made_anew_where_nothing_is_damaged),
                                       cmocka_unit_test(P3_P8_damaged_bins_of_samples),
                                       cmocka_unit_test(P8_keys_without_totals), cmocka_unit_test(P8_damaged_epochs),
                                       cmocka_unit_test(P8_damaged_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
