/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads clock=tsc promise=P3,P4,P9,P10 */
/* P3, P4, P9, P10: the functions of the public header. The test calls them and compares the snapshot with the calls. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "tests/support/api_fixture.h"
#include "tests/support/sanitized.h"

/* ---- definitions ---- */

static void P3_definitions_are_idempotent(void **state)
{
    (void)state;
    assert_int_equal(fdr_region_define("early", NULL, 0), 0); /* no recording yet */
    begin(NULL);
    fdr_region a = fdr_region_define("a", "f.c", 1);
    assert_int_not_equal(a, 0);
    assert_int_equal(fdr_region_define("a", "f.c", 1), a);
    assert_int_not_equal(fdr_region_define("a", "f.c", 2), a);
    assert_int_not_equal(fdr_region_define("a", "g.c", 1), a);
    fdr_region bare = fdr_region_define("a", NULL, 0);
    assert_int_equal(fdr_region_define("a", "", 0), bare);
    assert_int_equal(fdr_marker_define("m"), fdr_marker_define("m"));
    assert_int_equal(fdr_metric_define("x", "s", FDR_U64, FDR_METRIC_GAUGE),
                     fdr_metric_define("x", "s", FDR_U64, FDR_METRIC_GAUGE));
    assert_int_not_equal(fdr_metric_define("x", "s", FDR_U64, FDR_METRIC_GAUGE),
                         fdr_metric_define("x", "s", FDR_F64, FDR_METRIC_GAUGE));
    const uint32_t ranks[] = {3, 1, 4}, others[] = {3, 1, 5};
    fdr_comm_id comm = fdr_comm_define("c", ranks, 3);
    assert_int_not_equal(comm, 0);
    assert_int_equal(fdr_comm_define("c", ranks, 3), comm);
    assert_int_not_equal(fdr_comm_define("c", others, 3), comm);
    static char endless[9000];
    memset(endless, 'n', sizeof endless - 1);
    fdr_region huge = fdr_region_define(endless, endless, 7);
    assert_int_equal(fdr_region_define(endless, endless, 7), huge);
    fdr_region empty = fdr_region_define(NULL, NULL, 0);
    assert_int_not_equal(empty, 0);
    fdr_enter(a);
    fdr_leave(a);
    struct fdr_file *f = take();
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, a)->name, "a");
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, a)->file, "f.c");
    assert_int_equal(fdr_definition(f, FDR_REGION_DEFINITION, a)->line, 1);
    assert_int_equal(strlen(fdr_definition(f, FDR_REGION_DEFINITION, huge)->name), 4095);
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, 999999)->name, "[unknown 999999]");
    end(f);
}

struct definer {
    pthread_t thread;
    fdr_region id[200];
};
static void *define_many(void *argument)
{
    struct definer *d = argument;
    char name[20];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "many%d", i);
        d->id[i] = fdr_region_define(name, "many.c", 0);
    }
    return NULL;
}
static void P3_definitions_by_many_threads_agree(void **state)
{
    (void)state;
    static struct definer d[4];
    begin(NULL);
    for (int i = 0; i < 4; i++) pthread_create(&d[i].thread, NULL, define_many, &d[i]);
    for (int i = 0; i < 4; i++) pthread_join(d[i].thread, NULL);
    for (int i = 1; i < 4; i++) assert_memory_equal(d[0].id, d[i].id, sizeof d[0].id);
    end(take());
}

static int helper(int n)
{
    FDR_FUNCTION();
    if (n == 1) return 1; /* also leaves on this way */
    for (int i = 0; i < 3; i++) {
        FDR_REGION("inner")
        {
            if (i == 1) continue;
            if (n == 2 && i == 2) return 2;
        }
    }
    return 0;
}
static void P9_scopes_are_left_on_every_way_out(void **state)
{
    (void)state;
    begin(NULL);
    for (int n = 0; n < 3; n++) FDR_REGION("outer")
        {
            helper(n);
        }
    for (int i = 0; i < 3; i++) FDR_REGION("broken")
        {
            if (i == 2) break;
        }
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->kept, 6);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->kept, 3);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 3)->kept, 6);
    assert_int_equal(fdr_location_info(f, 0)->unbalanced + fdr_location_info(f, 0)->stray_leaves, 0);
    struct fdr_read_event e[64];
    load(f, e, 64);
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, e[0].id)->name, "outer");
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, e[1].id)->name, "helper");
    end(f);
}

