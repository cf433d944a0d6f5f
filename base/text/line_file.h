/* SPDX-License-Identifier: MIT */
/* Files that the user names, read line by line while a program starts. */
#ifndef FDRI_BASE_TEXT_LINE_FILE_H
#define FDRI_BASE_TEXT_LINE_FILE_H
#include <stdio.h>
/* NULL and errno; EINVAL: no regular file. A FIFO could block for ever, a device never end. Not for signal handlers. */
FILE *fdri_text_open_lines(const char *path);
#endif
