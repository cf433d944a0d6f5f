/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads promise=P4
 * P4: messages and collectives say their ordinals, also where bins change, others were left out, or a rewind removed
 * records. The field `bytes` of each message is its index in the list of presented ones. */
#include "tests/support/api_fixture.h"

enum { MESSAGES = 60000, ENVELOPES = 37 };

static struct presented {
    uint8_t kind, ordinal_kind;
    uint64_t ordinal;
    uint32_t peer;
} all[MESSAGES];

static uint32_t rnd(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}

static struct presented present(uint64_t *seed, uint64_t next[2][ENVELOPES], uint32_t i, uint64_t t)
{
    struct presented p = {
        .kind = rnd(seed, 2) ? FDR_SEND : FDR_RECV, .ordinal_kind = FDR_ORDINAL_KNOWN, .peer = rnd(seed, ENVELOPES)};
    uint64_t *n = &next[p.kind == FDR_SEND][p.peer];
    *n += rnd(seed, 20) ? 0 : rnd(seed, 1000); /* some were left out */
    uint32_t what = rnd(seed, 40);
    p.ordinal = (*n)++;
    if (what == 0) p.ordinal_kind = FDR_ORDINAL_SHARED;
    if (what == 1) p.ordinal_kind = FDR_ORDINAL_NONE, p.ordinal = 0;
    if (what == 2 && p.kind == FDR_RECV) {
        p.ordinal_kind = FDR_ORDINAL_OPEN, p.ordinal = i * 7ull;
        fdr_message_recv_open_at(p.peer, -3, 0, i, p.ordinal, t);
        return p;
    }
    uint64_t said = p.ordinal_kind == FDR_ORDINAL_NONE     ? FDR_ORDINAL_UNKNOWN
                    : p.ordinal_kind == FDR_ORDINAL_SHARED ? p.ordinal | FDR_ORDINAL_AMBIGUOUS
                                                           : p.ordinal;
    (p.kind == FDR_SEND ? fdr_message_send_nth_at : fdr_message_recv_nth_at)(p.peer, -3, 0, i, said, t);
    return p;
}

static void expect(const struct fdr_read_event *e)
{
    const struct presented *p = &all[e->field[3]];
    assert_int_equal(e->kind, p->kind);
    assert_int_equal(e->field[0], p->peer);
    assert_int_equal(e->field_count, 4);
    assert_int_equal(e->ordinal_kind, p->ordinal_kind);
    assert_int_equal(e->ordinal, p->ordinal);
}

static void P4_ordinals_of_messages(void **state)
{
    uint64_t seed = 1, next[2][ENVELOPES] = {{0}}, t = 10;
    uint32_t count = 0, shown = 0;
    (void)state;
    begin(NULL);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        all[i] = present(&seed, next, i, t += 1 + rnd(&seed, 50));
        count++;
        if (i % 1000) continue;
        fdr_rewind_mark();
        uint32_t gone = rnd(&seed, 30);
        for (uint32_t k = 0; k < gone && i + 1 < MESSAGES; k++) {
            i++;
            present(&seed, next, i, t += 1); /* all[i].kind stays 0 */
        }
        fdr_rewind();
    }
    fdr_message_resolve_at(77, 5, t += 1);
    struct fdr_file *f = take();
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e = {0};
    while (fdr_iter_next(it, &e) && e.kind != FDR_RESOLVE) expect(&e), shown++;
    assert_int_equal(shown, count);
    assert_true(e.kind == FDR_RESOLVE && e.field_count == 2 && e.field[0] == 77 && e.field[1] == 5);
    fdr_iter_close(it);
    assert_int_equal(total(f, FDR_IN_MESSAGE, 1)->calls + total(f, FDR_IN_MESSAGE, 2)->calls, MESSAGES);
    end(f);
}

static void P4_ordinals_of_collectives(void **state)
{
    (void)state;
    begin(NULL);
    const uint32_t ranks[] = {0, 2};
    fdr_comm_id a = fdr_comm_define_as("c", ranks, 2, 0xabc), b = fdr_comm_define_as("c", ranks, 2, 0xdef);
    assert_int_not_equal(a, b);
    uint64_t t = 0;
    for (uint64_t i = 0; i < 5000; i++) {
        fdr_comm_id c = i % 3 ? a : b;
        fdr_collective_begin_nth_at(13, c, i, t += 4);
        fdr_collective_end_nth_at(13, c, -1, 8, 8, i, t += 4);
    }
    fdr_collective_begin_nth_at(13, a, FDR_ORDINAL_UNKNOWN, t += 4);
    struct fdr_file *f = take();
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    for (uint64_t i = 0; i < 10000; i++) {
        assert_true(fdr_iter_next(it, &e));
        assert_int_equal(e.kind, i % 2 ? FDR_COLL_END : FDR_COLL_BEGIN);
        assert_int_equal(e.id, 13);
        assert_int_equal(e.field[0], i / 2 % 3 ? a : b);
        assert_true(e.ordinal_kind == FDR_ORDINAL_KNOWN && e.ordinal == i / 2);
    }
    assert_true(fdr_iter_next(it, &e));
    assert_true(e.kind == FDR_COLL_BEGIN && e.field_count == 0 && e.ordinal_kind == FDR_ORDINAL_NONE);
    fdr_iter_close(it);
    assert_true(fdr_comm_info(f, a)->identity == 0xabc && fdr_comm_info(f, b)->identity == 0xdef);
    assert_int_equal(fdr_comm_info(f, 0)->identity, 1);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P4_ordinals_of_messages),
                                       cmocka_unit_test(P4_ordinals_of_collectives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
