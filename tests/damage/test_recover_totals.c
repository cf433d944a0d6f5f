/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads,slow timeout=300 promise=P5,P8 without=tsan (its threads take turns)
 * P5, P8: a bit is flipped in the totals of a snapshot: in a row, its counters, its table, or its location. Or it is
 * flipped in the base of an epoch. In the damaged and in the recovered file, totals that claim to be exact are exact.
 * The reader reports missing rows and shows all others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { MOST = 4 << 20, REGIONS = 40, ROUNDS = 800, OFTEN = SANITIZED ? 4 : 1 };
static char directory[] = "/tmp/fdr-recover-totals-XXXXXX", path[64];
static uint8_t image[MOST], damaged[MOST], recovered[MOST];
static size_t bytes, recovered_bytes;
static uint64_t seed = 5;
static const struct fdr_total *truth;
static const struct fdr_epoch_info *truth_epoch;
static const struct fdr_epoch_total *truth_since;
static size_t truths, truth_epochs, truths_since;
static size_t beside;  /* offset of a second damaged byte; 0: none */
static bool unchecked; /* the spare is damaged, so no check holds; epochs are not compared then */
static fdr_region region[REGIONS];
static fdr_marker_id marker;
static fdr_metric_id metric;

/* Both threads have the same rows in the same order. So a wrong bit in a slot may lead to the other thread's row. */
static void *record(void *context)
{
    uint64_t now = 1000;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        fdr_enter_at(region[0], now += 10);
        for (uint64_t k = 1; k < REGIONS; k++) {
            fdr_enter_at(region[k], now += 10);
            fdr_leave_at(region[k], now += 100 + k * (i + 1));
        }
        fdr_leave_at(region[0], now += 10);
        fdr_marker_at(marker, i, now);
        fdr_metric_u64_at(metric, i * 3, now);
    }
    return context;
}

static size_t read_file(const char *name, uint8_t *to)
{
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    size_t n = fread(to, 1, MOST, f);
    assert_true(n < MOST);
    fclose(f);
    unlink(name);
    return n;
}

static void snapshot(const char *buffer)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = buffer,
                           .arena = "anonymous",
                           .signal = "none",
                           .crash = "0"};
    pthread_t other;
    c.dir = c.live_dir = directory;
    assert_int_equal(fdr_init(&c), 0);
    for (unsigned k = 0; k < REGIONS; k++) {
        char name[16];
        snprintf(name, sizeof name, "r%u", k);
        region[k] = fdr_region_define(name, NULL, 0);
    }
    marker = fdr_marker_define("marker");
    metric = fdr_metric_define("metric", "", FDR_U64, FDR_METRIC_GAUGE);
    record(NULL);
    assert_int_equal(pthread_create(&other, NULL, record, NULL), 0);
    pthread_join(other, NULL);
    assert_int_equal(fdr_snapshot("totals"), 0);
    bytes = read_file(fdr_last_snapshot(), image);
    fdr_finalize();
}

static bool same_sums(const struct fdr_total *a, const struct fdr_total *b)
{
    return a->calls == b->calls && a->untimed == b->untimed && a->inclusive_ns == b->inclusive_ns &&
           a->exclusive_ns == b->exclusive_ns && a->min_ns == b->min_ns && a->max_ns == b->max_ns &&
           a->sum_u == b->sum_u && a->min_u == b->min_u && a->max_u == b->max_u && a->saturated == b->saturated &&
           (!a->has_histogram || !memcmp(a->histogram, b->histogram, sizeof a->histogram));
}

static const struct fdr_total *find(const struct fdr_total *t, size_t count, const struct fdr_total *which)
{
    for (size_t i = 0; i < count; i++)
        if (t[i].location == which->location && t[i].class_ == which->class_ && t[i].rest == which->rest &&
            t[i].id == which->id)
            return &t[i];
    return NULL;
}

static bool lost_at(const struct fdr_file *f, uint32_t location)
{
    for (size_t i = 0; i < fdr_location_count(f); i++)
        if (fdr_location_info(f, i)->id == location) return fdr_location_info(f, i)->totals_lost;
    return false;
}

