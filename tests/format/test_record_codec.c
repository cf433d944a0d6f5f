/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60 promise=P4 */
/* P4: the record codec alone. A predicted call is encoded by a fast way in one go. Its bits must equal those of the
 * slow way, and both must decode to the original call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/arena/arena.h"
#include "format/codec/bit_length.h"
#include "format/codec/decode.h"
#include "format/codec/encode.h"
#include "format/codec/foreseen_call.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"

enum { SHORT_BITS = 18, BIN_BYTES = 4096, PAYLOAD = BIN_BYTES - FDRI_ARENA_BIN_HEADER };

static uint64_t state = 88172645463325252u;
static uint64_t rnd(uint64_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
}

struct bin {
    struct fdri_arena_part part;
    struct fdri_codec_table table;
    struct fdri_arena_bin head;
    uint8_t payload[PAYLOAD];
    uint8_t behind[64]; /* another bin's memory: must not change */
};

static void begin(struct bin *b)
{
    memset(b, 0xA5, sizeof *b); /* memory that was in use before */
    memset(&b->part, 0, sizeof b->part);
    memset(&b->head, 0, sizeof b->head);
    b->part.depth = 1;
    b->head.depth = 1;
    b->head.size_log2 = 12;
    fdri_codec_encode_begin(&b->part, &b->table, b->payload, BIN_BYTES, FDRI_CODEC_CALL_BITS_MAX);
}

struct call {
    uint32_t id;
    uint64_t gap, duration;
};

/* Mostly a few regions in a rhythm, sometimes any region and any duration. */
static struct call some_call(unsigned kind)
{
    struct call c = {(uint32_t)rnd(kind ? 5 : 3), 10 + rnd(40), 1 + rnd(60)};
    if (rnd(10) == 0) c.id = (uint32_t)rnd(FDRI_CODEC_ID_MAX + 1u);
    if (rnd(6) == 0) c.gap = rnd(2ull << rnd(SHORT_BITS));
    if (rnd(6) == 0) c.duration = 1 + rnd((2ull << rnd(SHORT_BITS)) - 1);
    if (rnd(30) == 0) c.gap = 0;
    c.gap &= fdri_codec_mask(SHORT_BITS);
    c.duration = 1 + ((c.duration - 1) & fdri_codec_mask(SHORT_BITS));
    return c;
}

/* Encodes the call if the table predicts it. Returns false otherwise. */
static bool put_foreseen(struct bin *b, struct call c, uint64_t *commit)
{
    uint64_t progress = b->part.progress;
    struct fdri_codec_foreseen f;
    if (!fdri_codec_foresee(b->table.slot[b->part.context], progress, c.id, c.gap, c.duration, &f)) return false;
    *commit = fdri_codec_put_foreseen(&b->part, b->payload, c.id, &f);
    return true;
}

static void the_short_way_writes_the_same_bits(void **unused)
{
    (void)unused;
    static struct bin a, b;
    static struct call put[PAYLOAD * 8];
    const struct fdri_codec_tie none = {0};
    uint64_t foreseen = 0, all = 0;
    for (unsigned round = 0; round < 400; round++) {
        uint32_t count = 0;
        begin(&a);
        begin(&b);
        while (!fdri_codec_encode_full(&a.part)) {
            struct call c = some_call(round & 1);
            uint64_t commit;
            if (rnd(20) == 0) c.duration = 0;
            if (rnd(40) == 0) c.gap = rnd(1ull << rnd(50)); /* needs more than one write, or two */
            if (rnd(20) == 0) c.duration = 1 + rnd(1ull << rnd(50));
            bool done = put_foreseen(&a, c, &commit);
            if (!done && c.duration) fdri_codec_encode_longer(&a.part, &a.table, a.payload, c.id, c.gap, c.duration);
            else if (!done) fdri_codec_encode_call(&a.part, &a.table, a.payload, c.id, c.gap, c.duration, &none);
            fdri_codec_encode_call(&b.part, &b.table, b.payload, c.id, c.gap, c.duration, &none);
            if (done) assert_int_equal(commit, fdri_codec_commit_word(&a.part));
            assert_int_equal(fdri_codec_commit_word(&a.part), fdri_codec_commit_word(&b.part));
            assert_memory_equal(&a.part, &b.part, sizeof a.part);
            put[count++] = c;
            foreseen += done;
        }
        all += count;
        assert_memory_equal(&a.table, &b.table, sizeof a.table);
        assert_memory_equal(a.payload, b.payload, (FDRI_ARENA_COMMIT_BITS(a.part.progress) + 7) / 8);
        struct fdri_codec_decoder d;
        struct fdri_codec_record r;
        uint64_t last = 0;
        a.head.commit = fdri_codec_commit_word(&a.part);
        assert_true(fdri_codec_decode_begin(&d, &a.head, a.payload, PAYLOAD));
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(fdri_codec_decode_next(&d, &r), 1);
            assert_int_equal(r.id, put[i].id);
            assert_int_equal(r.enter, last + put[i].gap);
            assert_int_equal(r.leave - r.enter, put[i].duration);
            last = r.leave;
        }
        assert_int_equal(fdri_codec_decode_next(&d, &r), 0);
    }
    assert_in_range(foreseen, all / 20, all / 5 * 4);
}

