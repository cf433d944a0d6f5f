/* SPDX-License-Identifier: MIT */
/* ctest: label=unit clock=tsc promise=P3,P4,P5,P9 */
/* P3, P4, P5, P9: rules, phases and rewinding. The ledger, the totals and the nesting are right for calls that a rule
 * or a pause filters and for records that a rewind removes. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/stack/thread_stack.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/api_fixture.h"

/* ---- rules, phases, rewind ---- */

static void P3_rules_keep_out_what_they_say(void **state)
{
    (void)state;
    char *rules = write_rules(
        "# comment\n exclude name mpi_*\ninclude name mpi_init\nfirst 3 name warm*\nevery 4 name often\n"
        "min 5us name brief\nexclude file */noise.c\n");
    begin(&(struct fdr_config){.filter = rules});
    const char *const names[] = {"mpi_send", "mpi_init", "warmup", "often", "brief", "plain", "other"};
    const uint64_t kept[] = {0, 20, 3, 5, 10, 20, 0}, untimed[] = {20, 0, 17, 15, 0, 0, 20};
    fdr_region id[7];
    for (int i = 0; i < 7; i++) id[i] = fdr_region_define(names[i], i == 6 ? "src/noise.c" : "src/main.c", 1);
    uint64_t t = 0;
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 7; i++) {
            fdr_enter_at(id[i], t += 100);
            fdr_enter_at(id[5], t += 100); /* inside all of them; no rule filters it */
            fdr_leave_at(id[5], t += 100);
            fdr_leave_at(id[i], t += i == 4 && round % 2 ? 6000 : 100);
        }
    struct fdr_file *f = take();
    uint64_t shown[7] = {0};
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e))
        for (int i = 0; i < 7; i++) shown[i] += e.kind == FDR_ENTER && e.id == id[i] && !e.reduced;
    fdr_iter_close(it);
    for (int i = 0; i < 7; i++) {
        uint64_t expect = i == 5 ? 20 + 140 : kept[i];
        const struct fdr_total *w = total(f, FDR_IN_REGION, id[i]);
        if (shown[i] != expect || w->untimed != untimed[i])
            print_message("%s: %llu shown, %llu expected; untimed %llu, expected %llu\n", names[i],
                          (unsigned long long)shown[i], (unsigned long long)expect, (unsigned long long)w->untimed,
                          (unsigned long long)untimed[i]);
        assert_int_equal(shown[i], expect);
        assert_int_equal(w->untimed, untimed[i]);
    }
    assert_int_equal(total(f, FDR_IN_REGION, id[4])->calls, 20); /* a minimum stops storage, not totals */
    assert_int_equal(balance(f), 20 * 14);
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves + fdr_location_info(f, 0)->unbalanced, 0);
    end(f);
    unlink(rules);
}

/* Two calls of one region may be open, one of them filtered by a rule. */
static void P3_recursion_of_a_region_that_is_kept_out(void **state)
{
    (void)state;
    char *rules = write_rules("every 2 name r\n");
    begin(&(struct fdr_config){.filter = rules});
    fdr_region r = fdr_region_define("r", NULL, 0), s = fdr_region_define("s", NULL, 0);
    for (int i = 0; i < 8; i++) fdr_enter(r), fdr_enter(s);
    for (int i = 0; i < 8; i++) fdr_leave(s), fdr_leave(r);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 16);
    assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves + fdr_location_info(f, 0)->unbalanced, 0);
    end(f);
    unlink(rules);
}

/* Letters A to D enter, a to d leave. The rules below filter some calls of A to C. `shown` has the stored ones. */
struct skips {
    const char *rules, *events, *shown;
    unsigned unbalanced, stray;
};

