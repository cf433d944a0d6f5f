/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads promise=P3,P5 timeout=120
 * P3, P5: calls that rules leave out are counted exactly. They are entered by id and by code address, nested in random
 * ways, and in handlers. Some calls beside them have no leave, and rows of totals give way meanwhile. Calls that rules
 * store are stored. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recorder/record/ruled_calls.h"
#include "tests/support/api_fixture.h"
#include "tests/support/signal_timer.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

enum { KINDS = 5, EACH = 40, REGIONS = KINDS * EACH, FUNCTIONS = 4, ALL = REGIONS + FUNCTIONS, DEPTH_MOST = 30 };
enum kind { EXCLUDED, FIRST, EVERY, BRIEF, PLAIN };
static const char *const prefix[KINDS] = {"ex", "fi", "ev", "br", "pl"};
static const char rules[] = "exclude name ex*\nfirst 5 name fi*\nevery 7 name ev*\nmin 1000s name br*\n"
                            "exclude name a64l\nfirst 5 name l64a\nevery 7 name ecvt\nmin 1000s name fcvt\n";
static const void *const function[FUNCTIONS] = {(const void *)&a64l, (const void *)&l64a, (const void *)&ecvt,
                                                (const void *)&fcvt};
static fdr_region region[REGIONS];
static uint64_t entered[ALL]; /* what the program did */

static enum kind kind_of(uint32_t n) { return n < REGIONS ? n / EACH : n - REGIONS; }

static void enter(uint32_t n)
{
    __atomic_fetch_add(&entered[n], 1, __ATOMIC_RELAXED);
    if (n < REGIONS) fdr_enter(region[n]);
    else fdr_enter_address(function[n - REGIONS]);
}

static void leave(uint32_t n)
{
    if (n < REGIONS) fdr_leave(region[n]);
    else fdr_leave_address(function[n - REGIONS]);
}

static void define_all(void)
{
    char name[16];
    for (uint32_t n = 0; n < REGIONS; n++) {
        snprintf(name, sizeof name, "%s%u", prefix[kind_of(n)], n % EACH);
        region[n] = fdr_region_define(name, NULL, 0);
    }
    memset(entered, 0, sizeof entered);
}

/* A random walk. lossy: leaves of excluded calls are missing, as after a jump. */
static void walk(uint64_t seed, uint32_t steps, bool lossy)
{
    uint32_t open[DEPTH_MOST], depth = 0;
    for (uint32_t i = 0; i < steps; i++) {
        if (depth < DEPTH_MOST && (!depth || rnd(&seed, 2))) {
            open[depth] = depth && !rnd(&seed, 4) ? open[rnd(&seed, depth)] : rnd(&seed, ALL); /* recursion, too */
            enter(open[depth++]);
        } else if (depth) {
            uint32_t n = open[--depth];
            if (!lossy || kind_of(n) != EXCLUDED || rnd(&seed, 3)) leave(n);
        }
    }
    while (depth) leave(open[--depth]);
}

static uint64_t sum_of_program(void)
{
    uint64_t sum = 0;
    for (uint32_t n = 0; n < ALL; n++) sum += entered[n];
    return sum;
}

static uint64_t calls_of(struct fdr_file *f, const char *name, uint64_t *untimed)
{
    const struct fdr_total *rows;
    uint64_t calls = 0;
    *untimed = 0;
    for (size_t n = fdr_totals(f, &rows), i = 0; i < n; i++) {
        const struct fdr_definition *d = fdr_definition(f, FDR_REGION_DEFINITION, rows[i].id);
        if (rows[i].class_ != FDR_IN_REGION || rows[i].rest || !d || strcmp(d->name, name) != 0) continue;
        calls += rows[i].calls;
        *untimed += rows[i].untimed;
    }
    return calls;
}

/* each: compare region by region. others: calls of other regions. */
static void compare(bool each, uint64_t others)
{
    struct fdr_file *f = take();
    const struct fdr_total *rows;
    uint64_t all = 0, filtered = 0;
    const struct fdr_ledger_row *ledger;
    for (size_t n = fdr_totals(f, &rows), i = 0; i < n; i++)
        if (rows[i].class_ == FDR_IN_REGION) all += rows[i].calls + rows[i].untimed;
    for (size_t n = fdr_ledger(f, &ledger), i = 0; i < n; i++) filtered += ledger[i].filtered;
    assert_int_equal(all, sum_of_program() + others);
    assert_int_equal(balance(f), sum_of_program() + others);
    for (uint32_t n = 0; n < ALL && each; n++) {
        static const char *const names[FUNCTIONS] = {"a64l", "l64a", "ecvt", "fcvt"};
        const char *name = n < REGIONS ? fdr_definition(f, FDR_REGION_DEFINITION, region[n])->name : names[n - REGIONS];
        uint64_t untimed, calls = calls_of(f, name, &untimed), timed = 0;
        switch (kind_of(n)) {
        case EXCLUDED: break;
        case FIRST: timed = entered[n] < 5 ? entered[n] : 5; break;
        case EVERY: timed = (entered[n] + 6) / 7; break;
        default: timed = entered[n];
        }
        if (calls + untimed != entered[n] || calls != timed)
            fail_msg("%s: %llu enters, but %llu calls with a time (%llu expected) and %llu without", name,
                     (unsigned long long)entered[n], (unsigned long long)calls, (unsigned long long)timed,
                     (unsigned long long)untimed);
    }
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        assert_int_equal(fdr_location_info(f, i)->open_count, 0);
        assert_int_equal(fdr_location_info(f, i)->unbalanced + fdr_location_info(f, i)->stray_leaves, 0);
    }
    assert_true(filtered > 0);
    end(f);
}

