/* SPDX-License-Identifier: MIT */
/* Decides which regions to mute. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/overhead.h"

static const double low_mark = 0.6, high_mark = 0.75, least_part = 1e-3;
enum { HOLD_GROWS = 4 };
static const uint64_t again_ns = 60000000000u;

static double most(double a, double b) { return a > b ? a : b; }

/* 2^-halves: exact at whole numbers, and nearly so in between. */
static double faded(double halves)
{
    double left = 1;
    for (; halves >= 1 && left > 0; halves--) left /= 2;
    return left / (1 + halves * (0.6565 + halves * 0.3435));
}

static double worth_muting(const struct fdri_policies_load *l) { return l->peak / l->tells; }

/* Sorts `order` by worth, the least first; heap sort, as the order may be long and the stack is short. */
static void sink(const struct fdri_policies_load *load, uint32_t *order, uint32_t at, uint32_t count)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && worth_muting(&load[order[child + 1]]) > worth_muting(&load[order[child]])) child++;
        if (worth_muting(&load[order[child]]) <= worth_muting(&load[order[at]])) return;
        uint32_t other = order[at];
        order[at] = order[child];
        order[child] = other;
    }
}

static void sort(const struct fdri_policies_load *load, uint32_t *order, uint32_t count)
{
    for (uint32_t i = count / 2; i--;) sink(load, order, i, count);
    for (uint32_t i = count; i-- > 1;) {
        uint32_t other = order[0];
        order[0] = order[i];
        order[i] = other;
        sink(load, order, 0, i);
    }
}

static void mute(struct fdri_policies_load *l, uint64_t now_ns)
{
    bool again = l->hold_ns && now_ns - l->since_ns < again_ns;
    l->hold_ns = again ? l->hold_ns * HOLD_GROWS : FDRI_POLICIES_HOLD_LEAST_NS;
    if (l->hold_ns > FDRI_POLICIES_HOLD_MOST_NS) l->hold_ns = FDRI_POLICIES_HOLD_MOST_NS;
    l->muted = true;
    l->since_ns = now_ns;
}

/* Chooses in order[] the regions to mute, best first, so that the rest stays below the high mark. Returns how many. */
static uint32_t choose(const struct fdri_policies_overhead *o, const struct fdri_policies_load *load, uint32_t count,
                       uint32_t *order, double share_of_call)
{
    uint32_t n = 0, chosen = 0;
    double share = o->share;
    for (uint32_t i = 0; i < count; i++)
        if (!load[i].muted && !load[i].fixed && load[i].calls &&
            (double)load[i].calls * share_of_call >= least_part * o->target)
            order[n++] = i;
    sort(load, order, n);
    for (uint32_t i = 0; i < n / 2; i++) { /* the most worth first */
        uint32_t other = order[i];
        order[i] = order[n - 1 - i];
        order[n - 1 - i] = other;
    }
    while (chosen < n && share > high_mark * o->target) share -= (double)load[order[chosen++]].calls * share_of_call;
    /* The last one was large: some of those before it may stay. */
    for (uint32_t i = chosen; i-- > 0;) {
        double with = share + (double)load[order[i]].calls * share_of_call;
        if (with > high_mark * o->target) continue;
        share = with;
        order[i] = order[--chosen];
    }
    return chosen;
}

static uint32_t let_back(const struct fdri_policies_overhead *o, struct fdri_policies_load *load, uint32_t count,
                         uint32_t *order, uint64_t now_ns)
{
    uint32_t n = 0, changed = 0;
    double share = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!load[i].muted) share += load[i].peak;
        else if (load[i].fixed || now_ns - load[i].since_ns >= load[i].hold_ns) order[n++] = i;
    }
    sort(load, order, n);
    for (uint32_t i = 0; i < n; i++) {
        struct fdri_policies_load *l = &load[order[i]];
        if (share + l->peak > low_mark * o->target) continue;
        share += l->peak;
        l->muted = false;
        l->since_ns = now_ns;
        changed++;
    }
    return changed;
}

/* Shares are of the time that the program would use without recording. */
static double program_ns(const struct fdri_policies_overhead *o, const struct fdri_policies_load *load, uint32_t count,
                         uint64_t cpu_ns, double *cost_ns)
{
    *cost_ns = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!load[i].muted) *cost_ns += (double)load[i].calls * o->call_ns;
    return most((double)cpu_ns - *cost_ns, (double)cpu_ns / 2); /* the calibrated cost may be too high */
}

uint32_t fdri_policies_overhead_step(struct fdri_policies_overhead *o, struct fdri_policies_load *load, uint32_t count,
                                     uint32_t *order, uint64_t now_ns, uint64_t cpu_ns)
{
    double cost_ns, own_ns = program_ns(o, load, count, cpu_ns, &cost_ns), share_of_call = o->call_ns / own_ns;
    double fades = o->last_ns ? faded((double)(now_ns - o->last_ns) / FDRI_POLICIES_PEAK_NS) : 0;
    o->last_ns = now_ns;
    o->share = cost_ns / own_ns;
    for (uint32_t i = 0; i < count; i++)
        load[i].peak = most(load[i].peak * fades, (double)load[i].calls * share_of_call);
    o->credit_ns += o->target * own_ns - cost_ns;
    if (o->credit_ns > o->target * FDRI_POLICIES_CREDIT_NS) o->credit_ns = o->target * FDRI_POLICIES_CREDIT_NS;
    if (o->share <= o->target || o->credit_ns >= 0) {
        o->credit_ns = most(o->credit_ns, 0);
        return o->share > o->target ? 0 : let_back(o, load, count, order, now_ns);
    }
    o->credit_ns = 0;
    uint32_t chosen = choose(o, load, count, order, share_of_call);
    for (uint32_t i = 0; i < chosen; i++) mute(&load[order[i]], now_ns);
    return chosen;
}
