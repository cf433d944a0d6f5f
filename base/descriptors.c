/* SPDX-License-Identifier: MIT */
#include "base/descriptors.h"

#include <sys/resource.h>

#include "base/atomic.h"

static uint32_t held;

bool fdri_descriptors_take(uint32_t count)
{
    struct rlimit limit;
    uint64_t most = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 4 : 0;
    if (fdr_add_relaxed(&held, count) + (uint64_t)count <= most) return true;
    fdr_sub_relaxed(&held, count);
    return false;
}

void fdri_descriptors_give(uint32_t count) { fdr_sub_relaxed(&held, count); }

uint32_t fdri_descriptors_held(void) { return fdr_load_relaxed(&held); }
