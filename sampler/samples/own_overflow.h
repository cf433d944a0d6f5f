/* SPDX-License-Identifier: MIT */
/* Events of a provider (PAPI) as sources of samples: each thread opens its own. */
#ifndef FDRI_SAMPLER_SAMPLES_OWN_OVERFLOW_H
#define FDRI_SAMPLER_SAMPLES_OWN_OVERFLOW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct fdri_samples_settings;

/* True if the provider's event how->name can overflow on this machine while the events of `papi` count. Prints one
 * line: the failure, or that only recording threads are sampled. Call it before the first thread attaches. */
bool fdri_samples_own_choose(struct fdri_samples_settings *how, const char *papi);
void fdri_samples_own_none(void); /* no event of a provider in this recording */
/* Opens the event for the calling thread, which attaches; `blocked`: its signals before. Allocates and locks, but does
 * nothing in a signal handler of the program. */
void fdri_samples_own_begin(uint32_t tid, const sigset_t *blocked);
/* For the helper: has thread tid such an event? A descriptor of it, which the caller closes; -1 and errno if not. */
bool fdri_samples_own_there(uint32_t tid);
int fdri_samples_own_descriptor(uint32_t tid);
void fdri_samples_own_fork(int phase); /* phases as of fdri_samples_sampler_fork */

#endif
