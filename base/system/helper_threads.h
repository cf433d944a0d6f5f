/* SPDX-License-Identifier: MIT */
/* The names of fdr's own threads, which fdr neither samples nor counts. Whole names are compared: a program's threads
 * have its name, and that may begin with "fdr-", too. */
#ifndef FDRI_BASE_SYSTEM_HELPER_THREADS_H
#define FDRI_BASE_SYSTEM_HELPER_THREADS_H
#include <stdbool.h>
#include <string.h>

#define FDRI_SYSTEM_THREAD_DUMPER  "fdr-dumper"
#define FDRI_SYSTEM_THREAD_RECLAIM "fdr-reclaim"
#define FDRI_SYSTEM_THREAD_RESTART "fdr-restart"
#define FDRI_SYSTEM_THREAD_SAMPLER "fdr-sampler"
#define FDRI_SYSTEM_THREAD_MONITOR "fdr-monitor"
#define FDRI_SYSTEM_THREAD_LOADER  "fdr-loader"
#define FDRI_SYSTEM_THREAD_PAGES   "fdr-pages"
#define FDRI_SYSTEM_THREAD_FORKED  "fdr-forked"

static inline bool fdri_system_is_helper(const char *name)
{
    static const char *const names[] = {
        FDRI_SYSTEM_THREAD_DUMPER,  FDRI_SYSTEM_THREAD_RECLAIM, FDRI_SYSTEM_THREAD_RESTART, FDRI_SYSTEM_THREAD_SAMPLER,
        FDRI_SYSTEM_THREAD_MONITOR, FDRI_SYSTEM_THREAD_LOADER,  FDRI_SYSTEM_THREAD_PAGES,   FDRI_SYSTEM_THREAD_FORKED};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}
#endif
