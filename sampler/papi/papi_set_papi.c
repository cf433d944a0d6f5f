/* SPDX-License-Identifier: MIT */
/* libfdr-papi: event sets of the calling thread. PAPI runs one set at a time, so it contains both the read events
 * (FDR_PAPI) and the overflowing one (FDR_SAMPLE); both users share it.
 *
 * PAPI opens the perf event and configures the overflow, but its signal is not used. That signal queues, which ends
 * programs that block it for long. It ends a program that calls exec while one is pending. And the program may use its
 * number. So fdr finds the event among the process's descriptors, silences it before it counts, and libfdr has its own
 * signal sent. The counts until then belong to the first sample. The event is the first of its set, so it leads its
 * group in the kernel. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
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

#include "sampler/papi/papi.h"

enum { HELD = FDRI_PAPI_MAX + 2 };
struct set {
    int id;    /* PAPI_NULL: stopped */
    int users; /* counting, sampling: both of this thread */
    int fd;    /* of the overflowing event; -1: none */
    pid_t pid;
    struct fdri_papi_held held[HELD];
    int held_count;
    int code[FDRI_PAPI_MAX + 1], codes;
    int place[FDRI_PAPI_MAX], count; /* of the read events among `code` */
};
static __thread struct set *running;

/* ---- contents of a set ---- */

int fdri_papi_place(const int *code, int count, int event)
{
    for (int i = 0; i < count; i++)
        if (code[i] == event) return i;
    return -1;
}

int fdri_papi_codes(int *code)
{
    const struct fdri_papi_plan *p = &fdri_papi_plan;
    int n = 0;
    if (p->period) code[n++] = p->overflow;
    for (int i = 0; i < p->count; i++)
        if (fdri_papi_place(code, n, p->event[i]) < 0) code[n++] = p->event[i];
    return n;
}

int fdri_papi_make_set(bool multiplex)
{
    int set = PAPI_NULL, e = PAPI_create_eventset(&set);
    if (e) return e;
    if (multiplex) {
        e = PAPI_assign_eventset_component(set, 0);
        if (!e) e = PAPI_set_multiplex(set);
    }
    if (!e) return set;
    PAPI_destroy_eventset(&set);
    return e;
}

void fdri_papi_drop_set(int set)
{
    PAPI_cleanup_eventset(set);
    PAPI_destroy_eventset(&set);
}

/* ---- the overflowing event ---- */

/* For PAPI, whose own handler would call it. */
static void ignore_overflow(int set, void *address, long long vector, void *context)
{
    (void)set;
    (void)address;
    (void)vector;
    (void)context;
}

/* Finds the newest perf event in `folder` that signals this thread with signal `number` and is newer than *event.
 * Returns its descriptor and sets *event to its number; -1: none. */
static int newest_perf_event(DIR *folder, int number, uint64_t *event)
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
    int fd = folder ? newest_perf_event(folder, number, event) : -1;
    if (folder) closedir(folder);
    return fd;
}

/* Starts the overflow, and restores a handler that the program has for PAPI's signal. */
static int start_overflow(int set, int number)
{
    struct sigaction before;
    bool theirs = sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_DFL;
    int e = PAPI_overflow(set, fdri_papi_plan.overflow, fdri_papi_plan.period, 0, ignore_overflow);
    if (theirs) sigaction(number, &before, NULL);
    return e;
}

/* ---- one set ---- */

/* True if the program closed descriptors of the set. PAPI must not touch it any more: it would read and close files of
 * the program. */
static bool descriptors_lost(const struct set *s) { return fdri_papi_lost(s->held, s->held_count, false); }

static void stop(struct set *s)
{
    long long value[FDRI_PAPI_MAX + 1];
    if (running == s) running = NULL;
    if (s->id != PAPI_NULL && s->pid == getpid() && !descriptors_lost(s)) {
        PAPI_stop(s->id, value);
        if (s->fd >= 0) PAPI_overflow(s->id, s->code[0], 0, 0, ignore_overflow);
        fdri_papi_drop_set(s->id);
    }
    s->id = PAPI_NULL;
}

void fdri_papi_retire(void)
{
    if (running) stop(running);
}

/* The failed step, and PAPI's error; 0: the error is not PAPI's. */
struct failure {
    const char *step;
    int error, code;
};

static bool failed(struct failure *f, int code, const char *step, int error)
{
    *f = (struct failure){step, error, code};
    return true;
}

static bool add(struct set *s, struct failure *f)
{
    for (int i = 0, e; i < s->codes; i++)
        if ((e = PAPI_add_event(s->id, s->code[i])))
            return !failed(f, s->code[i], i ? "PAPI_add_event for an event of FDR_PAPI beside it" : "PAPI_add_event",
                           e);
    return true;
}

/* Makes the first event overflow, without a signal. */
static bool overflows(struct set *s, struct failure *f)
{
    const PAPI_component_info_t *info = PAPI_get_component_info(PAPI_get_event_component(s->code[0]));
    int e;
    if (!info || !info->hardware_intr) return !failed(f, s->code[0], "it has no interrupts at an overflow", 0);
    uint64_t number = 0;
    signalling(info->hardware_intr_sig, &number);
    if ((e = start_overflow(s->id, info->hardware_intr_sig))) return !failed(f, s->code[0], "PAPI_overflow", e);
    s->fd = signalling(info->hardware_intr_sig, &number);
    if (s->fd >= 0 && !fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) & ~O_ASYNC)) {
        s->held[s->held_count++] = (struct fdri_papi_held){s->fd, true, number};
        return true;
    }
    return !failed(f, s->code[0], "it does not use perf events for an overflow", 0);
}

