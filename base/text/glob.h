/* SPDX-License-Identifier: MIT */
/* Patterns as for file names, for where fnmatch cannot be: the C library's takes up to 13 KiB of stack and may ask for
 * memory, and a function may be seen first in a handler on a small alternate stack. */
#ifndef FDRI_BASE_TEXT_GLOB_H
#define FDRI_BASE_TEXT_GLOB_H
#include <stdbool.h>

/* Does all of `text` match? `*`, `?`, `[a-z]`, `[!a-z]`, `[[:digit:]]`; a backslash takes the meaning of what follows;
 * a `[` without its end is itself. As fnmatch without flags in a UTF-8 locale, but for `[.x.]` and `[=x=]`, and letters
 * of classes are ASCII's. A backslash at the end is itself. Signal-safe. Wait-free: steps by the product of both
 * lengths, and by the pattern's once more for each `[` without its end. */
bool fdri_text_glob(const char *pattern, const char *text);
#endif