/* The number of missing rows. SIZE_MAX: a shown row is wrong, or a missing row is not reported. */
static size_t missing(struct fdr_file *f)
{
    const struct fdr_total *t;
    size_t count = fdr_totals(f, &t), gone = 0;
    for (size_t i = 0; i < count; i++) {
        const struct fdr_total *was = find(truth, truths, &t[i]);
        if (t[i].rest ? !t[i].at_least : !was || !same_sums(&t[i], was)) return SIZE_MAX;
    }
    for (size_t i = 0; i < truths; i++) {
        const struct fdr_total rest = {.location = truth[i].location, .rest = true};
        const struct fdr_total *is = find(t, count, &rest);
        if (find(t, count, &truth[i])) continue;
        if (!is || !is->at_least || !lost_at(f, truth[i].location) || !fdr_file_info(f)->totals_lost) return SIZE_MAX;
        gone++;
    }
    return gone;
}

static bool epoch_right(const struct fdr_epoch_info *is)
{
    for (size_t k = 0; k < truth_epochs; k++) {
        const struct fdr_epoch_info *was = &truth_epoch[k];
        if (was->location != is->location || was->index != is->index) continue;
        if (!is->exact) return is->calls <= was->calls && is->inclusive_ns <= was->inclusive_ns;
        return is->calls == was->calls && is->inclusive_ns == was->inclusive_ns && is->current == was->current &&
               (is->current || (is->from_ns == was->from_ns && is->to_ns == was->to_ns));
    }
    return false;
}

/* The calls of missing rows are in the rest. */
static bool since_right(const struct fdr_epoch_total *is)
{
    for (size_t k = 0; k < truths_since; k++) {
        const struct fdr_epoch_total *was = &truth_since[k];
        if (was->location != is->location || was->epoch != is->epoch || was->region != is->region ||
            was->rest != is->rest)
            continue;
        return is->rest ? is->calls >= was->calls && is->inclusive_ns >= was->inclusive_ns
                        : is->calls == was->calls && is->inclusive_ns == was->inclusive_ns;
    }
    return is->rest;
}

static bool epochs_right(struct fdr_file *f)
{
    if (unchecked) return true;
    const struct fdr_epoch_info *e;
    const struct fdr_epoch_total *t;
    size_t count = fdr_epochs(f, &e), totals = fdr_epoch_totals(f, &t);
    bool right = true;
    for (size_t i = 0; i < count; i++) right &= epoch_right(&e[i]);
    for (size_t i = 0; i < totals; i++) right &= since_right(&t[i]);
    return right;
}

static bool found_by_search(const struct fdri_arena_rowtable *t, const uint32_t *slot, uint32_t key)
{
    uint32_t mask = (1u << t->log2) - 1, i = key * 0x9E3779B1u >> (32 - t->log2);
    for (; slot[i]; i = (i + 1) & mask)
        if (((const struct fdri_arena_row *)(const void *)(recovered + slot[i]))->key == key) return true;
    return false;
}

/* A search by key finds each row of each table in use. */
static bool searchable(void)
{
    for (size_t off = 0; off + sizeof(struct fdri_arena_location) <= recovered_bytes; off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_location *l = (const void *)(recovered + off);
        if (l->head.magic != FDRI_ARENA_META_MAGIC || l->head.kind != FDRI_ARENA_META_LOCATION ||
            l->flags & FDRI_ARENA_LOCATION_FREE || !l->rows_table_off)
            continue;
        const struct fdri_arena_rowtable *t = (const void *)(recovered + l->rows_table_off);
        if (l->rows_table_off > recovered_bytes - sizeof *t || t->head.kind != FDRI_ARENA_META_ROWTABLE) continue;
        const uint32_t *slot = (const void *)(t + 1);
        for (uint32_t i = 0; i < 1u << t->log2; i++)
            if (slot[i] &&
                !found_by_search(t, slot, ((const struct fdri_arena_row *)(const void *)(recovered + slot[i]))->key))
                return false;
    }
    return true;
}

