/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads clock=tsc promise=P3,P4,P10 */
/* P3, P4, P10: the public header: start and end, threads, clocks, usage. */
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <glob.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- start and end ---- */

static void read_everything(void)
{
    static const uint32_t ranks[] = {0};
    fdr_region r = fdr_region_define("x", NULL, 0);
    fdr_enter(r), fdr_leave(r), fdr_enter_at(r, 5), fdr_leave_at(r, 6);
    fdr_enter_address((const void *)(uintptr_t)&read_everything),
        fdr_leave_address((const void *)(uintptr_t)&read_everything);
    fdr_region_define_address((const void *)(uintptr_t)&read_everything);
    fdr_metric_u64(1, 1), fdr_metric_i64_at(1, 1, 1), fdr_metric_f64(1, 1);
    fdr_marker(fdr_marker_define("m"), 1);
    fdr_message_send(1, 1, fdr_comm_define("c", ranks, 1), 1), fdr_message_recv_at(1, 1, 1, 1, 1);
    fdr_collective_begin(1), fdr_collective_end(1, 1, 1, 1, 1);
    fdr_event(fdr_event_define("e", NULL, 0), NULL);
    fdr_thread_name("x"), fdr_pause(), fdr_resume(), fdr_rewind_mark(), fdr_rewind();
    fdr_phase_begin("p"), fdr_phase_end("p");
    FDR_REGION("macro") {}
}

static void P10_calls_before_init_and_after_finalize(void **state)
{
    (void)state;
    read_everything();
    assert_int_equal(fdr_usage().buffer_bytes, 0);
    assert_int_not_equal(fdr_snapshot("none"), 0);
    fdr_finalize();
    begin(NULL);
    read_everything();
    fdr_finalize();
    read_everything();
    fdr_finalize();
    assert_int_equal(fdr_usage().presented, 0);
    assert_int_not_equal(fdr_snapshot("none"), 0);
}

static void P10_two_recordings_keep_their_ids(void **state)
{
    (void)state;
    fdr_region a = 0, b = 0;
    for (int round = 0; round < 3; round++) {
        begin(NULL);
        fdr_region again = fdr_region_define("keeps its id", "x.c", 1), other = fdr_region_define("me too", "x.c", 2);
        if (round) assert_true(a == again && b == other);
        a = again, b = other;
        fdr_metric_id m = fdr_metric_define("double", "1", FDR_F64, FDR_METRIC_GAUGE);
        fdr_enter(a), fdr_enter(b), fdr_leave(b), fdr_leave(a);
        fdr_metric_f64(m, 0.5);
        struct fdr_file *f = take();
        assert_int_equal(balance(f), 3);
        assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, b)->name, "me too");
        struct fdr_read_event e[8];
        assert_int_equal(load(f, e, 8), 5);
        assert_true(e[4].field[0] == bits(0.5));
        end(f);
    }
}

static void P10_a_failed_start_is_harmless(void **state)
{
    (void)state;
    struct fdr_config c = oracle_config(oracle_directory());
    struct fdr_config off = c;
    off.enable = "0";
    assert_int_equal(fdr_init(&off), 0);
    read_everything();
    assert_int_equal(fdr_usage().buffer_bytes, 0);
    fdr_finalize();
    c.size = offsetof(struct fdr_config, bin); /* structure of an older caller */
    assert_int_equal(fdr_init(&c), 0);
    assert_int_equal(fdr_init(&c), 0); /* a second fdr_init changes nothing */
    read_everything();
    assert_true(fdr_usage().presented > 5);
    fdr_finalize();
}

static void files_are_named_behind_the_last_slash(void **state)
{
    (void)state;
    struct fdr_config c = oracle_config(oracle_directory());
    char pattern[300];
    glob_t found;
    c.name = "../elsewhere/tool"; /* like argv[0] */
    assert_int_equal(fdr_init(&c), 0);
    assert_int_equal(fdr_snapshot("named"), 0);
    fdr_finalize();
    snprintf(pattern, sizeof pattern, "%s/tool.*.fdr", c.dir);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    unlink(found.gl_pathv[0]);
    globfree(&found);
}

/* ---- threads ---- */

static void *one_call(void *argument)
{
    fdr_thread_name((const char *)argument);
    fdr_enter(1);
    fdr_marker(1, 2);
    fdr_leave(1);
    return NULL;
}

