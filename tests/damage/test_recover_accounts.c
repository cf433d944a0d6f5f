/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P8
 * P8: a block of accounts is damaged. The recovered file is whole, its ledger balances, and each kept event is counted
 * in it. This holds also if the arena has no room for new accounts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "format/codec/running_check.h"
#include "tests/support/snapshot_bytes.h"

static char folder[] = "/tmp/fdr-accounts-XXXXXX", recovered[64];
static uint64_t begun_ns; /* start of the location */

static unsigned later_definitions;
static void record(uint64_t rounds)
{
    char name[32];
    fdr_region region[4] = {fdr_region_define("a", NULL, 0), fdr_region_define("b", NULL, 0),
                            fdr_region_define("c", NULL, 0), fdr_region_define("d", NULL, 0)};
    fdr_marker_id marker = fdr_marker_define("m");
    fdr_metric_id metric = fdr_metric_define("g", "", FDR_U64, FDR_METRIC_GAUGE);
    for (uint64_t i = 0; i < rounds; i++) {
        for (int d = 0; d < 4; d++) {
            fdr_marker(marker, i);
            fdr_metric_u64(metric, i);
            fdr_enter(region[d]);
        }
        for (int d = 4; d--;) fdr_leave(region[d]);
    }
    for (unsigned i = 0; i < later_definitions; i++) {
        /* where its offset fits, such a name looks like the head of a block */
        snprintf(name, sizeof name, "%s %u", i % 2 ? "FDRMFDRMFDRMFDRM" : "defined later", i);
        fdr_region_define(name, NULL, 0);
    }
}

static uint8_t *snapshot_of(const char *buffer, const char *bin, uint64_t rounds, size_t *bytes)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = buffer,
                           .bin = bin,
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .dir = folder};
    assert_int_equal(fdr_init(&c), 0);
    record(rounds);
    uint8_t *all = snapshot_bytes(bytes);
    fdr_finalize();
    return all;
}

static uint8_t *snapshot(size_t *bytes) { return snapshot_of("256K", NULL, 300, bytes); }

/* The sum of all kept events. With `exact` each row must balance. */
static uint64_t kept_of(struct fdr_file *f, bool exact)
{
    const struct fdr_ledger_row *row;
    uint64_t kept = 0;
    size_t n = fdr_ledger(f, &row);
    for (size_t i = 0; i < n; i++) {
        kept += row[i].kept;
        if (exact && row[i].presented != row[i].kept + row[i].filtered + row[i].reduced + row[i].lost)
            fail_msg("class %u depth %u: %llu presented, %llu kept", row[i].class_, row[i].depth,
                     (unsigned long long)row[i].presented, (unsigned long long)row[i].kept);
    }
    return kept;
}

/* Recovers f and closes it. The recovered file must be whole. */
static struct fdr_file *recover(struct fdr_file *f, const char *what, size_t at)
{
    struct fdr_file *g;
    char message[200] = "";
    assert_int_equal(fdr_file_recover(f, recovered, message, sizeof message), 0);
    fdr_file_close(f);
    if (fdr_file_open(recovered, &g, message, sizeof message) != FDR_WHOLE || fdr_file_verify(g) != FDR_WHOLE)
        fail_msg("%s at %zu: %s %s", what, at, message, fdr_file_damage(g, 0));
    return g;
}

static void forget(struct fdr_file *g)
{
    fdr_file_close(g);
    unlink(recovered);
}

