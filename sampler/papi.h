/* SPDX-License-Identifier: MIT */
/* What the files of libfdr-papi share: papi_papi.c (event sets that count), papi_overflow_papi.c (sets that overflow), what
 * stands in their place without PAPI (papi_none.c, papi_overflow_none.c), papi_provider.c (what libfdr calls). */
#ifndef FDR_SAMPLER_PAPI_H
#define FDR_SAMPLER_PAPI_H

#include <fdr/counters.h>
#include <pthread.h>

extern pthread_mutex_t fdri_papi_lock;
/* Takes the lock, in a forked child one that nobody there can hold, and makes PAPI ready for this thread: 0 or PAPI's error. */
int fdri_papi_begin(void);
/* Fills in what is to be known of an event, tries whether it counts: its code; info->works, and info->why not. Lock held. */
int fdri_papi_describe(struct fdr_counter_info *info, const char *name, int length);
/* The component an event is of, for messages. */
const char *fdri_papi_component(int code);

/* As in struct fdr_counter_provider. */
size_t fdri_papi_probe(struct fdr_counter_info *out, size_t most);
size_t fdri_papi_choose(const char *names, struct fdr_counter_info *out, size_t most);
void *fdri_papi_open(void);
int fdri_papi_read(void *set, uint64_t *values);
void fdri_papi_close(void *set);
void fdri_papi_overflow_choose(const char *event, uint64_t period, struct fdr_counter_info *out);
void *fdri_papi_overflow_open(int *fd, char *why, size_t why_bytes);
void fdri_papi_overflow_close(void *set);

#endif
