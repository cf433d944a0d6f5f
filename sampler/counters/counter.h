/* SPDX-License-Identifier: MIT */
/* Counters beside the events: read by a thread of its own, or at the edges of chosen calls.
 * Neighbours: the recorder starts it through counter_view.h; readings come back through <fdr/fdr.h>.
 *
 *   counter_sources.c     all sources; names to counters; which of them work here
 *   counter_perf.c     perf events: software (per thread, exact) and hardware
 *   counter_task.c     /proc/self/task/TID: stat, schedstat, status
 *   counter_process.c  the process: getrusage, statm, io
 *   counter_energy.c   powercap (RAPL)
 *   counter_derived.c  quotients of other counters: IPC, share of time off the processor
 *   counter_probe.c    every counter, tried
 *   counter_provider.c counters that libfdr knows nothing of
 *   counter_edge.c     read at the edges of calls, by the calling thread
 *   in_handler.c       whether that may allocate
 *   monitor.c          the thread that samples; monitor_threads.c: which threads it observes,
 *                      monitor_panel.c: one of them
 *
 * A *source* is what is read at once: it gives one or more counters. It is opened per thread, or once for the process.
 * A counter that cannot work is never read: probe() tries it for real and says why not. */
#ifndef FDRI_SAMPLER_COUNTERS_COUNTER_H
#define FDRI_SAMPLER_COUNTERS_COUNTER_H

#include <fdr/counters.h>
#include <fdr/fdr.h>
#include <signal.h>
#include <stdbool.h>
#include <unwind.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fd/descriptor.h"

enum { FDRI_COUNTERS_SOURCE_COUNTERS = 16, FDRI_COUNTERS_WHY_BYTES = 200, FDRI_COUNTERS_SOURCES_MAX = 16 };

struct fdri_counters {
    const char *name, *unit;
    enum fdr_metric_kind kind;
};

/* One source opened for one thread, or for the process. Owned by who opened it; one thread at a time. */
struct fdri_counters_handle {
    const struct fdri_counters_source *source;
    int tid;                               /* 0: the calling thread, or the process */
    uint32_t wanted;                       /* bit per counter of the source */
    int fd[FDRI_COUNTERS_SOURCE_COUNTERS]; /* -1 where there is none */
    struct fdri_fd_identity mark[FDRI_COUNTERS_SOURCE_COUNTERS];
    uint64_t state[FDRI_COUNTERS_SOURCE_COUNTERS][2]; /* what the source likes to remember */
};

struct fdri_counters_source {
    const char *name; /* "perf": its counters are "perf:page-faults", ... */
    bool per_thread;
    const struct fdri_counters *counter;
    uint32_t count; /* at most FDRI_COUNTERS_SOURCE_COUNTERS */
    /* Tries counter `which` in the calling thread, for real: 0, or -errno and `why` (component, errno, what would
     * help). Never calls a counter good that would stay 0. */
    int (*probe)(uint32_t which, char *why, size_t why_bytes);
    /* Descriptors that a handle with these counters holds. */
    uint32_t (*descriptors)(uint32_t wanted);
    /* Fills h->fd and h->state; source, tid and wanted are set. 0 or -errno, then nothing is held. */
    int (*open)(struct fdri_counters_handle *h);
    /* NULL: the monitor computes these counters from others. Else value[i] for each bit i of wanted. Allocates nothing.
     * 0 or -errno: the thread is gone. */
    int (*read)(struct fdri_counters_handle *h, uint64_t *value);
    /* Async-signal-safe. */
    void (*close)(struct fdri_counters_handle *h);
};

extern const struct fdri_counters_source fdri_counters_source_perf, fdri_counters_source_hardware,
    fdri_counters_source_sched, fdri_counters_source_task, fdri_counters_source_switches, fdri_counters_source_derived,
    fdri_counters_source_process, fdri_counters_source_rusage, fdri_counters_source_io, fdri_counters_source_energy;

