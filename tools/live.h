/* SPDX-License-Identifier: MIT */
#ifndef FDR_TOOLS_LIVE_H
#define FDR_TOOLS_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Where live recordings are: FDR_LIVE_DIR, else /dev/shm/fdr-<uid>. Static storage. */
const char *live_directory(void);
/* Whether some process maps the file; `pid` is asked first, it nearly always is the one. */
bool mapped_by_someone(const struct stat *file, uint32_t pid);

#endif
