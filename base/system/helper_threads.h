/* SPDX-License-Identifier: MIT */
/* fdr's own threads, by their names: neither sampled nor counted. Whole names, for a program's may begin with "fdr-",
 * too, and its threads are called as it is. */
#ifndef FDR_BASE_SYSTEM_HELPER_THREADS_H
#define FDR_BASE_SYSTEM_HELPER_THREADS_H
#include <stdbool.h>
#include <string.h>

#define FDR_DUMPER  "fdr-dumper"
#define FDR_RECLAIM "fdr-reclaim"
#define FDR_RESTART "fdr-restart"
#define FDR_SAMPLER "fdr-sampler"
#define FDR_MONITOR "fdr-monitor"
#define FDR_LOADER  "fdr-loader"
#define FDR_PAGES   "fdr-pages"

static inline bool fdr_is_helper(const char *name)
{
    static const char *const names[] = {FDR_DUMPER,  FDR_RECLAIM, FDR_RESTART, FDR_SAMPLER,
                                        FDR_MONITOR, FDR_LOADER,  FDR_PAGES};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}
#endif
