/* SPDX-License-Identifier: MIT */
/* fdr: the flight data recorder for production codes. This header is the contract of libfdr.
 *
 * fdr records the calls and events of every thread, all the time, into one buffer of fixed size. Events are metrics,
 * messages and the like. When the buffer is full, fdr gives old detail back and keeps account of it; the totals of
 * every region stay exact. Nothing is written to disk until a snapshot is taken or the process crashes.
 *
 *     #include <fdr/fdr.h>
 *     int main(void)
 *     {
 *         fdr_init(NULL);                  // settings from the environment (FDR_BUFFER, ...), else the defaults
 *         FDR_REGION("solve") {            // one call of the region "solve"
 *             work();
 *         }
 *         fdr_snapshot("after solve");     // writes NAME.HOST.PID.1.fdr; read it with: fdr info, fdr dump, fdr stats
 *         fdr_finalize();
 *     }
 *
 * Words
 *   region     A piece of code with a name, such as a function or a block. The program refers to it by an id.
 *   call       One pass through a region, from enter to leave. It counts as two events, and is stored as one record.
 *   point      An event without duration: a metric, a marker, a message, a collective, the begin or end of input or
 *              output, a user event.
 *   recording  The time from fdr_init to fdr_finalize. A process has one at a time, and may have several in turn.
 *   location   The store of one thread: its open calls, its records, its totals.
 *   ledger     The account of all calls and points of the program: presented = kept + filtered + reduced + lost.
 *              Filtered: a rule or a pause kept the event out. Reduced: fdr gave it back to make room. Lost: there was
 *              no room at all.
 *
 * Rules for every function, unless its own text says otherwise
 *   When       At any time. While nothing records, a function does nothing and returns 0, "" or the error that its text
 *              names. That is so before fdr_init, after fdr_finalize, and at first in a forked child.
 *   Threads    Any thread may call any function, at the same time as others.
 *   [record]   The mark of functions for the hot path. They may be called in signal handlers, also in a handler that
 *              interrupted a [record] call of its own thread: fdr keeps both events.
 *              They are wait-free: no lock, no system call, no allocation, bounded work. A call (enter and leave) costs
 *              about 29 ns, of which two readings of the clock take 22; while nothing records, about 1 ns.
 *              They never fail loudly: fdr counts the events that it could not store (fdr_usage, `fdr info`). errno
 *              stays as it was.
 *              Exceptions: the first [record] call of a thread makes its location, which may block. The first call
 *              for a code address takes a lock. When memory is short, some rare steps are lock-free instead of
 *              wait-free, and make one or two system calls.
 *   [signal]   The mark of other functions that signal handlers may call. They may make system calls and wait for a
 *              moment, but never for the thread that the handler interrupted.
 *   No mark    May lock, allocate, wait for files and print one line on standard error. Not for signal handlers.
 *   Arguments  Strings and arrays are copied before the function returns. A NULL string means "".
 *   Times      Functions ending in _at take a time in ns from the caller instead of the clock: for replays, device
 *              queues, simulated time. If the first event of a thread is an _at event, its location keeps the caller's
 *              time line. On any other location the times are taken as CLOCK_MONOTONIC and converted to fdr's clock.
 *              A time before the newest one of the location is set to that one and counted.
 *   Fork       The child of fork() never writes into its parent's recording. It begins one of its own if it calls
 *              setsid or daemon, and otherwise records nothing until it calls fdr_init (docs/SETTINGS.md, FDR_FORK).
 *
 * docs/API.md tells the corner cases of each function, docs/SETTINGS.md each setting, docs/LIMITS.md the known limits,
 * docs/ORDERING.md ("Progress") the bound of each operation.
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
/* Calls go directly to the function's address, without a jump through the linkage table. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define FDR_NEAR_ __attribute__((noplt))
#endif
#endif
#ifndef FDR_NEAR_
#define FDR_NEAR_
#endif

typedef uint32_t fdr_region; /* 0: no region; its calls are shown as [unknown] */
typedef uint32_t fdr_metric_id;
typedef uint32_t fdr_marker_id;
typedef uint32_t fdr_event_type;
typedef uint32_t fdr_comm_id; /* 0 is the world communicator */
typedef uint32_t fdr_io_file;

