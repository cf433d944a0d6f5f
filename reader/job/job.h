/* SPDX-License-Identifier: MIT */
/* Several files as one: the joined file has the locations and definitions of all of them, under ids of its own. What is
 * computed on first use joins the rows of the files, in the rooms above.
 *
 *   join_files.c        makes the joined file: locations, figures of the whole
 *   job_definitions.c   the ids of names
 *   job_events.c        brings events and selections from the ids of a file to those of the job and back
 *
 * Neighbours: file/ below; symbol/, events/ and account/ above ask here whether a file is a joined one. */
#ifndef FDRI_READER_JOB_JOB_H
#define FDRI_READER_JOB_JOB_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/file/file.h"

struct fdri_job_part {
    struct fdr_file *file;
    int rank;
    uint32_t first;                /* the job's id of its first location; the others follow */
    uint32_t *id[FDRI_FILE_KINDS]; /* of the job, by kind and id of the file */
    size_t ids[FDRI_FILE_KINDS];
};
struct fdri_job {
    struct fdri_job_part *part;
    size_t count;
};

/* The file that the location with this index comes from; NULL: the file is not joined. */
const struct fdri_job_part *fdri_job_part_of(const struct fdr_file *f, size_t index);
/* Ids of the job. A definition that the file does not have is 0, a location UINT32_MAX. */
uint32_t fdri_job_id(const struct fdri_job_part *p, uint32_t kind, uint32_t id);
uint32_t fdri_job_id_of_class(const struct fdri_job_part *p, uint32_t class_, uint32_t id);
uint32_t fdri_job_location(const struct fdri_job_part *p, uint32_t id);

/* Gives every definition of the parts an id of the job: equal ones of several files share it, those of one file never
 * do. False: out of memory. */
bool fdri_job_definitions(struct fdr_file *f, struct fdri_job *job);

/* Puts the ids of the job into an event of the part. An address of a sample then says in its upper bits which part
 * knows it. */
void fdri_job_event(const struct fdr_file *f, const struct fdri_job_part *p, struct fdr_read_event *e);
#define FDRI_JOB_ADDRESS_BITS 48
/* The part that knows an address, and the address there. */
const struct fdri_job_part *fdri_job_address(const struct fdr_file *f, uint64_t *address);
/* The selection for each part, in one block of memory; NULL: no memory. */
struct fdr_select *fdri_job_selects(const struct fdr_file *f, const struct fdr_select *select);

#endif
