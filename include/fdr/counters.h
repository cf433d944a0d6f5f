/* SPDX-License-Identifier: MIT */
/* Counters of the machine and the kernel: which of them work here, and how a program or a library adds its own.
 * docs/COUNTERS.md tells how they are switched on (FDR_COUNTERS, FDR_EDGE_COUNTERS, FDR_PAPI) and read.
 *
 *     static int read_pool(struct fdr_counter_handle *h, uint64_t *value)
 *     {
 *         value[0] = atomic_load(&pool_bytes);
 *         return 0;
 *     }
 *     static const struct fdr_counter in_use = {"in-use", "bytes", FDR_METRIC_GAUGE, FDR_U64};
 *     static const struct fdr_counter_source pool = {
 *         .size = sizeof pool, .name = "pool", .counter = &in_use, .count = 1, .read = read_pool};
 *
 *     fdr_counter_source_add(&pool);       // then fdr_init, with FDR_COUNTERS=pool:in-use
 *
 * fdr's own sources (perf, hw, sched, task, ...) are of the same type. */
#ifndef FDR_COUNTERS_H
#define FDR_COUNTERS_H

#include <fdr/fdr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fdr_counter_info {
    char name[64]; /* "perf:page-faults" */
    char unit[16]; /* "ns", "bytes"; "": a count */
    enum fdr_metric_kind kind;
    int per_thread; /* 1: of a thread; 0: of the process or the machine */
    int works;      /* 1: it was tried here, and counts */
    char why[200];  /* if it does not work: the component, the error, the reason */
};

/* Tries every known counter in this process. Fills at most `most` entries of out and returns how many counters there
 * are. Takes some milliseconds; may allocate, open descriptors (all closed again) and load libfdr-papi. Not for signal
 * handlers; one thread at a time. */
FDR_API size_t fdr_counters_probe(struct fdr_counter_info *out, size_t most);

/* ---- sources ---- */

enum { FDR_SOURCE_COUNTERS = 16 }; /* the most that one source has */

struct fdr_counter {
    const char *name, *unit; /* "page-faults"; "ns", "bytes", "": a count */
    enum fdr_metric_kind kind;
    enum fdr_type type; /* of its values: FDR_U64, FDR_I64 or FDR_F64 */
};

enum fdr_counter_scope {
    FDR_COUNTER_PROCESS = 0,   /* of the process or the machine; never at the edges of calls */
    FDR_COUNTER_THREAD = 1,    /* of a thread; other threads can read it */
    FDR_COUNTER_OWN_THREAD = 2 /* of a thread; only that thread can open, read and close it: at the edges of calls */
};

struct fdr_counter_source;
/* A source opened for one thread, or for the process. The fields below `wanted` belong to the source. */
struct fdr_counter_handle {
    const struct fdr_counter_source *source;
    int tid;                                /* of the thread; 0: the calling thread, or the process */
    uint32_t wanted;                        /* a bit for each counter to read */
    int fd[FDR_SOURCE_COUNTERS];            /* -1: none. If the program closes one, fdr reads no more and opens anew */
    uint64_t state[FDR_SOURCE_COUNTERS][2]; /* 0 when opened */
};

/* Threads: fdr calls a function of one handle in one thread at a time, functions of other handles of the source at the
 *     same time. For FDR_COUNTERS the thread fdr-monitor opens, reads and closes. For FDR_EDGE_COUNTERS the counted
 *     thread does, outside of signal handlers, with its signals blocked and cancellation off. `probe` is called during
 *     fdr_init, or in fdr_counters_probe.
 * Signals: `close` must be async-signal-safe, since fdr also calls it in a forked child. Handles of
 *     FDR_COUNTER_OWN_THREAD are left alone there. No other function is called in a handler.
 * Duties: no function may call fdr, wait for a lock that is held while fdr is called, or end the thread. `read` must
 *     not allocate either, and should take less than a microsecond: it delays the program's calls.
 * Lifetime: the structure, its counters and its code must stay as long as the process. */
struct fdr_counter_source {
    size_t size; /* sizeof(struct fdr_counter_source) */
    /* "pool": its counters are "pool:in-use", ... Without blanks, ':', ',' and '|', as the names of its counters. */
    const char *name;
    enum fdr_counter_scope scope;
    const struct fdr_counter *counter;
    uint32_t count; /* 1 to FDR_SOURCE_COUNTERS */