/* ---- start and end ------------------------------------------------------------------------------------- */

/* Settings. Each text field but `name` has an environment variable of its name, with the same texts: `buffer` has
 * FDR_BUFFER. Sizes take K, M, G; durations ns, us, ms, s. NULL or "" means: the variable, else the default. */
struct fdr_config {
    size_t size;            /* sizeof(struct fdr_config) */
    int ignore_environment; /* 1: use only this structure and the defaults */
    const char *enable;     /* "1"; "0" records nothing */
    const char *name;   /* (no variable) NAME in file names, the part behind the last '/'; default: the executable's */
    const char *buffer; /* memory of the recording: "64M" */
    const char *bin;    /* size of a bin, the unit of that memory: "4K"; a power of two from 512 to 64K */
    const char *live_dir; /* directory of the live file, in RAM */
    const char *dir;      /* directory of snapshots and crash bundles */
    const char *arena;    /* "mapped": the buffer is the live file; "anonymous": no live file */
    const char *strategy; /* when memory is full: "telescope", "whole", "last", "first" */
    const char *reduce;   /* order in which detail goes: "duration,depth,class,epoch" */
    const char *classes;  /* classes of events for step "class", least important first: "metric,marker,user,message" */
    const char *min_duration; /* shorter calls are not stored: "1us" */
    const char *depth;        /* deeper calls are only counted: "20" */
    const char *timer;        /* "tsc", "monotonic" */
    const char *resolution;   /* "0" is lossless; "100ns" is rounded down to a power of two of ticks */
    const char *filter;       /* file of rules: docs/FILTER.md */
    const char *signal;       /* signal that takes a snapshot: "USR1", another name or number, "none" */
    const char *finalize;     /* "none"; "snapshot" takes one at the end */
    const char *holdoff;      /* least time between two snapshots by signal: "1s" */
    const char *keep;         /* how many snapshots stay: "8,oldest", "8,newest" */
    const char *disk;         /* most bytes of all snapshots of the recording, and of a bundle: "512M" */
    const char *counters;     /* counters sampled by fdr's monitor thread: "default", "all", names (docs/COUNTERS.md) */
    const char *counter_interval; /* period of that thread: "1ms" */
    const char *crash;            /* which deaths leave a bundle: "1", "all,first", "exit", "0" (docs/CRASH.md) */
    const char *crash_deadline;   /* longest time the crash handler takes to write it: "800ms" */
    const char *telescope;        /* shares of memory of the age tiers, newest first: "equal", "4,2,1" */
    const char *edge_counters;    /* counters that threads read at enter and leave of chosen calls */
    const char *edge_regions;     /* which calls: patterns of region names, "step,solve*" */
    const char *papi;             /* PAPI events read there, too */
    const char *sample;           /* samples of every thread: "1kHz", "100Hz,wall", "1kHz,unwind"; or EVENT/COUNT */
    const char *triggers;         /* a file, or lines separated by ';': docs/TRIGGERS.md */
    const char *watchdog;         /* "off"; or how long a thread may stand still in a region: "30s" */
    const char *pin;              /* "0"; "5s" keeps the first 5 seconds in full */
    int strict; /* (no variable) 0: a bad value becomes the default, with one line; 1: it is an error of fdr_init */
    const char *live_force; /* "0"; with "1" the live directory need not be in RAM */
    const char *overhead;   /* "off"; "2%": recording calls takes at most this share of the program's processor time */
    const char *fork;       /* which forked children record: "daemon", "follow", "off" */
    const char *watchdog_ignore; /* threads of which the watchdog says nothing: patterns of names, "bio_*,timer" */
    const char *check;       /* "0"; "1": fdr checks its own memory while it records, and says if something is wrong */
    const char *crash_total; /* most bytes of all crash bundles: "10%" of the file system, "2G", "off" */
    const char *crash_free;  /* least space that a bundle must leave unused: "15%" of the file system, "20G" */
    const char *crash_age;   /* older ones go: "14d"; "0": none */
};

