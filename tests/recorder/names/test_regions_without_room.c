/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P2,P3 */
/* P2, P3: regions whose definition finds no room. Their calls are recorded as [unknown], and fdr does not try to
 * define them again at each call. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "recorder/recording.h"
#include "tests/support/api_fixture.h"

/* Adds definitions until not even a short name fits. */
static void fill_definitions(void)
{
    char name[16];
    for (uint32_t i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "%u", i);
        if (!fdr_region_define(name, "", 0)) return;
    }
    fail_msg("definitions never end");
}

static void here(void) { FDR_FUNCTION(); }

static void scopes(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        FDR_REGION("late") here();
    }
}

static void P3_scopes_without_room(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "256K"});
    fill_definitions();
    uint64_t refused = fdri_life_recording.arena.super->lost_definitions;
    scopes(100);
    assert_int_equal(fdri_life_recording.arena.super->lost_definitions, refused + 2);
    struct fdr_file *f = take();
    assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->presented, 100);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->presented, 100);
    assert_int_equal(total(f, FDR_IN_REGION, 0)->calls, 200);
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, 0)->name, "[unknown]");
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    balance(f);
    end(f);
    /* The next recording may have room for them. */
    scopes(1);
    begin(&(struct fdr_config){.buffer = "16M"});
    scopes(100);
    f = take();
    assert_int_equal(fdr_file_info(f)->lost_definitions, 0);
    assert_int_equal(total(f, FDR_IN_REGION, 0)->calls, 0);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->kept, 100);
    end(f);
}

/* Compiler hooks pass an address with each call. The first call looks up the region and may lock; later ones may
 * not. */
static void P2_addresses_without_room(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "256K"});
    fill_definitions();
    uint64_t refused = fdri_life_recording.arena.super->lost_definitions;
    for (uint32_t i = 0; i < 100; i++) {
        fdr_enter_address(fill_definitions);
        fdr_enter_address(here);
        fdr_leave_address(here);
        fdr_leave_address(fill_definitions);
        assert_int_equal(fdr_region_define_address(here), 0);
    }
    assert_int_equal(fdri_life_recording.arena.super->lost_definitions, refused + 2);
    fdr_modules_changed(); /* no module was unloaded */
    assert_int_equal(fdr_region_define_address(here), 0);
    assert_int_equal(fdri_life_recording.arena.super->lost_definitions, refused + 2);
    struct fdr_file *f = take();
    assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->presented, 100);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->presented, 100);
    assert_int_equal(total(f, FDR_IN_REGION, 0)->calls, 200);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves + fdr_location_info(f, 0)->unbalanced, 0);
    balance(f);
    end(f);
    begin(&(struct fdr_config){.buffer = "16M"});
    assert_int_not_equal(fdr_region_define_address(here), 0);
    end(take());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_scopes_without_room),
                                       cmocka_unit_test(P2_addresses_without_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
