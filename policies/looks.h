/* SPDX-License-Identifier: MIT */
/* looks.c: how often fdr's thread looks at the program's threads. It uses at most a share of one processor, however
 * many threads there are. Door of the room: policies.h. */
#ifndef FDRI_POLICIES_LOOKS_H
#define FDRI_POLICIES_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

enum { FDRI_POLICIES_LOOKS_SHARE = 100 };         /* a hundredth of a processor */
#define FDRI_POLICIES_LOOKS_AHEAD_NS 100000000ull /* the share of this time may be used at once, or of a period */

/* The account of fdr's thread; all zero at first. credit_ns: processor time that it may use at once; below 0 it has
 * used more than its share, and must wait. */
struct fdri_policies_looks {
    uint64_t now_ns, cpu_ns; /* the clocks at the step before */
    int64_t credit_ns;
    uint64_t each_ns; /* cost of one look; 0: not known yet */
};
/* The next round: the number of looks in it, and the length in periods of the stretch that it stands for. */
struct fdri_policies_looks_round {
    uint32_t looks;
    uint64_t periods;
};

/* One step, after a round of `done` looks, which took looks_ns of processor time. now_ns: a monotonic clock. cpu_ns:
 * the processor time of fdr's thread for all its work. period_ns: the interval at which each of `threads` threads is to
 * be looked at. If that costs too much, a round has fewer looks, and if these would be too few, it comes later. */
struct fdri_policies_looks_round fdri_policies_looks_step(struct fdri_policies_looks *l, uint64_t now_ns,
                                                          uint64_t cpu_ns, uint64_t looks_ns, uint32_t done,
                                                          uint64_t period_ns, uint32_t threads);
/* May fdr's thread do other work now, such as listing threads? */
static inline bool fdri_policies_looks_may_work(const struct fdri_policies_looks *l) { return l->credit_ns >= 0; }

#endif
