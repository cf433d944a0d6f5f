/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads,slow timeout=600 promise=P8 without=tsan (its threads take turns)
 * P8: one flipped bit anywhere in a real recording is reported, or changes nothing that the reader shows. Each shown
 * event was presented. The test samples the bits. FDR_TEST_FLIPS=N flips every Nth bit; 1 takes minutes. */
#include <fcntl.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

/* ---- hashes of the shown data ---- */

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * 0x9E3779B97F4A7C15u + (h >> 29); }
static uint64_t mix_text(uint64_t h, const char *s)
{
    while (*s) h = mix(h, (uint8_t)*s++);
    return mix(h, 0x55);
}
static uint64_t mix_bytes(uint64_t h, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) h = mix(h, ((const uint8_t *)p)[i]);
    return h;
}

static uint64_t key_of(const struct fdr_read_event *e)
{
    uint64_t h = mix(mix(mix(mix(1, e->kind), e->id), e->depth), e->time_ns);
    if (e->kind == FDR_LEAVE) h = mix(h, e->duration_ns);
    for (uint32_t i = 0; i < e->field_count; i++) h = mix(h, e->field[i]);
    return h;
}

/* ---- the truth: keys of all presented events ---- */

struct truth {
    uint64_t *slot;
    size_t mask;
};
static void truth_add(struct truth *t, uint64_t key)
{
    size_t i = key & t->mask;
    while (t->slot[i] && t->slot[i] != key) i = (i + 1) & t->mask;
    t->slot[i] = key;
}
static bool truth_has(const struct truth *t, uint64_t key)
{
    size_t i = key & t->mask;
    while (t->slot[i] && t->slot[i] != key) i = (i + 1) & t->mask;
    return t->slot[i] == key;
}
static void truth_of(struct truth *t, const struct oracle *o, uint32_t shift)
{
    for (size_t i = 0; i < o->count; i++) {
        const struct oracle_event *p = &o->event[i];
        struct fdr_read_event e = {
            .kind = p->kind, .id = p->id, .depth = p->depth, .time_ns = p->time >> shift << shift};
        if (p->kind == FDR_LEAVE) {
            e.depth = o->event[p->mate].depth;
            e.duration_ns = e.time_ns - (o->event[p->mate].time >> shift << shift);
        }
        e.field_count = p->fields;
        memcpy(e.field, o->field + p->field, p->fields * sizeof *e.field);
        truth_add(t, key_of(&e));
    }
}

/* ---- the recording ---- */

struct recording {
    struct truth truth;
    uint8_t *bytes, *copy;
    size_t count;
    uint64_t meta_first, bins_end;
    uint64_t digest;
};

static uint64_t seed;

static void program(struct oracle *o, int events, uint64_t now)
{
    for (int i = 0; i < events; i++) {
        now += rnd(&seed, 3) ? 0 : rnd(&seed, rnd(&seed, 20) ? 500 : 400000);
        uint32_t what = rnd(&seed, 24);
        if (what == 0) both_marker(o, 1, rnd(&seed, 1000), now);
        else if (what == 1) both_metric(o, 1, rnd(&seed, 100), now);
        else if (what == 2) both_message(o, rnd(&seed, 2), 3, -1, 0, rnd(&seed, 5000), now);
        else if (o->depth == 0 || (o->depth < 18 && rnd(&seed, 2))) both_enter(o, 1 + rnd(&seed, 12), now);
        else both_leave(o, now);
    }
}

static struct oracle of_thread;
static void *thread(void *unused)
{
    fdr_thread_name("worker");
    program(&of_thread, 400, 5000);
    while (of_thread.depth) oracle_leave(&of_thread, of_thread.last); /* the end of a thread ends its open calls */
    return unused;
}

static void load(struct recording *r, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    r->count = (size_t)st.st_size;
    r->bytes = aligned_alloc(64, (r->count + 63) & ~(size_t)63);
    r->copy = aligned_alloc(64, (r->count + 63) & ~(size_t)63);
    assert_int_equal(read(fd, r->bytes, r->count), (ssize_t)r->count);
    close(fd);
    const struct fdri_arena_superblock *s = (const void *)r->bytes;
    r->bins_end = s->bins_off + (uint64_t)(uint32_t)s->virgin * s->bin_bytes;
    r->meta_first = (s->virgin >> 32) * FDRI_ARENA_META_ALIGN;
}

