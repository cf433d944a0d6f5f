/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads,slow timeout=300 promise=P9
 * P9: snapshots of threads that record meanwhile, with several calls in a tick. All short calls of a depth may be given
 * back during the copy. Then the number of calls before a longer one in its tick is unknown. Still no call is shown
 * inside of a call that did not make it. */
#include "tests/support/api_fixture.h"
#include "tests/support/sanitized.h"

enum { SNAPSHOTS = SANITIZED ? 1 : 8, THREADS = 22, DEEP = 6, REGIONS = 61, LOCATIONS = 64 };
static fdr_region region[REGIONS];
static bool stop;

static uint64_t next(uint64_t *x)
{
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x >> 11;
}

/* The region of a call determines the two regions that it may call; no other region calls these. */
static uint32_t callee(uint32_t of, bool second) { return (of * 3 + 1 + second) % REGIONS; }

static void *calls(void *number)
{
    uint64_t x = 88172645463325252u + (uintptr_t)number * 104729;
    uint32_t stack[DEEP + 1] = {0}, depth = 0;
    for (uint32_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        uint32_t what = (uint32_t)(next(&x) % 24);
        if (i % 1024 == 0) usleep((unsigned)(next(&x) % 300));
        if (next(&x) % 40 == 0)
            for (uint32_t n = (uint32_t)(next(&x) % 3000); n; n--) __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (depth && (what < 12 || depth == DEEP)) {
            fdr_leave(region[stack[depth--]]);
        } else {
            stack[depth + 1] = callee(stack[depth], what & 1);
            fdr_enter(region[stack[++depth]]);
        }
    }
    while (depth) fdr_leave(region[stack[depth--]]);
    return NULL;
}

static uint32_t number_of(uint32_t id)
{
    for (uint32_t i = 0; i < REGIONS; i++)
        if (region[i] == id) return i;
    return 0;
}

static uint64_t calls_checked(const char *path)
{
    static uint32_t stack[LOCATIONS][DEEP + 2], depth[LOCATIONS];
    enum { UNKNOWN = REGIONS };
    struct fdr_file *f = NULL;
    struct fdr_read_event e;
    uint64_t seen = 0;
    memset(depth, 0, sizeof depth);
    assert_int_equal(fdr_file_open(path, &f, NULL, 0), FDR_WHOLE);
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    while (fdr_iter_next(it, &e)) {
        uint32_t *s = stack[e.location % LOCATIONS], *d = &depth[e.location % LOCATIONS];
        if (e.kind == FDR_LEAVE) --*d;
        if (e.kind != FDR_ENTER) continue;
        bool made_up = e.reduced || e.not_over;
        uint32_t parent = s[*d], me = made_up ? UNKNOWN : number_of(e.id);
        assert_true(*d < DEEP);
        s[++*d] = me;
        if (made_up || parent == UNKNOWN) continue;
        if (me != callee(parent, false) && me != callee(parent, true)) fail_msg("r%u is shown in r%u", me, parent);
        seen++;
    }
    fdr_iter_close(it);
    fdr_file_close(f);
    return seen;
}

static void P9_calls_in_their_calls(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    begin(&(struct fdr_config){.buffer = "4M", .bin = "16K", .resolution = "1us", .keep = "1,newest"});
    define_regions(region, REGIONS);
    for (uintptr_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, calls, (void *)i), 0);
    for (int i = 0; i < SNAPSHOTS; i++) {
        usleep(60000);
        assert_int_equal(fdr_snapshot("moving"), 0);
        assert_true(calls_checked(fdr_last_snapshot()) > THREADS);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P9_calls_in_their_calls)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
