/* SPDX-License-Identifier: MIT */
/* ctest: label=unit timeout=120 promise=P3,P9 */
/* P3, P9: several events share one tick. A rule leaves calls out and keeps their callees; a rewind drops the newest
 * events. All events that count as kept must be shown, each at its place. */
#include "tests/support/api_fixture.h"
#include "tests/support/random_numbers.h"

/* Regions a to h; only a is short where the test needs it. */
static fdr_region region[8];

static void start(const char *resolution, const char *rules)
{
    begin(&(struct fdr_config){
        .buffer = "16M", .timer = "monotonic", .resolution = resolution, .filter = write_rules(rules)});
    for (int i = 0; i < 8; i++) region[i] = fdr_region_define((char[]){(char)('a' + i), 0}, "", 0);
}

/* Writes the shown events as text: a letter for an enter, ? for a made-up call, ) for a leave, * for a marker. Also
 * checks the kept counts of the ledger. */
static void shown(struct fdr_file *f, char *text, size_t room)
{
    struct fdr_iter *it = fdr_iter_open(f, NULL);
    struct fdr_read_event e;
    uint64_t calls[64] = {0}, now = 0;
    size_t n = 0;
    while (fdr_iter_next(it, &e)) {
        assert_true(e.time_ns >= now);
        now = e.time_ns;
        char c = '*';
        if (e.kind == FDR_LEAVE) c = ')';
        if (e.kind == FDR_ENTER) c = '?';
        if (e.kind == FDR_ENTER && !e.reduced)
            c = fdr_definition(f, FDR_REGION_DEFINITION, e.id)->name[0], calls[e.depth]++;
        if (n + 1 < room) text[n++] = c;
    }
    if (room) text[n] = 0;
    fdr_iter_close(it);
    for (uint32_t d = 1; d < 64; d++) assert_int_equal(row(f, 0, FDR_IN_REGION, d)->kept, calls[d]);
    balance(f);
}

/* A letter enters that region at the time behind it, ) leaves, * is a marker, < sets a mark and > rewinds. */
static void play(const char *p)
{
    uint32_t open[64], depth = 0;
    while (*p) {
        char what = *p++, *end;
        uint64_t t = strtoull(p, &end, 10);
        p = end + strspn(end, " ");
        if (what == '*') fdr_marker_at(1, 0, t);
        else if (what == ')') fdr_leave_at(open[--depth], t);
        else if (what == '<') fdr_rewind_mark();
        else if (what == '>') fdr_rewind();
        else fdr_enter_at(open[depth++] = region[what - 'a'], t);
    }
}

struct tie {
    const char *resolution, *events, *shown;
};
static void check_ties(const struct tie *tie, size_t count, const char *rules)
{
    for (size_t i = 0; i < count; i++) {
        char text[100];
        start(tie[i].resolution, rules);
        play(tie[i].events);
        struct fdr_file *f = take();
        shown(f, text, sizeof text);
        if (strcmp(text, tie[i].shown)) print_message("%s at %s\n", tie[i].events, tie[i].resolution);
        assert_string_equal(text, tie[i].shown);
        end(f);
    }
}

