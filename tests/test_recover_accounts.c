/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60
 * P8: any one block of accounts is damaged: what is recovered is whole, its ledger adds up, and nothing that is kept is
 * without an account. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "format/arena.h"

static char folder[] = "/tmp/fdr-accounts-XXXXXX", recovered[64];
static uint64_t begun_ns; /* the location */

static void record(void)
{
    fdr_region region[4] = {fdr_region_define("a", NULL, 0), fdr_region_define("b", NULL, 0),
                            fdr_region_define("c", NULL, 0), fdr_region_define("d", NULL, 0)};
    fdr_marker_id marker = fdr_marker_define("m");
    fdr_metric_id metric = fdr_metric_define("g", "", FDR_U64, FDR_METRIC_GAUGE);
    for (uint64_t i = 0; i < 300; i++) {
        for (int d = 0; d < 4; d++) {
            fdr_marker(marker, i);
            fdr_metric_u64(metric, i);
            fdr_enter(region[d]);
        }
        for (int d = 4; d--;) fdr_leave(region[d]);
    }
}

static uint8_t *snapshot(size_t *bytes)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "256K",
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .dir = folder};
    assert_int_equal(fdr_init(&c), 0);
    record();
    assert_int_equal(fdr_snapshot(NULL), 0);
    FILE *file = fopen(fdr_last_snapshot(), "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *all = malloc(*bytes);
    assert_int_equal(fread(all, 1, *bytes, file), *bytes);
    fclose(file);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    return all;
}

/* From `from` on, its head or what is behind it, one byte in so many is wrong. */
static void recover_without(uint8_t *all, size_t bytes, size_t at, const struct fdr_meta_head *head, size_t from)
{
    struct fdr_file *f, *g;
    char message[200] = "";
    const struct fdr_ledger_row *row;
    uint64_t kept = 0, events = 0;
    uint8_t *damaged = malloc(bytes);
    memcpy(damaged, all, bytes);
    for (size_t i = from; i < head->bytes; i += 97) damaged[at + i] ^= 0x55;
    assert_int_not_equal(fdr_file_open_memory(damaged, bytes, &f, message, sizeof message), FDR_UNREADABLE);
    assert_int_equal(fdr_file_recover(f, recovered, message, sizeof message), 0);
    fdr_file_close(f);
    if (fdr_file_open(recovered, &g, message, sizeof message) != FDR_WHOLE || fdr_file_verify(g) != FDR_WHOLE)
        fail_msg("without block %u at %zu: %s %s", head->kind, at, message, fdr_file_damage(g, 0));
    size_t n = fdr_ledger(g, &row);
    for (size_t i = 0; i < n; i++) {
        kept += row[i].kept;
        if (row[i].presented != row[i].kept + row[i].filtered + row[i].reduced + row[i].lost)
            fail_msg("without block %u at %zu: class %u depth %u: %llu presented, %llu kept", head->kind, at,
                     row[i].class_, row[i].depth, (unsigned long long)row[i].presented,
                     (unsigned long long)row[i].kept);
        events += row[i].presented;
    }
    assert_true(kept > 0 && events >= kept);
    assert_true(fdr_location_info(g, 0)->start_ns >=
                begun_ns); /* a location made anew did not begin with the machine */
    fdr_file_close(g);
    unlink(recovered);
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
    for (size_t at = 0; at + sizeof(struct fdr_meta_head) <= bytes; at += FDR_META_ALIGN) {
        struct fdr_meta_head head;
        memcpy(&head, all + at, sizeof head);
        if (head.magic != FDR_META_MAGIC || at + head.bytes > bytes) continue;
        bool location = head.kind == FDR_META_LOCATION, part = head.kind == FDR_META_PART;
        if (head.kind != FDR_META_POINTS && head.kind != FDR_META_LEVELS && !part && !location) continue;
        points += head.kind == FDR_META_POINTS;
        levels += head.kind == FDR_META_LEVELS;
        recover_without(all, bytes, at, &head, sizeof head);
        recover_without(all, bytes, at, &head, 0);
    }
    assert_true(points >= 4 && levels >= 2);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_a_damaged_block_of_accounts)};
    return cmocka_run_group_tests(tests, enter, leave);
}
