/* SPDX-License-Identifier: MIT */
/* Samples of threads: the place of each thread, at a set rate. Neighbours: the recorder starts it through
 * samples_view.h; samples come back through <fdr/fdr.h>; below: sampler/counters/, base/. Files:
 *
 *   sample_setting.c  the value of FDR_SAMPLE        sample_source.c   the timer or perf event of one thread
 *   sampler.c         finds threads; the helper      sample_handler.c  one sample, in the thread's signal handler
 *   perf_ring.c       samples taken by the kernel    frame_walk.c      return addresses by frame pointers
 *   own_overflow.c    events of a provider           unwind.c          return addresses by libgcc's unwinder
 *
 * Each thread of the process has a `struct fdri_samples_target`. Only the helper thread (fdr-sampler) makes and ends
 * targets; a thread's handler uses the thread's own. They are never freed, so a late signal finds valid memory. */
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
    uint64_t period_ns; /* 0: off; with `events`: a number of events */
    bool wall;          /* wall time, else the thread's CPU time */
    bool events;        /* instead of time: a counter of the thread overflows */
    bool provided; /* the event is a provider's (PAPI) and threads open it themselves; else perf's type and config */
    uint32_t type;
    uint64_t config;
    char name[96]; /* of the event */
    enum fdri_samples_stacks stacks;
};
struct fdri_samples_settings fdri_samples_parse_setting(const char *text);

/* ---- one thread ---- */
/* Working memory for a sample. It is not on the stack, because an alternate stack of the program may have little room
 * besides the kernel's frame. */
enum { FDRI_SAMPLES_FRAMES_MAX = 128, FDRI_SAMPLES_WINDOW = 2048 };
struct fdri_samples_frames {
    uint32_t count;
    bool cut;
    uint64_t address[FDRI_SAMPLES_FRAMES_MAX];
};
struct fdri_samples_window { /* a copied piece of the thread's stack */
    uint64_t from, to;
    uint64_t word[FDRI_SAMPLES_WINDOW / 8];
};
/* A cache of direct calls in the program's code, by return address: reading code costs a system call. */
enum { FDRI_SAMPLES_CALLS = 16 };
struct fdri_samples_calls {
    uint32_t tables; /* number of the table of loaded files for which it is valid */
    struct fdri_samples_call {
        uint64_t address, target;
    } call[FDRI_SAMPLES_CALLS];
};
enum { FDRI_SAMPLES_LIVE = 1u, FDRI_SAMPLES_INSIDE = 2u };
enum fdri_samples_by { FDRI_SAMPLES_BY_NOTHING, FDRI_SAMPLES_BY_TIMER, FDRI_SAMPLES_BY_PERF, FDRI_SAMPLES_BY_RING };
struct fdri_samples_target {
    uint32_t live; /* atomic. FDRI_SAMPLES_LIVE: the handler may use this target; FDRI_SAMPLES_INSIDE: it does */
    uint32_t tid;  /* atomic; 0: free */
    enum fdri_samples_by source;
    int fd;         /* perf event; -1 none */
    uint64_t event; /* its number: `fd` may be another file by now */
    timer_t timer;
    struct fdr_sampled *stream;
    uint64_t start_time; /* of the thread, from /proc: distinguishes threads with the same tid */
    uint32_t seen;       /* round of the helper that found the thread last */
    uint32_t checked;    /* `taken` when the start time was checked last */
    bool attached;
    bool blocked;        /* the thread blocks the signal, so no handler runs */
    uint32_t looks;      /* consecutive looks that found a change of `blocked` */
    uint32_t seen_taken; /* `taken`, and CPU time, at the last look */
    uint64_t seen_ns;
    /* written by the handler, or for a ring by the helper */
    uint32_t taken;          /* atomic: number of samples */
    uint64_t step;           /* a sample is taken each `step` periods */
    uint64_t slow;           /* factor on the period while samples take long here */
    uint64_t left_ns;        /* when the handler returned last */
    uint32_t crowded;        /* consecutive times that the thread ran for less time than the handler */
    uint64_t units;          /* CPU time, events: periods accounted */
    uint64_t zero_ns, armed; /* wall time: start of the first stretch; number of the armed stretch */
    uint64_t random;
    struct fdri_samples_calls calls;
    void *ring;
    uint64_t ring_bytes;
    uint64_t opened_ns, beside_ns;     /* ring: CPU time when it was opened; CPU time since that its event lacks */
    struct fdri_samples_frames frames; /* from here on: of the sample under way */
    struct fdri_samples_window window;
};