static uint64_t digest_of(struct fdr_file *f, const struct recording *r, size_t *invented, size_t *invented_open);

/* live: the file as SIGKILL leaves it; else a snapshot. */
static void record(struct recording *r, const char *strategy, const char *resolution, bool live)
{
    static char dir[300];
    struct fdr_config c = oracle_config(oracle_directory());
    struct oracle o = {0};
    snprintf(dir, sizeof dir, "/dev/shm/fdr-test-flips-%d", (int)getpid());
    c.buffer = "160K";
    c.bin = "1K";
    c.strategy = strategy;
    c.resolution = resolution;
    c.arena = live ? "mapped" : "anonymous";
    c.live_dir = dir;
    seed = 42;
    memset(r, 0, sizeof *r);
    memset(&of_thread, 0, sizeof of_thread);
    assert_int_equal(fdr_init(&c), 0);
    for (unsigned i = 1; i < 13; i++) fdr_region_define("region", "file.c", i);
    fdr_marker_define("marker");
    fdr_metric_define("metric", "unit", FDR_U64, FDR_METRIC_GAUGE);
    pthread_t t;
    both_enter(&o, 2, 900); /* this thread gets the first location */
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    program(&o, 8000, 1000);
    both_enter(&o, 3, o.last + 10);
    if (!live) assert_int_equal(fdr_snapshot("test"), 0);
    load(r, live ? fdri_life_recording.live_path : fdr_last_snapshot());
    if (!live) unlink(fdr_last_snapshot());
    fdr_finalize();
    rmdir(dir);
    r->truth.mask = (1u << 17) - 1;
    r->truth.slot = calloc(r->truth.mask + 1, 8);
    uint32_t shift = resolution ? 7 : 0;
    truth_of(&r->truth, &o, shift);
    truth_of(&r->truth, &of_thread, shift);
    oracle_free(&o);
    oracle_free(&of_thread);
    struct fdr_file *f;
    char message[256];
    size_t invented = 0, open = 0;
    assert_int_equal(fdr_file_open_memory(r->bytes, r->count, &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    r->digest = digest_of(f, r, &invented, &open);
    assert_int_equal(invented + open, 0);
    fdr_file_close(f);
}

static void forget(struct recording *r)
{
    free(r->truth.slot);
    free(r->bytes);
    free(r->copy);
}

/* ---- all shown data as one number ---- */

static uint64_t digest_of_facts(struct fdr_file *f)
{
    const struct fdr_file_info *i = fdr_file_info(f);
    uint64_t h = mix_text(mix_text(mix_text(mix_text(1, i->state), i->reason), i->host), i->exe);
    h = mix_text(mix_text(mix_text(h, i->build_id), i->config), i->strategy);
    h = mix(mix(mix(mix(h, i->pid), (uint64_t)i->rank), i->created_realtime_ns), i->buffer_bytes);
    h = mix(mix(mix(h, i->bin_bytes), i->first_ns), i->last_ns);
    h = mix(mix(mix(mix(h, i->common_from_ns), i->lost_locations), i->lost_unattached), i->lost_definitions);
    for (size_t k = 0; k < fdr_location_count(f); k++) {
        const struct fdr_location_info *l = fdr_location_info(f, k);
        h = mix_text(mix(mix(mix(h, l->id), l->tid), l->parent), l->name);
        h = mix(mix(mix(mix(h, l->start_ns), l->end_ns), l->from_ns), l->to_ns);
        h = mix(mix(mix(mix(h, l->live), l->open_count), l->clamped), l->unbalanced);
        h = mix(mix(mix(mix(h, l->stray_leaves), l->abandoned), l->hists_dropped), l->rows_folded);
        h = mix(h, l->points_without_row);
        for (size_t d = 0; d < l->open_count; d++) h = mix(mix(h, l->open[d].region), l->open[d].enter_ns);
    }
    for (uint32_t kind = 0; kind < 6; kind++)
        for (uint32_t id = 0; id < 14; id++) {
            const struct fdr_definition *d = fdr_definition(f, (enum fdr_definition_kind)kind, id);
            h = mix(mix_text(mix_text(h, d->name), d->file), d->line);
        }
    return h;
}

static uint64_t digest_of_sums(struct fdr_file *f, uint64_t h)
{
    const struct fdr_ledger_row *l;
    const struct fdr_total *t;
    const struct fdr_reduction_info *d;
    size_t n = fdr_ledger(f, &l);
    for (size_t i = 0; i < n; i++) {
        h = mix(mix(mix(h, l[i].location), l[i].class_), l[i].depth);
        h = mix(mix(mix(mix(mix(h, l[i].presented), l[i].kept), l[i].filtered), l[i].reduced), l[i].lost);
    }
    n = fdr_totals(f, &t);
    for (size_t i = 0; i < n; i++) {
        h = mix(mix(mix(mix(h, t[i].location), t[i].class_), t[i].id), t[i].rest);
        h = mix(mix(mix(mix(mix(mix(h, t[i].calls), t[i].untimed), t[i].inclusive_ns), t[i].exclusive_ns), t[i].min_ns),
                t[i].max_ns);
        h = mix(mix(mix(mix(h, t[i].sum_u), t[i].min_u), t[i].max_u), t[i].has_histogram + 2u * t[i].saturated);
        h = mix_bytes(h, t[i].histogram, sizeof t[i].histogram);
    }
    n = fdr_reductions(f, &d);
    for (size_t i = 0; i < n; i++) {
        h = mix_text(mix_text(mix(mix(h, d[i].location), d[i].time_ns), d[i].step), d[i].what);
        h = mix(mix(mix(mix(mix(mix(h, d[i].events), d[i].bytes), d[i].from_ns), d[i].to_ns), d[i].steps), d[i].gone);
    }
    return h;
}

/* Also counts shown events that were never presented: closed calls and points, and calls that are shown as open. */
static uint64_t digest_of(struct fdr_file *f, const struct recording *r, size_t *invented, size_t *invented_open)
{
    struct fdr_read_event e;
    uint64_t h = digest_of_sums(f, digest_of_facts(f));
    struct oracle_view v = {0};
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    assert_non_null(it);
    while (fdr_iter_next(it, &e)) {
        h = mix(mix(mix(h, key_of(&e)), e.location), e.repaired);
        if (e.repaired || truth_has(&r->truth, key_of(&e))) continue;
        ++*(e.kind == FDR_ENTER && e.duration_ns == 0 ? invented_open : invented);
    }
    fdr_iter_close(it);
    oracle_view_free(&v);
    return h;
}

/* ---- one flip ---- */

struct count {
    size_t flips, unreadable, reported, unseen, silent, invented, invented_open;
};

static void flip(struct recording *r, uint64_t bit, struct count *n)
{
    struct fdr_file *f;
    char message[256];
    n->flips++;
    r->copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    enum fdr_verdict v = fdr_file_open_memory(r->copy, r->count, &f, message, sizeof message);
    if (v == FDR_UNREADABLE) {
        n->unreadable++;
        assert_true(message[0]);
    } else {
        size_t invented = 0, open = 0;
        v = fdr_file_verify(f);
        uint64_t digest = digest_of(f, r, &invented, &open);
        n->invented += invented != 0;
        n->invented_open += open != 0;
        if (v == FDR_DAMAGED) n->reported++;
        else if (digest == r->digest) n->unseen++;
        else n->silent++;
        bool told = invented || open || (v == FDR_WHOLE && digest != r->digest);
        if (told && getenv("V"))
            print_message("bit %llu of byte %llu: verdict %d, invented %zu, open %zu: %s\n",
                          (unsigned long long)bit % 8, (unsigned long long)bit / 8, v, invented, open,
                          v ? fdr_file_damage(f, 0) : "");
        fdr_file_close(f);
    }
    r->copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

enum { SAMPLED = SANITIZED ? 50 : 600, EVERY = SANITIZED ? 797 : 73 };
static void flips(struct recording *r, struct count *n)
{
    const char *every = getenv("FDR_TEST_FLIPS");
    memset(n, 0, sizeof *n);
    memcpy(r->copy, r->bytes, r->count);
    if (every) {
        for (uint64_t bit = 0; bit < r->count * 8; bit += (uint64_t)atoi(every)) flip(r, bit, n);
    } else {
        for (uint32_t i = 0; i < SAMPLED; i++) {
            uint64_t where = i % 4 == 0   ? rnd(&seed, FDRI_ARENA_SUPERBLOCK_BYTES)
                             : i % 4 == 1 ? FDRI_ARENA_SUPERBLOCK_BYTES +
                                                rnd(&seed, (uint32_t)(r->bins_end - FDRI_ARENA_SUPERBLOCK_BYTES))
                                          : r->meta_first + rnd(&seed, (uint32_t)(r->count - r->meta_first));
            flip(r, where * 8 + rnd(&seed, 8), n);
        }
        for (uint32_t bit = 0; bit < 2256 * 8; bit += EVERY) flip(r, bit, n);
    }
    print_message(
        "%zu flips: %zu unreadable, %zu reported, %zu change nothing, %zu unreported; shown though never presented: "
        "%zu, as open calls %zu\n",
        n->flips, n->unreadable, n->reported, n->unseen, n->silent, n->invented, n->invented_open);
}

static void in_snapshot(const char *strategy, const char *resolution)
{
    struct recording r;
    struct count n;
    record(&r, strategy, resolution, false);
    flips(&r, &n);
    forget(&r);
    assert_int_equal(n.silent, 0);
    assert_int_equal(n.invented, 0);
    assert_int_equal(n.invented_open, 0);
}
static void P8_every_flip_in_a_snapshot_is_reported_whole(void **state)
{
    (void)state;
    in_snapshot("whole", NULL);
}
static void P8_every_flip_in_a_snapshot_is_reported_last(void **state)
{
    (void)state;
    in_snapshot("last", "128ns");
}
static void P8_every_flip_in_a_snapshot_is_reported_first(void **state)
{
    (void)state;
    in_snapshot("first", NULL);
}

/* ---- the reader shows the records in bins, whatever the block of their location says ---- */

/* The number of shown calls that have ended and of points, as far as they were presented. */
static size_t shown(struct fdr_file *f, const struct recording *r)
{
    struct fdr_read_event e;
    size_t n = 0;
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    assert_non_null(it);
    while (fdr_iter_next(it, &e)) n += !e.repaired && e.kind != FDR_ENTER && truth_has(&r->truth, key_of(&e));
    fdr_iter_close(it);
    return n;
}

static size_t shown_of(const uint8_t *bytes, const struct recording *r)
{
    struct fdr_file *f;
    char message[256];
    assert_int_not_equal(fdr_file_open_memory(bytes, r->count, &f, message, sizeof message), FDR_UNREADABLE);
    size_t n = shown(f, r);
    fdr_file_close(f);
    return n;
}

/* Flips one bit of each byte (with a sanitizer, of every third) of the location blocks, from byte `from` up to `to`. */
static void flips_of_locations(struct recording *r, uint32_t from, uint32_t to)
{
    size_t all = shown_of(r->bytes, r), hidden = 0;
    memcpy(r->copy, r->bytes, r->count);
    assert_true(all > 100);
    for (uint32_t off = ((const struct fdri_arena_superblock *)r->bytes)->location_first; off;) {
        for (uint32_t i = from; i < to; i += SANITIZED ? 7 : 1) {
            r->copy[off + i] ^= (uint8_t)(1u << i % 8);
            size_t n = shown_of(r->copy, r);
            if (n < all) print_message("byte %u of the block at %u: %zu of %zu\n", i, off, n, all);
            hidden += n < all;
            r->copy[off + i] ^= (uint8_t)(1u << i % 8);
        }
        off = ((const struct fdri_arena_location *)(r->bytes + off))->next;
    }
    assert_int_equal(hidden, 0);
}

static void P8_no_flip_in_a_location_hides_records(void **state)
{
    static const char *const strategy[] = {"whole", "last"};
    struct recording r;
    (void)state;
    for (size_t i = 0; i < sizeof strategy / sizeof *strategy; i++) {
        record(&r, strategy[i], NULL, false);
        flips_of_locations(&r, sizeof(struct fdri_arena_meta_head), sizeof(struct fdri_arena_location));
        forget(&r);
    }
}

/* Flips bits of these bytes in the blocks of partitions, `step` bits apart. */
static void flips_of_partitions(struct recording *r, uint32_t from, uint32_t to, uint32_t step)
{
    size_t all = shown_of(r->bytes, r), hidden = 0, parts = 0;
    const struct fdri_arena_location *l;
    memcpy(r->copy, r->bytes, r->count);
    for (uint32_t at = ((const struct fdri_arena_superblock *)r->bytes)->location_first; at; at = l->next) {
        l = (const void *)(r->bytes + at);
        for (uint32_t off = l->parts_first; off;
             off = ((const struct fdri_arena_part *)(r->bytes + off))->next, parts++)
            for (uint32_t bit = from * 8 + (uint32_t)parts % step; bit < to * 8; bit += step) {
                r->copy[off + bit / 8] ^= (uint8_t)(1u << bit % 8);
                size_t n = shown_of(r->copy, r);
                if (n < all)
                    print_message("bit %u of byte %u of the block at %u: %zu of %zu\n", bit % 8, bit / 8, off, n, all);
                hidden += n < all;
                r->copy[off + bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
    }
    assert_true(parts > 20);
    assert_int_equal(hidden, 0);
}

static void P8_no_flip_in_a_partition_hides_records(void **state)
{
    static const char *const strategy[] = {"whole", "last"};
    struct recording r;
    (void)state;
    for (size_t i = 0; i < sizeof strategy / sizeof *strategy; i++) {
        record(&r, strategy[i], NULL, false);
        flips_of_partitions(&r, 0, sizeof(struct fdri_arena_part), SANITIZED ? 997 : 97);
        flips_of_partitions(&r, offsetof(struct fdri_arena_part, list_head), offsetof(struct fdri_arena_part, total),
                            SANITIZED ? 131 : 13);
        forget(&r);
    }
}

/* Recovers r->copy; `back` gets the recovered file. */
static void recover(const struct recording *r, struct recording *back)
{
    char path[64], message[256];
    struct fdr_file *f;
    *back = (struct recording){.truth = r->truth};
    snprintf(path, sizeof path, "/dev/shm/fdr-test-flips-%d.fdr", (int)getpid());
    assert_int_equal(fdr_file_open_memory(r->copy, r->count, &f, message, sizeof message), FDR_DAMAGED);
    assert_int_equal(fdr_file_recover(f, path, message, sizeof message), 0);
    fdr_file_close(f);
    load(back, path);
    unlink(path);
}

static size_t shown_recovered(const struct recording *r)
{
    struct recording back;
    recover(r, &back);
    size_t n = shown_of(back.bytes, &back);
    free(back.bytes);
    free(back.copy);
    return n;
}

/* The upper half of list_head is the seq of its oldest bin. */
static void P8_a_list_with_a_wrong_number_is_recovered(void **state)
{
    static const uint32_t bit[] = {32, 37, 62};
    struct recording r;
    size_t parts = 0;
    const struct fdri_arena_location *l;
    (void)state;
    record(&r, "whole", NULL, false);
    memcpy(r.copy, r.bytes, r.count);
    size_t all = shown_of(r.bytes, &r);
    for (uint32_t at = ((const struct fdri_arena_superblock *)r.bytes)->location_first; at; at = l->next) {
        l = (const void *)(r.bytes + at);
        for (uint32_t off = l->parts_first; off; off = ((struct fdri_arena_part *)(r.bytes + off))->next, parts++) {
            struct fdri_arena_part *p = (void *)(r.copy + off);
            p->list_head ^= 1ull << bit[parts % 3];
            assert_int_equal(shown_recovered(&r), all);
            p->list_head ^= 1ull << bit[parts % 3];
        }
    }
    assert_true(parts > 20);
    forget(&r);
}

/* A live file has no checks of meta blocks. The header of the bin that list_head points to has the right seq. */
static void P8_too_high_seq_of_a_list_hides_no_records(void **state)
{
    const uint32_t seq = offsetof(struct fdri_arena_part, list_head) + 4;
    struct recording r;
    (void)state;
    record(&r, "whole", NULL, true);
    flips_of_partitions(&r, seq, seq + 4, 11);
    forget(&r);
}

/* A live file has no checks of meta blocks. The reader rejects a floor later than all recorded events. */
static void P8_too_late_floor_hides_no_records(void **state)
{
    const uint32_t high = offsetof(struct fdri_arena_location, floor_tick) + 4;
    struct recording r;
    (void)state;
    record(&r, "whole", NULL, true);
    flips_of_locations(&r, high, high + 4);
    forget(&r);
}

/* ---- sums and tables that a damaged location block names ---- */

/* Copies r->bytes to r->copy again; returns the block of the first location there. */
static struct fdri_arena_location *fresh(struct recording *r)
{
    memcpy(r->copy, r->bytes, r->count);
    uint32_t off = ((const struct fdri_arena_superblock *)r->bytes)->location_first;
    while (((const struct fdri_arena_location *)(r->bytes + off))->id)
        off = ((struct fdri_arena_location *)(r->bytes + off))->next;
    return (void *)(r->copy + off);
}

struct sums {
    uint64_t earlier, overflow; /* events of reductions that had no line; calls deeper than the stack */
    size_t lines, epochs;
    bool said_of_lines, said_of_epochs;
};
static struct sums sums_of(const uint8_t *bytes, size_t count, enum fdr_verdict want)
{
    struct sums s = {0};
    struct fdr_file *f;
    char message[256];
    const struct fdr_reduction_info *line;
    const struct fdr_ledger_row *row;
    const struct fdr_epoch_info *epoch;
    assert_int_not_equal(fdr_file_open_memory(bytes, count, &f, message, sizeof message), FDR_UNREADABLE);
    for (size_t i = 0, n = fdr_reductions(f, &line); i < n; i++) {
        if (line[i].location != 0) continue;
        s.lines++;
        s.earlier += strcmp(line[i].step, "earlier") ? 0 : line[i].events;
    }
    for (size_t i = 0, n = fdr_ledger(f, &row); i < n; i++)
        if (row[i].location == 0 && row[i].class_ == 0 && row[i].kept + row[i].reduced + row[i].filtered == 0)
            s.overflow += row[i].presented;
    for (size_t i = 0, n = fdr_epochs(f, &epoch); i < n; i++) s.epochs += epoch[i].location == 0;
    for (size_t i = 0; i < fdr_file_damage_count(f); i++) {
        s.said_of_lines |= strstr(fdr_file_damage(f, i), "before the oldest line are unknown") != NULL;
        s.said_of_epochs |= strstr(fdr_file_damage(f, i), "its epochs are damaged") != NULL;
    }
    assert_int_equal(fdr_file_verify(f), want);
    fdr_file_close(f);
    return s;
}

static struct sums sums_recovered(const struct recording *r)
{
    struct recording back;
    recover(r, &back);
    struct sums s = sums_of(back.bytes, back.count, FDR_WHOLE);
    free(back.bytes);
    free(back.copy);
    return s;
}

/* Takes and loads the last snapshot, and ends the recording. */
static void load_snapshot(struct recording *r)
{
    assert_int_equal(fdr_snapshot("test"), 0);
    load(r, fdr_last_snapshot());
    unlink(fdr_last_snapshot());
    fdr_finalize();
}

static void P8_sums_of_dropped_lines_need_a_good_block(void **state)
{
    struct recording r;
    (void)state;
    record(&r, "whole", NULL, false);
    struct sums good = sums_of(r.bytes, r.count, FDR_WHOLE);
    assert_true(good.lines > 1 && !good.said_of_lines);
    for (uint32_t bit = 0; bit < 64; bit += 20) { /* no other place has their number */
        fresh(&r)->reductions_dropped_events ^= 1ull << bit;
        struct sums bad = sums_of(r.copy, r.count, FDR_DAMAGED);
        assert_int_equal(bad.earlier, 0);
        assert_int_equal(bad.lines, good.lines - (good.earlier != 0));
        assert_true(bad.said_of_lines);
        assert_int_equal(sums_recovered(&r).earlier, 0);
    }
    forget(&r);
}

static void P8_invalid_epoch_table_is_not_shown(void **state)
{
    struct fdr_config c = oracle_config(oracle_directory());
    struct recording r = {0};
    (void)state;
    c.buffer = "160K";
    c.bin = "1K";
    c.strategy = "telescope";
    c.arena = "anonymous";
    seed = 42;
    assert_int_equal(fdr_init(&c), 0);
    fdr_region region = fdr_region_define("region", NULL, 0);
    for (uint64_t i = 0, now = 1000; i < 300000; i++) {
        fdr_enter_at(region, now += rnd(&seed, 5000));
        fdr_leave_at(region, now += rnd(&seed, 5000));
    }
    load_snapshot(&r);
    struct sums good = sums_of(r.bytes, r.count, FDR_WHOLE);
    assert_true(good.epochs > 1 && !good.said_of_epochs);
    struct fdri_arena_location *l = fresh(&r);
    l->epochs_off ^= 1u << 12;
    struct sums bad = sums_of(r.copy, r.count, FDR_DAMAGED);
    assert_int_equal(bad.epochs, 0);
    assert_true(bad.said_of_epochs);
    assert_false(sums_recovered(&r).said_of_epochs);
    l = fresh(&r);
    l->clamped ^= 1; /* the table itself says which kind of block it is */
    assert_int_equal(sums_of(r.copy, r.count, FDR_DAMAGED).epochs, good.epochs);
    forget(&r);
}

/* Only the location block counts calls deeper than the stack. The tail has a check of its own and knows the number of
 * all events. */
static void P8_calls_deeper_than_the_stack_are_as_many_as_the_tail_says(void **state)
{
    enum { DEEP = 1300 };
    struct fdr_config c = oracle_config(oracle_directory());
    struct recording r = {0};
    (void)state;
    c.buffer = "4M";
    c.arena = "anonymous";
    assert_int_equal(fdr_init(&c), 0);
    fdr_region region = fdr_region_define("region", NULL, 0);
    for (uint64_t i = 0; i < DEEP; i++) fdr_enter_at(region, 1000 + i);
    for (uint64_t i = 0; i < DEEP; i++) fdr_leave_at(region, 9000 + i);
    load_snapshot(&r);
    struct sums good = sums_of(r.bytes, r.count, FDR_WHOLE);
    assert_true(good.overflow > 200 && good.overflow < DEEP);
    fresh(&r)->clamped ^= 1;
    assert_int_equal(sums_of(r.copy, r.count, FDR_DAMAGED).overflow, good.overflow);
    fresh(&r)->presented_overflow ^= 1ull << 60;
    assert_int_equal(sums_of(r.copy, r.count, FDR_DAMAGED).overflow, 0);
    assert_int_equal(sums_recovered(&r).overflow, 0);
    fresh(&r)->lost_overflow ^= 1ull << 60;
    assert_int_equal(sums_of(r.copy, r.count, FDR_DAMAGED).overflow, good.overflow);
    forget(&r);
}

/* ---- live files ---- */

/* In a live file, the words that change with every event have no check: open calls, accounts, totals. */
static void P8_a_flip_in_a_live_file_invents_no_record(void **state)
{
    struct recording r;
    struct count n;
    (void)state;
    record(&r, "whole", NULL, true);
    flips(&r, &n);
    forget(&r);
    assert_int_equal(n.invented, 0);
}

int main(void)
{
    setenv("FDR_SYMBOLS", "0", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P8_every_flip_in_a_snapshot_is_reported_whole),
        cmocka_unit_test(P8_every_flip_in_a_snapshot_is_reported_last),
        cmocka_unit_test(P8_every_flip_in_a_snapshot_is_reported_first),
        cmocka_unit_test(P8_a_flip_in_a_live_file_invents_no_record),
        cmocka_unit_test(P8_no_flip_in_a_location_hides_records),
        cmocka_unit_test(P8_no_flip_in_a_partition_hides_records),
        cmocka_unit_test(P8_sums_of_dropped_lines_need_a_good_block),
        cmocka_unit_test(P8_invalid_epoch_table_is_not_shown),
        cmocka_unit_test(P8_calls_deeper_than_the_stack_are_as_many_as_the_tail_says),
        cmocka_unit_test(P8_a_list_with_a_wrong_number_is_recovered),
        cmocka_unit_test(P8_too_high_seq_of_a_list_hides_no_records),
        cmocka_unit_test(P8_too_late_floor_hides_no_records),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
