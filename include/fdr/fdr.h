/* SPDX-License-Identifier: MIT */
/* fdr: the flight data recorder for production codes. This header is the contract of libfdr.
 *
 *     #include <fdr/fdr.h>
 *     int main(void) {
 *         fdr_init(NULL);                        // environment, then defaults
 *         FDR_REGION("solve") { ... }
 *         fdr_snapshot("after solve");           // writes NAME.HOST.PID.1.fdr
 *         fdr_finalize();
 *     }
 *
 * Rules that hold for every function unless its own text says otherwise:
 *   Threads   any thread, any time, also before fdr_init and after fdr_finalize (then a no-op).
 *   Signals   everything marked [record] may be called from a signal handler, also one that interrupted
 *             a [record] call of the same thread: neither record is lost.
 *   Progress  [record] is wait-free: no lock, no system call, no allocation, bounded loops; refilling a
 *             bin is lock-free with a bounded number of tries, after which the event is counted as lost. (One system
 *             call, membarrier: where a thread gets its first bins and only threads that sleep hold any; two, which
 *             hold signals back: where the memory of a thread that ended goes, or that thread to the end of their
 *             queue, and where totals find no room and a row of theirs goes to another region.)
 *             The first [record] call of a thread attaches it.
 *   Errors    [record] never fails loudly: it counts (see struct fdr_usage and `fdr info`).
 *   Strings   are copied; the caller keeps ownership.
 *   Times     `_at` twins take nanoseconds on a time line of the caller's choice, for replays, device queues and
 *             simulated time. A location whose first event is an `_at` event keeps nanoseconds as they are;
 *             on any other location they are converted to its clock. Times that step back are clamped to the
 *             location's newest time and counted.
 */
#ifndef FDR_FDR_H
#define FDR_FDR_H

#include <stddef.h>
#include <stdint.h>
#include <fdr/version.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FDR_API __attribute__((visibility("default")))
/* Called by its address where the loader put that, not by a detour through a table of jumps. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define FDR_NEAR_ __attribute__((noplt))
#endif
#endif
#ifndef FDR_NEAR_
#define FDR_NEAR_
#endif

typedef uint32_t fdr_region; /* 0 is "no region": recorded as [unknown] */
typedef uint32_t fdr_metric_id;
typedef uint32_t fdr_marker_id;
typedef uint32_t fdr_event_type;
typedef uint32_t fdr_comm_id; /* 0 is the world communicator */

/* ---- start and end ------------------------------------------------------------------------------------- */

/* Every variable of the environment has its field (FDR_BUFFER: buffer, ...); text is parsed alike: sizes take K M G,
 * durations ns us ms s. NULL, "" or 0 means "the environment, then the default". `size` = sizeof(struct fdr_config). */
