/* SPDX-License-Identifier: MIT */
/* Names of calls, threads and processes, as all formats show them. */
#ifndef FDRI_CONVERT_TITLES_H
#define FDRI_CONVERT_TITLES_H

#include <fdr/reader.h>

/* The name of a call; of one that the reader made up: "[filtered]", "[open]" or "[reduced]". */
const char *fdri_convert_call(const struct fdr_file *file, const struct fdr_read_event *event);
/* "rank 3: solver (pid 4711)" */
void fdri_convert_process(const struct fdr_file *file, char *text, size_t bytes);
/* "worker (tid 4712)" */
void fdri_convert_thread(const struct fdr_location_info *location, char *text, size_t bytes);
/* The samples of a location; without any: an unnamed stream of weight 1. Never NULL. */
const struct fdr_sample_stream *fdri_convert_stream(struct fdr_file *file, uint32_t location);
/* The name of the sampled thread: of its location of events if that has one, else the kernel's. */
const char *fdri_convert_sampled(const struct fdr_file *file, const struct fdr_sample_stream *stream);
/* Do two recordings have the same process id? Then their position among the files serves as the id. */
bool fdri_convert_pids_collide(struct fdr_file *const *files, size_t count);

#endif
