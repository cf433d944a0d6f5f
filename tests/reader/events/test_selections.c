/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=300 promise=P4
 * P4: a selection shows exactly the named part of all events, in their order. Also: clocks, open calls, and many
 * readers of one file. */
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "format/arena/arena.h"
#include "reader/file/file.h"
#include "tests/support/arena_builder.c"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

static uint64_t seed = 0x2545F4914F6CDD1Du;

static void program(struct builder *b, uint32_t location, uint32_t events)
{
    uint64_t tick = 1000000;
    for (uint32_t i = 0; i < events; i++) {
        uint32_t depth = builder_depth(b, location), what = rnd(&seed, 20);
        tick += rnd(&seed, 4) ? 0 : rnd(&seed, 60);
        if (what < 2) {
            uint64_t value[4] = {rnd(&seed, 1000), 2, 3, 4};
            builder_point(b, location, what ? FDRI_ARENA_CLASS_MESSAGE : FDRI_ARENA_CLASS_METRIC, 1, tick, value,
                          what ? 4 : 1);
        } else if (depth == 0 || (depth < 7 && what < 11)) {
            builder_enter(b, location, 1 + rnd(&seed, 9), tick);
        } else {
            builder_leave(b, location, tick);
        }
    }
}

static struct fdr_file *open_image(struct builder *b)
{
    char message[256];
    struct fdr_file *f;
    size_t bytes;
    const uint8_t *image = builder_image(b, &bytes);
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_WHOLE);
    return f;
}

struct list {
    struct fdr_read_event *event;
    uint64_t *enter, *leave;
    size_t count;
};

static struct list all_events(struct fdr_file *f, const struct fdr_select *select)
{
    struct list l = {malloc(60000 * sizeof *l.event), calloc(60000, 8), calloc(60000, 8), 0};
    static size_t open[8][16];
    struct fdr_iter *it = fdr_iter_open(f, select);
    struct fdr_read_event e;
    while (fdr_iter_next(it, &e)) {
        assert_true(l.count < 60000);
        size_t i = l.count++;
        l.event[i] = e;
        l.enter[i] = l.leave[i] = e.time_ns;
        if (e.kind == FDR_ENTER) open[e.location][e.depth] = i;
        if (e.kind != FDR_LEAVE) continue;
        size_t j = open[e.location][e.depth];
        l.enter[i] = l.enter[j];
        l.leave[j] = e.time_ns;
    }
    fdr_iter_close(it);
    return l;
}
static void drop(struct list *l)
{
    free(l->event);
    free(l->enter);
    free(l->leave);
}

static bool named(const struct fdr_select *s, const struct list *l, size_t i)
{
    const struct fdr_read_event *e = &l->event[i];
    bool call = e->kind == FDR_ENTER || e->kind == FDR_LEAVE, here = !s->locations;
    for (size_t k = 0; k < s->location_count; k++) here |= s->locations[k] == e->location;
    if (!here || (s->classes && !(s->classes >> e->class_ & 1))) return false;
    if (e->depth < s->depth_min || (s->depth_max && e->depth > s->depth_max)) return false;
    if (s->from_ns && l->leave[i] < s->from_ns) return false;
    if (s->to_ns && l->enter[i] > s->to_ns) return false;
    if (!call) return true;
    if (l->leave[i] - l->enter[i] < s->min_duration_ns) return false;
    return !s->regions || (e->id < s->region_count && s->regions[e->id]);
}

static void compare(struct fdr_file *f, const struct list *all, const struct fdr_select *s)
{
    struct list some = all_events(f, s);
    size_t n = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (!named(s, all, i)) continue;
        assert_true(n < some.count);
        const struct fdr_read_event *want = &all->event[i], *got = &some.event[n++];
        assert_int_equal(want->time_ns, got->time_ns);
        assert_int_equal(want->location, got->location);
        assert_int_equal(want->kind, got->kind);
        assert_int_equal(want->depth, got->depth);
        assert_int_equal(want->id, got->id);
        assert_int_equal(want->duration_ns, got->duration_ns);
    }
    assert_int_equal(n, some.count);
    drop(&some);
}

