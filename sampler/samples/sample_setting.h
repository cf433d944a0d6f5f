/* SPDX-License-Identifier: MIT */
/* The setting FDR_SAMPLE: by which clock or event, how often, and with which stacks threads are sampled. */
#ifndef FDRI_SAMPLER_SAMPLES_SAMPLE_SETTING_H
#define FDRI_SAMPLER_SAMPLES_SAMPLE_SETTING_H

#include <stdbool.h>
#include <stdint.h>

enum fdri_samples_stacks { FDRI_SAMPLES_FRAME_POINTERS, FDRI_SAMPLES_UNWINDER, FDRI_SAMPLES_NO_STACKS };
struct fdri_samples_settings {
    uint64_t period_ns; /* 0: off; with `events`: a number of events */
    bool wall;          /* wall time, else the thread's CPU time */
    bool outside;       /* wall time, by looks of fdr's thread: no signal is sent */
    bool events;        /* instead of time: a counter of the thread overflows */
    bool provided; /* the event is a provider's (PAPI) and threads open it themselves; else perf's type and config */
    uint32_t type;
    uint64_t config;
    char name[96]; /* of the event */
    enum fdri_samples_stacks stacks;
};
struct fdri_samples_settings fdri_samples_parse_setting(const char *text);

#endif
