/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P9 wrap=fdri_leave_slots
 * P9: FDR_PIN. A handler leaves by longjmp while partitions are pinned. The next operation must pin the remaining
 * partitions, too. No caller of a pinned call may be given back. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { REGIONS = 12, DEPTH = 9, PARTS = 200 };
static fdr_region region[REGIONS];
static jmp_buf away;
/* jump at the nth pinned partition; parts: the partitions there were at that moment */
static uint32_t until, part[PARTS], parts;
static bool jumped;

void __real_fdri_leave_slots(struct fdri_thread *t, const struct fdri_arena_part *p);
void __wrap_fdri_leave_slots(struct fdri_thread *t, const struct fdri_arena_part *p);
void __wrap_fdri_leave_slots(struct fdri_thread *t, const struct fdri_arena_part *p)
{
    if (until && !--until) {
        parts = 0;
        for (uint32_t off = t->loc->parts_first; off;
             off = ((const struct fdri_arena_part *)fdri_thread_at(t, off))->next)
            if ((uint32_t)((const struct fdri_arena_part *)fdri_thread_at(t, off))->list_head) part[parts++] = off;
        jumped = true;
        longjmp(away, 1);
    }
    __real_fdri_leave_slots(t, p);
}

static void present(uint32_t events)
{
    static volatile uint32_t i;
    static uint64_t seed = 88172645463325252u, now = 1000;
    i = 0;
    setjmp(away); /* a jump continues with the next event */
    while (i++ < events) {
        uint32_t depth = fdri_record_self.loc ? fdri_record_self.loc->depth : 0;
        if (parts && fdri_record_self.loc->abandoned && !fdri_record_self.pinning) return;
        now += rnd(&seed, 30) == 0 ? rnd(&seed, 20000) : rnd(&seed, 60);
        if (rnd(&seed, 20) == 0) fdr_marker_at(1, i, now);
        else if (!depth || (depth < DEPTH && rnd(&seed, 2))) fdr_enter_at(region[rnd(&seed, REGIONS)], now);
        else fdr_leave_at(fdri_record_self.top->region, now);
    }
}

static void all_are_pinned(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 12; n++) {
        begin(&(struct fdr_config){.strategy = "telescope", .buffer = "1M", .pin = "1ms"});
        for (int i = 0; i < REGIONS; i++)
            region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "pin_left.c", 1);
        until = n;
        jumped = false;
        present(100000);
        assert_true(jumped && parts > 12);
        for (uint32_t i = 0; i < parts; i++)
            assert_true(((const struct fdri_arena_part *)fdri_thread_at(&fdri_record_self, part[i]))->flags &
                        FDRI_ARENA_PART_PINNED);
        parts = 0;
        present(300000);
        struct fdr_file *f = take();
        assert_true(fdr_location_info(f, 0)->pinned_to_ns > 0);
        balance(f);
        end(f);
    }
}

/* A longjmp left the thread before it noted that pinning was done. A second round must not pin a second partition
 * of the same kind, because no reader could order the two. */
static void not_a_second_time(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "4M", .pin = "1000s"});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "pin_left.c", 1);
    present(3000);
    fdri_record_self.pinning = 1;
    fdri_record_self.pinning_due = true;
    fdri_record_self.pinning_done = false;
    fdri_record_self.loc->busy = 1; /* set by a frame that no longer exists */
    while (fdri_record_self.loc->depth)
        fdr_leave_at(fdri_record_self.top->region, fdri_record_self.presented_tick + 10);
    present(30000);
    assert_true(fdri_record_self.pinned_units > 0 && fdri_record_self.pinning_done);
    for (uint32_t off = fdri_record_self.loc->parts_first; off;) {
        const struct fdri_arena_part *p = fdri_thread_at(&fdri_record_self, off);
        if (p->flags & FDRI_ARENA_PART_PINNED)
            assert_ptr_equal(fdri_aside_of(&fdri_record_self, p->depth, p->class_, p->band), p);
        off = p->next;
    }
    struct fdr_file *f = take();
    balance(f);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_pinned), cmocka_unit_test(not_a_second_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
