/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,slow timeout=300 promise=P1,P3,P4,P10 */
/* P1, P3, P4, P10: sample streams in little memory. The kept samples are spread as promised, each stands for the
 * exact number of periods, and its content is unchanged. FDR_SAMPLES_TEST=1000000000 presents that many instead of
 * a tenth of it. That takes 40 s of a processor at -O2, and some minutes on a shared one. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "recorder/recording.h"
#include "recorder/thread/thread.h"
#include "tests/support/thinned_recording.h"

#define BUFFER (256u << 10)

/* ---- content of sample number n ---- */

static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 31) * 0x9E3779B97F4A7C15u;
    return (v ^ v >> 29) * 0xBF58476D1CE4E5B9u;
}

struct look {
    uint64_t pc, stack[200];
    uint32_t frames, region[140], regions;
};

/* A program with a few hundred code places; now and then a deep or odd one. */
static void look_of(uint64_t n, struct look *l)
{
    uint64_t r = mix(n / 3), odd = mix(n) % 1000;
    l->frames = odd == 0 ? (uint32_t)(mix(n + 1) % 200) : 2 + (uint32_t)(r % 9);
    l->regions = odd == 1 ? (uint32_t)(mix(n + 2) % 140) : (uint32_t)(r >> 8) % 4;
    for (uint32_t i = 0; i < l->frames; i++) { /* innermost frame first */
        uint32_t level = l->frames - i;
        l->stack[i] = odd == 2 ? mix(n + i) : 0x7f0000401000u + level * 0x1234 + (r >> 16) % (level < 3 ? 1 : 5) * 0x51;
    }
    for (uint32_t i = 0; i < l->regions; i++) l->region[i] = 1 + i % 7;
    l->pc = odd == 3 ? mix(n) : 0x7f0000500000u + r % 17 * 0x1000 + mix(n) % 64;
}

static uint64_t present(struct fdr_sampled *s, uint64_t n, uint64_t weight, bool plain)
{
    struct look l = {.pc = 0x401000 + n % 256};
    if (!plain) look_of(n, &l);
    struct fdr_look look = {.weight = weight,
                            .pc = l.pc,
                            .stack = l.stack,
                            .stack_count = l.frames,
                            .path = l.region,
                            .path_count = l.regions};
    return fdr_sample_at(s, &look, n * 1000);
}

/* ---- checks of every recording ---- */

static void check_ledger(struct fdr_file *f, uint64_t presented)
{
    const struct fdr_ledger_row *row;
    size_t n = fdr_ledger(f, &row);
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(row[i].presented, row[i].kept + row[i].filtered + row[i].reduced + row[i].lost);
        if (row[i].class_ == FDR_IN_SAMPLE) sum += row[i].presented;
    }
    assert_int_equal(sum, presented);
    const struct fdr_reduction_info *step;
    n = fdr_reductions(f, &step);
    for (size_t i = 0; i < n; i++) assert_non_null(strstr("thin epoch earlier claim", step[i].step));
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE); /* the reader knows the lines of all steps */
}

/* Every kept sample has the content presented under its number. */
static void check_look(const struct fdr_sample_path *p)
{
    struct look l;
    look_of(p->number, &l);
    assert_int_equal(p->pc, l.pc & ((1ull << 48) - 1));
    uint32_t regions = l.regions < 128 ? l.regions : 128, room = 256 - regions;
    uint32_t frames = l.frames < room ? l.frames : room;
    if (!(p->flags & 2)) {
        assert_int_equal(p->region_count, regions);
        assert_int_equal(p->frame_count, frames);
    }
    for (uint32_t i = 0; i < p->region_count; i++) assert_int_equal(p->region[i], l.region[i]);
    for (uint32_t i = 0; i < p->frame_count; i++) /* too many frames: the outermost ones are missing */
        assert_int_equal(p->frame[i], l.stack[p->frame_count - 1 - i] & ((1ull << 48) - 1));
}

struct spread {
    uint64_t kept, weights, least, most, last, newest_fine;
    bool rises;
};

