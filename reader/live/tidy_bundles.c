/* SPDX-License-Identifier: MIT */
/* The rule about crash bundles for `fdr gc`; running processes go by the same one. */
#include <errno.h>
#include <fcntl.h>
#include <fdr/reader.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "retention/retention.h"

struct listener {
    void (*gone)(void *argument, const char *name, uint64_t bytes, enum fdr_bundle_end why);
    void *argument;
};

static void pass_on(void *to, const char *name, const struct fdri_policies_bundle *b)
{
    static const enum fdr_bundle_end end[] = {[FDRI_POLICIES_ALIKE] = FDR_BUNDLE_ALIKE,
                                              [FDRI_POLICIES_OLD] = FDR_BUNDLE_OLD,
                                              [FDRI_POLICIES_TOO_MUCH] = FDR_BUNDLE_TOO_MUCH};
    const struct listener *l = to;
    if (l->gone) l->gone(l->argument, name, b->bytes, end[b->fate]);
}

int fdr_bundles_tidy(const char *directory, const struct fdr_bundle_rule *rule, int dry_run,
                     void (*gone)(void *argument, const char *name, uint64_t bytes, enum fdr_bundle_end why),
                     void *argument)
{
    struct fdri_policies_retention r = {.most = {rule->most.share, rule->most.bytes},
                                        .unused = {rule->unused.share, rule->unused.bytes},
                                        .age_ns = rule->age_ns};
    struct listener listener = {gone, argument};
    struct fdri_retention_order order = {.rule = &r,
                                         .now_ns = rule->now_ns ? rule->now_ns : fdri_clock_ns(CLOCK_REALTIME),
                                         .looks = UINT32_MAX,
                                         .removes = UINT32_MAX,
                                         .dry_run = dry_run != 0,
                                         .gone = pass_on,
                                         .argument = &listener};
    struct fdri_retention_result result;
    int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return -errno;
    fdri_retention_tidy(dir, &order, &result);
    close(dir);
    return (int)result.refused;
}
