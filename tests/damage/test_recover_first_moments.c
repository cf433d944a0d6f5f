/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,slow timeout=300 promise=P4,P8 wrap=pwrite
 * P4, P8: pinned partitions (FDR_PIN) and the partitions that follow them hold bins of the same depth, class and band.
 * Whatever a damaged block of them says, no event is shown twice. The recovered file shows the same events as the
 * damaged one. In some runs the thread records during the copy, so lists may lead to bins that the file does not
 * have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { MOST = 4 << 20, DEEPEST = 6, STEP = SANITIZED ? 192 : 16 };
static char directory[] = "/tmp/fdr-recover-pin-XXXXXX";
static uint8_t image[MOST], damaged[MOST];
static size_t bytes;
static uint64_t seed = 77, now = 1000;

struct shown {
    uint64_t time, kind, depth, id;
};
static int by_time(const void *a, const void *b)
{
    const struct shown *x = a, *y = b;
    return x->time != y->time ? (x->time > y->time ? 1 : -1) : memcmp(x, y, sizeof *x);
}
static bool in_order(const struct shown *all, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (by_time(&all[i - 1], &all[i]) > 0) return false;
    return true;
}

/* All enters, leaves and points except made-up ones, sorted. */
static size_t shown_by(struct fdr_file *f, struct shown **all)
{
    struct fdr_read_event e;
    size_t count = 0, room = 0;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    *all = NULL;
    while (fdr_iter_next(it, &e)) {
        if (e.reduced || e.repaired) continue;
        if (count == room) *all = realloc(*all, (room = room * 2 + 4096) * sizeof **all);
        (*all)[count++] = (struct shown){e.time_ns, e.kind, e.depth, e.id};
    }
    fdr_iter_close(it);
    if (!in_order(*all, count)) qsort(*all, count, sizeof **all, by_time);
    return count;
}

/* The number of events shown twice: in this recording all times differ. */
static size_t twice(const struct shown *all, size_t count)
{
    size_t n = 0;
    for (size_t i = 1; i < count; i++) n += all[i].time == all[i - 1].time;
    return n;
}

static uint32_t depth, events, writes, when;

static void present(uint32_t count)
{
    for (uint32_t end = events + count; events < end; events++) {
        now += 1 + rnd(&seed, rnd(&seed, 40) ? 200 : 20000);
        if (rnd(&seed, 8) == 0) fdr_marker_at(1, events, now);
        else if (depth < 1 || (depth < DEEPEST && rnd(&seed, 2))) fdr_enter_at(++depth, now);
        else fdr_leave_at(depth--, now);
    }
}

ssize_t __real_pwrite(int fd, const void *from, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *from, size_t count, off_t off);
ssize_t __wrap_pwrite(int fd, const void *from, size_t count, off_t off)
{
    if (writes++ == when) present(30000);
    return __real_pwrite(fd, from, count, off);
}

static void record(uint32_t goes_on_at)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "128K",
                           .pin = "1ms",
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous"};
    c.dir = c.live_dir = directory;
    assert_int_equal(fdr_init(&c), 0);
    now = 1000;
    depth = events = writes = 0;
    when = UINT32_MAX;
    present(80000);
    writes = 0;
    when = goes_on_at;
    assert_int_equal(fdr_snapshot("pinned"), 0);
    FILE *f = fopen(fdr_last_snapshot(), "rb");
    bytes = fread(image, 1, MOST, f);
    assert_true(bytes > 100000 && bytes < MOST);
    fclose(f);
    unlink(fdr_last_snapshot());
    fdr_finalize();
}

