/* SPDX-License-Identifier: MIT */
/* ctest: label=signals timeout=240
 * Who takes bins of whose location: pinned, nobody enters, and who pins sees who is inside. What a handler left by
 * longjmp at any instruction of taking another's bins is over when its thread records again. */
#include "tests/api_fixture.h"

#include "tests/rnd.h"
#include "tests/steps.h"

#ifdef CAN_STEP
static void one_by_one(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "8M"});
    fdr_enter(fdr_region_define("a", NULL, 0));
    struct fdri_arena *a = &fdri_rec.arena;
    struct fdr_location *v = fdri_self.loc, *who = fdri_rec.shares.spare[0], *other = fdri_rec.shares.spare[1];
    assert_true(fdri_claim_pin(a, v));
    assert_int_equal(fdri_claim_enter(a, who, v), 0);
    fdri_claim_unpin(v);
    uint32_t first = fdri_claim_enter(a, who, v), second = fdri_claim_enter(a, other, v);
    assert_true(first && second && first != second);
    assert_false(fdri_claim_pin(a, v));
    fdri_claim_unpin(v);
    fdri_claim_leave(a, first);
    assert_false(fdri_claim_pin(a, v));
    fdri_claim_abandoned(a, who); /* which is inside no more */
    assert_false(fdri_claim_pin(a, v));
    fdri_claim_abandoned(a, other);
    assert_true(fdri_claim_pin(a, v));
    fdri_claim_unpin(v);
    fdr_finalize();
}

static void many(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "8M"});
    fdr_enter(fdr_region_define("a", NULL, 0));
    struct fdri_arena *a = &fdri_rec.arena;
    struct fdr_location *v = fdri_self.loc, *who = fdri_rec.shares.spare[0];
    uint32_t place, inside = 0, last = 0;
    while ((place = fdri_claim_enter(a, who, v))) inside++, last = place; /* the same one: all places it looks at */
    assert_in_range(inside, 2, FDRI_CLAIMERS);
    fdri_claim_leave(a, last);
    assert_int_equal(fdri_claim_enter(a, who, v), last);
    fdri_claim_abandoned(a, who);
    assert_true(fdri_claim_pin(a, v));
    fdri_claim_unpin(v);
    fdr_finalize();
}

enum { BUSY_CALLS = 60000, EACH = 400, MOST = 6000 };
static fdr_region region;
static uint64_t seed;
static struct fdr_location *rich;

static void calls(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        fdr_enter(region);
        fdr_leave(region);
    }
}

static void *fill(void *unused)
{
    calls(BUSY_CALLS);
    rich = fdri_self.loc;
    return unused;
}

static pthread_barrier_t filled, over;
static void *holds_all(void *unused)
{
    fill(NULL);
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&over);
    return unused;
}

static void take_of_rich(void)
{
    struct fdri_thread *t = fdri_begin(FDRI_NO_EVENT);
    uint32_t off = fdri_share_piece(t, fdri_rec.arena.bin_log2);
    if (off) fdri_piece_give(&fdri_rec.arena, t->loc, off, fdri_rec.arena.bin_log2);
    fdri_end(t);
}

static uint32_t inside(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < FDRI_CLAIMERS; i++) n += fdri_rec.arena.inside[i] != 0;
    return n;
}

static void P8_left_at_each_instruction(void **state)
{
    (void)state;
    uint32_t n = 1, seen = 0;
    bool left = true;
    while (left && n < MOST) {
        pthread_t t;
        begin(&(struct fdr_config){.buffer = "512K", .bin = "512"});
        region = fdr_region_define("b", NULL, 0);
        pthread_barrier_init(&filled, NULL, 2);
        pthread_barrier_init(&over, NULL, 2);
        assert_int_equal(pthread_create(&t, NULL, holds_all, NULL), 0);
        pthread_barrier_wait(&filled);
        calls(20);
        for (int i = 0; i < 60 && left && n < MOST; i++, n += n < EACH ? 1 : 1 + rnd(&seed, n / 20)) {
            left = leave_at(take_of_rich, n);
            seen += inside() != 0;
            calls(1);
            assert_int_equal(inside(), 0);
            assert_true(fdri_claim_pin(&fdri_rec.arena, rich));
            fdri_claim_unpin(rich);
            whole(n);
        }
        pthread_barrier_wait(&over);
        pthread_join(t, NULL);
        fdr_finalize();
    }
    assert_true(seen > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_by_one), cmocka_unit_test(many),
                                       cmocka_unit_test(P8_left_at_each_instruction)};
    steps_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