/* Starts the recording of this process; while one is running, changes nothing. config NULL: environment and defaults.
 * Returns 0 (also with FDR_ENABLE=0, which records nothing). After an error nothing records:
 *   -EINVAL   config->size is not set, or a value makes no sense and `strict` is 1
 *   -EBUSY    another thread has not finished an event of the previous recording, or the process is dying
 *   -errno    of the system call that failed
 * Until fdr_init returns, signals with a handler are blocked. A program that does not call fdr_init records nothing.
 * There are three exceptions: fdr::instrument and fdr::io start the recording before main, fdr::mpi in MPI_Init. */
FDR_API int fdr_init(const struct fdr_config *config);

/* Ends the recording: takes the final snapshot if FDR_FINALIZE asks for one, then removes the live file. Runs by itself
 * at exit(). Other threads may go on calling [record] functions. Until it returns, signals with a handler are
 * blocked. */
FDR_API void fdr_finalize(void);

/* ---- definitions ---------------------------------------------------------------------------------------
 *
 * A definition gives an id to a name. These rules hold for all kinds:
 *   Equal arguments give the same id. Ids count from 1 and stay valid in later recordings of the process, so a static
 *   variable may keep one. 0 means that nothing records, or that there is no room; one line on standard error reports
 *   the latter. Events recorded with id 0 are shown as [unknown]. Names are cut at 4,095 bytes. */

/* [signal] A region. file may be NULL; name, file and line together make it unique. Never calls malloc. */
FDR_API fdr_region fdr_region_define(const char *name, const char *file, unsigned line);

/* [record] A region known only by the address of its code, as compilers' hooks know it. The reader finds the name
 * offline by build-id. The first call for an address takes a lock, with signals blocked. */
FDR_API fdr_region fdr_region_define_address(const void *function);

/* [record] Enters and leaves such a region: fdr_region_define_address and fdr_enter in one step. */
FDR_API void fdr_enter_address(const void *function);
FDR_API void fdr_leave_address(const void *function);
/* Internal to fdr::instrument. [record] fdr_enter_address that also closes open calls which a longjmp has left.
 * caller: return address of the function. pointer: stack pointer in the hook, not 0, always taken in the same way.
 * site: return address of the hook. The first call after a jump makes system calls. */
FDR_API void fdr_enter_function_(const void *function, const void *caller, const void *pointer, const void *site);
/* Internal, too: for a function that is hooked at its first instruction and before its return. site: return address of
 * the hook. pointer: where the function's return address lies; by it alone a leave finds its call. The two fdr_try_
 * functions change no vector register. If fdr_try_enter_ returns 0, fdr_enter_at_entry_ must follow. If fdr_try_leave_
 * returns another value than 0, fdr_leave_frame_ must follow; tried: that value. The hook keeps all registers then. */
FDR_API int fdr_try_enter_(const void *site, const void *caller, const void *pointer);
FDR_API uint64_t fdr_try_leave_(const void *pointer);
FDR_API void fdr_enter_at_entry_(const void *site, const void *caller, const void *pointer);
FDR_API void fdr_leave_frame_(const void *pointer, uint64_t tried);

/* Call it after dlclose: code that is loaded later at the same addresses then gets regions of its own. fdr::instrument
 * does so by itself. */
FDR_API void fdr_modules_changed(void);

/* A metric: a value with a unit that changes over time. Gauges go up and down, counters only rise. All values are
 * stored in 64 bits; the narrow types give the type of the program's variable. At most 4,095 metrics. */
enum fdr_metric_kind { FDR_METRIC_GAUGE = 0, FDR_METRIC_COUNTER = 1 };
enum fdr_type { FDR_U64 = 0, FDR_I64 = 1, FDR_F64 = 2, FDR_U32 = 3, FDR_I32 = 4, FDR_F32 = 5 };
FDR_API fdr_metric_id fdr_metric_define(const char *name, const char *unit, enum fdr_type type,
                                        enum fdr_metric_kind kind);
/* A marker: a named moment. */
FDR_API fdr_marker_id fdr_marker_define(const char *name);
/* Later names, for libraries that learn them after the events: readers show the newest one, also for earlier events.
 * Rules of FDR_FILTER and triggers go by the first. */
