/* SPDX-License-Identifier: MIT */
/* Writes a file under a temporary name and renames it to its final name when it is whole. */
#ifndef FDRI_READER_FILE_WHOLE_FILE_H
#define FDRI_READER_FILE_WHOLE_FILE_H

#include <stdbool.h>

struct fdri_file_whole {
    int fd;
    char *part; /* the temporary name */
};
/* Creates the temporary file beside `path`, mode 0600. Returns 0 or -errno. After success, call fdri_file_whole_end. */
int fdri_file_whole_begin(struct fdri_file_whole *n, const char *path);
/* `error` is 0 or the caller's -errno. With 0, the file becomes `path`; it replaces an existing file only if
 * `replace`. After an error nothing of it is left. Returns 0 or -errno. */
int fdri_file_whole_end(struct fdri_file_whole *n, const char *path, int error, bool replace);

#endif