static void P3_threads_come_and_go(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "16M"});
    fdr_enter(2);
    for (int i = 0; i < 200; i++) {
        pthread_t t;
        char name[64];
        snprintf(name, sizeof name, "thread %d with a name that is much too long for it", i);
        assert_int_equal(pthread_create(&t, NULL, one_call, name), 0);
        pthread_join(t, NULL);
    }
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_count(f), 201);
    assert_int_equal(balance(f), 401);
    assert_true(fdr_location_info(f, 0)->live);
    for (size_t i = 1; i <= 200; i++) {
        const struct fdr_location_info *l = fdr_location_info(f, i);
        char name[64];
        snprintf(name, sizeof name, "thread %d with a name that is much too long for it", (int)i - 1);
        name[31] = 0;
        assert_string_equal(l->name, name);
        assert_false(l->live);
        assert_true(l->end_ns >= l->start_ns && l->end_ns > 0);
        assert_int_equal(row(f, l->id, FDR_IN_REGION, 1)->kept, 1);
    }
    assert_int_equal(fdr_file_info(f)->lost_locations, 0);
    end(f);
}

static pthread_barrier_t all_there;
static uint32_t found_room_late;
static void *one_call_and_wait(void *name)
{
    fdr_thread_name("first");
    bool at_first = fdri_record_self.recording;
    one_call(name);
    if (!at_first && fdri_record_self.recording) __atomic_fetch_add(&found_room_late, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&all_there);
    return NULL;
}

enum { AT_ONCE = 400 };
static void come_at_once(void)
{
    begin(&(struct fdr_config){.buffer = "192K"});
    found_room_late = 0;
    pthread_t t[AT_ONCE];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    pthread_barrier_init(&all_there, NULL, AT_ONCE + 1);
    for (int i = 0; i < AT_ONCE; i++) assert_int_equal(pthread_create(&t[i], &small, one_call_and_wait, "t"), 0);
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < AT_ONCE; i++) pthread_join(t[i], NULL);
    pthread_attr_destroy(&small);
    pthread_barrier_destroy(&all_there);
}

static void P3_more_threads_than_the_buffer_holds(void **state)
{
    (void)state;
    come_at_once();
    /* A thread that waits for a processor may find room after others fell asleep. The test needs threads of both
     * kinds. */
    for (int i = 0; found_room_late; i++) {
        assert_true(i < 20);
        come_at_once();
    }
    struct fdr_file *f = take();
    const struct fdr_file_info *info = fdr_file_info(f);
    size_t held = fdr_location_count(f);
    uint64_t sum = balance(f);
    print_message("%zu of %d threads held, %llu turned away, %llu events of those\n", held, AT_ONCE,
                  (unsigned long long)info->lost_locations, (unsigned long long)info->lost_unattached);
    assert_true(held > 0 && held < AT_ONCE);
    assert_int_equal(info->lost_locations, AT_ONCE - held);
    assert_true(sum <= 2 * held);
    /* A thread without a location counts its events (enter, leave, marker), but not the naming of the thread. An
     * event whose account found no room counts, too. */
    assert_int_equal(info->lost_unattached, 3 * (AT_ONCE - held) + 2 * held - sum);
    struct fdr_usage u = fdr_usage();
    assert_int_equal(u.presented, sum + info->lost_unattached);
    assert_int_equal(u.presented, u.stored + u.filtered + u.reduced + u.lost);
    end(f);
}

struct asks {
    uint32_t tid;
    bool sampled;
};
static void *asks_twice(void *p)
{
    struct asks *a = p;
    a->tid = (uint32_t)gettid();
    one_call_and_wait("t");
    a->sampled = fdr_sampled_open(a->tid, "t", FDR_BY_CPU_TIME, 1) != NULL;
    return NULL;
}

static void P3_a_thread_that_finds_no_room_twice_is_one(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "192K"});
    enum { THREADS = 400 };
    pthread_t t[THREADS];
    static struct asks asks[THREADS];
    uint64_t lost = 0, twice = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    pthread_barrier_init(&all_there, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], &small, asks_twice, &asks[i]), 0);
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    pthread_attr_destroy(&small);
    struct fdr_file *f = take();
    for (int i = 0; i < THREADS; i++) {
        bool held = false;
        for (uint32_t k = 0; k < fdr_location_count(f); k++) {
            const struct fdr_location_info *l = fdr_location_info(f, k);
            held |= l->tid == asks[i].tid && !l->samples;
        }
        lost += !held || !asks[i].sampled;
        twice += !held && !asks[i].sampled;
    }
    print_message("%llu found no room, %llu of them neither for events nor for samples\n", (unsigned long long)lost,
                  (unsigned long long)twice);
    assert_true(twice > 0);
    assert_int_equal(fdr_file_info(f)->lost_locations, lost);
    end(f);
}