/* A table entry yields the values that it was made of, and adapts by one bit at a time. */
static void entries_follow_the_lengths(void **unused)
{
    (void)unused;
    for (uint32_t gap = 0; gap <= FDRI_CODEC_WIDTH_MAX; gap++) {
        for (uint32_t duration = 0; duration <= FDRI_CODEC_WIDTH_MAX + 1; duration++) {
            uint32_t e = fdri_codec_entry(77, gap, duration);
            assert_int_equal(fdri_codec_entry_id(e), 77);
            assert_int_equal(fdri_codec_entry_gap(e), gap);
            assert_int_equal(fdri_codec_entry_duration(e), duration);
            assert_int_equal(fdri_codec_entry_bits(e), duration ? duration - 1 : 0);
            uint32_t wider = fdri_codec_entry_after(e, true, 77, 63, 63),
                     narrower = fdri_codec_entry_after(e, true, 77, 0, 1);
            assert_int_equal(fdri_codec_entry_gap(wider), gap < FDRI_CODEC_WIDTH_MAX ? gap + 1 : gap);
            assert_int_equal(fdri_codec_entry_gap(narrower), gap ? gap - 1 : 0);
            assert_int_equal(fdri_codec_entry_duration(wider), duration == 0 || duration > FDRI_CODEC_WIDTH_MAX
                                                                   ? FDRI_CODEC_WIDTH_MAX + 1
                                                                   : duration + 1);
            assert_int_equal(fdri_codec_entry_duration(narrower), duration < 2 ? 1 : duration - 1);
            assert_int_equal(fdri_codec_entry_duration(fdri_codec_entry_after(e, true, 77, 0, 0)), 0);
            assert_int_equal(fdri_codec_entry_after(e, false, 78, gap, duration), fdri_codec_entry(78, gap, duration));
        }
    }
}

static void nothing_was_written_behind(const struct bin *b)
{
    assert_true(FDRI_ARENA_COMMIT_BITS(b->part.progress) <= PAYLOAD * 8);
    for (size_t i = 0; i < sizeof b->behind; i++) assert_int_equal(b->behind[i], 0xA5);
}