static void check_skips(const struct skips *w)
{
    char *rules = write_rules(w->rules), shown[256] = "";
    begin(&(struct fdr_config){.filter = rules});
    fdr_region id[4];
    for (int i = 0; i < 4; i++) id[i] = fdr_region_define((char[]){(char)('A' + i), 0}, NULL, 0);
    uint64_t t = 100;
    for (const char *p = w->events; *p; p++) {
        if (*p < 'a') fdr_enter_at(id[*p - 'A'], t += 10);
        else fdr_leave_at(id[*p - 'a'], t += 10);
    }
    struct fdr_file *f = take();
    struct fdr_read_event e[64];
    size_t n = load(f, e, 64);
    for (size_t i = 0; i < n; i++)
        shown[i] = fdr_definition(f, FDR_REGION_DEFINITION, e[i].id)->name[0] | (e[i].kind == FDR_LEAVE ? 32 : 0);
    assert_string_equal(shown, w->shown);
    assert_int_equal(fdr_location_info(f, 0)->unbalanced, w->unbalanced);
    assert_int_equal(fdr_location_info(f, 0)->stray_leaves, w->stray);
    balance(f);
    end(f);
    unlink(rules);
}

/* A stored region's leave may skip filtered calls, and is not taken for one of theirs. The leave of an excluded region
 * ends nothing, also where stored calls lack their leaves. A leave of a region that is not open ends no call. If a rule
 * leaves out calls of the region, it is no stray one. [ and { stand for the caller [filtered]. */
static void P9_leaves_that_skip_calls_kept_out(void **state)
{
    (void)state;
    static const struct skips what[] = {
        {"first 9 name A\nexclude name B\n", "ABaDdABBaDd", "AaDdAaDd", 0, 0},
        {"every 2 name A\nexclude name B\n", "ABaDdABaDdABaDd", "AaDdDdAaDd", 0, 0},
        {"exclude name B\n", "DBCbCcd", "DCCccd", 1, 0},
        {"exclude name B\n", "BCDbC", "CDCcdc", 0, 0},
        {"first 1 name A\nexclude name B\n", "AaDBabd", "AaDd", 0, 0},
        {"every 2 name A\n", "AAAAAAaDdaaaaaDd", "A[A[ADda{a{aDd", 0, 0},
    };
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) check_skips(&what[i]);
}

/* More filtered calls than the first list holds, and then more than any list: jumps left these. */
static void P9_many_calls_kept_out(void **state)
{
    (void)state;
    char *rules = write_rules("exclude name B\nfirst 1000000 name A\n");
    for (int loop = 0; loop < 2; loop++) {
        begin(&(struct fdr_config){.filter = rules, .buffer = "16M"});
        fdr_region a = fdr_region_define("A", NULL, 0), b = fdr_region_define("B", NULL, 0);
        uint64_t t = 100, rounds = loop ? 5000 : 900;
        for (uint64_t i = 0; i < rounds; i++) fdr_enter_at(b, t += 10);
        for (uint64_t i = 0; i < rounds; i++) {
            fdr_enter_at(a, t += 10), fdr_enter_at(b, t += 10);
            fdr_leave_at(a, t += 10);
            if (!loop) fdr_leave_at(b, t += 10);
        }
        struct fdr_file *f = take();
        assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->kept, rounds);
        assert_int_equal(fdr_location_info(f, 0)->open_count, 0);
        assert_int_equal(fdr_location_info(f, 0)->stray_leaves, 0);
        assert_int_equal(total(f, FDR_IN_REGION, a)->inclusive_ns, rounds * 20);
        balance(f);
        end(f);
    }
    unlink(rules);
}

/* Frames as the compiler's hooks report them: `up` bytes above the lowest one. The functions are addresses without
 * code. */
static char code[256];
enum { WAYS = 5 };
struct way {
    /* the frame of s, the last stored function before f ends; up_to: place of its return address, or 0 */
    int up, up_to, caller, site;
    bool gone; /* did a jump leave the inner f? */
};

static void in_frame(const void *function, char *frame, int caller, int site)
{
    fdr_enter_function_(function, code + caller, frame, code + site);
}