FDR_API void fdr_region_rename(fdr_region region, const char *name, const char *file, unsigned line);
FDR_API void fdr_metric_rename(fdr_metric_id metric, const char *name, const char *unit);
FDR_API void fdr_marker_rename(fdr_marker_id marker, const char *name);
/* A communicator: a group of ranks, world_ranks[size]. Equal names with other ranks are another communicator. Id 0 is
 * the world; it is returned, after one line on standard error, for more than 16,777,216 ranks. */
FDR_API fdr_comm_id fdr_comm_define(const char *name, const uint32_t *world_ranks, size_t size);
/* The same with an identity, not 0, which all members know: communicators of equal name and ranks, but another
 * identity, are two. */
FDR_API fdr_comm_id fdr_comm_define_as(const char *name, const uint32_t *world_ranks, size_t size, uint64_t identity);

/* A file, pipe or socket, by name: the path, or what the program calls it. At most 65,534. */
FDR_API fdr_io_file fdr_io_file_define(const char *name);

/* One field of a user event: its place in the payload structure, below 64 KiB. Names are cut at 27 bytes. */
struct fdr_field {
    const char *name;
    enum fdr_type type;
    size_t offset;
};
/* A type of user event. Equal names with other fields are another type. The first 16 fields are recorded. Returns 0
 * also for a field of unknown type or beyond 64 KiB; one line on standard error names the first such. At most 255
 * types. */
FDR_API fdr_event_type fdr_event_define(const char *name, const struct fdr_field *fields, size_t count);

/* ---- calls of regions ---------------------------------------------------------------------------------- */

/* Internal: the gate of the inline functions below. `on` is 0 while nothing records. The gate has a page of its own.
 * So the kernel can hand a zeroed one to a forked child. 64 KiB are the largest page of any kernel. */
struct fdr_switch_page_ {
    uint32_t on;
    uint32_t pid; /* of the recording process */
    uint32_t pad[16382];
};
extern FDR_API struct fdr_switch_page_ fdr_switch_;

/* Internal: fdr_enter and fdr_leave behind the gate; on: the word of the gate. */
FDR_API FDR_NEAR_ void fdr_enter_(fdr_region region, uint32_t on);
FDR_API FDR_NEAR_ void fdr_leave_(fdr_region region, uint32_t on);

/* [record] Enters and leaves a region. fdr stores one record per call, when it is left. Open calls are on the thread's
 * shadow stack, which lies in the buffer, so that a crash shows them.
 * A leave closes the innermost open call of its region, and with it all calls inside that were not left (exceptions,
 * longjmp); fdr counts these. A leave of a region that is not open is counted and has no other effect. A loop to which
 * longjmp returns often should enter a region before setjmp and leave it after the jump: this closes the calls between.
 * Calls deeper than 1,036 levels are only counted.
 * Idea: call records in which the leave implies the region, Wagner 2015 (3.3.5); here the duration is at hand, too. */
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

/* Internal: the compiler's hooks leave such a function out. Else its own leave would close the entered
 * call. */
#define FDR_UNHOOKED_ __attribute__((no_instrument_function))

/* Internal to FDR_REGION and FDR_FUNCTION. */
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
/* The id of a scope at its first pass; 0: there is no room. Asked once in a recording. */
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

/* FDR_REGION("name") { ... } records the block as one call. The call ends on every way out of the block, also by
 * return and by a C++ exception. It does not end on a goto out of the block, a longjmp, or an exception that passes
 * through C code compiled without -fexceptions. The macro is a loop of one turn: break and continue end the region, not
 * a loop around it. The name is evaluated in the first pass only. */
#define FDR_REGION(name) FDR_REGION_(__COUNTER__, name)
/* FDR_FUNCTION(); records the rest of the function as a call of a region with its name. */
#define FDR_FUNCTION() FDR_SCOPE_(__LINE__, __func__)

/* ---- points: events without duration, all [record] ----------------------------------------------------- */

/* A value of a metric. A value that the metric's type does not hold becomes the nearest value of that type. So a
 * negative value of an unsigned metric is 0. Fractions are cut, not-a-number is 0. An undefined metric counts as
 * unsigned. */