/* Calls of any duration fill the bin to its end. Some state their ordinal. */
static void ordinals_come_back(void **unused)
{
    (void)unused;
    uint64_t in_tails = 0;
    static struct bin b;
    static struct call put[PAYLOAD];
    static struct fdri_codec_tie tie[PAYLOAD];
    for (uint32_t round = 0; round < 100; round++) {
        uint32_t count = 0, next = 0;
        begin(&b);
        for (;;) {
            struct call c = some_call(1);
            if (rnd(2)) c.duration = 0;
            if (rnd(2)) c.gap = 0;
            tie[count] = (struct fdri_codec_tie){.has_ordinal = rnd(4) == 0, .ordinal = (uint32_t)rnd(1ull << rnd(31))};
            bool tail = fdri_codec_encode_full(&b.part), tied = tie[count].has_ordinal || !c.duration;
            if (tail && !fdri_codec_tail_holds(&b.part, c.id, c.gap, c.duration, tied)) break;
            in_tails += tail;
            fdri_codec_encode_call(&b.part, &b.table, b.payload, c.id, c.gap, c.duration, &tie[count]);
            put[count++] = c;
        }
        nothing_was_written_behind(&b);
        struct fdri_codec_decoder d;
        struct fdri_codec_record r;
        uint64_t tick = 0;
        b.head.commit = fdri_codec_commit_word(&b.part);
        assert_true(fdri_codec_decode_begin(&d, &b.head, b.payload, PAYLOAD));
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(fdri_codec_decode_next(&d, &r), 1);
            assert_int_equal(r.id, put[i].id);
            bool zero = put[i].duration == 0;
            if (tick != r.enter) next = 0;
            if (tie[i].has_ordinal) next = tie[i].ordinal;
            assert_int_equal(r.ordinal, tie[i].has_ordinal || zero ? next : FDRI_CODEC_ORDINAL_COUNTED);
            tick = zero ? r.enter : UINT64_MAX;
            next++;
        }
        assert_int_equal(fdri_codec_decode_next(&d, &r), 0);
    }
    assert_true(in_tails > 200); /* of 100 bins; 0 if the bins had no tails */
}

/* The fast and the slow decoder agree on whole bins. On damaged bins the slow one accepts all that the fast one
 * accepts. */
static void the_fast_way_reads_the_same(void **unused)
{
    (void)unused;
    static struct bin b;
    static struct fdri_codec_record fast[PAYLOAD * 8], slow[PAYLOAD * 8];
    for (uint32_t round = 0; round < 2000; round++) {
        begin(&b);
        b.part.depth = b.head.depth = (uint16_t)(1 + round % 2);
        while (!fdri_codec_encode_full(&b.part)) {
            struct call c = some_call(round & 1);
            struct fdri_codec_tie tie = {.has_ordinal = rnd(50) == 0, .ordinal = (uint32_t)rnd(99)};
            if (rnd(2)) tie.parent_in_tick = true, tie.parent = (uint32_t)rnd(9);
            if (rnd(4) == 0) c.duration = 0, c.gap = rnd(2);
            if (rnd(99) == 0) c.duration = 1 + rnd(1ull << rnd(50)); /* the sum stays below 2^64 */
            fdri_codec_encode_call(&b.part, &b.table, b.payload, c.id, c.gap, c.duration, &tie);
        }
        b.head.commit = fdri_codec_commit_word(&b.part);
        bool damaged = round % 3 == 0;
        if (damaged) b.payload[rnd(PAYLOAD)] ^= (uint8_t)(1 + rnd(255));
        int n[2];
        for (int slowly = 0; slowly < 2; slowly++) {
            struct fdri_codec_decoder d;
            uint32_t count = 0;
            assert_true(fdri_codec_decode_begin(&d, &b.head, b.payload, PAYLOAD));
            int got;
            while ((got = fdri_codec_decode_calls(&d, (slowly ? slow : fast) + count, 64, slowly)) > 0)
                count += (uint32_t)got;
            n[slowly] = got < 0 ? -1 : (int)count;
        }
        if (!damaged) assert_int_equal(n[1], FDRI_ARENA_COMMIT_RECORDS(b.head.commit));
        if (!damaged || n[0] >= 0) assert_int_equal(n[0], n[1]);
        for (int i = 0; n[0] >= 0 && i < n[0]; i++) {
            const struct fdri_codec_record *x = &fast[i], *y = &slow[i];
            assert_true(x->enter == y->enter && x->leave == y->leave && x->id == y->id && x->ordinal == y->ordinal);
            if (x->enter == x->leave && b.head.depth > 1)
                assert_true(x->tie.parent_in_tick == y->tie.parent_in_tick && x->tie.parent == y->tie.parent);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_short_way_writes_the_same_bits),
        cmocka_unit_test(ordinals_come_back),
        cmocka_unit_test(the_fast_way_reads_the_same),
        cmocka_unit_test(entries_follow_the_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
