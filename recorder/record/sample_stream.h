/* SPDX-License-Identifier: MIT */
/* A stream of samples: sample.c writes it, sample_stream.c opens and closes it, open_calls.c reads its thread's open
 * calls. */
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
    /* Looks from outside: the thread's location, 0 none found yet; the number of locations at the last search. */
    uint32_t watched_off, searched;
    /* Encoder tables of closed levels, by log2 of the bin's size - 9. */
    uint32_t spare[FDRI_RECORD_SAMPLED_SPARES];
    uint64_t step[FDRI_CODEC_SAMPLE_STEPS_MAX];
};

/* For the sampling thread: notes the location that the stream's thread records into as the stream's parent. True: that
 * thread is paused. */
bool fdri_record_watch(struct fdr_sampled *d);
struct fdri_samples_open_calls;
/* A fdri_samples_open_calls_of. */
void fdri_record_open_calls(struct fdr_sampled *d, struct fdri_samples_open_calls *to);

#endif