/* f is stored and calls itself; a rule filters the inner call, which has a frame because of the outer one. Then s is
 * called until its frame is known. The frame decides whether the next leave of f ends the inner or the outer call. */
static void check_way(const struct way *w)
{
    _Alignas(8) char stack[4096] = {0};
    const void *f = (const void *)(uintptr_t)&a64l; /* sanitizers do not replace this function */
    in_frame(code, stack + 4000, 1, 2);
    in_frame(f, stack + 3200, 3, 4);
    in_frame(f, stack + 2400, 5, 4);
    assert_int_equal(fdri_record_self.loc->depth, 3);
    if (w->up_to) memcpy(stack + w->up_to, &(const void *){code + w->caller}, sizeof(void *));
    for (int i = 0; i < 16; i++) {
        in_frame(code + 100 + w->site, stack + w->up, w->caller, w->site);
        fdr_leave_address(code + 100 + w->site);
    }
    fdr_leave_address(f);
    assert_int_equal(fdri_record_self.loc->depth, w->gone ? 1 : 2);
    if (!w->gone) fdr_leave_address(f);
    assert_int_equal(fdri_record_self.loc->depth, 1);
    fdr_leave_address(code);
    assert_int_equal(fdri_record_self.loc->depth, 0);
}

static void P9_a_call_kept_out_that_a_jump_left(void **state)
{
    (void)state;
    static const struct way ways[WAYS] = {{2800, 0, 10, 11, true},     /* s lies above the inner f */
                                          {2400, 0, 12, 13, true},     /* at its place, called from elsewhere */
                                          {2400, 0, 5, 14, false},     /* inlined into it */
                                          {1600, 0, 15, 16, false},    /* may be called by it */
                                          {1600, 2800, 17, 18, true}}; /* large: begins below, returns above */
    char *rules = write_rules("every 2 name a64l\n");
    begin(&(struct fdr_config){.filter = rules, .timer = oracle_clock("tsc")});
    uint64_t gone = 0;
    for (int i = 0; i < (FDRI_STACK_RETURN_ABOVE_FRAME ? WAYS : WAYS - 1); i++)
        check_way(&ways[i]), gone += ways[i].gone;
    assert_int_equal(fdri_record_self.loc->stray_leaves, 0);
    assert_int_equal(fdri_record_self.loc->unbalanced, gone);
    struct fdr_file *file = take();
    balance(file);
    end(file);
    unlink(rules);
}

/* One call of 50 ns at t; the next one begins 100 ns later. */
static uint64_t one_call(uint64_t *t)
{
    fdr_enter_at(1, *t);
    fdr_leave_at(1, *t + 50);
    return *t += 100;
}

static void P3_phases_nest(void **state)
{
    (void)state;
    char *rules = write_rules("phase solve*\nphase step\n");
    uint64_t t = 100;
    begin(&(struct fdr_config){.filter = rules});
    fdr_phase_end("step"); /* without a begin: no effect */
    one_call(&t);
    fdr_phase_begin("solver");
    one_call(&t); /* kept */
    fdr_phase_begin("step"), fdr_phase_begin("step");
    one_call(&t); /* kept */
    fdr_phase_end("step");
    one_call(&t); /* kept */
    fdr_phase_end("step");
    one_call(&t); /* kept: the outer step is still open */
    fdr_pause();
    fdr_phase_begin("step");
    one_call(&t); /* paused by the program */
    fdr_resume();
    one_call(&t); /* kept */
    fdr_phase_end("step"), fdr_phase_end("solver");
    one_call(&t);
    fdr_phase_end("solver"), fdr_phase_end("step");
    fdr_phase_begin("step");
    one_call(&t); /* kept: ends without a begin did not count */
    fdr_phase_end("step");
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 9);
    uint64_t kept = row(f, 0, FDR_IN_REGION, 1)->kept, filtered = row(f, 0, FDR_IN_REGION, 1)->filtered;
    end(f);
    unlink(rules);
    assert_int_equal(kept, 6);
    assert_int_equal(filtered, 3);
}