struct fdr_config {
    size_t size;
    int ignore_environment;       /* 1: only this structure and the defaults */
    const char *enable;           /* "1" | "0" */
    const char *name;             /* NAME of the files, behind its last '/'; default: the executable's name */
    const char *buffer;           /* FDR_BUFFER, e.g. "64M" */
    const char *bin;              /* FDR_BIN, 512 .. 64K, a power of two, "4K" */
    const char *live_dir;         /* FDR_LIVE_DIR */
    const char *dir;              /* FDR_DIR */
    const char *arena;            /* FDR_ARENA: "mapped" | "anonymous" */
    const char *strategy;         /* FDR_STRATEGY: "telescope" | "whole" | "last" | "first" */
    const char *reduce;           /* FDR_REDUCE: "duration,depth,class,epoch" in any order */
    const char *classes;          /* FDR_CLASSES: least important first, e.g. "metric,marker,user,message" */
    const char *min_duration;     /* FDR_MIN_DURATION, "1us" */
    const char *depth;            /* FDR_DEPTH, "20" */
    const char *timer;            /* FDR_TIMER: "tsc" | "monotonic" */
    const char *resolution;       /* FDR_RESOLUTION: "0" lossless, "100ns": rounded down to a power of two of ticks */
    const char *filter;           /* FDR_FILTER: file of include/exclude rules, see docs/FILTER.md */
    const char *signal;           /* FDR_SIGNAL: "USR1" | "none" | name or number */
    const char *finalize;         /* FDR_FINALIZE: "none" | "snapshot" */
    const char *holdoff;          /* FDR_HOLDOFF, "1s": least time between two snapshots by signal */
    const char *keep;             /* FDR_KEEP: "8,oldest" | "8,newest" */
    const char *disk;             /* FDR_DISK, "512M": most bytes of snapshots of a recording; of a bundle by itself */
    const char *counters;         /* FDR_COUNTERS: what a thread of fdr's own samples: "default", "all", names */
    const char *counter_interval; /* FDR_COUNTER_INTERVAL, "1ms" */
    const char *crash;            /* FDR_CRASH: "1" | "all" | "exit" | "0", see docs/CRASH.md */
    const char *crash_deadline;   /* FDR_CRASH_DEADLINE, "800ms": longest time a crash takes to be written */
    const char *telescope;     /* FDR_TELESCOPE: "equal", or relative shares of the age tiers, newest first: "4,2,1" */
    const char *edge_counters; /* FDR_EDGE_COUNTERS: counters read at the edges of chosen calls */
    const char *edge_regions;  /* FDR_EDGE_REGIONS: which calls: patterns of names, "step,solve*" */
    const char *papi;          /* FDR_PAPI: PAPI events read at the edges of chosen calls */
    const char *sample; /* FDR_SAMPLE: "1kHz": samples of every thread; also "wall", "unwind", "nostack", EVENT/COUNT */
    const char *triggers;   /* FDR_TRIGGERS: a file, or lines separated by ';' (docs/TRIGGERS.md) */
    const char *watchdog;   /* FDR_WATCHDOG: "off", or how long a thread may stand still in a region, "30s" */
    const char *pin;        /* FDR_PIN: "0", or the first moments that threads keep while they live, "5s" */
    int strict;             /* 1: where a value makes no sense fdr_init returns -EINVAL, after the line about it */
    const char *live_force; /* FDR_LIVE_FORCE: "0", "1": a live directory that is not in RAM will do */
};

/* Starts the recording of this process. Idempotent while one is running (0). Returns 0, or -errno; after a failure
 * every other call is a harmless no-op. -EINVAL: `size` is not set, or see `strict`; -EBUSY: a thread still stands in
 * the middle of a record of the recording before, or the process is dying. Not [record]; may lock, allocate and
 * print; signals that have a handler wait meanwhile. Without a call the first recorded event does not start one: link
 * fdr::instrument or call this. */
FDR_API int fdr_init(const struct fdr_config *config);

/* Ends the recording: final snapshot if FDR_FINALIZE asks for one, then the live file is removed. Other threads may go
 * on calling [record] functions meanwhile. Later calls are no-ops. Also runs by itself at exit(). Not for signal
 * handlers; signals that have one wait meanwhile. */
FDR_API void fdr_finalize(void);

/* ---- definitions --------------------------------------------------------------------------------------- */

/* Idempotent per (name, file, line): the same arguments give the same id. `file` may be NULL. Returns an id > 0; 0
 * where nothing records or no definition fits. May lock for a moment, with signals blocked: so it is for signal
 * handlers, too; it never asks the program's allocator. Names are cut at 4095 bytes. A NULL name is "". */
FDR_API fdr_region fdr_region_define(const char *name, const char *file, unsigned line);

/* As fdr_region_define for code known only by its address (compiler instrumentation): no name now, the reader
 * finds it offline by build-id. Lock-free after the first call for an address; [record]. */
FDR_API fdr_region fdr_region_define_address(const void *function);

/* [record] Enter / leave of code known by its address: fdr_region_define_address and fdr_enter in one step. */
FDR_API void fdr_enter_address(const void *function);
FDR_API void fdr_leave_address(const void *function);
/* Implementation detail of fdr::instrument: fdr_enter_address that also sees which open calls a longjmp has left.
 * caller: return address of the function; pointer: stack pointer when the hook was called, never 0, and always taken in
 * the same way; site: return address of the hook. [record] but for the first call after a jump, which makes system
 * calls. */
FDR_API void fdr_enter_function_(const void *function, const void *caller, const void *pointer, const void *site);

/* Code was unloaded (dlclose): other code may lie at its addresses from now on. fdr::instrument calls this by itself.
 * May lock; not for signal handlers. */
FDR_API void fdr_modules_changed(void);

