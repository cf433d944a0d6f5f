/* SPDX-License-Identifier: MIT */
/* Counters of the machine and the kernel: which of them work here, and how a library adds counters of its own.
 * docs/COUNTERS.md tells how they are switched on (FDR_COUNTERS, FDR_EDGE_COUNTERS, FDR_PAPI) and read. */
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

/* A provider: counters that only the counted thread itself can read, such as PAPI's event sets (fdr/papi.h). fdr reads
 * them at enter and leave of the calls that FDR_EDGE_REGIONS or the rule `counters` chooses (docs/COUNTERS.md). All
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
