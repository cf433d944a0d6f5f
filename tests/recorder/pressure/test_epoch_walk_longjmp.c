/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads,slow timeout=300 promise=P2,P5 excuse=x86-64
 * ctest: without=asan,tsan (steps single instructions)
 * P2, P5: each enter walks some totals rows of an ended epoch. A handler leaves this by longjmp, or leaves the end
 * or a merge of epochs. The epochs must still add up to the totals, their memory is used again, and calls return to
 * the fast path. */
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/strategy/reduce.h"
#include "tests/support/api_fixture.h"

#include "recorder/strategy/reduce.h"
#include "tests/support/single_step.h"

#ifdef CAN_STEP
#include "recorder/thread/arena_place.h"
#include "tests/support/random_numbers.h"

enum {
    REGIONS = 700,
    LATER = 3000,
    MANY = 20000,
    TIMES = 120,
    INSTRUCTIONS = 4000,
    CALLS_MOST = 2000000,
    BUFFER = 4 << 20
};
static fdr_region region[REGIONS + LATER + MANY], next;
static uint64_t seed = 88172645463325252u;

static void enter(void) { fdr_enter(next); }
static void leave(void) { fdr_leave(next); }
static void call(void)
{
    next = region[rnd(&seed, REGIONS)];
    fdr_enter(next);
    fdr_leave(next);
}

static struct fdri_arena_epochs *epochs(void)
{
    return fdri_record_self.loc ? fdri_strategy_epochs(&fdri_record_self) : NULL;
}

static uint32_t left, anew;
static bool walks(void) { return epochs() && epochs()->totals_pending; }

struct sums {
    uint64_t calls, inclusive, exclusive;
};
static void add(struct sums *s, uint64_t calls, uint64_t inclusive, uint64_t exclusive)
{
    s->calls += calls;
    s->inclusive += inclusive;
    s->exclusive += exclusive;
}

/* Compares the epochs, and the rows since the last one, with the totals rows from which they are computed. */
static void look(uint32_t time)
{
    const struct fdri_arena_epochs *e = epochs();
    struct sums told = {0}, rows = {0};
    assert_true(!(e->version & 1));
    assert_int_equal(e->totals_pending != 0, fdri_record_self.walk.block != 0);
    for (uint32_t i = 0; i < e->count; i++) {
        const struct fdri_arena_epoch *x = &e->epoch[i];
        const struct fdri_arena_epoch_rows *b = x->rows_off ? fdri_thread_at(&fdri_record_self, x->rows_off) : NULL;
        struct sums its = {0};
        add(&told, x->calls, x->inclusive, x->exclusive);
        if (!b) continue;
        add(&its, b->rest_calls, b->rest_inclusive, b->rest_exclusive);
        for (uint32_t k = 0; k < b->count; k++) add(&its, b->row[k].calls, b->row[k].inclusive, b->row[k].exclusive);
        if (its.calls != x->calls || its.inclusive != x->inclusive || its.exclusive != x->exclusive)
            fail_msg("time %u: the rows of epoch %u are not its sums", time, i);
    }
    for (uint32_t off = e->base_first; off;) {
        const struct fdri_arena_epoch_base *b = fdri_thread_at(&fdri_record_self, off);
        for (uint32_t k = 0; k < b->count; k++) {
            const struct fdri_arena_row *r = fdri_thread_at(&fdri_record_self, b->row[k].row_off);
            if (!fdri_arena_row_of_calls(r->key)) continue;
            add(&rows, r->calls, r->sum, r->exclusive);
            add(&told, r->calls - b->row[k].calls, r->sum - b->row[k].sum, r->exclusive - b->row[k].exclusive);
        }
        off = b->next;
    }
    if (told.calls != rows.calls || told.inclusive != rows.inclusive || told.exclusive != rows.exclusive)
        fail_msg("time %u: epochs have %llu calls, totals %llu", time, (unsigned long long)told.calls,
                 (unsigned long long)rows.calls);
}

/* Leaves an operation that another one may follow. */
static void leave_one(void (*f)(void))
{
    left += leave_at(f, 1 + rnd(&seed, INSTRUCTIONS));
    anew += epochs() && epochs()->version & 1;
    call();
    while (fdri_record_self.loc->depth) fdr_leave(fdri_record_self.top->region);
}

/* The next leave may end an epoch or merge two. */
static void epoch_due(void)
{
    next = region[rnd(&seed, REGIONS)];
    fdr_enter(next);
    leave_one(leave);
    if (epochs()) look(TIMES);
}

static void start(int regions)
{
    begin(&(struct fdr_config){.strategy = "telescope", .buffer = "4M", .timer = "tsc"});
    assert_int_equal(fdri_life_recording.arena.super->arena_bytes, BUFFER);
    define_regions(region, regions);
    steps_begin();
}

static void until_it_walks(void)
{
    for (uint32_t n = 0; !walks(); n++) {
        assert_true(n < CALLS_MOST);
        call();
    }
}

