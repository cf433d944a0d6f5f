/* SPDX-License-Identifier: MIT */
/* Decides when the next round of looks comes, and how many looks it has. */
#include "policies/looks.h"

enum {
    ROUND_LEAST = 16, /* looks of a round that is worth waking up for */
    SMOOTH = 8,       /* a measured cost counts for an eighth */
    FIRST_NS = 20000  /* assumed cost of a look until one was measured */
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Credit grows with time and falls with use. A quiet time saves up little, or a long burst would follow. */
static void settle(struct fdri_policies_looks *l, uint64_t now_ns, uint64_t cpu_ns, uint64_t period_ns)
{
    int64_t cap = (int64_t)(most(FDRI_POLICIES_LOOKS_AHEAD_NS, period_ns) / FDRI_POLICIES_LOOKS_SHARE);
    if (l->now_ns) {
        l->credit_ns += (int64_t)((now_ns - l->now_ns) / FDRI_POLICIES_LOOKS_SHARE);
        l->credit_ns -= (int64_t)(cpu_ns - l->cpu_ns);
    }
    if (l->credit_ns > cap) l->credit_ns = cap;
}

static void learn(struct fdri_policies_looks *l, uint64_t used_ns, uint32_t done)
{
    if (!done) return;
    uint64_t each = most(used_ns / done, 1);
    l->each_ns = l->each_ns ? most((l->each_ns * (SMOOTH - 1) + each) / SMOOTH, 1) : each;
}

/* The credit after `ns` more; 0: it is still used up. */
static uint64_t credit_after(const struct fdri_policies_looks *l, uint64_t ns)
{
    int64_t credit = l->credit_ns + (int64_t)(ns / FDRI_POLICIES_LOOKS_SHARE);
    return credit > 0 ? (uint64_t)credit : 0;
}

struct fdri_policies_looks_round fdri_policies_looks_step(struct fdri_policies_looks *l, uint64_t now_ns,
                                                          uint64_t cpu_ns, uint64_t looks_ns, uint32_t done,
                                                          uint64_t period_ns, uint32_t threads)
{
    learn(l, looks_ns, done);
    settle(l, now_ns, cpu_ns, period_ns);
    l->now_ns = now_ns;
    l->cpu_ns = cpu_ns;
    uint64_t each = l->each_ns ? l->each_ns : FIRST_NS, wanted = most(least(threads, ROUND_LEAST), 1) * each,
             has = credit_after(l, period_ns), periods = 1;
    if (has < wanted) {
        uint64_t wait = (uint64_t)((int64_t)wanted - l->credit_ns) * FDRI_POLICIES_LOOKS_SHARE;
        periods = (wait + period_ns - 1) / period_ns;
        has = credit_after(l, periods * period_ns);
    }
    uint64_t fit = l->each_ns ? has / each : least(has / each, ROUND_LEAST); /* a look may cost far more than assumed */
    return (struct fdri_policies_looks_round){(uint32_t)least(threads, fit), periods};
}
