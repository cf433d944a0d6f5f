/* SPDX-License-Identifier: MIT */
/* The recording as export/ sees it: a read-only view that the recorder fills in at start, and the
 * calls of the recorder into export/.
 * Neighbours: the rooms snapshot/, trigger/ and crash/ below this folder. recorder/ calls them through
 * this header alone. */
#ifndef FDRI_EXPORT_VIEW_H
#define FDRI_EXPORT_VIEW_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fdr/fdr.h>

#include "base/atomic.h"
#include "base/fd/kept_open.h"
#include "base/system/syscall.h"
#include "export/trigger_matches.h"
#include "format/arena/arena.h"
#include "policies/bundle_fates.h"

/* The number of this process, async-signal-safe. If a seccomp filter refuses getpid, the result is the number with
 * which the recording began. A child with its own memory finds that page empty and then gets 0. */
static inline int fdri_export_pid(void)
{
    int pid = fdri_system_getpid();
    return pid > 0 ? pid : (int)fdri_atomic_load_relaxed(&fdr_switch_.pid);
}

/* FDR_CRASH. FAULTS: faults leave a bundle; signals that request the end store the cause in the live file and rename
 * it. ALL: both leave a bundle. EXIT: calls of exit with a bad status do, too. */
enum fdri_export_crash_mode {
    FDRI_EXPORT_CRASH_OFF = 0,
    FDRI_EXPORT_CRASH_FAULTS,
    FDRI_EXPORT_CRASH_ALL,
    FDRI_EXPORT_CRASH_EXIT
};

enum { FDRI_EXPORT_KEEP_MAX = 256 }; /* export/ remembers the names of at most this many snapshots */

struct fdri_export_view {
    /* The arena. Export writes into its superblock only. At any time: snapshots_taken, clock_last, handlers,
     * handlers_lost, faults_survived. If a signal or a bad exit ends the process: cause_*, reason, state, section_off.
     * At the end: over, over_error, and the fields that fdri_arena_superblock_forget clears. */
    uint8_t *base;
    uint64_t bytes;
    bool ticks; /* clock of the recording: tick counter, else ns */
    char name[64], dir[512];
    int rank, pid;
    int signal; /* FDR_SIGNAL's number; 0: none */
    uint64_t holdoff_ns, disk_bytes;
    uint32_t keep;
    bool keep_newest;
    /* Checks that this process started the recording. In a process restored from a checkpoint it begins a new recording
     * before it returns. The dumper thread must not call it; it uses poll. */
    void (*check_process)(void);
    /* Checks the arena before it is copied. held: accounts are held. */
    void (*self_check)(bool held);
    /* Repairs state of this thread that a signal handler left unfinished. here: a stack address in the frame of the
     * public function that the program called. */
    void (*settle_thread)(uint64_t here);
    /* true: no thread folds or frees a location's accounts until release_accounts(); false: this is not assured */
    bool (*hold_accounts)(void);
    void (*release_accounts)(void);
    /* The arena's file (none if the mapping is anonymous), FDR_LIVE_DIR and FDR_DIR, opened when the recording begins.
     * Later the process may have another root directory or another user. The recorder closes them. */
    struct fdri_fd_kept kept_live_file, kept_live_dir, kept_dir;
    char live_path[512];
    uint64_t watchdog_ns;      /* FDR_WATCHDOG, 0: off */
    bool watchdog_job;         /* and all ranks of the job take a snapshot */
    char watchdog_ignore[512]; /* FDR_WATCHDOG_IGNORE: patterns of names of threads, with commas between */
    /* does the periodic checks that the record path cannot do; returns the time of its next call */
    uint64_t (*poll)(uint64_t now_ns);
    /* The name of a function for messages, or "". For the dumper thread; it may read a file. */
    void (*name_function)(uint32_t module, uint64_t address, char *name, size_t bytes);
    /* fdr has other threads, so that the dumper must see when only these are left; or it has periodic work */
    bool needs_dumper;
    enum fdri_export_crash_mode crash;
    bool crash_first; /* fdr stays the kernel's handler of faults when the program installs its own */
    uint64_t crash_deadline_ns;
    struct fdri_policies_retention retention; /* FDR_CRASH_TOTAL, FDR_CRASH_FREE, FDR_CRASH_AGE */
};

/* Starts the dumper thread and installs the handler of the snapshot signal. Returns 0 or -errno; after an error
 * fdr_snapshot() still works. */
int fdri_trigger_start(const struct fdri_export_view *view);
/* Stops the dumper thread after a snapshot under way. take: first takes the snapshots that triggers have requested by
 * now. */
void fdri_trigger_stop(bool take);
/* True if `action` is a handler of this library, for snapshots or for deaths. */
bool fdri_trigger_handles(const struct sigaction *action);
/* After fdri_trigger_stop: puts the previous handler back if ours is still installed. */
void fdri_trigger_leave(void);
/* Phases as for fdri_names_define_fork: 0 prepare, 1 parent, 2 child. The child has neither thread nor handler. */
void fdri_trigger_dumper_fork(int phase);
bool fdri_snapshot_is_here(void); /* true in a handler that interrupted a snapshot of this thread */
/* The process ends: gives up a snapshot that this thread was taking. */
void fdri_snapshot_abandon(void);
/* Takes the final snapshot in the calling thread. FDR_KEEP, FDR_DISK and the hold-off do not limit it. */
int fdri_snapshot_final(const char *reason);

/* Installs handlers of the signals that end a process, for the view given to fdri_trigger_start. */
void fdri_crash_start(void);
/* Puts the previous handlers back where ours are still installed. If another thread is dying, waits until the process
 * ends. */
void fdri_crash_stop(void);
/* The process ends by exit(status), or by the call named `by`. Leaves a bundle if FDR_CRASH asks for one. Returns true
 * if it left a bundle in place of the live file; recording is then off. */
bool fdri_crash_end(const char *by, int status);
bool fdri_crash_ended(void);     /* fdri_crash_end left one, and no recording has begun since */
bool fdri_crash_under_way(void); /* a thread is leaving a bundle, or has left one: the process dies */
void fdri_crash_fork(int phase);
/* Removes the live file after the recording, when all worth keeping is elsewhere. If that fails, marks the file as
 * over. With `empty` (no thread is in the middle of a record) it also gives its memory back. Returns 0 if the file
 * is removed, else -errno. Async-signal-safe. */
int fdri_crash_live_remove(bool empty);
/* True in a child whose arena is a private view of its parent's file. */
bool fdri_crash_own_view(void);
/* Finds out which signals still have fdr's handler and stores that in the superblock. Async-signal-safe. */
void fdri_crash_check_handlers(void);
/* Give each recording thread an alternate signal stack if it has none; remove it at its end. Async-signal-safe. */
void fdri_crash_thread_begin(void);
void fdri_crash_thread_end(void);
void fdri_crash_stacks(bool on);

#endif
