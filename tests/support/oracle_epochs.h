/* SPDX-License-Identifier: MIT */
/* The oracle's checks of epochs. Their totals agree with all presented events. They leave no gap, and detail falls with
 * age. Where the table says that all is kept, nothing is missing. Included by tests/support/oracle.h. */
#ifndef FDRI_TESTS_ORACLE_EPOCHS_H
#define FDRI_TESTS_ORACLE_EPOCHS_H

#include "tests/support/oracle_match.h"
#include "tests/support/oracle_totals.h"

/* Finds the epoch that a call that ended at `time` belongs to. Calls of one tick may lie on both sides of a boundary;
 * then this is the older epoch. */
static inline size_t oracle_epoch_at(const struct fdr_epoch_info *e, size_t n, uint64_t time)
{
    size_t i = n - 1;
    while (i && e[i].from_ns >= time) i--;
    return i;
}

/* Epochs follow each other from the first event to the last. Older ones are longer, and have less detail. */
static inline const char *oracle_epoch_shape(const struct oracle *o, const struct oracle_rules *r,
                                             const struct fdr_epoch_info *e, size_t n)
{
    uint32_t same = 0;
    if (e[0].from_ns > oracle_q(r, o->event[0].time))
        return oracle_wrong("epochs begin at %llu", (unsigned long long)e[0].from_ns);
    for (size_t i = 0; i < n; i++) {
        if (e[i].current != (i + 1 == n) || e[i].index != i) return oracle_wrong("epoch %zu: index %u", i, e[i].index);
        if (i && e[i].from_ns != e[i - 1].to_ns) return oracle_wrong("a gap before epoch %zu", i);
        if (i && e[i].tier > e[i - 1].tier) return oracle_wrong("epoch %zu is of an older tier than the one before", i);
        same = i && e[i].tier == e[i - 1].tier ? same + 1 : 1;
        if (same > 4) return oracle_wrong("%u epochs of tier %u", same, e[i].tier);
        for (int b = 0; b < 4; b++)
            if (i && e[i].complete_depth[b] < e[i - 1].complete_depth[b])
                return oracle_wrong("epoch %zu, band %d: down to %u, the older one to %u", i, b, e[i].complete_depth[b],
                                    e[i - 1].complete_depth[b]);
    }
    return NULL;
}

/* Compares the region's rows of one epoch, and the rest row, with the oracle's counts. */
static inline const char *oracle_epoch_rows(const struct fdr_epoch_info *e, struct oracle_total *t,
                                            const struct fdr_epoch_total *rows, size_t count)
{
    struct oracle_total others = {0}, rest = {0};
    for (size_t i = 0; i < count; i++) {
        const struct fdr_epoch_total *w = &rows[i];
        if (w->location != e->location || w->epoch != e->index) continue;
        if (w->rest) {
            rest = (struct oracle_total){.calls = w->calls, .inclusive = w->inclusive_ns, .exclusive = w->exclusive_ns};
            continue;
        }
        struct oracle_total *mine = &t[w->region % ORACLE_IDS];
        bool good = w->at_least ? w->calls <= mine->calls && w->inclusive_ns <= mine->inclusive &&
                                      w->exclusive_ns <= mine->exclusive
                                : w->calls == mine->calls && w->inclusive_ns == mine->inclusive &&
                                      w->exclusive_ns == mine->exclusive;
        if (!good)
            return oracle_wrong("epoch %u region %u: %s%llu calls %llu ns %llu ns, presented %llu %llu %llu", e->index,
                                w->region, w->at_least ? "at least " : "", (unsigned long long)w->calls,
                                (unsigned long long)w->inclusive_ns, (unsigned long long)w->exclusive_ns,
                                (unsigned long long)mine->calls, (unsigned long long)mine->inclusive,
                                (unsigned long long)mine->exclusive);
        mine->calls -= w->calls;
        mine->inclusive -= w->inclusive_ns;
        mine->exclusive -= w->exclusive_ns;
    }
    for (size_t i = 0; i < ORACLE_IDS; i++) {
        others.calls += t[i].calls;
        others.inclusive += t[i].inclusive;
        others.exclusive += t[i].exclusive;
    }
    memset(t, 0, ORACLE_IDS * sizeof *t);
    if (others.calls != rest.calls || others.inclusive != rest.inclusive || others.exclusive != rest.exclusive)
        return oracle_wrong("epoch %u: the rest is %llu calls %llu ns, should be %llu %llu", e->index,
                            (unsigned long long)rest.calls, (unsigned long long)rest.inclusive,
                            (unsigned long long)others.calls, (unsigned long long)others.inclusive);
    return NULL;
}