/* ---- counter_sources.c ---- */
/* A counter of a source, by number; source NULL: none. */
struct fdri_counters_choice {
    const struct fdri_counters_source *source;
    uint32_t which;
};
size_t fdri_counters_source_count(void);
const struct fdri_counters_source *fdri_counters_source_at(size_t index);
/* One more source, looked at before the built-in ones; for tests. NULL: only the built-in ones again. */
void fdri_counters_source_add(const struct fdri_counters_source *source);
/* Opens within the process's share of descriptors: -EMFILE where it is used up. */
int fdri_counters_handle_open(struct fdri_counters_handle *h, const struct fdri_counters_source *source, int tid,
                              uint32_t wanted);
void fdri_counters_handle_close(struct fdri_counters_handle *h);
/* What source->read says; -EBADF where the program closed the descriptors: theirs are not read. Async-signal-safe. */
int fdri_counters_handle_read(struct fdri_counters_handle *h, uint64_t *value);
/* "source:name" into text. */
void fdri_counters_text(char *text, size_t bytes, struct fdri_counters_choice choice);
/* Names, separated by commas: "source:name", "name" (of the first source that has it and where it works), "A|B" (A,
 * else B), "default", "all". Each counter at most once, at most `most`. Those that cannot work are named with reasons
 * in `missing` ("" if none). Returns how many were chosen. */
size_t fdri_counters_choose(const char *list, bool threads_only, struct fdri_counters_choice *out, size_t most,
                            char *missing, size_t missing_bytes);
/* Derived counters are binary64, all others whole numbers. */
static inline enum fdr_type fdri_counters_type(struct fdri_counters_choice c)
{
    return c.source->read ? FDR_U64 : FDR_F64;
}
/* The metric that carries unit and kind of a counter: "source:name". */
fdr_metric_id fdri_counters_define(struct fdri_counters_choice choice);

/* ---- shared by sources that are text files of /proc ---- */
/* Opens path, or with `tid` /proc/self/task/TID/name. -errno or a descriptor. */
int fdri_counters_proc_open(int tid, const char *name);
/* The file from its start into text, NUL behind. Bytes, or -errno. */
int fdri_counters_proc_read(int fd, char *text, size_t bytes);
/* The number in /proc/sys/kernel/perf_event_paranoid, or -100 where there is no such file. */
int fdri_counters_paranoid(void);
/* Where the files of powercap lie; tests bring their own. */
extern const char *fdri_counters_powercap_folder;

/* ---- counter_derived.c ---- */
enum { FDRI_COUNTERS_IPC, FDRI_COUNTERS_OFF_CPU };
/* Names of the counters that derived counter `which` is made of, as for fdri_counters_choose; one or two. */
extern const char *const fdri_counters_derived_of[2][2];

/* ---- in_handler.c ---- */
bool fdri_counters_unwinder_works(void); /* else nothing may be unwound yet */
/* The library's first call asks the loader, and may allocate. (backtrace would do, but a program may have its own.) */
void fdri_counters_unwinder_warm(_Unwind_Reason_Code (*frames_of)(_Unwind_Trace_Fn, void *));
void fdri_counters_in_handler_warm(void); /* loads what the others need; before them, not in a handler */
/* Is the caller, a thread that had these signals blocked, in a handler of the program's (which may have interrupted
 * malloc)? In doubt it is. Async-signal-safe; all signals but those of faults are blocked meanwhile. Costs some 0.2 us
 * for each frame of the stack. */
bool fdri_counters_in_handler(const sigset_t *blocked);

/* ---- counter_edge.c ---- */
void fdri_counters_edges_start(const char *counters, const char *papi);
void fdri_counters_edges_stop(void);
void fdri_counters_edges_fork(int phase);

/* ---- counter_provider.c ---- */
/* The provider of what FDR_PAPI names, loaded if need be; NULL: none, and `why` says so. */
const struct fdr_counter_provider *fdri_counters_provider(char *why, size_t why_bytes);

/* ---- monitor.c ---- */
/* One line on standard error, and a marker in the recording. Nothing where nothing is missing. */
void fdri_counters_missing(const char *variable, const char *list, const char *missing);

#endif
