/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=900 promise=P8,P9
 * P8, P9: any bytes give a verdict and the readable part. The reader shows no event that was not presented. One bad bin
 * costs only that bin. */
#include <fdr/reader.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "format/arena/arena.h"
#include "tests/support/arena_builder.c"
#include "tests/support/reader_truth.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

static uint64_t seed = 0x9E3779B97F4A7C15u;

static void program(struct builder *b, struct truth *t, uint32_t location, uint32_t events, uint32_t depth_max)
{
    uint64_t tick = 1000000;
    for (uint32_t i = 0; i < events; i++) {
        uint32_t depth = builder_depth(b, location), what = rnd(&seed, 20);
        tick += rnd(&seed, 4) ? 0 : rnd(&seed, rnd(&seed, 20) ? 60 : 4000);
        if (what == 0) {
            uint64_t value = rnd(&seed, 100000);
            builder_point(b, location, FDRI_ARENA_CLASS_METRIC, 1, tick, &value, 1);
            truth_point(t, location, FDRI_ARENA_CLASS_METRIC, 1, depth, tick, &value, 1, b->set.shift);
        } else if (depth == 0 || (depth < depth_max && what < 11)) {
            builder_enter(b, location, 1 + rnd(&seed, 9), tick);
            truth_enter(t, location, level(b, location, depth + 1)->region, depth + 1, tick, b->set.shift);
        } else {
            builder_leave(b, location, tick);
            truth_leave(t, location, depth, tick, b->set.shift);
        }
    }
}

struct fixture {
    struct builder *b;
    struct truth t;
    uint8_t *image, *copy;
    size_t bytes;
};

static void begin(struct fixture *x, uint32_t locations, uint32_t events)
{
    struct builder_options o = {.arena_bytes = 512u << 10, .shift = 5, .bin_bytes = 1024, .edge = {2, 20, 200}};
    memset(x, 0, sizeof *x);
    x->b = builder_new(&o);
    memcpy(x->t.edge, o.edge, sizeof o.edge);
    for (uint32_t i = 1; i < 10; i++) builder_define(x->b, FDRI_ARENA_DEF_REGION, "region", "file.c", i);
    builder_define(x->b, FDRI_ARENA_DEF_METRIC, "metric", "bytes", 0);
    for (uint32_t i = 0; i < locations; i++) {
        builder_location(x->b, "thread");
        program(x->b, &x->t, i, events, 6);
    }
    builder_reduce(x->b, 0, 3);
    truth_reduce(&x->t, x->b, 0);
    x->image = builder_image(x->b, &x->bytes);
    x->copy = aligned_alloc(64, x->bytes);
}
static void end(struct fixture *x)
{
    free(x->copy);
    truth_free(&x->t);
    builder_free(x->b);
}

/* The first event of this location at this tick or later. The truth lists one location after the other. */
static size_t first_at(const struct truth *t, uint32_t location, uint64_t tick)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        const struct truth_event *w = &t->event[i];
        if (w->location < location || (w->location == location && w->tick < tick)) low = i + 1;
        else high = i;
    }
    return low;
}

/* Was this call or point presented? Made-up ones count as presented. */
static bool presented_before(const struct truth *t, const struct fdr_read_event *e, uint32_t shift)
{
    uint64_t tick = e->time_ns >> shift;
    if (e->repaired) return true;
    for (size_t i = first_at(t, e->location, tick); i < t->count && t->event[i].tick == tick; i++)
        if (t->event[i].location == e->location && truth_same(&t->event[i], e, shift)) return true;
    return false;
}

/* Reads everything and checks nesting and times. Returns the number of events that are not made up. *invented gets the
 * number that were not presented (NULL: no comparison). */