FDR_API void fdr_metric_u64(fdr_metric_id metric, uint64_t value);
FDR_API void fdr_metric_i64(fdr_metric_id metric, int64_t value);
FDR_API void fdr_metric_f64(fdr_metric_id metric, double value);
FDR_API void fdr_metric_u64_at(fdr_metric_id metric, uint64_t value, uint64_t time_ns);
FDR_API void fdr_metric_i64_at(fdr_metric_id metric, int64_t value, uint64_t time_ns);
FDR_API void fdr_metric_f64_at(fdr_metric_id metric, double value, uint64_t time_ns);

/* A marker, with any value. */
FDR_API void fdr_marker(fdr_marker_id marker, uint64_t value);
FDR_API void fdr_marker_at(fdr_marker_id marker, uint64_t value, uint64_t time_ns);

/* A message between two processes. peer: a world rank. bytes: size of the payload. A receive is to be recorded when it
 * completes. fdr checks none of the arguments. */
FDR_API void fdr_message_send(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes);
FDR_API void fdr_message_recv(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes);
FDR_API void fdr_message_send_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t time_ns);
FDR_API void fdr_message_recv_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t time_ns);

/* The same with an ordinal: message n of a sender to (peer, tag, communicator) is message n of that receiver. Both
 * count from 0, also the messages that are not recorded. So readers match the messages of several recordings,
 * whatever was given back. ordinal: FDR_ORDINAL_UNKNOWN if it is not known. With FDR_ORDINAL_AMBIGUOUS added, other
 * threads had messages of the same envelope under way, so the ordinal may belong to one of those. */
#define FDR_ORDINAL_UNKNOWN   UINT64_MAX
#define FDR_ORDINAL_AMBIGUOUS ((uint64_t)1 << 63)
FDR_API void fdr_message_send_nth(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t ordinal);
FDR_API void fdr_message_recv_nth(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t ordinal);
FDR_API void fdr_message_send_nth_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t ordinal,
                                     uint64_t time_ns);
FDR_API void fdr_message_recv_nth_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t ordinal,
                                     uint64_t time_ns);
/* A receive whose ordinal is not known yet; fdr_message_resolve, in any thread, says it later. token: a number that the
 * process uses once. If either is given back, the message stays without a partner. */
FDR_API void fdr_message_recv_open(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t token);
FDR_API void fdr_message_resolve(uint64_t token, uint64_t ordinal);
FDR_API void fdr_message_recv_open_at(uint32_t peer, int32_t tag, fdr_comm_id comm, uint64_t bytes, uint64_t token,
                                      uint64_t time_ns);
FDR_API void fdr_message_resolve_at(uint64_t token, uint64_t ordinal, uint64_t time_ns);

/* A collective operation, begin and end. operation: a number of docs/FORMAT.md (10 Barrier, 11 Bcast, 13 Allreduce,
 * ...), below 131072. root: a world rank, -1: none. bytes: sent and received by this process. */
FDR_API void fdr_collective_begin(uint32_t operation);
FDR_API void fdr_collective_end(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t bytes_sent,
                                uint64_t bytes_received);
FDR_API void fdr_collective_begin_at(uint32_t operation, uint64_t time_ns);
FDR_API void fdr_collective_end_at(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t bytes_sent,
                                   uint64_t bytes_received, uint64_t time_ns);
/* The same with an ordinal: how many collectives the communicator had before. */
FDR_API void fdr_collective_begin_nth(uint32_t operation, fdr_comm_id comm, uint64_t ordinal);
FDR_API void fdr_collective_end_nth(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t bytes_sent,
                                    uint64_t bytes_received, uint64_t ordinal);
FDR_API void fdr_collective_begin_nth_at(uint32_t operation, fdr_comm_id comm, uint64_t ordinal, uint64_t time_ns);
FDR_API void fdr_collective_end_nth_at(uint32_t operation, fdr_comm_id comm, int32_t root, uint64_t bytes_sent,
                                       uint64_t bytes_received, uint64_t ordinal, uint64_t time_ns);

