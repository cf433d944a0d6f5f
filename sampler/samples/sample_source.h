/* SPDX-License-Identifier: MIT */
/* Sources of samples: a timer of the thread, a perf event, or the ring that the kernel fills. */
#ifndef FDRI_SAMPLER_SAMPLES_SAMPLE_SOURCE_H
#define FDRI_SAMPLER_SAMPLES_SAMPLE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct fdri_samples_target;

/* ---- sample_source.c ---- */
/* Finds out which sources work here. */
void fdri_samples_source_probe(void);
/* Arms the target for a sample each `step` periods. False: no source works for it. */
bool fdri_samples_source_open(struct fdri_samples_target *t, uint64_t step);
void fdri_samples_source_close(struct fdri_samples_target *t);
/* Sets the rate to a sample each t->step periods. Async-signal-safe. */
void fdri_samples_source_rate(struct fdri_samples_target *t);
/* The handler ran from came_ns to left_ns. If it repeatedly leaves the thread less time than it takes, the period
 * doubles. Async-signal-safe. */
void fdri_samples_source_crowded(struct fdri_samples_target *t, uint64_t came_ns, uint64_t left_ns);
/* Wall time: arms the timer for the next sample. Returns the number of periods sampled until now_ns.
 * Async-signal-safe. */
uint64_t fdri_samples_source_rearm(struct fdri_samples_target *t, uint64_t now_ns);
/* False: the program closed the target's descriptor, and may have reused its number. True: it is open, or the target
 * needs none. */
bool fdri_samples_source_there(const struct fdri_samples_target *t);
uint64_t fdri_samples_source_cpu_ns(uint32_t tid);
/* The value of the thread's event counter; 0: the descriptor was closed. For its handler, before it reads the stack. */
uint64_t fdri_samples_source_events(struct fdri_samples_target *t);

/* ---- perf_ring.c ---- */
bool fdri_samples_ring_open(struct fdri_samples_target *t);
void fdri_samples_ring_drain(struct fdri_samples_target *t);
void fdri_samples_ring_close(struct fdri_samples_target *t);

#endif
