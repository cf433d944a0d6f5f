/* SPDX-License-Identifier: MIT */
/* libfdr-papi: PAPI's events as counters. Neighbours: sampler/counters/ loads it through <fdr/counters.h>. Files:
 *
 *   papi_papi.c         which events work            papi_set_papi.c     event sets of a thread
 *   papi_descriptors.c  their descriptors            papi_provider.c     the interface to libfdr
 *   papi_none.c, papi_set_none.c                     replacements in a build without PAPI */
#ifndef FDRI_SAMPLER_PAPI_PAPI_H
#define FDRI_SAMPLER_PAPI_PAPI_H

#include <fdr/counters.h>
#include <pthread.h>
#include <stdbool.h>

enum { FDRI_PAPI_MAX = 16 };

extern pthread_mutex_t fdri_papi_lock;
/* The contents of the threads' sets. Changes only under the lock. */
struct fdri_papi_plan {
    int event[FDRI_PAPI_MAX], count; /* read (FDR_PAPI) */
    bool multiplexed;                /* more than the processor counts at once */
    int overflow, period;            /* the event that overflows (FDR_SAMPLE); period 0: none */
};
extern struct fdri_papi_plan fdri_papi_plan;

/* ---- papi_papi.c; the lock is held; begin takes it ---- */
/* Takes the lock and makes PAPI ready for this thread. Returns 0 or PAPI's error. A forked child makes a new lock
 * first, because a thread of the parent may hold the old one. */
int fdri_papi_begin(void);
/* Fills *info on an event and counts with it. Returns its code; info->works, or info->why not. */
int fdri_papi_describe(struct fdr_counter_info *info, const char *name, int length);
/* The name of an event's component, for messages. */
const char *fdri_papi_component(int code);

/* ---- papi_set_papi.c; the lock is held ---- */
/* The events of a set by the plan, each once, the overflowing one first. Returns their number, at most FDRI_PAPI_MAX +
 * 1. */
int fdri_papi_codes(int *code);
/* The index of `event` among them, or -1. */
int fdri_papi_place(const int *code, int count, int event);
/* Makes an empty set, multiplexed if asked. Negative: PAPI's error. */
int fdri_papi_make_set(bool multiplex);
void fdri_papi_drop_set(int set);
/* Stops the calling thread's running set. Its user then reads -EBADF. */
void fdri_papi_retire(void);

/* ---- papi_descriptors.c ---- */
/* A perf event that PAPI has open for a set of the calling thread. */
struct fdri_papi_held {
    int fd;
    bool leads;      /* it is read, and the others of its group with it */
    uint64_t number; /* identifies the event: `fd` may be another file by now */
};
/* The number of the newest perf event; 0: there are none. */
uint64_t fdri_papi_now(void);
/* Adds the perf events opened after `since`, while the set was made, to the `count` known ones. Returns the new count.
 * Not for handlers. */
int fdri_papi_hold(uint64_t since, struct fdri_papi_held *held, int count, int most);
/* True if one of them was closed; with `reading`, if one of those that are read was. Allocates nothing. */
bool fdri_papi_lost(const struct fdri_papi_held *held, int count, bool reading);

/* The functions of struct fdr_counter_provider. */
size_t fdri_papi_probe(struct fdr_counter_info *out, size_t most);
size_t fdri_papi_choose(const char *names, struct fdr_counter_info *out, size_t most);
void *fdri_papi_open(void);
int fdri_papi_read(void *set, uint64_t *values);
void fdri_papi_close(void *set);
void fdri_papi_overflow_choose(const char *event, uint64_t period, struct fdr_counter_info *out);
void *fdri_papi_overflow_open(int *fd, char *why, size_t why_bytes);

#endif
