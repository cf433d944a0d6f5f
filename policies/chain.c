/* SPDX-License-Identifier: MIT */
#include "policies/policies.h"

static bool applies(const struct fdri_policies_chain *chain, const struct fdri_policies_part_view *p, uint8_t step)
{
    switch (step) {
    case FDRI_POLICIES_BY_DURATION: return p->class_ == 0 && p->band < FDRI_POLICIES_LONGEST_BAND;
    case FDRI_POLICIES_BY_DEPTH: return p->class_ == 0 && p->depth > 1;
    /* calls count as a class only if the user ranked them */
    case FDRI_POLICIES_BY_CLASS: return p->class_ != 0 || chain->class_rank[0] != 0;
    default: return true;
    }
}

struct fdri_policies_verdict fdri_policies_step(const struct fdri_policies_chain *chain,
                                                const struct fdri_policies_part_view *part, uint32_t *index)
{
    struct fdri_policies_verdict v = {FDRI_POLICIES_BY_EPOCH, FDRI_POLICIES_REASON_OLDEST};
    uint32_t i = 0;
    while (i < FDRI_POLICIES_STEPS && chain->step[i] && !applies(chain, part, chain->step[i])) i++;
    *index = i;
    if (i == FDRI_POLICIES_STEPS || !chain->step[i]) return v;
    v.step = (enum fdri_policies_step)chain->step[i];
    switch (v.step) {
    case FDRI_POLICIES_BY_DURATION: v.reason = FDRI_POLICIES_REASON_SHORTEST; break;
    case FDRI_POLICIES_BY_DEPTH: v.reason = FDRI_POLICIES_REASON_DEEPEST; break;
    case FDRI_POLICIES_BY_CLASS:
        v.reason = chain->class_rank[part->class_] ? FDRI_POLICIES_REASON_LEAST_IMPORTANT
                                                   : FDRI_POLICIES_REASON_LARGEST_CLASS;
        break;
    case FDRI_POLICIES_BY_EPOCH: break;
    }
    return v;
}

static bool class_before(const struct fdri_policies_chain *chain, const struct fdri_policies_part_view *a,
                         const struct fdri_policies_part_view *b, enum fdri_policies_reason *why)
{
    uint8_t ra = chain->class_rank[a->class_], rb = chain->class_rank[b->class_];
    *why = ra ? FDRI_POLICIES_REASON_LEAST_IMPORTANT : FDRI_POLICIES_REASON_LARGEST_CLASS;
    if (a->class_ != b->class_) {
        if (ra && rb) return ra < rb;
        if (ra || rb) return ra != 0; /* ranked classes go before the others */
        if (a->class_bytes != b->class_bytes) return a->class_bytes > b->class_bytes;
        return a->class_ > b->class_;
    }
    if (a->class_ == 0 && a->band != b->band) return a->band < b->band; /* calls: the kept calls stay closed upward */
    return a->depth > b->depth;
}

bool fdri_policies_precedes(const struct fdri_policies_chain *chain, const struct fdri_policies_part_view *a,
                            const struct fdri_policies_part_view *b, enum fdri_policies_reason *why)
{
    uint32_t ia, ib;
    struct fdri_policies_verdict va = fdri_policies_step(chain, a, &ia);
    (void)fdri_policies_step(chain, b, &ib);
    *why = va.reason;
    if (ia != ib) return ia < ib;
    switch (va.step) {
    case FDRI_POLICIES_BY_DURATION:
        if (a->band != b->band) return a->band < b->band;
        *why = FDRI_POLICIES_REASON_DEEPEST;
        return a->depth > b->depth;
    case FDRI_POLICIES_BY_DEPTH:
        if (a->depth != b->depth) return a->depth > b->depth;
        *why = FDRI_POLICIES_REASON_SHORTEST;
        return a->band < b->band;
    case FDRI_POLICIES_BY_CLASS: return class_before(chain, a, b, why);
    case FDRI_POLICIES_BY_EPOCH: break;
    }
    return a->oldest < b->oldest;
}

bool fdri_policies_closes_gate(enum fdri_policies_step step) { return step != FDRI_POLICIES_BY_EPOCH; }

bool fdri_policies_begins_epoch(uint32_t bins_in_epoch, uint32_t bins_held, uint32_t epochs_wanted)
{
    return bins_in_epoch >= 2 && bins_in_epoch >= bins_held / epochs_wanted;
}
