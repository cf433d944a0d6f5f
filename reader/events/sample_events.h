/* SPDX-License-Identifier: MIT */
/* Samples as events: their accounts, their paths, and the choice of those that a selection wants. */
#ifndef FDRI_READER_EVENTS_SAMPLE_EVENTS_H
#define FDRI_READER_EVENTS_SAMPLE_EVENTS_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/sample_codec.h"
#include "reader/file/file.h"

/* Sets min_leave for samples: those of a level count as kept as far back as all sparser levels reach. */
void fdri_events_keep_samples(struct fdri_file_location *l);
/* The accounts of the location's samples, by level, or NULL. */
const struct fdri_arena_samples *fdri_events_samples(const struct fdr_file *f, const struct fdri_file_location *l);
/* The sample number from which the kept samples count on. All samples up to it were given back, at every level. */
uint64_t fdri_events_samples_from(struct fdr_file *f, struct fdri_file_location *l);
/* Sets the fields of *e that belong to a sample. */
void fdri_events_show_sample(struct fdr_read_event *e, const struct fdr_sample_path *path);
/* Does the selection take this sample? It compares the number of open regions with the depths, and any of these
 * regions with the regions. */
bool fdri_events_sample_wanted(const struct fdr_select *w, const struct fdr_sample_path *path);

struct fdri_events_paths {
    uint64_t number; /* number of the newest sample returned */
    uint32_t next;   /* index of the buffer for the next sample */
    struct fdr_sample_path path[3];
    uint32_t region[3][FDRI_CODEC_SAMPLE_STEPS_MAX];
    uint64_t frame[3][FDRI_CODEC_SAMPLE_STEPS_MAX];
};
const struct fdr_sample_path *fdri_events_path(struct fdri_events_paths *p, const struct fdri_codec_sample_decoder *d);

#endif