/* Damages one byte of 97 in a block, from byte `from` on, and recovers the file. */
static void recover_without(uint8_t *all, size_t bytes, size_t at, const struct fdri_arena_meta_head *head, size_t from)
{
    struct fdr_file *f;
    char message[200] = "";
    const struct fdr_ledger_row *row;
    uint64_t events = 0;
    uint8_t *damaged = malloc(bytes);
    memcpy(damaged, all, bytes);
    for (size_t i = from; i < head->bytes; i += 97) damaged[at + i] ^= 0x55;
    assert_int_not_equal(fdr_file_open_memory(damaged, bytes, &f, message, sizeof message), FDR_UNREADABLE);
    struct fdr_file *g = recover(f, "without a block", at);
    uint64_t kept = kept_of(g, true);
    size_t n = fdr_ledger(g, &row);
    for (size_t i = 0; i < n; i++) events += row[i].presented;
    assert_true(kept > 0 && events >= kept);
    /* a location that recovery made anew must not begin at the start of the machine */
    assert_true(fdr_location_info(g, 0)->start_ns >= begun_ns);
    forget(g);
    free(damaged);
}

static void P8_a_damaged_block_of_accounts(void **state)
{
    size_t bytes;
    unsigned points = 0, levels = 0;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    struct fdr_file *whole;
    assert_int_equal(fdr_file_open_memory(all, bytes, &whole, NULL, 0), FDR_WHOLE);
    begun_ns = fdr_location_info(whole, 0)->start_ns;
    fdr_file_close(whole);
    assert_true(begun_ns > 0);
    for (size_t at = 0; at + sizeof(struct fdri_arena_meta_head) <= bytes; at += FDRI_ARENA_META_ALIGN) {
        struct fdri_arena_meta_head head;
        memcpy(&head, all + at, sizeof head);
        if (head.magic != FDRI_ARENA_META_MAGIC || at + head.bytes > bytes) continue;
        bool location = head.kind == FDRI_ARENA_META_LOCATION, part = head.kind == FDRI_ARENA_META_PART;
        if (head.kind != FDRI_ARENA_META_POINTS && head.kind != FDRI_ARENA_META_LEVELS && !part && !location) continue;
        points += head.kind == FDRI_ARENA_META_POINTS;
        levels += head.kind == FDRI_ARENA_META_LEVELS;
        recover_without(all, bytes, at, &head, sizeof head);
        recover_without(all, bytes, at, &head, 0);
    }
    assert_true(points >= 4 && levels >= 2);
    free(all);
}

static uint64_t events_of(struct fdr_file *f)
{
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    uint64_t events = 0;
    assert_non_null(it);
    while (fdr_iter_next(it, &e)) events++;
    fdr_iter_close(it);
    return events;
}

/* Destroys the heads of all meta blocks except definitions. */
static void without_blocks(uint8_t *all, size_t bytes)
{
    for (size_t at = FDRI_ARENA_SUPERBLOCK_BYTES; at + sizeof(struct fdri_arena_meta_head) <= bytes;
         at += FDRI_ARENA_META_ALIGN) {
        struct fdri_arena_meta_head head;
        memcpy(&head, all + at, sizeof head);
        if (head.magic == FDRI_ARENA_META_MAGIC && head.kind != FDRI_ARENA_META_DEFS) all[at] ^= 0x55;
    }
}

/* Lets the meta blocks begin where the bins end. The spare copy in the superblock is damaged. */
static void without_room(uint8_t *all)
{
    struct fdri_arena_superblock *sb = (void *)all;
    uint64_t bins = sb->virgin & UINT32_MAX;
    sb->virgin = (sb->bins_off + bins * sb->bin_bytes) / FDRI_ARENA_META_ALIGN << 32 | bins;
    all[FDRI_ARENA_SPARE_OFF] ^= 0x55;
}

/* Only the bins of a full arena are left, and new accounts find no room there. Recovery makes a larger arena. It has
 * all events that the damaged file shows. */
static void P8_no_room_for_accounts(void **state)
{
    struct fdr_file *f;
    char message[200] = "";
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot_of("72K", "512", 3000, &bytes);
    uint64_t before = ((const struct fdri_arena_superblock *)(const void *)all)->arena_bytes;
    without_blocks(all, bytes);
    without_room(all);
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_DAMAGED);
    assert_int_equal(fdr_location_count(f), 1);
    uint64_t kept = kept_of(f, false), events = events_of(f);
    assert_true(kept > 500);
    struct fdr_file *g = recover(f, "no room", 0);
    assert_int_equal(kept_of(g, true), kept);
    assert_int_equal(events_of(g), events);
    assert_in_range(fdr_file_info(g)->buffer_bytes, before + 1, 2 * before);
    forget(g);
    free(all);
}