/* ---- calls ---- */

static void P3_recursion_deeper_than_the_stack(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "16M"});
    uint64_t t = 1000;
    for (int round = 0; round < 3; round++) {
        for (uint32_t d = 0; d < 3000; d++) both_enter(&o, 1 + d % 7, t += 10);
        for (uint32_t d = 0; d < 3000; d++) both_leave(&o, t += 10);
    }
    both_enter(&o, 5, t += 10); /* deeper calls are counted, and the depth stays right */
    both_enter(&o, 6, t += 10);
    both_leave(&o, t += 10);
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->open_count, 1);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 0);
    assert_int_equal(balance(f), 9002);
    uint64_t lost = 0, deepest = 0;
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n; i++) lost += rows[i].lost, deepest = rows[i].depth > deepest ? rows[i].depth : deepest;
    assert_int_equal(deepest, FDRI_ARENA_LEVELS_MAX + 1);
    assert_int_equal(lost, 3 * (3000 - FDRI_ARENA_LEVELS_MAX));
    fdr_file_close(f);
    check((struct oracle_rules){0});
}

/* The ledger row of calls deeper than the stack counts no other classes. */
static void P3_messages_beside_a_deep_recursion(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "16M"});
    fdr_region r = fdr_region_define("r", NULL, 0);
    for (int i = 0; i < 10; i++) fdr_message_send(1, 2, 0, 4);
    for (uint32_t d = 0; d < FDRI_ARENA_LEVELS_MAX + 5; d++) fdr_enter(r);
    for (uint32_t d = 0; d < FDRI_ARENA_LEVELS_MAX + 5; d++) fdr_leave(r);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), FDRI_ARENA_LEVELS_MAX + 5 + 10);
    assert_int_equal(row(f, 0, FDR_IN_REGION, FDRI_ARENA_LEVELS_MAX + 1)->kept, 0);
    assert_int_equal(row(f, 0, FDR_IN_REGION, FDRI_ARENA_LEVELS_MAX + 1)->lost, 5);
    assert_int_equal(row(f, 0, FDR_IN_MESSAGE, 0)->kept, 10);
    end(f);
}

static void recurse(fdr_region r, int depth, jmp_buf *out)
{
    char big[512];
    memset(big, depth, sizeof big);
    fdr_enter(r);
    if (depth > 1) recurse(r, depth - 1, out);
    else if (out) longjmp(*out, 1);
    if (big[10] != (char)depth) abort(); /* keeps the frame */
    fdr_leave(r);
}
static void P3_live_recursion_and_longjmp_out_of_it(void **state)
{
    (void)state;
    static jmp_buf out;
    begin(&(struct fdr_config){.buffer = "16M"});
    fdr_region r = fdr_region_define("r", NULL, 0), top = fdr_region_define("top", NULL, 0);
    fdr_enter(top);
    recurse(r, 2000, NULL);
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->open_count, 1);
    fdr_file_close(f);
    if (setjmp(out) == 0) recurse(r, 2000, &out);
    fdr_leave(top); /* ends the calls that longjmp skipped */
    fdr_enter(r);
    fdr_leave(r);
    f = take();
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(balance(f), 4002);
    assert_int_equal(fdr_location_info(f, 0)->unbalanced, FDRI_ARENA_LEVELS_MAX - 1);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->kept, 2);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 0);
    end(f);
}

