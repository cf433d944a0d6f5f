/* SPDX-License-Identifier: MIT */
/* Opens the recordings of a job, finds the rank of each, and joins them. */
#include "tools/common/job_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/fast_output.h"
#include "tools/common/short_names.h"

error_t some_files(struct argp_state *state, int key, const char *text, struct file_list *list)
{
    if (key == ARGP_KEY_END && !list->count) argp_error(state, "a FILE is needed");
    if (key == ARGP_KEY_END) return 0;
    if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
    const char **more = realloc(list->path, (list->count + 1) * sizeof *more);
    if (!more) return ENOMEM;
    list->path = more;
    list->path[list->count++] = text;
    return 0;
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* True if two files are of one rank. */
static bool repeated(const int *rank, const struct job_files *job)
{
    for (size_t i = 0; i < job->count; i++)
        for (size_t k = 0; k < i; k++) {
            if (rank[i] != rank[k]) continue;
            complain("%s and %s are both of rank %d: their locations are named by the order of the files", job->path[k],
                     job->path[i], rank[i]);
            return true;
        }
    return false;
}

/* Ranks that are not known, or not unique, are the order of the files. */
static void find_ranks(int *rank, const struct job_files *job)
{
    bool known = true;
    for (size_t i = 0; i < job->count; i++) {
        rank[i] = rank_of_file(job->part[i], job->path[i]);
        known &= rank[i] >= 0;
    }
    if (known && !repeated(rank, job)) return;
    for (size_t i = 0; i < job->count; i++) rank[i] = (int)i;
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

/* Each process has the clock of its machine. */
static void tell_hosts(const struct job_files *job)
{
    const char *first = fdr_file_info(job->part[0])->host;
    for (size_t i = 1; i < job->count; i++) {
        const char *host = fdr_file_info(job->part[i])->host;
        if (!strcmp(first, host)) continue;
        complain("%s is of host %s, %s of %s: their clocks differ, so events of the two are not in order", job->path[0],
                 first, job->path[i], host);
        return;
    }
}

static bool join(struct job_files *job)
{
    int *rank = malloc(job->count * sizeof *rank);
    if (rank) find_ranks(rank, job);
    job->file = rank ? fdr_files_join(job->part, rank, job->count) : NULL;
    free(rank);
    if (!job->file) complain("out of memory");
    return job->file != NULL;
}

bool open_files(struct job_files *job, struct file_list *list, int *status)
{
    size_t asked = list->count;
    *job = (struct job_files){.path = list->path, .part = calloc(asked, sizeof *job->part)};
    if (!job->part) complain("out of memory");
    for (size_t i = 0; job->part && i < asked; i++) {
        struct fdr_file *file = open_recording(list->path[i], status);
        if (!file) continue;
        job->part[job->count] = file;
        job->path[job->count++] = list->path[i];
    }
    *list = (struct file_list){0};
    snprintf(job->text, sizeof job->text, "%zu files", job->count);
    job->name = asked == 1 ? job->path[0] : job->text;
    if (job->count && asked > 1) tell_hosts(job);
    if (job->count && asked == 1) job->file = job->part[0];
    if (job->count && (asked == 1 || join(job))) return true;
    if (!job->part || job->count) *status = COULD_NOT;
    close_files(job, false);
    return false;
}

int close_files(struct job_files *job, bool decoded)
{
    int status = DONE;
    if (job->file && job->file != job->part[0]) {
        short_names_forget(job->file);
        fdr_file_close(job->file);
    }
    for (size_t i = 0; i < job->count; i++)
        status = worse(status, close_recording(job->part[i], job->path[i], decoded));
    free(job->part);
    free(job->path);
    *job = (struct job_files){0};
    return status;
}

/* ---- names of locations ------------------------------------------------------------------------------------------ */

const char *location_label(const struct fdr_file *file, uint32_t location, char *text)
{
    struct fdr_origin origin;
    if (fdr_location_origin(file, location, &origin))
        snprintf(text, LOCATION_LABEL_BYTES, "%d:%u", origin.rank, origin.id);
    else snprintf(text, LOCATION_LABEL_BYTES, "%u", location);
    return text;
}

void out_location(const struct fdr_file *file, uint32_t location)
{
    char text[LOCATION_LABEL_BYTES];
    struct fdr_origin origin;
    if (!fdr_location_origin(file, location, &origin)) out_u64(location); /* fast, for millions of lines */
    else out_text(location_label(file, location, text));
}

void out_location_json(const struct fdr_file *file, uint32_t location)
{
    char text[LOCATION_LABEL_BYTES];
    struct fdr_origin origin;
    if (!fdr_location_origin(file, location, &origin)) out_u64(location);
    else out_json(location_label(file, location, text));
}

uint64_t address_in_process(const struct fdr_file *file, uint64_t address)
{
    struct fdr_origin origin;
    return fdr_location_origin(file, 0, &origin) ? address & FDR_ADDRESS_MASK : address;
}
