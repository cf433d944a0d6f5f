/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads,slow timeout=300 promise=P6,P8
 * P6, P8: threads come and go, and each grows its table of totals, during snapshots from inside and from outside. Every
 * file is whole. Memory of ended threads is used again. So a new table may lie where the copy has passed, while the
 * header that names it is copied later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { SNAPSHOTS = SANITIZED ? 3 : 80, SPAWNERS = 4, REGIONS = 300, TIMES = 20 };

static char directory[] = "/tmp/fdr-tables-XXXXXX";
static fdr_region region[REGIONS];
static uint32_t stop, threads;
static uint64_t gone;

static void *meets_ever_more(void *seed_)
{
    uint64_t seed = (uintptr_t)seed_;
    for (uint32_t i = 0; i < REGIONS * TIMES; i++) {
        fdr_region outer = region[i / TIMES], inner = region[rnd(&seed, i / TIMES + 1)];
        fdr_enter(outer);
        fdr_enter(inner);
        fdr_leave(inner);
        fdr_leave(outer);
    }
    return NULL;
}

static void *spawn(void *unused)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pthread_t t;
        uintptr_t n = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
        if (pthread_create(&t, NULL, meets_ever_more, (void *)n)) abort();
        pthread_join(t, NULL);
    }
    return unused;
}

static uint64_t lost_in(struct fdr_file *f)
{
    const struct fdr_ledger_row *row;
    uint64_t lost = 0;
    for (size_t i = 0, n = fdr_ledger(f, &row); i < n; i++) lost += row[i].lost;
    return lost;
}

/* The file lost nothing, so the recovered file must report the same losses as the file. */
static bool recovers(struct fdr_file *f)
{
    char out[64], message[300] = "";
    struct fdr_file *g;
    snprintf(out, sizeof out, "%s/recovered.fdr", directory);
    assert_int_equal(fdr_file_recover(f, out, message, sizeof message), 0);
    if (fdr_file_open(out, &g, message, sizeof message) == FDR_UNREADABLE) fail_msg("recovered: %s", message);
    bool good = lost_in(f) == lost_in(g) && fdr_file_info(f)->threads_gone == fdr_file_info(g)->threads_gone;
    if (!good)
        print_message("recovered: %llu lost, not %llu\n", (unsigned long long)lost_in(g),
                      (unsigned long long)lost_in(f));
    fdr_file_close(g);
    unlink(out);
    return good;
}

/* fdr_totals reads the totals of a thread on demand. So damage to them shows only then. */
static bool look(const char *path, const char *how, int number)
{
    char message[300] = "";
    struct fdr_file *f;
    const struct fdr_total *t;
    if (fdr_file_open(path, &f, message, sizeof message) == FDR_UNREADABLE) fail_msg("%s: %s", how, message);
    fdr_totals(f, &t);
    bool good = fdr_file_verify(f) == FDR_WHOLE && fdr_file_damage_count(f) == 0;
    gone += fdr_file_info(f)->threads_gone;
    if (!good) print_message("%s %d of %d: %s %s\n", how, number, SNAPSHOTS, message, fdr_file_damage(f, 0));
    if (good && number % 4 == 0) good = recovers(f);
    fdr_file_close(f);
    unlink(path);
    return good;
}

static void P6_P8_totals_that_outgrow_their_table(void **state)
{
    pthread_t spawner[SPAWNERS];
    char path[64], message[300];
    int damaged = 0;
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "4M",
                           .signal = "none",
                           .crash = "0",
                           .keep = "8,newest",
                           .arena = "anonymous"};
    (void)state;
    assert_non_null(mkdtemp(directory));
    c.dir = c.live_dir = directory;
    assert_int_equal(fdr_init(&c), 0);
    for (unsigned i = 0; i < REGIONS; i++) {
        snprintf(path, sizeof path, "r%u", i);
        region[i] = fdr_region_define(path, NULL, 0);
    }
    for (int i = 0; i < SPAWNERS; i++) assert_int_equal(pthread_create(&spawner[i], NULL, spawn, NULL), 0);
    snprintf(path, sizeof path, "%s/outside.fdr", directory);
    for (int i = 0; i < SNAPSHOTS; i++) {
        assert_int_equal(fdr_snapshot("tables"), 0);
        damaged += !look(fdr_last_snapshot(), "inside", i);
        assert_int_equal(fdr_process_snapshot((uint32_t)getpid(), path, NULL, message, sizeof message), 0);
        damaged += !look(path, "outside", i);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < SPAWNERS; i++) pthread_join(spawner[i], NULL);
    fdr_finalize();
    rmdir(directory);
    print_message("%u threads, %llu of them gone while they were copied\n", threads, (unsigned long long)gone);
    assert_int_equal(damaged, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P6_P8_totals_that_outgrow_their_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
