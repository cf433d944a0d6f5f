/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=60 promise=P8
 * P8: other bytes follow a recording in its file: another recording, or zeros. The reader reports them and takes
 * nothing of them for the first recording. This holds even if damage makes the reader search for blocks. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "format/arena/arena.h"
#include "tests/support/deaths.h"

enum { ROOM = 2 << 20 };
static _Alignas(8) uint8_t file[3 * ROOM];
static fdr_region region;

static void *work(void *unused)
{
    for (int i = 0; i < 5000; i++) fdr_enter(region), fdr_leave(region);
    return unused;
}

/* Both processes number locations from the same start. Only the second one has the higher ids. */
static void run_threads(int threads)
{
    pthread_t t[8];
    region = fdr_region_define("work", NULL, 0);
    for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
}
static void die_of_two(void) { run_threads(2), raise(SIGKILL); }
static void die_of_eight(void) { run_threads(8), raise(SIGKILL); }
static void fault(void) { run_threads(2), raise(SIGSEGV); }
static void snapshot_of_two(void) { run_threads(2), fdr_snapshot("one"), raise(SIGKILL); }

/* Runs a child that dies, and reads the recording that it leaves to this place of `file`. Returns its size. */
static size_t left_by(void (*die)(void), int signal, const char *end, size_t at)
{
    pid_t pid;
    const struct death_place *p = death_place();
    struct fdr_config c = death_config(p);
    int status = death_of(&c, die, &pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signal);
    FILE *f = fopen(death_find(strstr(end, "live") ? p->live : p->dir, end), "r");
    assert_non_null(f);
    size_t n = fread(file + at, 1, ROOM, f);
    fclose(f);
    assert_true(n >= FDRI_ARENA_SUPERBLOCK_BYTES && n < ROOM);
    return n;
}

struct seen {
    enum fdr_verdict verdict;
    size_t locations, behind;
    uint64_t presented, events;
};

static struct seen look(size_t bytes)
{
    struct seen s = {0};
    struct fdr_file *f = NULL;
    struct fdr_read_event e;
    const struct fdr_ledger_row *row;
    s.verdict = fdr_file_open_memory(file, bytes, &f, NULL, 0);
    assert_non_null(f);
    s.locations = fdr_location_count(f);
    for (size_t i = 0, n = fdr_ledger(f, &row); i < n; i++) s.presented += row[i].presented;
    for (size_t i = 0; i < fdr_file_damage_count(f); i++)
        s.behind += strstr(fdr_file_damage(f, i), "do not belong to it") != NULL;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e)) s.events++;
    fdr_iter_close(it);
    fdr_file_close(f);
    return s;
}

static void same_but_said(const struct seen *alone, size_t bytes)
{
    struct seen s = look(bytes);
    assert_int_equal(alone->behind, 0);
    assert_int_equal(s.verdict, FDR_DAMAGED);
    assert_int_equal(s.behind, 1);
    assert_int_equal(s.locations, alone->locations);
    assert_int_equal(s.presented, alone->presented);
    assert_int_equal(s.events, alone->events);
}

static void another_live_file(void **state)
{
    (void)state;
    size_t n = left_by(die_of_two, SIGKILL, ".live.fdr", 0), more = left_by(die_of_eight, SIGKILL, ".live.fdr", n);
    struct seen alone = look(n);
    assert_int_equal(alone.verdict, FDR_WHOLE);
    same_but_said(&alone, n + more);
    /* without its first link the reader searches for location blocks */
    memset(file + offsetof(struct fdri_arena_superblock, location_first), 0, 4);
    alone = look(n);
    assert_int_equal(alone.verdict, FDR_DAMAGED);
    assert_true(alone.locations > 0 && alone.events > 0);
    same_but_said(&alone, n + more);
}

static void behind_a_snapshot(void **state)
{
    (void)state;
    size_t n = left_by(snapshot_of_two, SIGKILL, ".1.fdr", 0), more = left_by(die_of_eight, SIGKILL, ".live.fdr", n);
    struct seen alone = look(n);
    assert_int_equal(alone.verdict, FDR_WHOLE);
    same_but_said(&alone, n + more);
    memset(file + n, 0, more);
    same_but_said(&alone, n + 1);
    same_but_said(&alone, n + more);
}

/* A bundle may have only a part of its section. Then that part follows the arena. */
static void behind_a_bundle(void **state)
{
    (void)state;
    size_t n = left_by(fault, SIGSEGV, ".crash.fdr", 0), more = left_by(die_of_eight, SIGKILL, ".live.fdr", n);
    const struct fdri_arena_superblock *sb = (const void *)file;
    struct seen alone = look(n);
    assert_int_equal(alone.verdict, FDR_WHOLE);
    same_but_said(&alone, n + more);
    assert_true(n > sb->arena_bytes + 64);
    memset(file + sb->arena_bytes, 0, 4); /* the magic, written last */
    assert_int_equal(look(n).verdict, FDR_DAMAGED);
    assert_int_equal(look(sb->arena_bytes + 64).verdict, FDR_DAMAGED);
    assert_int_equal(look(sb->arena_bytes).verdict, FDR_DAMAGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(behind_a_bundle), cmocka_unit_test(another_live_file),
                                       cmocka_unit_test(behind_a_snapshot)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
