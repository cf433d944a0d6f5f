/* SPDX-License-Identifier: MIT */
/* The door of the sampler for recorder/. Samples come back through the public interface: fdr_sampled_open,
 * fdr_sample. */
#ifndef FDRI_SAMPLER_SAMPLES_SAMPLES_VIEW_H
#define FDRI_SAMPLER_SAMPLES_SAMPLES_VIEW_H

#include <fdr/fdr.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The open calls of a thread, read by another one from the thread's shadow stack. The thread goes on meanwhile. */
enum { FDRI_SAMPLES_OPEN_MOST = 127 };
struct fdri_samples_open_calls {
    bool known;          /* false: the thread has no location, or it ended meanwhile; then count is 0 */
    bool whole;          /* false: it entered or left calls meanwhile, so deeper ones may be open as well */
    bool cut;            /* deeper ones were open, for which there is no room here or in the recording */
    uint32_t depth;      /* number of open calls */
    uint64_t tick, made; /* newest event; calls made at the next depth: one of the two changes with each event */
    uint32_t count;
    fdr_region region[FDRI_SAMPLES_OPEN_MOST]; /* outermost first; each of them was open at one moment of the reading */
};
typedef void fdri_samples_open_calls_of(struct fdr_sampled *stream, struct fdri_samples_open_calls *to);

/* Call it before the recording begins and a thread attaches. `setting`: FDR_SAMPLE, "" off; `papi`: FDR_PAPI. Reports
 * problems; never fails. */
void fdri_samples_sampler_prepare(const char *setting, const char *papi);
bool fdri_samples_sampler_wanted(void); /* as prepared: samples are wanted */
/* Call it after the recording has begun. `signal`: a signal used otherwise, 0 none. `open_calls` reads the open calls
 * of the thread of a stream; only the thread that samples calls it. */
void fdri_samples_sampler_start(int signal, fdri_samples_open_calls_of *open_calls);
void fdri_samples_sampler_stop(void); /* before the recording ends */
/* phases as of fdri_names_define_fork: 0 prepare, 1 parent, 2 child; 3 before 0 in a child in which no handler ran */
void fdri_samples_sampler_fork(int phase);
/* The calling thread attached; `blocked`: its signals before. Async-signal-safe. */
void fdri_samples_sampler_attached(uint32_t tid, const sigset_t *blocked);

#endif