static bool add_events(struct set *s, struct failure *f)
{
    int e;
    if (!add(s, f) || (fdri_papi_plan.period && !overflows(s, f))) return false;
    if ((e = PAPI_start(s->id))) return !failed(f, s->code[0], "PAPI_start", e);
    return true;
}

/* Makes and starts a set by the plan; NULL: the reason is in *f. */
static struct set *make_set(struct failure *f)
{
    struct set *s = calloc(1, sizeof *s);
    failed(f, fdri_papi_plan.overflow, "PAPI_create_eventset", PAPI_ENOMEM);
    if (!s) return NULL;
    *s = (struct set){.fd = -1, .pid = getpid()};
    uint64_t since = fdri_papi_now();
    s->codes = fdri_papi_codes(s->code);
    s->id = fdri_papi_make_set(fdri_papi_plan.multiplexed);
    f->error = s->id;
    if (s->id >= 0 && add_events(s, f)) {
        s->held_count = fdri_papi_hold(since, s->held, s->held_count, HELD);
        return running = s;
    }
    if (s->id >= 0) fdri_papi_drop_set(s->id);
    free(s);
    return NULL;
}

/* True if the set contains all events that the plan reads. Sets their places. */
static bool covers(struct set *s)
{
    const struct fdri_papi_plan *p = &fdri_papi_plan;
    bool all = s->pid == getpid();
    for (int i = 0; i < p->count; i++)
        all = (s->place[i] = fdri_papi_place(s->code, s->codes, p->event[i])) >= 0 && all;
    s->count = p->count;
    return all;
}

/* ---- the interface to libfdr ---- */

void *fdri_papi_open(void)
{
    struct failure f;
    int e = fdri_papi_begin();
    if (!e && running && !covers(running)) fdri_papi_retire();
    struct set *s = e ? NULL : running ? running : make_set(&f);
    if (s) s->users++;
    if (s) covers(s);
    pthread_mutex_unlock(&fdri_papi_lock);
    return s;
}

int fdri_papi_read(void *set, uint64_t *values)
{
    struct set *s = set;
    long long value[FDRI_PAPI_MAX + 1];
    if (s->id == PAPI_NULL || fdri_papi_lost(s->held, s->held_count, true)) return -EBADF;
    if (PAPI_read(s->id, value) != PAPI_OK) return -EIO;
    for (int i = 0; i < s->count; i++) values[i] = (uint64_t)value[s->place[i]];
    return 0;
}

void fdri_papi_close(void *set)
{
    struct set *s = set;
    pthread_mutex_lock(&fdri_papi_lock);
    if (--s->users == 0) {
        bool ours = s->id != PAPI_NULL && !descriptors_lost(s);
        stop(s);
        if (ours) PAPI_unregister_thread();
        free(s);
    }
    pthread_mutex_unlock(&fdri_papi_lock);
}

void *fdri_papi_overflow_open(int *fd, char *why, size_t why_bytes)
{
    struct failure f = {"PAPI_register_thread", fdri_papi_begin(), fdri_papi_plan.overflow};
    struct set *s = NULL;
    if (!f.error) {
        fdri_papi_retire(); /* of an earlier recording */
        s = make_set(&f);
    }
    if (s) s->users++;
    pthread_mutex_unlock(&fdri_papi_lock);
    if (s) *fd = s->fd;
    else if (f.error)
        snprintf(why, why_bytes, "%s (component %s): %s", f.step, fdri_papi_component(f.code), PAPI_strerror(f.error));
    else snprintf(why, why_bytes, "component %s: %s", fdri_papi_component(f.code), f.step);
    return s;
}

static void describe(const char *event, uint64_t period, struct fdr_counter_info *out)
{
    struct fdri_papi_plan *p = &fdri_papi_plan;
    int e = fdri_papi_begin();
    p->period = 0;
    if (e) snprintf(out->why, sizeof out->why, "PAPI_library_init: %s", PAPI_strerror(e));
    else fdri_papi_retire();
    if (!e && period) p->overflow = fdri_papi_describe(out, event, (int)strlen(event));
    if (out->works && (period > INT_MAX || p->multiplexed)) {
        if (period > INT_MAX) snprintf(out->why, sizeof out->why, "PAPI_overflow takes at most %d as count", INT_MAX);
        else
            snprintf(out->why, sizeof out->why, "the events of FDR_PAPI are multiplexed; PAPI allows no overflow then");
        out->works = 0;
    }
    if (out->works) p->period = (int)period;
    pthread_mutex_unlock(&fdri_papi_lock);
}

void fdri_papi_overflow_choose(const char *event, uint64_t period, struct fdr_counter_info *out)
{
    int fd;
    *out = (struct fdr_counter_info){.kind = FDR_METRIC_COUNTER, .per_thread = 1};
    describe(event, period, out);
    void *tried = out->works ? fdri_papi_overflow_open(&fd, out->why, sizeof out->why) : NULL;
    out->works = tried != NULL;
    if (tried) fdri_papi_close(tried);
    else fdri_papi_plan.period = 0;
}
