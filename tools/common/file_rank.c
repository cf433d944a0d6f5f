/* SPDX-License-Identifier: MIT */
/* The rank of a recording: of notes, of the superblock, of the name. */
#include "tools/common/file_rank.h"

#include <stdlib.h>
#include <string.h>

/* "NAME.HOST.PID.rRANK.N.fdr" */
static int rank_in_path(const char *path)
{
    const char *slash = strrchr(path, '/'), *found = NULL;
    for (const char *p = slash ? slash + 1 : path; (p = strstr(p, ".r")); p += 2)
        if (p[2] >= '0' && p[2] <= '9') found = p + 2;
    char *end = NULL;
    unsigned long rank = found ? strtoul(found, &end, 10) : 0;
    return found && *end == '.' && rank <= INT32_MAX ? (int)rank : -1;
}

int rank_of_file(const struct fdr_file *file, const char *path)
{
    const struct fdr_note_info *note;
    for (size_t i = 0, n = fdr_notes(file, &note); i < n; i++)
        if (strcmp(note[i].key, "mpi.rank") == 0) return atoi(note[i].value);
    return fdr_file_info(file)->rank >= 0 ? fdr_file_info(file)->rank : rank_in_path(path);
}