static void P9_callees_of_an_excluded_call(void **state)
{
    static const struct tie cases[] = {
        /* a stays: without it, the parent of its only callee would be unknown */
        {"0", "b100 a100 c100 )100 )100", "bac)))"},
        {"64ns", "b128 a130 c131 )132 )140 )500", "bac)))"},
        {"64ns", "a128 a129 c130 )131 )132 )133", "aac)))"},
        /* c is not in the tick in which a began, so its place is clear without a */
        {"64ns", "b128 a130 c200 )200 )210 )500", "b?c)))"},
        {"128ns", "a1397 c1665 )1665 )1665 d1665 e1665 )1665 )1665 b1665", "?c))de))b)"},
        /* points before, inside and behind the call */
        {"0", "a100 b105 *105 )114 )120", "?b*))"},
        {"128ns", "a1397 c1665 )1665 )1665 *1665", "?c))*"},
        {"128ns", "a1397 *1400 c1665 )1665 *1665 )1665 *1665", "*?c)*)*"},
        {"0", "a77 c77 )94 )94 d94 *94", "?c))d*)"},
        {"0", "a100 c122 )122 )122 d122 *122", "?c))d*)"},
        /* A point between two such calls: the made-up call around the first one ends before the point. */
        {"0", "d100 a110 b120 )140 )150 *160 a170 b180 )190 )200 )900", "d?b))*?b)))"},
        {"0", "d100 a110 a112 b120 )140 )145 )150 *160 a170 b180 )190 )200 )900", "d??b)))*?b)))"},
        {"8ns", "a2229 c2229 )2261 )2261 c2262 *2262 )2543", "?c))c*)"},
    };
    (void)state;
    check_ties(cases, sizeof cases / sizeof *cases, "min 300ns name a\n");
}

/* Calls open at the mark stay, with all events stored inside of them before it. Events after the mark are dropped. */
static void P9_a_rewind_leaves_what_was_open(void **state)
{
    static const struct tie cases[] = {
        {"0", "a1504 b1505 *1505 )1514 < )1572 >", "ab*))"},
        {"0", "a100 b100 c100 )100 < )200 )300 >", "abc)))"},
        {"0", "a100 b100 c100 )100 < )100 )100 >", "abc)))"},
        {"0", "a100 b100 c100 )100 < )100 d100 )100 )100 > e100 )100", "abc)))e)"},
        {"0", "a100 b100 c100 )100 < e100 f100 )100 )100 )100 d100 )100 )100 e100 f100 )100 )100 > g100 )100 h100 )100",
         "abc)))g)h)"},
        {"64ns", "a128 b130 c131 )132 < d133 )134 *135 )900 e910 )920 > f930 )940 )9000", "abc))f))"},
        {"64ns", "a128 b130 c131 )132 )133 < d134 )135 > e136 f137 )138 )139 )140", "abc))ef)))"},
        /* Marks inside a call that was open at an older mark, and a rewind for each. */
        {"0", "a100 < b100 c100 )100 > < )200 d300 )300 > e400 )400 )500", "ab)e))"},
        {"0", "a100 < b100 < c100 )100 )200 )300 >", "ab))"},
    };
    (void)state;
    check_ties(cases, sizeof cases / sizeof *cases, "");
}

static uint64_t seed = 88172645463325252u;

static void P3_all_that_is_kept_is_shown(void **state)
{
    static const char *const resolution[] = {"0", "8ns", "128ns"};
    (void)state;
    for (uint32_t k = 0; k < 120; k++) { /* the second half of the rounds rewinds */
        uint32_t depth = 0, deepest = 2 + rnd(&seed, 20), step = 1 + rnd(&seed, 40), open[64];
        uint64_t t = 1000;
        start(resolution[k % 3], "min 30ns name a\nmin 200ns name b\nmin 3us name c\nevery 3 name d\nexclude name e\n");
        for (uint32_t i = 0; i < 3000; i++) {
            if (rnd(&seed, 4) == 0) t += rnd(&seed, step);
            if (k >= 60 && rnd(&seed, k - 50) == 0) rnd(&seed, 2) ? fdr_rewind_mark() : fdr_rewind();
            if (rnd(&seed, 10) == 0) fdr_marker_at(1, i, t);
            else if (depth == deepest || (depth && rnd(&seed, 2))) fdr_leave_at(open[--depth], t);
            else fdr_enter_at(open[depth++] = region[rnd(&seed, 8)], t);
        }
        struct fdr_file *f = take();
        shown(f, NULL, 0);
        end(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P9_callees_of_an_excluded_call),
        cmocka_unit_test(P9_a_rewind_leaves_what_was_open),
        cmocka_unit_test(P3_all_that_is_kept_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