/* P5 for each epoch. Calls with equal times are distinguished by the order in which they ended. */
static inline const char *oracle_epoch_totals(const struct oracle *o, const struct oracle_rules *r, struct fdr_file *f,
                                              const struct fdr_epoch_info *e, size_t n)
{
    const struct fdr_epoch_total *rows;
    size_t count = fdr_epoch_totals(f, &rows), at = 0;
    struct oracle_total *t = calloc(ORACLE_IDS, sizeof *t);
    uint64_t *children = calloc(ORACLE_DEPTHS + 1, sizeof *children), left = e[0].calls;
    const char *wrong = NULL;
    for (size_t i = 0; i < o->count && !wrong; i++) {
        const struct oracle_event *p = &o->event[i];
        if (p->refused) continue;
        if (p->kind == FDR_ENTER) children[p->depth] = 0;
        if (p->kind != FDR_LEAVE || (r->depth && p->depth > r->depth)) continue;
        while (!left && at + 1 < n && !wrong) {
            wrong = oracle_epoch_rows(&e[at], t, rows, count);
            left = e[++at].calls;
        }
        if (wrong) break;
        uint64_t duration = p->time - o->event[p->mate].time, time = oracle_q(r, p->time);
        if (!left--) wrong = oracle_wrong("more calls ended than the epochs say");
        if (time < e[at].from_ns || (time > e[at].to_ns && !e[at].current))
            wrong = oracle_wrong("epoch %zu: a call that ended at %llu", at, (unsigned long long)time);
        oracle_count(&t[p->id % ORACLE_IDS], duration, duration - children[p->depth]);
        children[p->depth - 1] += duration;
    }
    for (; !wrong && at < n; left = ++at < n ? e[at].calls : 0) {
        if (left) wrong = oracle_wrong("epoch %zu: %llu calls too many", at, (unsigned long long)left);
        if (!wrong) wrong = oracle_epoch_rows(&e[at], t, rows, count);
    }
    free(t);
    free(children);
    return wrong;
}

/* Each epoch's number of kept events equals the number shown. Where the table says that all is kept, nothing is
 * missing. */
static inline const char *oracle_epoch_kept(const struct oracle *o, const struct oracle_rules *r,
                                            const struct oracle_view *v, struct fdr_file *f,
                                            const struct fdr_epoch_info *e, size_t n)
{
    const struct fdr_ledger_row *ledger;
    size_t rows = fdr_ledger(f, &ledger), lost = 0;
    uint64_t *kept = calloc(n, sizeof *kept);
    uint8_t *is_shown = calloc(o->count + 1, 1);
    const char *wrong = NULL;
    for (size_t i = 0; i < rows; i++) lost += ledger[i].lost != 0;
    for (size_t i = 0; i < v->count; i++) {
        const struct oracle_shown *y = &v->shown[i];
        if (y->is != ORACLE_NONE) is_shown[y->is] = 1;
        if (y->kind == FDR_ENTER || y->repaired || y->reduced) continue;
        kept[oracle_epoch_at(e, n, y->time)] += y->kind == FDR_LEAVE ? 2 : 1;
    }
    for (size_t i = 0; i < n && !wrong; i++)
        if (kept[i] != e[i].kept_events)
            wrong = oracle_wrong("epoch %zu: %llu events kept, shown are %llu", i, (unsigned long long)e[i].kept_events,
                                 (unsigned long long)kept[i]);
    const uint64_t *edge = fdr_file_info(f)->band_edge_ns;
    for (size_t i = 0; i < o->count && !wrong && !lost; i++) {
        const struct oracle_event *p = &o->event[i];
        if (p->kind != FDR_ENTER || p->mate == ORACLE_NONE || (r->depth && p->depth > r->depth)) continue;
        uint64_t leave = o->event[p->mate].time, d = oracle_q(r, leave) - oracle_q(r, p->time);
        int band = (d >= edge[0]) + (d >= edge[1]) + (d >= edge[2]);
        size_t at = oracle_epoch_at(e, n, oracle_q(r, leave));
        if (leave - p->time < r->min_duration || p->depth > e[at].complete_depth[band] || is_shown[i]) continue;
        wrong = oracle_wrong(
            "epoch %zu: all of band %d is said to be there down to depth %u; call %zu of depth %u is not", at, band,
            e[at].complete_depth[band], i, p->depth);
    }
    free(kept);
    free(is_shown);
    return wrong;
}

static inline const char *oracle_check_epochs(const struct oracle *o, const struct oracle_rules *r,
                                              const struct oracle_view *v, struct fdr_file *f, uint32_t location)
{
    const struct fdr_epoch_info *e;
    size_t all = fdr_epochs(f, &e), n = 0;
    while (all && e->location != location) e++, all--;
    while (n < all && e[n].location == location) n++;
    if (!n) return NULL;
    const char *wrong = oracle_epoch_shape(o, r, e, n);
    /* the reader says that some are missing */
    for (size_t i = 0; i < n; i++)
        if (!e[i].exact) return wrong;
    if (!wrong) wrong = oracle_epoch_totals(o, r, f, e, n);
    if (!wrong) wrong = oracle_epoch_kept(o, r, v, f, e, n);
    return wrong;
}
#endif
