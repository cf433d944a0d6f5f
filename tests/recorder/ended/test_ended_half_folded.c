/* SPDX-License-Identifier: MIT */
/* ctest: label=threads,slow timeout=120 promise=P3,P5 without=asan,tsan (its threads take turns)
 * P3, P5: a snapshot may find a thread half merged into [ended]. It must then mark the thread's location as
 * `folding`. A location without that mark must show all rows and all calls of its thread. */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

enum { DEEP = 180, CALLS = 5000, MOST = 4000 };
static uint64_t now = 1000000, all;

static void *folded(void *unused)
{
    uint64_t t = 1000000;
    fdr_thread_name("folded");
    for (uint32_t d = 1; d <= DEEP; d++) fdr_enter_at(d, t += 100);
    for (uint32_t d = DEEP; d; d--) fdr_leave_at(d, t += 100);
    for (uint32_t i = 0; i < CALLS; i++) fdr_enter_at(1 + i % DEEP, t += 20), fdr_leave_at(1 + i % DEEP, t += 20);
    all = DEEP + CALLS;
    return unused;
}

static void go_on(void)
{
    static uint64_t seed = 5;
    static uint32_t depth;
    for (int i = 0; i < 300; i++) {
        now += 1 + rnd(&seed, 200);
        if (depth < 1 || (depth < 8 && rnd(&seed, 2))) fdr_enter_at(++depth, now);
        else fdr_leave_at(depth--, now);
    }
}

static const struct fdr_location_info *the_folded(struct fdr_file *f)
{
    for (size_t i = 0; i < fdr_location_count(f); i++)
        if (!strcmp(fdr_location_info(f, i)->name, "folded")) return fdr_location_info(f, i);
    return NULL;
}

/* Does the location show all calls of the thread? */
static bool is_whole(struct fdr_file *f, uint32_t location)
{
    const struct fdr_ledger_row *row;
    const struct fdr_total *total;
    uint64_t presented = 0, calls = 0;
    for (size_t n = fdr_ledger(f, &row); n--;) presented += row[n].location == location ? row[n].presented : 0;
    for (size_t n = fdr_totals(f, &total); n--;) calls += total[n].location == location ? total[n].calls : 0;
    return presented == all && calls == all;
}

static void P3_P5_half_folded_location_counts_once(void **state)
{
    uint32_t whole = 0, partly = 0, steps = 0;
    const struct fdr_location_info *l;
    pthread_t t;
    (void)state;
    begin(&(struct fdr_config){.buffer = "1M", .keep = "2,newest"});
    assert_int_equal(pthread_create(&t, NULL, folded, NULL), 0);
    pthread_join(t, NULL);
    for (struct fdr_file *f = take();; f = take()) {
        if (!(l = the_folded(f))) {
            fdr_file_close(f);
            break;
        }
        if (is_whole(f, l->id)) whole += !l->folding;
        else assert_true(l->folding), partly++;
        fdr_file_close(f);
        assert_true(steps++ < MOST);
        go_on();
    }
    print_message("%u snapshots of all of it, %u of a part\n", whole, partly);
    assert_true(whole > 0 && partly > 0);
    end(take());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_P5_half_folded_location_counts_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
