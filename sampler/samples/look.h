/* SPDX-License-Identifier: MIT */
/* Looks at threads from outside (FDR_SAMPLE=wall). fdr's thread reads the open calls from the recording, and the state
 * of the thread from /proc. The thread gets no signal and runs no code for it. */
#ifndef FDRI_SAMPLER_SAMPLES_LOOK_H
#define FDRI_SAMPLER_SAMPLES_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/samples/samples_view.h"

struct fdri_samples_target;

/* ---- look.c ---- */
void fdri_samples_look_begin(fdri_samples_open_calls_of *open_calls);
/* Takes a sample of the target's thread, for `weight` periods. False: it was not taken, or the thread has ended. */
bool fdri_samples_look(struct fdri_samples_target *t, uint64_t weight);

/* ---- look_rounds.c ---- */
void fdri_samples_rounds_begin(uint64_t period_ns);
/* A thread was found: it is looked at from now on. */
void fdri_samples_rounds_add(struct fdri_samples_target *t);
/* Looks at some of the first `count` targets if a round is due. Returns the time of the next round. */
uint64_t fdri_samples_rounds_look(uint32_t count, uint32_t threads);
/* May the helper do other work now, or has it used up its share of a processor? */
bool fdri_samples_rounds_may_work(void);

#endif