static void selections(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < (SANITIZED ? 6 : 40); round++) {
        struct builder_options o = {.shift = rnd(&seed, 6), .bin_bytes = 1024, .edge = {3, 30, 300}};
        struct builder *b = builder_new(&o);
        for (uint32_t i = 0; i < 3; i++) program(b, builder_location(b, "x"), 3000);
        struct fdr_file *f = open_image(b);
        struct list all = all_events(f, NULL);
        uint64_t first = all.event[0].time_ns, last = all.event[all.count - 1].time_ns;
        static const uint32_t two[2] = {2, 0};
        static const uint8_t regions[6] = {0, 1, 0, 1, 1, 0};
        for (uint32_t i = 0; i < 30; i++) {
            struct fdr_select s = {0};
            if (rnd(&seed, 3) == 0) s.locations = two, s.location_count = 1 + rnd(&seed, 2);
            if (rnd(&seed, 3) == 0)
                s.classes = 1u << FDRI_ARENA_CLASS_REGION |
                            1u << (rnd(&seed, 2) ? FDRI_ARENA_CLASS_MESSAGE : FDRI_ARENA_CLASS_METRIC);
            if (rnd(&seed, 4) == 0) s.classes = 1u << FDRI_ARENA_CLASS_MESSAGE;
            if (rnd(&seed, 3) == 0) s.depth_min = rnd(&seed, 5);
            if (rnd(&seed, 3) == 0) s.depth_max = s.depth_min + rnd(&seed, 4);
            if (rnd(&seed, 2)) s.from_ns = first + rnd(&seed, (uint32_t)(last - first) + 1);
            if (rnd(&seed, 2)) s.to_ns = (s.from_ns ? s.from_ns : first) + rnd(&seed, (uint32_t)(last - first) + 1);
            if (rnd(&seed, 3) == 0) s.min_duration_ns = rnd(&seed, 400);
            if (rnd(&seed, 3) == 0) s.regions = regions, s.region_count = 6;
            compare(f, &all, &s);
        }
        drop(&all);
        fdr_file_close(f);
        builder_free(b);
    }
}

/* The reader decodes no bins of calls that are too short for the selection. */
static void short_bands_are_not_touched(void **state)
{
    (void)state;
    struct builder_options o = {.bin_bytes = 1024, .edge = {30, 300, 3000}};
    struct builder *b = builder_new(&o);
    builder_location(b, "x");
    uint64_t t = 1000;
    for (uint32_t i = 0; i < 20000; i++) {
        builder_enter(b, 0, 1, t), builder_enter(b, 0, 2, t += 3);
        builder_leave(b, 0, t += 5), builder_leave(b, 0, t += i % 100 ? 4 : 500);
        t += 10;
    }
    struct fdr_file *f = open_image(b);
    struct fdr_select s = {.min_duration_ns = 400};
    struct list some = all_events(f, &s);
    assert_int_equal(some.count, 2 * 200);
    drop(&some);
    size_t bins[FDRI_ARENA_BANDS] = {0}, decoded[FDRI_ARENA_BANDS] = {0};
    for (size_t i = 0; i < f->location[0].part_count; i++) {
        const struct fdri_file_part *p = &f->location[0].part[i];
        for (uint32_t k = 0; k < p->bin_count; k++) {
            bins[p->band]++;
            decoded[p->band] += p->bin[k].state != FDRI_FILE_BIN_UNKNOWN;
        }
    }
    print_message("%zu of %zu bins of the shortest band decoded, %zu of %zu of those asked for\n", decoded[0], bins[0],
                  decoded[2], bins[2]);
    assert_true(bins[0] > 20);
    assert_true(decoded[0] <= 4); /* the first and the last bin of each depth, which bound it in time */
    assert_int_equal(decoded[2], bins[2]);
    fdr_file_close(f);
    builder_free(b);
}

static void one_location_after_another(void **state)
{
    (void)state;
    struct builder_options o = {0};
    struct builder *b = builder_new(&o);
    for (uint32_t i = 0; i < 3; i++) program(b, builder_location(b, "x"), 500);
    struct fdr_file *f = open_image(b);
    struct fdr_select s = {.one_location_after_another = true};
    struct list l = all_events(f, &s), m = all_events(f, NULL);
    assert_int_equal(l.count, m.count);
    for (size_t i = 1; i < l.count; i++) {
        assert_true(l.event[i].location >= l.event[i - 1].location);
        if (l.event[i].location == l.event[i - 1].location) assert_true(l.event[i].time_ns >= l.event[i - 1].time_ns);
        assert_true(m.event[i].time_ns >= m.event[i - 1].time_ns);
    }
    drop(&l);
    drop(&m);
    fdr_file_close(f);
    builder_free(b);
}

/* ns = start + (tick - start tick) / rate, within 1 ns, for every tick. */
static void tsc_clock(void **state)
{
    (void)state;
    struct builder_options o = {.tsc = true, .ticks_per_second = 2599998123u, .shift = 5};
    struct builder *b = builder_new(&o);
    builder_location(b, "x");
    static uint64_t tick[200];
    for (uint32_t i = 0; i < 100; i++) {
        tick[2 * i] = 1000 + (uint64_t)i * i * i * 977777777777u;
        tick[2 * i + 1] = tick[2 * i] + i * 1000;
        builder_enter(b, 0, 1, tick[2 * i]);
        builder_leave(b, 0, tick[2 * i + 1]);
    }
    struct fdr_file *f = open_image(b);
    struct list l = all_events(f, NULL);
    assert_int_equal(l.count, 200);
    for (uint32_t i = 0; i < 200; i++) {
        uint64_t full = tick[i] >> 5 << 5;
        unsigned __int128 before = full < 1000 ? (unsigned __int128)(1000 - full) * 1000000000u / 2599998123u + 1 : 0;
        uint64_t want = full < 1000
                            ? 5000000000u - (uint64_t)before
                            : 5000000000u + (uint64_t)((unsigned __int128)(full - 1000) * 1000000000u / 2599998123u);
        assert_true(l.event[i].time_ns + 1 >= want && l.event[i].time_ns <= want + 1);
    }
    drop(&l);
    fdr_file_close(f);
    builder_free(b);
}