/* The state that all targets share; set before the first target is made. */
struct fdri_samples_sampler {
    struct fdri_samples_settings how;
    int signal, pid;
    struct fdri_system_previous previous; /* handlers of the signal before fdr's */
    uint32_t active;                      /* atomic */
    bool perf, perf_kernel;               /* perf events work here; also those of the kernel */
    uint32_t fds, fds_most;
    struct fdri_samples_target **by_fd;
    uint32_t by_fd_count;
};
extern struct fdri_samples_sampler fdri_samples_sampler;

/* ---- sample_source.c ---- */
/* Finds out which sources work here. */
void fdri_samples_source_probe(void);
/* Arms the target for a sample each `step` periods. False: no source works for it. */
bool fdri_samples_source_open(struct fdri_samples_target *t, uint64_t step);
void fdri_samples_source_close(struct fdri_samples_target *t);
/* Sets the rate to a sample each t->step periods. Async-signal-safe. */
void fdri_samples_source_rate(struct fdri_samples_target *t);
/* The handler ran from came_ns to left_ns. If it repeatedly leaves the thread less time than it takes, the period
 * doubles. Async-signal-safe. */
void fdri_samples_source_crowded(struct fdri_samples_target *t, uint64_t came_ns, uint64_t left_ns);
/* Wall time: arms the timer for the next sample. Returns the number of periods sampled until now_ns.
 * Async-signal-safe. */
uint64_t fdri_samples_source_rearm(struct fdri_samples_target *t, uint64_t now_ns);
/* False: the program closed the target's descriptor, and may have reused its number. True: it is open, or the target
 * needs none. */
bool fdri_samples_source_there(const struct fdri_samples_target *t);
uint64_t fdri_samples_source_cpu_ns(uint32_t tid);
/* The value of the thread's event counter; 0: the descriptor was closed. For its handler, before it reads the stack. */
uint64_t fdri_samples_source_events(struct fdri_samples_target *t);

/* ---- perf_ring.c ---- */
bool fdri_samples_ring_open(struct fdri_samples_target *t);
void fdri_samples_ring_drain(struct fdri_samples_target *t);
void fdri_samples_ring_close(struct fdri_samples_target *t);

/* ---- own_overflow.c ---- */
/* True if the provider's event how->name can overflow on this machine while the events of `papi` count. Prints one
 * line: the failure, or that only recording threads are sampled. Call it before the first thread attaches. */
bool fdri_samples_own_choose(struct fdri_samples_settings *how, const char *papi);
void fdri_samples_own_none(void); /* no event of a provider in this recording */
/* Opens the event for the calling thread, which attaches; `blocked`: its signals before. Allocates and locks, but does
 * nothing in a signal handler of the program. */
void fdri_samples_own_begin(uint32_t tid, const sigset_t *blocked);
/* For the helper: has thread tid such an event? A descriptor of it, which the caller closes; -1 and errno if not. */
bool fdri_samples_own_there(uint32_t tid);
int fdri_samples_own_descriptor(uint32_t tid);
void fdri_samples_own_fork(int phase); /* phases as of fdri_samples_sampler_fork */

/* ---- sample_handler.c ---- */
bool fdri_samples_handler_install(int taken);
bool fdri_samples_handler_ours(void);
void fdri_samples_handler_remove(void);
void fdri_samples_handler_forked(void);
uint32_t fdri_samples_own_tid(void); /* id of the calling thread; async-signal-safe */

/* ---- sampler.c ---- */
bool fdri_samples_is_target(const void *p); /* p points to a target */

/* ---- unwind.c ---- */
void fdri_samples_unwind_warm(void); /* loads the unwinder, before a handler needs it */
/* Return addresses of the calling thread above `pc`, by libgcc's unwinder. For the handler. */
void fdri_samples_unwind(struct fdri_samples_frames *f, uint64_t pc);

/* ---- frame_walk.c ---- */
/* Follows frame pointers upwards; never touches unmapped memory. Async-signal-safe. */
void fdri_samples_walk(struct fdri_samples_frames *f, struct fdri_samples_window *w, const struct fdri_stack_context *c,
                       struct fdri_samples_calls *known);
/* True if the address lies in code of a loaded file. */
bool fdri_samples_walk_is_code(uint64_t address);
/* True if `address` is the return address of a direct call to the function at `pc`. A function that calls nothing may
 * have no frame, and only this test finds its caller. */
bool fdri_samples_walk_is_caller(struct fdri_samples_calls *known, uint64_t address, uint64_t pc);
/* Reports if this process may not read its own stacks. */
void fdri_samples_walk_probe(void);
/* Updates the table of loaded code. True: it has changed. Asks the loader, so not for handlers. */
bool fdri_samples_walk_modules(void);

#endif