    /* Each of these may be NULL: all counters work; no descriptors; nothing to open; nothing to close. */
    /* Counts with counter `index` in the calling thread. Returns 0, or -errno and the reason: the component, the error,
     * a remedy. A counter that would stay 0 does not work. */
    int (*probe)(uint32_t index, char *why, size_t why_bytes);
    /* The number of descriptors that a handle with these counters has. fdr keeps all of them below a quarter of
     * RLIMIT_NOFILE. */
    uint32_t (*descriptors)(uint32_t wanted);
    /* Fills fd and state. Returns 0, or -errno with nothing open. May allocate. */
    int (*open)(struct fdr_counter_handle *handle);
    void (*close)(struct fdr_counter_handle *handle);

    /* Sets value[i] for each bit i of wanted; signed values as two's complement, FDR_F64 as bits. Counters since any
     * moment, as long as they never fall. 0, or -errno: this reading is left out. */
    int (*read)(struct fdr_counter_handle *handle, uint64_t *value);
};
/* Adds a source, before the recording that shall read it begins. Its counters are found before fdr's own of the same
 * name; "default" and "all" include them. Returns 0, also if it was added before. -EINVAL: incomplete, or a bad name.
 * -EEXIST: another source has this name. -ENOSPC: 22 were added before. Any thread, at any time but in a signal
 * handler: takes a lock of its own for a moment. */
FDR_API int fdr_counter_source_add(const struct fdr_counter_source *source);

/* ---- a provider ---- */

/* A provider: counters whose names are found at run time, and that only the counted thread itself can read, such as
 * PAPI's event sets (fdr/papi.h). fdr reads those named in FDR_PAPI as a source of FDR_COUNTER_OWN_THREAD. All
 * functions of a set are called in the thread that it counts. The structure must live as long as the process. */
struct fdr_counter_provider {
    size_t size;      /* sizeof(struct fdr_counter_provider) */
    const char *name; /* "PAPI" */
    /* Tries every counter; as fdr_counters_probe. */
    size_t (*probe)(struct fdr_counter_info *out, size_t most);
    /* Chooses counters. names: separated by commas. Fills at most `most` entries, in that order, with `works` and
     * `why`, and returns how many names there are. From now on open() counts those that work. */
    size_t (*choose)(const char *names, struct fdr_counter_info *out, size_t most);
    /* Begins to count the calling thread. Returns its set, or NULL if that fails. May allocate. */
    void *(*open)(void);
    /* Writes the values since open, of the counters that work, in the order of choose. 0 or -errno. Must not
     * allocate. */
    int (*read)(void *set, uint64_t *values);
    /* Ends the set, when the thread ends. */
    void (*close)(void *set);

    /* The last three are for samples taken each time an event has happened COUNT times (FDR_SAMPLE=EVENT/COUNT). A
     * provider that has none sets overflow_choose to NULL, or `size` to where it begins.
     *
     * Tries `event` with a count of `period` in the calling thread; reports `works` and `why`. If it works,
     * overflow_open uses it from now on; period 0: none. If FDR_PAPI names events too, choose was called before; if a
     * thread cannot have both, this function reports that. */
    void (*overflow_choose)(const char *event, uint64_t period, struct fdr_counter_info *out);
    /* Starts a set in the calling thread, which is to be sampled. *fd: its perf event, which counts and sends no
     * signals (no O_ASYNC). libfdr duplicates the descriptor, lets it send a signal of fdr's, and changes its period.
     * It reads the count there; of a group, the number of counts and then each, this event's first. Returns NULL, with
     * `why`, if that fails. May allocate. */
    void *(*overflow_open)(int *fd, char *why, size_t why_bytes);
    /* Ends the set, in the same thread, when that ends. */
    void (*overflow_close)(void *set);
};
/* Makes a provider known for the events of FDR_PAPI and FDR_SAMPLE, in place of libfdr-papi; call it before fdr_init.
 * NULL: libfdr-papi again. Returns 0; or -EINVAL, and nothing changes: `size` ends before overflow_choose, or the name
 * or one of the first five functions is missing. Takes no lock: one thread at a time, not in signal handlers, not while
 * a recording begins or runs. The threads of a recording keep the provider that it began with. */
FDR_API int fdr_counter_provide(const struct fdr_counter_provider *provider);

#ifdef __cplusplus
}
#endif
#endif