/* Input and output: the begin and the end of one operation on a file. libfdr-io records those of the C library
 * (docs/IO.md); these functions are for libraries with operations of their own, and for asynchronous ones.
 *     uint64_t began = fdr_io_begin(file, FDR_IO_READ, sizeof block, offset);
 *     ssize_t n = pread(fd, block, sizeof block, offset);
 *     fdr_io_end(file, FDR_IO_READ, n > 0 ? n : 0, n < 0 ? errno : 0, began);
 * Operations may overlap, and may end on another thread. Totals count ends: operations, bytes and time, for each file
 * and operation. */
enum fdr_io_operation { FDR_IO_OPEN = 0, FDR_IO_CLOSE, FDR_IO_READ, FDR_IO_WRITE, FDR_IO_SYNC, FDR_IO_OTHER };
#define FDR_IO_NO_OFFSET UINT64_MAX
/* operation: enum fdr_io_operation. bytes: as many as are asked for. offset: in the file, FDR_IO_NO_OFFSET if it is not
 * known. Returns the moment, for the end; 0: nothing is recorded. */
FDR_API uint64_t fdr_io_begin(fdr_io_file file, uint32_t operation, uint64_t bytes, uint64_t offset);
/* bytes: as many as were moved. error: an errno, 0: none. began: as fdr_io_begin returned it; 0: its time is in no
 * total. */
FDR_API void fdr_io_end(fdr_io_file file, uint32_t operation, uint64_t bytes, int error, uint64_t began);
FDR_API uint64_t fdr_io_begin_at(fdr_io_file file, uint32_t operation, uint64_t bytes, uint64_t offset,
                                 uint64_t time_ns);
FDR_API void fdr_io_end_at(fdr_io_file file, uint32_t operation, uint64_t bytes, int error, uint64_t began,
                           uint64_t time_ns);

/* A user event. payload: the structure that fdr_event_define described, aligned or not; read during the call. Without
 * payload or definition an event without fields is recorded. */
FDR_API void fdr_event(fdr_event_type type, const void *payload);
FDR_API void fdr_event_at(fdr_event_type type, const void *payload, uint64_t time_ns);

/* A user event that is reading `number` of a series, such as a counter read every millisecond. before: number of the
 * reading recorded before it, 0: none. When memory is full (strategies telescope and whole) fdr thins readings by
 * powers of two, so the kept ones stay evenly spread over the run. A reading whose two numbers are equal stays longest:
 * so mark the first and the last of a series. Inside of a call a reading is an ordinary event, and is not thinned. */
FDR_API void fdr_reading(fdr_event_type type, const void *payload, uint64_t before, uint64_t number);

/* ---- samples: where a thread was, seen from outside ----------------------------------------------------
 *
 * FDR_SAMPLE takes samples of every thread by itself (docs/SAMPLING.md). These functions are for other sources, such as
 * overflows of counters, simulators and replays. One stream holds the samples of one thread. When memory is full fdr
 * thins samples by powers of two; a kept sample then stands for all periods since the kept one before it. */
struct fdr_sampled;
enum fdr_sampled_by { FDR_BY_CPU_TIME = 0, FDR_BY_WALL_TIME = 1, FDR_BY_EVENTS = 2 };

/* Opens a stream for thread `tid`. period: length of a weight of 1, in ns or events. The name is cut at 20 bytes.
 * Returns NULL if nothing records or there is no room; the functions below take NULL. The stream lives as long as the
 * recording; later the functions below do nothing with it. */
FDR_API struct fdr_sampled *fdr_sampled_open(uint32_t tid, const char *name, enum fdr_sampled_by by, uint64_t period);
/* Renames the stream, unless it holds samples of several threads. One thread at a time per stream; not beside
 * fdr_sampled_close. Samples may be taken meanwhile. */
FDR_API void fdr_sampled_name(struct fdr_sampled *stream, const char *name);
/* The thread has ended. No sample may be under way, and the stream is not to be used again. Where there are many
 * streams, one opened later continues a closed one: it then holds samples of several threads, and its tid is 0. */
FDR_API void fdr_sampled_close(struct fdr_sampled *stream);

