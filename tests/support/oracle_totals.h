/* SPDX-License-Identifier: MIT */
/* The oracle's check of P5: totals are exact. */
#ifndef FDRI_TESTS_ORACLE_TOTALS_H
#define FDRI_TESTS_ORACLE_TOTALS_H

#include "tests/support/oracle_presented.h"

struct oracle_total {
    uint64_t calls, untimed, inclusive, exclusive, min, max, histogram[64];
};

static inline void oracle_count(struct oracle_total *t, uint64_t inclusive, uint64_t exclusive)
{
    if (!t->calls || inclusive < t->min) t->min = inclusive;
    if (inclusive > t->max) t->max = inclusive;
    t->calls++;
    t->inclusive += inclusive;
    t->exclusive += exclusive;
    int bit = 0;
    for (uint64_t d = inclusive; d > 1; d >>= 1) bit++;
    t->histogram[bit]++;
}

enum { ORACLE_IDS = 4096 };
/* Adds up all presented events: rows[class][id]. */
static inline struct oracle_total *oracle_totals(const struct oracle *o, const struct oracle_rules *r)
{
    struct oracle_total *rows = calloc((size_t)9 * ORACLE_IDS, sizeof *rows);
    uint64_t *children = calloc(ORACLE_DEPTHS + 1, sizeof *children);
    for (size_t i = 0; i < o->count; i++) {
        const struct oracle_event *p = &o->event[i];
        struct oracle_total *t = &rows[(size_t)oracle_class(p->kind) * ORACLE_IDS + p->id % ORACLE_IDS];
        if (p->refused) { /* no level: only counted */
            t->untimed += p->kind == FDR_ENTER;
            continue;
        }
        if (p->kind == FDR_ENTER) {
            children[p->depth] = 0;
            t->untimed += r->depth && p->depth > r->depth;
        } else if (p->kind == FDR_LEAVE) {
            if (r->depth && p->depth > r->depth) continue;
            uint64_t duration = p->time - o->event[p->mate].time;
            oracle_count(t, duration, duration - children[p->depth]);
            children[p->depth - 1] += duration;
        } else if (p->kind == FDR_SEND || p->kind == FDR_RECV) {
            oracle_count(t, o->field[p->field + 3], 0);
        } else if (p->kind == FDR_COLL_END) {
            oracle_count(t, o->field[p->field + 2] + o->field[p->field + 3], 0);
        } else if (p->kind != FDR_COLL_BEGIN) {
            oracle_count(t, p->fields && p->kind != FDR_EVENT ? o->field[p->field] : 0, 0);
        }
    }
    free(children);
    return rows;
}

static inline const char *oracle_compare_total(const struct fdr_total *w, const struct oracle_total *t)
{
    bool region = w->class_ == FDR_IN_REGION;
    uint64_t sum = region ? w->inclusive_ns : w->sum_u, min = region ? w->min_ns : w->min_u,
             max = region ? w->max_ns : w->max_u;
    bool good = w->calls == t->calls && w->untimed == t->untimed && sum == t->inclusive && min == t->min &&
                max == t->max;
    if (region && w->exclusive_ns != t->exclusive) good = false;
    if (good && w->has_histogram && memcmp(w->histogram, t->histogram, sizeof t->histogram)) good = false;
    if (good) return NULL;
    return oracle_wrong("P5: %s %u: calls %llu untimed %llu sum %llu exclusive %llu min %llu max %llu; presented %llu "
                        "%llu %llu %llu %llu %llu",
                        fdr_class_name(w->class_), w->id, (unsigned long long)w->calls, (unsigned long long)w->untimed,
                        (unsigned long long)sum, (unsigned long long)w->exclusive_ns, (unsigned long long)min,
                        (unsigned long long)max, (unsigned long long)t->calls, (unsigned long long)t->untimed,
                        (unsigned long long)t->inclusive, (unsigned long long)t->exclusive, (unsigned long long)t->min,
                        (unsigned long long)t->max);
}

/* Each shown row is exact. The rest row is the sum of the rows that are not shown. */
static inline const char *oracle_check_totals(const struct oracle *o, const struct oracle_rules *r, struct fdr_file *f,
                                              uint32_t location, bool whole)
{
    struct oracle_total *t = oracle_totals(o, r), missing = {0};
    const struct fdr_total *rows, *rest = NULL;
    const char *wrong = NULL;
    size_t n = fdr_totals(f, &rows);
    uint64_t folded = 0, without = 0;
    for (size_t i = 0; i < n && !wrong; i++) {
        if (rows[i].location != location) continue;
        if (rows[i].rest) {
            rest = &rows[i];
            continue;
        }
        if (rows[i].class_ >= 9 || rows[i].id >= ORACLE_IDS) {
            wrong = oracle_wrong("P5: class %u id %u", rows[i].class_, rows[i].id);
            break;
        }
        struct oracle_total *mine = &t[(size_t)rows[i].class_ * ORACLE_IDS + rows[i].id];
        wrong = oracle_compare_total(&rows[i], mine);
        without += !rows[i].has_histogram && rows[i].calls;
        memset(mine, 0, sizeof *mine);
    }
    for (size_t i = 0; i < (size_t)9 * ORACLE_IDS; i++) {
        folded += t[i].calls + t[i].untimed;
        missing.calls += t[i].calls;
        missing.untimed += t[i].untimed;
        missing.inclusive += t[i].inclusive;
        missing.exclusive += t[i].exclusive;
    }
    if (!wrong && whole && folded) wrong = oracle_wrong("P5: %llu calls have no row", (unsigned long long)folded);
    if (!wrong && whole && without)
        wrong = oracle_wrong("P5: %llu rows have no histogram", (unsigned long long)without);
    if (!wrong && folded && !rest)
        wrong = oracle_wrong("P5: %llu calls have no row and there is no rest", (unsigned long long)folded);
    if (!wrong && rest &&
        (rest->calls != missing.calls || rest->untimed != missing.untimed ||
         (rest->inclusive_ns != missing.inclusive && !missing.min)))
        wrong = oracle_wrong("P5: rest has %llu calls %llu untimed %llu ns, missing are %llu %llu %llu",
                             (unsigned long long)rest->calls, (unsigned long long)rest->untimed,
                             (unsigned long long)rest->inclusive_ns, (unsigned long long)missing.calls,
                             (unsigned long long)missing.untimed, (unsigned long long)missing.inclusive);
    free(t);
    return wrong;
}

#include "tests/support/oracle_epochs.h"

#endif