static size_t read_all(struct fdr_file *f, const struct fixture *x, size_t *invented)
{
    struct fdr_read_event e;
    size_t n = 0;
    uint64_t newest = 0;
    static uint32_t stack[64][2048];
    static uint32_t depth[64];
    memset(depth, 0, sizeof depth);
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    assert_non_null(it);
    while (fdr_iter_next(it, &e)) {
        assert_true(e.time_ns >= newest);
        newest = e.time_ns;
        n += !e.repaired;
        if (invented) *invented += !presented_before(&x->t, &e, x->b->set.shift);
        if (e.location >= 64) continue;
        uint32_t *d = &depth[e.location];
        if (e.kind == FDR_ENTER) {
            ++*d;
            assert_int_equal(e.depth, *d);
            stack[e.location][*d] = e.id;
        } else if (e.kind == FDR_LEAVE) {
            assert_int_equal(e.depth, *d);
            assert_int_equal(e.id, stack[e.location][*d]);
            --*d;
        }
    }
    for (uint32_t i = 0; i < 64; i++) assert_int_equal(depth[i], 0);
    fdr_iter_close(it);
    return n;
}

static void read_everything(struct fdr_file *f)
{
    const struct fdr_ledger_row *l;
    const struct fdr_total *t;
    const struct fdr_reduction_info *r;
    fdr_ledger(f, &l);
    fdr_totals(f, &t);
    fdr_reductions(f, &r);
    fdr_file_verify(f);
    for (uint32_t kind = 0; kind < 9; kind++)
        for (uint32_t id = 0; id < 12; id++)
            assert_non_null(fdr_definition(f, (enum fdr_definition_kind)kind, id)->name);
    for (size_t i = 0; i < fdr_location_count(f); i++) assert_non_null(fdr_location_info(f, i)->name);
}

/* Damage in data with a check (bins, definitions) and in data that can be found again invents no event. Flips in the
 * superblock's clock change times; for them the test requires only that the reader does not crash. */
static void P8_bit_flips(void **state)
{
    (void)state;
    struct fixture x;
    begin(&x, 3, 3000);
    size_t whole = 0, damaged = 0, unreadable = 0;
    uint64_t used_bins = (x.b->bin_next), meta_first = x.b->meta;
    for (uint32_t round = 0; round < (SANITIZED ? 300 : 3000); round++) {
        memcpy(x.copy, x.image, x.bytes);
        uint64_t where = round % 3 == 0   ? rnd(&seed, (uint32_t)used_bins)
                         : round % 3 == 1 ? meta_first + rnd(&seed, (uint32_t)(x.bytes - meta_first))
                                          : rnd(&seed, 700);
        x.copy[where] ^= (uint8_t)(1u << rnd(&seed, 8));
        char message[256];
        struct fdr_file *f;
        enum fdr_verdict v = fdr_file_open_memory(x.copy, x.bytes, &f, message, sizeof message);
        if (v == FDR_UNREADABLE) {
            unreadable++;
            assert_null(f);
            assert_true(message[0] != 0);
            continue;
        }
        read_everything(f);
        size_t invented = 0;
        bool in_location_stack = where >= meta_first; /* levels hold open calls and have no check */
        read_all(f, &x, where >= FDRI_ARENA_SUPERBLOCK_BYTES && !in_location_stack ? &invented : NULL);
        assert_int_equal(invented, 0);
        *(fdr_file_verify(f) == FDR_WHOLE ? &whole : &damaged) += 1;
        fdr_file_close(f);
    }
    print_message("%zu whole, %zu damaged, %zu unreadable\n", whole, damaged, unreadable);
    assert_true(damaged > (SANITIZED ? 30 : 100));
    end(&x);
}

static void P8_many_flips(void **state)
{
    (void)state;
    struct fixture x;
    begin(&x, 3, 2000);
    for (uint32_t round = 0; round < (SANITIZED ? 60 : 600); round++) {
        memcpy(x.copy, x.image, x.bytes);
        uint32_t flips = 1 + rnd(&seed, 200);
        for (uint32_t i = 0; i < flips; i++)
            x.copy[8 + rnd(&seed, (uint32_t)x.bytes - 8)] ^= (uint8_t)(1u << rnd(&seed, 8));
        if (rnd(&seed, 2))
            memset(x.copy + x.b->meta + rnd(&seed, (uint32_t)(x.bytes - x.b->meta)) / 2, (int)rnd(&seed, 256),
                   rnd(&seed, 8192));
        memcpy(x.copy, FDRI_ARENA_MAGIC, 8);
        ((struct fdri_arena_superblock *)x.copy)->format_version = FDRI_ARENA_FORMAT_VERSION;
        char message[256];
        struct fdr_file *f;
        if (fdr_file_open_memory(x.copy, x.bytes, &f, message, sizeof message) == FDR_UNREADABLE) continue;
        read_everything(f);
        read_all(f, &x, NULL);
        fdr_file_close(f);
    }
    end(&x);
}

