/* SPDX-License-Identifier: MIT */
/* A list of the presented events, next to the built arena, to compare the reader's output with. Include it after
 * arena_builder.c and cmocka. */
#ifndef FDRI_TESTS_READER_TRUTH_H
#define FDRI_TESTS_READER_TRUTH_H

#include <fdr/reader.h>

#define TRUTH_DEPTHS 256
struct truth_event {
    uint64_t tick; /* in stored units */
    uint64_t field[4];
    uint32_t location, id, depth;
    uint32_t pair;  /* calls: index of the other edge; open calls: their own index */
    uint32_t index; /* index of the call in its partition */
    uint8_t kind, class_, band, count;
    bool not_kept;
};
struct truth {
    struct truth_event *event;
    size_t count, room;
    uint64_t edge[3];
    uint32_t open[64][TRUTH_DEPTHS]; /* event of the open call */
    uint32_t stored[64][TRUTH_DEPTHS][FDRI_ARENA_BANDS];
};

__attribute__((unused)) static struct truth_event *truth_add(struct truth *t)
{
    if (t->count == t->room) {
        t->room = t->room ? t->room * 2 : 1024;
        t->event = realloc(t->event, t->room * sizeof *t->event);
    }
    struct truth_event *e = &t->event[t->count++];
    memset(e, 0, sizeof *e);
    return e;
}
__attribute__((unused)) static void truth_enter(struct truth *t, uint32_t location, uint32_t region, uint32_t depth,
                                                uint64_t tick, uint32_t shift)
{
    struct truth_event *e = truth_add(t);
    *e = (struct truth_event){.tick = tick >> shift,
                              .location = location,
                              .id = region,
                              .depth = depth,
                              .kind = FDR_ENTER,
                              .pair = (uint32_t)t->count - 1};
    t->open[location][depth] = (uint32_t)t->count - 1;
}
__attribute__((unused)) static void truth_leave_stored(struct truth *t, uint32_t location, uint32_t depth,
                                                       uint64_t tick, uint32_t shift, bool stored)
{
    struct truth_event *e = truth_add(t), *enter = &t->event[t->open[location][depth]];
    uint64_t duration = (tick >> shift) - enter->tick;
    *e = *enter;
    e->kind = FDR_LEAVE;
    e->tick = tick >> shift;
    e->pair = t->open[location][depth];
    for (int i = 0; i < 3; i++) e->band = (uint8_t)(e->band + (duration >= t->edge[i]));
    e->not_kept = !stored;
    if (stored) e->index = t->stored[location][depth][e->band]++;
    enter->pair = (uint32_t)t->count - 1;
    enter->band = e->band;
    enter->index = e->index;
    enter->not_kept = e->not_kept;
}
__attribute__((unused)) static void truth_leave(struct truth *t, uint32_t location, uint32_t depth, uint64_t tick,
                                                uint32_t shift)
{
    truth_leave_stored(t, location, depth, tick, shift, true);
}
__attribute__((unused)) static void truth_point(struct truth *t, uint32_t location, uint32_t class_, uint32_t id,
                                                uint32_t depth, uint64_t tick, const uint64_t *fields, uint32_t count,
                                                uint32_t shift)
{
    struct truth_event *e = truth_add(t);
    *e = (struct truth_event){.tick = tick >> shift,
                              .location = location,
                              .id = id,
                              .depth = depth,
                              .class_ = (uint8_t)class_,
                              .count = (uint8_t)count};
    e->pair = (uint32_t)t->count - 1;
    memcpy(e->field, fields, (count < 4 ? count : 4) * sizeof *fields);
    if (class_ == FDRI_ARENA_CLASS_MESSAGE)
        e->kind = id == 1 ? FDR_SEND : FDR_RECV, e->field[1] = fdri_codec_unzigzag(fields[1]);
    else if (class_ == FDRI_ARENA_CLASS_COLLECTIVE) e->kind = id & 1 ? FDR_COLL_END : FDR_COLL_BEGIN, e->id = id >> 1;
    else if (class_ == FDRI_ARENA_CLASS_METRIC) e->kind = FDR_METRIC;
    else if (class_ == FDRI_ARENA_CLASS_MARKER) e->kind = FDR_MARKER;
    else e->kind = FDR_EVENT;
    if (class_ == FDRI_ARENA_CLASS_COLLECTIVE && count == 4) e->field[1] = fdri_codec_unzigzag(fields[1]);
}
__attribute__((unused)) static void truth_free(struct truth *t) { free(t->event); }