/* A resume without a pause has no effect: neither outside of phases, nor on a later pause. */
static void P3_a_resume_too_many(void **state)
{
    (void)state;
    uint64_t t = 100;
    char *rules = write_rules("phase solve*\n");
    begin(&(struct fdr_config){.filter = rules});
    fdr_resume();
    one_call(&t); /* outside of the phase */
    fdr_phase_begin("solver");
    one_call(&t); /* kept */
    fdr_resume();
    fdr_pause();
    one_call(&t); /* paused */
    fdr_phase_end("solver");
    fdr_resume(), fdr_resume();
    one_call(&t); /* outside of the phase */
    fdr_pause();
    fdr_phase_begin("solver");
    one_call(&t); /* the pause came before the phase */
    fdr_resume();
    one_call(&t); /* kept */
    fdr_phase_end("solver");
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 6);
    uint64_t kept = row(f, 0, FDR_IN_REGION, 1)->kept, filtered = row(f, 0, FDR_IN_REGION, 1)->filtered;
    end(f);
    unlink(rules);
    assert_int_equal(kept, 2);
    assert_int_equal(filtered, 4);
}

/* A filtered call between stored ones is shown as [filtered], not as [reduced]. */
static void P9_filtered_parents_are_reported(void **state)
{
    (void)state;
    char *rules = write_rules("min 1us name middle\n");
    begin(&(struct fdr_config){.filter = rules});
    fdr_region outer = fdr_region_define("outer", NULL, 0), middle = fdr_region_define("middle", NULL, 0);
    fdr_region inner = fdr_region_define("inner", NULL, 0);
    fdr_enter_at(outer, 1000), fdr_enter_at(middle, 1100), fdr_enter_at(inner, 1200);
    fdr_leave_at(inner, 1300), fdr_leave_at(middle, 1400), fdr_leave_at(outer, 9000);
    struct fdr_file *f = take();
    struct fdr_read_event e[8];
    assert_int_equal(load(f, e, 8), 6);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->filtered, 1);
    assert_true(e[0].id == outer && !e[0].filtered && !e[0].reduced);
    assert_true(e[1].kind == FDR_ENTER && e[1].depth == 2 && e[1].reduced && e[1].filtered);
    assert_true(e[2].id == inner && e[2].depth == 3 && !e[2].filtered && !e[2].reduced);
    assert_true(e[4].kind == FDR_LEAVE && e[4].depth == 2 && e[4].reduced && e[4].filtered);
    assert_true(e[5].id == outer && !e[5].filtered);
    end(f);
    unlink(rules);
}

static void P3_phases_store_only_inside(void **state)
{
    (void)state;
    char *rules = write_rules("phase solve*\n");
    begin(&(struct fdr_config){.filter = rules});
    fdr_enter_at(1, 100);
    fdr_leave_at(1, 200);
    fdr_phase_begin("other");
    fdr_enter_at(1, 300);
    fdr_leave_at(1, 400);
    fdr_phase_end("other");
    fdr_phase_begin("solver");
    fdr_enter_at(2, 500);
    fdr_leave_at(2, 600);
    fdr_phase_end("solver");
    fdr_enter_at(1, 700);
    fdr_leave_at(1, 800);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 4);
    uint64_t kept = row(f, 0, FDR_IN_REGION, 1)->kept, filtered = row(f, 0, FDR_IN_REGION, 1)->filtered;
    end(f);
    unlink(rules);
    assert_int_equal(kept, 1); /* docs: a thread stores events only within a named phase */
    assert_int_equal(filtered, 3);
}