enum {                     /* flags */
       FDR_LOOK_MOVED = 1, /* with FDR_LOOK_OUTSIDE: the thread made calls meanwhile, so inner ones may be missing */
       FDR_LOOK_CUT = 2,   /* the stack does not reach the thread's start */
       FDR_LOOK_OUTSIDE =
           4, /* another thread looked; the last of `path` is no open region but names the thread's state */
};
struct fdr_look {
    uint64_t weight; /* periods since the sample before, at least 1 */
    uint64_t pc;
    const uint64_t *stack; /* return addresses, innermost first; at most 256 together with the regions */
    uint32_t stack_count;
    uint32_t flags;
    const fdr_region *path; /* open regions, outermost first; NULL: those of the calling thread, if it is the sampled */
    uint32_t path_count;
};
/* [record] Takes one sample, now or at time_ns; one at a time per stream. Does not attach the thread. Returns the
 * interval, in periods, at which samples are still worth taking: a power of two that rises as samples are thinned.
 * 0: the sample was not taken; add its weight to that of the next one. */
FDR_API uint64_t fdr_sample(struct fdr_sampled *stream, const struct fdr_look *look);
FDR_API uint64_t fdr_sample_at(struct fdr_sampled *stream, const struct fdr_look *look, uint64_t time_ns);

/* ---- this thread and this process ---------------------------------------------------------------------- */

/* [record] Names the location of the calling thread; cut at 31 bytes. Without it the location has the kernel's name,
 * which is read anew for each snapshot and when the thread ends. */
FDR_API void fdr_thread_name(const char *name);

/* Sets a fact about this run: fdr_note("input", "case-17.h5"). The newest value of each key is in every snapshot, in
 * every bundle and in the file after a kill. Keys are cut at 39 bytes, values at 103, never within a UTF-8 character.
 * Meant for dozens of keys: each one adds some 4 ns to every note. */
FDR_API void fdr_note(const char *key, const char *value);

/* Call it after a library may have installed signal handlers; libfdr-mpi does so after MPI_Init. fdr then notes at once
 * which of its crash handlers were replaced (`fdr info` shows it). Without the call it notices with the next thread,
 * the next snapshot, or within 5 s. Some thirteen system calls. */
FDR_API void fdr_handlers_changed(void);
/* Like fdr_handlers_changed; also puts fdr's crash handlers back in their places. They then call the handlers that
 * replaced them, as if those were older than fdr_init. For runtime libraries that install handlers at program start and
 * forget the ones they found. fdr::instrument does this for libgfortran. docs/CRASH.md has the rules for handlers. */
FDR_API void fdr_handlers_chain(void);

/* [signal] The process is about to be ended by neither a signal nor exit(), such as by MPI_Abort (libfdr-mpi calls it
 * there). With FDR_CRASH=exit it leaves a crash bundle, and nothing records from then on until fdr_init.
 * by: the cause, cut at 70 bytes; status: the exit status. Returns 1 if it left a bundle, else 0. */
FDR_API int fdr_ending(const char *by, int status);

/* [record] Between pause and resume calls are only counted (`untimed` in the totals), and points count as filtered. For
 * the calling thread; ends with the recording. Nests; a resume without a pause does nothing. */
FDR_API void fdr_pause(void);
FDR_API void fdr_resume(void);

/* Rewind: forget the events that this thread stored since the mark, such as an iteration that went as usual.
 *     fdr_rewind_mark(); iterate(); if (usual) fdr_rewind();
 * The totals keep it, the ledger counts it as filtered. Calls that were open at the mark stay. There is one mark per
 * thread: a new one replaces it, a rewind uses it up. A rewind without a mark does nothing. If there is no memory for a
 * mark, one line on standard error says so and the rewind does nothing. No lock and no file I/O, once the thread is
 * attached. The work grows with the thread's calling depth and with the number of forgotten bins.
 * Idea: rewinding event buffers, Wagner 2015 (3.2). */
FDR_API void fdr_rewind_mark(void);
FDR_API void fdr_rewind(void);

/* Phases: if the rules name phases (docs/FILTER.md), a thread stores events only between begin and end of a named one.
 * For the calling thread. Nests; an end without a begin does nothing. Independent of fdr_pause: a thread stores while
 * it is in a phase and not paused. No lock, once the thread is attached. */
