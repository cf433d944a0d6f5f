/* SPDX-License-Identifier: MIT */
/* Common parts of the tests of the public header: a recording next to the oracle, its snapshot and its rows. */
#ifndef FDRI_TESTS_API_FIXTURE_H
#define FDRI_TESTS_API_FIXTURE_H
#include <errno.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "bins/bins.h"
#include "recorder/recording.h"
#include "tests/support/oracle.h"

static struct oracle o;

static inline void begin(const struct fdr_config *more)
{
    struct fdr_config c = oracle_config(oracle_directory());
    if (more) {
        const char *const *from = (const void *)&more->enable;
        const char **to = (void *)&c.enable;
        for (size_t i = 0; i < (sizeof c - offsetof(struct fdr_config, enable)) / sizeof *to; i++)
            if (from[i]) to[i] = from[i];
    }
    oracle_free(&o);
    fdr_finalize(); /* a failed test left its recording running */
    assert_int_equal(fdr_init(&c), 0);
}

/* Defines functions that differ only in their numbers. */
static inline void define_regions(fdr_region *region, int count)
{
    char name[24];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "region%d", i);
        region[i] = fdr_region_define(name, "regions.c", 1);
    }
}

/* Writes filter rules into a file and returns its path, for FDR_FILTER. */
static inline char *write_rules(const char *text)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/rules", oracle_directory());
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
    return path;
}

static inline struct fdr_file *take(void)
{
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(0, &wrong);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    return f;
}

static inline void end(struct fdr_file *f)
{
    char text[160];
    const char *bins = fdri_bins_check(&fdri_life_recording.arena, text, sizeof text);
    fdr_file_close(f);
    fdr_finalize();
    if (bins) print_message("%s\n", bins);
    assert_null(bins);
}

/* Takes a snapshot, has the oracle check all of it, and ends the recording. */
static inline void check(struct oracle_rules r)
{
    struct fdr_file *f = take();
    const char *wrong = oracle_check(&o, &r, f, fdr_location_info(f, 0)->id);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    end(f);
}

static inline const struct fdr_ledger_row *row(struct fdr_file *f, uint32_t location, uint32_t class_, uint32_t depth)
{
    static const struct fdr_ledger_row none;
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n; i++)
        if (rows[i].location == location && rows[i].class_ == class_ && rows[i].depth == depth) return &rows[i];
    return &none;
}
static inline const struct fdr_total *total(struct fdr_file *f, uint32_t class_, uint32_t id)
{
    static const struct fdr_total none;
    const struct fdr_total *rows;
    size_t n = fdr_totals(f, &rows);
    for (size_t i = 0; i < n; i++)
        if (rows[i].class_ == class_ && rows[i].id == id && !rows[i].rest) return &rows[i];
    return &none;
}
/* Checks presented = kept + filtered + reduced + lost in every row. Returns the sum of presented. */
static inline uint64_t balance(struct fdr_file *f)
{
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(rows[i].presented, rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost);
        sum += rows[i].presented;
    }
    return sum;
}
static inline size_t load(struct fdr_file *f, struct fdr_read_event *e, size_t room)
{
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    size_t n = 0;
    while (n < room && fdr_iter_next(it, &e[n])) n++;
    fdr_iter_close(it);
    return n;
}
static inline uint64_t bits(double v)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    return u;
}
#endif