static void P9_leaves_that_do_not_match(void **state)
{
    (void)state;
    begin(NULL);
    uint64_t t = 5000;
    fdr_leave_at(3, t);
    for (uint32_t d = 1; d <= 6; d++) both_enter(&o, d, t += 7);
    fdr_leave_at(99, t += 3); /* not open: counted and otherwise ignored */
    t += 4;
    fdr_leave_at(2, t); /* ends 6, 5, 4, 3 and 2 */
    for (int i = 0; i < 5; i++) oracle_leave(&o, t);
    fdr_leave_at(6, t);
    both_enter(&o, 4, t += 7);
    both_leave(&o, t += 7);
    both_leave(&o, t += 7);
    struct fdr_file *f = take();
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 3);
    assert_int_equal(fdr_location_info(f, 0)->unbalanced, 4);
    fdr_file_close(f);
    check((struct oracle_rules){.complete = true});
}

static void P9_clocks_that_step_back_are_clamped(void **state)
{
    (void)state;
    begin(NULL);
    both_enter(&o, 1, 1000);
    both_enter(&o, 2, 900);
    both_marker(&o, 1, 7, 850);
    both_leave(&o, 990);
    both_enter(&o, 3, 1001);
    both_leave(&o, 10);
    both_leave(&o, 2000);
    struct fdr_file *f = take();
    assert_int_equal(o.clamped, 4);
    assert_int_equal(fdr_location_info(f, 0)->clamped, o.clamped);
    fdr_file_close(f);
    check((struct oracle_rules){.complete = true});
}

static void P10_ticks_near_the_maximum(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter_at(1, 0);
    fdr_enter_at(2, UINT64_MAX - 5);
    fdr_marker_at(1, UINT64_MAX, UINT64_MAX);
    fdr_leave_at(2, UINT64_MAX);
    fdr_leave_at(1, 17);
    struct fdr_file *f = take();
    uint64_t events = 0;
    const char *wrong = oracle_check_any(f, &events);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    assert_int_equal(events, 5);
    assert_int_equal(balance(f), 3);
    end(f);
}

static void P10_ids_that_nobody_defined(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter(0);
    fdr_enter(UINT32_MAX);
    fdr_enter(0x1000000);
    fdr_leave(0x1000000);
    fdr_leave(UINT32_MAX);
    fdr_leave(0);
    fdr_enter(4000000);
    fdr_leave(4000000);
    fdr_metric_u64(UINT32_MAX, 1);
    fdr_marker(UINT32_MAX, 1);
    fdr_event(UINT32_MAX, "x");
    fdr_event(7, NULL);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 8);
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 0);
    uint64_t events = 0;
    assert_null(oracle_check_any(f, &events));
    assert_int_equal(events, 12);
    end(f);
}

/* No call is open. So no id, not even the largest, matches one. */
static void P3_leaves_of_nothing(void **state)
{
    static const fdr_region id[] = {0, 1, FDRI_CODEC_ID_MAX, FDRI_CODEC_ID_MAX + 1, UINT32_MAX};
    const uint32_t ids = sizeof id / sizeof id[0];
    (void)state;
    begin(&(struct fdr_config){.timer = "tsc"}); /* the fast path, if this machine has one */
    fdr_enter(1);
    fdr_leave(1);
    for (uint32_t i = 0; i < ids; i++) fdr_leave(id[i]);
    fdr_leave_address(NULL);
    fdr_enter(1);
    fdr_leave(1);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 2);
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, ids + 1);
    assert_int_equal(total(f, FDR_IN_REGION, 1)->calls, 2);
    end(f);
}

