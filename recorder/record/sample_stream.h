/* SPDX-License-Identifier: MIT */
/* A stream of samples: what sample.c writes and sample_stream.c opens and closes. */
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
    uint32_t next;                              /* of the streams whose thread ended: offset, 0 none */
    bool several;                               /* samples of several threads, one after the other */
    uint32_t spare[FDRI_RECORD_SAMPLED_SPARES]; /* tables of closed levels by log2 of the bin's size - 9 */
    uint64_t step[FDRI_CODEC_SAMPLE_STEPS_MAX];
};

#endif
