/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads,slow timeout=300 promise=P5,P8
 * P5, P8: messages and collectives of each region, caller and epoch equal those of an oracle, however many events were
 * given back. So do the sums of threads that ended. A row that finds no room is missing, and its
 * location says so; the rows that are there stay exact. test_traffic [FIRST [ROUNDS]] runs other random programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { REGIONS = 40, DEPTH = 6, MESSAGES = SANITIZED ? 80000 : 120000, LOOKS = 8, MANY = 800, THREADS = 60 };

static uint64_t first_seed = 1, rounds = SANITIZED ? 2 : 5;
static fdr_region region[MANY];

/* ---- the oracle ---- */

struct moment { /* all messages up to this time */
    uint64_t time_ns;
    struct fdr_traffic sum;
};
struct program {
    uint64_t seed, time_ns;
    uint32_t stack[DEPTH + 1], depth; /* indices of regions, from 1 on: 0 is outside of all */
    struct fdr_traffic in[MANY + 1], called[MANY + 1];
    struct moment *moment;
    size_t moments;
};

static void add(struct fdr_traffic *to, unsigned what, uint64_t sent, uint64_t received)
{
    if (what == 0) to->sends++, to->bytes_sent += sent;
    else if (what == 1) to->receives++, to->bytes_received += received;
    else to->collectives++, to->collectives_sent += sent, to->collectives_received += received;
}

static void message(struct program *p)
{
    unsigned what = (unsigned)rnd(&p->seed, 3), depth = p->depth;
    uint64_t sent = rnd(&p->seed, 100000), received = rnd(&p->seed, 3) ? rnd(&p->seed, 100000) : 0;
    p->time_ns += 1 + rnd(&p->seed, 50);
    if (what == 2) fdr_collective_begin_at(13, p->time_ns);
    p->time_ns += what == 2;
    if (what == 0) fdr_message_send_at(1, 2, 0, sent, p->time_ns);
    else if (what == 1) fdr_message_recv_at(3, 4, 0, received, p->time_ns);
    else fdr_collective_end_at(13, 0, -1, sent, received, p->time_ns);
    add(&p->in[depth ? p->stack[depth] : 0], what, sent, received);
    add(&p->called[depth > 1 ? p->stack[depth - 1] : 0], what, sent, received);
    struct moment *m = &p->moment[p->moments];
    if (p->moments) *m = m[-1];
    m->time_ns = p->time_ns;
    add(&m->sum, what, sent, received);
    p->moments++;
}

static void call(struct program *p, uint32_t regions)
{
    if (p->depth && (p->depth == DEPTH || rnd(&p->seed, 2))) {
        fdr_leave_at(region[p->stack[p->depth] - 1], p->time_ns += 1 + rnd(&p->seed, 400));
        p->depth--;
        return;
    }
    p->stack[++p->depth] = 1 + (uint32_t)rnd(&p->seed, regions);
    fdr_enter_at(region[p->stack[p->depth] - 1], p->time_ns += 1 + rnd(&p->seed, 400));
}

static struct program *new_program(uint64_t seed)
{
    struct program *p = calloc(1, sizeof *p);
    p->seed = seed * 0x9E3779B97F4A7C15u + 88172645463325252u;
    p->time_ns = 1000;
    p->moment = calloc(MESSAGES, sizeof *p->moment);
    return p;
}

static void end_program(struct program *p)
{
    free(p->moment);
    free(p);
}

/* ---- the recording ---- */

static struct fdr_file *look(uint8_t *copy)
{
    struct fdr_file *f;
    char text[256] = "";
    memcpy(copy, fdri_life_recording.arena.base, fdri_life_recording.arena.super->arena_bytes);
    if (fdr_file_open_memory(copy, fdri_life_recording.arena.super->arena_bytes, &f, text, sizeof text) != FDR_WHOLE)
        fail_msg("%s", text);
    if (fdr_file_verify(f) != FDR_WHOLE) fail_msg("%s", fdr_file_damage(f, 0));
    return f;
}

static void same(const struct fdr_traffic *a, const struct fdr_traffic *b) { assert_memory_equal(a, b, sizeof *a); }

/* Each row of the file equals the oracle's. Returns how many of the oracle's rows the file has. */
static size_t check_regions(const struct fdr_file *f, const struct program *p)
{
    const struct fdr_traffic_total *row;
    size_t count = fdr_traffic(f, &row), rows = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t at = row[i].region == UINT32_MAX ? 0 : row[i].region;
        assert_in_range(at, 0, MANY);
        assert_false(row[i].saturated);
        const struct fdr_traffic *mine = row[i].caller ? &p->called[at] : &p->in[at], *its = &row[i].sum;
        if (its->sends) assert_int_equal(its->sends, mine->sends), assert_int_equal(its->bytes_sent, mine->bytes_sent);
        if (its->receives)
            assert_int_equal(its->receives, mine->receives),
                assert_int_equal(its->bytes_received, mine->bytes_received);
        if (its->collectives) {
            assert_int_equal(its->collectives, mine->collectives);
            assert_int_equal(its->collectives_sent, mine->collectives_sent);
            assert_int_equal(its->collectives_received, mine->collectives_received);
        }
        rows += (its->sends != 0) + (its->receives != 0) + (its->collectives != 0);
    }
    return rows;
}