static void P3_pause_counts_only(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter_at(1, 100);
    fdr_pause();
    fdr_pause();
    fdr_enter_at(2, 200);
    fdr_marker_at(1, 5, 250);
    fdr_leave_at(2, 300);
    fdr_resume();
    fdr_enter_at(2, 400); /* still paused */
    fdr_resume();
    fdr_resume(); /* one too many: no effect */
    fdr_enter_at(3, 500);
    fdr_leave_at(3, 600);
    fdr_leave_at(2, 700); /* entered during the pause: untimed */
    fdr_enter_at(2, 800);
    fdr_leave_at(2, 850);
    fdr_leave_at(1, 900);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 6);
    const struct fdr_total *t = total(f, FDR_IN_REGION, 2);
    assert_int_equal(t->untimed, 2);
    assert_int_equal(t->calls, 1);
    assert_int_equal(t->inclusive_ns, 50);
    assert_int_equal(total(f, FDR_IN_REGION, 1)->inclusive_ns, 800);
    assert_int_equal(total(f, FDR_IN_REGION, 3)->inclusive_ns, 100);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->filtered, 2);
    assert_int_equal(row(f, 0, FDR_IN_MARKER, 2)->filtered, 1);
    end(f);
}

static void P3_depth_limit_counts_only(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.depth = "3"});
    uint64_t t = 0;
    for (int round = 0; round < 50; round++) {
        for (uint32_t d = 1; d <= 40; d++) both_enter(&o, d, t += 5);
        for (uint32_t d = 1; d <= 40; d++) both_leave(&o, t += 5);
    }
    check((struct oracle_rules){.depth = 3});
}

static void P4_minimum_duration_is_taken_before_rounding(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        /* a tick is not 1 ns here */
        begin(&(struct fdr_config){.timer = "monotonic", .min_duration = "1us", .resolution = k ? "128ns" : "0"});
        uint64_t t = 77;
        for (uint32_t i = 0; i < 3000; i++) {
            both_enter(&o, 1, t += 1000);
            both_enter(&o, 2, t);
            both_leave(&o, t += 990 + i % 20); /* durations around the minimum */
            both_leave(&o, t += i % 3);
        }
        check((struct oracle_rules){.min_duration = 1000, .shift = k ? 7 : 0});
    }
}

/* Many events in few ticks. Lossless recordings are exact, others nest. */
static void P4_equal_time_stamps_keep_their_order(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        begin(&(struct fdr_config){
            .timer = "monotonic", .buffer = "32M", .resolution = (const char *[]){"0", "128ns", "1us"}[k]});
        uint64_t t = 1 << 20, seed = 12345;
        for (int i = 0; i < (SANITIZED ? 40000 : 300000); i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t x = (uint32_t)(seed >> 33) % 16;
            if (x < 3) t += x == 0 ? 300 : 1;
            if (x < 6 && o.depth < 10) both_enter(&o, 1 + (uint32_t)(seed >> 50) % 5, t);
            else if (x < 12 && o.depth) both_leave(&o, t);
            else if (x == 13) both_marker(&o, 1, (uint64_t)i, t);
            else if (x == 14) both_message(&o, i & 1, 3, -1, 0, (uint64_t)i, t);
        }
        check((struct oracle_rules){.complete = true, .shift = (uint32_t[]){0, 7, 9}[k]});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_definitions_are_idempotent),
        cmocka_unit_test(P3_definitions_by_many_threads_agree),
        cmocka_unit_test(P9_scopes_are_left_on_every_way_out),
        cmocka_unit_test(P3_recursion_deeper_than_the_stack),
        cmocka_unit_test(P3_messages_beside_a_deep_recursion),
        cmocka_unit_test(P3_live_recursion_and_longjmp_out_of_it),
        cmocka_unit_test(P9_leaves_that_do_not_match),
        cmocka_unit_test(P9_clocks_that_step_back_are_clamped),
        cmocka_unit_test(P10_ticks_near_the_maximum),
        cmocka_unit_test(P10_ids_that_nobody_defined),
        cmocka_unit_test(P3_leaves_of_nothing),
        cmocka_unit_test(P3_pause_counts_only),
        cmocka_unit_test(P3_depth_limit_counts_only),
        cmocka_unit_test(P4_minimum_duration_is_taken_before_rounding),
        cmocka_unit_test(P4_equal_time_stamps_keep_their_order),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_free(&o);
    return bad;
}
