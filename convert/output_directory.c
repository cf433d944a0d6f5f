/* SPDX-License-Identifier: MIT */
/* For formats that are a directory of files: it has a temporary name until it is whole. */
#define _XOPEN_SOURCE 700
#include "convert/output_directory.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fdri_convert_directory_begin(const char *path, char **part)
{
    struct stat s;
    size_t bytes = strlen(path) + sizeof ".4294967295.999.part", length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    if (!lstat(path, &s)) return -EEXIST;
    *part = malloc(bytes);
    for (unsigned n = 0; *part && n < 1000; n++) {
        snprintf(*part, bytes, "%.*s.%u.%u.part", (int)length, path, (unsigned)getpid(), n);
        if (mkdir(*part, 0777) == 0) return 0;
        if (errno != EEXIST) break;
    }
    int error = *part ? errno : ENOMEM;
    free(*part);
    return -error;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    remove(path);
    return 0;
}

int fdri_convert_directory_end(const char *path, char *part, int status)
{
    if (!status && rename(part, path)) status = -errno;
    if (status) nftw(part, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(part);
    return status;
}
