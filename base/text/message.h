/* SPDX-License-Identifier: MIT */
/* Texts: messages, numbers, patterns, lines of files. fdri_text_message is the one way libfdr speaks.
 * Neighbours: used by every folder; below: atomic.h.
 *
 * A message is one line on stderr with "fdr: " in front, at most once per key where asked. It is dropped where
 * stderr takes nothing for 10 ms, has nobody who reads, or may not grow: no signal of that reaches the program. */
#ifndef FDRI_BASE_TEXT_MESSAGE_H
#define FDRI_BASE_TEXT_MESSAGE_H
#include <stdbool.h>
void fdri_text_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* false when `flag` was set already; sets it. Keeps repeated failures to one line. */
bool fdri_text_once(unsigned *flag);
#endif
