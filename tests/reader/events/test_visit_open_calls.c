/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=60
 * fdr_visit_calls and the iterator show the same open calls for each least duration. This also holds if storage stopped
 * (strategy first) and other calls are open by now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPEN = 5 };
static char directory[] = "/tmp/fdr-open-XXXXXX";

static void count_open(void *context, const struct fdr_call *call) { *(unsigned *)context += call->open; }

static unsigned visited(struct fdr_file *f, const struct fdr_select *s)
{
    unsigned open = 0;
    const struct fdr_call_visitor v = {.context = &open, .leave = count_open};
    assert_int_equal(fdr_visit_calls(f, s, &v), 0);
    return open;
}

static unsigned iterated(struct fdr_file *f, const struct fdr_select *s)
{
    unsigned open = 0;
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, s);
    while (fdr_iter_next(it, &e)) {
        open += e.kind == FDR_ENTER && e.open;
        assert_true(!e.open || !e.duration_ns);
    }
    fdr_iter_close(it);
    return open;
}

static void open_calls(const char *strategy)
{
    char message[200] = "";
    struct fdr_file *f;
    uint64_t now = 1000;
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = "256K",
                           .strategy = strategy,
                           .signal = "none",
                           .crash = "0",
                           .arena = "anonymous",
                           .finalize = "none",
                           .dir = directory};
    assert_int_equal(fdr_init(&c), 0);
    fdr_region outer = fdr_region_define("outer", NULL, 0), inner = fdr_region_define("inner", NULL, 0);
    for (int i = 0; i < OPEN; i++) fdr_enter_at(outer, now += 100);
    for (int i = 0; i < 400000; i++) {
        fdr_enter_at(inner, now += 7 + (unsigned)i % 1000);
        fdr_leave_at(inner, now += 3 + (unsigned)i % 77);
    }
    for (int i = 0; i < OPEN; i++) fdr_leave_at(outer, now += 100);
    for (int i = 0; i < OPEN - 1; i++) fdr_enter_at(inner, now += 100);
    assert_int_equal(fdr_snapshot(strategy), 0);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    unsigned all = iterated(f, NULL);
    assert_int_equal(visited(f, NULL), all);
    assert_true(all >= OPEN - 1);
    for (uint64_t ns = 1; ns < now; ns *= 2) {
        const struct fdr_select s = {.classes = 1u << FDR_IN_REGION, .min_duration_ns = ns};
        assert_int_equal(visited(f, &s), iterated(f, &s));
    }
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
    fdr_finalize();
}

static void the_same_open_calls(void **state)
{
    static const char *const strategies[] = {"first", "telescope", "whole", "last"};
    (void)state;
    assert_non_null(mkdtemp(directory));
    for (int i = 0; i < 4; i++) open_calls(strategies[i]);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_open_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