static void P5_left_while_rows_are_walked(void **state)
{
    uint32_t to_the_end = 0;
    (void)state;
    start(REGIONS);
    for (uint32_t time = 0; time < TIMES; time++) {
        for (uint32_t n = 0; !walks(); n++) {
            assert_true(n < CALLS_MOST);
            if (fdri_record_self.deferred & FDRI_LATER_EPOCH && !rnd(&seed, 4)) epoch_due();
            else call();
        }
        for (uint32_t n = rnd(&seed, 3); n--;) call();
        next = region[rnd(&seed, REGIONS)];
        leave_one(time % 4 ? enter : leave);
        look(time);
        for (uint32_t n = 0; walks(); n++) {
            assert_true(n < REGIONS);
            call();
            if (!walks()) to_the_end++;
        }
        assert_true(!fdri_record_self.walk.block && fdri_record_self.slow_depth); /* the fast path */
        look(time);
    }
    assert_true(left > TIMES / 4 && anew && anew < left && to_the_end); /* else the test proves nothing */
    struct fdr_file *f = take();
    fdr_file_close(f);
    fdr_finalize();
}

static uint32_t places_taken(void)
{
    const struct fdri_arena_epoch_rows *kept = fdri_thread_at(&fdri_record_self, fdri_record_self.walk.old_values_off);
    uint32_t n = 0;
    for (uint32_t i = 0; i < fdri_strategy_epoch_room(kept); i++) n += kept->row[i].key != 0;
    return n;
}

/* Each enter that walks rows needs a place for its results. If a longjmp left it between the place and the walk,
 * several times, all places would be taken and later calls would find none. */
static void P2_no_place_without_a_step(void **state)
{
    uint32_t n = 0, places, at, block;
    (void)state;
    start(REGIONS);
    until_it_walks();
    places = places_taken();
    at = fdri_record_self.walk.row;
    block = fdri_record_self.walk.block;
    for (next = region[0]; leave_at(enter, ++n);) {
        if (epochs()->version & 1) break;
        assert_true(fdri_record_self.walk.row == at && fdri_record_self.walk.block == block);
        if (places_taken() != places) fail_msg("left at %u: a place is taken, and no row was looked at", n);
        fdr_thread_name("mends");
    }
    assert_true(n > 50 && epochs()->version & 1); /* else the test proves nothing */
    fdr_thread_name("mends");
    assert_true(!walks() && fdri_record_self.slow_depth);
    look(n);
    fdr_finalize();
}

static fdr_region half_made[LATER]; /* regions whose rows are only half made */

/* Compares all totals rows of calls with the rows that the base names. The base may name further rows, without a
 * call, if their creation was left. Returns the number of these. */
static uint32_t each_has_its_place(uint32_t n)
{
    static uint8_t in_the_table[BUFFER / sizeof(struct fdri_arena_row)];
    const struct fdri_arena_epochs *e = epochs();
    uint32_t rows = 0, named = 0, alone = 0;
    memset(in_the_table, 0, sizeof in_the_table);
    for (uint32_t i = 0; i < 1u << (32 - fdri_record_self.row_shift); i++) {
        uint32_t off = fdri_record_self.row_slot[i];
        in_the_table[off / sizeof(struct fdri_arena_row)] = off != 0;
        rows += off && fdri_arena_row_of_calls(((struct fdri_arena_row *)fdri_thread_at(&fdri_record_self, off))->key);
    }
    for (uint32_t off = e->base_first; off;) {
        const struct fdri_arena_epoch_base *b = fdri_thread_at(&fdri_record_self, off);
        for (uint32_t k = 0; k < b->count; k++) {
            if (in_the_table[b->row[k].row_off / sizeof(struct fdri_arena_row)]) continue;
            const struct fdri_arena_row *r = fdri_thread_at(&fdri_record_self, b->row[k].row_off);
            if (r->calls || r->untimed) fail_msg("left at %u: a row with calls is in no slot", n);
            half_made[alone++ % LATER] = r->key & 0xffffffu;
        }
        named += b->count;
        off = b->next;
    }
    if (named != rows + alone || e->tracked < named || e->untracked)
        fail_msg("left at %u: %u rows, %u and %u alone in the base, %u counted there", n, rows, named - alone, alone,
                 e->tracked);
    return alone;
}

static void begin_anew(void) { fdri_strategy_epoch_rows_anew(&fdri_record_self, epochs()); }

/* Left at each instruction while the rows of the base begin anew: the base must name the same rows as before. */
static void P5_left_when_they_begin_anew(void **state)
{
    enum { LOOKS = 200 };
    (void)state;
    start(REGIONS);
    for (uint32_t i = 0; i < CALLS_MOST && !epochs(); i++) call();
    assert_non_null(epochs());
    const struct fdri_arena_epoch_base *b = fdri_thread_at(&fdri_record_self, epochs()->base_first);
    uint32_t named[LOOKS], count = b->count < LOOKS ? b->count : LOOKS;
    for (uint32_t k = 0; k < count; k++) named[k] = b->row[k].row_off;
    for (uint32_t n = 1; n <= LOOKS; n++) {
        assert_true(leave_at(begin_anew, n));
        for (uint32_t k = 0; k < count; k++)
            if (b->row[k].row_off != named[k]) fail_msg("left at %u: row %u is another one", n, k);
    }
    fdr_finalize();
}

