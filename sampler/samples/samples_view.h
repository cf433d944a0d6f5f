/* SPDX-License-Identifier: MIT */
/* The door of the sampler for recorder/. Samples come back through the public interface: fdr_sampled_open,
 * fdr_sample. */
#ifndef FDRI_SAMPLER_SAMPLES_SAMPLES_VIEW_H
#define FDRI_SAMPLER_SAMPLES_SAMPLES_VIEW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Call it before the recording begins and a thread attaches. `setting`: FDR_SAMPLE, "" off; `papi`: FDR_PAPI. Reports
 * problems; never fails. */
void fdri_samples_sampler_prepare(const char *setting, const char *papi);
bool fdri_samples_sampler_wanted(void); /* as prepared: samples are wanted */
/* Call it after the recording has begun. `signal`: a signal used otherwise, 0 none. */
void fdri_samples_sampler_start(int signal);
void fdri_samples_sampler_stop(void); /* before the recording ends */
/* phases as of fdri_names_define_fork: 0 prepare, 1 parent, 2 child; 3 before 0 in a child in which no handler ran */
void fdri_samples_sampler_fork(int phase);
/* The calling thread attached; `blocked`: its signals before. Async-signal-safe. */
void fdri_samples_sampler_attached(uint32_t tid, const sigset_t *blocked);

#endif
