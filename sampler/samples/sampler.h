/* SPDX-License-Identifier: MIT */
/* Samples of threads: the place of each thread, at a set rate. Neighbours: the recorder starts it through
 * samples_view.h; samples come back through <fdr/fdr.h>; below: sampler/counters/, base/. Files:
 *
 *   sample_setting.c  the value of FDR_SAMPLE        sample_source.c   the timer or perf event of one thread
 *   sampler.c         finds threads; the helper      sample_handler.c  one sample, in the thread's signal handler
 *   perf_ring.c       samples taken by the kernel    frame_walk.c      return addresses by frame pointers
 *   own_overflow.c    events of a provider           unwind.c          return addresses by libgcc's unwinder
 *   sample_target.h   the state of one thread        frame_walk.h      both ways to return addresses
 *   look.c            a look from outside            look_rounds.c     which threads it looks at, and when
 *
 * Each thread of the process has a `struct fdri_samples_target`. Only the helper thread (fdr-sampler) makes and ends
 * targets; a thread's handler uses the thread's own. They are never freed, so a late signal finds valid memory. */
#ifndef FDRI_SAMPLER_SAMPLES_SAMPLER_H
#define FDRI_SAMPLER_SAMPLES_SAMPLER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/system/chained_handler.h"
#include "sampler/samples/sample_setting.h"

struct fdri_samples_target;

/* The state that all targets share; set before the first target is made. */
struct fdri_samples_sampler {
    struct fdri_samples_settings settings;
    int signal, pid;
    struct fdri_system_previous previous; /* handlers of the signal before fdr's */
    uint32_t active;                      /* atomic */
    bool perf, perf_kernel;               /* perf events work here; also those of the kernel */
    uint32_t fds, fds_most;
    struct fdri_samples_target **by_fd;
    uint32_t by_fd_count;
};
extern struct fdri_samples_sampler fdri_samples_sampler;

/* ---- sample_handler.c ---- */
bool fdri_samples_handler_install(int taken);
bool fdri_samples_handler_ours(void);
void fdri_samples_handler_remove(void);
void fdri_samples_handler_forked(void);
uint32_t fdri_samples_own_tid(void); /* id of the calling thread; async-signal-safe */

/* ---- sampler.c ---- */
bool fdri_samples_is_target(const void *p);                  /* p points to a target */
struct fdri_samples_target *fdri_samples_target(uint32_t i); /* by its number, from 0; it may have no thread (tid 0) */

#endif
