/* SPDX-License-Identifier: MIT */
/* Samples of threads: where each thread is, at a set rate.
 * Neighbours: the recorder starts it through samples_view.h; samples come back through <fdr/fdr.h>.
 *
 *   sample_setting.c   what FDR_SAMPLE says            sample_source.c   the timer or perf event of one thread
 *   sampler.c   finds threads, the helper       sample_handler.c  one sample, in the thread's signal handler
 *   perf_ring.c      samples the kernel took         frame_walk.c     return addresses by frame pointers
 *   own_overflow.c       counters that only their own threads can make    unwind.c   by libgcc's unwinder
 *
 * Every thread of the process has a `struct fdri_samples_target`. Only the helper thread (fdr-sampler) makes and ends
 * them; the handler of the thread reads its own. They are never freed: a signal that comes late finds memory. */
#ifndef FDRI_SAMPLER_SAMPLES_SAMPLER_H
#define FDRI_SAMPLER_SAMPLES_SAMPLER_H

#include <fdr/fdr.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/stack/context.h"
#include "base/fd/descriptor.h"
#include "base/system/chained_handler.h"
#include "base/text/message.h"

/* ---- sample_setting.c ---- */
enum fdri_samples_stacks { FDRI_SAMPLES_FRAME_POINTERS, FDRI_SAMPLES_UNWINDER, FDRI_SAMPLES_NO_STACKS };
struct fdri_samples_settings {
    uint64_t period_ns; /* 0: off; `events`: how many of them */
    bool wall;          /* wall time, else CPU time of the thread */
    bool events;        /* neither: a counter of the thread that overflows */
    bool provided; /* `events` of a provider (PAPI): threads make them for themselves, else of perf's type and config */
    uint32_t type;
    uint64_t config;
    char name[96]; /* of the event */
    enum fdri_samples_stacks stacks;
};
struct fdri_samples_settings fdri_samples_parse_setting(const char *text);

/* ---- one thread ---- */
/* What a sample is made in. Not on the stack: a program's alternate stack may have little room besides the kernel's
 * frame. */
enum { FDRI_SAMPLES_FRAMES_MAX = 128, FDRI_SAMPLES_WINDOW = 2048 };
struct fdri_samples_frames {
    uint32_t count;
    bool cut;
    uint64_t address[FDRI_SAMPLES_FRAMES_MAX];
};
struct fdri_samples_window { /* a piece of the thread's stack */
    uint64_t from, to;
    uint64_t word[FDRI_SAMPLES_WINDOW / 8];
};
/* Direct calls in its code that were looked at, by their return addresses: reading code costs a system call. */
enum { FDRI_SAMPLES_CALLS = 16 };
struct fdri_samples_calls {
    uint32_t tables; /* of which state of the loaded files */
    struct fdri_samples_call {
        uint64_t address, target;
    } call[FDRI_SAMPLES_CALLS];
};
enum { FDRI_SAMPLES_LIVE = 1u, FDRI_SAMPLES_INSIDE = 2u };
enum fdri_samples_by { FDRI_SAMPLES_BY_NOTHING, FDRI_SAMPLES_BY_TIMER, FDRI_SAMPLES_BY_PERF, FDRI_SAMPLES_BY_RING };
struct fdri_samples_target {
    uint32_t live; /* atomic: FDRI_SAMPLES_LIVE: the handler may use what follows; FDRI_SAMPLES_INSIDE: it does */
    uint32_t tid;  /* atomic; 0: free */
    enum fdri_samples_by source;
    int fd;         /* perf event, -1 none */
    uint64_t event; /* its number: whether `fd` is still that one */
    timer_t timer;
    struct fdr_sampled *stream;
    uint64_t start_time; /* of the thread, from /proc: tells a tid used again */
    uint32_t seen;       /* round of the helper that last saw the thread */
    uint32_t checked;    /* `taken` when the start time was last looked at */
    bool attached;
    bool blocked;        /* it keeps our signal blocked: no handler comes there */
    uint32_t looks;      /* that found it so, one after the other */
    uint32_t seen_taken; /* `taken` and its CPU time when that was last looked at */
    uint64_t seen_ns;
    /* the handler's (by ring: the helper's) */
    uint32_t taken;          /* atomic: samples so far */
    uint64_t step;           /* every how many periods one is taken */
    uint64_t slow;           /* periods are that much longer: taking a sample takes long here */
    uint64_t left_ns;        /* when the handler last left */
    uint32_t crowded;        /* how often in a row the thread had less time than the handler */
    uint64_t units;          /* CPU time: periods accounted for */
    uint64_t zero_ns, armed; /* wall time: start of the first stretch, number of the one that is armed */
    uint64_t random;
    struct fdri_samples_calls calls;
    void *ring;
    uint64_t ring_bytes;
    uint64_t opened_ns, beside_ns; /* CPU time before the ring was there, and since then beside what its event counts */
    struct fdri_samples_frames frames; /* from here on: of the sample under way */
    struct fdri_samples_window window;
};

