/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads promise=P8,P9
 * P8, P9: the reader sets every field of an event, whatever the caller's memory held before. This holds for recordings
 * of one thread and for reading one location after another. Only samples have a path. */
#include "tests/support/api_fixture.h"

static void *other_thread(void *region)
{
    FDR_REGION("of another thread") { fdr_enter_at((fdr_region)(uintptr_t)region, 7); }
    return NULL;
}

static void record(bool two_threads)
{
    fdr_region outer = fdr_region_define("outer", NULL, 0), inner = fdr_region_define("inner", NULL, 0);
    fdr_marker_id marker = fdr_marker_define("marker");
    fdr_enter(outer);
    for (int i = 0; i < 100; i++) {
        FDR_REGION("call") {}
        if (i == 50) fdr_marker(marker, 1);
    }
    fdr_enter(inner); /* both stay open */
    struct fdr_sampled *s = fdr_sampled_open(1, "sampled", FDR_BY_WALL_TIME, 1000);
    fdr_sample(s, &(struct fdr_look){.weight = 1, .pc = 4711, .path = &outer, .path_count = 1});
    fdr_sampled_close(s);
    pthread_t t;
    if (two_threads && !pthread_create(&t, NULL, other_thread, (void *)(uintptr_t)inner)) pthread_join(t, NULL);
}

static unsigned look(struct fdr_file *f, const struct fdr_select *select)
{
    struct fdr_iter *it = fdr_iter_open(f, select);
    struct fdr_read_event e;
    unsigned n = 0, samples = 0;
    for (memset(&e, 0xa5, sizeof e); fdr_iter_next(it, &e); memset(&e, 0xa5, sizeof e), n++) {
        bool sample = e.kind == FDR_SAMPLE;
        assert_int_equal(e.sample != NULL, sample);
        if (sample) assert_int_equal(e.sample->pc, 4711);
        assert_in_range(e.kind, FDR_ENTER, FDR_EVENT);
        assert_int_equal(e.field_count, e.kind == FDR_MARKER);
        assert_false(e.filtered || e.not_over || e.reduced);
        samples += sample;
    }
    fdr_iter_close(it);
    assert_in_range(samples, !select || !select->locations, 1);
    return n;
}

static void events_are_whole(void **state)
{
    (void)state;
    for (int two = 0; two < 2; two++) {
        begin(NULL);
        record(two);
        struct fdr_file *f = take();
        uint32_t first = fdr_location_info(f, 0)->id;
        struct fdr_select one = {.locations = &first, .location_count = 1}, turn = {.one_location_after_another = true};
        unsigned all = look(f, NULL);
        assert_int_equal(look(f, &turn), all);
        one.one_location_after_another = true;
        assert_in_range(look(f, &one), 200, all);
        end(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(events_are_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
