/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=300 promise=P3,P4
 * P3, P4: a snapshot of a thread that goes on recording has every event up to its cut. No call that was open then is
 * shown as reduced. */
#include "tests/support/api_fixture.h"
#include "tests/support/sanitized.h"

enum { ROUNDS = SANITIZED ? 8000 : 300000, DEEPEST = 12, DEFINITIONS = SANITIZED ? 8000 : 40000 };

static bool done;

static void nested(uint32_t depth, uint64_t *count)
{
    fdr_enter(depth);
    if (depth < DEEPEST) nested(depth + 1, count);
    fdr_marker(1, (*count)++);
    fdr_leave(depth);
}

static void *work(void *unused)
{
    uint64_t count = 0;
    (void)unused;
    for (uint32_t i = 0; i < ROUNDS; i++) nested(1 + i % DEEPEST, &count);
    __atomic_store_n(&done, true, __ATOMIC_RELEASE);
    return NULL;
}

/* The buffer holds the whole run. So no event before the end of the snapshot may be missing. */
static void look(struct fdr_file *f)
{
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    uint64_t markers = 0, not_over = UINT64_MAX; /* depth of the outermost call that had not ended */
    while (fdr_iter_next(it, &e)) {
        if (e.kind == FDR_MARKER) assert_int_equal(e.field[0], markers++);
        if (e.kind != FDR_ENTER) continue;
        assert_true(e.depth > not_over || not_over == UINT64_MAX);
        assert_int_equal(e.reduced, e.not_over);
        if (e.not_over && e.depth < not_over) not_over = e.depth;
        if (!e.reduced) assert_true(e.id >= 1 && e.id <= DEEPEST);
    }
    fdr_iter_close(it);
}

static void P3_P4_all_events_up_to_the_cut_are_kept(void **state)
{
    pthread_t thread;
    (void)state;
    begin(&(struct fdr_config){.buffer = "64M", .bin = "512", .timer = "tsc"});
    for (uint32_t i = 0; i < DEFINITIONS;
         i++) { /* much to copy before the stack, so that the thread opens bins meanwhile */
        char name[200];
        snprintf(name, sizeof name, "%0150u", i);
        fdr_region_define(name, "", 0);
    }
    assert_int_equal(fdr_marker_define("count"), 1);
    __atomic_store_n(&done, false, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        struct fdr_file *f = take();
        look(f);
        fdr_file_close(f);
    }
    pthread_join(thread, NULL);
    struct fdr_file *f = take();
    look(f);
    assert_int_equal(fdr_usage().reduced + fdr_usage().lost, 0);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_P4_all_events_up_to_the_cut_are_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
