/* SPDX-License-Identifier: MIT */
/* Overflowing counters that only the counted thread can open (PAPI's event sets). A thread opens its set when it
 * attaches; the set sends no signal yet. The helper finds the set here and duplicates the descriptor of its event. From
 * then on the event serves like a perf event of the helper, with the same signal, handler, weights and thinning. The
 * thread closes its set when it ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd/descriptor.h"
#include "base/fd/open_high.h"
#include "base/text/message.h"
#include "sampler/counters/counter.h"
#include "sampler/samples/own_overflow.h"
#include "sampler/samples/sample_setting.h"
#include "sampler/samples/sampler.h"

struct own {
    uint32_t tid, round; /* number of the recording for which it was made */
    int fd;
    uint64_t event; /* its number: `fd` may be another file by now */
    void *set;      /* the provider's set */
    const struct fdr_counter_provider *provider;
    struct own *next, **link;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct own *all;
static uint32_t round_;
static const struct fdr_counter_provider *provider;
static pthread_key_t key;
static bool have_key;

/* ---- in the counted thread ---- */

/* For the thread itself. A set whose descriptor the program closed is not closed again: the number may be a file of the
 * program. */
static void drop(struct own *o)
{
    pthread_mutex_lock(&lock);
    *o->link = o->next;
    if (o->next) o->next->link = o->link;
    bool there = fdri_fd_perf_id(o->fd) == o->event;
    pthread_mutex_unlock(&lock);
    if (there) o->provider->overflow_close(o->set);
    fdri_fd_budget_give(1);
    free(o);
}

static void thread_ends(void *p) { drop(p); }
/* Closes the calling thread's set of an earlier recording, because a thread runs one set at a time. */
static void drop_last(void)
{
    struct own *o = have_key ? pthread_getspecific(key) : NULL;
    if (!o) return;
    pthread_setspecific(key, NULL);
    drop(o);
}
static void make_key(void) { have_key = pthread_key_create(&key, thread_ends) == 0; }

static struct own *open_overflow(uint32_t tid, char *why, size_t why_bytes)
{
    struct own *o = calloc(1, sizeof *o);
    snprintf(why, why_bytes, "%s", strerror(ENOMEM));
    if (!o) return NULL;
    bool room = fdri_fd_budget_take(1);
    snprintf(why, why_bytes, "a quarter of RLIMIT_NOFILE is in use");
    o->tid = tid;
    o->round = round_;
    o->provider = provider;
    struct fdri_fd_placeholders low;
    fdri_fd_fill_low(&low); /* the provider opens perf events */
    o->set = room ? provider->overflow_open(&o->fd, why, why_bytes) : NULL;
    fdri_fd_clear_low(&low);
    o->event = o->set ? fdri_fd_perf_id(o->fd) : 0;
    if (o->event) return o;
    if (o->set) provider->overflow_close(o->set);
    if (room) fdri_fd_budget_give(1);
    free(o);
    return NULL;
}

static void say_not(uint32_t tid, const char *why)
{
    static unsigned said;
    if (fdri_text_once(&said))
        fdri_text_message("FDR_SAMPLE: %s cannot be counted in thread %u: %s; it is not sampled",
                          fdri_samples_sampler.settings.name, tid, why);
}

void fdri_samples_own_begin(uint32_t tid, const sigset_t *blocked)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char why[FDRI_COUNTERS_WHY_BYTES] = "no pthread key is free";
    if (!fdri_samples_sampler.settings.provided) return;
    if (fdri_counters_in_handler(blocked)) {
        say_not(tid, "its first event comes from a signal handler, which may have interrupted the allocator");
        return;
    }
    pthread_once(&once, make_key);
    drop_last();
    struct own *o = have_key ? open_overflow(tid, why, sizeof why) : NULL;
    if (!o) {
        say_not(tid, why);
        return;
    }
    pthread_setspecific(key, o);
    pthread_mutex_lock(&lock);
    o->next = all;
    o->link = &all;
    if (all) all->link = &o->next;
    all = o;
    pthread_mutex_unlock(&lock);
}

/* ---- in the helper ---- */

static struct own *of(uint32_t tid)
{
    struct own *o = all;
    while (o && (o->tid != tid || o->round != round_)) o = o->next;
    return o;
}

bool fdri_samples_own_there(uint32_t tid)
{
    pthread_mutex_lock(&lock);
    struct own *o = of(tid);
    bool there = o && fdri_fd_perf_id(o->fd) == o->event;
    pthread_mutex_unlock(&lock);
    return there;
}

int fdri_samples_own_descriptor(uint32_t tid)
{
    pthread_mutex_lock(&lock);
    struct own *o = of(tid);
    int fd = -1;
    errno = ENOENT;
    if (o && fdri_fd_perf_id(o->fd) == o->event) fd = fcntl(o->fd, F_DUPFD_CLOEXEC, FDRI_FD_LOW_COUNT);
    pthread_mutex_unlock(&lock);
    return fd;
}

/* ---- start, fork ---- */

/* The provider puts read counters (FDR_PAPI) and the overflowing one into one set, so it must know both before a thread
 * opens its set. */
static void tell_provider(const struct fdri_samples_settings *how, const char *papi, struct fdr_counter_info *info)
{
    static struct fdr_counter_info read[16];
    struct fdr_counter_info none;
    provider->overflow_choose("", 0, &none);
    provider->choose(papi, read, 16);
    provider->overflow_choose(how->name, how->period_ns, info);
}

void fdri_samples_own_none(void)
{
    struct fdr_counter_info none;
    if (provider) provider->overflow_choose("", 0, &none);
}

bool fdri_samples_own_choose(struct fdri_samples_settings *how, const char *papi)
{
    struct fdr_counter_info info = {.works = 0};
    const struct fdr_counter_provider *p = fdri_counters_provider(info.why, sizeof info.why);
    round_++;
    drop_last();
    bool can = p && p->size >= sizeof *p && p->overflow_choose;
    if (p && !can) snprintf(info.why, sizeof info.why, "%s offers no overflow interrupts", p->name);
    if (can) provider = p;
    if (can) tell_provider(how, papi, &info);
    if (!info.works) {
        fdri_text_message(
            "FDR_SAMPLE: the overflow of %s is no source of samples here (%s); using off: no samples are taken",
            how->name, info.why);
        return false;
    }
    fdri_counters_in_handler_warm();
    fdri_text_message("FDR_SAMPLE: %s counts each thread by itself: threads that record are sampled, others are not",
                      provider->name);
    return true;
}

/* In a child these sets count threads of the parent. Their descriptors stay as they are, because the provider knows
 * their numbers. */
void fdri_samples_own_fork(int phase)
{
    if (phase == 0) pthread_mutex_lock(&lock);
    else if (phase == 3) pthread_mutex_init(&lock, NULL);
    else if (phase == 2) {
        while (all) {
            struct own *o = all;
            all = o->next;
            free(o);
            fdri_fd_budget_give(1);
        }
        if (have_key) pthread_setspecific(key, NULL);
    }
    if (phase == 1 || phase == 2) pthread_mutex_unlock(&lock);
}
