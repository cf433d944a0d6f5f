/* SPDX-License-Identifier: MIT */
/* Calls and samples of recordings, summed up by call path: for formats that are profiles. */
#ifndef FDRI_CONVERT_PATHS_H
#define FDRI_CONVERT_PATHS_H

#include <fdr/reader.h>

struct fdri_convert_frame {
    const char *name, *file; /* belong to a recording, which stays open until the end */
    uint32_t line;
};
struct fdri_convert_path {
    uint32_t parent, frame;
    uint64_t calls, inclusive_ns, exclusive_ns; /* of calls that the recordings show */
    uint64_t samples, sampled;                  /* sampled: ns, or counted events */
};
/* Zero-initialise. Path 0 is the root, above all outermost calls. */
struct fdri_convert_paths {
    struct fdri_convert_frame *frame;
    struct fdri_convert_path *path;
    uint32_t frames, paths;
    bool any_calls, any_samples;
    /* for the functions below */
    size_t frame_room, path_room;
    uint32_t *frame_slot, *path_slot; /* hash tables of numbers + 1; 0: free */
    size_t frame_slots, path_slots;
    uint32_t at;
    struct fdr_file *file;
};

/* Adds what select[i] chooses of file i; select NULL: everything. 0 or -errno.
 * Only the time in the selected window counts, exclusive time less all kept calls inside, selected or not. Open calls
 * count up to the newest event of their location. */
int fdri_convert_paths_calls(struct fdri_convert_paths *p, struct fdr_file *const *files, size_t count,
                             const struct fdr_select *select);
/* The same for samples: the outermost frame is the thread, then open regions, then the native stack. */
int fdri_convert_paths_samples(struct fdri_convert_paths *p, struct fdr_file *const *files, size_t count,
                               const struct fdr_select *select);
void fdri_convert_paths_free(struct fdri_convert_paths *p);

#endif
