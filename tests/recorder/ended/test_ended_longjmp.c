/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=240 promise=P3,P8 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions)
 * P3, P8: a handler leaves the merging of ended threads by longjmp, at each instruction (of long operations, at
 * every few). It also does so while another thread claims bins of the first ended thread. In the end, all ended
 * threads are merged and no event is missing. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bins/claims.h"
#include "format/arena/arena.h"
#include "recorder/ended/ended.h"
#include "recorder/recording.h"
#include "recorder/share_state.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
enum { REGIONS = 5, THREADS = 3, CALLS = 150, EACH = 150, MOST = 4000, ROUNDS = 4000, A_RECORDING = 30 };
static fdr_region region[REGIONS];
static uint64_t seed, now, presented;

static void present(uint32_t calls)
{
    for (uint32_t i = 0; i < calls; i++) {
        fdr_region outer = region[rnd(&seed, REGIONS)], inner = region[rnd(&seed, REGIONS)];
        fdr_enter_at(outer, ++now);
        fdr_enter_at(inner, ++now);
        fdr_leave_at(inner, now += rnd(&seed, 1000));
        fdr_leave_at(outer, now += rnd(&seed, 10000));
        presented += 2;
    }
}

static void *thread(void *unused)
{
    (void)unused;
    present(CALLS);
    return NULL;
}

static void start(void)
{
    begin(&(struct fdr_config){
        .strategy = rnd(&seed, 2) ? "telescope" : "last", .buffer = "512K", .bin = rnd(&seed, 2) ? "512" : "4K"});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "ended_steps.c", 1);
    presented = 0;
    present(1);
}

static void room(void)
{
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_NO_EVENT);
    fdri_ended_room(t, FDRI_ENDED_FOR_POOR);
    fdri_thread_end(t);
}

static struct fdri_arena_location *first_ended(void)
{
    const struct fdri_shares *s = &fdri_life_recording.shares;
    return fdri_thread_at(&fdri_record_self, s->ended_first ? s->ended_first : s->ended_first_new);
}

/* Number of ended threads that are not merged yet. */
static uint32_t left_over(void)
{
    uint32_t left = 0;
    for (uint32_t off = fdri_life_recording.arena.super->location_first; off;) {
        const struct fdri_arena_location *l = fdri_thread_at(&fdri_record_self, off);
        left += !(l->flags & (FDRI_ARENA_LOCATION_LIVE | FDRI_ARENA_LOCATION_FREE | FDRI_ARENA_LOCATION_ENDED));
        off = l->next;
    }
    return left;
}

/* Does a location have this flag? While it has, a copier in another process takes the location for merged. */
static bool one_moves(void)
{
    uint32_t flags = 0;
    for (uint32_t off = fdri_life_recording.arena.super->location_first; off;) {
        const struct fdri_arena_location *l = fdri_thread_at(&fdri_record_self, off);
        flags |= l->flags;
        off = l->next;
    }
    return flags & FDRI_ARENA_LOCATION_MOVING;
}

static void at_each_instruction(bool claimed)
{
    uint32_t n = 1, tried = 0;
    for (; n < MOST; n += n < EACH ? 1 : 1 + rnd(&seed, n / 8), tried++) {
        if (tried % A_RECORDING == 0) start();
        for (int i = 0; i < THREADS; i++) {
            pthread_t it;
            assert_int_equal(pthread_create(&it, NULL, thread, NULL), 0);
            pthread_join(it, NULL);
        }
        struct fdri_arena_location *l = first_ended();
        uint32_t place = claimed
                             ? fdri_bins_claim_enter(&fdri_life_recording.arena, fdri_life_recording.shares.spare[0], l)
                             : 0;
        assert_int_equal(place != 0, claimed);
        if (!claimed)
            for (uint32_t i = rnd(&seed, 60); i; i--) room();
        leave_at(room, n);
        present(1);
        if (one_moves()) fail_msg("left at %u: accounts are on their way for good", n);
        if (claimed) fdri_bins_claim_leave(&fdri_life_recording.arena, place);
        for (uint32_t i = 0; i < ROUNDS && fdri_life_recording.shares.ended_last; i++) room();
        if (left_over()) fail_msg("left at %u: %u threads that ended are not worked off", n, left_over());
        if (tried % A_RECORDING != A_RECORDING - 1) continue;
        struct fdr_file *f = take();
        assert_int_equal(balance(f), presented);
        fdr_file_close(f);
    }
    fdr_finalize();
}

static void P8_longjmp_from_a_fold_beside_a_claimer(void **state)
{
    (void)state;
    at_each_instruction(true);
}

static void P3_longjmp_from_a_fold(void **state)
{
    (void)state;
    at_each_instruction(false);
}

int main(void)
{
    steps_begin();
    seed = 11;
    now = 1000000;
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_longjmp_from_a_fold_beside_a_claimer),
                                       cmocka_unit_test(P3_longjmp_from_a_fold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