/* In the damaged and in the recovered file at most `most` rows may be missing. `what` and `at` name the damage. */
static bool all_right(size_t most, uint32_t what, size_t at)
{
    char message[300] = "";
    struct fdr_file *f, *g;
    if (fdr_file_open_memory(damaged, bytes, &f, message, sizeof message) == FDR_UNREADABLE) fail_msg("%s", message);
    size_t gone = missing(f);
    bool good = gone <= most && epochs_right(f);
    assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
    fdr_file_close(f);
    recovered_bytes = read_file(path, recovered);
    enum fdr_verdict verdict = fdr_file_open_memory(recovered, recovered_bytes, &g, message, sizeof message);
    assert_int_not_equal(verdict, FDR_UNREADABLE);
    size_t left_out = missing(g);
    good &= verdict == FDR_WHOLE && left_out <= most && epochs_right(g) && !fdr_file_damage_count(g) && searchable();
    if (!good)
        print_message("%u at %zu: %zd rows gone, recovered %zd; searchable %d, epochs %d, %s\n", what, at,
                      (ssize_t)gone, (ssize_t)left_out, searchable(), epochs_right(g), fdr_file_damage(g, 0));
    fdr_file_close(g);
    return good;
}

/* Flips one bit of the byte at `at`, and checks. */
static bool holds(size_t at, uint32_t bit, size_t most)
{
    memcpy(damaged, image, bytes);
    damaged[at] ^= (uint8_t)(1u << bit);
    if (beside) damaged[beside] ^= 0x7f;
    return all_right(most, bit, at);
}

/* Flips a bit in every word of each block of this kind; each may cost `most` rows. Returns the number of blocks. */
static unsigned flip(uint32_t kind, size_t step, size_t most, unsigned *bad)
{
    unsigned blocks = 0;
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + sizeof(struct fdri_arena_meta_head) <= bytes;
         off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_meta_head *h = (const void *)(image + off);
        if (h->magic != FDRI_ARENA_META_MAGIC || h->kind != kind || h->bytes > bytes - off) continue;
        blocks++;
        for (size_t at = sizeof *h; at < h->bytes; at += step) {
            /* After damage to these words the reader reports damage and guesses, so rows may be wrong. */
            if (kind == FDRI_ARENA_META_ROWTABLE && at == offsetof(struct fdri_arena_rowtable, log2)) continue;
            if (kind == FDRI_ARENA_META_LOCATION && (at == offsetof(struct fdri_arena_location, id) ||
                                                     at == offsetof(struct fdri_arena_location, rows_table_off)))
                continue;
            if (rnd(&seed, OFTEN)) continue;
            *bad += !holds(off + at + rnd(&seed, (uint32_t)step), rnd(&seed, 8), most);
        }
    }
    return blocks;
}

/* Marks each thread in the tail as being within an operation. */
static unsigned put_under_way(void)
{
    struct fdri_arena_tail *tail = (void *)(image +
                                            ((const struct fdri_arena_superblock *)(const void *)image)->arena_bytes);
    struct fdri_arena_tail_entry *e = (void *)(tail + 1);
    struct fdri_arena_spare spare;
    memcpy(&spare, image + FDRI_ARENA_SPARE_OFF, sizeof spare);
    for (uint32_t i = 0; i < tail->count; i++) e[i].under_way = 1;
    spare.tail_check = fdri_arena_check32(tail, spare.tail_bytes);
    fdri_arena_spare_finish(image, &spare);
    return tail->count;
}

/* Then the reader reports nothing if the current epoch does not add up. A row is damaged. The chain of blocks of the
 * epoch's base leads out of the file after the block that names that row. */
static unsigned break_link(unsigned *bad)
{
    unsigned blocks = 0;
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + sizeof(struct fdri_arena_epoch_base) <= bytes;
         off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_epoch_base *b = (const void *)(image + off);
        if (b->head.magic != FDRI_ARENA_META_MAGIC || b->head.kind != FDRI_ARENA_META_EPOCHBASE || !b->next) continue;
        blocks++;
        beside = b->next + offsetof(struct fdri_arena_epoch_base, next) + 3;
        *bad += !holds(b->row[0].row_off + offsetof(struct fdri_arena_row, calls), 0, 1);
    }
    beside = 0;
    return blocks;
}

