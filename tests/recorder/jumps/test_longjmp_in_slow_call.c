/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=240 promise=P8 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions) wrap=fdri_bins_part_open,fdri_totals_row_rename
 * P8: a handler leaves three slow calls by longjmp, at each instruction or at every few. One opens a partition and
 * its first bin, one pins the first moments, one takes over a totals row. Bins and files stay whole, pinned events
 * stay as they were, and each totals row has one place in the table. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bits.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
enum { REGIONS = 12, DEPTH = 60, EACH = 120 };
static const uint64_t length[FDRI_ARENA_BANDS] = {100, 2000, 100000, 1000000};
static fdr_region region[REGIONS];
static uint64_t seed, now;
static uint32_t band; /* band of the interrupted call */

static struct fdri_arena_location *self(void) { return fdri_record_self.loc; }
static void enter(void) { fdr_enter_at(region[rnd(&seed, REGIONS)], ++now); }
static void leave(void) { fdr_leave_at(fdri_record_self.top->region, now); }

static void leave_after(uint64_t ns)
{
    now += ns;
    leave();
}

static void to_depth(uint32_t depth)
{
    while (self()->depth < depth) enter();
    while (self()->depth > depth) leave_after(1);
}

static void present(uint32_t depth, uint32_t calls)
{
    for (uint32_t i = 0; i < calls; i++) {
        to_depth(depth - 1);
        enter();
        leave_after(length[rnd(&seed, 8) ? band : rnd(&seed, FDRI_ARENA_BANDS)]);
    }
}

static void start(const char *pin)
{
    begin(&(struct fdr_config){.strategy = rnd(&seed, 2) ? "telescope" : "last",
                               .buffer = "512K",
                               .bin = rnd(&seed, 2) ? "512" : "4K",
                               .resolution = rnd(&seed, 2) ? "128ns" : NULL,
                               .pin = pin});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "room_steps.c", 1);
    now = 1000000;
    enter();
}

/* The function in which single-stepping begins. */
static enum { NOWHERE, OPENING, RENAMING } from;

/* Leaves f by longjmp at instruction n after that point; false: f had fewer instructions. */
static bool leave_behind(uint32_t n, void (*f)(void))
{
    volatile bool left = true;
    if (!sigsetjmp(steps_away, 1)) {
        steps_until = n;
        f();
        steps_off();
        left = false;
    }
    from = NOWHERE;
    steps_until = 0;
    return left;
}

void __real_fdri_bins_part_open(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_arena_part *p,
                                uint32_t off, uint32_t size_log2, uint32_t base_ordinal, uint32_t record_bits_max);
void __wrap_fdri_bins_part_open(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_arena_part *p,
                                uint32_t off, uint32_t size_log2, uint32_t base_ordinal, uint32_t record_bits_max);
void __wrap_fdri_bins_part_open(struct fdri_bins_arena *a, struct fdri_arena_location *l, struct fdri_arena_part *p,
                                uint32_t off, uint32_t size_log2, uint32_t base_ordinal, uint32_t record_bits_max)
{
    if (from == OPENING) steps_on();
    __real_fdri_bins_part_open(a, l, p, off, size_log2, base_ordinal, record_bits_max);
}

static void end_call(void) { leave_after(length[band]); }

/* A new record of a depth begins at the enter of the open call there. So all stored records of that depth must end
 * before it. */
static void stored_before(uint32_t n)
{
    for (uint32_t off = self()->parts_first; off;
         off = ((struct fdri_arena_part *)fdri_thread_at(&fdri_record_self, off))->next) {
        const struct fdri_arena_part *p = fdri_thread_at(&fdri_record_self, off);
        if (p->class_ != FDRI_ARENA_CLASS_REGION || p->depth > self()->depth) continue;
        if (p->last_tick > fdri_thread_level(&fdri_record_self, p->depth)->enter_tick >> fdri_record_self.shift)
            fail_msg("left at %u: a call of depth %u is open, and the next record would begin behind its enter", n,
                     p->depth);
    }
}

static void P8_longjmp_while_taking_a_first_bin(void **state)
{
    (void)state;
    uint32_t depth = 0, n = 1;
    /* If it was not left that often in a row, no such call has n instructions, whatever the recording is like. */
    for (uint32_t done = 0; done < 3 * DEPTH; n += n < EACH ? 1 : 1 + rnd(&seed, n / 12)) {
        if (!depth--) {
            if (n > 1) fdr_file_close(take());
            start(NULL);
            depth = DEPTH;
        }
        band = rnd(&seed, FDRI_ARENA_BANDS);
        to_depth(depth + 1); /* no call of this depth was stored before */
        from = OPENING;
        done = leave_behind(n, end_call) ? 0 : done + 1;
        fdr_thread_name("settles what was left");
        stored_before(n);
        present(depth + 1, 20);
        whole(n);
    }
    fdr_file_close(take());
    fdr_finalize();
    assert_true(n > 100);
}

static uint64_t pinned_records(void)
{
    uint64_t records = 0;
    for (uint32_t off = self()->parts_first; off;
         off = ((struct fdri_arena_part *)fdri_thread_at(&fdri_record_self, off))->next) {
        const struct fdri_arena_part *p = fdri_thread_at(&fdri_record_self, off);
        if (p->flags & FDRI_ARENA_PART_PINNED) records += p->total + 1;
    }
    return records;
}

