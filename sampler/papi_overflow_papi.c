/* SPDX-License-Identifier: MIT */
/* libfdr-papi: event sets of the calling thread that overflow. PAPI makes the perf event and says when it is to overflow; the
 * signal it would send is not used: it queues, which ends programs that block it for long, it ends a program that calls exec
 * while one is pending, and its number may be the program's. So the event is found among the process's descriptors, silenced
 * before it first counts, and libfdr has its own signal sent: what is counted until then is the first sample's. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <papi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/papi.h"

struct overflowing {
    int set, code;
};
static int chosen, period_; /* what sets are made of */

/* Given to PAPI, which would call it in its own handler. */
static void never(int set, void *address, long long vector, void *context)
{
    (void)set;
    (void)address;
    (void)vector;
    (void)context;
}

/* The descriptor in `folder` that is the newest perf event which signals this thread by `number`; -1: none newer than `event`,
 * which becomes its number. */
static int newest(DIR *folder, int number, uint64_t *event)
{
    int found = -1, self = (int)syscall(SYS_gettid);
    for (struct dirent *e; (e = readdir(folder));) {
        int fd = atoi(e->d_name);
        uint64_t id = 0;
        struct f_owner_ex owner;
        if (e->d_name[0] == '.' || fcntl(fd, F_GETSIG) != number) continue;
        if (fcntl(fd, F_GETOWN_EX, &owner) || owner.type != F_OWNER_TID || owner.pid != self) continue;
        if (ioctl(fd, PERF_EVENT_IOC_ID, &id) || id <= *event) continue;
        *event = id;
        found = fd;
    }
    return found;
}

static int signalling(int number, uint64_t *event)
{
    DIR *folder = opendir("/proc/self/fd");
    int fd = folder ? newest(folder, number, event) : -1;
    if (folder) closedir(folder);
    return fd;
}

/* The program may have a handler for the signal that PAPI takes for itself. */
static int arm(int set, int number)
{
    struct sigaction before;
    bool theirs = sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_DFL;
    int e = PAPI_overflow(set, chosen, period_, 0, never);
    if (theirs) sigaction(number, &before, NULL);
    return e;
}

static void drop(struct overflowing *o)
{
    PAPI_overflow(o->set, o->code, 0, 0, never);
    PAPI_cleanup_eventset(o->set);
    PAPI_destroy_eventset(&o->set);
}

/* A running set whose event is silent. NULL: `step` failed with PAPI's *error, 0 where it is not PAPI's. */
static struct overflowing *make(int *fd, const char **step, int *error)
{
    const PAPI_component_info_t *info = PAPI_get_component_info(PAPI_get_event_component(chosen));
    struct overflowing *o = malloc(sizeof *o);
    uint64_t event = 0;
    *error = o ? 0 : PAPI_ENOMEM;
    if (!o) return NULL;
    *o = (struct overflowing){PAPI_NULL, chosen};
    *step = "no interrupts when its events overflow";
    if (!info || !info->hardware_intr) goto failed;
    signalling(info->hardware_intr_sig, &event);
    if ((*step = "PAPI_create_eventset", *error = PAPI_create_eventset(&o->set))) goto failed;
    if ((*step = "PAPI_add_event", *error = PAPI_add_event(o->set, chosen))) goto with_set;
    if ((*step = "PAPI_overflow", *error = arm(o->set, info->hardware_intr_sig))) goto with_set;
    *step = "its events overflow, but no perf event does";
    *fd = signalling(info->hardware_intr_sig, &event);
    if (*fd < 0 || fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) & ~O_ASYNC)) goto with_set;
    if ((*step = "PAPI_start", *error = PAPI_start(o->set))) goto with_set;
    return o;
with_set:
    drop(o);
failed:
    free(o);
    return NULL;
}

void *fdri_papi_overflow_open(int *fd, char *why, size_t why_bytes)
{
    const char *step = "PAPI_register_thread";
    int e = fdri_papi_begin();
    struct overflowing *o = NULL;
    if (!e) o = make(fd, &step, &e);
    pthread_mutex_unlock(&fdri_papi_lock);
    if (!o && e) snprintf(why, why_bytes, "%s (component %s): %s", step, fdri_papi_component(chosen), PAPI_strerror(e));
    else if (!o) snprintf(why, why_bytes, "component %s: %s", fdri_papi_component(chosen), step);
    return o;
}

void fdri_papi_overflow_close(void *set)
{
    struct overflowing *o = set;
    long long value[1];
    pthread_mutex_lock(&fdri_papi_lock);
    PAPI_stop(o->set, value);
    drop(o);
    PAPI_unregister_thread();
    pthread_mutex_unlock(&fdri_papi_lock);
    free(o);
}

void fdri_papi_overflow_choose(const char *event, uint64_t period, struct fdr_counter_info *out)
{
    int fd, e = fdri_papi_begin();
    *out = (struct fdr_counter_info){.kind = FDR_METRIC_COUNTER, .per_thread = 1};
    if (e) snprintf(out->why, sizeof out->why, "PAPI_library_init: %s", PAPI_strerror(e));
    else chosen = fdri_papi_describe(out, event, (int)strlen(event));
    period_ = (int)period;
    pthread_mutex_unlock(&fdri_papi_lock);
    if (out->works && period > INT_MAX) {
        snprintf(out->why, sizeof out->why, "PAPI_overflow takes a count up to %d", INT_MAX);
        out->works = 0;
    }
    if (!out->works) return;
    void *tried = fdri_papi_overflow_open(&fd, out->why, sizeof out->why);
    if (tried) fdri_papi_overflow_close(tried);
    else out->works = 0;
}