/* Takes a snapshot, which serves as the truth. */
static struct fdr_file *begin(const char *buffer)
{
    struct fdr_file *f;
    snapshot(buffer);
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, NULL, 0), FDR_WHOLE);
    truths = fdr_totals(f, &truth);
    truth_epochs = fdr_epochs(f, &truth_epoch);
    truths_since = fdr_epoch_totals(f, &truth_since);
    assert_int_equal(truths, 2 * (REGIONS + 2));
    assert_int_equal(missing(f), 0);
    assert_int_equal(fdr_file_info(f)->totals_lost, 0);
    assert_true(holds(FDRI_ARENA_SUPERBLOCK_BYTES / 2, 0, 0));
    return f;
}

static void P5_P8_a_wrong_bit_in_totals(void **state)
{
    unsigned bad = 0;
    (void)state;
    struct fdr_file *f = begin("128K");
    assert_true(flip(FDRI_ARENA_META_ROWS, 8, 1, &bad) >= 2);
    assert_true(flip(FDRI_ARENA_META_ROWTABLE, 4, 16, &bad) >= 2);
    assert_true(flip(FDRI_ARENA_META_LOCATION, 4, REGIONS + 2, &bad) >= 2);
    assert_true(flip(FDRI_ARENA_META_EPOCHS, 16, 0, &bad) + flip(FDRI_ARENA_META_EPOCHBASE, 8, 0, &bad) >= 2);
    assert_int_equal(bad, 0);
    fdr_file_close(f);
    f = begin("512K"); /* the smallest buffer with room for rows of ended epochs */
    assert_true(flip(FDRI_ARENA_META_EPOCHROWS, 32, 0, &bad) >= 2);
    assert_int_equal(bad, 0);
    fdr_file_close(f);
}

/* With so little memory the base of the current epoch is in several blocks. */
static void P5_P8_a_chain_that_leads_nowhere(void **state)
{
    unsigned bad = 0;
    (void)state;
    struct fdr_file *f = begin("128K");
    assert_true(put_under_way() > 0);
    assert_true(break_link(&bad) >= 2);
    assert_int_equal(bad, 0);
    fdr_file_close(f);
}

/* An entry in the list of checks names another place, and a row is damaged. The row's own entry still finds the
 * damage. */
static void P5_P8_a_damaged_list_of_checks(void **state)
{
    struct fdri_arena_spare spare;
    unsigned bad = 0, rows = 0;
    (void)state;
    struct fdr_file *f = begin("128K");
    memcpy(&spare, image + FDRI_ARENA_SPARE_OFF, sizeof spare);
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + sizeof(struct fdri_arena_meta_head) <= bytes;
         off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_meta_head *h = (const void *)(image + off);
        if (h->magic != FDRI_ARENA_META_MAGIC || h->kind != FDRI_ARENA_META_ROWS || h->bytes > bytes - off) continue;
        for (size_t at = FDRI_ARENA_META_ALIGN; at < h->bytes; at += FDRI_ARENA_META_ALIGN) {
            uint32_t entry = rnd(&seed, spare.chunk_count);
            beside = spare.chunks_off + entry * sizeof(struct fdri_arena_chunk) + rnd(&seed, 4);
            bad += !holds(off + at + offsetof(struct fdri_arena_row, calls), rnd(&seed, 8), 16);
            rows++;
        }
    }
    beside = 0;
    assert_true(rows > REGIONS);
    assert_int_equal(bad, 0);
    fdr_file_close(f);
}

enum { STRETCH = 512, ALL = 2 * (REGIONS + 2) };

/* A stretch of bytes is zero or replaced by another one. If `unchecked`, the spare is damaged as well. */
static bool stretch_holds(size_t at, size_t from)
{
    memcpy(damaged, image, bytes);
    if (from) memcpy(damaged + at, image + from, STRETCH);
    else memset(damaged + at, 0, STRETCH);
    if (unchecked) damaged[FDRI_ARENA_SPARE_OFF] ^= 0x55;
    return all_right(ALL, unchecked, at);
}

