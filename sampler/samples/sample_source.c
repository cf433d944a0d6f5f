/* SPDX-License-Identifier: MIT */
/* Sources of a thread's signals. CPU time: a perf event on the thread's software clock if allowed, because CPU timers
 * fire only at ticks of the kernel. Otherwise a timer on the thread's CPU clock. Wall time: a timer at a random moment
 * of each period, so that no periodic work of the program hides between samples.
 *
 * A period shorter than the cost of a sample would keep the thread in its handler for ever. The handler notices, and
 * doubles the period (`period_factor`). The signal does not queue, so none pile up. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fd/descriptor.h"
#include "base/fd/open_high.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "sampler/samples/own_overflow.h"
#include "sampler/samples/sample_setting.h"
#include "sampler/samples/sample_source.h"
#include "sampler/samples/sample_target.h"
#include "sampler/samples/sampler.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The CPU clock of any thread of this process. clock_getcpuclockid computes it for processes only. */
static clockid_t cpu_clock(uint32_t tid) { return (clockid_t)((~tid << 3) | 6u); }

uint64_t fdri_samples_source_cpu_ns(uint32_t tid)
{
    struct timespec t = {0, 0};
    clock_gettime(cpu_clock(tid), &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- perf events ---- */

static int open_event(uint32_t tid, bool kernel)
{
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.size = sizeof a;
    a.type = fdri_samples_sampler.settings.events ? fdri_samples_sampler.settings.type : PERF_TYPE_SOFTWARE;
    a.config = fdri_samples_sampler.settings.events ? fdri_samples_sampler.settings.config : PERF_COUNT_SW_TASK_CLOCK;
    a.sample_period = fdri_samples_sampler.settings.period_ns;
    a.disabled = 1;
    a.exclude_kernel = !kernel;
    a.exclude_hv = 1;
    a.wakeup_events = 1;
    return fdri_fd_perf_open(&a, (int)tid, -1);
}

void fdri_samples_source_probe(void)
{
    struct fdri_samples_sampler *s = &fdri_samples_sampler;
    struct rlimit files;
    uint32_t most = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 65536 ? (uint32_t)files.rlim_cur : 65536;
    fdri_fd_budget_give(s->fds); /* in a forked child: the parent's descriptors */
    s->fds = 0;
    s->fds_most = most / 4;
    s->perf = s->settings.provided; /* which was tried before */
    s->perf_kernel = false;
    if (s->settings.wall || s->settings.provided) return;
    int fd = open_event((uint32_t)syscall(SYS_gettid), true);
    s->perf_kernel = fd >= 0;
    if (fd < 0) fd = open_event((uint32_t)syscall(SYS_gettid), false);
    s->perf = fd >= 0;
    if (!s->perf && s->settings.events) {
        fdri_text_message("FDR_SAMPLE: %s cannot be counted here (perf_event_open: %s); using off", s->settings.name,
                          strerror(errno));
        s->settings.period_ns = 0;
    } else if (!s->perf)
        fdri_text_message("perf_event_open: %s; sampling by CPU timers, which most kernels run at 100 to 1000 Hz at "
                          "most (a sample's weight is the time that passed)",
                          strerror(errno));
    if (fd >= 0) close(fd);
}

/* Accepts the descriptor if it fits the table and the budget of the process; otherwise closes it. */
static bool accept_descriptor(struct fdri_samples_target *t, int fd)
{
    struct fdri_samples_sampler *s = &fdri_samples_sampler;
    if (fd < 0) return false;
    bool taken = (uint32_t)fd < s->by_fd_count && fdri_fd_budget_take(1);
    if (!taken) {
        static unsigned said;
        close(fd);
        if (fdri_text_once(&said))
            fdri_text_message("more threads than a quarter of the file descriptors (%u): the others are %s",
                              s->fds_most, s->settings.events ? "not sampled" : "sampled by timers");
        return false;
    }
    s->fds++;
    t->fd = fd;
    t->event = fdri_fd_perf_id(fd);
    fdri_atomic_store_release(&s->by_fd[fd], t); /* R:target - the event's number is stored */
    return true;
}

bool fdri_samples_source_there(const struct fdri_samples_target *t)
{
    return t->fd < 0 || fdri_fd_perf_id(t->fd) == t->event;
}

static void drop_fd(struct fdri_samples_target *t)
{
    if (t->fd < 0) return;
    fdri_atomic_store_relaxed(&fdri_samples_sampler.by_fd[t->fd], (struct fdri_samples_target *)NULL);
    bool there = fdri_samples_source_there(t);
    /* the event stays with its thread, and others of its group go on counting */
    if (there && fdri_samples_sampler.settings.provided) {
        uint64_t never = 1ull << 62;
        ioctl(t->fd, PERF_EVENT_IOC_PERIOD, &never);
        fcntl(t->fd, F_SETFL, fcntl(t->fd, F_GETFL) & ~O_ASYNC);
    }
    if (there) close(t->fd);
    t->fd = -1;
    fdri_samples_sampler.fds--;
    fdri_fd_budget_give(1);
}

/* All fields for the handler are set; from here on it may run. */
static void go_live(struct fdri_samples_target *t, enum fdri_samples_by source)
{
    t->source = source;
    fdri_atomic_or_acq_rel(&t->live, FDRI_SAMPLES_LIVE); /* R:target - pairs with L:target in sample_handler.c */
}

enum { WAITS = 1000, LOOKS_AT = 10 };

/* Ends the target: no handler begins, and this function waits for one that is inside. Otherwise that handler could arm
 * the timer of another thread. The wait is bounded: a stopped thread does not leave its handler, and a cancelled one
 * has ended. new_target does not use the target again before the handler has left. The timer that such a handler may
 * still arm is deleted, and the kernel refuses the call. Ids of timers are not used again for a long time. */
static void end_handlers(struct fdri_samples_target *t)
{
    int pid = fdri_system_getpid();
    fdri_atomic_and_acq_rel(&t->live, ~FDRI_SAMPLES_LIVE);                  /* L:target */
    for (int i = 0; i < WAITS && fdri_atomic_load_acquire(&t->live); i++) { /* A:target - the handler's stores */
        if (i >= LOOKS_AT && fdri_system_thread_has_ended(pid, (int)t->tid)) break;
        fdri_system_sleep(1000000);
    }
}

static bool start_event(struct fdri_samples_target *t)
{
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)t->tid};
    bool provided = fdri_samples_sampler.settings.provided;
    if (!fdri_samples_sampler.perf) return false;
    if (!accept_descriptor(t, provided ? fdri_samples_own_descriptor(t->tid)
                                       : open_event(t->tid, fdri_samples_sampler.perf_kernel)))
        return false;
    uint64_t period = fdri_samples_sampler.settings.period_ns * t->step;
    bool good = fcntl(t->fd, F_SETOWN_EX, &owner) == 0 && fcntl(t->fd, F_SETSIG, fdri_samples_sampler.signal) == 0 &&
                fcntl(t->fd, F_SETFL, fcntl(t->fd, F_GETFL) | O_ASYNC) == 0 &&
                (t->step == 1 || ioctl(t->fd, PERF_EVENT_IOC_PERIOD, &period) == 0);
    int fd = t->fd;
    if (good) go_live(t, FDRI_SAMPLES_BY_PERF);
    if (good && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0) return true;
    if (good) end_handlers(t);
    drop_fd(t);
    return false;
}

