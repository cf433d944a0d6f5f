/* SPDX-License-Identifier: MIT */
/* The state of one sampled thread. */
#ifndef FDRI_SAMPLER_SAMPLES_SAMPLE_TARGET_H
#define FDRI_SAMPLER_SAMPLES_SAMPLE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "sampler/samples/frame_walk.h"

struct fdr_sampled;

enum { FDRI_SAMPLES_LIVE = 1u, FDRI_SAMPLES_INSIDE = 2u };
enum fdri_samples_by { FDRI_SAMPLES_BY_NOTHING, FDRI_SAMPLES_BY_TIMER, FDRI_SAMPLES_BY_PERF, FDRI_SAMPLES_BY_RING };
struct fdri_samples_target {
    uint32_t live; /* atomic. FDRI_SAMPLES_LIVE: the handler may use this target; FDRI_SAMPLES_INSIDE: it does */
    uint32_t tid;  /* atomic; 0: free */
    enum fdri_samples_by source;
    int fd;         /* perf event; -1 none */
    uint64_t event; /* its number: `fd` may be another file by now */
    timer_t timer;
    struct fdr_sampled *stream;
    uint64_t start_time; /* of the thread, from /proc: distinguishes threads with the same tid */
    uint32_t seen_round; /* round of the helper that found the thread last */
    uint32_t checked;    /* `taken` when the start time was checked last */
    bool attached;
    bool blocked;             /* the thread blocks the signal, so no handler runs */
    uint32_t blocked_changes; /* consecutive looks that found a change of `blocked` */
    uint32_t seen_taken;      /* `taken`, and CPU time, at the last look */
    uint64_t seen_ns;
    /* written by the handler, or for a ring by the helper */
    uint32_t taken;             /* atomic: number of samples */
    uint64_t step;              /* a sample is taken each `step` periods */
    uint64_t period_factor;     /* factor on the period while samples take long here */
    uint64_t left_ns;           /* when the handler returned last */
    uint32_t crowded;           /* consecutive times that the thread ran for less time than the handler */
    uint64_t periods_accounted; /* CPU time, events: periods accounted */
    uint64_t zero_ns, armed;    /* wall time: start of the first stretch; number of the armed stretch */
    uint64_t random;
    struct fdri_samples_calls calls;
    void *ring;
    uint64_t ring_bytes;
    uint64_t opened_ns, missed_cpu_ns; /* ring: CPU time when it was opened; CPU time since that its event lacks */
    struct fdri_samples_frames frames; /* from here on: of the sample under way */
    struct fdri_samples_window window;
};

#endif