/* ---- clocks and usage ---- */

static void P3_usage_agrees_with_the_ledger(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "512K"});
    uint64_t t = 0;
    for (int i = 0; i < 200000; i++)
        fdr_enter_at(1 + i % 50, t += 10), fdr_marker_at(1, 1, t), fdr_leave_at(1 + i % 50, t += 1 + i % 5000);
    struct fdr_usage u = fdr_usage();
    struct fdr_file *f = take();
    uint64_t kept = 0, reduced = 0;
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n; i++) kept += rows[i].kept, reduced += rows[i].reduced;
    assert_int_equal(u.presented, balance(f));
    assert_int_equal(u.presented, u.stored + u.filtered + u.reduced + u.lost);
    assert_true(u.stored >= kept && u.reduced <= reduced); /* the reader drops events whose parents are missing */
    assert_true(u.reductions > 0 && u.bins_free < u.bins && u.bytes_stored <= u.buffer_bytes);
    assert_int_equal(u.buffer_bytes, 512 << 10);
    assert_int_equal(u.locations, 1);
    end(f);
}

/* fdr_usage reads the open bin of another thread after that bin was given back and reused. */
static void P3_usage_of_a_bin_that_went(void **state)
{
    enum { CALLS = 100000 };
    (void)state;
    begin(NULL);
    for (uint64_t i = 0; i < CALLS; i++) fdr_enter_at(1, 1000 + i * 1000), fdr_leave_at(1, 1500 + i * 1000);
    const struct fdri_arena_part *p = fdri_thread_at(&fdri_record_self,
                                                     fdri_thread_level(&fdri_record_self, 1)->part[1]);
    struct fdri_arena_bin *b = fdri_bins_bin(&fdri_life_recording.arena, p->open_off), was = *b;
    assert_int_equal(fdr_usage().stored, CALLS);
    b->seq += 5;
    b->first_index = 10 * CALLS;
    assert_in_range(fdr_usage().stored, 0, fdr_usage().presented);
    b->seq = was.seq;
    b->first_index = was.first_index;
    assert_int_equal(fdr_usage().stored, CALLS);
    fdr_finalize();
}

static void P4_at_times_on_a_live_location(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.timer = "tsc"});
    struct timespec now;
    fdr_enter(1); /* a live event first, so that the location uses the live clock */
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    fdr_enter_at(2, ns + 1000000000u);
    fdr_leave_at(2, ns + 3000000000u);
    fdr_leave_at(1, ns + 3000000000u);
    struct fdr_file *f = take();
    struct fdr_read_event e[8];
    assert_int_equal(load(f, e, 8), 4);
    int64_t off = (int64_t)(e[1].time_ns - ns) - 1000000000, length = (int64_t)e[1].duration_ns - 2000000000;
    print_message("off by %lld ns, length by %lld ns\n", (long long)off, (long long)length);
    assert_true(off > -20000000 && off < 20000000 && length > -2000000 && length < 2000000);
    end(f);
}

/* A location's times are in ns, and the recording counts ticks. The edges of its bands must still lie at whole ns,
 * so that statements about durations hold. */
static void the_edges_of_bands_hold_for_times_in_ns(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.timer = "tsc"});
    fdr_enter_at(1, 1000);
    fdr_leave_at(1, 2000);
    struct fdr_file *f = take();
    const uint64_t *edge = fdr_file_info(f)->band_edge_ns;
    assert_true(edge[0] >= 256 && edge[1] >= 4096 && edge[2] >= 262144);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_calls_before_init_and_after_finalize),
        cmocka_unit_test(P10_two_recordings_keep_their_ids),
        cmocka_unit_test(P10_a_failed_start_is_harmless),
        cmocka_unit_test(files_are_named_behind_the_last_slash),
        cmocka_unit_test(P3_threads_come_and_go),
        cmocka_unit_test(P3_more_threads_than_the_buffer_holds),
        cmocka_unit_test(P3_a_thread_that_finds_no_room_twice_is_one),
        cmocka_unit_test(P3_usage_agrees_with_the_ledger),
        cmocka_unit_test(P3_usage_of_a_bin_that_went),
        cmocka_unit_test(P4_at_times_on_a_live_location),
        cmocka_unit_test(the_edges_of_bands_hold_for_times_in_ns),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_free(&o);
    return bad;
}