uint64_t fdri_samples_source_events(struct fdri_samples_target *t)
{
    uint64_t *word = t->window.word; /* the count; of a group: their number, then the counts, the leader's first */
    if (!fdri_samples_source_there(t)) return 0;
    /* no cancellation point: the interrupted thread would end at an arbitrary instruction */
    long n = fdri_system_read(t->fd, word, sizeof t->window.word) / (long)sizeof *word;
    return n == 1 ? word[0] : n > 1 ? word[1] : 0;
}

/* ---- timers ---- */

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

static uint64_t next_random(struct fdri_samples_target *t)
{
    t->random ^= t->random << 13; /* xorshift */
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return t->random >> 11;
}

/* A random moment in stretch t->armed. */
static uint64_t random_moment(struct fdri_samples_target *t)
{
    uint64_t length = fdri_samples_sampler.settings.period_ns * t->step * t->period_factor;
    return t->zero_ns + t->armed * length + (uint64_t)((unsigned __int128)next_random(t) * length >> 53);
}

static void arm_at(struct fdri_samples_target *t, uint64_t ns)
{
    struct itimerspec when = {.it_value = timespec_of(ns)};
    timer_settime(t->timer, TIMER_ABSTIME, &when, NULL);
}

/* Called only by the handler while its target is live. The helper writes zero_ns, armed, random and timer only before
 * that time and after end_handlers. In between, start_timer may arm the timer again for a moment that a late signal of
 * the previous timer has sampled. Then `at` is below `armed`, and the sample has weight 0.
 *
 * Each stretch has one moment to sample. If stretches passed while the thread could not be interrupted, this sample
 * counts for them, too, because the thread did not move. */
