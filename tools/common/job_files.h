/* SPDX-License-Identifier: MIT */
/* Several recordings as one job: opened together, read as one file, closed together. */
#ifndef FDRI_TOOLS_COMMON_JOB_FILES_H
#define FDRI_TOOLS_COMMON_JOB_FILES_H

#include "tools/common/file_rank.h"
#include "tools/common/verbs.h"

/* The FILEs of a command line. */
struct file_list {
    const char **path;
    size_t count;
};
/* For a verb with one FILE or more: as one_file. */
error_t some_files(struct argp_state *state, int key, const char *text, struct file_list *list);

struct job_files {
    struct fdr_file *file; /* what to read: of one FILE its recording, else all of them joined */
    const char *name;      /* for messages: the path of the one FILE, or "3 files" */
    struct fdr_file **part;
    const char **path; /* of each part */
    size_t count;      /* parts that could be opened */
    char text[HUMAN_BYTES];
};
/* Opens all that can be opened, and frees the list. A file that cannot costs one line, and raises *status to COULD_NOT.
 * False: none could. */
bool open_files(struct job_files *job, struct file_list *list, int *status);
/* As close_recording, for each file. */
int close_files(struct job_files *job, bool decoded);

#define LOCATION_LABEL_BYTES 32
/* The name of a location where it has a number: "3", and in a job "RANK:3". */
const char *location_label(const struct fdr_file *file, uint32_t location, char *text);
/* The same as a value of JSON: a number, in a job a text. */
void out_location(const struct fdr_file *file, uint32_t location);
void out_location_json(const struct fdr_file *file, uint32_t location);
/* An address of a sample without the mark of its file. */
uint64_t address_in_process(const struct fdr_file *file, uint64_t address);

#endif