/* The recovered file is whole and shows the same events. */
static bool recovers(struct fdr_file *f, const struct shown *was, size_t count)
{
    char path[64], message[300] = "";
    struct fdr_file *g;
    struct shown *is;
    snprintf(path, sizeof path, "%s/recovered.fdr", directory);
    assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
    enum fdr_verdict verdict = fdr_file_open(path, &g, message, sizeof message);
    if (verdict != FDR_WHOLE) {
        print_message("recovered: %s\n", message);
        if (verdict == FDR_UNREADABLE) return false;
        fdr_file_close(g);
        unlink(path);
        return false;
    }
    size_t n = shown_by(g, &is);
    bool same = n == count && !memcmp(is, was, n * sizeof *is);
    if (!same) print_message("%zu events shown, %zu recovered\n", count, n);
    free(is);
    fdr_file_close(g);
    unlink(path);
    return same;
}

/* `damaged` shows no event twice, and recovery keeps the shown events. */
static bool holds(const char *what, size_t at)
{
    char message[300] = "";
    struct fdr_file *f;
    struct shown *all;
    if (fdr_file_open_memory(damaged, bytes, &f, message, sizeof message) == FDR_UNREADABLE) fail_msg("%s", message);
    size_t count = shown_by(f, &all), more = twice(all, count);
    bool good = !more && recovers(f, all, count);
    if (!good) print_message("%s at %zu: %zu of %zu events twice\n", what, at, more, count);
    free(all);
    fdr_file_close(f);
    return good;
}

static bool holds_flipped(size_t at, uint32_t bit)
{
    char what[16];
    snprintf(what, sizeof what, "bit %u", bit);
    memcpy(damaged, image, bytes);
    damaged[at] ^= (uint8_t)(1u << bit);
    return holds(what, at);
}

/* A pinned partition has lost all its bins, and its block claims many more. The link to it is damaged, too. Bins of the
 * partition that followed it must not count as its own. */
static bool holds_without_bins(size_t block)
{
    const struct fdri_arena_part *p = (const void *)(image + block);
    const struct fdri_arena_bin *b;
    memcpy(damaged, image, bytes);
    for (size_t off = 0; off + sizeof(struct fdri_arena_location) <= bytes; off += FDRI_ARENA_META_ALIGN) {
        struct fdri_arena_location *l = (void *)(damaged + off);
        if (l->head.magic == FDRI_ARENA_META_MAGIC && l->head.kind == FDRI_ARENA_META_LOCATION) l->parts_first = 1;
    }
    ((struct fdri_arena_part *)(damaged + block))->open_seq = UINT32_MAX;
    for (uint32_t off = (uint32_t)p->list_head; off; off = b->next) {
        b = (const void *)(image + off);
        memset(damaged + off, 0, sizeof *b);
    }
    return holds("pinned, without bins,", block);
}

static void damage_each(uint32_t goes_on_at)
{
    unsigned parts = 0, pinned = 0, bad = 0;
    record(goes_on_at);
    for (size_t off = 0; off + sizeof(struct fdri_arena_part) <= bytes; off += FDRI_ARENA_META_ALIGN) {
        const struct fdri_arena_part *p = (const void *)(image + off);
        if (p->head.magic != FDRI_ARENA_META_MAGIC || p->head.kind != FDRI_ARENA_META_PART) continue;
        parts++;
        for (size_t at = 0; at < sizeof *p; at += STEP)
            bad += !holds_flipped(off + at + rnd(&seed, STEP), rnd(&seed, 8));
        if (!(p->flags & FDRI_ARENA_PART_PINNED) || !(uint32_t)p->list_head || goes_on_at != UINT32_MAX) continue;
        pinned++;
        bad += !holds_without_bins(off);
    }
    assert_true(parts > 20);
    assert_true(pinned > 2 || goes_on_at != UINT32_MAX);
    assert_int_equal(bad, 0);
}

static void P4_P8_no_bin_is_of_two_partitions(void **state)
{
    (void)state;
    damage_each(UINT32_MAX);
    for (uint32_t write = 60; write < 180; write += 40) damage_each(write);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    if (!mkdtemp(directory)) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(P4_P8_no_bin_is_of_two_partitions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