/* Metrics, markers, communicators and types of events. Equal arguments give the same id, which holds in later
 * recordings of the process, too. Ids count from 1; 0: nothing records, or there is no room (one line on standard error
 * says so), and what is recorded by it is [unknown]. At most 4,095 metrics and 255 types of events. All that is passed
 * is copied; NULL is "". Any thread; may lock for a moment, with signals blocked; not for signal handlers.
 *
 * All values of a metric are 64 bits wide: the narrow types say what the program has. */
enum fdr_metric_kind { FDR_METRIC_GAUGE = 0, FDR_METRIC_COUNTER = 1 };
enum fdr_type { FDR_U64 = 0, FDR_I64 = 1, FDR_F64 = 2, FDR_U32 = 3, FDR_I32 = 4, FDR_F32 = 5 };
FDR_API fdr_metric_id fdr_metric_define(const char *name, const char *unit, enum fdr_type type,
                                        enum fdr_metric_kind kind);
FDR_API fdr_marker_id fdr_marker_define(const char *name);
/* world_ranks[size]: who is in the communicator; groups of one name that differ are two. Ids count from 1; 0 is the
 * world, and what is returned for more than 16,777,216 ranks, after one line on standard error. */
FDR_API fdr_comm_id fdr_comm_define(const char *name, const uint32_t *world_ranks, size_t size);

/* One field of a user event: where it lies in the payload structure, below 64 KiB. The name is cut at 27 bytes. */
struct fdr_field {
    const char *name;
    enum fdr_type type;
    size_t offset;
};
/* What differs in names, types or offsets of its fields is another type of event. Of more than 16 fields the first 16
 * are recorded, as a line says when it is defined; a field of no known type, or too far away, and the event is not
 * defined: 0. One line says so of the first such. */
FDR_API fdr_event_type fdr_event_define(const char *name, const struct fdr_field *fields, size_t count);

/* ---- calls of regions ---------------------------------------------------------------------------------- */

/* Implementation detail of the inline gate below: one word, 0 = nothing records. It lies in a page of its own, as large
 * as any kernel has them (64 KiB on some of aarch64), that a forked child finds zeroed. */
struct fdr_switch_page_ {
    uint32_t on;
    uint32_t pid; /* of the process that records */
    uint32_t pad[16382];
};
extern FDR_API struct fdr_switch_page_ fdr_switch_;

/* [record] fdr_enter and fdr_leave behind the gate; `on` = its word */
FDR_API FDR_NEAR_ void fdr_enter_(fdr_region region, uint32_t on);
FDR_API FDR_NEAR_ void fdr_leave_(fdr_region region, uint32_t on);

/* [record] Enters / leaves a region. A leave that skips open regions closes them (longjmp, exceptions) and counts it:
 * whoever jumps to a place again and again leaves there a region that was entered before. A leave of a region that is
 * not open is counted and ignored. One record per call is stored, at the leave; open calls are on the shadow stack,
 * which is in the arena. Idea: call records with the leave's region implied, Wagner 2015 (3.3.5), here with the
 * duration in hand. */
#ifndef FDR_NO_INLINE
extern __inline__ __attribute__((gnu_inline, always_inline, no_instrument_function)) void fdr_enter(fdr_region region)
{
    uint32_t on = __atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED);
    if (__builtin_expect(on != 0, 1)) fdr_enter_(region, on);
}
extern __inline__ __attribute__((gnu_inline, always_inline, no_instrument_function)) void fdr_leave(fdr_region region)
{
    uint32_t on = __atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED);
    if (__builtin_expect(on != 0, 1)) fdr_leave_(region, on);
}
#else
FDR_API void fdr_enter(fdr_region region);
FDR_API void fdr_leave(fdr_region region);
#endif
FDR_API void fdr_enter_at(fdr_region region, uint64_t time_ns);
FDR_API void fdr_leave_at(fdr_region region, uint64_t time_ns);

/* The compiler's function hooks leave it alone: a region entered in it goes on behind it. */
#define FDR_UNHOOKED_ __attribute__((no_instrument_function))

/* Scope: FDR_REGION("name") { ... }  left on every way out of the block but a goto out of it, longjmp, or a C++
 * exception that passes through C compiled without -fexceptions. `break` and `continue` in it leave the region, not a
 * loop around it: the macro is a loop of one turn. Where its definition finds
 * no room its calls are recorded as [unknown], and it is not asked for again in this recording. */
