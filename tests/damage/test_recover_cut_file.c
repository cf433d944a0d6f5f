/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=300 promise=P8
 * P8: a snapshot is cut anywhere, as by a full disk or a broken copy. The recovered file shows exactly the calls that
 * the reader shows of the cut file. */
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

#include "tests/support/corpus_stream.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { REGIONS = 40, CUTS = SANITIZED ? 20 : 60, DEEPEST = 30 };

static char directory[] = "/tmp/fdr-cut-XXXXXX";
static fdr_region region[REGIONS];
static uint64_t now = 1000;

/* A walk that stays deep. The shallow calls are long and few. So the oldest bins of some depths lie after the newest
 * bins of others. */
static fdr_region stack[DEEPEST + 1];
static uint32_t depth;

static void walk(uint64_t *seed, uint32_t steps)
{
    uint32_t home = 1;
    while (steps-- > 0) {
        if (steps % 20000 == 0) home = 2 + rnd(seed, DEEPEST - 4);
        bool down = depth == 0 || (depth < DEEPEST && rnd(seed, 100) < (depth < home ? 70 : 30));
        now += 1 + (rnd(seed, 40) ? rnd(seed, 60) : rnd(seed, 9000));
        if (down) fdr_enter_at(stack[++depth] = region[rnd(seed, REGIONS)], now);
        else fdr_leave_at(stack[depth--], now);
    }
}

struct shown {
    uint64_t enter, leave, depth, region;
};

static int by_time(const void *a, const void *b) { return memcmp(a, b, sizeof(struct shown)); }

/* All calls of a file except made-up ones, sorted. The caller frees the list. */
static size_t calls(struct fdr_file *f, struct shown **all)
{
    struct shown *around = calloc(4096, sizeof *around), *list = NULL;
    size_t count = 0, room = 0, above = 0;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    while (fdr_iter_next(it, &e)) {
        if (e.kind == FDR_ENTER && ++above < 4096)
            around[above] = (struct shown){e.time_ns, 0, e.depth, e.reduced ? UINT64_MAX : e.id};
        if (e.kind != FDR_LEAVE) continue;
        struct shown s = around[above--];
        s.leave = e.time_ns;
        if (s.region == UINT64_MAX) continue;
        if (count == room) list = realloc(list, (room = room * 2 + 1024) * sizeof *list);
        list[count++] = s;
    }
    fdr_iter_close(it);
    free(around);
    if (count) qsort(list, count, sizeof *list, by_time);
    *all = list;
    return count;
}

static void copy_start(const char *from, const char *to, size_t bytes)
{
    static uint8_t image[4 << 20];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    assert_int_equal(fread(image, 1, bytes, in), bytes);
    assert_int_equal(fwrite(image, 1, bytes, out), bytes);
    fclose(in);
    fclose(out);
}

static unsigned compare(const char *snapshot, size_t bytes)
{
    char cut[64], whole[64], message[300] = "";
    struct fdr_file *f, *g;
    struct shown *a, *b;
    snprintf(cut, sizeof cut, "%s/cut.fdr", directory);
    snprintf(whole, sizeof whole, "%s/whole.fdr", directory);
    copy_start(snapshot, cut, bytes);
    assert_int_equal(fdr_file_open(cut, &f, message, sizeof message), FDR_DAMAGED);
    assert_int_equal(fdr_file_recover(f, whole, message, sizeof message), 0);
    assert_int_equal(fdr_file_open(whole, &g, message, sizeof message), FDR_WHOLE);
    size_t was = calls(f, &a), is = calls(g, &b);
    bool same = was == is && !memcmp(a, b, was * sizeof *a);
    if (!same) print_message("cut at %zu: %zu calls shown, %zu recovered\n", bytes, was, is);
    free(a);
    free(b);
    fdr_file_close(g);
    fdr_file_close(f);
    unlink(whole);
    unlink(cut);
    return !same;
}

/* Cuts the file at many places, down to a quarter of its size; then removes it. */
static void all_cuts(const char *path)
{
    char message[200];
    struct fdr_file *f;
    unsigned unlike = 0;
    assert_int_equal(fdr_file_open(path, &f, message, sizeof message), FDR_WHOLE);
    fdr_file_close(f);
    FILE *file = fopen(path, "rb");
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t bytes = (size_t)ftell(file);
    fclose(file);
    for (size_t i = 0; i < CUTS; i++) unlike += compare(path, bytes - 1 - i * (bytes * 3 / 4 / CUTS));
    assert_int_equal(unlike, 0);
    unlink(path);
}

static void start(void)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "256K",
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous"};
    char name[16];
    c.dir = c.live_dir = directory;
    assert_int_equal(fdr_init(&c), 0);
    for (unsigned i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%u", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    now = 1000;
    depth = 0;
}

static void cut_it(void)
{
    char path[300];
    assert_int_equal(fdr_snapshot("cut"), 0);
    snprintf(path, sizeof path, "%s", fdr_last_snapshot());
    fdr_finalize();
    all_cuts(path);
}

static void P8_a_cut_file_is_recovered_as_it_is_shown(void **state)
{
    uint64_t seed = 0x9e3779b97f4a7c15;
    (void)state;
    for (int left_open = 0; left_open < 2; left_open++) {
        start();
        walk(&seed, 2000000);
        while (!left_open && depth > 0) fdr_leave_at(stack[depth--], ++now);
        cut_it();
    }
}

/* Some calls that ended, then an open call with everything else inside. */
static void P8_cut_recording_of_one_long_call(void **state)
{
    (void)state;
    start();
    for (unsigned i = 0; i < 20; i++) fdr_enter_at(region[1], now += 10), fdr_leave_at(region[1], now += 10);
    fdr_enter_at(region[0], now += 10);
    for (unsigned i = 0; i < 20000; i++) {
        fdr_enter_at(region[1], now += 10), fdr_enter_at(region[2], now += 10);
        fdr_leave_at(region[2], now += 10), fdr_leave_at(region[1], now += 10);
    }
    cut_it();
}

/* A recorded stream of sqlite, where the oldest bins of two depths lie after the newest of the others. */
static void P8_cut_recording_of_sqlite(void **state)
{
    const char *build = getenv("FDR_BUILD");
    char path[64], command[1600];
    (void)state;
    snprintf(path, sizeof path, "%s/sqlite.fdr", directory);
    snprintf(command, sizeof command, "%s/sqlite.r0.t0.evt.zst", evt_folder());
    if (!build || access(command, R_OK) != 0) {
        print_message("skipped: no %s (FDR_CORPUS says where the corpus is)\n", command);
        skip();
    }
    snprintf(command, sizeof command, "%s/bin/fdr replay --buffer 256K -o %s %s/sqlite.r0.t0.evt.zst >%s/said", build,
             path, evt_folder(), directory);
    assert_int_equal(system(command), 0);
    all_cuts(path);
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    char said[64];
    (void)state;
    snprintf(said, sizeof said, "%s/said", directory);
    unlink(said);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_a_cut_file_is_recovered_as_it_is_shown),
                                       cmocka_unit_test(P8_cut_recording_of_one_long_call),
                                       cmocka_unit_test(P8_cut_recording_of_sqlite)};
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
