/* SPDX-License-Identifier: MIT */
/* libfdr-papi: PAPI's counters for fdr. Nothing of it has to be called: with FDR_PAPI set, or one of PAPI's events in
 * FDR_SAMPLE, libfdr loads the library by itself, unless the program is linked with it (CMake: fdr::papi). */
#ifndef FDR_PAPI_H
#define FDR_PAPI_H

#include <fdr/counters.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What libfdr asks for. Static storage; any thread. */
FDR_API const struct fdr_counter_provider *fdr_papi_provider(void);

#ifdef __cplusplus
}
#endif
#endif
