/* SPDX-License-Identifier: MIT */
/* Preloaded before PAPI. PAPI switches its component perf_event off on processors that its libpfm4 does not know. This
 * library presents the kernel's own list of events as the processor's. The software events of that list work
 * anywhere. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

struct pmu { /* as libpfm4's pfm_pmu_info_t begins */
    const char *name, *what;
    size_t bytes;
    int number, type, events, first, encodings, counters;
};

int pfm_get_pmu_info(int number, struct pmu *pmu)
{
    static int (*real)(int, struct pmu *);
    if (!real) real = (int (*)(int, struct pmu *))dlsym(dlopen("libpfm.so.4", RTLD_NOW), "pfm_get_pmu_info");
    int e = real(number, pmu);
    if (!e && !strcmp(pmu->name, "perf")) {
        pmu->type = 1; /* PFM_PMU_TYPE_CORE */
        pmu->counters = 8;
    }
    return e;
}
