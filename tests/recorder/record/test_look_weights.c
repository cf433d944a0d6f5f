/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P3,P8
 * P3: a look from outside stands for all periods since the look before, and those left out are counted, also when
 * samples are thinned. P8: its state is no open region, at any depth of the path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>

static char dir[64];
static struct fdr_sampled *stream;
static fdr_region state, region[300];

static void begin(const char *strategy, const char *buffer)
{
    struct fdr_config c = {.size = sizeof c, .arena = "anonymous", .buffer = buffer, .strategy = strategy, .dir = dir};
    snprintf(dir, sizeof dir, "/tmp/fdr-weights-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(fdr_init(&c), 0);
    assert_non_null(stream = fdr_sampled_open(4711, "thread", FDR_BY_WALL_TIME, 1000000));
    state = fdr_region_define("[blocked in poll]", "", 0);
    for (int i = 0; i < 300; i++) {
        char name[20];
        snprintf(name, sizeof name, "region %d", i);
        region[i] = fdr_region_define(name, "test", 1);
    }
}

static uint64_t look(uint64_t weight, uint32_t regions, uint64_t pc, uint32_t flags)
{
    fdr_region path[129];
    memcpy(path, region, regions * sizeof *path);
    path[regions] = state;
    struct fdr_look l = {
        .weight = weight, .pc = pc, .path = path, .path_count = regions + 1, .flags = FDR_LOOK_OUTSIDE | flags};
    return fdr_sample(stream, &l);
}

/* Takes a snapshot and opens it. */
static struct fdr_file *snapshot(void)
{
    struct fdr_file *f;
    char message[300];
    assert_int_equal(fdr_snapshot("end"), 0);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    unlink(fdr_last_snapshot());
    return f;
}

static void end(struct fdr_file *f)
{
    fdr_file_close(f);
    fdr_finalize();
    assert_int_equal(rmdir(dir), 0);
}

static const struct fdr_sample_stream *stream_of(struct fdr_file *f)
{
    const struct fdr_sample_stream *s;
    assert_int_equal(fdr_sample_streams(f, &s), 1);
    return s;
}

static void P8_state_is_no_open_region(void **unused)
{
    static const uint32_t depths[] = {0, 1, 20, 127};
    struct fdr_read_event e;
    struct fdr_select select = {.classes = 1u << FDR_IN_SAMPLE};
    (void)unused;
    begin("telescope", "8M");
    for (int i = 0; i < 4; i++) look(1, depths[i], i % 2 ? 0x1234 : 0, i == 2 ? FDR_LOOK_MOVED : 0);
    struct fdr_look plain = {.weight = 1, .pc = 99, .path = region, .path_count = 3};
    fdr_sample(stream, &plain);
    struct fdr_file *f = snapshot();
    struct fdr_iter *iter = fdr_iter_open(f, &select);
    for (int i = 0; i < 4; i++) {
        assert_true(fdr_iter_next(iter, &e));
        const struct fdr_sample_path *p = e.sample;
        assert_int_equal(p->region_count, depths[i]);
        assert_int_equal(e.depth, depths[i]);
        assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, p->state)->name, "[blocked in poll]");
        for (uint32_t k = 0; k < depths[i]; k++) assert_int_equal(p->region[k], region[k]);
        assert_int_equal(p->pc, i % 2 ? 0x1234 : 0);
        assert_int_equal(p->flags, i == 2 ? FDR_LOOK_MOVED : 0);
        assert_int_equal(p->frame_count, 0);
    }
    assert_true(fdr_iter_next(iter, &e));
    assert_true(e.sample->state == UINT32_MAX && e.sample->region_count == 3 && e.sample->pc == 99);
    assert_false(fdr_iter_next(iter, &e));
    fdr_iter_close(iter);
    end(f);
}

static void P3_looks_left_out_are_counted(void **unused)
{
    static const uint64_t weights[] = {1, 5, 1, 1, 300, 2};
    struct fdr_read_event e;
    struct fdr_select select = {.classes = 1u << FDR_IN_SAMPLE};
    uint64_t sum = 0;
    (void)unused;
    begin("telescope", "8M");
    for (int i = 0; i < 6; i++) look(weights[i], 2, 0, 0);
    struct fdr_file *f = snapshot();
    const struct fdr_sample_stream *s = stream_of(f);
    assert_int_equal(s->periods, 310);
    assert_int_equal(s->presented, 6);
    assert_int_equal(s->left_out, 310 - 6);
    assert_int_equal(s->unpathed, 0);
    struct fdr_iter *iter = fdr_iter_open(f, &select);
    for (int i = 0; fdr_iter_next(iter, &e); i++) {
        assert_int_equal(e.sample->weight, weights[i]);
        sum += e.sample->weight;
    }
    assert_int_equal(sum, 310);
    fdr_iter_close(iter);
    end(f);
}

/* With strategy `whole` a full buffer makes looks rarer. Those are not due, so they are not left out. */
static void P3_thinned_looks_are_not_left_out(void **unused)
{
    (void)unused;
    begin("whole", "1M");
    uint64_t step = 1, taken = 0, left_out = 0, wide = 0;
    for (uint64_t i = 0; i < 60000; i++) {
        bool late = i % 10 == 9; /* then two of three looks are left out */
        uint64_t weight = late ? 3 * step : step, now = step;
        step = look(weight, 1 + (uint32_t)(i % 5), i * 40503 % 256, 0);
        assert_true(step >= now);
        taken++;
        left_out += late ? 2 : 0;
        wide = step;
    }
    assert_true(wide > 1); /* it was thinned */
    struct fdr_file *f = snapshot();
    const struct fdr_sample_stream *s = stream_of(f);
    assert_int_equal(s->presented, taken);
    assert_int_equal(s->left_out, left_out);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_state_is_no_open_region),
                                       cmocka_unit_test(P3_looks_left_out_are_counted),
                                       cmocka_unit_test(P3_thinned_looks_are_not_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