uint64_t fdri_samples_source_rearm(struct fdri_samples_target *t, uint64_t now_ns)
{
    uint64_t length = fdri_samples_sampler.settings.period_ns * t->step * t->period_factor,
             at = (now_ns - t->zero_ns) / length, first = t->armed;
    if (at == t->armed) {
        t->armed = at + 1;
        arm_at(t, random_moment(t));
    } else {
        t->armed = at;
        uint64_t due = at > first ? random_moment(t) : t->zero_ns + at * length;
        if (due <= now_ns) {
            t->armed++;
            due = random_moment(t);
        }
        arm_at(t, due);
    }
    return t->armed > first ? (t->armed - first) * t->step * t->period_factor : 0;
}

static struct itimerspec first_time(struct fdri_samples_target *t)
{
    struct timespec every = timespec_of(fdri_samples_sampler.settings.period_ns * t->step * t->period_factor);
    if (fdri_samples_sampler.settings.wall) return (struct itimerspec){.it_value = timespec_of(random_moment(t))};
    return (struct itimerspec){every, every};
}

static bool start_timer(struct fdri_samples_target *t)
{
    struct sigevent e;
    memset(&e, 0, sizeof e);
    e.sigev_notify = SIGEV_THREAD_ID;
    e.sigev_signo = fdri_samples_sampler.signal;
    e.sigev_value.sival_ptr = t;
    e.sigev_notify_thread_id = (pid_t)t->tid;
    if (timer_create(fdri_samples_sampler.settings.wall ? CLOCK_MONOTONIC : cpu_clock(t->tid), &e, &t->timer))
        return false;
    struct itimerspec when = first_time(t);
    timer_t timer = t->timer;
    go_live(t, FDRI_SAMPLES_BY_TIMER);
    timer_settime(timer, fdri_samples_sampler.settings.wall ? TIMER_ABSTIME : 0, &when, NULL);
    return true;
}

/* ---- both ---- */

void fdri_samples_source_rate(struct fdri_samples_target *t)
{
    uint64_t period = fdri_samples_sampler.settings.period_ns * t->step * t->period_factor;
    if (t->source == FDRI_SAMPLES_BY_PERF || t->source == FDRI_SAMPLES_BY_RING) {
        /* the program may have closed the event and reused the descriptor */
        if (fdri_samples_source_there(t)) ioctl(t->fd, PERF_EVENT_IOC_PERIOD, &period);
    } else if (t->source == FDRI_SAMPLES_BY_TIMER && fdri_samples_sampler.settings.wall) {
        t->zero_ns = fdri_clock_ns(CLOCK_MONOTONIC);
        t->armed = 0;
        arm_at(t, random_moment(t));
    } else if (t->source == FDRI_SAMPLES_BY_TIMER) {
        struct itimerspec every = {timespec_of(period), timespec_of(period)};
        timer_settime(t->timer, 0, &every, NULL);
    }
}

enum { CROWDED = 8 };

void fdri_samples_source_crowded(struct fdri_samples_target *t, uint64_t came_ns, uint64_t left_ns)
{
    bool crowded = came_ns - t->left_ns < left_ns - came_ns;
    t->left_ns = left_ns;
    t->crowded = crowded ? t->crowded + 1 : 0;
    if (t->crowded < CROWDED || t->period_factor > 1024) return;
    t->crowded = 0;
    t->period_factor *= 2;
    fdri_samples_source_rate(t);
}

bool fdri_samples_source_open(struct fdri_samples_target *t, uint64_t step)
{
    t->fd = -1;
    t->step = step;
    t->period_factor = 1;
    t->periods_accounted = fdri_samples_sampler.settings.events
                               ? 0
                               : fdri_samples_source_cpu_ns(t->tid) / fdri_samples_sampler.settings.period_ns;
    t->zero_ns = fdri_clock_ns(CLOCK_MONOTONIC);
    t->armed = 0;
    t->random = (t->zero_ns * 0x9E3779B97F4A7C15u ^ t->tid) | 1;
    /* The kernel cannot use the unwinder, so with `unwind` all threads get the handler. */
    bool ring = fdri_samples_sampler.perf && !fdri_samples_sampler.settings.provided &&
                (t->blocked || (!t->attached && fdri_samples_sampler.settings.stacks != FDRI_SAMPLES_UNWINDER));
    if (ring && fdri_samples_ring_open(t)) return true;
    if (start_event(t)) return true;
    return !fdri_samples_sampler.settings.events && start_timer(t);
}

void fdri_samples_source_close(struct fdri_samples_target *t)
{
    end_handlers(t);
    if (t->source == FDRI_SAMPLES_BY_TIMER) timer_delete(t->timer);
    if (t->source == FDRI_SAMPLES_BY_RING) fdri_samples_ring_close(t);
    drop_fd(t);
    t->source = FDRI_SAMPLES_BY_NOTHING;
}
