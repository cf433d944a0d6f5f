/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,slow timeout=400 promise=P8,P9
 * P8, P9: a bin with the calls of length 0 at one depth is damaged. The recovered file shows the same calls as the
 * damaged one: none inside of another parent, none missing. A second recovery changes nothing. The same holds for
 * damaged definitions and for cut files. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "format/arena/arena.h"
#include "reader/events/events.h"
#include "tests/support/api_fixture.h"
#include "tests/support/sanitized.h"

enum { OUTER, SHORT, LONG, OF_LONG, OF_SHORT, LAST, OF_LAST, REGIONS };
static uint8_t all[2 << 20], damaged[2 << 20];
static size_t bytes;
static fdr_region r[REGIONS];
static bool only_the_parents_are_lost; /* calls of depth 3 are damaged; the calls around them are not */

static uint64_t random_number(void)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x >> 11;
}

static void call(int which, uint64_t now)
{
    fdr_enter_at(r[which], now);
    fdr_leave_at(r[which], now);
}

/* Each tick has some calls of length 0, then a longer one; both have children of length 0 in that tick. The longer call
 * has more children, two levels deep, in the tick in which it ends. */
static void record(const char *buffer, const char *pin, uint64_t rounds)
{
    uint64_t now = 1000;
    begin(&(struct fdr_config){.buffer = buffer, .pin = pin, .bin = "1K"});
    define_regions(r, REGIONS);
    fdr_enter_at(r[OUTER], now);
    for (uint64_t i = 0; i < rounds; i++) {
        now += 3000;
        for (uint64_t n = random_number() % 3; n; n--) {
            fdr_enter_at(r[SHORT], now);
            if (random_number() % 2) call(OF_SHORT, now);
            fdr_leave_at(r[SHORT], now);
        }
        fdr_enter_at(r[LONG], now);
        for (uint64_t n = random_number() % 3; n; n--) call(OF_LONG, now);
        fdr_enter_at(r[LAST], now + 1000);
        call(OF_LAST, now + 1000);
        fdr_leave_at(r[LAST], now + 1000);
        fdr_leave_at(r[LONG], now + 1000);
    }
    fdr_leave_at(r[OUTER], now + 5000);
    assert_int_equal(fdr_snapshot(NULL), 0);
    FILE *file = fopen(fdr_last_snapshot(), "r");
    bytes = fread(all, 1, sizeof all, file);
    fclose(file);
    assert_true(bytes > 0 && bytes < sizeof all);
    fdr_finalize();
}

/* The offsets of these bins, oldest first. */
static size_t find_bins(uint32_t depth, size_t *at, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i + sizeof(struct fdri_arena_bin) < bytes; i += 64) {
        const struct fdri_arena_bin *h = (const void *)(all + i);
        if (h->magic != FDRI_ARENA_BIN_MAGIC || h->class_ != FDRI_ARENA_CLASS_REGION || h->depth != depth || h->band)
            continue;
        size_t k = n++;
        assert_true(n <= room);
        for (; k && ((const struct fdri_arena_bin *)(const void *)(all + at[k - 1]))->seq > h->seq; k--)
            at[k] = at[k - 1];
        at[k] = i;
    }
    return n;
}

struct shown {
    uint64_t events, hash, made_up, wrong; /* of calls; wrong: calls inside of a parent that never made such calls */
};

static struct shown read_through(struct fdr_file *f)
{
    struct shown s = {0};
    struct fdr_read_event e;
    uint32_t open[8] = {0}, depth = 0; /* 0: a made-up call */
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e)) {
        if (e.kind == FDR_LEAVE) depth--;
        if (e.kind != FDR_ENTER) continue;
        assert_true(depth < 7);
        uint32_t parent = open[depth];
        open[++depth] = e.reduced ? 0 : e.id;
        s.made_up += e.reduced;
        if (e.reduced) continue;
        s.events++;
        s.hash = (s.hash ^ e.id ^ e.time_ns << 8) * 0x9e3779b97f4a7c15u;
        s.wrong += parent && e.id == r[OF_SHORT] && parent != r[SHORT];
        s.wrong += parent && e.id == r[OF_LONG] && parent != r[LONG];
        s.wrong += e.id == r[OF_LAST] && open[2] != r[LONG] && open[2];
        s.wrong += e.id == r[OF_LAST] && !open[2] && only_the_parents_are_lost;
    }
    fdr_iter_close(it);
    return s;
}

/* A second reading shows the same as the first, although the first has found the damage by then. */
static struct shown look(const char *path)
{
    struct fdr_file *f = NULL;
    fdr_file_open(path, &f, NULL, 0);
    assert_non_null(f);
    struct shown s = read_through(f), again = read_through(f);
    if (s.hash != again.hash || s.made_up != again.made_up)
        fail_msg("%s: %llu calls, %llu made up, read once more %llu and %llu", path, (unsigned long long)s.events,
                 (unsigned long long)s.made_up, (unsigned long long)again.events, (unsigned long long)again.made_up);
    fdr_file_close(f);
    return s;
}

