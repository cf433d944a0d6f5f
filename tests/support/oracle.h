/* SPDX-License-Identifier: MIT */
/* The oracle stores every event that the test presented to the recorder and compares it with the reader's output. It is
 * plain and slow, and knows nothing of bins, bands or policies. It does not predict which events survive; it checks
 * that every shown event is true. Its functions return NULL or a line that describes the fault. Tests include this
 * file. */
#ifndef FDRI_TESTS_ORACLE_H
#define FDRI_TESTS_ORACLE_H

#include "tests/support/oracle_ledger.h"
#include "tests/support/oracle_match.h"
#include "tests/support/oracle_presented.h"
#include "tests/support/oracle_recording.h"
#include "tests/support/oracle_shown.h"
#include "tests/support/oracle_totals.h"

#include "tests/support/oracle_epochs.h"

static inline const char *oracle_check(struct oracle *o, struct oracle_rules *r, struct fdr_file *f, uint32_t location)
{
    struct oracle_view v = {0};
    const char *wrong = oracle_load(f, location, &v);
    if (!wrong && r->complete && (v.strays || oracle_refused(o)))
        wrong = oracle_wrong("complete: %zu points without their calls, %llu calls without a level", v.strays,
                             (unsigned long long)oracle_refused(o));
    if (!wrong) wrong = oracle_match(o, r, &v);
    if (!wrong) wrong = oracle_order(o, &v);
    if (!wrong) wrong = oracle_ledger(o, r, &v, f, location);
    if (!wrong) wrong = oracle_check_totals(o, r, f, location, r->complete);
    if (!wrong) wrong = oracle_check_epochs(o, r, &v, f, location);
    oracle_view_free(&v);
    return wrong;
}

/* For live snapshots: every location of the file nests properly, and its accounts lie within their bounds. */
static inline const char *oracle_check_within(struct fdr_file *f, uint64_t *events, uint64_t slack)
{
    for (size_t i = 0; i < fdr_location_count(f); i++) {
        uint32_t id = fdr_location_info(f, i)->id;
        struct oracle_view v = {0};
        const char *wrong = oracle_load(f, id, &v);
        *events += v.count;
        oracle_view_free(&v);
        if (wrong) return wrong;
        uint64_t before, after, sum = 0;
        const struct fdr_ledger_row *rows;
        size_t n = fdr_ledger(f, &rows);
        for (size_t k = 0; k < n; k++)
            if (rows[k].location == id) sum += rows[k].kept + rows[k].filtered + rows[k].reduced + rows[k].lost;
        fdr_ledger_bounds(f, id, &before, &after);
        if (sum + slack < before || sum > after + slack)
            return oracle_wrong("P3: location %u: before %llu <= sum %llu <= after %llu does not hold", id,
                                (unsigned long long)before, (unsigned long long)sum, (unsigned long long)after);
    }
    return NULL;
}

static inline const char *oracle_check_any(struct fdr_file *f, uint64_t *events)
{
    return oracle_check_within(f, events, 0);
}

#endif
