/* SPDX-License-Identifier: MIT */
/* The recording of this process: its settings and its state, which all rooms read.
 *
 *   recording.h   settings and state     share_state.h   the part of the state from which fair shares are computed
 *
 * life/start.c defines the state, and sets it under a lock when a recording begins. Neighbours: every room of recorder/
 * lies above this one. */
#ifndef FDRI_RECORDER_RECORDING_H
#define FDRI_RECORDER_RECORDING_H

#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/fd/kept_open.h"
#include "base/system/topology.h"
#include "bins/bins.h"
#include "bins/slabs.h"
#include "format/arena/arena.h"
#include "policies/bundle_fates.h"
#include "policies/policies.h"
#include "recorder/share_state.h"
#include "sampler/counters/counter_view.h"

/* ---- settings: the parsed configuration ---- */
enum fdri_life_arena_kind { FDRI_LIFE_MAPPED, FDRI_LIFE_ANONYMOUS };
enum fdri_life_fork_mode { FDRI_LIFE_FORK_DAEMON, FDRI_LIFE_FORK_FOLLOW, FDRI_LIFE_FORK_OFF };
struct fdri_life_settings {
    bool enable, live_force, final_snapshot, keep_newest, crash_first;
    bool check;            /* FDR_CHECK */
    uint64_t buffer_bytes; /* 0: default rule */
    char buffer_text[32];  /* as given, for messages */
    uint32_t bin_bytes;
    enum fdri_life_arena_kind arena;
    enum fdri_life_fork_mode fork; /* FDR_FORK */
    enum fdri_arena_strategy strategy;
    struct fdri_policies_chain chain;
    struct fdri_policies_tier_shares tiers; /* FDR_TELESCOPE */
    uint64_t min_duration_ns, resolution_ns, holdoff_ns, disk_bytes;
    uint64_t region_holdoff_ns; /* of triggers on regions, unless FDR_HOLDOFF or the trigger says another */
    uint32_t depth;             /* deeper calls are only counted */
    int crash;                  /* enum fdri_export_crash_mode */
    uint64_t crash_deadline_ns;
    struct fdri_policies_retention retention;
    bool monotonic;
    int signal; /* 0: none */
    uint32_t keep;
    char sample[64], name[64], live_dir[256], dir[512], filter[512];
    char triggers[1024];
    uint64_t watchdog_ns; /* 0: off */
    bool watchdog_job;
    char watchdog_ignore[512]; /* FDR_WATCHDOG_IGNORE */
    uint64_t pin_ns;           /* FDR_PIN */
    double overhead;           /* FDR_OVERHEAD: a share; -1: off */
    struct fdri_counters_plan counters;
    char edge_regions[512]; /* FDR_EDGE_REGIONS: patterns of names */
    char text[1024];        /* NAME=VALUE lines, for the superblock */
};

/* ---- the recording ---- */
/* Distinguishes a process from its copy that was restored from a checkpoint. 0: unknown. */
struct fdri_life_identity {
    int pid;
    uint64_t boot, start_time; /* a hash of the boot's id; field 22 of /proc/self/stat */
};
struct fdri_life_recorder {
    struct fdri_bins_arena arena;
    struct fdri_system_topology topology;
    struct fdri_life_settings settings;
    uint32_t number; /* of this recording in this process, from 1 */
    bool ticks;      /* TSC or counter; else ns */
    uint32_t shift;
    struct fdri_clock_reading start;
    uint64_t first_tick; /* tick (or ns) of the first possible event: FDR_PIN counts from there */
    uint64_t ticks_per_second;
    uint64_t tick_to_ns;                                         /* 32.32 */
    struct fdri_fd_kept kept_live_file, kept_live_dir, kept_dir; /* the arena's file, FDR_LIVE_DIR, FDR_DIR */
    char live_path[512];
    bool nameless;         /* the live file shall get this name, and has none so far */
    bool by_itself;        /* it began in a forked child without fdr_init */
    bool provisional;      /* atomic: so, and forked.c has not decided yet that it goes on */
    uint32_t bin_reserve;  /* free bins that only locations with next to nothing may take */
    uint64_t meta_in_bins; /* atomic: bytes of meta blocks that lie in pieces of bins */
    struct fdri_shares shares;
    uint32_t sample_share; /* atomic: bins reserved for samples once there are any */
    uint32_t sample_bins;  /* atomic: bins that locations of samples hold */
    struct fdri_bins_slabs slabs;
    bool running;
    /* the recording is over, but a thread was in the middle of a record: the memory stays as it is until that ends */
    bool abandoned;
    int pid;
    struct fdri_life_identity identity;
    int rank; /* as the launcher told it in the environment; -1: it did not */
};
extern struct fdri_life_recorder fdri_life_recording;

uint64_t fdri_life_ns_to_ticks(uint64_t ns); /* of a duration, in the clock of the recording */

#endif
