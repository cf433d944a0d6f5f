/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P3,P8
 * ctest: wrap=fdri_strategy_made,fdri_strategy_sealed,fdri_join_look
 * P3, P8: a longjmp leaves an operation while it makes a partition or joins bands. The next operation must find
 * that partition and not make a second one of the same kind. No reader could order the two. Wrapped functions give
 * the test the place of the jump. */
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

enum { REGIONS = 16, DEPTH = 24 };
static fdr_region region[REGIONS];
static jmp_buf away;
static uint64_t seed, now;
/* jump at the nth partition made, or at the nth one sealed by a join; 0: never */
static uint32_t made_until, ended_until;
static uint32_t room_until; /* or at the nth search for room */
static uint32_t jumps;
static bool joining;

static void count_down(uint32_t *until)
{
    if (!*until || --*until) return;
    joining = false;
    jumps++;
    longjmp(away, 1);
}

void __real_fdri_strategy_made(struct fdri_thread *t, struct fdri_arena_part *p);
void __wrap_fdri_strategy_made(struct fdri_thread *t, struct fdri_arena_part *p);
void __wrap_fdri_strategy_made(struct fdri_thread *t, struct fdri_arena_part *p)
{
    count_down(&made_until);
    __real_fdri_strategy_made(t, p);
}
void __real_fdri_strategy_sealed(struct fdri_thread *t, struct fdri_arena_part *p);
void __wrap_fdri_strategy_sealed(struct fdri_thread *t, struct fdri_arena_part *p);
void __wrap_fdri_strategy_sealed(struct fdri_thread *t, struct fdri_arena_part *p)
{
    if (joining) count_down(&ended_until);
    __real_fdri_strategy_sealed(t, p);
}
void __real_fdri_join_look(struct fdri_thread *t);
void __wrap_fdri_join_look(struct fdri_thread *t);
void __wrap_fdri_join_look(struct fdri_thread *t)
{
    count_down(&room_until);
    joining = true;
    __real_fdri_join_look(t);
    joining = false;
}

static void start(const char *depth)
{
    seed = 11;
    now = 1000000;
    jumps = 0;
    begin(&(struct fdr_config){
        .strategy = "telescope", .buffer = "256K", .depth = depth, .timer = depth ? oracle_clock("tsc") : NULL});
    for (int i = 0; i < REGIONS; i++)
        region[i] = fdr_region_define((const char[]){(char)('a' + i), 0}, "abandoned.c", 1);
}

static void present(uint32_t events)
{
    static volatile uint32_t i;
    i = 0;
    setjmp(away); /* a jump continues with the next event */
    while (i < events) {
        uint32_t what = rnd(&seed, 40), depth = fdri_record_self.loc ? fdri_record_self.loc->depth : 0;
        i++;
        now += rnd(&seed, 40) == 0 ? rnd(&seed, 20000) : rnd(&seed, 300);
        if (depth < 1 || (depth < DEPTH && what <= 20)) fdr_enter_at(region[rnd(&seed, REGIONS)], now);
        else fdr_leave_at(fdri_record_self.top->region, now);
    }
}

/* There is at most one partition of each class, depth and band. */
static void no_two_of_a_kind(void)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    const struct fdri_arena_part *p, *q;
    for (uint32_t i = fdri_record_self.loc->parts_first; i; i = p->next) {
        p = fdri_bins_at(a, i);
        for (uint32_t k = p->next; k; k = q->next) {
            q = fdri_bins_at(a, k);
            assert_false(p->class_ == q->class_ && p->depth == q->depth && p->band == q->band);
        }
    }
}

static void whole(void)
{
    no_two_of_a_kind();
    assert_true(jumps > 0);
    assert_true(fdri_record_self.loc->abandoned > 0);
    end(take()); /* take() fails if the file is damaged */
}

static void P8_while_a_partition_is_made(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 40; n++) {
        start(NULL);
        made_until = n;
        present(20000);
        made_until = 0;
        whole();
    }
}

static void P8_while_bands_become_one(void **state)
{
    (void)state;
    for (uint32_t n = 1; n < 60; n++) {
        start(NULL);
        ended_until = n;
        present(20000);
        ended_until = 0;
        assert_true(fdri_record_self.live_parts <= 4 * DEPTH);
        assert_true(fdri_record_self.loc->flags & FDRI_ARENA_LOCATION_JOINED_ALL);
        if (jumps) whole();
        else end(take());
    }
}