/* Turns all bins into valid, empty ones. Each claims a point at the largest depth on a location of its own. */
static void claim_much(uint8_t *all)
{
    const struct fdri_arena_superblock *sb = (const void *)all;
    for (uint32_t i = 0; i < (sb->virgin & UINT32_MAX); i++) {
        struct fdri_arena_bin *b = (void *)(all + sb->bins_off + (uint64_t)i * sb->bin_bytes);
        *b = (struct fdri_arena_bin){.magic = FDRI_ARENA_BIN_MAGIC,
                                     .location = 1000 + i,
                                     .seq = 1,
                                     .depth = FDRI_ARENA_LEVELS_MAX,
                                     .class_ = FDRI_ARENA_CLASS_MARKER,
                                     .size_log2 = 9,
                                     .commit = FDRI_ARENA_COMMIT(0, 0, fdri_codec_check24(FDRI_CODEC_HASH_SEED)),
                                     .generation = 1};
        b->check = fdri_arena_check32((const uint8_t *)b + 8, 40);
    }
}

/* Recovery must not make a very large file of a small one. It fails with a message and leaves no file. */
static void P8_more_accounts_than_fit(void **state)
{
    struct fdr_file *f;
    char message[200] = "";
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot_of("72K", "512", 3000, &bytes);
    without_blocks(all, bytes);
    without_room(all);
    claim_much(all);
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_DAMAGED);
    assert_true(fdr_location_count(f) > 20);
    assert_int_equal(fdr_file_recover(f, recovered, message, sizeof message), -ENOSPC);
    assert_non_null(strstr(message, "no room"));
    assert_int_not_equal(access(recovered, F_OK), 0);
    fdr_file_close(f);
    free(all);
}

/* Checks that the recovered file has all events and definitions that the damaged one shows. Frees `all`. */
static void recovers_all(uint8_t *all, size_t bytes, const char *what)
{
    struct fdr_file *f;
    char message[200] = "";
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_DAMAGED);
    size_t regions = fdr_definition_count(f, FDR_REGION_DEFINITION);
    uint64_t kept = kept_of(f, false), events = events_of(f);
    assert_true(regions >= 4 && kept > 500);
    struct fdr_file *g = recover(f, what, 0);
    assert_int_equal(kept_of(g, true), kept);
    assert_int_equal(events_of(g), events);
    assert_int_equal(fdr_definition_count(g, FDR_REGION_DEFINITION), regions);
    forget(g);
    free(all);
}

/* Accounts are damaged. So is the border between bins and meta blocks, which now lies in the definitions. New accounts
 * must not overwrite a good block. */
static void P8_a_damaged_border(void **state)
{
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    struct fdri_arena_superblock *sb = (void *)all;
    for (size_t at = (sb->virgin >> 32) * FDRI_ARENA_META_ALIGN; at < sb->arena_bytes; at += FDRI_ARENA_META_ALIGN) {
        struct fdri_arena_meta_head head;
        memcpy(&head, all + at, sizeof head);
        bool accounts = head.kind == FDRI_ARENA_META_LEVELS || head.kind == FDRI_ARENA_META_POINTS;
        if (head.magic == FDRI_ARENA_META_MAGIC && accounts) all[at] ^= 0x55;
    }
    sb->virgin = (sb->defs_first / FDRI_ARENA_META_ALIGN + 4ull) << 32 | (uint32_t)sb->virgin;
    all[FDRI_ARENA_SPARE_OFF] ^= 0x55;
    recovers_all(all, bytes, "the border");
}

