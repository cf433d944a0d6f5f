/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P9
 * P9: a selection by least duration, in files where calls lack their parents. The reader shows the calls of the full
 * list that last long enough, nested, and made-up parents around them. */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

static uint64_t seed = 0x9E3779B97F4A7C15u;

/* Pinned partitions keep calls whose parents ended later and were given back. */
static void present(uint32_t events, uint32_t deepest, uint64_t now)
{
    for (uint32_t i = 0; i < events; i++) {
        uint32_t what = rnd(&seed, 40);
        now += rnd(&seed, 3) ? 0 : rnd(&seed, 40) ? rnd(&seed, 300) : rnd(&seed, 20000);
        if (!o.depth || (o.depth < deepest && what <= 20)) both_enter(&o, 1 + what % 16, now);
        else both_leave(&o, now);
    }
    while (o.depth) both_leave(&o, now);
}

enum { MOST = 400000 };
struct list {
    struct fdr_read_event event[MOST];
    uint64_t duration[MOST]; /* set for enters and leaves */
    size_t count, made_up;
};

/* Loads the calls. Checks that they nest and that no made-up call is empty. */
static void load_calls(struct fdr_file *f, uint64_t min_duration, struct list *l)
{
    struct fdr_select s = {.classes = 1u << FDR_IN_REGION, .min_duration_ns = min_duration};
    struct fdr_iter *it = fdr_iter_open(f, &s);
    static size_t open[1100], n;
    uint32_t depth = 0;
    bool empty = false;
    l->count = l->made_up = n = 0;
    for (struct fdr_read_event e; fdr_iter_next(it, &e);) {
        assert_true(l->count < MOST);
        if (e.kind == FDR_ENTER) assert_int_equal(e.depth, ++depth);
        else assert_int_equal(e.depth, depth--);
        assert_false(e.reduced && e.kind == FDR_LEAVE && empty);
        empty = e.reduced && e.kind == FDR_ENTER;
        if (e.reduced) {
            l->made_up++;
            continue;
        }
        size_t from = e.kind == FDR_ENTER ? l->count : open[e.depth];
        open[e.depth] = from;
        l->duration[l->count] = e.time_ns - l->event[from].time_ns;
        l->event[l->count++] = e;
        if (e.kind == FDR_LEAVE) l->duration[from] = l->duration[l->count - 1] = e.time_ns - l->event[from].time_ns;
    }
    fdr_iter_close(it);
    assert_int_equal(depth, 0);
}

static struct list whole, part;

static void a_least_duration_of_what_is_shown(void **state)
{
    static const char *const pin[] = {"1ms", "20us"};
    static const uint64_t least[] = {1, 200, 300, 5000, 70000};
    uint64_t made_up = 0;
    (void)state;
    for (uint32_t k = 0; k < 8; k++) {
        begin(&(struct fdr_config){
            .buffer = "256K", .bin = "4K", .pin = pin[k % 2], .resolution = k & 2 ? "128ns" : "0"});
        present(120000, 8 + 8 * (k % 4), 1000000);
        struct fdr_file *f = take();
        load_calls(f, 0, &whole);
        for (uint32_t m = 0; m < 5; m++) {
            size_t n = 0;
            load_calls(f, least[m], &part);
            made_up += part.made_up;
            for (size_t i = 0; i < whole.count; i++) {
                if (whole.duration[i] < least[m]) continue;
                assert_true(n < part.count);
                assert_int_equal(part.event[n].time_ns, whole.event[i].time_ns);
                assert_int_equal(part.event[n].id, whole.event[i].id);
                assert_int_equal(part.event[n++].depth, whole.event[i].depth);
            }
            assert_int_equal(n, part.count);
        }
        end(f);
    }
    assert_true(made_up > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_least_duration_of_what_is_shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