/* What all of them share; set before the first target is made. */
struct fdri_samples_sampler {
    struct fdri_samples_settings how;
    int signal, pid;
    struct fdri_system_previous previous; /* of that signal */
    uint32_t active;                      /* atomic */
    bool perf, perf_kernel;               /* perf events work here; so do those that see the kernel */
    uint32_t fds, fds_most;
    struct fdri_samples_target **by_fd;
    uint32_t by_fd_count;
};
extern struct fdri_samples_sampler fdri_samples_sampler;

/* ---- sample_source.c ---- */
/* Finds out what works here. */
void fdri_samples_source_probe(void);
/* Arms the target for one sample every `step` periods. false: nothing works for it. */
bool fdri_samples_source_open(struct fdri_samples_target *t, uint64_t step);
void fdri_samples_source_close(struct fdri_samples_target *t);
/* Async-signal-safe: from now on one sample every t->step periods. */
void fdri_samples_source_rate(struct fdri_samples_target *t);
/* Async-signal-safe: the handler came and left. Where it leaves the thread no time, again and again, the period
 * grows. */
void fdri_samples_source_crowded(struct fdri_samples_target *t, uint64_t came_ns, uint64_t left_ns);
/* Async-signal-safe, wall time: when the next one is due; returns how many periods have been sampled until `now`. */
uint64_t fdri_samples_source_rearm(struct fdri_samples_target *t, uint64_t now_ns);
/* The target's descriptor is what it was, or it needs none; false: the program closed it, and may have it by now. */
bool fdri_samples_source_there(const struct fdri_samples_target *t);
uint64_t fdri_samples_source_cpu_ns(uint32_t tid);
/* In its handler, before its stack is read: what the thread's counter has come to; 0: it is gone. */
uint64_t fdri_samples_source_events(struct fdri_samples_target *t);

/* ---- perf_ring.c ---- */
bool fdri_samples_ring_open(struct fdri_samples_target *t);
void fdri_samples_ring_drain(struct fdri_samples_target *t);
void fdri_samples_ring_close(struct fdri_samples_target *t);

/* ---- own_overflow.c ---- */
/* Does the provider's event how->name overflow here, beside those that `papi` names? Says why not, and who is sampled.
 * Before the first thread attaches. */
bool fdri_samples_own_choose(struct fdri_samples_settings *how, const char *papi);
void fdri_samples_own_none(void); /* nothing does in this recording */
/* The calling thread attaches; `blocked`: its signals. Allocates and locks, but in no handler of the program's. */
void fdri_samples_own_begin(uint32_t tid, const sigset_t *blocked);
/* The helper: has the thread made one? A descriptor of it, -1 and errno where not; the caller's to close. */
bool fdri_samples_own_there(uint32_t tid);
int fdri_samples_own_descriptor(uint32_t tid);
void fdri_samples_own_fork(int phase); /* as fdri_samples_sampler_fork */

/* ---- sample_handler.c ---- */
bool fdri_samples_handler_install(int taken);
bool fdri_samples_handler_ours(void);
void fdri_samples_handler_remove(void);
void fdri_samples_handler_forked(void);
uint32_t fdri_samples_own_tid(void); /* of the calling thread. Async-signal-safe */

/* ---- sampler.c ---- */
bool fdri_samples_is_target(const void *p); /* is it one of ours? */

/* ---- unwind.c ---- */
void fdri_samples_unwind_warm(void); /* what must have happened once before a handler may need it */
/* Return addresses of the calling thread above `pc`, by libgcc's unwinder. For handlers. */
void fdri_samples_unwind(struct fdri_samples_frames *f, uint64_t pc);

/* ---- frame_walk.c ---- */
/* Follows frame pointers up; never touches memory that is not there. Async-signal-safe. */
void fdri_samples_walk(struct fdri_samples_frames *f, struct fdri_samples_window *w, const struct fdri_stack_context *c,
                       struct fdri_samples_calls *known);
/* Does code of a loaded file lie there? */
bool fdri_samples_walk_is_code(uint64_t address);
/* Is `address` where a direct call of the function at `pc` returns to? Functions that call nothing have no frame of
 * their own; their caller is known by this only. */
bool fdri_samples_walk_is_caller(struct fdri_samples_calls *known, uint64_t address, uint64_t pc);
/* May this process read its own stacks? Says so where it may not. */
void fdri_samples_walk_probe(void);
/* Where code is; asks the loader, not for handlers. true: something was loaded or unloaded since the last time. */
bool fdri_samples_walk_modules(void);

#endif