/* A block of definitions claims to reach over other blocks. Recovery must not change those. */
static void P8_definitions_that_reach_over_others(void **state)
{
    size_t bytes;
    (void)state;
    later_definitions = 200;
    uint8_t *all = snapshot(&bytes);
    later_definitions = 0;
    const struct fdri_arena_superblock *sb = (void *)all;
    struct fdri_arena_defs_block *b = (void *)(all + sb->defs_last);
    uint64_t behind = sb->defs_first - sb->defs_last;
    assert_true(behind > b->head.bytes + 4096);
    b->head.bytes = (uint32_t)behind;
    b->used = (uint32_t)(behind - sizeof *b);
    all[FDRI_ARENA_SPARE_OFF] ^= 0x55;
    recovers_all(all, bytes, "definitions");
}

/* The beginning of a name may look like the head of a block. */
static void P8_names_that_look_like_blocks(void **state)
{
    struct fdr_file *f;
    char message[200] = "";
    size_t bytes;
    (void)state;
    later_definitions = 200;
    uint8_t *all = snapshot(&bytes);
    later_definitions = 0;
    all[FDRI_ARENA_SPARE_OFF] ^= 0x55;
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_DAMAGED);
    struct fdr_file *g = recover(f, "names", 0);
    assert_int_equal(fdr_definition_count(g, FDR_REGION_DEFINITION), 204);
    assert_string_equal(fdr_definition(g, FDR_REGION_DEFINITION, 204)->name, "FDRMFDRMFDRMFDRM 199");
    forget(g);
    free(all);
}

/* The kind of clock is invalid. Its times are the same in the damaged and in the recovered file. */
static void P8_a_damaged_clock(void **state)
{
    struct fdr_file *f;
    char message[200] = "";
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    ((struct fdri_arena_superblock *)(void *)all)->clock_kind = 77;
    all[FDRI_ARENA_SPARE_OFF] ^= 0x55;
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_DAMAGED);
    uint64_t last = fdr_file_info(f)->last_ns, events = events_of(f);
    struct fdr_file *g = recover(f, "the clock", 0);
    assert_int_equal(fdr_file_info(g)->last_ns, last);
    assert_int_equal(events_of(g), events);
    forget(g);
    free(all);
}

/* Every second bin claims another unit of time than the rest. The recovered file has one unit. */
static void P8_bins_that_disagree_about_their_unit(void **state)
{
    struct fdr_file *f;
    char message[200] = "";
    size_t bytes, bins = 0;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    const struct fdri_arena_superblock *sb = (void *)all;
    for (size_t at = sb->bins_off; at < (sb->virgin >> 32) * FDRI_ARENA_META_ALIGN; at += FDRI_ARENA_BIN_MIN_BYTES) {
        struct fdri_arena_bin *h = (void *)(all + at);
        if (!h->size_log2 || h->check != fdri_arena_check32((uint8_t *)h + 8, 40)) continue;
        if (bins++ % 2) continue;
        h->flags ^= FDRI_ARENA_BIN_NS;
        h->check = fdri_arena_check32((uint8_t *)h + 8, 40);
    }
    assert_true(bins > 4);
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_DAMAGED);
    uint64_t events = events_of(f);
    struct fdr_file *g = recover(f, "units", 0);
    assert_int_equal(events_of(g), events);
    forget(g);
    free(all);
}

/* Only the damaged superblock of a process that died is left. */
static void P8_nothing_but_a_superblock(void **state)
{
    struct fdr_file *f;
    char message[200] = "";
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    struct fdri_arena_superblock *sb = (void *)all;
    sb->state = FDRI_ARENA_STATE_CRASHED;
    sb->snapshot_number = 0;
    sb->arena_bytes += FDRI_ARENA_META_ALIGN * 1000;
    sb->location_first = sb->defs_first = 0;
    sb->virgin = UINT64_MAX;
    memset(all + FDRI_ARENA_SUPERBLOCK_BYTES, 0, bytes - FDRI_ARENA_SUPERBLOCK_BYTES);
    memset(all + FDRI_ARENA_SPARE_OFF, 0x55, FDRI_ARENA_SUPERBLOCK_BYTES - FDRI_ARENA_SPARE_OFF);
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_DAMAGED);
    forget(recover(f, "a superblock", 0));
    free(all);
}

