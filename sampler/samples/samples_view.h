/* SPDX-License-Identifier: MIT */
/* What recorder/ calls in sampler/. Samples come back by the public door: fdr_sampled_open, fdr_sample. */
#ifndef FDRI_SAMPLER_SAMPLES_SAMPLES_VIEW_H
#define FDRI_SAMPLER_SAMPLES_SAMPLES_VIEW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Recording is about to begin, no thread has attached; `setting`: what FDR_SAMPLE says, "" off. `papi`: what FDR_PAPI
 * names. Says what it cannot do; never fails. */
void fdri_samples_sampler_prepare(const char *setting, const char *papi);
bool fdri_samples_sampler_wanted(void); /* as prepared: samples are to be taken */
/* Recording has begun. `signal`: one that is taken already, 0 none. */
void fdri_samples_sampler_start(int signal);
void fdri_samples_sampler_stop(void); /* recording is about to end */
/* as fdri_names_define_fork: 0 prepare, 1 parent, 2 child; 3 before 0 where no handler ran */
void fdri_samples_sampler_fork(int phase);
/* This thread records now; `blocked`: its signals before it attached. Async-signal-safe. */
void fdri_samples_sampler_attached(uint32_t tid, const sigset_t *blocked);

#endif