static bool has_rows(size_t from)
{
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + sizeof(struct fdri_arena_meta_head) <= bytes;
         off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_meta_head *h = (const void *)(image + off);
        if (h->magic == FDRI_ARENA_META_MAGIC && h->kind == FDRI_ARENA_META_ROWS && off < from &&
            from + STRETCH <= off + h->bytes)
            return true;
    }
    return false;
}

/* The reader searches for rows when their table is damaged. It must not take counters for rows. It must reject rows
 * that are partly missing. No row is shown that never existed. */
static void P8_no_row_is_invented(void **state)
{
    unsigned bad = 0, tried = 0;
    (void)state;
    struct fdr_file *f = begin("128K");
    size_t end = ((const struct fdri_arena_superblock *)(const void *)image)->arena_bytes, other = 0;
    for (size_t at = end - STRETCH; at > end / 2; at -= STRETCH) {
        bad += !stretch_holds(at, 0);
        if (!has_rows(at)) continue;
        tried++;
        if (other) bad += !stretch_holds(at, other);
        unchecked = true;
        bad += !stretch_holds(at, 0);
        unchecked = false;
        other = at;
    }
    assert_true(tried > 2);
    assert_int_equal(bad, 0);
    fdr_file_close(f);
}

/* The beginning of a block of levels was written over rows and counters; the block itself is damaged. Recovery must not
 * write accounts over the rows and counters there. */
static void P8_levels_over_totals(void **state)
{
    unsigned bad = 0, tried = 0;
    (void)state;
    struct fdr_file *f = begin("128K");
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + STRETCH <= bytes; off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_levels_block *b = (const void *)(image + off);
        if (b->head.magic != FDRI_ARENA_META_MAGIC || b->head.kind != FDRI_ARENA_META_LEVELS || b->index) continue;
        for (size_t at = off; at > FDRI_ARENA_SUPERBLOCK_BYTES; at -= STRETCH) {
            if (!has_rows(at)) continue;
            memcpy(damaged, image, bytes);
            memcpy(damaged + at, image + off, STRETCH);
            damaged[off] ^= 0x7f;
            bad += !all_right(ALL, tried++, at);
        }
    }
    assert_true(tried > 2);
    assert_int_equal(bad, 0);
    fdr_file_close(f);
}

/* A partition's block and a row of an epoch's base have changed places. The reader finds the partition there. Recovery
 * must not clear it as if it were the row. */
static void P8_a_partition_over_totals(void **state)
{
    enum { PART = sizeof(struct fdri_arena_part) };
    unsigned bad = 0, tried = 0;
    (void)state;
    struct fdr_file *f = begin("128K");
    size_t part = 0;
    for (size_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off + PART <= bytes; off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_epoch_base *b = (const void *)(image + off);
        if (b->head.magic != FDRI_ARENA_META_MAGIC) continue;
        if (b->head.kind == FDRI_ARENA_META_PART) part = off;
        if (b->head.kind != FDRI_ARENA_META_EPOCHBASE || !part) continue;
        for (uint32_t i = 0; i < b->count; i += 8) {
            memcpy(damaged, image, bytes);
            memcpy(damaged + b->row[i].row_off, image + part, PART);
            memcpy(damaged + part, image + b->row[i].row_off, PART);
            bad += !all_right(ALL, tried++, b->row[i].row_off);
        }
    }
    assert_true(tried > 2);
    assert_int_equal(bad, 0);
    fdr_file_close(f);
}

static int leave(void **state)
{
    (void)state;
    return rmdir(directory);
}

int main(void)
{
    if (!mkdtemp(directory)) return 1;
    snprintf(path, sizeof path, "%s/recovered.fdr", directory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P5_P8_a_wrong_bit_in_totals),    cmocka_unit_test(P5_P8_a_chain_that_leads_nowhere),
        cmocka_unit_test(P5_P8_a_damaged_list_of_checks), cmocka_unit_test(P8_no_row_is_invented),
        cmocka_unit_test(P8_levels_over_totals),          cmocka_unit_test(P8_a_partition_over_totals)};
    return cmocka_run_group_tests(tests, NULL, leave);
}