/* A bundle was cut short by its deadline or by a full disk. Recovery makes a complete file of it. The reader does not
 * take that for the file of a process that was killed in its signal handler. */
static void P8_a_bundle_that_was_cut(void **state)
{
    struct fdr_file *f;
    char message[200] = "";
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    struct fdri_arena_superblock *sb = (void *)all;
    sb->state = FDRI_ARENA_STATE_CRASHED;
    sb->snapshot_number = 0;
    all[FDRI_ARENA_SPARE_OFF] ^= 0x55;
    for (sb->cut = FDRI_ARENA_TRUNCATED_DEADLINE; sb->cut <= FDRI_ARENA_TRUNCATED_DISK; sb->cut++) {
        assert_int_equal(fdr_file_open_memory(all, sb->arena_bytes / 4 * 3, &f, message, sizeof message), FDR_DAMAGED);
        struct fdr_file *g = recover(f, "cut", (size_t)sb->cut);
        assert_false(fdr_file_info(g)->killed_in_handler);
        assert_true(kept_of(g, true) > 0);
        assert_int_equal(fdr_file_info(g)->accounts_anew > 0, 1);
        forget(g);
    }
    free(all);
}

/* Recovers f, whose only location had damaged accounts. Their sum must lie within the bounds of the tail. */
static void comes_to_its_bounds(struct fdr_file *f, const char *what, uint64_t anew)
{
    const struct fdr_ledger_row *row;
    uint64_t sum = 0, before, after;
    struct fdr_file *g = recover(f, what, 0);
    for (size_t i = fdr_ledger(g, &row); i-- > 0;) sum += row[i].kept + row[i].filtered + row[i].reduced + row[i].lost;
    assert_true(kept_of(g, !anew) > 0);
    fdr_ledger_bounds(g, row[0].location, &before, &after);
    if (!anew) assert_int_equal(before, after); /* equal bounds: the location was quiet */
    assert_in_range(sum, before, after);
    assert_int_equal(fdr_file_info(g)->accounts_anew, anew);
    forget(g);
}

/* The location claims more lost deep calls than it presented, and there is no tail. Recovery makes the tail from the
 * recovered accounts. So the location counts as quiet. */
static void P8_more_lost_than_presented(void **state)
{
    struct fdr_file *f;
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    const struct fdri_arena_superblock *sb = (const void *)all;
    struct fdri_arena_location *l = (void *)(all + sb->location_first);
    l->presented_overflow = 1000;
    l->lost_overflow = 1ull << 40;
    all[FDRI_ARENA_SPARE_OFF] ^= 0x55;
    assert_int_equal(fdr_file_open_memory(all, sb->arena_bytes, &f, NULL, 0), FDR_DAMAGED);
    comes_to_its_bounds(f, "deep calls", 0);
    free(all);
}

/* Makes the checks of these bytes right again, as if fdr had written them. */
static void check_again(uint8_t *all, size_t at)
{
    struct fdri_arena_spare s;
    memcpy(&s, all + FDRI_ARENA_SPARE_OFF, sizeof s);
    struct fdri_arena_chunk *c = (void *)(all + s.chunks_off);
    for (uint32_t i = 0; i < s.chunk_count; i++) {
        if (at - c[i].off >= 1ull << s.chunk_log2) continue;
        c[i].check = fdri_arena_check32(all + c[i].off, 1u << s.chunk_log2);
        s.chunks_check = fdri_arena_check32(c, s.chunk_count * sizeof *c);
        fdri_arena_spare_finish(all, &s);
    }
}

/* There is no tail, and a damaged level claims more events than there were. The location seems to go on after its last
 * tick. With its recovered accounts it is quiet. */