struct fdr_scope_ {
    fdr_region region;
    int once;
};
#define FDR_NOT_ENTERED_ UINT32_MAX
#define FDR_REFUSED_     0x80000000u /* in a scope's id, with the number of the recording that had no room for it */
FDR_UNHOOKED_ static inline void fdr_scope_leave_(struct fdr_scope_ *s)
{
    if (s->region != FDR_NOT_ENTERED_) fdr_leave(s->region);
}
/* Rarely called: the id of a scope that has none yet, 0 where it gets none. */
FDR_UNHOOKED_ static inline fdr_region fdr_scope_define_(uint32_t *id, uint32_t on, const char *name, const char *file,
                                                         unsigned line)
{
    if (__atomic_load_n(id, __ATOMIC_RELAXED) == (on | FDR_REFUSED_)) return 0;
    fdr_region r = fdr_region_define(name, file, line);
    __atomic_store_n(id, r ? r : on | FDR_REFUSED_, __ATOMIC_RELAXED);
    return r;
}
FDR_UNHOOKED_ static inline fdr_region fdr_scope_enter_(uint32_t *id, const char *name, const char *file, unsigned line)
{
    fdr_region r = __atomic_load_n(id, __ATOMIC_RELAXED);
    uint32_t on = __atomic_load_n(&fdr_switch_.on, __ATOMIC_RELAXED);
    if (!on) return FDR_NOT_ENTERED_;
    if (__builtin_expect(r - 1u >= FDR_REFUSED_ - 1u, 0)) r = fdr_scope_define_(id, on, name, file, line);
    fdr_enter(r);
    return r;
}
#define FDR_JOIN2_(a, b) a##b
#define FDR_JOIN_(a, b)  FDR_JOIN2_(a, b)
#define FDR_SCOPE_(id, name)                                                                                           \
    static uint32_t FDR_JOIN_(fdr_id_, id);                                                                            \
    struct fdr_scope_ FDR_JOIN_(fdr_s_, id) __attribute__((cleanup(fdr_scope_leave_), unused)) = {                     \
        fdr_scope_enter_(&FDR_JOIN_(fdr_id_, id), name, __FILE__, __LINE__), 1}
#define FDR_REGION_(id, name)                                                                                          \
    for (struct fdr_scope_ FDR_JOIN_(fdr_s_, id)                                                                       \
             __attribute__((cleanup(fdr_scope_leave_), unused)) = {__extension__({                                     \
                                                                       static uint32_t fdr_id_;                        \
                                                                       fdr_scope_enter_(&fdr_id_, name, __FILE__,      \
                                                                                        __LINE__);                     \
                                                                   }),                                                 \
                                                                   1};                                                 \
         FDR_JOIN_(fdr_s_, id).once; FDR_JOIN_(fdr_s_, id).once = 0)
#define FDR_REGION(name) FDR_REGION_(__COUNTER__, name)
/* The rest of this function is a region of its name. */
#define FDR_FUNCTION() FDR_SCOPE_(__LINE__, __func__)

/* ---- events without duration [record] ------------------------------------------------------------------ */

/* A value given in another type than the metric's is converted: to the nearest of that type where it does not fit (a
 * negative one is 0 of an unsigned metric; fractions are cut), to 0 where it is no number. A metric that is not defined
 * is unsigned. */
FDR_API void fdr_metric_u64(fdr_metric_id metric, uint64_t value);
FDR_API void fdr_metric_i64(fdr_metric_id metric, int64_t value);
FDR_API void fdr_metric_f64(fdr_metric_id metric, double value);
FDR_API void fdr_metric_u64_at(fdr_metric_id metric, uint64_t value, uint64_t time_ns);
FDR_API void fdr_metric_i64_at(fdr_metric_id metric, int64_t value, uint64_t time_ns);
FDR_API void fdr_metric_f64_at(fdr_metric_id metric, double value, uint64_t time_ns);

FDR_API void fdr_marker(fdr_marker_id marker, uint64_t value);
FDR_API void fdr_marker_at(fdr_marker_id marker, uint64_t value, uint64_t time_ns);

/* Point-to-point messages; peer is a world rank, bytes the payload: all of its 64 bits are kept; a sum in the totals
 * beyond them stays there and is marked. A receive is recorded when it completes. Nothing is checked: whatever is
 * passed is recorded. */
