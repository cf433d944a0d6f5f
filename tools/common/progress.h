/* SPDX-License-Identifier: MIT */
/* Progress of a verb that reads many events, for a person at the terminal. */
#ifndef FDRI_TOOLS_COMMON_PROGRESS_H
#define FDRI_TOOLS_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Shown on a terminal after one second: "fdr: stats: 12,000,000 events". Zero-initialise all but `what`. */
struct progress {
    const char *what;
    uint64_t started_ns, shown_ns;
    bool disabled, shown;
};
/* Cheap enough for every event: reads the clock every 65,536th time. */
void progress_at(struct progress *progress, uint64_t done);
void progress_now(struct progress *progress, uint64_t done);
void progress_end(struct progress *progress);

#endif
