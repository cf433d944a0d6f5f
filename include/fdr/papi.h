/* SPDX-License-Identifier: MIT */
/* libfdr-papi: PAPI's counters for fdr. A program need not call it. libfdr loads the library if FDR_PAPI is set, or if
 * FDR_SAMPLE names one of PAPI's events. It does not if the program is linked with it (CMake: fdr::papi). */
#ifndef FDR_PAPI_H
#define FDR_PAPI_H

#include <fdr/counters.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The provider that libfdr looks for. Static storage; any thread. */
FDR_API const struct fdr_counter_provider *fdr_papi_provider(void);

#ifdef __cplusplus
}
#endif
#endif