static void P8_longjmp_while_pinning(void **state)
{
    (void)state;
    uint32_t n = 1, tried = 0, any = 0;
    for (bool left = true; left; n += n < EACH ? 1 : 1 + rnd(&seed, n / 8), tried++) {
        do {
            start("100us");
            while (!fdri_record_self.pinning_due && !fdri_record_self.pinning_done) present(2 + rnd(&seed, 3), 1);
        } while (fdri_record_self.pinning_done); /* present() itself may have pinned the partitions already */
        now++;
        left = leave_at(enter, n);
        while (fdri_record_self.pinning_due) present(2, 1);
        uint64_t before = pinned_records();
        any += before != 0;
        for (int i = 0; i < 40; i++) present(2 + rnd(&seed, 3), 20);
        if (pinned_records() != before) fail_msg("left at %u: a pinned partition grew, or gave bins back", n);
        whole(n);
        fdr_file_close(take());
    }
    fdr_finalize();
    assert_true(any > 100);
}

/* ---- totals rows that other regions take over ---- */

enum { MANY = 1200 };
static fdr_region of_many[MANY];
static uint32_t renamed;

struct fdri_arena_row *__real_fdri_totals_row_rename(struct fdri_thread *t, uint32_t off, uint32_t key);
struct fdri_arena_row *__wrap_fdri_totals_row_rename(struct fdri_thread *t, uint32_t off, uint32_t key);
struct fdri_arena_row *__wrap_fdri_totals_row_rename(struct fdri_thread *t, uint32_t off, uint32_t key)
{
    renamed++;
    if (from == RENAMING) steps_on();
    return __real_fdri_totals_row_rename(t, off, key);
}

static void define(int count)
{
    for (int i = 0; i < count; i++) {
        char name[20];
        snprintf(name, sizeof name, "r%d", i);
        of_many[i] = fdr_region_define(name, "room_steps.c", 1);
    }
}

/* the next region to be called; a region in [rest] has no row to take over, so each call uses a new one */
static uint32_t next_one;

static void call_next(void)
{
    fdr_enter_at(of_many[next_one++ % MANY], ++now);
    leave_after(1 + rnd(&seed, 1000));
}

static void call_until_renamed(void)
{
    for (uint32_t before = renamed; renamed == before && next_one < MANY;) call_next();
}

/* Number of slots that lead to the row at `off`. */
static uint32_t places_of(uint32_t off)
{
    const struct fdri_arena_rowtable *table = fdri_thread_at(&fdri_record_self, self()->rows_table_off);
    const uint32_t *slot = (const void *)(table + 1);
    uint32_t places = 0;
    for (uint32_t i = 0; i < 1u << table->log2; i++) places += slot[i] == off;
    return places;
}

static void each_row_has_its_place(uint32_t n)
{
    const struct fdri_arena_epochs *e = fdri_thread_at(&fdri_record_self, self()->epochs_off);
    for (uint32_t off = e->base_first; off;) {
        const struct fdri_arena_epoch_base *b = fdri_thread_at(&fdri_record_self, off);
        for (uint32_t i = 0; i < b->count; i++) {
            uint32_t places = places_of(b->row[i].row_off);
            if (places != 1) fail_msg("left at %u: a row of the totals has %u places", n, places);
        }
        off = b->next;
    }
}

static void P8_longjmp_while_evicting_rows(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "256K", .bin = "512"});
    define(MANY);
    now = 1000000;
    present(2, 20000);
    assert_true(self()->epochs_off != 0);
    uint32_t n = 0;
    while (next_one < MANY) {
        from = RENAMING;
        leave_behind(++n, call_until_renamed);
        call_next();
        each_row_has_its_place(n);
        whole(n);
    }
    fdr_file_close(take());
    fdr_finalize();
    assert_true(n > 200);
}

static struct fdri_arena_rowtable *table_now(void) { return fdri_thread_at(&fdri_record_self, self()->rows_table_off); }

static uint32_t rows_of(fdr_region r)
{
    const uint32_t *slot = (const void *)(table_now() + 1);
    uint32_t rows = 0;
    for (uint32_t i = 0; i < 1u << table_now()->log2; i++)
        rows += slot[i] && ((const struct fdri_arena_row *)fdri_thread_at(&fdri_record_self, slot[i]))->key ==
                               FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, r);
    return rows;
}

/* Has the table grown after a longjmp at instruction n of the call that makes it grow? */
static bool grown_at(uint32_t n)
{
    seed = 9; /* the same instructions each time */
    start(NULL);
    define(64);
    const struct fdri_arena_rowtable *small = table_now();
    for (next_one = 0; small->used < ((1u << small->log2) - 1) * 3 / 4;) call_next();
    leave_at(call_next, n);
    bool grown = table_now() != small;
    uint32_t before = next_one - 1;
    for (next_one = 0; next_one < before;) call_next();
    for (uint32_t i = 0; i < before; i++)
        if (rows_of(of_many[i]) != 1) fail_msg("left at %u: %u rows of a region", n, rows_of(of_many[i]));
    whole(n);
    return grown;
}

static void P8_longjmp_while_growing_a_table(void **state)
{
    (void)state;
    uint32_t low = 1, high = 1 << 14;
    assert_true(grown_at(high));
    while (high - low > 1) *(grown_at((low + high) / 2) ? &high : &low) = (low + high) / 2;
    for (uint32_t n = fdri_bits_max(low, 50) - 49; n < high + 50; n++) grown_at(n);
    fdr_finalize();
}

int main(void)
{
    steps_begin();
    seed = 9;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P8_longjmp_while_taking_a_first_bin), cmocka_unit_test(P8_longjmp_while_pinning),
        cmocka_unit_test(P8_longjmp_while_growing_a_table), cmocka_unit_test(P8_longjmp_while_evicting_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