/* An open call has an enter, and the reader makes a leave at the location's newest time. The ledger counts it as
 * kept. */
static void open_calls(void **state)
{
    (void)state;
    struct builder_options o = {.shift = 4};
    struct builder *b = builder_new(&o);
    builder_location(b, "x");
    builder_enter(b, 0, 1, 1600);
    builder_enter(b, 0, 2, 3200);
    builder_enter(b, 0, 3, 4800);
    builder_leave(b, 0, 6400);
    builder_enter(b, 0, 4, 6400);
    struct fdr_file *f = open_image(b);
    const struct fdr_location_info *i = fdr_location_info(f, 0);
    assert_int_equal(i->open_count, 3);
    assert_int_equal(i->open[2].region, 4);
    assert_int_equal(i->open[2].enter_ns, 6400);
    assert_int_equal(i->from_ns, 1600);
    assert_int_equal(i->to_ns, 6400);
    struct list l = all_events(f, NULL);
    assert_int_equal(l.count, 8);
    for (size_t k = 5; k < 8; k++) {
        assert_int_equal(l.event[k].kind, FDR_LEAVE);
        assert_true(l.event[k].repaired);
        assert_int_equal(l.event[k].time_ns, 6400);
        assert_int_equal(l.event[k].depth, 8 - k);
    }
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(f, &rows);
    assert_int_equal(n, 3);
    for (size_t k = 0; k < n; k++) assert_int_equal(rows[k].presented, rows[k].kept);
    drop(&l);
    fdr_file_close(f);
    builder_free(b);
}

static void definitions(void **state)
{
    (void)state;
    struct builder_options o = {0};
    struct builder *b = builder_new(&o);
    builder_location(b, "x");
    char name[32];
    for (uint32_t i = 1; i < 300; i++) {
        snprintf(name, sizeof name, "region %u", i);
        assert_int_equal(builder_define(b, FDRI_ARENA_DEF_REGION, name, "a.c", i), i);
    }
    builder_define(b, FDRI_ARENA_DEF_METRIC, "load", "1", 0);
    struct fdr_file *f = open_image(b);
    assert_int_equal(fdr_definition_count(f, FDR_REGION_DEFINITION), 299);
    assert_int_equal(fdr_definition_count(f, FDR_METRIC_DEFINITION), 1);
    assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, 123)->name, "region 123");
    assert_int_equal(fdr_definition(f, FDR_REGION_DEFINITION, 123)->line, 123);
    assert_string_equal(fdr_metric_info(f, 1)->unit, "1");
    for (uint32_t i = 1000; i < 2000; i++) {
        snprintf(name, sizeof name, "[unknown %u]", i);
        assert_string_equal(fdr_definition(f, FDR_REGION_DEFINITION, i)->name, name);
    }
    assert_ptr_equal(fdr_definition(f, FDR_REGION_DEFINITION, 1000), fdr_definition(f, FDR_REGION_DEFINITION, 1000));
    fdr_file_close(f);
    builder_free(b);
}

static void *reads(void *file)
{
    const struct fdr_ledger_row *rows;
    struct list l = all_events(file, NULL);
    size_t n = l.count;
    fdr_ledger(file, &rows);
    fdr_definition(file, FDR_REGION_DEFINITION, 5000);
    drop(&l);
    return (void *)n;
}

static void *iterates(void *file)
{
    struct fdr_iter *it = fdr_iter_open(file, NULL);
    struct fdr_read_event e;
    size_t n = 0;
    while (fdr_iter_next(it, &e)) n++;
    fdr_iter_close(it);
    const struct fdr_ledger_row *rows;
    fdr_ledger(file, &rows);
    fdr_definition(file, FDR_REGION_DEFINITION, 5000);
    return (void *)n;
}

static void many_readers_of_one_file(void **state)
{
    (void)state;
    struct builder_options o = {.bin_bytes = 1024};
    struct builder *b = builder_new(&o);
    for (uint32_t i = 0; i < 4; i++) program(b, builder_location(b, "x"), 5000);
    struct fdr_file *f = open_image(b);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, iterates, f);
    size_t want = (size_t)reads(f);
    for (int i = 0; i < 4; i++) {
        void *n;
        pthread_join(thread[i], &n);
        assert_int_equal((size_t)n, want);
    }
    fdr_file_close(f);
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selections),
        cmocka_unit_test(short_bands_are_not_touched),
        cmocka_unit_test(one_location_after_another),
        cmocka_unit_test(tsc_clock),
        cmocka_unit_test(open_calls),
        cmocka_unit_test(definitions),
        cmocka_unit_test(many_readers_of_one_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