static struct spread look_through(struct fdr_file *f, bool look)
{
    struct fdr_select select = {.classes = 1u << FDR_IN_SAMPLE};
    struct fdr_iter *it = fdr_iter_open(f, &select);
    struct fdr_read_event e;
    struct spread s = {.least = UINT64_MAX};
    uint64_t before = UINT64_MAX, time = 0;
    while (fdr_iter_next(it, &e)) {
        assert_int_equal(e.kind, FDR_SAMPLE);
        assert_true(e.time_ns >= time && e.sample->number > s.last);
        time = e.time_ns;
        if (look) check_look(e.sample);
        s.kept++;
        s.weights += e.sample->weight;
        if (e.sample->weight < s.least) s.least = e.sample->weight;
        if (e.sample->weight > s.most) s.most = e.sample->weight;
        if (e.sample->weight > before) s.rises = true;
        s.newest_fine = e.sample->weight == 1 ? s.newest_fine + 1 : 0;
        before = e.sample->weight;
        s.last = e.sample->number;
    }
    fdr_iter_close(it);
    return s;
}

static struct fdr_sample_stream only_stream(struct fdr_file *f)
{
    const struct fdr_sample_stream *s;
    assert_int_equal(fdr_sample_streams(f, &s), 1);
    return *s;
}

static uint64_t how_many(uint64_t usual)
{
    const char *said = getenv("FDR_SAMPLES_TEST"), *sanitizers = getenv("FDR_SANITIZE");
    if (said) return strtoull(said, NULL, 10);
    return sanitizers && *sanitizers ? usual / 20 : usual; /* sanitizers slow the test down by that much */
}

/* ---- tests ---- */

static void P3_thinned_evenly_over_the_whole_run(void **state)
{
    (void)state;
    uint64_t count = how_many(100000000), wanted = 1;
    thinned_start("samples", "whole", "256K");
    struct fdr_sampled *s = fdr_sampled_open(1, "synthetic", FDR_BY_CPU_TIME, 1000000);
    assert_non_null(s);
    for (uint64_t n = 1; n <= count; n++) {
        uint64_t step = present(s, n, 1, true);
        assert_true(step >= wanted);
        wanted = step;
    }
    assert_true(fdr_usage().buffer_bytes <= BUFFER);
    struct fdr_file *f = thinned_finish();
    struct spread d = look_through(f, false);
    struct fdr_sample_stream info = only_stream(f);
    print_message("%llu samples: one of %llu kept, %llu in all, %.1f bytes each\n", (unsigned long long)count,
                  (unsigned long long)wanted, (unsigned long long)d.kept, (double)info.bytes / (double)d.kept);
    assert_int_equal(d.least, wanted);
    assert_int_equal(d.most, wanted); /* evenly spread */
    assert_int_equal(d.kept, count / wanted);
    assert_int_equal(d.weights, d.last);
    assert_true(count - d.last < wanted);
    assert_int_equal(info.periods, count);
    assert_int_equal(info.to - info.from, d.weights);
    check_ledger(f, count);
    fdr_file_close(f);
}

/* Sample numbers that jump. There is still one sample for each stretch, and no period is counted twice. */
static void P3_heavy_samples_count_for_what_they_are(void **state)
{
    (void)state;
    uint64_t n = 0, presented = 0, step = 1, end = how_many(1000000000);
    thinned_start("samples", "whole", "256K");
    struct fdr_sampled *s = fdr_sampled_open(1, "synthetic", FDR_BY_WALL_TIME, 1000000);
    while (n < end) {
        uint64_t weight = 1 + mix(presented) % (presented % 100 ? 4096 : 20000);
        step = present(s, n += weight, weight, false);
        presented++;
    }
    struct fdr_file *f = thinned_finish();
    struct spread d = look_through(f, true);
    assert_int_equal(d.weights, d.last);
    assert_true(n - d.last < step + 20000);
    assert_true(d.most < 2 * step + 20000);
    assert_true(d.kept >= n / step - n / step / 4);
    assert_int_equal(only_stream(f).periods, n);
    check_ledger(f, presented);
    fdr_file_close(f);
}

static void P3_telescope_keeps_the_recent_past_in_full(void **state)
{
    (void)state;
    uint64_t asked = how_many(1000000), count = asked > 1000000 ? asked / 10 + 900000 : asked;
    thinned_start("samples", "telescope", "256K");
    struct fdr_sampled *s = fdr_sampled_open(1, "synthetic", FDR_BY_CPU_TIME, 1000000);
    for (uint64_t n = 1; n <= count; n++) assert_int_equal(present(s, n, 1, false), 1);
    struct fdr_file *f = thinned_finish();
    struct spread d = look_through(f, true);
    print_message("telescope: %llu kept, the newest %llu without a gap, the oldest stands for %llu\n",
                  (unsigned long long)d.kept, (unsigned long long)d.newest_fine, (unsigned long long)d.most);
    assert_int_equal(d.last, count);
    assert_int_equal(d.weights, count);
    assert_false(d.rises); /* the older, the sparser */
    assert_true(d.newest_fine > 200);
    check_ledger(f, count);
    fdr_file_close(f);
}

