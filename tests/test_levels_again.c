/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 wrap=fdri_meta,fdri_meta_larger
 * P3: a thread that found no room for accounts of deeper calls gets it when there is some; calls that were counted as
 * too deep until then are told at the depth at which they began, also when the thread has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/shares.h"

enum { DEEP = 60, TIMES = 100, BUFFER = 4 << 20, SEEN = 64 * DEEP };

static bool deny;
static uint32_t asked;
static fdr_region level[DEEP];

uint32_t __real_fdri_meta(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes);
uint32_t __wrap_fdri_meta(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes);
uint32_t __wrap_fdri_meta(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes)
{
    bool levels = deny && kind == FDR_META_LEVELS && t->loc->level_blocks;
    asked += levels;
    return levels ? 0 : __real_fdri_meta(t, kind, bytes);
}

uint32_t __real_fdri_meta_larger(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes);
uint32_t __wrap_fdri_meta_larger(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes);
uint32_t __wrap_fdri_meta_larger(struct fdri_thread *t, enum fdr_meta_kind kind, uint32_t bytes)
{
    asked += deny && kind == FDR_META_LEVELS;
    return deny && kind == FDR_META_LEVELS ? 0 : __real_fdri_meta_larger(t, kind, bytes);
}

static void deep(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        for (uint32_t d = 0; d < DEEP; d++) fdr_enter(level[d]);
        for (uint32_t d = DEEP; d-- > 0;) fdr_leave(level[d]);
    }
}

/* Calls at each depth that were presented, and that are lost, of all threads; all of it is whole. */
static void tell(struct fdr_ledger_row *at)
{
    const char *wrong = NULL;
    const struct fdr_ledger_row *r;
    uint64_t events;
    struct fdr_file *f = oracle_snapshot(BUFFER, &wrong);
    if (!wrong) wrong = oracle_check_any(f, &events);
    if (wrong) fail_msg("%s", wrong);
    memset(at, 0, DEEP * sizeof *at);
    for (size_t i = 0, n = fdr_ledger(f, &r); i < n; i++) {
        if (r[i].class_ != FDR_CLASS_REGION || r[i].depth >= DEEP) continue;
        at[r[i].depth].presented += r[i].presented;
        at[r[i].depth].lost += r[i].lost;
    }
    fdr_file_close(f);
}

/* What the thread sees; an assertion of cmocka's would end it without a word. */
static struct seen {
    uint64_t deeper;
    uint32_t blocks, asked;
    struct fdr_ledger_row at[DEEP];
} seen[2];

static void *thread(void *unused)
{
    for (int i = 0; i < 2; i++) {
        deny = i == 0;
        deep(TIMES);
        seen[i] = (struct seen){
            .deeper = fdri_self.loc->presented_overflow, .blocks = fdri_self.loc->level_blocks, .asked = asked};
        tell(seen[i].at);
    }
    return unused;
}

static void P3_levels_come_later(void **state)
{
    (void)state;
    char name[16];
    pthread_t t;
    start("telescope", "4M");
    for (uint32_t i = 0; i < DEEP; i++) {
        snprintf(name, sizeof name, "level%u", i);
        level[i] = fdr_region_define(name, "levels", i);
    }
    fdr_enter(level[0]);
    fdr_leave(level[0]);
    assert_int_equal(pthread_create(&t, NULL, thread, NULL), 0);
    pthread_join(t, NULL);
    const uint64_t deeper = (DEEP - 8) * TIMES;
    assert_int_equal(seen[0].blocks, 1);
    assert_int_equal(seen[0].deeper, deeper);
    assert_int_equal(seen[0].at[9].presented, deeper);
    assert_int_equal(seen[0].at[9].lost, deeper);
    assert_int_equal(seen[0].asked, 7); /* the first time, and after 1, 2, 4, ... more */
    assert_true(fdr_levels_in(seen[1].blocks) >= DEEP);
    assert_true(seen[1].deeper - deeper <= SEEN);
    assert_int_equal(seen[1].at[9].lost, seen[1].deeper);
    assert_int_equal(seen[1].at[8].lost, 0);
    assert_int_equal(seen[1].at[8].presented, 2 * TIMES);
    for (int i = 0; i < 4 && fdri_rec.shares.ended_last; i++) fdri_ended_room(&fdri_self, FDRI_ATTACHING_WHOLE);
    assert_int_equal(fdri_rec.shares.ended_last, 0); /* its accounts are those of [ended] */
    tell(seen[0].at);
    for (uint32_t d = 0; d < DEEP; d++) {
        assert_int_equal(seen[0].at[d].presented, seen[1].at[d].presented);
        assert_int_equal(seen[0].at[d].lost, seen[1].at[d].lost);
    }
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P3_levels_come_later)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