static void P8_accounts_with_too_many_presented(void **state)
{
    struct fdr_file *f;
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    const struct fdri_arena_superblock *sb = (const void *)all;
    struct fdri_arena_location *l = (void *)(all + sb->location_first);
    struct fdri_arena_levels_block *levels = (void *)(all + l->levels_off[0]);
    levels->level[6].presented = 1ull << 54;
    l->last_tick -= (l->last_tick - (l->start_tick << sb->shift)) / 2;
    check_again(all, (size_t)((uint8_t *)&l->last_tick - all));
    all[sb->arena_bytes] ^= 1; /* damages the tail */
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, NULL, 0), FDR_DAMAGED);
    struct fdr_file *g = recover(f, "a level", 0);
    assert_true(kept_of(g, true) > 0);
    forget(g);
    free(all);
}

/* A location went on during the copy. Its accounts sum up to less than had ended before. The recovered file presents as
 * many events as it has. It reports that accounts were made anew. */
static void P8_accounts_with_too_few_completed(void **state)
{
    struct fdr_file *f;
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    struct fdri_arena_tail *tail = (void *)(all +
                                            ((const struct fdri_arena_superblock *)(const void *)all)->arena_bytes);
    struct fdri_arena_tail_entry *e = (void *)(tail + 1);
    assert_int_equal(tail->count, 1);
    e->completed += 100;
    e->presented += 105;
    all[FDRI_ARENA_SPARE_OFF] ^= 0x55;
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, NULL, 0), FDR_DAMAGED);
    comes_to_its_bounds(f, "less", 1);
    free(all);
}

static bool among(const struct fdr_reduction_info *line, const struct fdr_reduction_info *of, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (line->location == of[i].location && line->step == of[i].step && line->events == of[i].events &&
            line->bytes == of[i].bytes && line->time_ns == of[i].time_ns && line->from_ns == of[i].from_ns &&
            line->to_ns == of[i].to_ns && line->steps == of[i].steps && !strcmp(line->what, of[i].what))
            return true;
    return false;
}

/* Damaged lines of reductions are not shown, neither before nor after recovery; the others are. A check covers 64
 * bytes, a line has 56. So one flip costs up to three lines. */
static void P8_damaged_lines_of_reductions(void **state)
{
    struct fdr_file *whole, *f;
    const struct fdr_reduction_info *truth, *line;
    char message[200] = "";
    size_t bytes, blocks = 0;
    (void)state;
    uint8_t *all = snapshot_of("256K", "1K", 30000, &bytes);
    assert_int_equal(fdr_file_open_memory(all, bytes, &whole, message, sizeof message), FDR_WHOLE);
    size_t lines = fdr_reductions(whole, &truth);
    assert_true(lines > 4);
    for (size_t at = FDRI_ARENA_SUPERBLOCK_BYTES; at + sizeof(struct fdri_arena_meta_head) <= bytes;
         at += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_reductions_block *b = (const void *)(all + at);
        if (b->head.magic != FDRI_ARENA_META_MAGIC || b->head.kind != FDRI_ARENA_META_REDUCTIONS) continue;
        blocks++;
        for (size_t i = 0; i < lines && i < FDRI_ARENA_REDUCTION_LINES; i++) {
            uint8_t *word = (uint8_t *)(uintptr_t)&b->line[i] + i * 8 % sizeof b->line[i];
            word[i % 8] ^= 0x10;
            assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_DAMAGED);
            for (int recovered_one = 0; recovered_one < 2; recovered_one++) {
                size_t shown = fdr_reductions(f, &line);
                assert_true(shown < lines && shown + 3 >= lines);
                for (size_t k = 0; k < shown; k++) {
                    assert_true(among(&line[k], truth, lines));
                    /* oldest first within a location; dropped lines precede the first */
                    assert_true(!k || line[k].location != line[k - 1].location ||
                                line[k].time_ns >= line[k - 1].time_ns);
                }
                if (!recovered_one) f = recover(f, "a line", at);
            }
            assert_int_equal(fdr_file_info(f)->accounts_anew, 0); /* no account depends on these lines */
            kept_of(f, true);
            forget(f);
            word[i % 8] ^= 0x10;
        }
    }
    assert_true(blocks > 0);
    fdr_file_close(whole);
    free(all);
}