static void P3_rewind_forgets_exactly(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.buffer = "8M"});
    fdr_rewind(); /* no mark: no effect */
    uint64_t t = 0, forgotten = 0;
    fdr_enter_at(1, t += 10);
    for (int round = 0; round < 60; round++) {
        fdr_rewind_mark();
        uint64_t n = 0;
        for (int i = 0; i < 400; i++) {
            fdr_enter_at(2, t += 10);
            fdr_enter_at(3, t += 10);
            fdr_marker_at(1, 5, t);
            fdr_leave_at(3, t += 300);
            fdr_leave_at(2, t += 5000);
            n += 3;
        }
        if (round % 3) fdr_rewind(), forgotten += n;
    }
    fdr_leave_at(1, t += 10);
    struct fdr_file *f = take();
    assert_int_equal(balance(f), 1 + 60 * 1200);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->filtered + row(f, 0, FDR_IN_REGION, 3)->filtered +
                         row(f, 0, FDR_IN_MARKER, 3)->filtered,
                     forgotten);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->kept, 20 * 400);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 1)->kept, 1);
    assert_int_equal(total(f, FDR_IN_REGION, 2)->calls, 60 * 400); /* totals stay */
    assert_int_equal(total(f, FDR_IN_MARKER, 1)->calls, 60 * 400);
    uint64_t events = 0;
    assert_null(oracle_check_any(f, &events));
    assert_int_equal(events, 20 * 400 * 5 + 2);
    end(f);
}

/* Rewinds during reductions, to marks whose bins were given back, and across calls that span the mark. */
static void P3_rewind_in_a_small_buffer(void **state)
{
    static const char *const strategies[] = {"whole", "last", "first"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        begin(&(struct fdr_config){.buffer = "256K", .bin = "1K", .strategy = strategies[k]});
        uint64_t t = 0, n = 0, seed = 99;
        uint32_t depth = 0;
        for (int i = 0; i < 400000; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t x = (uint32_t)(seed >> 33) % 1000;
            t += x % 7 == 0 ? 3000 : x % 11;
            if (x < 430 && depth < 20) fdr_enter_at(1 + depth++, t), n++;
            else if (x < 900 && depth) fdr_leave_at(depth--, t);
            else if (x < 940) fdr_marker_at(1, 9, t), n++;
            else if (x == 950) fdr_rewind_mark();
            else if (x == 951) fdr_rewind();
        }
        struct fdr_file *f = take();
        assert_int_equal(balance(f), n);
        uint64_t events = 0;
        const char *wrong = oracle_check_any(f, &events);
        if (wrong) print_message("%s: %s\n", strategies[k], wrong);
        assert_null(wrong);
        end(f);
    }
}
/* A rewind within the tick of its mark. Later calls of length 0 are numbered after those before the mark. Marks use no
 * more memory, however many there are. */
static void P4_rewind_within_one_tick(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.timer = "monotonic", .buffer = "16M", .resolution = "128ns"});
    uint64_t t = 128;
    for (int round = 0; round < 300; round++, t += 1280) {
        both_enter(&o, 1, t);
        both_enter(&o, 2, t), both_marker(&o, 1, (uint64_t)round, t), both_leave(&o, t);
        fdr_rewind_mark();
        for (int i = 0; i < 3; i++) {
            fdr_enter_at(2, t), fdr_enter_at(3, t), fdr_marker_at(1, 7, t), fdr_leave_at(3, t), fdr_leave_at(2, t);
        }
        fdr_rewind();
        both_enter(&o, 2, t + 1), both_enter(&o, 3, t + 1), both_marker(&o, 1, 9, t + 2), both_leave(&o, t + 3),
            both_leave(&o, t + 4);
        both_leave(&o, t + 1000);
    }
    struct oracle_view v = {0};
    struct oracle_rules r = {.shift = 7};
    struct fdr_file *f = take();
    const char *wrong = oracle_load(f, 0, &v);
    if (!wrong) wrong = oracle_match(&o, &r, &v);
    if (!wrong) wrong = oracle_order(&o, &v);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
    oracle_view_free(&v);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 2)->filtered, 900);
    assert_int_equal(fdr_usage().lost, 0);
    end(f);
}

