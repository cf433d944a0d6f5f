/* SPDX-License-Identifier: MIT */
/* Which regions to mute (FDR_OVERHEAD).
 *
 * Recording shall take at most a share of the program's processor time. A step looks at the calls of one interval. If
 * their cost is above the target, it mutes regions, no more than needed. It begins with those that cost most for the
 * worth of a call. If there is room, it lets regions back, those that tell most first. Three things prevent
 * oscillation. Regions come back only below a lower mark, by the most that they cost lately. A region that must be
 * muted again within a minute stays muted four times as long. */
#ifndef FDRI_POLICIES_OVERHEAD_H
#define FDRI_POLICIES_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct fdri_policies_load {
    uint64_t calls; /* of the interval; muted calls count, too */
    double tells; /* what one call tells, above 0: a call of twice the length, or half as common, tells twice as much */
    bool fixed;   /* is never muted */
    /* the state, kept by the caller; all zero at first */
    bool muted;
    uint64_t since_ns; /* when it was muted or let back; 0: never */
    uint64_t hold_ns;  /* it stays muted at least so long */
    double peak;       /* the highest share of late, which halves in FDRI_POLICIES_PEAK_NS */
};
struct fdri_policies_overhead {
    double target;  /* 0.02: two per cent */
    double call_ns; /* cost of a recorded call, less that of a muted one */
    /* the state; all zero at first */
    uint64_t last_ns;
    double credit_ns; /* cost that the program may still have before regions are muted */
    /* results of the newest step */
    double share; /* of recording what is not muted */
};
#define FDRI_POLICIES_PEAK_NS       60000000.0 /* half-life of a peak */
#define FDRI_POLICIES_CREDIT_NS     80000000.0 /* the credit is at most what this time of the program may cost */
#define FDRI_POLICIES_HOLD_LEAST_NS 250000000u
#define FDRI_POLICIES_HOLD_MOST_NS  64000000000u

/* One step at now_ns (a monotonic clock) for an interval in which the program used cpu_ns of processor time, more than
 * 0. `order` has room for `count` numbers. Changes `muted` of the loads, and returns how many it changed. */
uint32_t fdri_policies_overhead_step(struct fdri_policies_overhead *o, struct fdri_policies_load *load, uint32_t count,
                                     uint32_t *order, uint64_t now_ns, uint64_t cpu_ns);

#endif