static void last_and_first_keep_their_end(void **state)
{
    (void)state;
    for (int last = 0; last < 2; last++) {
        thinned_start("samples", last ? "last" : "first", "256K");
        struct fdr_sampled *s = fdr_sampled_open(1, "synthetic", FDR_BY_CPU_TIME, 1000000);
        for (uint64_t n = 1; n <= 200000; n++) present(s, n, 1, false);
        struct fdr_file *f = thinned_finish();
        struct spread d = look_through(f, true);
        struct fdr_sample_stream info = only_stream(f);
        assert_int_equal(d.most, 1);
        assert_true(d.kept > 1000);
        assert_int_equal(d.weights, d.kept);
        assert_int_equal(d.last, last ? 200000 : d.kept);
        assert_int_equal(info.to - info.from, d.weights);
        check_ledger(f, 200000);
        fdr_file_close(f);
    }
}

static void P4_paths_come_back_as_presented(void **state)
{
    (void)state;
    thinned_start("samples", "whole", "4M");
    struct fdr_sampled *s = fdr_sampled_open(1, "synthetic", FDR_BY_CPU_TIME, 1000000);
    for (uint64_t n = 1; n <= 20000; n++) present(s, n, 1, false);
    struct fdr_file *f = thinned_finish();
    struct spread d = look_through(f, true);
    assert_int_equal(d.kept, 20000);
    fdr_file_close(f);
}

/* Threads come and go. Each gets a stream, the arena does not overflow, and no period is counted twice. */
static void P1_streams_of_ended_threads_are_used_again(void **state)
{
    (void)state;
    enum { THREADS = 5000, EACH = 5, ALIVE = 3 };
    struct fdr_sampled *alive[ALIVE] = {NULL};
    uint64_t number[ALIVE] = {0};
    thinned_start("samples", "whole", "1M");
    for (uint32_t tid = 1; tid <= THREADS; tid++) {
        uint32_t k = tid % ALIVE;
        fdr_sampled_close(alive[k]);
        alive[k] = fdr_sampled_open(tid, tid % 7 ? "worker" : "other", FDR_BY_CPU_TIME, 1000000);
        assert_non_null(alive[k]);
        for (int i = 0; i < EACH; i++) assert_true(present(alive[k], ++number[k] + tid, 2, true) > 0);
    }
    struct fdr_file *f = thinned_finish();
    const struct fdr_sample_stream *s;
    size_t n = fdr_sample_streams(f, &s);
    uint64_t presented = 0, periods = 0, single = 0;
    for (size_t i = 0; i < n; i++) {
        presented += s[i].presented;
        periods += s[i].periods;
        single += s[i].tid != 0;
        assert_true(s[i].to - s[i].from <= s[i].periods);
    }
    print_message("%zu streams, %llu of single threads\n", n, (unsigned long long)single);
    assert_int_equal(presented, THREADS * EACH);
    assert_int_equal(periods, THREADS * EACH * 2);
    assert_in_range(n, ALIVE, 64);
    assert_true(single < n);
    check_ledger(f, THREADS * EACH);
    fdr_file_close(f);
}

/* Threads run one after another and reuse streams in turn. Otherwise one stream with its few bins would stand for
 * nearly the whole run. */
static void streams_of_ended_threads_are_used_in_turn(void **state)
{
    (void)state;
    enum { THREADS = 1600, EACH = 200 };
    thinned_start("samples", "telescope", "1M");
    for (uint32_t tid = 1; tid <= THREADS; tid++) {
        struct fdr_sampled *s = fdr_sampled_open(tid, "worker", FDR_BY_CPU_TIME, 1000000);
        assert_non_null(s);
        for (int i = 0; i < EACH; i++) assert_true(present(s, tid + i, 1, true) > 0);
        fdr_sampled_close(s);
    }
    struct fdr_file *f = thinned_finish();
    const struct fdr_sample_stream *s;
    size_t n = fdr_sample_streams(f, &s);
    assert_in_range(n, 2, THREADS / 10);
    for (size_t i = 0; i < n; i++) assert_in_range(s[i].periods * n, THREADS * EACH * 9 / 10, THREADS * EACH * 11 / 10);
    check_ledger(f, THREADS * EACH);
    fdr_file_close(f);
}

