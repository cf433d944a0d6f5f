/* SPDX-License-Identifier: MIT */
/* For formats that are a directory of files: it has a temporary name until it is whole. */
#ifndef FDRI_CONVERT_OUTPUT_DIRECTORY_H
#define FDRI_CONVERT_OUTPUT_DIRECTORY_H

/* Makes an empty directory beside `path`, and sets *part to its name. Returns 0 or -errno; -EEXIST: `path` is there
 * already. End with fdri_convert_directory_end. */
int fdri_convert_directory_begin(const char *path, char **part);
/* The directory gets its name if `status` is 0; otherwise it is removed with its files. Frees `part`. Returns `status`
 * if it is not 0; else 0 or -errno. */
int fdri_convert_directory_end(const char *path, char *part, int status);

#endif
