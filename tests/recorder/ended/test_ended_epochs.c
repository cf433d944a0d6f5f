/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads promise=P3
 * P3: the accounts of an ended thread move into [ended] a few rows at a time. The test copies the arena between two
 * of these steps and opens it. The copy must be whole: epochs are no longer shown, because their totals are rows
 * minus a base, and `epochs` counts none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"

enum { REGIONS = 100, EVERY = 8 };
static fdr_region region[REGIONS];

static void call(unsigned i)
{
    fdr_enter(region[i % REGIONS]);
    fdr_leave(region[i % REGIONS]);
}

static void *brief(void *had_epochs)
{
    for (unsigned i = 0; i < 100000; i++) call(i);
    *(bool *)had_epochs = fdri_record_self.loc->epochs_off;
    return NULL;
}

/* Is a location being merged, with some rows moved and some not? */
static bool in_between(void)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    for (uint32_t off = a->super->location_first; off;) {
        const struct fdri_arena_location *l = fdri_bins_at(a, off);
        off = l->next;
        if (l->flags & FDRI_ARENA_LOCATION_FREE || !(l->flags & FDRI_ARENA_LOCATION_FOLDING)) continue;
        const struct fdri_arena_rowtable *table = fdri_bins_at(a, l->rows_table_off);
        const uint32_t *slot = (const void *)(table + 1);
        for (uint32_t i = 0, given = 0; i < 1u << table->log2; i++) {
            const struct fdri_arena_row *r = slot[i] ? fdri_bins_at(a, slot[i]) : NULL;
            given += r && !r->calls && r->key != FDRI_ARENA_ROW_KEY_REST; /* this row had no calls */
            if (r && r->calls && given) return true;
        }
    }
    return false;
}

/* The number of epochs in the location's data equals the number of epochs shown; it is 1 if none are shown. */
static void check_counts(struct fdr_file *f)
{
    const struct fdr_epoch_info *rows;
    size_t count = fdr_epochs(f, &rows);
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        uint32_t shown = 0;
        for (size_t k = 0; k < count; k++) shown += rows[k].location == l->id;
        assert_int_equal(l->epochs, shown ? shown : 1);
    }
}

static void look(uint8_t *copy)
{
    struct fdr_file *f;
    char message[256] = "";
    memcpy(copy, fdri_life_recording.arena.base, fdri_life_recording.arena.super->arena_bytes);
    if (fdr_file_open_memory(copy, fdri_life_recording.arena.super->arena_bytes, &f, message, sizeof message) !=
        FDR_WHOLE)
        fail_msg("%s", message);
    if (fdr_file_verify(f) != FDR_WHOLE) fail_msg("%s", fdr_file_damage(f, 0));
    check_counts(f);
    fdr_file_close(f);
}

static void P3_snapshot_between_two_folding_steps(void **state)
{
    const struct fdr_config c = {
        .size = sizeof c, .ignore_environment = 1, .arena = "anonymous", .buffer = "512K", .signal = "none"};
    bool had_epochs = false;
    unsigned looked = 0;
    char name[16];
    pthread_t t;
    (void)state;
    assert_int_equal(fdr_init(&c), 0);
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    uint8_t *copy = aligned_alloc(64, fdri_life_recording.arena.super->arena_bytes);
    assert_int_equal(pthread_create(&t, NULL, brief, &had_epochs), 0);
    pthread_join(t, NULL);
    assert_true(had_epochs);
    for (unsigned i = 0; i < 5000000 && looked < 20; i++) {
        call(i);
        if (i % EVERY || !in_between()) continue;
        look(copy);
        looked++;
    }
    assert_true(looked > 0);
    free(copy);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_snapshot_between_two_folding_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
