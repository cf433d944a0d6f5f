/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads promise=P4,P5
 * P4, P5: input and output through the public header. Begins and ends come back with their file, operation, bytes,
 * offset and errno. Totals of each file and operation are exact in number, bytes and time, also where events were given
 * back, and where the thread has ended. */
#include "format/codec/record_codec.h"
#include "tests/support/api_fixture.h"

static const struct fdr_total *io_total(const struct fdr_file *f, uint32_t file, uint32_t operation)
{
    const struct fdr_total *all;
    size_t n = fdr_totals(f, &all);
    for (size_t i = 0; i < n; i++)
        if (all[i].class_ == FDR_IN_IO && all[i].id == file && all[i].operation == operation) return &all[i];
    return NULL;
}

static void is(const struct fdr_read_event *e, uint32_t kind, uint32_t file, uint32_t operation, uint32_t fields)
{
    assert_int_equal(e->class_, FDR_IN_IO);
    assert_int_equal(e->kind, kind);
    assert_int_equal(e->id, file);
    assert_int_equal(e->field[0], operation);
    assert_int_equal(e->field_count, fields);
}

static void P4_begins_and_ends(void **state)
{
    (void)state;
    begin(NULL);
    fdr_io_file a = fdr_io_file_define("a"), b = fdr_io_file_define("b");
    assert_int_equal(fdr_io_file_define("a"), a);
    uint64_t began = fdr_io_begin_at(a, FDR_IO_READ, 4096, 0, 1000);
    uint64_t other = fdr_io_begin_at(b, FDR_IO_WRITE, UINT64_MAX, FDR_IO_NO_OFFSET, 1100); /* they overlap */
    fdr_io_end_at(a, FDR_IO_READ, 4000, 0, began, 1500);
    fdr_io_end_at(b, FDR_IO_WRITE, 0, ENOSPC, other, 1700);
    fdr_io_end_at(b, FDR_IO_SYNC, 0, 0, 0, 1800); /* nobody says when it began */
    fdr_io_begin_at(FDRI_CODEC_ID_MAX, 1000, 0, 7, 1900);
    fdr_io_end_at(UINT32_MAX, FDR_IO_OTHER, 1, -1, UINT64_MAX, 2000); /* it began later: no time */
    struct fdr_file *f = take();
    struct fdr_read_event e[16];
    assert_int_equal(load(f, e, 16), 7);
    is(&e[0], FDR_IO_BEGIN, a, FDR_IO_READ, 3);
    assert_true(e[0].field[1] == 4096 && e[0].field[2] == 0 && e[0].time_ns == 1000);
    is(&e[1], FDR_IO_BEGIN, b, FDR_IO_WRITE, 2);
    assert_true(e[1].field[1] == UINT64_MAX);
    is(&e[2], FDR_IO_END, a, FDR_IO_READ, 2);
    assert_true(e[2].field[1] == 4000 && e[2].time_ns == 1500);
    is(&e[3], FDR_IO_END, b, FDR_IO_WRITE, 3);
    assert_true(e[3].field[1] == 0 && e[3].field[2] == ENOSPC);
    is(&e[4], FDR_IO_END, b, FDR_IO_SYNC, 1);
    is(&e[5], FDR_IO_BEGIN, 0, FDR_IO_OTHER, 3);
    is(&e[6], FDR_IO_END, 0, FDR_IO_OTHER, 3);
    assert_string_equal(fdr_id_name(f, FDR_IN_IO, a), "a");
    assert_string_equal(fdr_definition(f, FDR_FILE_DEFINITION, b)->name, "b");
    const struct fdr_total *t = io_total(f, a, FDR_IO_READ);
    assert_true(t->calls == 1 && t->sum_u == 4000 && t->min_u == 4000 && t->inclusive_ns == 500);
    t = io_total(f, b, FDR_IO_WRITE);
    assert_true(t->calls == 1 && t->sum_u == 0 && t->inclusive_ns == 600);
    t = io_total(f, b, FDR_IO_SYNC);
    assert_true(t->calls == 1 && t->inclusive_ns == 0);
    t = io_total(f, 0, FDR_IO_OTHER);
    assert_true(t->calls == 1 && t->sum_u == 1 && t->inclusive_ns == 0);
    end(f);
}

enum { ROUNDS = 40000 };

static void *moves_much(void *file)
{
    fdr_io_file f = *(fdr_io_file *)file;
    uint64_t t = 1000;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t began = fdr_io_begin_at(f, i % 2 ? FDR_IO_READ : FDR_IO_WRITE, i, i * 77 % 4096, t += 3);
        fdr_io_end_at(f, i % 2 ? FDR_IO_READ : FDR_IO_WRITE, i, 0, began, t += i % 5);
    }
    return NULL;
}

/* Two threads in turn, so that the second one finds the first one's accounts folded or there. */
static void P5_totals_of_events_given_back(void **state)
{
    (void)state;
    pthread_t thread;
    begin(&(struct fdr_config){.buffer = "512K"});
    fdr_io_file file = fdr_io_file_define("much");
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, moves_much, &file);
        pthread_join(thread, NULL);
    }
    struct fdr_file *f = take();
    const struct fdr_total *all;
    uint64_t calls[2] = {0}, bytes[2] = {0}, ns[2] = {0}, want_bytes[2] = {0}, want_ns[2] = {0};
    for (size_t i = 0, n = fdr_totals(f, &all); i < n; i++) {
        if (all[i].class_ != FDR_IN_IO) continue;
        uint32_t reads = all[i].operation == FDR_IO_READ;
        calls[reads] += all[i].calls;
        bytes[reads] += all[i].sum_u;
        ns[reads] += all[i].inclusive_ns;
    }
    for (uint64_t i = 0; i < ROUNDS; i++) want_bytes[i % 2] += 2 * i, want_ns[i % 2] += 2 * (i % 5);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls[i], ROUNDS);
        assert_int_equal(bytes[i], want_bytes[i]);
        assert_int_equal(ns[i], want_ns[i]);
    }
    const struct fdr_reduction_info *reductions;
    assert_true(fdr_reductions(f, &reductions) > 0);
    end(f);
}

static void P3_paused_io_is_filtered(void **state)
{
    (void)state;
    begin(NULL);
    fdr_io_file file = fdr_io_file_define("a");
    fdr_pause();
    uint64_t began = fdr_io_begin(file, FDR_IO_READ, 1, FDR_IO_NO_OFFSET);
    assert_int_equal(began, 0);
    fdr_io_end(file, FDR_IO_READ, 1, 0, began);
    fdr_resume();
    began = fdr_io_begin(file, FDR_IO_READ, 1, FDR_IO_NO_OFFSET);
    assert_int_not_equal(began, 0);
    fdr_io_end(file, FDR_IO_READ, 1, 0, began);
    struct fdr_file *f = take();
    const struct fdr_ledger_row *row;
    size_t n = fdr_ledger(f, &row), found = 0;
    for (size_t i = 0; i < n; i++) {
        if (row[i].class_ != FDR_IN_IO) continue;
        assert_true(row[i].presented == 4 && row[i].kept == 2 && row[i].filtered == 2);
        found++;
    }
    assert_int_equal(found, 1);
    assert_int_equal(io_total(f, file, FDR_IO_READ)->calls, 1);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P4_begins_and_ends),
        cmocka_unit_test(P5_totals_of_events_given_back),
        cmocka_unit_test(P3_paused_io_is_filtered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
