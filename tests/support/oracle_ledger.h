/* SPDX-License-Identifier: MIT */
/* The oracle's check of P3: presented = kept + filtered + reduced + lost, in every row. */
#ifndef FDRI_TESTS_ORACLE_LEDGER_H
#define FDRI_TESTS_ORACLE_LEDGER_H

#include "tests/support/oracle_match.h"

struct oracle_cell {
    uint64_t presented, filtered, shown;
};

static inline const struct fdr_location_info *oracle_location(struct fdr_file *f, uint32_t location)
{
    const struct fdr_location_info *l;
    for (size_t i = 0; (l = fdr_location_info(f, i)) && l->id != location;) i++;
    return l;
}

static inline uint64_t oracle_refused(const struct oracle *o)
{
    uint64_t n = 0;
    for (size_t i = 0; i < o->count; i++) n += o->event[i].refused && o->event[i].kind == FDR_ENTER;
    return n;
}

static inline const char *oracle_ledger(const struct oracle *o, const struct oracle_rules *r,
                                        const struct oracle_view *v, struct fdr_file *f, uint32_t location)
{
    struct oracle_cell(*cell)[ORACLE_DEPTHS] = calloc(9, sizeof *cell);
    const struct fdr_ledger_row *rows;
    const struct fdr_location_info *l = oracle_location(f, location);
    const char *wrong = NULL;
    uint64_t checked = 0, all = 0, refused = oracle_refused(o);
    if (!l || l->levels_refused != refused)
        wrong = oracle_wrong("P3: %llu calls found no level, %llu are said to", (unsigned long long)refused,
                             (unsigned long long)(l ? l->levels_refused : 0));
    for (size_t i = 0; i < o->count; i++) {
        const struct oracle_event *p = &o->event[i];
        if (p->kind == FDR_LEAVE) continue;
        if (!wrong && p->refused && p->depth < l->levels_refused_from)
            wrong = oracle_wrong("P3: a call of depth %u found no level, none from %u on", p->depth,
                                 l->levels_refused_from);
        struct oracle_cell *c = &cell[oracle_class(p->kind)][p->refused && l ? l->levels_refused_from : p->depth];
        c->presented++;
        all++;
        bool deep = r->depth && p->depth > r->depth && p->kind == FDR_ENTER;
        bool brief = p->kind == FDR_ENTER && !deep && p->mate != ORACLE_NONE &&
                     o->event[p->mate].time - p->time < r->min_duration;
        c->filtered += !p->refused && (deep || brief);
    }
    for (size_t i = 0; i < v->count; i++)
        if (v->shown[i].kind != FDR_LEAVE && !v->shown[i].reduced)
            cell[oracle_class(v->shown[i].kind)][v->shown[i].depth].shown++;
    size_t n = fdr_ledger(f, &rows);
    for (size_t i = 0; i < n && !wrong; i++) {
        const struct fdr_ledger_row *w = &rows[i];
        if (w->location != location) continue;
        const struct oracle_cell *c = &cell[w->class_][w->depth];
        char what[200];
        snprintf(
            what, sizeof what,
            "%s depth %u: presented %llu kept %llu filtered %llu reduced %llu lost %llu; the oracle: %llu %llu %llu",
            fdr_class_name(w->class_), w->depth, (unsigned long long)w->presented, (unsigned long long)w->kept,
            (unsigned long long)w->filtered, (unsigned long long)w->reduced, (unsigned long long)w->lost,
            (unsigned long long)c->presented, (unsigned long long)c->shown, (unsigned long long)c->filtered);
        if (w->presented != c->presented) wrong = oracle_wrong("P3 presented: %s", what);
        else if (w->presented != w->kept + w->filtered + w->reduced + w->lost)
            wrong = oracle_wrong("P3 balance: %s", what);
        else if (w->kept != c->shown) wrong = oracle_wrong("P3 kept is not what is shown: %s", what);
        else if (w->filtered != c->filtered && !r->prefix) wrong = oracle_wrong("P3 filtered: %s", what);
        else if (r->complete && (w->reduced || w->lost)) wrong = oracle_wrong("complete: %s", what);
        checked += w->presented;
    }
    uint64_t elsewhere = fdr_file_info(f)->lost_unattached; /* points whose accounts found no room */
    if (!wrong && checked + elsewhere != all)
        wrong = oracle_wrong("P3: the ledger knows of %llu, %llu have no account, %llu were presented",
                             (unsigned long long)checked, (unsigned long long)elsewhere, (unsigned long long)all);
    free(cell);
    return wrong;
}

#endif