static size_t rows_of(const struct program *p)
{
    size_t rows = 0;
    for (uint32_t i = 0; i <= MANY; i++)
        for (int k = 0; k < 2; k++) {
            const struct fdr_traffic *t = k ? &p->called[i] : &p->in[i];
            rows += (t->sends != 0) + (t->receives != 0) + (t->collectives != 0);
        }
    return rows;
}

/* What had happened up to this time. */
static struct fdr_traffic until(const struct program *p, uint64_t time_ns)
{
    size_t low = 0, high = p->moments;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->moment[middle].time_ns <= time_ns) low = middle + 1;
        else high = middle;
    }
    return low ? p->moment[low - 1].sum : (struct fdr_traffic){0};
}

static size_t check_epochs(struct fdr_file *f, const struct program *p)
{
    const struct fdr_epoch_info *e;
    size_t count = fdr_epochs(f, &e);
    struct fdr_traffic before = {0};
    for (size_t i = 0; i < count; i++) {
        struct fdr_traffic now = until(p, e[i].current ? UINT64_MAX : e[i].to_ns), sum = e[i].traffic;
        assert_true(e[i].traffic_known);
        sum.sends += before.sends, sum.bytes_sent += before.bytes_sent;
        sum.receives += before.receives, sum.bytes_received += before.bytes_received;
        sum.collectives += before.collectives, sum.collectives_sent += before.collectives_sent;
        sum.collectives_received += before.collectives_received;
        same(&sum, &now);
        before = now;
    }
    return count;
}

static void begin(const char *buffer, uint32_t regions)
{
    const struct fdr_config c = {
        .size = sizeof c, .ignore_environment = 1, .arena = "anonymous", .buffer = buffer, .signal = "none"};
    char name[16];
    assert_int_equal(fdr_init(&c), 0);
    for (uint32_t i = 0; i < regions; i++) {
        snprintf(name, sizeof name, "r%u", i);
        region[i] = fdr_region_define(name, NULL, 0);
        assert_int_equal(region[i], i + 1);
    }
}

/* Events of messages that were given back, of a thousand. */
static uint64_t given_back(struct fdr_file *f)
{
    const struct fdr_ledger_row *row;
    uint64_t presented = 0, kept = 0;
    for (size_t i = 0, n = fdr_ledger(f, &row); i < n; i++)
        if (row[i].class_ == FDR_IN_MESSAGE) presented += row[i].presented, kept += row[i].kept;
    return presented ? 1000 - kept * 1000 / presented : 0;
}

/* Messages begin late: epochs without any merge with others. With more than 512 regions a cut is walked in steps; only
 * the first ones have messages. */
static void one_program(uint64_t seed, const char *buffer, uint32_t regions, uint64_t least_given)
{
    struct program *p = new_program(seed);
    uint64_t given = 0, calls = 0;
    size_t epochs = 0;
    begin(buffer, regions);
    uint8_t *copy = aligned_alloc(64, fdri_life_recording.arena.super->arena_bytes);
    while (p->moments < MESSAGES) {
        for (uint64_t k = rnd(&p->seed, 30); k; k--) call(p, rnd(&p->seed, 4) ? REGIONS : regions), calls++;
        if (calls < MESSAGES || p->stack[p->depth] > REGIONS || p->stack[p->depth ? p->depth - 1 : 0] > REGIONS)
            continue;
        message(p);
        if (rnd(&p->seed, MESSAGES / LOOKS)) continue;
        struct fdr_file *f = look(copy);
        assert_int_equal(check_regions(f, p), rows_of(p));
        epochs = check_epochs(f, p);
        given = given_back(f);
        fdr_file_close(f);
    }
    assert_in_range(given, least_given, 1000);
    assert_true(epochs > 4);
    free(copy);
    fdr_finalize();
    end_program(p);
}

static void P5_regions_and_epochs(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < rounds; round++)
        one_program(first_seed + round, "256K", REGIONS, SANITIZED ? 800 : 900);
}

static void P5_many_regions(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < rounds; round++) one_program(first_seed + round, "1M", MANY, 1);
}

/* ---- no room ---- */