/* Calls below FDR_DEPTH take a path of their own, which only counts. It must repair an abandoned operation before
 * it changes the depth; afterwards the repair could not tell which call was left. */
static void among_calls_that_are_only_counted(uint32_t events)
{
    static volatile uint32_t i;
    i = 0;
    setjmp(away);
    while (i < events) {
        uint32_t what = rnd(&seed, 3), depth = fdri_record_self.loc ? fdri_record_self.loc->depth : 0;
        i++;
        if (!what) fdr_marker(1, i);
        else if (depth < 2 || (depth < DEPTH && what == 1)) fdr_enter(region[rnd(&seed, REGIONS)]);
        else fdr_leave(fdri_record_self.top->region);
    }
}

static void P3_among_calls_that_are_only_counted(void **state)
{
    uint32_t left = 0;
    (void)state;
    for (uint32_t n = 1; n < 40; n++) {
        start("2");
        fdr_marker_define("m");
        room_until = n;
        among_calls_that_are_only_counted(20000);
        room_until = 0;
        left += jumps;
        struct fdr_file *f = take();
        balance(f);
        end(f);
    }
    assert_true(left > 30);
}

/* ---- signals at any moment ---- */

static sigjmp_buf out;
static volatile sig_atomic_t may, hits;
static void leave_it(int number)
{
    (void)number;
    if (!may || ++hits % 7) return;
    may = 0;
    siglongjmp(out, 1);
}

/* Makes calls until `most` operations were left in the middle. */
static void leave_some(fdr_region a, fdr_region b, uint32_t most)
{
    struct itimerval often = {{0, 97}, {0, 97}}, never = {{0, 0}, {0, 0}};
    static volatile uint32_t left;
    left = 0;
    setitimer(ITIMER_REAL, &often, NULL);
    for (volatile uint32_t n = 0; n < 5000 * most && left < most; n++) {
        if (sigsetjmp(out, 1)) left++;
        may = 1;
        fdr_enter(a), fdr_enter(b), fdr_leave(b), fdr_leave(a);
        may = 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

/* A handler leaves the operation on an open call by longjmp. The call must stay open and stay in the accounts. */
static void P3_while_memory_is_given_back(void **state)
{
    (void)state;
    signal(SIGALRM, leave_it);
    for (volatile int round = 0; round < 8; round++) {
        begin(&(struct fdr_config){.buffer = "512K", .timer = round % 2 ? oracle_clock("tsc") : NULL});
        fdr_region a = fdr_region_define("a", NULL, 0), b = fdr_region_define("b", NULL, 0);
        leave_some(a, b, 60);
        struct fdr_file *f = take();
        balance(f);
        fdr_file_close(f);
        fdr_finalize(); /* bins that were about to be given back stay unused; that is a known limit */
    }
    signal(SIGALRM, SIG_DFL);
}

/* Strategy `first` has stopped storage. Calls that were open then belong to no partition and no account, and count
 * as kept. */
static void P3_when_storing_has_stopped(void **state)
{
    (void)state;
    signal(SIGALRM, leave_it);
    begin(&(struct fdr_config){.buffer = "192K", .strategy = "first"});
    fdr_region a = fdr_region_define("a", NULL, 0), b = fdr_region_define("b", NULL, 0);
    fdr_enter(a), fdr_enter(b);
    while (!(fdri_record_self.loc->flags & FDRI_ARENA_LOCATION_STOPPED)) fdr_enter(a), fdr_leave(a);
    fdr_leave(b), fdr_leave(a);
    for (int round = 0; round < 20; round++) {
        leave_some(a, b, 50);
        /* all of these calls have a level, so a loop over the depth ends them */
        while (fdri_record_self.loc->depth) fdr_leave(fdri_record_self.top->region);
    }
    struct fdr_file *f = take();
    balance(f);
    end(f);
    signal(SIGALRM, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P8_while_a_partition_is_made), cmocka_unit_test(P8_while_bands_become_one),
        cmocka_unit_test(P3_among_calls_that_are_only_counted), cmocka_unit_test(P3_while_memory_is_given_back),
        cmocka_unit_test(P3_when_storing_has_stopped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