FDR_API void fdr_message_send(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes);
FDR_API void fdr_message_recv(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes);
FDR_API void fdr_message_send_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t time_ns);
FDR_API void fdr_message_recv_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t time_ns);

/* operation: the numbers of docs/FORMAT.md (10 Barrier, 11 Bcast, 13 Allreduce ...); root -1: none. */
FDR_API void fdr_collective_begin(uint32_t operation);
FDR_API void fdr_collective_end(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t bytes_sent,
                                uint64_t bytes_received);
FDR_API void fdr_collective_begin_at(uint32_t operation, uint64_t time_ns);
FDR_API void fdr_collective_end_at(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t bytes_sent,
                                   uint64_t bytes_received, uint64_t time_ns);

/* payload: the structure described at fdr_event_define, aligned or not; read during the call. Where it is NULL, or
 * nothing was defined by that number, an event without fields is recorded. */
FDR_API void fdr_event(fdr_event_type type, const void *payload);
FDR_API void fdr_event_at(fdr_event_type type, const void *payload, uint64_t time_ns);

/* An event that is one reading of a series, such as running counts that are read every millisecond. Where memory runs
 * out readings are thinned by powers of two (with `whole` and `telescope`): those kept stay evenly spread over the run,
 * and between any two of them running counts say exactly what happened. `number`: of this reading in its series;
 * `before`: of the one recorded before it, 0 where there is none. Equal numbers: this one stays longest, as the first
 * and the last of a series should. For threads that make no calls: inside of calls it is fdr_event. */
FDR_API void fdr_reading(fdr_event_type type, const void *payload, uint64_t before, uint64_t number);

/* ---- samples ------------------------------------------------------------------------------------------- */

/* A stream of samples of one thread, written from outside its stream of events: by a signal handler on that thread, or
 * by a thread that looks at it. FDR_SAMPLE makes one for every thread by itself; these are for other sources (counter
 * overflows, simulators, replays). Memory that runs out is regained by thinning: what is kept stays evenly spread over
 * the run (with FDR_STRATEGY=telescope: the older the sparser), and each kept sample stands for all periods since the
 * one before. */
struct fdr_sampled;
enum fdr_sampled_by { FDR_BY_CPU_TIME = 0, FDR_BY_WALL_TIME = 1, FDR_BY_EVENTS = 2 };

/* tid: the thread looked at. period: what a weight of 1 stands for, in ns or events. Not for signal handlers.
 * NULL: nothing records, or no room; NULL may be given to the functions below. Lives until the recording ends:
 * from then on, and while fdr_finalize runs, they do nothing with it and return 0, however late they come. */
FDR_API struct fdr_sampled *fdr_sampled_open(uint32_t tid, const char *name, enum fdr_sampled_by by, uint64_t period);
/* The thread is called so by now; nothing where the stream holds samples of several. The name is copied, as by
 * fdr_sampled_open, and cut at 20 bytes. Not for signal handlers, nor while it is closed; one thread at a time per
 * stream, samples may be taken meanwhile. */
FDR_API void fdr_sampled_name(struct fdr_sampled *stream, const char *name);
/* The thread is gone; the stream is not to be used any more. Not while a sample of it may be under way. Where there are
 * many streams, one opened later goes on with one that was closed: it then holds samples of several threads (its tid is
 * 0). */
FDR_API void fdr_sampled_close(struct fdr_sampled *stream);

enum { FDR_LOOK_CUT = 2 }; /* flag: the stack does not reach the thread's start */
struct fdr_look {
    uint64_t weight; /* periods since the sample before, at least 1 */
    uint64_t pc;
    const uint64_t *stack; /* return addresses, innermost first; at most 256 with the regions */
    uint32_t stack_count;
    uint32_t flags;
    const fdr_region *path; /* open regions, outermost first; NULL: those of the calling thread if it is the one */
    uint32_t path_count;
};
/* [record] One sample, now or at time_ns. One at a time per stream; async-signal-safe; does not attach the thread.
 * Returns every how many periods a sample is still worth taking (a power of two; it rises as samples are thinned),
 * 0: this one was not taken, and its weight is to be added to the next one's. */
FDR_API uint64_t fdr_sample(struct fdr_sampled *stream, const struct fdr_look *look);
FDR_API uint64_t fdr_sample_at(struct fdr_sampled *stream, const struct fdr_look *look, uint64_t time_ns);