/* Filtered calls stand on the shadow stack, too. When storage stops, the other open calls keep their depths. */
static void P9_counted_calls_on_the_stack(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        begin(&(struct fdr_config){.buffer = "256K", .strategy = first ? "first" : "whole"});
        uint64_t t = 1000;
        fdr_enter_at(1, t);
        fdr_enter_at(2, t += 5), fdr_leave_at(2, t += 5); /* leaves its time on the level */
        fdr_pause();
        fdr_enter_at(2, t);
        fdr_resume();
        fdr_enter_at(3, t += 10);
        for (int i = 0; i < 300000; i++)
            fdr_enter_at(4, t += 1 + (uint64_t)i * i % 5000), fdr_leave_at(4, t += 1 + (uint64_t)i * i % 777);
        struct fdr_file *f = take();
        const struct fdr_location_info *l = fdr_location_info(f, 0);
        assert_int_equal(l->open_count, 3);
        assert_true(l->open[1].untimed && !l->open[0].untimed && !l->open[2].untimed);
        assert_int_equal(row(f, 0, FDR_IN_REGION, 3)->kept, 1);
        struct oracle_view v = {0};
        const char *wrong = oracle_load(f, 0, &v);
        if (wrong) print_message("%s\n", wrong);
        assert_null(wrong);
        uint32_t third = 0;
        for (size_t i = 0; i < v.count; i++) {
            if (v.shown[i].kind != FDR_ENTER) continue;
            if (v.shown[i].id == 3) third += v.shown[i].depth == 3;
            if (v.shown[i].id == 4) assert_int_equal(v.shown[i].depth, 4);
        }
        assert_int_equal(third, 1);
        oracle_view_free(&v);
        end(f);
    }
}

/* A pause ends inside an untimed call. The time of calls in there is not exclusive time of the outer timed call. */
static void P5_time_within_untimed_calls(void **state)
{
    (void)state;
    begin(NULL);
    fdr_enter_at(1, 0);
    fdr_pause();
    fdr_enter_at(2, 5);
    fdr_resume();
    fdr_enter_at(3, 10), fdr_leave_at(3, 30);
    fdr_leave_at(2, 40);
    fdr_leave_at(1, 100);
    struct fdr_file *f = take();
    assert_int_equal(total(f, FDR_IN_REGION, 1)->inclusive_ns, 100);
    assert_int_equal(total(f, FDR_IN_REGION, 1)->exclusive_ns, 80);
    assert_int_equal(total(f, FDR_IN_REGION, 3)->exclusive_ns, 20);
    assert_int_equal(total(f, FDR_IN_REGION, 2)->untimed, 1);
    end(f);
}

/* Within one tick, a paused call contains calls of length 0. Their place would be unknown, so they are filtered, too.
 * The stored calls are shown in their places. `what`: how the sequence continues. */