static void P8_without_room_a_row_is_missing_or_exact(void **state)
{
    (void)state;
    struct program *p = new_program(first_seed);
    begin("256K", MANY);
    uint8_t *copy = aligned_alloc(64, fdri_life_recording.arena.super->arena_bytes);
    while (p->moments < 20000) {
        call(p, MANY);
        message(p);
    }
    struct fdr_file *f = look(copy);
    assert_in_range(check_regions(f, p), 1, rows_of(p) - 1);
    assert_true(fdr_location_info(f, 0)->traffic_lost);
    const struct fdr_epoch_info *e;
    size_t count = fdr_epochs(f, &e);
    for (size_t i = 0; i < count; i++)
        if (e[i].current) assert_false(e[i].traffic_known);
    fdr_file_close(f);
    free(copy);
    fdr_finalize();
    end_program(p);
}

/* ---- threads that ended ---- */

static void *thread(void *program)
{
    struct program *p = program;
    while (p->moments < 500) {
        for (int k = 0; k < 40; k++) call(p, REGIONS);
        message(p);
    }
    return NULL;
}

static void sum_up(struct program *to, const struct program *p)
{
    for (uint32_t i = 0; i <= MANY; i++)
        for (int k = 0; k < 2; k++) {
            struct fdr_traffic *a = k ? &to->called[i] : &to->in[i];
            const struct fdr_traffic *b = k ? &p->called[i] : &p->in[i];
            a->sends += b->sends, a->bytes_sent += b->bytes_sent;
            a->receives += b->receives, a->bytes_received += b->bytes_received;
            a->collectives += b->collectives, a->collectives_sent += b->collectives_sent;
            a->collectives_received += b->collectives_received;
        }
}

static void P5_threads_that_ended(void **state)
{
    (void)state;
    struct program *all = new_program(0);
    uint32_t folded = 0;
    begin("512K", REGIONS);
    for (uint64_t i = 0; i < THREADS; i++) {
        struct program *p = new_program(first_seed + i);
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, thread, p), 0);
        pthread_join(t, NULL);
        sum_up(all, p);
        end_program(p);
    }
    uint8_t *copy = aligned_alloc(64, fdri_life_recording.arena.super->arena_bytes);
    struct fdr_file *f = look(copy);
    struct program *shown = new_program(0);
    const struct fdr_traffic_total *row;
    for (size_t i = 0, n = fdr_traffic(f, &row); i < n; i++) {
        uint32_t at = row[i].region == UINT32_MAX ? 0 : row[i].region;
        struct fdr_traffic *to = row[i].caller ? &shown->called[at] : &shown->in[at];
        to->sends += row[i].sum.sends, to->bytes_sent += row[i].sum.bytes_sent;
        to->receives += row[i].sum.receives, to->bytes_received += row[i].sum.bytes_received;
        to->collectives += row[i].sum.collectives, to->collectives_sent += row[i].sum.collectives_sent;
        to->collectives_received += row[i].sum.collectives_received;
    }
    for (size_t i = 0; i < fdr_location_count(f); i++) folded += fdr_location_info(f, i)->ended_threads;
    assert_true(folded > THREADS / 3);
    assert_memory_equal(shown->in, all->in, sizeof all->in);
    assert_memory_equal(shown->called, all->called, sizeof all->called);
    fdr_file_close(f);
    free(copy);
    fdr_finalize();
    end_program(shown);
    end_program(all);
}

/* ---- the edges ---- */

static void P8_bytes_beyond_64_bits(void **state)
{
    (void)state;
    begin("512K", 1);
    uint8_t *copy = aligned_alloc(64, fdri_life_recording.arena.super->arena_bytes);
    fdr_message_send_at(1, 2, 0, UINT64_MAX - 5, 1000);
    fdr_message_send_at(1, 2, 0, 10, 1001);
    struct fdr_file *f = look(copy);
    const struct fdr_traffic_total *row;
    assert_int_equal(fdr_traffic(f, &row), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(row[i].region, UINT32_MAX);
        assert_int_equal(row[i].sum.sends, 2);
        assert_int_equal(row[i].sum.bytes_sent, UINT64_MAX);
        assert_true(row[i].saturated);
    }
    assert_false(row[0].caller);
    assert_true(row[1].caller);
    fdr_file_close(f);
    free(copy);
    fdr_finalize();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P5_regions_and_epochs),
        cmocka_unit_test(P5_many_regions),
        cmocka_unit_test(P8_without_room_a_row_is_missing_or_exact),
        cmocka_unit_test(P5_threads_that_ended),
        cmocka_unit_test(P8_bytes_beyond_64_bits),
    };
    if (argc > 1) first_seed = strtoull(argv[1], NULL, 0);
    if (argc > 2) rounds = strtoull(argv[2], NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