static void P8_truncated(void **state)
{
    (void)state;
    struct fixture x;
    begin(&x, 3, 3000);
    size_t full = 0;
    for (uint32_t round = 0; round < (SANITIZED ? 60 : 200); round++) {
        size_t bytes = round ? rnd(&seed, (uint32_t)x.bytes) : x.bytes;
        memcpy(x.copy, x.image, x.bytes);
        char message[256];
        struct fdr_file *f;
        enum fdr_verdict v = fdr_file_open_memory(x.copy, bytes, &f, message, sizeof message);
        assert_int_equal(v, bytes == x.bytes                      ? FDR_WHOLE
                            : bytes < FDRI_ARENA_SUPERBLOCK_BYTES ? FDR_UNREADABLE
                                                                  : FDR_DAMAGED);
        if (!f) continue;
        read_everything(f);
        size_t invented = 0, n = read_all(f, &x, &invented);
        assert_int_equal(invented, 0);
        if (!round) full = n;
        if (bytes > x.b->bin_next) assert_true(n > full / 2); /* all bins are there; only the meta blocks are missing */
        fdr_file_close(f);
    }
    end(&x);
}

/* Damages the payload of each bin in turn. The reader still reads all other bins. */
static void P8_one_bad_bin_costs_one_bin(void **state)
{
    (void)state;
    struct fixture x;
    char message[256];
    struct fdr_file *f;
    begin(&x, 1, 6000);
    fdr_file_open_memory(x.image, x.bytes, &f, message, sizeof message);
    const struct fdr_ledger_row *rows;
    uint64_t kept = 0, records, n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n; i++) kept += rows[i].kept;
    fdr_file_close(f);
    for (uint64_t off = FDRI_ARENA_SUPERBLOCK_BYTES; off < x.b->bin_next; off += 512) {
        const struct fdri_arena_bin *h = (const void *)(x.image + off);
        records = FDRI_ARENA_COMMIT_RECORDS(h->commit);
        if (h->magic != FDRI_ARENA_BIN_MAGIC || !(h->generation & 1) || records < 2) continue;
        memcpy(x.copy, x.image, x.bytes);
        x.copy[off + 64 + FDRI_ARENA_COMMIT_BITS(h->commit) / 16] ^= 4;
        assert_int_equal(fdr_file_open_memory(x.copy, x.bytes, &f, message, sizeof message), FDR_WHOLE);
        read_all(f, &x, NULL); /* finds the bad bin */
        assert_int_equal(fdr_file_verify(f), FDR_DAMAGED);
        assert_int_equal(fdr_file_damage_count(f), 1);
        uint64_t now = 0;
        n = fdr_ledger(f, &rows);
        for (size_t i = 0; i < n; i++) now += rows[i].kept;
        assert_true(now == kept - records || now + records > kept); /* some of its calls may not have counted as kept */
        size_t invented = 0;
        read_all(f, &x, &invented);
        assert_int_equal(invented, 0);
        fdr_file_close(f);
    }
    end(&x);
}

