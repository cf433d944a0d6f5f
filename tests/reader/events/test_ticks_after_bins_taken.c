/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=300 promise=P9
 * P9: threads take each other's oldest bins, and a tick holds several calls. One made-up call may stand for several
 * outer calls that were given back. An event of a remaining call is never shown inside of another call. */
#include "tests/support/api_fixture.h"
#include "tests/support/sanitized.h"

enum { THREADS = 30, CALLS = SANITIZED ? 6000 : 30000, DEEP = 20, REGIONS = 12, STACK = 64 };
static fdr_region region[REGIONS];
static fdr_marker_id marker;
static pthread_barrier_t all;

static fdr_region outer(uint64_t i) { return region[i % REGIONS]; }
static fdr_region inner(uint64_t i) { return region[(i + 3) % REGIONS]; }

/* Each marker lies in two calls. Every seventh inner call goes deeper after its marker. */
static void *calls(void *unused)
{
    for (uint64_t i = 0; i < CALLS; i++) {
        if (i % 50 == 0) usleep(1 + (unsigned)(i * 2654435761u >> 7) % 3000);
        fdr_enter(outer(i));
        fdr_enter(inner(i));
        fdr_marker(marker, i);
        for (int d = 0; i % 7 == 0 && d < DEEP; d++) fdr_enter(region[d % REGIONS]);
        for (int d = DEEP; i % 7 == 0 && d-- > 0;) fdr_leave(region[d % REGIONS]);
        fdr_leave(inner(i));
        fdr_leave(outer(i));
    }
    pthread_barrier_wait(&all); /* the thread lives until the snapshot is complete */
    pthread_barrier_wait(&all);
    return unused;
}

static void P9_markers_in_their_calls(void **state)
{
    static uint32_t stack[THREADS + 8][STACK], depth[THREADS + 8];
    pthread_t t[THREADS];
    struct fdr_read_event e;
    uint32_t markers = 0;
    (void)state;
    begin(&(struct fdr_config){.buffer = "2M", .resolution = "1us", .strategy = "telescope"});
    define_regions(region, REGIONS);
    marker = fdr_marker_define("of the inner call");
    pthread_barrier_init(&all, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, calls, NULL), 0);
    pthread_barrier_wait(&all);
    assert_int_equal(fdr_snapshot("full"), 0);
    pthread_barrier_wait(&all);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);

    struct fdr_file *f = NULL;
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, NULL, 0), FDR_WHOLE);
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e)) {
        uint32_t *s = stack[e.location % (THREADS + 8)], *d = &depth[e.location % (THREADS + 8)];
        if (e.kind == FDR_ENTER) s[++*d] = e.id;
        if (e.kind == FDR_LEAVE) --*d;
        if (e.kind != FDR_MARKER) continue;
        uint64_t i = e.field[0];
        bool good = *d <= 2 && (*d < 1 || !s[1] || s[1] == outer(i)) && (*d < 2 || !s[2] || s[2] == inner(i));
        if (!good) fail_msg("marker %llu is %u deep in %u, %u", (unsigned long long)i, *d, s[1], s[2]);
        markers++;
    }
    fdr_iter_close(it);
    fdr_file_close(f);
    fdr_finalize();
    assert_true(markers > THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P9_markers_in_their_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
