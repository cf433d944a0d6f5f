/* SPDX-License-Identifier: MIT */
/* One sample, in the signal handler of the sampled thread. All calls are async-signal-safe: clocks, reads of the stack
 * through the kernel, fdr_sample, re-arming.
 *
 * The signal is SIGURG. Its default action is to be ignored, so a pending one is harmless when the program calls exec
 * or removes the handler. It does not queue, so the kernel never drops one; for queued signals it sends SIGIO instead,
 * which ends programs. SIGURG from other sources goes on to the previous handler. */
#define _GNU_SOURCE
#include <errno.h>
#include <fdr/fdr.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/stack/context.h"
#include "base/system/chained_handler.h"
#include "base/system/signal_mask.h"
#include "sampler/samples/frame_walk.h"
#include "sampler/samples/sample_setting.h"
#include "sampler/samples/sample_source.h"
#include "sampler/samples/sample_target.h"
#include "sampler/samples/sampler.h"

struct fdri_samples_sampler fdri_samples_sampler;
static _Thread_local uint32_t own_tid;

/* ---- the stack ---- */

static void stack_of(struct fdri_samples_target *t, const struct fdri_stack_context *c)
{
    struct fdri_samples_frames *f = &t->frames;
    f->count = 0;
    f->cut = false;
    if (fdri_samples_sampler.settings.stacks == FDRI_SAMPLES_FRAME_POINTERS)
        fdri_samples_walk(f, &t->window, c, &t->calls);
    else if (fdri_samples_sampler.settings.stacks == FDRI_SAMPLES_UNWINDER) fdri_samples_unwind(f, c->pc);
}

/* ---- one sample ---- */

/* The number of periods since the last sample. A clock or the event counter gives it, not the number of signals. So the
 * weights add up to the whole time, even if signals were delayed or lost. */
static uint64_t periods_passed(struct fdri_samples_target *t)
{
    if (fdri_samples_sampler.settings.wall) return fdri_samples_source_rearm(t, fdri_clock_ns(CLOCK_MONOTONIC));
    if (fdri_samples_sampler.settings.events) {
        uint64_t units = fdri_samples_source_events(t) / fdri_samples_sampler.settings.period_ns;
        return units > t->periods_accounted ? units - t->periods_accounted : 0;
    }
    return fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID) / fdri_samples_sampler.settings.period_ns - t->periods_accounted;
}

static void take_sample(struct fdri_samples_target *t, const ucontext_t *context)
{
    struct fdri_stack_context c = fdri_stack_context_of(context);
    uint64_t weight = periods_passed(t);
    if (!weight) return;
    stack_of(t, &c);
    struct fdr_look look = {.weight = weight,
                            .pc = c.pc,
                            .stack = t->frames.address,
                            .stack_count = t->frames.count,
                            .flags = t->frames.cut ? FDR_LOOK_CUT : 0};
    uint64_t step = fdr_sample(t->stream, &look);
    if (!step) return;
    t->periods_accounted += weight;
    fdri_atomic_bump_relaxed(&t->taken, 1u);
    if (step != t->step) {
        t->step = step;
        fdri_samples_source_rate(t);
    }
}

/* The target whose signal this is; NULL: the signal is not fdr's. */
static struct fdri_samples_target *target_of(const siginfo_t *info)
{
    if (info->si_code == SI_TIMER)
        return fdri_samples_is_target(info->si_value.sival_ptr) ? info->si_value.sival_ptr : NULL;
    if (info->si_code != POLL_IN && info->si_code != POLL_HUP) return NULL;
    uint32_t fd = (uint32_t)info->si_fd;
    /* A:target */
    return fd < fdri_samples_sampler.by_fd_count ? fdri_atomic_load_acquire(&fdri_samples_sampler.by_fd[fd]) : NULL;
}

uint32_t fdri_samples_own_tid(void)
{
    if (!own_tid) own_tid = (uint32_t)syscall(SYS_gettid);
    return own_tid;
}

/* False for a late signal, when the target belongs to another thread already. */
static bool is_own(const struct fdri_samples_target *t)
{
    return fdri_atomic_load_relaxed(&t->tid) == fdri_samples_own_tid();
}

/* Takes a sample if the target is live. The helper waits for INSIDE to clear before it ends the target. */
static void sample_if_live(struct fdri_samples_target *t, void *context)
{
    if (!is_own(t)) return;
    if (fdri_atomic_add_acq_rel(&t->live, FDRI_SAMPLES_INSIDE) == FDRI_SAMPLES_LIVE) { /* L:target */
        uint64_t came = fdri_clock_ns(CLOCK_MONOTONIC);
        take_sample(t, context);
        fdri_samples_source_crowded(t, came, fdri_clock_ns(CLOCK_MONOTONIC));
    }
    fdri_atomic_sub_acq_rel(&t->live, FDRI_SAMPLES_INSIDE); /* L:target */
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    bool again = fdri_system_previous_gives_back(number, __builtin_return_address(0));
    struct fdri_samples_target *t = again ? NULL : target_of(info);
    if (!t) fdri_system_previous_pass(&fdri_samples_sampler.previous, again, number, info, context);
    else if (fdri_atomic_load_acquire(&fdri_samples_sampler.active)) sample_if_live(t, context); /* A:target */
    errno = saved;
}

void fdri_samples_handler_forked(void) { own_tid = 0; }

/* ---- installing ---- */

bool fdri_samples_handler_install(int taken)
{
    struct sigaction ours;
    fdri_samples_sampler.signal = taken == SIGURG ? SIGWINCH : SIGURG; /* both are ignored by default */
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    /* faults stay open: a blocked fault kills without a bundle, and unwind.c recovers from its own faults */
    fdri_system_signals_but_faults(&ours.sa_mask);
    return fdri_system_previous_install(&fdri_samples_sampler.previous, fdri_samples_sampler.signal, &ours);
}

bool fdri_samples_handler_ours(void) { return fdri_system_previous_ours(fdri_samples_sampler.signal, on_signal); }

void fdri_samples_handler_remove(void)
{
    fdri_system_previous_restore(&fdri_samples_sampler.previous, fdri_samples_sampler.signal, on_signal);
}
