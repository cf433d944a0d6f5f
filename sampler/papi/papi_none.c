/* SPDX-License-Identifier: MIT */
/* libfdr-papi in a build without PAPI: each counter gives that as reason. */
#include <stdio.h>
#include <string.h>

#include "sampler/papi/papi.h"

static const char reason[] = "this build of libfdr-papi was made without PAPI (Debian: libpapi-dev)";

size_t fdri_papi_choose(const char *names, struct fdr_counter_info *out, size_t most)
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

size_t fdri_papi_probe(struct fdr_counter_info *out, size_t most) { return fdri_papi_choose("PAPI", out, most); }
