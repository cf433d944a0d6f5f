/* SPDX-License-Identifier: MIT */
/* Texts: messages, numbers, patterns, lines of files. Files: message (this header: the only way in which libfdr writes
 * messages), number, glob, line_file. Neighbours: used by every folder; below: atomic.h.
 *
 * A message is one line on stderr that begins with "fdr: ". It is dropped if stderr takes nothing for 10 ms, has no
 * reader, or may not grow. No signal that this raises reaches the program. */
#ifndef FDRI_BASE_TEXT_MESSAGE_H
#define FDRI_BASE_TEXT_MESSAGE_H
#include <stdbool.h>
void fdri_text_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns false if `flag` was set before; sets it. With it, repeated failures are reported once. */
bool fdri_text_once(unsigned *flag);
#endif
