/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P7,P10
 * P7, P10: a bundle may be a copy of an arena to which a thread still writes. The epochs of that thread in the copy are
 * of one moment, or the reader does not believe them. A failure shows as rows that do not add up to their epoch. */
#define _GNU_SOURCE
#include <fdr/reader.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/crash/crash_path.h"
#include "export/snapshot/snapshot.h"
#include "format/arena/arena.h"

enum { REGIONS = 40 };
static fdr_region region[REGIONS];

static void calls(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        fdr_enter(region[i % REGIONS]);
        fdr_leave(region[i % REGIONS]);
    }
}

static const struct fdri_arena_epochs *epochs_in(const uint8_t *file)
{
    const struct fdri_arena_superblock *s = (const void *)file;
    const struct fdri_arena_location *l = (const void *)(file + s->location_first);
    assert_true(l->epochs_off);
    return (const void *)(file + l->epochs_off);
}

/* The number of epochs whose rows do not add up to their calls. */
static unsigned torn(const uint8_t *file)
{
    const struct fdri_arena_epochs *e = epochs_in(file);
    unsigned bad = 0, with_rows = 0;
    for (uint32_t i = 0; i + 1 < e->count; i++) {
        const struct fdri_arena_epoch_rows *b = (const void *)(file + e->epoch[i].rows_off);
        uint64_t sum = b->rest_calls;
        if (!e->epoch[i].rows_off) continue;
        with_rows++;
        for (uint32_t k = 0; k < b->count && k < 127; k++) sum += b->row[k].calls;
        bad += sum != e->epoch[i].calls;
    }
    assert_true(with_rows > 1);
    return bad;
}

/* Copies half of the arena before the calls and the rest after them. */
static uint8_t *copy_in_halves(int *fd, uint64_t *changes)
{
    fdri_crash_death.deadline_ns = UINT64_MAX;
    *changes = fdri_crash_epochs_changes();
    *fd = memfd_create("bundle", MFD_CLOEXEC);
    uint64_t half = (uint64_t)((const uint8_t *)epochs_in(fdri_snapshot_view.base) - fdri_snapshot_view.base);
    assert_int_equal(fdri_crash_bundle_put(*fd, fdri_snapshot_view.base + half, fdri_snapshot_view.bytes - half, half),
                     0);
    calls(50000);
    assert_int_equal(fdri_crash_bundle_put(*fd, fdri_snapshot_view.base, half, 0), 0);
    uint8_t *file = mmap(NULL, fdri_snapshot_view.bytes, PROT_READ, MAP_SHARED, *fd, 0);
    assert_true(file != MAP_FAILED);
    return file;
}

static void P7_epochs_of_a_bundle_are_of_one_moment(void **state)
{
    int fd;
    uint64_t changes;
    (void)state;
    uint8_t *file = copy_in_halves(&fd, &changes);
    assert_true(torn(file) > 0);
    assert_true(fdri_crash_epochs_changes() != changes);
    assert_int_equal(fdri_crash_epochs_put(fd, changes), 0);
    assert_int_equal(torn(file), 0);
    assert_int_equal(epochs_in(file)->version % 2, 0);
    munmap(file, fdri_snapshot_view.bytes);
    close(fd);
}

static void P7_torn_epochs_are_not_believed(void **state)
{
    int fd;
    uint64_t changes;
    (void)state;
    uint8_t *file = copy_in_halves(&fd, &changes);
    struct fdri_arena_epochs *live = (struct fdri_arena_epochs *)(uintptr_t)epochs_in(fdri_snapshot_view.base);
    live->version++; /* odd: a change is under way */
    assert_int_equal(fdri_crash_epochs_put(fd, changes), 0);
    assert_int_equal(epochs_in(file)->version % 2, 1);
    live->version++;
    munmap(file, fdri_snapshot_view.bytes);
    close(fd);
}

/* The program may have overwritten any link: the copy must end even if the chain runs in a circle. */
static void P10_a_broken_chain(void **state)
{
    struct fdri_arena_superblock *s = (void *)fdri_snapshot_view.base;
    struct fdri_arena_location *l = (void *)(fdri_snapshot_view.base + s->location_first);
    int fd = memfd_create("bundle", MFD_CLOEXEC);
    uint32_t was = l->next, epochs = l->epochs_off;
    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        l->next = i % 2 ? (uint32_t)s->location_first : UINT32_MAX - i; /* in a circle, or out of the arena */
        l->epochs_off = UINT32_MAX - i * 40000000u;
        assert_int_equal(fdri_crash_epochs_put(fd, 0), 0);
    }
    l->next = was;
    l->epochs_off = epochs;
    close(fd);
}

int main(void)
{
    char name[16];
    const struct fdr_config c = {
        .size = sizeof c, .ignore_environment = 1, .arena = "anonymous", .buffer = "1M", .signal = "none"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P7_epochs_of_a_bundle_are_of_one_moment),
        cmocka_unit_test(P7_torn_epochs_are_not_believed),
        cmocka_unit_test(P10_a_broken_chain),
    };
    if (fdr_init(&c)) return 1;
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, NULL, 0);
    }
    calls(100000);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