static void P8_recovered_is_whole(void **state)
{
    (void)state;
    struct fixture x;
    char message[256], path[] = "/tmp/fdr-recover-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    begin(&x, 2, 4000);
    for (uint32_t round = 0; round < (SANITIZED ? 80 : 300); round++) {
        struct fdr_file *f, *g;
        size_t bytes = x.bytes;
        memcpy(x.copy, x.image, x.bytes);
        uint32_t flips = 1 + rnd(&seed, 6);
        for (uint32_t i = 0; i < flips; i++) {
            uint64_t where = rnd(&seed, 2) ? FDRI_ARENA_SUPERBLOCK_BYTES +
                                                 rnd(&seed, (uint32_t)(x.b->bin_next - FDRI_ARENA_SUPERBLOCK_BYTES))
                                           : x.b->meta + rnd(&seed, (uint32_t)(x.bytes - x.b->meta));
            x.copy[where] ^= (uint8_t)(1u << rnd(&seed, 8));
        }
        if (rnd(&seed, 4) == 0) bytes = x.b->bin_next + rnd(&seed, (uint32_t)(x.bytes - x.b->bin_next));
        fdr_file_open_memory(x.copy, bytes, &f, message, sizeof message);
        assert_non_null(f);
        size_t before = read_all(f, &x, NULL);
        if (getenv("V"))
            for (size_t i = 0; i < fdr_file_damage_count(f); i++)
                print_message("%u: %s\n", round, fdr_file_damage(f, i));
        assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
        fdr_file_close(f);
        enum fdr_verdict v = fdr_file_open(path, &g, message, sizeof message);
        if (v != FDR_WHOLE) fail_msg("round %u: %s", round, message);
        if (fdr_file_verify(g) != FDR_WHOLE) fail_msg("round %u: %s", round, fdr_file_damage(g, 0));
        const struct fdr_ledger_row *rows;
        size_t n = fdr_ledger(g, &rows);
        for (size_t i = 0; i < n; i++)
            if (rows[i].presented != rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost)
                fail_msg("round %u: class %u depth %u: presented %llu kept %llu reduced %llu lost %llu", round,
                         rows[i].class_, rows[i].depth, (unsigned long long)rows[i].presented,
                         (unsigned long long)rows[i].kept, (unsigned long long)rows[i].reduced,
                         (unsigned long long)rows[i].lost);
        size_t after = read_all(g, &x, NULL);
        if (after < before * 9 / 10) fail_msg("round %u: %zu of %zu events, %s", round, after, before, message);
        fdr_file_close(g);
    }
    unlink(path);
    end(&x);
}

static void not_a_recording(void **state)
{
    (void)state;
    char message[256];
    struct fdr_file *f;
    uint8_t junk[8192] = "hello";
    assert_int_equal(fdr_file_open_memory(junk, sizeof junk, &f, message, sizeof message), FDR_UNREADABLE);
    assert_string_equal(message, "not an fdr recording");
    assert_int_equal(fdr_file_open_memory(junk, 0, &f, message, sizeof message), FDR_UNREADABLE);
    assert_int_equal(fdr_file_open("/", &f, message, sizeof message), FDR_UNREADABLE);
    assert_int_equal(fdr_file_open("/does/not/exist", &f, message, sizeof message), FDR_UNREADABLE);
    struct fixture x;
    begin(&x, 1, 100);
    ((struct fdri_arena_superblock *)x.image)->format_version = 7;
    assert_int_equal(fdr_file_open_memory(x.image, x.bytes, &f, message, sizeof message), FDR_UNREADABLE);
    assert_non_null(strstr(message, "7"));
    assert_non_null(strstr(message, "versions 1 to 2"));
    end(&x);
}

/* A block of definitions where each eight bytes look like the beginning of a long definition. The reader must not look
 * through the rest from each of them: that would take quadratic time. */
