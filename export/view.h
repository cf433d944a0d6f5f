/* SPDX-License-Identifier: MIT */
/* The recording as export/ sees it: a read-only view that the recorder fills in at start, and what it may call.
 * Neighbours: snapshot/, trigger/ and crash/ below this folder; recorder/ calls them through this header alone. */
#ifndef FDRI_EXPORT_VIEW_H
#define FDRI_EXPORT_VIEW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <fdr/fdr.h>

#include "base/atomic.h"
#include "base/fd/kept_open.h"
#include "base/system/syscall.h"
#include "format/arena/arena.h"

/* The number of this process. A filter may refuse getpid, which says nothing about the number: then it is the one the
 * recording began with, and 0 in a child with memory of its own, where that page is empty. Async-signal-safe. */
static inline int fdri_export_pid(void)
{
    int pid = fdri_system_getpid();
    return pid > 0 ? pid : (int)fdri_atomic_load_relaxed(&fdr_switch_.pid);
}

/* FDR_CRASH: nothing; faults copied, requests to end marked and renamed in place; both copied; and calls of exit that
 * say that something went wrong. */
enum fdri_export_crash_mode {
    FDRI_EXPORT_CRASH_OFF = 0,
    FDRI_EXPORT_CRASH_FAULTS,
    FDRI_EXPORT_CRASH_ALL,
    FDRI_EXPORT_CRASH_EXIT
};

enum { FDRI_EXPORT_KEEP_MAX = 256 }; /* so many snapshots are known by name */

struct fdri_export_view {
    /* The arena. Export writes into its superblock only: snapshots_taken, clock_last, handlers, handlers_lost,
     * faults_survived; where the process ends by a signal or a bad exit cause_*, reason, state, section_off; over,
     * over_error, and all that fdri_arena_superblock_forget takes away. */
    uint8_t *base;
    uint64_t bytes;
    bool ticks; /* clock of the recording: tick counter, else ns */
    char name[64], dir[512];
    int rank, pid;
    int signal; /* 0: none */
    uint64_t holdoff_ns, disk_bytes;
    uint32_t keep;
    bool keep_newest;
    /* Is the process still the one that started the recording? Where it was restored from a checkpoint a new recording
     * is begun, before this returns. Not for the dumper thread, which asks by poll. */
    void (*look)(void);
    /* Mends what a handler left half-done of this thread; here: in the frame of what the program called. */
    void (*settle)(uint64_t here);
    bool (*hold)(void); /* nobody gives back a location's accounts until release(); false: somebody may */
    void (*release)(void);
    /* The mapped arena's file, none: anonymous; FDR_LIVE_DIR and FDR_DIR, as they are when the recording begins: by
     * then the process may be in another root, or another user's. The recorder closes them. */
    struct fdri_fd_kept live, at_live, at_dir;
    char live_path[512];
    uint64_t watchdog_ns;              /* FDR_WATCHDOG, 0: off */
    uint64_t (*poll)(uint64_t now_ns); /* looks for what the record path cannot see; returns when to be called again */
    bool company;                      /* fdr has other threads: somebody must see when they are the only ones left */
    enum fdri_export_crash_mode crash;
    uint64_t crash_deadline_ns;
};

/* Starts the dumper thread and installs the signal handler. 0 or -errno (snapshots by API work all the same). */
int fdri_trigger_start(const struct fdri_export_view *view);
/* Stops the thread; waits for a snapshot under way. take: what triggers have seen by now is still taken. */
void fdri_trigger_stop(bool take);
/* Is that a handler of this library's: for snapshots, or of deaths? */
bool fdri_trigger_handles(const struct sigaction *action);
void fdri_trigger_leave(void); /* then: the previous handler is put back if ours is still installed */
/* as fdri_names_define_fork: 0 prepare, 1 parent, 2 child: the child has neither */
void fdri_trigger_dumper_fork(int phase);
bool fdri_snapshot_is_here(void); /* this thread is in a snapshot, which a handler interrupted */
void fdri_snapshot_abandon(void); /* the process ends: if it is, nobody goes on with that one */
/* One snapshot in the caller's thread, not limited by FDR_KEEP, FDR_DISK and hold-off: the final one. */
int fdri_snapshot_final(const char *reason);

/* ---- triggers: a source says what it has seen, the dumper thread does the rest ---- */
enum { FDRI_EXPORT_TRIGGERS = 64 };
#define FDRI_EXPORT_NO_KEY   UINT32_MAX
#define FDRI_EXPORT_NO_FIELD 255u
struct fdri_export_trigger {
    char name[64], what[192]; /* what: its condition as text */
    uint64_t window_ns, holdoff_ns;
    uint32_t keep;
    bool keep_newest;
};
enum fdri_export_unit {
    FDRI_EXPORT_UNIT_NONE,
    FDRI_EXPORT_UNIT_NS,
    FDRI_EXPORT_UNIT_COUNT,
    FDRI_EXPORT_UNIT_BYTES,
    FDRI_EXPORT_UNIT_PER_SECOND
};
struct fdri_export_seen {
    uint64_t tick; /* full ticks of the recording's clock */
    uint64_t value;
    uint32_t type; /* enum fdri_arena_value_type */
    enum fdri_export_unit unit;
    uint32_t location; /* UINT32_MAX: none */
    uint32_t key;      /* of what it was seen on, as in totals; FDRI_EXPORT_NO_KEY: nothing */
    uint32_t field;    /* of that user event; FDRI_EXPORT_NO_FIELD: none */
};
void fdri_trigger_arm(uint32_t slot, const struct fdri_export_trigger *trigger);
void fdri_trigger_disarm(uint32_t slot);
/* Async-signal-safe; wait-free but for waking the dumper when it is the first in its hold-off. */
void fdri_trigger_seen(uint32_t slot, const struct fdri_export_seen *seen);
uint64_t fdri_trigger_count(uint32_t slot); /* how often something was seen */
void fdri_trigger_dumper_wake(void);        /* async-signal-safe */
int fdri_trigger_dumper_start(void);        /* where it does not run yet. 0 or -errno */
bool fdri_trigger_dumper_stops(void);       /* somebody waits for its end */

/* Handlers of the signals that end a process, for the view given to fdri_trigger_start. */
void fdri_crash_start(void);
/* Puts previous handlers back where ours still stand. Waits where another thread is dying: then the process ends. */
void fdri_crash_stop(void);
/* The process ends by exit(status), or `by` the like: leaves a bundle where FDR_CRASH asks for one. true: one was left,
 * in place of the live file; recording is off. */
bool fdri_crash_end(const char *by, int status);
bool fdri_crash_ended(void);     /* one was left so, and no other recording has begun since */
bool fdri_crash_under_way(void); /* a thread leaves one now, or has: the process dies */
void fdri_crash_fork(int phase);
/* The recording is over, all that is worth keeping is elsewhere: its live file goes. One that cannot be removed says
 * that it is over, and with `empty` (nobody is in the middle of a record) gives its memory back. 0: it is gone, or
 * -errno. Async-signal-safe. */
int fdri_crash_live_remove(bool empty);
/* A child: its arena is a view of its own of its parent's file. */
bool fdri_crash_own_view(void);
/* Looks who holds the signals now, and says so in the superblock. Async-signal-safe. */
void fdri_crash_check_handlers(void);
/* Each recording thread gets an alternate signal stack where it has none; at its end it goes. Async-signal-safe. */
void fdri_crash_thread_begin(void);
void fdri_crash_thread_end(void);
void fdri_crash_stacks(bool on);

#endif
