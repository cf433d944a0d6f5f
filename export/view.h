/* SPDX-License-Identifier: MIT */
/* What export/ knows of a recording: a read-only view that the recorder fills in when it starts. */
#ifndef FDR_EXPORT_VIEW_H
#define FDR_EXPORT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena.h"

struct fdri_export_view {
    uint8_t *base;              /* the arena; export writes only clock_last, snapshots_taken of the superblock */
    uint64_t bytes;
    bool ticks;                 /* clock of the recording: tick counter, else ns */
    char name[64], dir[512];
    int rank;
    int signal;                 /* 0: none */
    uint64_t holdoff_ns, disk_bytes;
    uint32_t keep;
    bool keep_newest;
};

/* Starts the dumper thread and installs the signal handler. 0 or -errno (snapshots by API work all the same). */
int fdri_export_start(const struct fdri_export_view *view);
/* Stops both; waits for a snapshot under way. The previous handler is put back if ours is still installed. */
void fdri_export_stop(void);
void fdri_export_fork(int phase);  /* as fdri_define_fork: 0 prepare, 1 parent, 2 child: the child has neither */
/* One snapshot in the caller's thread, not limited by FDR_KEEP and hold-off: the final one. */
int fdri_export_final(const char *reason);

#endif
