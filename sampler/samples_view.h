/* SPDX-License-Identifier: MIT */
/* What recorder/ calls in sampler/. Samples come back by the public door: fdr_sampled_open, fdr_sample. */
#ifndef FDR_SAMPLER_SAMPLES_VIEW_H
#define FDR_SAMPLER_SAMPLES_VIEW_H

#include <stdint.h>

/* Recording has begun; `setting`: what FDR_SAMPLE says, "" off. `signal`: one that is taken already, 0 none. Says what
 * it cannot do; never fails. */
void fdri_sampler_start(const char *setting, int signal);
void fdri_sampler_stop(void); /* recording is about to end */
void fdri_sampler_fork(
    int phase); /* as fdri_define_fork: 0 prepare, 1 parent, 2 child; 3 before 0 where no handler ran */
void fdri_sampler_attached(uint32_t tid); /* this thread records now. Async-signal-safe */

#endif
