/* SPDX-License-Identifier: MIT */
/* A file that is written under a name of its own and gets the one it is to have when it is whole. */
#ifndef FDRI_READER_FILE_WHOLE_FILE_H
#define FDRI_READER_FILE_WHOLE_FILE_H

#include <stdbool.h>

struct fdri_file_whole {
    int fd;
    char *part; /* its name until then */
};
/* Beside `path`, mode 0600. 0 or -errno. Then end it. */
int fdri_file_whole_begin(struct fdri_file_whole *n, const char *path);
/* error: what went wrong meanwhile, -errno, or 0: then it is `path` now; replace: also where there is one. Else nothing
 * is left of it. 0 or -errno. */
int fdri_file_whole_end(struct fdri_file_whole *n, const char *path, int error, bool replace);

#endif