static void P3_P5_each_region_has_its_count(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.filter = write_rules(rules), .buffer = "16M", .timer = "tsc"});
    define_all();
    walk(88172645463325252u, SANITIZED ? 30000 : 300000, false);
    compare(true, 0);
}

static void P3_P5_leaves_are_missing(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.filter = write_rules(rules), .buffer = "16M", .timer = "tsc"});
    define_all();
    walk(88172645463325252u, SANITIZED ? 30000 : 300000, true);
    compare(true, 0);
}

static void call(fdr_region r)
{
    fdr_enter(r);
    fdr_leave(r);
}

/* More regions than rows: rows give way, but not those of regions with rules, whose calls the table counts. */
static void P3_P5_rows_give_way(void **state)
{
    enum { MANY = 12000, RULED = 40, REPEATS = 300 };
    char name[16];
    (void)state;
    begin(&(struct fdr_config){
        .filter = write_rules("exclude name ex*\nevery 3 name ev*\n"), .buffer = "1M", .timer = "tsc"});
    static fdr_region many[MANY];
    for (uint32_t n = 0; n < MANY; n++) {
        snprintf(name, sizeof name, "%s%u", n < RULED / 2 ? "ex" : n < RULED ? "ev" : "pl", n);
        many[n] = fdr_region_define(name, NULL, 0);
    }
    static uint64_t of_each[MANY];
    memset(entered, 0, sizeof entered);
    memset(of_each, 0, sizeof of_each);
    for (int round = 0; round < 3; round++) {
        /* regions with rules get rows, these give way to regions without, and then they are called again */
        for (uint32_t i = 0; i < RULED * (round ? REPEATS : 1); i++) call(many[i % RULED]), of_each[i % RULED]++;
        for (uint32_t n = RULED; n < MANY; n++) call(many[n]), of_each[n]++;
    }
    for (uint32_t n = 0; n < MANY; n++) entered[0] += of_each[n];
    assert_true(fdri_record_self.loc->rows_folded > 0 && fdri_record_self.ruled);
    struct fdr_file *f = take();
    for (uint32_t n = 0; n < MANY; n++) {
        const struct fdr_total *w = many[n] ? total(f, FDR_IN_REGION, many[n]) : NULL; /* 0: no room to define it */
        if (w && w->calls + w->untimed > of_each[n])
            fail_msg("%u has calls of another region: %llu + %llu of %llu", n, (unsigned long long)w->calls,
                     (unsigned long long)w->untimed, (unsigned long long)of_each[n]);
    }
    fdr_file_close(f);
    compare(false, 0);
}

/* A handler enters and leaves calls of each kind, at any moment of the walk. It records beside an operation that it
 * interrupts, with counts of its own for `first` and `every`. So these regions are the handler's alone. */
static fdr_region of_handler[2];
static volatile sig_atomic_t handled;
static void on_alarm(int number)
{
    (void)number;
    uint32_t outer = (uint32_t)handled % EACH, inner = PLAIN * EACH + outer;
    enter(outer), enter(inner), enter(outer);
    leave(outer), leave(inner), leave(outer);
    for (int i = 0; i < 2; i++) {
        fdr_enter(of_handler[i]), enter(inner);
        leave(inner), fdr_leave(of_handler[i]);
    }
    handled++;
}

static void P3_P5_in_handlers(void **state)
{
    (void)state;
    begin(&(struct fdr_config){.filter = write_rules(rules), .buffer = "16M", .timer = "tsc"});
    define_all();
    of_handler[0] = fdr_region_define("fi in a handler", NULL, 0);
    of_handler[1] = fdr_region_define("ev in a handler", NULL, 0);
    handled = 0;
    timer_t timer = signals_begin(on_alarm);
    for (uint64_t i = 1; handled < 300; i++) walk(i * 7919 + 88172645463325252u, 2000, false);
    signals_end(timer);
    compare(true, 2 * (uint64_t)handled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_P5_each_region_has_its_count),
        cmocka_unit_test(P3_P5_leaves_are_missing),
        cmocka_unit_test(P3_P5_rows_give_way),
        cmocka_unit_test(P3_P5_in_handlers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