/* Reductions without a line precede the first readable line, also if the oldest line is damaged. */
static void P8_reductions_before_the_oldest_line(void **state)
{
    struct fdr_file *f;
    const struct fdr_reduction_info *line;
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot_of("256K", "1K", 30000, &bytes);
    struct fdri_arena_location *l = (void *)(all +
                                             ((const struct fdri_arena_superblock *)(const void *)all)->location_first);
    struct fdri_arena_reductions_block *b = (void *)(all + l->reductions_off);
    assert_in_range(l->reduction_count, 3, FDRI_ARENA_REDUCTION_LINES);
    l->reductions_dropped_events = 7;
    all[FDRI_ARENA_SPARE_OFF] ^= 0x55;
    for (uint32_t damaged = 0; damaged < 2; damaged++) {
        if (damaged) b->line[0].step = 99;
        assert_int_equal(fdr_file_open_memory(all, bytes, &f, NULL, 0), FDR_DAMAGED);
        assert_int_equal(fdr_reductions(f, &line), l->reduction_count + 1 - damaged);
        assert_string_equal(line[0].step, "earlier");
        assert_int_equal(line[0].time_ns, line[1].time_ns);
        fdr_file_close(f);
    }
    free(all);
}

/* A block of lines was written to a wrong place, over a partition's block. Recovery mends both. */
static void P8_lines_of_reductions_over_another_block(void **state)
{
    enum { BEFORE = 9 * FDRI_ARENA_META_ALIGN };
    struct fdr_file *f;
    size_t bytes, tried = 0;
    (void)state;
    uint8_t *all = snapshot_of("256K", "1K", 30000, &bytes), *damaged = malloc(bytes);
    uint32_t where = ((const struct fdri_arena_superblock *)(const void *)all)->location_first;
    const struct fdri_arena_location *l = (const void *)(all + where);
    const struct fdri_arena_reductions_block *b = (const void *)(all + l->reductions_off);
    assert_in_range(l->reduction_count, 12, FDRI_ARENA_REDUCTION_LINES);
    for (uint32_t off = l->parts_first; off; off = ((const struct fdri_arena_part *)(const void *)(all + off))->next) {
        /* would lie over the location */
        if (off - BEFORE < where + sizeof *l && off - BEFORE + sizeof *b > where) continue;
        memcpy(damaged, all, bytes);
        memcpy(damaged + off - BEFORE, b, sizeof *b);
        memcpy(damaged + off, all + off, sizeof(struct fdri_arena_part));
        ((struct fdri_arena_location *)(void *)(damaged + where))->reductions_off = off - BEFORE;
        damaged[FDRI_ARENA_SPARE_OFF] ^= 0x55;
        assert_int_equal(fdr_file_open_memory(damaged, bytes, &f, NULL, 0), FDR_DAMAGED);
        struct fdr_file *g = recover(f, "lines over a partition", off);
        kept_of(g, true);
        forget(g);
        tried++;
    }
    assert_true(tried > 4);
    free(damaged);
    free(all);
}

/* A bin with a correct check begins earlier than its predecessor in the list, so it belongs to another list. The reader
 * shows none of its records and all others. The recovered file is whole. */
