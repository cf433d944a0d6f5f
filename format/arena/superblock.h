/* SPDX-License-Identifier: MIT */
/* The superblock: the first 4 KiB of a file. A reader needs it to read everything else. */
#ifndef FDRI_FORMAT_ARENA_SUPERBLOCK_H
#define FDRI_FORMAT_ARENA_SUPERBLOCK_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/meta_block.h"
#include "format/arena/section.h"
#include "format/arena/superblock_values.h"

/* One reading of all clocks at once. */
struct fdri_arena_clock_pair {
    uint64_t tick; /* full ticks, not shifted */
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
    uint64_t reserved;
};
static_assert(sizeof(struct fdri_arena_clock_pair) == 32, "clock pair");
#define FDRI_ARENA_SECTIONS 24u
/* A backward step of the recording's clock. */
#define FDRI_ARENA_CLOCK_STEPS 8u
struct fdri_arena_clock_step {
    uint64_t tick;       /* full ticks: where time went on; 0: unknown */
    uint64_t step_ticks; /* full ticks: by how much the clock had gone back */
};
static_assert(sizeof(struct fdri_arena_clock_step) == 16, "clock step");
/* Fields stand by concern, in the order of format 1, so that one structure reads both versions. */
struct fdri_arena_superblock {
    /* ---- memory: bins_off + bins_total * bin_bytes <= arena_bytes; bins_off + lo * bin_bytes <= 64 * hi, with hi and
     * lo of `virgin` */
    char magic[8];
    uint32_t format_version;
    uint32_t header_bytes; /* FDRI_ARENA_SUPERBLOCK_BYTES */
    uint64_t arena_bytes;
    uint64_t bins_off;   /* first bin */
    uint32_t bin_bytes;  /* power of two, 512 .. 65536 */
    uint32_t bins_total; /* bins that would fit between bins_off and arena_bytes */
    /* atomic {hi:32, lo:32}: bins [0, lo) were handed out at least once; the 64-byte units [hi, arena_bytes/64) of the
     * arena are meta blocks */
    uint64_t virgin;
    uint64_t free_stack; /* atomic {tag:32, bin index + 1:32}: returned bins; informative */
    uint32_t free_bins;  /* atomic: bins on the free stack; informative */
    uint32_t state;      /* enum fdri_arena_state */
    /* ---- clock: stored tick = full tick >> shift; clock_start.tick <= clock_last.tick */
    uint32_t clock_kind;       /* enum fdri_arena_clock_kind */
    uint32_t shift;            /* resolution: stored tick = tick >> shift */
    uint64_t ticks_per_second; /* calibrated at start; 10^9 for FDRI_ARENA_CLOCK_NS */
    struct fdri_arena_clock_pair clock_start;
    struct fdri_arena_clock_pair clock_last; /* taken at every snapshot and at finalize */
    /* ---- chains: ids of locations < location_count; ids of definitions of kind k are 1 .. def_count[k] */
    uint32_t location_first; /* off of the newest location; they chain by `next` */
    uint32_t location_count; /* atomic; also the next id */
    uint32_t defs_first;     /* off of the first definition block */
    uint32_t defs_last;
    uint32_t def_count[16]; /* by enum fdri_arena_def_kind */
    /* ---- process */
    uint32_t pid;
    int32_t rank; /* -1: unknown */
    uint64_t created_realtime_ns;
    uint64_t process_start_time; /* field 22 of /proc/self/stat: distinguishes processes with one pid */
    /* ---- losses that belong to no location; atomic, relaxed. Each only grows */
    uint64_t lost_locations;   /* threads for which memory had no location */
    uint64_t lost_unattached;  /* events of such threads */
    uint64_t lost_definitions; /* definitions for which memory had no room; their events have id 0 */
    uint64_t snapshots_taken;
    /* ---- how calls are sorted: band_edge[0] <= band_edge[1] <= band_edge[2] */
    uint32_t strategy;        /* enum fdri_arena_strategy */
    uint32_t band_edge_count; /* 3 */
    uint64_t band_edge[3];    /* durations in stored ticks: band of d = number of edges <= d */
    /* ---- this file: why it was written, and of what the process died */
    uint32_t reason_kind;  /* in a snapshot: enum fdri_arena_reason_kind */
    uint32_t cause_signal; /* crash: signal number, else 0 */
    int32_t cause_code;
    uint32_t cause_tid;
    uint64_t cause_addr;
    uint64_t cause_tick;      /* full ticks */
    uint64_t snapshot_number; /* in a snapshot: its number from 1; in a live arena: 0 */
    uint64_t dropped_bins;    /* in a snapshot: bins that changed hands during the copy */
    /* ---- program */
    uint32_t build_id_bytes;
    uint8_t build_id[36];
    char host[64];
    char exe[512];
    char reason[256];  /* why this snapshot was taken */
    char config[1024]; /* the configuration as text: NAME=VALUE lines */
    /* ---- more of the memory, and of the crash */
    uint32_t node_count;        /* NUMA nodes on which the arena lies; 0 and 1: one */
    uint32_t nodes_off;         /* off of struct fdri_arena_nodes_block, 0 with one node */
    uint32_t notes_off;         /* off of the newest block of notes, 0 = none */
    uint32_t handlers;          /* bit s - 1: fdr catches signal s if it would end the process */
    uint32_t handlers_lost;     /* of these: another handler was installed at the last look */
    uint32_t cut;               /* enum fdri_arena_truncated: a bundle that is incomplete */
    uint64_t cause_realtime_ns; /* ns since 1970: when fdr saw the cause */
    uint64_t faults_survived;   /* faults from which the application's own handler returned */
    /* ---- trigger: the condition that a snapshot by a trigger or the watchdog saw */
    uint64_t trigger_tick;       /* full ticks of the recording's clock; 0: no trigger */
    uint64_t trigger_value;      /* as trigger_value_type says */
    uint32_t trigger_value_type; /* enum fdri_arena_value_type */
    uint32_t trigger_location;   /* id of the location of the condition, UINT32_MAX: none */
    char trigger_name[64];
    /* ---- end, as the parent saw it; `fdr run` adds it to the file of a dead process */
    uint32_t end_known;     /* 1: the next four fields are valid */
    int32_t end_status;     /* as of waitpid; INT32_MIN: it was no child */
    uint32_t end_oom_kills; /* processes that the cgroup's OOM killer ended meanwhile */
    uint32_t end_reserved;
    uint64_t end_realtime_ns;
    /* ---- threads */
    uint32_t fold_off;       /* off of struct fdri_arena_fold, or 0 */
    uint32_t locations_sure; /* threads that can always record, however full the buffer is */
    /* ---- backward steps of the clock by more than 1 ms; time goes on from where it stood */
    uint64_t clock_offset; /* atomic: added to each reading of the recording's clock, modulo 2^64 */
    uint32_t clock_steps;  /* atomic: number of steps */
    uint32_t clock_reserved;
    /* step n (from 0) is at [n % FDRI_ARENA_CLOCK_STEPS] */
    struct fdri_arena_clock_step clock_step[FDRI_ARENA_CLOCK_STEPS];
    /* ---- life of the file. section_off, in a snapshot: the position in the file of a section like a bundle's
     * (format/arena/crash_section.h), 0 none. In state crashed: arena_bytes, stored before the section is written; 0:
     * the process ended before. */
    uint64_t section_off;
    /* atomic: full ticks at which fdr's own thread last ran, every second; 0: no such thread */
    uint64_t alive_tick;
    /* atomic. 1: the process does not need its live file any more, because the recording ended or the bundle is another
     * file. It then removed the live file. over_error: errno of a failed removal; the file may be empty. */
    uint32_t over;
    uint32_t over_error;
    uint64_t format1_reserved; /* of version 1; 0 */
    /* ---- since format 2. The directory of sections; set before the recording begins. The first entry with off 0 ends
     * it */
    struct fdri_arena_section section[FDRI_ARENA_SECTIONS];
    /* fdr's own thread writes these two once a second; both are 0 without such a thread. Atomic. The longest time
     * without an event of any thread that is over, in full ticks; processor time since the newest event, in ns. */
    uint64_t longest_still;
    uint64_t still_cpu_ns;
    /* In state crashed: equal for deaths of one cause, place and build; 0: not known. */
    uint64_t fingerprint;
    /* Deaths of this fingerprint whose bundles are gone and that this bundle counts. The identity of the newest of
     * these, so that none counts twice. The two are written at once. */
    uint64_t alike, alike_newest;
    /* In a live file: bytes promised to a bundle of this process, on the file system with this device number. */
    uint64_t bundle_bytes, bundle_device;
};
static_assert(sizeof(struct fdri_arena_superblock) <= FDRI_ARENA_SUPERBLOCK_BYTES, "superblock");
/* Makes the recording empty: no location, definition, note or bin. Async-signal-safe. */
static inline void fdri_arena_superblock_forget(struct fdri_arena_superblock *s)
{
    s->location_first = s->location_count = s->fold_off = 0;
    s->defs_first = s->defs_last = s->notes_off = 0;
    memset(s->section, 0, sizeof s->section);
    for (int i = 0; i < 16; i++) s->def_count[i] = 0;
    s->node_count = s->nodes_off = s->free_bins = 0;
    s->free_stack = s->alive_tick = s->longest_still = s->still_cpu_ns = s->bundle_bytes = 0;
    s->virgin = s->arena_bytes / FDRI_ARENA_META_ALIGN << 32;
}

#endif
