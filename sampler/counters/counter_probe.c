/* SPDX-License-Identifier: MIT */
/* fdr_counters_probe: tries each counter. */
#include <stdio.h>
#include <string.h>

#include "sampler/counters/counter.h"

static void describe(struct fdr_counter_info *info, struct fdri_counters_choice c)
{
    const struct fdr_counter *counter = &c.source->counter[c.index];
    *info = (struct fdr_counter_info){.kind = counter->kind, .per_thread = c.source->scope != FDR_COUNTER_PROCESS};
    fdri_counters_text(info->name, sizeof info->name, c);
    snprintf(info->unit, sizeof info->unit, "%s", counter->unit);
    info->works = fdri_counters_try(c, info->why, sizeof info->why) == 0;
}

static size_t provided(struct fdr_counter_info *out, size_t most)
{
    char why[FDRI_COUNTERS_WHY_BYTES] = "";
    const struct fdr_counter_provider *p = fdri_counters_provider(why, sizeof why);
    if (p) return p->probe(out, most);
    if (!most) return 1;
    *out = (struct fdr_counter_info){.name = "PAPI", .per_thread = 1, .kind = FDR_METRIC_COUNTER};
    memcpy(out->why, why, sizeof out->why);
    return 1;
}

size_t fdr_counters_probe(struct fdr_counter_info *out, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < fdri_counters_source_count(); i++) {
        const struct fdr_counter_source *s = fdri_counters_source_at(i);
        for (uint32_t k = 0; k < s->count; k++, n++)
            if (n < most) describe(&out[n], (struct fdri_counters_choice){s, k});
    }
    return n + provided(n < most ? out + n : NULL, n < most ? most - n : 0);
}
