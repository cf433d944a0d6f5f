/* SPDX-License-Identifier: MIT */
/* One time line for recordings of several hosts. */
#include "convert/time_line.h"

#include <string.h>

/* By the wall clock, did the host of `a` boot after recording `b` had ended? */
static bool booted_behind(const struct fdr_file_info *a, const struct fdr_file_info *b)
{
    return a->realtime_offset_ns > b->realtime_offset_ns &&
           (uint64_t)a->realtime_offset_ns - (uint64_t)b->realtime_offset_ns > b->last_ns;
}

/* Do two recordings share a time line? CLOCK_MONOTONIC is one line within a host between two boots. Between such
 * lines only wall clocks relate. Within a line, the wall clock may have been set, or the host suspended, for less
 * than its uptime. A container with a CLOCK_MONOTONIC of its own counts as its host. */
static bool one_line(const struct fdr_file_info *a, const struct fdr_file_info *b)
{
    return strcmp(a->host, b->host) == 0 && !booted_behind(a, b) && !booted_behind(b, a);
}

void fdri_convert_time_line(struct fdr_file *const *files, size_t count, uint64_t *shift)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct fdr_file_info *info = fdr_file_info(files[i]);
        size_t j = 0;
        while (j < i && !one_line(fdr_file_info(files[j]), info)) j++;
        shift[i] = j < i ? shift[j] : (uint64_t)info->realtime_offset_ns;
        if ((int64_t)shift[i] < first) first = (int64_t)shift[i];
    }
    for (size_t i = 0; i < count; i++) shift[i] -= (uint64_t)first;
}
