/* SPDX-License-Identifier: MIT */
/* libfdr-papi: event sets of the calling thread. PAPI runs one at a time, so what is read (FDR_PAPI) and what overflows
 * (FDR_SAMPLE) are in one: who opens one finds the other's.
 *
 * PAPI makes the perf event and says when it is to overflow; the signal it would send is not used: it queues, which
 * ends programs that block it for long, it ends a program that calls exec while one is pending, and its number may be
 * the program's. So the event is found among the process's descriptors, silenced before it first counts, and libfdr has
 * its own signal sent: what is counted until then is the first sample's. It is the first of its set, which makes it the
 * leader of its group in the kernel. */
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
    int id;    /* PAPI_NULL: it runs no more */
    int users; /* who counts, who is sampled: both of this thread */
    int fd;    /* of the event that overflows; -1: none */
    pid_t pid;
    struct fdri_papi_held held[HELD];
    int holds;
    int code[FDRI_PAPI_MAX + 1], codes;
    int place[FDRI_PAPI_MAX], count; /* of what is read among them */
};
static __thread struct set *running;

/* ---- what it is made of ---- */

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

/* ---- the event that overflows ---- */

/* Given to PAPI, which would call it in its own handler. */
static void never(int set, void *address, long long vector, void *context)
{
    (void)set;
    (void)address;
    (void)vector;
    (void)context;
}

/* The descriptor in `folder` that is the newest perf event which signals this thread by `number`; -1: none newer than
 * `event`, which becomes its number. */
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
    int e = PAPI_overflow(set, fdri_papi_plan.overflow, fdri_papi_plan.period, 0, never);
    if (theirs) sigaction(number, &before, NULL);
    return e;
}

/* ---- one set ---- */

/* The program closed descriptors of it, and may have their numbers by now: PAPI would read and close the program's
 * files. */
static bool closed(const struct set *s) { return fdri_papi_lost(s->held, s->holds, false); }

static void stop(struct set *s)
{
    long long value[FDRI_PAPI_MAX + 1];
    if (running == s) running = NULL;
    if (s->id != PAPI_NULL && s->pid == getpid() && !closed(s)) {
        PAPI_stop(s->id, value);
        if (s->fd >= 0) PAPI_overflow(s->id, s->code[0], 0, 0, never);
        fdri_papi_drop_set(s->id);
    }
    s->id = PAPI_NULL;
}

void fdri_papi_retire(void)
{
    if (running) stop(running);
}

/* Which step failed, and PAPI's error; 0 where it is not PAPI's. */
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
            return !failed(f, s->code[i], i ? "PAPI_add_event, of FDR_PAPI's beside it" : "PAPI_add_event", e);
    return true;
}

/* Its first event overflows, and is silent. */
static bool overflows(struct set *s, struct failure *f)
{
    const PAPI_component_info_t *info = PAPI_get_component_info(PAPI_get_event_component(s->code[0]));
    int e;
    if (!info || !info->hardware_intr) return !failed(f, s->code[0], "no interrupts when its events overflow", 0);
    uint64_t number = 0;
    signalling(info->hardware_intr_sig, &number);
    if ((e = arm(s->id, info->hardware_intr_sig))) return !failed(f, s->code[0], "PAPI_overflow", e);
    s->fd = signalling(info->hardware_intr_sig, &number);
    if (s->fd >= 0 && !fcntl(s->fd, F_SETFL, fcntl(s->fd, F_GETFL) & ~O_ASYNC)) {
        s->held[s->holds++] = (struct fdri_papi_held){s->fd, true, number};
        return true;
    }
    return !failed(f, s->code[0], "its events overflow, but no perf event does", 0);
}

static bool fill(struct set *s, struct failure *f)
{
    int e;
    if (!add(s, f) || (fdri_papi_plan.period && !overflows(s, f))) return false;
    if ((e = PAPI_start(s->id))) return !failed(f, s->code[0], "PAPI_start", e);
    return true;
}

/* A running set by the plan; NULL and why. */
static struct set *make(struct failure *f)
{
    struct set *s = calloc(1, sizeof *s);
    failed(f, fdri_papi_plan.overflow, "PAPI_create_eventset", PAPI_ENOMEM);
    if (!s) return NULL;
    *s = (struct set){.fd = -1, .pid = getpid()};
    uint64_t since = fdri_papi_now();
    s->codes = fdri_papi_codes(s->code);
    s->id = fdri_papi_make_set(fdri_papi_plan.multiplexed);
    f->error = s->id;
    if (s->id >= 0 && fill(s, f)) {
        s->holds = fdri_papi_hold(since, s->held, s->holds, HELD);
        return running = s;
    }
    if (s->id >= 0) fdri_papi_drop_set(s->id);
    free(s);
    return NULL;
}

/* Does it hold what the plan reads? Then it is known where. */
static bool covers(struct set *s)
{
    const struct fdri_papi_plan *p = &fdri_papi_plan;
    bool all = s->pid == getpid();
    for (int i = 0; i < p->count; i++)
        all = (s->place[i] = fdri_papi_place(s->code, s->codes, p->event[i])) >= 0 && all;
    s->count = p->count;
    return all;
}

/* ---- as libfdr calls it ---- */

void *fdri_papi_open(void)
{
    struct failure f;
    int e = fdri_papi_begin();
    if (!e && running && !covers(running)) fdri_papi_retire();
    struct set *s = e ? NULL : running ? running : make(&f);
    if (s) s->users++;
    if (s) covers(s);
    pthread_mutex_unlock(&fdri_papi_lock);
    return s;
}

int fdri_papi_read(void *set, uint64_t *values)
{
    struct set *s = set;
    long long value[FDRI_PAPI_MAX + 1];
    if (s->id == PAPI_NULL || fdri_papi_lost(s->held, s->holds, true)) return -EBADF;
    if (PAPI_read(s->id, value) != PAPI_OK) return -EIO;
    for (int i = 0; i < s->count; i++) values[i] = (uint64_t)value[s->place[i]];
    return 0;
}

void fdri_papi_close(void *set)
{
    struct set *s = set;
    pthread_mutex_lock(&fdri_papi_lock);
    if (--s->users == 0) {
        bool ours = s->id != PAPI_NULL && !closed(s);
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
        fdri_papi_retire(); /* of a recording before */
        s = make(&f);
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
        if (period > INT_MAX) snprintf(out->why, sizeof out->why, "PAPI_overflow takes a count up to %d", INT_MAX);
        else snprintf(out->why, sizeof out->why, "FDR_PAPI's events are multiplexed, and such do not overflow");
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
