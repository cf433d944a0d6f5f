/* SPDX-License-Identifier: MIT */
/* Counters of the machine and the kernel beside the events: what is there, and how a library adds more.
 * docs/COUNTERS.md tells how they are switched on (FDR_COUNTERS, FDR_EDGE_COUNTERS, FDR_PAPI) and read. */
#ifndef FDR_COUNTERS_H
#define FDR_COUNTERS_H

#include <fdr/fdr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fdr_counter_info {
    char name[64]; /* "perf:page-faults" */
    char unit[16]; /* "ns", "bytes", ""; counts have none */
    enum fdr_metric_kind kind;
    int per_thread; /* 1: of one thread; 0: of the process or the machine */
    int works;      /* 1: tried here and it counts */
    char why[200];  /* where it does not: component, error, what stands in its way */
};

/* Tries every counter that is known here, in this process, and says which work. Fills at most `most` entries and
 * returns how many there are. Takes some milliseconds; may allocate and open descriptors, all given back.
 * Not for signal handlers; one thread at a time. */
FDR_API size_t fdr_counters_probe(struct fdr_counter_info *out, size_t most);

/* Counters that only the counted thread itself can read (PAPI event sets, see fdr/papi.h). They are read at the edges
 * of calls of regions with the rule `counters` (docs/FILTER.md). The structure lives as long as the process. */
struct fdr_counter_provider {
    size_t size;      /* sizeof(struct fdr_counter_provider) */
    const char *name; /* "PAPI" */
    /* What is known, tried; as fdr_counters_probe. */
    size_t (*probe)(struct fdr_counter_info *out, size_t most);
    /* Names, separated by commas, to counters: fills at most `most` entries, in order, with works and why, and returns
     * how many names there were. Those that work are what open() counts from now on. */
    size_t (*choose)(const char *names, struct fdr_counter_info *out, size_t most);
    /* In the thread that is to be counted: begin; NULL where that fails. May allocate. */
    void *(*open)(void);
    /* In the same thread: values since open, those that work, in the order of choose. 0 or -errno. Allocates
     * nothing. */
    int (*read)(void *set, uint64_t *values);
    /* In the same thread, at its end. */
    void (*close)(void *set);
    /* Samples whenever an event has happened a number of times (FDR_SAMPLE=EVENT/COUNT). NULL: there are none; a
     * structure that ends before this (size) has none. Tries `event` in the calling thread with `period`: works and
     * why. If it works, overflow_open makes it from now on; period 0: nothing overflows from now on. Where FDR_PAPI
     * names events, too, `choose` has been called before it: where both cannot be had in a thread, this says so. */
    void (*overflow_choose)(const char *event, uint64_t period, struct fdr_counter_info *out);
    /* In the thread that is to be sampled: a running set. *fd is its perf event, which counts and sends no signals (no
     * O_ASYNC); libfdr takes a descriptor of its own of it (dup), has a signal of its own sent, changes its period;
     * what it reads there is the count, or of a group the number of counts and then each, this event's first. NULL and
     * `why` where that fails. May allocate. */
    void *(*overflow_open)(int *fd, char *why, size_t why_bytes);
    /* In the same thread, at its end. */
    void (*overflow_close)(void *set);
};
/* Makes a provider known before fdr_init; it takes the place of libfdr-papi for what FDR_PAPI names. The structure is
 * not copied. 0, or -EINVAL where `size` does not reach overflow_choose, or the name or a function above that is
 * missing: then the one before stays. NULL: none again. Takes no lock: one thread at a time, not in signal handlers,
 * and not while a recording begins or runs (its threads go on with the provider it began with). */
FDR_API int fdr_counter_provide(const struct fdr_counter_provider *provider);

#ifdef __cplusplus
}
#endif
#endif