/* ---- this thread --------------------------------------------------------------------------------------- */

/* [record] Cut at 31 bytes. In a handler that interrupted a [record] call it names the lane of this thread's handlers.
 * Without it a location is called as the thread is by the kernel when it attaches. Nothing where nothing records. */
FDR_API void fdr_thread_name(const char *name);

/* A fact about this run for whoever reads the recording: "input", "case-17.h5"; "step", "1200". The newest value of
 * each key is in every snapshot and bundle and in what a kill leaves; one that changes faster than a snapshot can
 * copy it is "[changing]" there. Keys are cut at 39 bytes, values at 103, between characters (UTF-8). May lock; not for
 * signal handlers. Time grows with the number of keys (some 4 ns each): meant for dozens of them. */
FDR_API void fdr_note(const char *key, const char *value);

/* A library may have installed handlers of signals (MPI_Init; libfdr-mpi calls this): where they took the place of
 * fdr's, which then leave no bundle, `fdr info` says so from now on. Without it that is seen with the next thread, the
 * next snapshot, or within 5 s by fdr's own thread. Makes some thirteen system calls; any thread. */
FDR_API void fdr_handlers_changed(void);
/* The same, and handlers that took the place of fdr's are called by fdr's from now on, as if they had been there first
 * (docs/CRASH.md). For runtime libraries that install theirs when the program starts and forget what they found there:
 * libgfortran, for which fdr::instrument does this by itself. A handler may call the one it found (with the arguments
 * it got), raise the signal for it or put it back: that ends the process with a bundle. May lock; not for signal
 * handlers. */
FDR_API void fdr_handlers_chain(void);

/* The process is about to be ended by what is neither a signal nor exit() (MPI_Abort; libfdr-mpi calls this): where
 * FDR_CRASH=exit asks for it a bundle with this cause is left, and recording is off from then on, until fdr_init.
 * `by`: who ends it, 70 characters are kept; `status`: what it gives as a status. 1: a bundle was left; 0: none was
 * asked for, there is no recording, or it begins or ends at this moment. May be called in signal handlers. */
FDR_API int fdr_ending(const char *by, int status);

/* [record] Between pause and resume calls are counted (`untimed`), not timed nor stored, other events counted as
 * filtered; also those of handlers, but for a handler that interrupts a [record] call: that records into a lane of its
 * own, and there these act on the lane alone. For the calling thread only, until the recording ends. Nests; a resume
 * without its pause is nothing. Beside phases this is a second gate: a thread stores while both are open. */
FDR_API void fdr_pause(void);
FDR_API void fdr_resume(void);

/* Rewind: forget what this thread stored since the mark, keep its totals (an iteration that was as usual). Calls that
 * were open at the mark stay, also those that ended since. Marks do not nest, and a rewind uses its mark up: the next
 * iteration sets one anew. A rewind without a mark does nothing. Events forgotten count as `filtered`. A mark takes
 * some 35 bytes for each partition and each open call of the thread, from its share of the buffer, which it keeps for
 * the next ones; where that is full older detail is given back for it, as for what totals need. Where nothing can be
 * (a full buffer under FDR_STRATEGY=first; so many threads that each has next to nothing) one line names the first
 * thread it happens to, the mark is none, and fdr_rewind does nothing: all stays recorded; the next mark is tried anew.
 * So it is where a handler left the leave of a call that was open at the mark by longjmp.
 * Any thread, for itself; not for signal handlers. No lock, no file I/O; work by the partitions and open calls of the
 * thread, and by what is forgotten (docs/ORDERING.md, "Progress"). Idea: rewinding event buffers, Wagner 2015 (3.2). */
FDR_API void fdr_rewind_mark(void);
FDR_API void fdr_rewind(void);

/* Phases: where the rules name phases (docs/FILTER.md) a thread stores only between begin and end of a named one. They
 * nest; an end without a begin is nothing, and fdr_resume begins none. For the calling thread only. Attaches the
 * thread; no lock after that; not for signal handlers. */
FDR_API void fdr_phase_begin(const char *name);
FDR_API void fdr_phase_end(const char *name);

/* ---- taking it out ------------------------------------------------------------------------------------- */

