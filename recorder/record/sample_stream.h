/* SPDX-License-Identifier: MIT */
/* A stream of samples: sample.c writes it, sample_stream.c opens and closes it. */
#ifndef FDRI_RECORDER_RECORD_SAMPLE_STREAM_H
#define FDRI_RECORDER_RECORD_SAMPLE_STREAM_H

#include <fdr/fdr.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/sample_codec.h"
#include "recorder/thread/thread_state.h"

enum { FDRI_RECORD_SAMPLED_SPARES = 8 };
struct fdr_sampled {
    struct fdri_thread t;
    struct fdri_arena_samples *s;
    uint32_t recording, tid;
    /* The next stream whose thread ended: offset, 0 none. */
    uint32_t next;
    bool several; /* the stream served several threads, one after the other */
    /* Encoder tables of closed levels, by log2 of the bin's size - 9. */
    uint32_t spare[FDRI_RECORD_SAMPLED_SPARES];
    uint64_t step[FDRI_CODEC_SAMPLE_STEPS_MAX];
};

#endif
