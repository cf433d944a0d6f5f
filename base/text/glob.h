/* SPDX-License-Identifier: MIT */
/* Patterns like those of file names. fnmatch cannot serve: glibc's needs up to 13 KiB of stack and may allocate. fdr
 * may see a function first in a handler on a small alternate stack. */
#ifndef FDRI_BASE_TEXT_GLOB_H
#define FDRI_BASE_TEXT_GLOB_H
#include <stdbool.h>

/* True if the pattern matches all of `text`: `*`, `?`, `[a-z]`, `[!a-z]`, `[[:digit:]]`; a backslash makes the next
 * character literal. A `[` without its end, and a backslash at the end, are literal. Otherwise as fnmatch without flags
 * in a UTF-8 locale, without `[.x.]` and `[=x=]`; classes contain only ASCII. Async-signal-safe. Wait-free: at most the
 * product of both lengths in steps, times the pattern's length for each `[` without its end. */
bool fdri_text_glob(const char *pattern, const char *text);
#endif
