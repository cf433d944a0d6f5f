/* SPDX-License-Identifier: MIT */
/* Counters beside the events: read by a thread of fdr's own, or at the edges of chosen calls. Neighbours: the recorder
 * starts them through counter_view.h; readings come back through <fdr/fdr.h>; sampler/samples/ uses in_handler.c and
 * the provider; below: base/. Files:
 *
 *   counter_sources.c   all sources: finds counters by name, and which of them work here
 *   counter_perf.c      perf events: software (per thread, exact) and hardware
 *   counter_task.c      /proc/self/task/TID: stat, schedstat, status
 *   counter_process.c   the process: getrusage, statm, io
 *   counter_energy.c    powercap (RAPL)
 *   counter_derived.c   quotients of other counters: IPC, share of time off the processor
 *   counter_probe.c     tries every counter
 *   counter_provider.c  counters of a library outside of libfdr, as one more source
 *   counter_edge.c      counters at the edges of calls, read by the calling thread
 *   in_handler.c        whether the calling thread is in a signal handler
 *   monitor.c           the thread that samples; monitor_threads.c: the observed threads, monitor_panel.c: one of them
 *   monitor.h           for the monitor's files; counter_edge.c uses its panel
 *
 * A *source* (fdr_counter_source) gives one or more counters in one reading. The list has those of libfdr and
 * those that programs added. A counter that cannot work is never read: probe() really counts with it and gives the
 * reason if it fails. */
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

enum { FDRI_COUNTERS_WHY_BYTES = 200, FDRI_COUNTERS_SOURCES_MAX = 32 };

/* An open source, for one thread or for the process. One thread at a time may use it. */
struct fdri_counters_handle {
    struct fdr_counter_handle open; /* first: fdri_counters_closed finds the marks behind it; source NULL: closed */
    struct fdri_fd_identity mark[FDR_SOURCE_COUNTERS];
};

/* The built-in sources. */
extern const struct fdr_counter_source fdri_counters_source_perf, fdri_counters_source_hardware,
    fdri_counters_source_sched, fdri_counters_source_task, fdri_counters_source_switches, fdri_counters_source_derived,
    fdri_counters_source_process, fdri_counters_source_rusage, fdri_counters_source_io, fdri_counters_source_energy;

/* ---- counter_sources.c ---- */
/* A counter of a source, by number; source NULL: none. */
struct fdri_counters_choice {
    const struct fdr_counter_source *source;
    uint32_t index;
};
/* Added sources come before the built-in ones. */
size_t fdri_counters_source_count(void);
const struct fdr_counter_source *fdri_counters_source_at(size_t index);
/* Forgets the added ones, which no recording may use; for tests. */
void fdri_counters_source_forget(void);
/* Opens a handle within the process's budget of descriptors. -EMFILE: the budget is used up. */
int fdri_counters_handle_open(struct fdri_counters_handle *h, const struct fdr_counter_source *source, int tid,
                              uint32_t wanted);
void fdri_counters_handle_close(struct fdri_counters_handle *h);
/* The same in a forked child: what only its own thread may close stays as it is. */
void fdri_counters_handle_drop(struct fdri_counters_handle *h);
/* True: another file has descriptor `index` of this open source by now. Async-signal-safe. */
bool fdri_counters_closed(const struct fdr_counter_handle *h, uint32_t index);
/* The result of source->read. -EBADF: the program closed the descriptors, and nothing was read. Async-signal-safe. */
int fdri_counters_handle_read(struct fdri_counters_handle *h, uint64_t *value);
/* 0, or -errno and the reason: the counter does not work here. */
int fdri_counters_try(struct fdri_counters_choice choice, char *why, size_t why_bytes);
/* Writes "source:name" into text; of the provider's counters the name alone. */
void fdri_counters_text(char *text, size_t bytes, struct fdri_counters_choice choice);
/* Chooses counters by names with commas: "source:name", "name", "A|B", "default", "all". "name" is that of the first
 * source where it works; "A|B" is B if A does not work. Each counter is chosen once, and `most` in all. Returns their
 * number. `missing`: the counters that cannot work, with reasons ("" if none). */
size_t fdri_counters_choose(const char *list, bool threads_only, struct fdri_counters_choice *out, size_t most,
                            char *missing, size_t missing_bytes);
static inline enum fdr_type fdri_counters_type(struct fdri_counters_choice c)
{
    return c.source->counter[c.index].type;
}
/* Fills the fields of a user event for counters, from text[i] on. Names of processor events may differ only behind the
 * cut of field names, so a cut name ends with its metric's number. */
void fdri_counters_fields(struct fdr_field *field, char text[][64], const struct fdri_counters_choice *choice,
                          uint32_t count, size_t offset);
/* The metric that carries unit and kind of a counter: "source:name". */
fdr_metric_id fdri_counters_define(struct fdri_counters_choice choice);

/* ---- for sources that read text files of /proc ---- */
/* Opens /proc/self/task/TID/name; tid 0: of the calling thread. Returns a descriptor or -errno. */
int fdri_counters_proc_open(int tid, const char *name);
/* Reads the file from its start into text and adds a NUL. Returns its bytes or -errno. */
int fdri_counters_proc_read(int fd, char *text, size_t bytes);
/* The number in /proc/sys/kernel/perf_event_paranoid; -100: there is no such file. */
int fdri_counters_paranoid(void);
/* The folder of the powercap files; tests set their own. */
extern const char *fdri_counters_powercap_folder;

/* ---- counter_derived.c ---- */
enum { FDRI_COUNTERS_IPC, FDRI_COUNTERS_OFF_CPU };
/* The one or two counters of which derived counter `index` is made, as names for fdri_counters_choose. */
extern const char *const fdri_counters_derived_of[2][2];

/* ---- in_handler.c ---- */
bool fdri_counters_unwinder_works(void); /* false: unwinding would abort now, before the program's constructors ran */
/* Makes the unwinder's first call, which asks the loader and may allocate. backtrace() cannot serve, because a program
 * may define its own. */
void fdri_counters_unwinder_warm(_Unwind_Reason_Code (*frames_of)(_Unwind_Trace_Fn, void *));
/* Loads the unwinder for fdri_counters_in_handler. Call it before that function, and not in a handler. */
void fdri_counters_in_handler_warm(void);
/* True if the calling thread is in a signal handler of the program, or if that is unknown. Such a handler may have
 * interrupted malloc. `blocked`: the thread's signals before the caller blocked all but faults. Async-signal-safe;
 * costs about 0.2 us for each frame of the stack. */
bool fdri_counters_in_handler(const sigset_t *blocked);

/* ---- counter_edge.c ---- */
void fdri_counters_edges_start(const char *counters, const char *papi);
void fdri_counters_edges_stop(void);
void fdri_counters_edges_fork(int phase);

/* ---- counter_provider.c ---- */
/* The provider of the counters in FDR_PAPI, loaded if necessary. NULL: none, and the reason is in `why`. */
const struct fdr_counter_provider *fdri_counters_provider(char *why, size_t why_bytes);
/* The chosen counters of the provider, as a source without a name. */
extern struct fdr_counter_source fdri_counters_source_provided;
/* Has the provider choose from the list of names, at most `most`, and fills fdri_counters_source_provided. `missing`:
 * those that cannot work, with reasons. */
void fdri_counters_provided_choose(const char *list, size_t most, char *missing, size_t missing_bytes);

/* ---- monitor.c ---- */
/* Reports the missing counters in one line on standard error, and as a marker in the recording; nothing if `missing` is
 * empty. */
void fdri_counters_missing(const char *variable, const char *list, const char *missing);

#endif