/* Left at some instruction of the first call of a function. The epochs must still contain that function's later
 * calls. Returns the number of rows that only the base names. */
static uint32_t leave_rows_half_made(void)
{
    enum { MOST = 700 }; /* instructions: more than the first call of a function has until its row is there */
    uint32_t alone = 0;
    for (uint32_t i = 0; i < CALLS_MOST && !epochs(); i++) call();
    assert_non_null(epochs());
    for (uint32_t known = REGIONS; known < REGIONS + LATER; known += 2) {
        uint32_t n = 1 + rnd(&seed, MOST);
        fdr_enter(region[known]); /* the next calls may find more room for rows */
        fdr_leave(region[known]);
        next = region[known + 1];
        leave_at(enter, n);
        fdr_thread_name("mends");
        while (fdri_record_self.loc->depth) fdr_leave(fdri_record_self.top->region);
        alone = each_has_its_place(n);
    }
    assert_true(alone); /* else the test proves nothing */
    return alone;
}

/* When two epochs are shown as one, each region has one row in it. Returns the last epoch with rows. */
static size_t each_is_told_once(void)
{
    struct fdr_file *f = take();
    const struct fdr_epoch_total *row;
    size_t count = fdr_epoch_totals(f, &row), last = 0;
    static uint32_t told[FDRI_ARENA_EPOCHS_MAX][REGIONS + LATER + MANY + 1];
    memset(told, 0, sizeof told);
    for (size_t i = 0; i < count; i++) {
        if (row[i].rest) continue;
        if (told[row[i].epoch][row[i].region]++) fail_msg("region %u twice in epoch %u", row[i].region, row[i].epoch);
        if (row[i].epoch >= last) last = row[i].epoch;
    }
    assert_true(count > 0); /* else the test proves nothing */
    fdr_file_close(f);
    return last;
}

static void P5_left_when_a_row_is_made(void **state)
{
    size_t last = 0;
    (void)state;
    start(REGIONS + LATER);
    uint32_t alone = leave_rows_half_made();
    look(0);
    for (uint32_t i = 0; !last || walks(); i++) { /* until a file has two epochs */
        assert_true(i < CALLS_MOST);
        next = half_made[rnd(&seed, alone)];
        fdr_enter(next);
        fdr_leave(next);
        if (walks()) last = each_is_told_once();
    }
    fdr_finalize();
}

/* If there is no room for more rows, regions take over the half-made rows first. */
static void P5_rows_half_made_are_used(void **state)
{
    (void)state;
    start(REGIONS + LATER + MANY);
    uint32_t alone = leave_rows_half_made();
    for (uint32_t known = REGIONS; known < REGIONS + LATER + MANY && alone; known++) {
        fdr_enter(region[known]);
        fdr_leave(region[known]);
        if (!fdri_record_self.loc->rows_folded && known % 64) continue;
        alone = each_has_its_place(known);
    }
    assert_int_equal(alone, 0);
    while (walks()) call();
    look(0);
    fdr_finalize();
}

/* A recording ends while rows are walked. In the next recording, the first end of an epoch is left before it has
 * begun. State of the first recording must not be taken for a block of the second. */
static void P5_of_another_recording(void **state)
{
    uint32_t n = 0;
    (void)state;
    start(REGIONS);
    until_it_walks();
    fdr_finalize();
    start(REGIONS);
    for (uint32_t i = 0; i < CALLS_MOST && !epochs(); i++) call();
    assert_non_null(epochs());
    do {
        fdri_record_self.deferred |= FDRI_LATER_EPOCH;
        assert_true(leave_at(fdri_do_later, ++n));
        if (!(epochs()->version & 1)) fdr_thread_name("mends");
    } while (!(epochs()->version & 1));
    fdr_thread_name("mends");
    for (uint32_t off = epochs()->spare_rows_off; off;) {
        const struct fdri_arena_epoch_rows *b = fdri_thread_at(&fdri_record_self, off);
        if (b->head.kind != FDRI_ARENA_META_EPOCHROWS || b->head.location != fdri_record_self.loc->id)
            fail_msg("left at %u: a block of rows at %u that is none", n, off);
        off = b->count;
    }
    look(n);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P5_left_while_rows_are_walked), cmocka_unit_test(P2_no_place_without_a_step),
        cmocka_unit_test(P5_left_when_they_begin_anew),  cmocka_unit_test(P5_left_when_a_row_is_made),
        cmocka_unit_test(P5_rows_half_made_are_used),    cmocka_unit_test(P5_of_another_recording)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