/* Writes a snapshot without stopping anybody. 0, or: -ESRCH: nothing records (also in a forked child); -EDQUOT:
 * FDR_KEEP or FDR_DISK is reached; else -errno of the system call that failed on the file: -ENOSPC, -EACCES, ...;
 * -EFBIG: beyond RLIMIT_FSIZE; -EIO: not all of it could be written or read back; -EEXIST: no name is free. Nothing is
 * left of a file that failed. One line on standard error says what it was, the first time of each error in a recording
 * (of -ESRCH none). -EBUSY never: a running one is joined (coalesced), and its result is returned. May block on file
 * I/O; meanwhile signals for which the program has a handler wait, on this thread. Not for signal handlers (raise
 * FDR_SIGNAL there). The handler of a fault does not wait: -EDEADLK inside of one that interrupted a snapshot of its
 * thread; one that it leaves by longjmp, or by exit, is given up with the next fdr_snapshot or fdr_finalize of that
 * thread (-ECANCELED for who waits for it), and one that goes on in a child that it made returns -ECANCELED. `reason`:
 * NULL or "" is "api". */
FDR_API int fdr_snapshot(const char *reason);
/* Path of the newest complete snapshot of this process, "" if none. It stays as it is until this thread calls this
 * again, or ends. As it was reached when the recording began: before a chroot. May lock, and allocate the first time;
 * not for signal handlers. */
FDR_API const char *fdr_last_snapshot(void);

/* ---- triggers ------------------------------------------------------------------------------------------ */

/* A trigger watches for something and then has a snapshot taken by a thread of fdr's own. `line` as in a file of
 * FDR_TRIGGERS (docs/TRIGGERS.md), for example "slow: region solve over 10ms window 100ms", or "mine: api" for one that
 * only fdr_trigger_fire sets off. Returns an id > 0, which no other trigger of this recording gets (those of
 * FDR_TRIGGERS have 1, 2, ... in their order); -EINVAL with a line on standard error that says why, -ENOSPC where
 * there are 64, -ENOMEM where there is no memory for one on metrics, -ESRCH where nothing records. May lock; not for
 * signal handlers. Recording threads are not stopped. */
FDR_API int fdr_trigger_add(const char *line);
/* Nothing it sees from now on counts. 0, or -ENOENT. */
FDR_API int fdr_trigger_remove(int trigger);
/* As if the trigger had seen `value`; the snapshot is taken by fdr's thread, this one goes on. For signal handlers,
 * too. */
FDR_API void fdr_trigger_fire(int trigger, double value);
/* How often it has seen what it watches for, also where no snapshot came of it (hold-off, cap). 0 for unknown ids. */
FDR_API uint64_t fdr_trigger_count(int trigger);

/* Memory, ledger sums and reductions so far; sums over all locations, not a consistent cut; all 0 where nothing
 * records, or the recording ends meanwhile. Events that found no room anywhere, as those of threads for which there
 * is no memory, are among `presented` and `lost`: of a call both its enter and its leave. Any thread. No system
 * call, no allocation, no wait but a bounded one for who works on threads that ended. Looks at each partition of
 * each location, so it takes the longer the more there are; threads that want the memory of ended ones wait for it
 * meanwhile, 10 ms at most, or do without. In a handler of a thread that records nothing it must not be left by
 * longjmp. */
struct fdr_usage {
    uint64_t buffer_bytes, bin_bytes, bins, bins_free, meta_bytes;
    uint64_t locations, presented, stored, filtered, reduced, lost, reductions;
    uint64_t bytes_stored;       /* whole bins and headers in use */
    uint64_t snapshots;          /* written */
    uint64_t reduction_ns;       /* time threads have spent giving memory back, wall time */
    uint64_t reduction_worst_ns; /* the longest of these steps, and of those that cut and merge epochs */
    uint64_t bins_used;          /* bins that somebody holds */
    uint64_t locations_sure;     /* threads at once that find room, whatever others hold in bins that can be claimed */
};
#ifdef __cplusplus /* of the same name as the type's constructor, as stat() is of struct stat's */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
FDR_API struct fdr_usage fdr_usage(void);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/* "0.1.0"; what this build has, one line each "name: value". Constants: any thread, also in signal handlers. */
FDR_API const char *fdr_version(void);
FDR_API const char *fdr_build(void);

#ifdef __cplusplus
}
#endif
#endif