FDR_API void fdr_phase_begin(const char *name);
FDR_API void fdr_phase_end(const char *name);

/* ---- snapshots ----------------------------------------------------------------------------------------- */

/* Writes a snapshot of all threads into FDR_DIR, without stopping any of them. reason: kept in the file; NULL or "":
 * "api". If one is being written, the function waits for it and returns its result. Returns 0, or
 *   -ESRCH     nothing records
 *   -EDQUOT    FDR_KEEP or FDR_DISK is reached
 *   -EFBIG     the file is larger than RLIMIT_FSIZE allows
 *   -EIO       the file could not be written or read back in full
 *   -EEXIST    no file name is free
 *   -EDEADLK, -ECANCELED   only around handlers of faults: docs/API.md, "Snapshots"
 *   -errno     of the system call that failed: -ENOSPC, -EACCES, ...
 * A failed snapshot leaves no file. The first of each error in a recording costs one line on standard error, but for
 * -ESRCH. Until it returns, signals with a handler are blocked. In a signal handler raise FDR_SIGNAL instead. */
FDR_API int fdr_snapshot(const char *reason);
/* Path of the newest complete snapshot of this process, also after fdr_finalize; "" if there is none. Valid until this
 * thread calls it again or ends. The path is as seen when the recording began, so before a chroot. */
FDR_API const char *fdr_last_snapshot(void);

/* ---- triggers ------------------------------------------------------------------------------------------ */

/* Adds a trigger: it watches for something, and then fdr's own thread takes a snapshot. line: as in docs/TRIGGERS.md,
 * such as "slow: region solve over 10ms window 100ms", or "mine: api", which only fdr_trigger_fire sets off. Returns an
 * id > 0, unique in the recording (those of FDR_TRIGGERS have 1, 2, ... in their order), or
 *   -EINVAL   the line is wrong; one line on standard error says why
 *   -ENOSPC   there are 64 triggers
 *   -ENOMEM   there is no memory for one that watches metrics
 *   -ESRCH    nothing records */
FDR_API int fdr_trigger_add(const char *line);
/* Removes a trigger: nothing that it sees from now on counts. 0, or -ENOENT. */
FDR_API int fdr_trigger_remove(int trigger);
/* [signal] Fires a trigger of any kind, as if it had seen `value`. Returns at once; fdr's thread takes the snapshot. */
FDR_API void fdr_trigger_fire(int trigger, double value);
/* How often the trigger has fired, also where no snapshot followed (hold-off, limits). 0 for an unknown id. */
FDR_API uint64_t fdr_trigger_count(int trigger);

/* ---- figures ------------------------------------------------------------------------------------------- */

/* [signal] Figures of the recording so far, as sums over all locations; all 0 while nothing records. Threads go on
 * meanwhile, so the sums need not fit together. A call counts once (twice if its thread found no room at all). No
 * allocation, and no system call in a thread that has recorded. The time grows with the number of locations and their
 * calling depths. */
struct fdr_usage {
    /* Bytes of the buffer and of one bin; all bins and the free ones; bytes of definitions, stacks, totals, ledger. */
    uint64_t buffer_bytes, bin_bytes, bins, bins_free, meta_bytes;
    /* Locations made so far; the ledger (`stored`: kept now); steps that gave memory back. */
    uint64_t locations, presented, stored, filtered, reduced, lost, reductions;
    uint64_t bytes_stored;       /* in bins in use, headers included */
    uint64_t snapshots;          /* written */
    uint64_t reduction_ns;       /* wall time spent on giving memory back, sum over threads */
    uint64_t reduction_worst_ns; /* longest of these steps, or of those that begin and merge epochs */
    uint64_t bins_used;          /* bins that have an owner */
    uint64_t locations_sure;     /* number of threads at once that can always record */
};
#ifdef __cplusplus /* the function has the name of the type's constructor, as stat() has */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
FDR_API struct fdr_usage fdr_usage(void);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/* [signal] The version, "0.1.0"; the properties of this build, one line "name: value" each. Constants. */
FDR_API const char *fdr_version(void);
FDR_API const char *fdr_build(void);

#ifdef __cplusplus
}
#endif
#endif
