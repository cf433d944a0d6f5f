/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,slow timeout=900 promise=P4 excuse=corpus
 * P4 on real streams: the reader returns every event of the corpus. At a resolution of 128 ns it returns the first
 * million records of each stream. With a sanitizer both are the first 200,000 records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fdr/reader.h>

#include "format/arena/arena.h"
#include "format/codec/bit_length.h"
#include "tests/support/arena_builder.c"
#include "tests/support/corpus_stream.h"
#include "tests/support/reader_truth.h"
#include "tests/support/sanitized.h"

static void message(struct builder *b, struct truth *t, uint32_t kind, const struct stream_param *p, uint64_t tick,
                    uint32_t shift)
{
    uint64_t value[4] = {(uint32_t)p->peer, fdri_codec_zigzag((uint64_t)(int64_t)p->tag), p->comm, p->bytes};
    uint32_t class_ = FDRI_ARENA_CLASS_MESSAGE, id = kind == STREAM_SEND || kind == STREAM_ISEND ? 1 : 2,
             depth = builder_depth(b, 0);
    if (kind == STREAM_COLL_END) {
        class_ = FDRI_ARENA_CLASS_COLLECTIVE;
        id = (uint32_t)p->tag << 1 | 1;
        value[0] = p->comm, value[1] = fdri_codec_zigzag((uint64_t)(int64_t)p->peer), value[2] = p->bytes,
        value[3] = p->bytes2;
    }
    builder_point(b, 0, class_, id, tick, value, 4);
    truth_point(t, 0, class_, id, depth, tick, value, 4, shift);
}

static void feed(struct builder *b, struct truth *t, const struct stream *s, uint32_t shift, uint64_t most)
{
    uint64_t tick = s->head->t0_ns, none = 0;
    for (uint64_t i = 0; i < s->head->records && i < most; i++) {
        struct stream_event e;
        uint32_t depth = builder_depth(b, 0);
        if (!stream_event(s, i, &tick, &e)) continue;
        if (e.kind == STREAM_ENTER) {
            builder_enter(b, 0, e.value + 1, tick);
            truth_enter(t, 0, e.value + 1, depth + 1, tick, shift);
        } else if (e.kind == STREAM_LEAVE) {
            builder_leave(b, 0, tick);
            truth_leave(t, 0, depth, tick, shift);
        } else if (e.kind == STREAM_COLL_BEGIN) {
            builder_point(b, 0, FDRI_ARENA_CLASS_COLLECTIVE, e.value << 1, tick, &none, 0);
            truth_point(t, 0, FDRI_ARENA_CLASS_COLLECTIVE, e.value << 1, depth, tick, &none, 0, shift);
        } else {
            message(b, t, e.kind, e.param, tick, shift);
        }
    }
}

/* Stores at most so many records of the stream. */
static void stored(const char *name, uint32_t shift, uint64_t most)
{
    struct stream in;
    if (!evt_load(&in, name)) return;
    struct builder_options o = {.arena_bytes = 256u << 20,
                                .shift = shift,
                                .edge = {(1024 >> shift) + 1, (16384 >> shift) + 2, (1u << 18 >> shift) + 3}};
    struct builder *b = builder_new(&o);
    struct truth t = {.edge = {o.edge[0], o.edge[1], o.edge[2]}};
    builder_location(b, name);
    feed(b, &t, &in, shift, most);
    evt_free(&in);
    truth_compare(&t, b, NULL);
    truth_ledger(b);
    print_message("%s >> %u: %zu events\n", name, shift, t.count);
    truth_free(&t);
    builder_free(b);
}

static void P4_corpus_lossless(void **state)
{
    (void)state;
    for (size_t i = 0; i < EVT_NAMES; i++) stored(evt_names[i], 0, SANITIZED ? 200000 : UINT64_MAX);
}

static void P4_corpus_at_128_ns(void **state)
{
    (void)state;
    for (size_t i = 0; i < EVT_NAMES; i++) stored(evt_names[i], 7, SANITIZED ? 200000 : 1000000);
}

int main(void)
{
    struct stream any;
    if (!evt_load(&any, evt_names[0])) {
        print_message("skipped: no corpus in %s (FDR_CORPUS says where)\n", evt_folder());
        return 77;
    }
    evt_free(&any);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P4_corpus_lossless),
        cmocka_unit_test(P4_corpus_at_128_ns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
