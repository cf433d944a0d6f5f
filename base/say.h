/* SPDX-License-Identifier: MIT */
/* The one way libfdr speaks: a line on stderr, "fdr: " in front, at most once per key where asked. */
#ifndef FDR_BASE_SAY_H
#define FDR_BASE_SAY_H
#include <stdbool.h>
void fdri_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* false when `flag` was set already; sets it. Keeps repeated failures to one line. */
bool fdri_once(unsigned *flag);
#endif