static void length_0_in_a_pause(int what)
{
    begin(&(struct fdr_config){.resolution = "1ms"});
    uint64_t tick = 10ull << 20, later = 15ull << 20;
    fdr_enter_at(9, 1ull << 20);
    fdr_enter_at(1, tick);
    fdr_pause(), fdr_enter_at(2, tick), fdr_resume();
    fdr_enter_at(3, tick), fdr_enter_at(4, tick), fdr_leave_at(4, tick), fdr_leave_at(3, tick);
    if (what == 0) fdr_leave_at(2, tick);
    if (what == 1) fdr_enter_at(5, later), fdr_leave_at(5, later), fdr_leave_at(2, later);
    if (what == 2)
        fdr_leave_at(2, tick), fdr_enter_at(5, tick), fdr_enter_at(6, tick), fdr_leave_at(6, tick),
            fdr_leave_at(5, tick);
    if (what == 3) fdr_marker_at(1, 7, tick);
    if (what < 3) fdr_leave_at(1, what == 0 ? tick : later);
    struct fdr_file *f = take();
    struct fdr_read_event e[32];
    uint64_t shown[8] = {0};
    size_t n = load(f, e, 32);
    for (size_t i = 0; i < n; i++) {
        assert_true(e[i].depth < 8 && (!e[i].reduced || e[i].filtered)); /* no call was given back */
        shown[e[i].depth] += e[i].kind == FDR_ENTER && !e[i].reduced;
        if (e[i].kind == FDR_ENTER && e[i].id == 6) assert_int_equal(e[i - 1].id, 5);
    }
    for (uint32_t d = 1; d < 8; d++) assert_int_equal(shown[d], row(f, 0, FDR_IN_REGION, d)->kept);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 4)->filtered, 1);
    assert_int_equal(row(f, 0, FDR_IN_REGION, 5)->filtered, 1);
    assert_int_equal(total(f, FDR_IN_REGION, 3)->calls, 1);
    balance(f);
    end(f);
}
static void P3_P9_length_0_in_a_pause(void **state)
{
    (void)state;
    for (int what = 0; what < 4; what++) length_0_in_a_pause(what);
}

/* Rules for counters at the edges of calls do not override a rule that excludes a region. */
static void P3_edge_regions_overrule_no_rule(void **state)
{
    char *rules = write_rules("exclude name hidden\n");
    (void)state;
    begin(&(struct fdr_config){.filter = rules, .edge_counters = "task-clock", .edge_regions = "*"});
    fdr_region hidden = fdr_region_define("hidden", NULL, 0), shown = fdr_region_define("shown", NULL, 0);
    const struct fdri_names_rule *h = fdri_names_rule_of(hidden), *w = fdri_names_rule_of(shown);
    assert_non_null(h);
    assert_int_equal(h->mode, FDRI_NAMES_RULE_EXCLUDE);
    assert_non_null(w);
    assert_int_equal(w->mode, FDRI_NAMES_RULE_COUNTERS);
    fdr_finalize();
    unlink(rules);
}

/* A leave skips a timed call inside of an untimed one, which was entered during a pause. */
static void P5_a_skipped_call_inside_of_one_without_time(void **state)
{
    struct fdr_read_event e[8];
    (void)state;
    begin(NULL);
    fdr_pause();
    fdr_enter_at(1, 2000);
    fdr_resume();
    fdr_enter_at(2, 3000);
    fdr_leave_at(1, 900000);
    struct fdr_file *f = take();
    size_t n = load(f, e, 8), leaves = 0;
    for (size_t i = 0; i < n; i++)
        if (e[i].kind == FDR_LEAVE && e[i].id == 2 && ++leaves) assert_int_equal(e[i].time_ns, 900000);
    assert_int_equal(leaves, 1);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_rules_keep_out_what_they_say),
        cmocka_unit_test(P3_recursion_of_a_region_that_is_kept_out),
        cmocka_unit_test(P9_leaves_that_skip_calls_kept_out),
        cmocka_unit_test(P9_many_calls_kept_out),
        cmocka_unit_test(P9_a_call_kept_out_that_a_jump_left),
        cmocka_unit_test(P3_phases_nest),
        cmocka_unit_test(P3_a_resume_too_many),
        cmocka_unit_test(P9_filtered_parents_are_reported),
        cmocka_unit_test(P3_phases_store_only_inside),
        cmocka_unit_test(P3_rewind_forgets_exactly),
        cmocka_unit_test(P3_rewind_in_a_small_buffer),
        cmocka_unit_test(P4_rewind_within_one_tick),
        cmocka_unit_test(P9_counted_calls_on_the_stack),
        cmocka_unit_test(P5_time_within_untimed_calls),
        cmocka_unit_test(P3_P9_length_0_in_a_pause),
        cmocka_unit_test(P3_edge_regions_overrule_no_rule),
        cmocka_unit_test(P5_a_skipped_call_inside_of_one_without_time),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    oracle_free(&o);
    return bad;
}