/* Marks the events that are not kept by the closure rule. */
__attribute__((unused)) static void truth_reduce(struct truth *t, struct builder *b, uint32_t location)
{
    static uint64_t floor[TRUTH_DEPTHS][FDRI_ARENA_BANDS], head[TRUTH_DEPTHS][FDRI_ARENA_BANDS];
    memset(floor, 0, sizeof floor);
    memset(head, 0, sizeof head);
    const struct fdri_arena_location *l = builder_raw(b, location);
    for (uint32_t d = 1; d <= fdri_arena_levels_in(l->level_blocks); d++)
        for (uint32_t band = 0; band < FDRI_ARENA_BANDS; band++) {
            if (!level(b, location, d)->part[band]) continue;
            const struct fdri_arena_part *p = builder_part(b, location, FDRI_ARENA_CLASS_REGION, d, band);
            const struct fdri_arena_bin *h = (const void *)(b->base + (uint32_t)p->list_head);
            floor[d][band] = p->floor_tick;
            head[d][band] = h->first_index;
        }
    for (size_t i = 0; i < t->count; i++) {
        struct truth_event *e = &t->event[i];
        if (e->location != location || (e->kind != FDR_ENTER && e->kind != FDR_LEAVE) || e->pair == i) continue;
        uint64_t leave = t->event[e->kind == FDR_LEAVE ? i : e->pair].tick, most = 0;
        for (uint32_t d = 1; d <= e->depth; d++)
            for (uint32_t band = e->band; band < FDRI_ARENA_BANDS; band++)
                if ((d != e->depth || band != e->band) && floor[d][band] > most) most = floor[d][band];
        if (e->index < head[e->depth][e->band] || (most && leave <= most)) e->not_kept = true;
    }
}

__attribute__((unused)) static bool truth_same(const struct truth_event *t, const struct fdr_read_event *e,
                                               uint32_t shift)
{
    if (t->kind != e->kind || t->id != e->id || t->depth != e->depth || t->tick << shift != e->time_ns ||
        t->class_ != e->class_ || t->count != e->field_count || e->repaired || e->reduced)
        return false;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->field[i] != e->field[i]) return false;
    return true;
}

__attribute__((unused)) static bool truth_is_call(uint8_t kind) { return kind == FDR_ENTER || kind == FDR_LEAVE; }

/* Opens the image and compares the events of every location with the events not marked as given back. For ns clocks
 * only. With `apart`, calls and points are compared separately. A point loses its place among the calls of its tick
 * when its call is given back. */
__attribute__((unused)) static void truth_compare_how(struct truth *t, struct builder *b,
                                                      const struct fdr_select *select, bool apart)
{
    char message[256];
    struct fdr_file *f;
    size_t bytes;
    const uint8_t *image = builder_image(b, &bytes);
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_WHOLE);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    static size_t at[64][2];
    uint64_t newest = 0;
    uint32_t newest_location = 0;
    memset(at, 0, sizeof at);
    struct fdr_iter *it = fdr_iter_open(f, select);
    struct fdr_read_event e;
    size_t seen = 0;
    while (fdr_iter_next(it, &e)) {
        assert_true(e.time_ns >= newest);
        assert_true(e.time_ns > newest || e.location >= newest_location);
        newest = e.time_ns;
        newest_location = e.location;
        bool call = truth_is_call(e.kind);
        size_t *i = &at[e.location][apart && !call];
        while (*i < t->count && (t->event[*i].location != e.location || t->event[*i].not_kept ||
                                 (apart && truth_is_call(t->event[*i].kind) != call)))
            ++*i;
        if (*i == t->count) {
            assert_true(e.repaired && e.kind == FDR_LEAVE); /* the reader ends an open call by itself */
            continue;
        }
        if (!truth_same(&t->event[*i], &e, b->set.shift)) {
            const struct truth_event *w = &t->event[*i];
            fail_msg("event %zu: want kind %u id %u depth %u tick %llu, got kind %u id %u depth %u tick %llu%s", *i,
                     w->kind, w->id, w->depth, (unsigned long long)w->tick, e.kind, e.id, e.depth,
                     (unsigned long long)(e.time_ns >> b->set.shift), e.repaired ? " repaired" : "");
        }
        ++*i;
        seen++;
    }
    fdr_iter_close(it);
    fdr_file_close(f);
    size_t want = 0;
    for (size_t i = 0; i < t->count; i++) want += !t->event[i].not_kept;
    assert_int_equal(seen, want);
}

__attribute__((unused)) static void truth_compare(struct truth *t, struct builder *b, const struct fdr_select *select)
{
    truth_compare_how(t, b, select, false);
}

__attribute__((unused)) static void truth_ledger(struct builder *b)
{
    char message[256];
    struct fdr_file *f;
    size_t bytes;
    const uint8_t *image = builder_image(b, &bytes);
    const struct fdr_ledger_row *rows;
    assert_int_equal(fdr_file_open_memory(image, bytes, &f, message, sizeof message), FDR_WHOLE);
    size_t n = fdr_ledger(f, &rows);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(rows[i].presented, rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost);
    fdr_file_close(f);
}

#endif