static uint64_t shown_of_all(void)
{
    struct fdr_file *f = NULL;
    char message[300];
    assert_int_equal(fdr_file_open_memory(all, bytes, &f, message, sizeof message), FDR_WHOLE);
    uint64_t events = read_through(f).events;
    fdr_file_close(f);
    return events;
}

static void recover(const char *from, const char *to)
{
    struct fdr_file *f = NULL;
    char message[300];
    fdr_file_open(from, &f, NULL, 0);
    assert_non_null(f);
    assert_int_equal(fdr_file_recover(f, to, message, sizeof message), 0);
    fdr_file_close(f);
    fdr_file_open(to, &f, NULL, 0);
    assert_int_equal(fdr_file_damage_count(f), 0);
    balance(f);
    fdr_file_close(f);
}

/* The reader knows of the damage before it shows any event of these bins. Else it might place a much earlier call
 * differently at the second reading. */
static void damage_is_reported_at_open(const char *path, uint32_t depth)
{
    struct fdr_file *f = NULL;
    fdr_file_open(path, &f, NULL, 0);
    assert_non_null(f);
    assert_true(fdri_events_gaps(f, &f->location[0], depth));
    fdr_file_close(f);
}

/* Recovery of a recovered file must not change it. */
static void same_bytes(const char *a, const char *b)
{
    static uint8_t x[2 << 20], y[2 << 20];
    FILE *f = fopen(a, "r"), *g = fopen(b, "r");
    assert_true(f && g);
    size_t n = fread(x, 1, sizeof x, f), m = fread(y, 1, sizeof y, g);
    fclose(f);
    fclose(g);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
}

static char damaged_path[300], recovered_path[300], again_path[300];

/* Recovers `damaged`, and then the recovered file. */
static void recover_twice(void)
{
    snprintf(damaged_path, sizeof damaged_path, "%s/damaged.fdr", oracle_directory());
    snprintf(recovered_path, sizeof recovered_path, "%s/recovered.fdr", oracle_directory());
    snprintf(again_path, sizeof again_path, "%s/again.fdr", oracle_directory());
    FILE *file = fopen(damaged_path, "w");
    assert_int_equal(fwrite(damaged, 1, bytes, file), bytes);
    fclose(file);
    recover(damaged_path, recovered_path);
    recover(recovered_path, again_path);
    same_bytes(recovered_path, again_path);
}

/* Damages `count` bins of this depth, from number `first` on, `apart` numbers apart, each at this byte. Then
 * compares. */
static void some(const size_t *at, uint32_t depth, size_t first, size_t count, size_t apart, size_t byte)
{
    memcpy(damaged, all, bytes);
    for (size_t i = 0; i < count; i++) damaged[at[first + i * apart] + byte] ^= 0x55;
    recover_twice();
    damage_is_reported_at_open(damaged_path, depth);
    only_the_parents_are_lost = depth == 3;
    struct shown was = look(damaged_path), is = look(recovered_path), twice = look(again_path);
    if (was.wrong || is.wrong || was.events != is.events || was.hash != is.hash || was.hash != twice.hash)
        fail_msg("depth %u, %zu bins from %zu on, %zu apart, byte %zu: damaged %llu calls, %llu made up, %llu in a "
                 "wrong parent; recovered %llu, %llu, %llu; once more %llu",
                 depth, count, first, apart, byte, (unsigned long long)was.events, (unsigned long long)was.made_up,
                 (unsigned long long)was.wrong, (unsigned long long)is.events, (unsigned long long)is.made_up,
                 (unsigned long long)is.wrong, (unsigned long long)twice.events);
}

static uint64_t least; /* at least so many calls must still be shown */

/* Checks that `damaged` and the files of its first and second recovery show the same. */
static void shows_the_same(const char *what, size_t where)
{
    recover_twice();
    only_the_parents_are_lost = false;
    struct shown was = look(damaged_path), is = look(recovered_path), twice = look(again_path);
    bool same = was.events == is.events && was.hash == is.hash && was.hash == twice.hash;
    if (was.wrong || is.wrong || !same || was.events < least)
        fail_msg("%s at %zu: damaged %llu calls, %llu in a wrong parent; recovered %llu, %llu; once more %llu", what,
                 where, (unsigned long long)was.events, (unsigned long long)was.wrong, (unsigned long long)is.events,
                 (unsigned long long)is.wrong, (unsigned long long)twice.events);
}

static void one(const size_t *at, uint32_t depth, size_t first, size_t count, size_t byte)
{
    some(at, depth, first, count, 1, byte);
}

