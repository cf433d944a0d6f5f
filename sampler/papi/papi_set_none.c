/* SPDX-License-Identifier: MIT */
/* libfdr-papi in a build without PAPI: there are no sets. */
#include <errno.h>
#include <stddef.h>

#include "sampler/papi/papi.h"

void *fdri_papi_open(void) { return NULL; }
int fdri_papi_read(void *set, uint64_t *values)
{
    (void)set;
    (void)values;
    return -ENODEV;
}
void fdri_papi_close(void *set) { (void)set; }

void fdri_papi_overflow_choose(const char *event, uint64_t period, struct fdr_counter_info *out)
{
    if (period) fdri_papi_choose(event, out, 1);
}
void *fdri_papi_overflow_open(int *fd, char *why, size_t why_bytes)
{
    (void)fd;
    (void)why;
    (void)why_bytes;
    return NULL;
}
