/* SPDX-License-Identifier: MIT */
/* Opening files that the user names, to be read line by line at the program's start. */
#ifndef FDRI_BASE_TEXT_LINE_FILE_H
#define FDRI_BASE_TEXT_LINE_FILE_H
#include <stdio.h>
/* As fopen for reading: NULL and errno on failure. EINVAL for all but regular files: a FIFO could block for ever, and a
 * device might never end. Not for signal handlers. */
FILE *fdri_text_open_lines(const char *path);
#endif