/* A thread without room counts once, however often it asks. A stream begins with its first sample, whatever clock
 * that uses. */
static void threads_without_room_are_counted_once(void **state)
{
    (void)state;
    enum { THREADS = 200 };
    uint32_t held = 0;
    thinned_start("samples", "whole", "256K");
    for (uint32_t tid = 1; tid <= THREADS; tid++) {
        struct fdr_sampled *s = fdr_sampled_open(tid, "worker", FDR_BY_CPU_TIME, 1);
        if (s) held++;
        else
            for (int again = 0; again < 3; again++) assert_null(fdr_sampled_open(tid, "worker", FDR_BY_CPU_TIME, 1));
        present(s, 6 + tid, 1, true);
    }
    struct fdr_file *f = thinned_finish();
    assert_in_range(held, 1, THREADS - 1);
    assert_int_equal(fdr_file_info(f)->lost_locations, THREADS - held);
    assert_int_equal(fdr_location_info(f, 0)->start_ns, 7000);
    fdr_file_close(f);
}

/* The kernel reuses thread ids. A thread that counts itself is another one than the last thread of that id. */
static void threads_of_one_number_are_counted_each(void **state)
{
    (void)state;
    thinned_start("samples", "whole", "256K");
    const uint64_t *lost = &fdri_life_recording.arena.super->lost_locations;
    fdri_thread_count_no_room(77, false);
    fdri_thread_count_no_room(77, false);
    assert_int_equal(*lost, 1);
    fdri_thread_count_no_room(77, true); /* the same thread */
    fdri_thread_count_no_room(77, false);
    assert_int_equal(*lost, 1);
    for (int i = 0; i < 10; i++) fdri_thread_count_no_room(77, true);
    assert_int_equal(*lost, 11);
    fdri_thread_count_no_room(78, true);
    fdri_thread_count_no_room(78, false);
    assert_int_equal(*lost, 12);
    fdr_file_close(thinned_finish());
}

/* Without a recording, or with senseless arguments, samples are only counted. */
static void P10_odd_arguments_do_no_harm(void **state)
{
    (void)state;
    struct fdr_look none = {0};
    assert_null(fdr_sampled_open(1, "early", FDR_BY_CPU_TIME, 1));
    assert_int_equal(fdr_sample(NULL, &none), 0);
    thinned_start("samples", "whole", "256K");
    struct fdr_sampled *s = fdr_sampled_open(1, NULL, FDR_BY_EVENTS, 0);
    assert_non_null(s);
    fdr_sample(s, &none);
    struct fdr_look huge = {.weight = UINT64_MAX, .pc = UINT64_MAX};
    fdr_sample(s, &huge);
    struct fdr_look good = {.weight = 1, .pc = UINT64_MAX};
    assert_int_equal(fdr_sample(s, &good), 1);
    struct fdr_file *f = thinned_finish();
    struct spread d = look_through(f, false);
    assert_int_equal(d.kept, 1);
    fdr_file_close(f);
    assert_int_equal(fdr_sample(s, &good), 0);
    fdr_sampled_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_thinned_evenly_over_the_whole_run),
                                       cmocka_unit_test(P3_heavy_samples_count_for_what_they_are),
                                       cmocka_unit_test(P3_telescope_keeps_the_recent_past_in_full),
                                       cmocka_unit_test(last_and_first_keep_their_end),
                                       cmocka_unit_test(P4_paths_come_back_as_presented),
                                       cmocka_unit_test(P1_streams_of_ended_threads_are_used_again),
                                       cmocka_unit_test(streams_of_ended_threads_are_used_in_turn),
                                       cmocka_unit_test(threads_without_room_are_counted_once),
                                       cmocka_unit_test(threads_of_one_number_are_counted_each),
                                       cmocka_unit_test(P10_odd_arguments_do_no_harm)};
    snprintf(dir, sizeof dir, "/tmp/fdr-test-samples-XXXXXX");
    if (!mkdtemp(dir)) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