static void every_place(const char *buffer, const char *pin, uint64_t rounds)
{
    enum { HEADER = offsetof(struct fdri_arena_bin, depth), PAYLOAD = sizeof(struct fdri_arena_bin) + 20 };
    size_t at[512];
    record(buffer, pin, rounds);
    for (uint32_t depth = 2; depth <= 3; depth++) {
        size_t n = find_bins(depth, at, 512);
        assert_true(n > 4);
        for (int i = 0; i < 2; i++) {
            size_t byte = i ? PAYLOAD : HEADER;
            one(at, depth, 0, 1, byte);
            one(at, depth, 0, 2, byte);
            one(at, depth, 1, 1, byte);
            one(at, depth, n / 2, 2, byte);
            one(at, depth, n - 2, 1, byte);
            one(at, depth, n - 1, 1, byte);
            one(at, depth, 0, n, byte);
            some(at, depth, 1, 2, n - 2, byte); /* the newest bin, and an earlier one where the list breaks */
            some(at, depth, 0, 2, n - 1, byte);
            some(at, depth, 1, (n - 1) / 2, 2, byte);
        }
    }
}

static void nothing_given_back(void **state)
{
    (void)state;
    every_place("256K", NULL, 3000);
}

static void oldest_bins_given_back(void **state)
{
    (void)state;
    every_place("128K", NULL, 15000);
}

static void first_moments_pinned(void **state)
{
    (void)state;
    every_place("128K", "750us", 15000);
}

/* Recovery joins the remaining definitions. Their block gets its new length at once, so a second recovery is the
 * same. */
static void a_definition_is_damaged(void **state)
{
    (void)state;
    record("256K", NULL, 250);
    const struct fdri_arena_superblock *sb = (const void *)all;
    memcpy(damaged, all, bytes);
    size_t at = sb->defs_first + sizeof(struct fdri_arena_defs_block);
    for (int i = 0; i < 3; i++) at += ((const struct fdri_arena_def *)(const void *)(all + at))->bytes;
    damaged[at + sizeof(struct fdri_arena_def)] ^= 0x55; /* in its name */
    recover_twice();
}

/* The file is cut anywhere, also within headers. Then only bins tell of the calls. */
static void cut_anywhere(void **state)
{
    (void)state;
    static const char *const buffer[] = {"256K", "128K", "128K"}, *const pin[] = {NULL, NULL, "750us"};
    for (int i = 0; i < 3; i++) {
        record(buffer[i], pin[i], i ? 15000 : 3000);
        const size_t whole = bytes, from = 32 << 10;
        memcpy(damaged, all, whole);
        least = 100;
        for (int k = 0; k < (SANITIZED ? 8 : 24); k++) {
            bytes = from + random_number() % (whole - from);
            if (k % 3 == 0) bytes = (bytes & ~(size_t)511) + 1 + random_number() % 63;
            shows_the_same("cut off", bytes);
        }
        bytes = whole;
    }
}

/* Each partition's block is destroyed in turn. The bins themselves say whether they are of a pinned partition. */
static void without_a_partition(void **state)
{
    (void)state;
    static const char *const pin[] = {NULL, "750us"};
    for (int i = 0; i < 2; i++) {
        record("128K", pin[i], 15000);
        int found = 0, pinned = 0;
        least = shown_of_all() / 100 * 99;
        for (size_t at = 0; at + sizeof(struct fdri_arena_part) < bytes; at += 64) {
            const struct fdri_arena_part *p = (const void *)(all + at);
            if (p->head.magic != FDRI_ARENA_META_MAGIC || p->head.kind != FDRI_ARENA_META_PART) continue;
            found++;
            pinned += (p->flags & FDRI_ARENA_PART_PINNED) != 0;
            memcpy(damaged, all, bytes);
            memset(damaged + at, 0, sizeof *p);
            shows_the_same("no partition", at);
        }
        assert_true(found > 3);
        assert_true(!i || pinned > 1);
    }
}

/* Bins and partitions of the calls of length 0 at one depth are all destroyed. */
static void without_a_trace(void **state)
{
    (void)state;
    size_t at[512];
    record("256K", NULL, 3000);
    least = shown_of_all() / 4;
    for (uint32_t depth = 2; depth <= 3; depth++) {
        memcpy(damaged, all, bytes);
        for (size_t i = 0, n = find_bins(depth, at, 512); i < n; i++)
            memset(damaged + at[i], 0, sizeof(struct fdri_arena_bin));
        for (size_t i = 0; i + sizeof(struct fdri_arena_part) < bytes; i += 64) {
            const struct fdri_arena_part *p = (const void *)(all + i);
            if (p->head.magic == FDRI_ARENA_META_MAGIC && p->head.kind == FDRI_ARENA_META_PART && p->depth == depth &&
                !p->band)
                memset(damaged + i, 0, sizeof *p);
        }
        shows_the_same("no trace of depth", depth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given_back),     cmocka_unit_test(oldest_bins_given_back),
        cmocka_unit_test(first_moments_pinned),   cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(without_a_partition),    cmocka_unit_test(without_a_trace),
        cmocka_unit_test(a_definition_is_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