static void P8_a_bin_that_steps_back(void **state)
{
    struct fdr_file *f;
    size_t bytes, bins = 0, back = 0;
    (void)state;
    uint8_t *all = snapshot_of("256K", "1K", 3000, &bytes);
    const struct fdri_arena_superblock *sb = (const void *)all;
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, NULL, 0), FDR_WHOLE);
    uint64_t kept = kept_of(f, true);
    fdr_file_close(f);
    for (size_t at = sb->bins_off; at < (sb->virgin >> 32) * FDRI_ARENA_META_ALIGN; at += FDRI_ARENA_BIN_MIN_BYTES) {
        struct fdri_arena_bin *h = (void *)(all + at), before = *h;
        if (h->magic != FDRI_ARENA_BIN_MAGIC || !(h->generation & 1) || h->seq < 3 || bins++ % 8) continue;
        h->base_tick = 1;
        h->check = fdri_arena_check32((const uint8_t *)h + 8, 40);
        assert_int_equal(fdr_file_open_memory(all, bytes, &f, NULL, 0), FDR_DAMAGED);
        if (fdr_file_damage(f, 0) && strstr(fdr_file_damage(f, 0), "begins before the one before it")) {
            assert_int_equal(kept_of(f, false), kept - FDRI_ARENA_COMMIT_RECORDS(h->commit));
            struct fdr_file *g = recover(f, "a bin that steps back", at);
            assert_int_equal(kept_of(g, true), kept - FDRI_ARENA_COMMIT_RECORDS(h->commit));
            forget(g);
            back++;
        } else { /* the oldest bin of a list only moves the floor */
            fdr_file_close(f);
        }
        *h = before;
    }
    assert_true(back > 10);
    free(all);
}

/* One entry in the list of checks is wrong. Only the bytes of that entry are in doubt. The reader says so, and does not
 * call these bytes damaged. */
static void P8_a_wrong_check_in_the_list(void **state)
{
    struct fdr_file *f;
    struct fdri_arena_spare spare;
    size_t bytes;
    (void)state;
    uint8_t *all = snapshot(&bytes);
    memcpy(&spare, all + FDRI_ARENA_SPARE_OFF, sizeof spare);
    struct fdri_arena_chunk *chunk = (void *)(all + spare.chunks_off);
    assert_true(spare.chunk_count > 3);
    for (uint32_t i = 0; i < spare.chunk_count; i++) {
        unsigned long long from, to;
        char what[64];
        chunk[i].check ^= 4;
        assert_int_equal(fdr_file_open_memory(all, bytes, &f, NULL, 0), FDR_DAMAGED);
        assert_string_equal(fdr_file_damage(f, 0), "the checks of meta blocks are damaged");
        assert_int_equal(sscanf(fdr_file_damage(f, 1), "bytes %llu to %llu %63[^\n]", &from, &to, what), 3);
        assert_string_equal(what, "(meta blocks) have only a damaged check");
        assert_true(from >= chunk[i].off && from < to && to < chunk[i].off + (1ull << spare.chunk_log2));
        fdr_file_close(f);
        chunk[i].check ^= 4;
    }
    free(all);
}

static int enter(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return 1;
    snprintf(recovered, sizeof recovered, "%s/recovered.fdr", folder);
    return 0;
}
static int leave(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_a_damaged_block_of_accounts),
                                       cmocka_unit_test(P8_no_room_for_accounts),
                                       cmocka_unit_test(P8_more_accounts_than_fit),
                                       cmocka_unit_test(P8_a_damaged_border),
                                       cmocka_unit_test(P8_definitions_that_reach_over_others),
                                       cmocka_unit_test(P8_names_that_look_like_blocks),
                                       cmocka_unit_test(P8_a_damaged_clock),
                                       cmocka_unit_test(P8_bins_that_disagree_about_their_unit),
                                       cmocka_unit_test(P8_nothing_but_a_superblock),
                                       cmocka_unit_test(P8_a_bundle_that_was_cut),
                                       cmocka_unit_test(P8_more_lost_than_presented),
                                       cmocka_unit_test(P8_accounts_with_too_many_presented),
                                       cmocka_unit_test(P8_accounts_with_too_few_completed),
                                       cmocka_unit_test(P8_damaged_lines_of_reductions),
                                       cmocka_unit_test(P8_reductions_before_the_oldest_line),
                                       cmocka_unit_test(P8_lines_of_reductions_over_another_block),
                                       cmocka_unit_test(P8_a_bin_that_steps_back),
                                       cmocka_unit_test(P8_a_wrong_check_in_the_list)};
    return cmocka_run_group_tests(tests, enter, leave);
}