static void P8_false_definitions_cost_linear_time(void **state)
{
    enum { BYTES = 2 << 20, HALF = BYTES / 2 };
    struct builder_options o = {.arena_bytes = 8u << 20, .bin_bytes = 1024, .edge = {10, 100, 1000}};
    struct builder *b = builder_new(&o);
    size_t bytes;
    char message[256];
    struct fdr_file *f = NULL;
    (void)state;
    builder_location(b, "main");
    builder_enter(b, 0, 1, 1000);
    builder_leave(b, 0, 2000);
    const uint8_t *image = builder_image(b, &bytes);
    uint8_t *copy = malloc(bytes);
    memcpy(copy, image, bytes);
    struct fdri_arena_superblock *s = (void *)copy;
    uint32_t at = (uint32_t)s->bins_off + (1u << 20);
    struct fdri_arena_defs_block *block = (void *)(copy + at);
    *block = (struct fdri_arena_defs_block){
        .head = {.magic = FDRI_ARENA_META_MAGIC, .kind = FDRI_ARENA_META_DEFS, .bytes = BYTES, .location = UINT32_MAX},
        .used = BYTES - sizeof *block,
        .next = s->defs_first};
    s->defs_first = at;
    struct fdri_arena_def *d = (void *)(block + 1);
    for (uint32_t i = 0; i < BYTES - sizeof *block; i += 8) *(uint64_t *)(void *)((uint8_t *)d + i) = HALF;
    fdr_file_open_memory(copy, bytes, &f, message, sizeof message);
    assert_non_null(f);
    assert_int_equal(fdr_file_verify(f), FDR_DAMAGED);
    fdr_file_close(f);
    free(copy);
    builder_free(b);
}

/* A lost parent is shown as [reduced], never as a neighbour. */
static void P9_orphans_get_reduced_parents(void **state)
{
    (void)state;
    struct builder_options o = {.edge = {10, 100, 1000}};
    struct builder *b = builder_new(&o);
    builder_location(b, "main");
    builder_enter(b, 0, 1, 1000);
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t t = 2000 + i * 1000;
        builder_enter(b, 0, 2, t);
        builder_enter(b, 0, 3, t + 100);
        builder_leave(b, 0, t + 200);
        builder_enter(b, 0, 4, t + 300);
        builder_leave(b, 0, t + 400);
        if (i == 1) builder_leave_lost(b, 0, t + 500);
        else builder_leave(b, 0, t + 500);
    }
    builder_leave(b, 0, 9000);
    size_t bytes;
    const uint8_t *image = builder_image(b, &bytes);
    char message[256];
    struct fdr_file *f;
    struct fdr_read_event e;
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_WHOLE);
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    static const struct {
        uint64_t t;
        uint32_t kind, id;
        bool reduced;
    } want[] = {{1000, FDR_ENTER, 1, 0}, {2000, FDR_ENTER, 2, 0}, {2100, FDR_ENTER, 3, 0}, {2200, FDR_LEAVE, 3, 0},
                {2300, FDR_ENTER, 4, 0}, {2400, FDR_LEAVE, 4, 0}, {2500, FDR_LEAVE, 2, 0}, {3100, FDR_ENTER, 0, 1},
                {3100, FDR_ENTER, 3, 0}, {3200, FDR_LEAVE, 3, 0}, {3300, FDR_ENTER, 4, 0}, {3400, FDR_LEAVE, 4, 0},
                {3400, FDR_LEAVE, 0, 1}, {4000, FDR_ENTER, 2, 0}, {4100, FDR_ENTER, 3, 0}, {4200, FDR_LEAVE, 3, 0},
                {4300, FDR_ENTER, 4, 0}, {4400, FDR_LEAVE, 4, 0}, {4500, FDR_LEAVE, 2, 0}, {9000, FDR_LEAVE, 1, 0}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_true(fdr_iter_next(it, &e));
        assert_int_equal(e.time_ns, want[i].t);
        assert_int_equal(e.kind, want[i].kind);
        assert_int_equal(e.id, want[i].id);
        assert_int_equal(e.reduced, want[i].reduced);
        assert_int_equal(e.repaired, want[i].reduced);
    }
    assert_false(fdr_iter_next(it, &e));
    fdr_iter_close(it);
    fdr_file_close(f);
    truth_ledger(b);
    builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_a_recording),
        cmocka_unit_test(P9_orphans_get_reduced_parents),
        cmocka_unit_test(P8_one_bad_bin_costs_one_bin),
        cmocka_unit_test(P8_truncated),
        cmocka_unit_test(P8_bit_flips),
        cmocka_unit_test(P8_many_flips),
        cmocka_unit_test(P8_recovered_is_whole),
        cmocka_unit_test(P8_false_definitions_cost_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
