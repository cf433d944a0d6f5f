/* SPDX-License-Identifier: MIT */
/* libfdr-papi of a build that had no PAPI: every counter says so. */
#include <stdio.h>
#include <string.h>

#include <fdr/papi.h>

#include "sampler/papi.h"

static const char reason[] = "this build of libfdr-papi was made without PAPI (Debian: libpapi-dev)";

static size_t choose(const char *names, struct fdr_counter_info *out, size_t most)
{
    size_t n = 0;
    for (const char *p = names; *p; n++) {
        size_t length = strcspn(p, ",");
        if (n < most) {
            out[n] = (struct fdr_counter_info){.kind = FDR_METRIC_COUNTER, .per_thread = 1};
            snprintf(out[n].name, sizeof out[n].name, "%.*s", (int)length, p);
            snprintf(out[n].why, sizeof out[n].why, "%s", reason);
        }
        p += length + (p[length] == ',');
    }
    return n;
}

static size_t probe(struct fdr_counter_info *out, size_t most) { return choose("PAPI", out, most); }
static void *open_set(void) { return NULL; }
static int read_set(void *set, uint64_t *values)
{
    (void)set;
    (void)values;
    return -1;
}
static void close_set(void *set) { (void)set; }

const struct fdr_counter_provider *fdr_papi_provider(void)
{
    static const struct fdr_counter_provider provider = {sizeof provider,
                                                         "PAPI",
                                                         probe,
                                                         choose,
                                                         open_set,
                                                         read_set,
                                                         close_set,
                                                         fdri_papi_overflow_choose,
                                                         fdri_papi_overflow_open,
                                                         fdri_papi_overflow_close};
    return &provider;
}
