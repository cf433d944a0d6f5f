/* SPDX-License-Identifier: MIT */
/* libfdr-papi: PAPI's events as counters.
 * Neighbours: sampler/counters/ loads it through <fdr/counters.h>.
 *
 *   papi_papi.c      which events work            papi_set_papi.c   event sets of a thread
 *   papi_descriptors.c      their descriptors            papi_provider.c   what libfdr calls
 *   papi_none.c, papi_set_none.c                  what stands in their place without PAPI */
#ifndef FDRI_SAMPLER_PAPI_PAPI_H
#define FDRI_SAMPLER_PAPI_PAPI_H

#include <fdr/counters.h>
#include <pthread.h>
#include <stdbool.h>

enum { FDRI_PAPI_MAX = 16 };

extern pthread_mutex_t fdri_papi_lock;
/* What a thread's set is made of; changes with the lock held. */
struct fdri_papi_plan {
    int event[FDRI_PAPI_MAX], count; /* that are read (FDR_PAPI) */
    bool multiplexed;                /* they are more than the processor counts at once */
    int overflow, period;            /* the one that overflows (FDR_SAMPLE); period 0: none */
};
extern struct fdri_papi_plan fdri_papi_plan;

/* ---- papi_papi.c; the lock is held, but in begin, which takes it ---- */
/* In a forked child it takes one that nobody there can hold. Makes PAPI ready for this thread: 0 or PAPI's error. */
int fdri_papi_begin(void);
/* Fills in what is to be known of an event, tries whether it counts: its code; info->works, and info->why not. */
int fdri_papi_describe(struct fdr_counter_info *info, const char *name, int length);
/* The component an event is of, for messages. */
const char *fdri_papi_component(int code);

/* ---- papi_set_papi.c; the lock is held ---- */
/* The events of a set by the plan, each once, the one that overflows first: how many (FDRI_PAPI_MAX + 1 at most). */
int fdri_papi_codes(int *code);
/* Where `event` is among them; -1. */
int fdri_papi_place(const int *code, int count, int event);
/* An empty set, for multiplexing if need be. Negative: PAPI's error. */
int fdri_papi_make_set(bool multiplex);
void fdri_papi_drop_set(int set);
/* The calling thread has no set that runs any more; who has it reads -EBADF. */
void fdri_papi_retire(void);

/* ---- papi_descriptors.c ---- */
/* A perf event that PAPI holds for a set of the calling thread. */
struct fdri_papi_held {
    int fd;
    bool leads;      /* it is read; others only with it */
    uint64_t number; /* whether `fd` is still that event */
};
/* The number of the newest perf event; 0: there are none. */
uint64_t fdri_papi_now(void);
/* Adds to the `count` that are known those that came after `since`, while the set was made: how many there are now. Not
 * for handlers. */
int fdri_papi_hold(uint64_t since, struct fdri_papi_held *held, int count, int most);
/* One of them (`reading`: of those that are read) is not there any more. Allocates nothing. */
bool fdri_papi_lost(const struct fdri_papi_held *held, int count, bool reading);

/* As in struct fdr_counter_provider. */
size_t fdri_papi_probe(struct fdr_counter_info *out, size_t most);
size_t fdri_papi_choose(const char *names, struct fdr_counter_info *out, size_t most);
void *fdri_papi_open(void);
int fdri_papi_read(void *set, uint64_t *values);
void fdri_papi_close(void *set);
void fdri_papi_overflow_choose(const char *event, uint64_t period, struct fdr_counter_info *out);
void *fdri_papi_overflow_open(int *fd, char *why, size_t why_bytes);

#endif
