/* SPDX-License-Identifier: MIT */
/* libfdr-reader: reads recordings (snapshots, live files, what a kill left) on any machine, without the application.
 * This header is its contract.
 *
 * It trusts nothing: any bytes give a message and what could be recovered; never a crash, a hang, or an invented
 * event. One bad bin costs that bin.
 *
 * Rules that hold for every function unless its own text says otherwise:
 *   Units     times are ns on the recording's own time line (CLOCK_MONOTONIC for live recordings; what was presented
 *             for replayed streams), sizes bytes.
 *   Pointers  none may be NULL, but `message` where message_bytes is 0, the fdr_file or fdr_iter given to a close
 *             function (then nothing), a `select` (then everything), and `rows` of fdr_ledger and fdr_sample_streams.
 *   Rows      functions that count return how many there are and set *rows to an array of so many; of none *rows is not
 *             to be followed. An index beyond the last gives NULL, or "" where the text of damage is asked for.
 *   Lifetime  strings and arrays returned belong to the fdr_file and live until it is closed. What is passed stays
 *             the caller's, and is needed until the function returns (fdr_file_open_memory, struct fdr_select: longer).
 *   Threads   one fdr_file may be read by many threads at once, each with its own fdr_iter, once it is opened. What is
 *             computed on first use is so under a lock of the file: others who ask for such wait meanwhile. No other
 *             thread may be in the file while it is closed, symbolised or recovered, nor in a function that finds
 *             damage (verify, met, totals, reductions, epochs) while the list of damage is read. Files do not disturb
 *             each other. No global state but one: where memory is refused while one file is read, no file that is
 *             open then gets a verdict (FDR_UNREADABLE) any more.
 *   Signals   not for signal handlers: they allocate and lock. The three that read constants are: fdr_class_name,
 *             fdr_crash_register_name, fdr_reader_version.
 *   Progress  they may block, on the lock and on files; each ends, in time linear in the file and what is asked for
 *             (sorting beside). Names of addresses may have files of symbols read.
 *   Errors    a verdict, or 0 and -errno. They print nothing. `message` is one line, cut to its room.
 *   Memory    where it is short, rows, events and names may be missing: fdr_iter_open returns NULL,
 *             fdr_visit_calls -ENOMEM, others what they have. fdr_file_verify and fdr_file_met then say FDR_UNREADABLE:
 *             ask one of them before anything is believed to be all there is.
 *   Sources   Wagner, Concepts for In-memory Event Tracing, TU Dresden 2015: partitions read by depth in linear time,
 *             only those asked for (4.5.1, 4.5.2: fdr_iter_*, fdr_select), summaries (4.5.3), the memory balance
 *             (eq. 4.1), levels of samples (4.7: fdr_sample_streams). Ilsche et al., Combining Instrumentation and
 *             Sampling, 2014: both in one recording. */
#ifndef FDR_READER_H
#define FDR_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* functions of the same name as a type's constructor */
#endif
#ifndef FDR_API
#define FDR_API __attribute__((visibility("default")))
#endif

struct fdr_file;
struct fdr_iter;

enum fdr_verdict { FDR_WHOLE = 0, FDR_DAMAGED = 1, FDR_UNREADABLE = 2 };

/* Opens a file, or a copy of one in memory (kept by the caller until close). Always verifies headers; bins are verified
 * when they are decoded. Returns FDR_WHOLE, FDR_DAMAGED (usable; see fdr_file_damage) or FDR_UNREADABLE (*out is NULL).
 * `message`: one clear line about the first problem, or "". A file that nobody writes any more is mapped: where it is
 * cut while it is open, reading on is a SIGBUS. */
FDR_API enum fdr_verdict fdr_file_open(const char *path, struct fdr_file **out, char *message, size_t message_bytes);
FDR_API enum fdr_verdict fdr_file_open_memory(const void *bytes, size_t count, struct fdr_file **out, char *message,
                                              size_t message_bytes);
/* Gives back all that came from it; its iterators are to be closed before. NULL: nothing. */
FDR_API void fdr_file_close(struct fdr_file *file);

/* The recording of a running process, also one that is hung or stopped: it is copied from outside, without its help and
 * without writing to it, and then is as a snapshot with the reason "live" is. Needs the right to read the live file, or
 * the process's memory where that is anonymous (same user and dumpable, or root). `events` false: only headers of bins
 * are copied, which is quick: locations, open calls, definitions, totals and ledger are there (a few reduced events may
 * count as kept), events are not. */
FDR_API enum fdr_verdict fdr_process_open(uint32_t pid, bool events, struct fdr_file **out, char *message,
                                          size_t message_bytes);
/* The same into a file: mode 0600, first under a temporary name beside it, never over an existing one. `reason` NULL:
 * "outside". 0 or -errno with `message`. */
FDR_API int fdr_process_snapshot(uint32_t pid, const char *path, const char *reason, char *message,
                                 size_t message_bytes);

/* Decodes every bin once. FDR_WHOLE or FDR_DAMAGED; findings are added to the damage list. FDR_UNREADABLE: memory was
 * short since the file was opened, and anything that was said of it may lack parts (the last line of the damage list
 * says so, too). */
FDR_API enum fdr_verdict fdr_file_verify(struct fdr_file *file);
/* The same of those bins only that reading has come to so far, which it has left out where they are damaged: decodes
 * none. */
FDR_API enum fdr_verdict fdr_file_met(struct fdr_file *file);
/* What was found damaged so far, one line each, the first thousand; index beyond the last: "". */
FDR_API size_t fdr_file_damage_count(const struct fdr_file *file);
FDR_API const char *fdr_file_damage(const struct fdr_file *file, size_t index);

struct fdr_file_info {
    uint32_t format;    /* format version */
    const char *state;  /* "recording" | "finalized" | "crashed" */
    const char *reason; /* why it was taken; "" for a live file */
    bool has_cause;     /* a crash: the next five say of what */
    int cause_signal, cause_code;
    uint64_t cause_addr, cause_time_ns;
    uint32_t cause_tid;
    uint32_t pid;
    int rank; /* -1: unknown */
    const char *host, *exe, *build_id, *config, *strategy;
    uint64_t created_realtime_ns;
    double time_unit_ns; /* of one stored tick */
    uint64_t buffer_bytes, bin_bytes, bins, bins_free;
    uint64_t meta_bytes;        /* definitions, stacks, totals, ledger; wherever they lie */
    uint64_t bytes_stored;      /* whole bins and headers in use */
    uint64_t first_ns, last_ns; /* over all locations */
    uint64_t common_from_ns;    /* every location of which anything is kept reaches back at least to here, or is all
                                   there since it began */
    uint64_t lost_locations, lost_unattached, lost_definitions, dropped_bins;
    uint64_t unlisted_bins;     /* bins found that no list holds (given back, or in flight) */
    int64_t realtime_offset_ns; /* add to a time_ns for ns since 1970 */
    uint64_t taken_ns;          /* a snapshot: when it was taken; else 0 */
    const char *reason_kind;    /* "api" | "signal" | "finalize" | "trigger" | "watchdog" | "outside"; "" not said */
    bool has_trigger;           /* a trigger or the watchdog asked: the next five say what was seen */
    const char *trigger_name;
    uint64_t trigger_time_ns, trigger_value;
    uint32_t trigger_value_type; /* as fdr_definition.value_type */
    uint32_t trigger_location;   /* id, UINT32_MAX: none */
    bool has_end;                /* `fdr run` saw the end: the next three say how */
    int end_status;              /* as waitpid gives it; INT_MIN: not said */
    uint32_t end_oom_kills;
    uint64_t end_realtime_ns;
    uint64_t record_bytes;      /* what records take of bytes_stored */
    double memory_balance;      /* average use of the bins / greatest use of one; 0: nothing stored */
    uint64_t band_edge_ns[3];   /* between the four bands of durations */
    uint64_t cause_realtime_ns; /* of the cause, since 1970; 0: none */
    int handled_signal;         /* no cause, but this one was with the application's own handler, and its thread
                                   recorded nothing since then; 0: none */
    uint32_t handled_tid;
    uint64_t handled_time_ns;
    uint64_t faults_survived;         /* signals that its handler returned from */
    uint64_t handlers, handlers_lost; /* bit s - 1: our crash handler was installed for s; others have replaced it */
    /* The clock stepped back by more than a millisecond so often; time went on from where it stood. Times behind a step
     * count from there. */
    uint32_t clock_steps;
    uint32_t clock_step_count; /* of these, the newest: oldest first */
    struct fdr_clock_step_info {
        uint64_t time_ns; /* where time went on */
        uint64_t back_ns; /* how far the clock had gone back */
    } clock_step[8];
    uint64_t histograms_left_out; /* totals whose histogram does not go with their calls; known once they were read */
    uint64_t alive_ns;            /* the process was there then, seen every 5 s by fdr's own thread; 0: not known */
    /* Threads that ended while they were copied from outside: nothing of theirs is there, and [ended] may lack them. */
    uint64_t threads_gone;
    /* Locations of which recovery made accounts anew: presented there is a least number. Not those of which only lines
     * of reductions are gone. */
    uint64_t accounts_anew;
    bool killed_in_handler; /* it was killed while it handled the cause: no stacks, registers, map and messages */
    /* A live file that its process needed no more: the recording ended, or its bundle is another file. It removed this
     * one next; over_error: it could not, for this errno, and there may be nothing left in it. */
    bool over;
    int over_error;
    /* Locations of which damage took rows of totals, in this file or in the one that it was recovered of; all are known
     * once the totals were read. */
    uint64_t totals_lost;
};
FDR_API const struct fdr_file_info *fdr_file_info(const struct fdr_file *file);

struct fdr_open_call {
    uint32_t region;
    uint32_t depth;
    uint64_t enter_ns;
    bool untimed; /* only counted: enter_ns is not its own */
};
struct fdr_location_info {
    uint32_t id;
    const char *name;       /* thread name, or "" */
    uint32_t tid;           /* 0: no thread's own */
    uint32_t ended_threads; /* whose accounts are here, where their own locations are gone; 0: it is a thread's own */
    uint32_t parent;        /* signal lane, samples: the thread's location id; else UINT32_MAX */
    bool samples;           /* holds samples of a thread */
    uint32_t numa_node;
    bool live;
    uint64_t start_ns, end_ns; /* first event (0: none yet), ended (0: live) */
    uint64_t from_ns, to_ns;   /* reach: oldest and newest kept event or open call */
    size_t open_count;         /* open calls, outermost first */
    const struct fdr_open_call *open;
    uint32_t epochs; /* held now */
    uint64_t bytes_stored, bins;
    uint64_t moved_ns; /* newest event of any kind, also one that is not kept */
    /* FDR_PIN: all that was over by then is there; 0: nothing was set aside, or not all of it is there any more. How
     * many events (a call is two) in how many bytes; and whether it ended early, having used up its share. */
    uint64_t pinned_to_ns, pinned_events, pinned_bytes;
    bool pinned_cut;
    /* Its times are the caller's (`_at`), on a time line that need not be the clock's. False also where the recording's
     * clock counts ns: there nobody can tell. */
    bool given_times;
    uint64_t clamped, unbalanced, stray_leaves, abandoned, hists_dropped;
    uint64_t rows_folded;        /* calls in the rest of the totals */
    uint64_t points_without_row; /* events without duration that are in no total: no room for their kind */
    bool pinned_given;           /* FDR_PIN: what was set aside is not all there, since the thread ended */
    /* Its thread ended, and its accounts are on their way into [ended]: what rows say of these two is right together,
     * and need not be of one of them. */
    bool folding;
    /* Damage took rows of its totals: what fdr_totals says of it is right, and not all. Known as the count of these. */
    bool totals_lost;
    /* Calls that memory, or the stack of 1,036, held no level for. They are lost, without a time in the totals, and the
     * ledger has them in the row of this depth, whatever their own was: the least at which that happened. 0: none. */
    uint64_t levels_refused;
    uint32_t levels_refused_from;
};
/* Sorted by id; index beyond the last: NULL. */
FDR_API size_t fdr_location_count(const struct fdr_file *file);
FDR_API const struct fdr_location_info *fdr_location_info(const struct fdr_file *file, size_t index);

/* ---- definitions: kinds and ids as recorded ---- */
enum fdr_definition_kind {
    FDR_REGION_DEFINITION = 1,
    FDR_METRIC_DEFINITION,
    FDR_MARKER_DEFINITION,
    FDR_COMM_DEFINITION,
    FDR_EVENT_DEFINITION,
    FDR_MODULE_DEFINITION
};
struct fdr_definition {
    enum fdr_definition_kind kind;
    uint32_t id;
    const char *name; /* a region known only by address: symbol if found, else "module+0xoffset" */
    const char *file; /* "" if unknown; metric: its unit */
    uint32_t line;
    uint64_t address;     /* 0 if none */
    uint32_t value_type;  /* metrics: 0 u64, 1 i64, 2 f64 */
    uint32_t field_count; /* user events */
    const char *const *field_name;
    const uint8_t *field_type;
};
/* The greatest id, so ids go from 1 to here, though some may have none; 0 for a kind that is none. */
FDR_API size_t fdr_definition_count(const struct fdr_file *file, enum fdr_definition_kind kind);
/* By id; never NULL: an id without definition gets the name "[unknown N]", 0 or where memory is short "[unknown]". */
FDR_API const struct fdr_definition *fdr_definition(const struct fdr_file *file, enum fdr_definition_kind kind,
                                                    uint32_t id);
/* Resolves addresses with elfutils by build-id (C++ demangled). Called by open unless FDR_SYMBOLS=0; harmless where
 * the library was built without. */
FDR_API void fdr_file_symbolise(struct fdr_file *file);

/* ---- the ledger (P3) and reductions ---- */
enum fdr_event_class {
    FDR_IN_REGION = 0,
    FDR_IN_MESSAGE,
    FDR_IN_COLLECTIVE,
    FDR_IN_METRIC,
    FDR_IN_MARKER,
    FDR_IN_SAMPLE,
    FDR_IN_IO,
    FDR_IN_TASK,
    FDR_IN_USER
};
/* Never NULL: "unknown" for what is no class. */
FDR_API const char *fdr_class_name(uint32_t class_);
struct fdr_ledger_row {
    uint32_t location, class_, depth;
    uint64_t presented, kept, filtered, reduced, lost;
};
/* Decodes all bins on first use. Rows sorted by location, class, depth. Calls of length 0 that are not shown as their
 * parent was lost for want of memory, and their place cannot be told, are lost (not in a snapshot of a location that
 * went on). What that location did while its bins were copied is in no row but, perhaps, presented: what began behind
 * its to_ns is not shown. Nor is a call that was open then, ended while it was copied, and lacks a caller in the copy,
 * unless its depth alone is asked for; kept (and that of epochs) may count it. */
FDR_API size_t fdr_ledger(struct fdr_file *file, const struct fdr_ledger_row **rows);
/* Snapshots of a live process: presented of a location before and after its bins were copied (equal elsewhere). 0
 * and 0 of a location that is not there; 0 and UINT64_MAX where it is not known. */
FDR_API void fdr_ledger_bounds(const struct fdr_file *file, uint32_t location, uint64_t *before, uint64_t *after);

struct fdr_reduction_info {
    uint32_t location;
    uint64_t time_ns; /* first step of this line */
    const char *step; /* "duration" | "depth" | "class" | "epoch" | "stop" | "claim": from another location | "thin":
                         samples | "earlier": the sum of lines that found no place */
    char what[96];    /* e.g. "region calls < 256 ns at depth 12" */
    uint64_t events, bytes, from_ns, to_ns;
    uint32_t steps; /* 2^32 - 1: as many, or more */
    bool gone;      /* nothing of it is left and it is no longer stored */
};
/* By location; of each the oldest first. */
FDR_API size_t fdr_reductions(const struct fdr_file *file, const struct fdr_reduction_info **rows);

/* ---- exact totals (P5) ---- */
struct fdr_total {
    uint32_t location;
    uint32_t class_; /* FDR_IN_REGION, _MESSAGE (id 1 send 2 recv), _COLLECTIVE, _METRIC, _MARKER, _USER */
    uint32_t id;
    bool rest;     /* the regions that found no row of their own, and those that lost theirs */
    bool at_least; /* of threads that ended, some of which had it in their rest (points: nowhere), or ended while they
                      were copied: so this is not all. Of a rest also: damage took rows of this location, of which none
                      is shown (then there is a rest, of 0 calls or more); and of rows whose table is lost */
    /* 64 bits did not hold the sum: of unsigned values and times it is this or more, of signed values it went beyond
     * this bound; of collectives min and max may be more, too. */
    bool saturated;
    uint64_t calls, untimed; /* calls that are over, and all of `untimed`: counted when entered, without a time */
    uint64_t inclusive_ns, exclusive_ns, min_ns, max_ns; /* regions */
    uint64_t sum_u, min_u, max_u; /* points: sum, min and max as their value_type's bits (bytes for messages) */
    bool has_histogram;     /* false also where it does not go with `calls`: see fdr_file_info.histograms_left_out */
    uint64_t histogram[64]; /* [i]: values in [2^i, 2^(i+1)), [0] also less, [63] more; ns for regions */
};
FDR_API size_t fdr_totals(const struct fdr_file *file, const struct fdr_total **rows);

/* ---- samples: where threads were ---- */
struct fdr_sample_path {
    uint64_t pc;
    uint64_t weight; /* periods it stands for */
    uint64_t number; /* of the newest of them, since the stream began */
    uint32_t flags;  /* 1: fdr itself was at work; 2: the path is cut */
    uint32_t region_count, frame_count;
    const uint32_t *region; /* open regions as the sample saw them, outermost first */
    const uint64_t *frame;  /* return addresses, outermost first */
};
struct fdr_sample_stream { /* of one thread */
    uint32_t location;     /* id of the location of samples */
    uint32_t parent, tid;  /* location of the thread's events or UINT32_MAX; thread id, 0: of several threads in turn */
    const char *name;
    uint32_t by;              /* 0 CPU time, 1 wall time, 2 events */
    uint64_t period;          /* ns or events that a weight of 1 stands for */
    uint64_t periods;         /* all that passed */
    uint64_t from, to;        /* the weights of the kept samples sum to `to - from` */
    uint64_t presented, kept; /* samples */
    uint64_t unpathed;        /* of the presented: no stack could be read */
    uint32_t low;             /* one sample for each 2^low periods is kept all over the run */
    uint64_t bytes;           /* in bins, headers included */
};
FDR_API size_t fdr_sample_streams(struct fdr_file *file, const struct fdr_sample_stream **streams);

/* Where an address of code is. `inlined`: functions inlined at it, innermost first, `function` the one they ended in.
 * Strings live as long as the file. Resolved offline by build-id; without a symbol the name is "[module]". */
struct fdr_place {
    const char *function, *file, *module;
    uint32_t line;
    uint32_t inlined_count;
    const struct fdr_place *inlined;
};
/* call: the address is a return address, so the call is the instruction before it. Never NULL. */
FDR_API const struct fdr_place *fdr_place(const struct fdr_file *file, uint64_t address, bool call);
/* As it was at a time of the recording: libraries that are closed make room for others. fdr_place: at the end. */
FDR_API const struct fdr_place *fdr_place_at(const struct fdr_file *file, uint64_t address, bool call,
                                             uint64_t time_ns);
/* ---- detail by age: the epochs of strategy telescope ---- */
struct fdr_epoch_info {
    uint32_t location, index; /* 0 is the oldest of the location; they follow each other without a gap */
    uint32_t tier;            /* it is as long as 2^tier fresh ones */
    bool current;             /* still going on */
    bool exact;               /* calls and times count every timed call that ended in it, kept or not */
    uint64_t from_ns, to_ns;
    uint64_t calls, inclusive_ns, exclusive_ns;
    uint64_t kept_events;       /* kept, shown and ended in it: a call is two, an open one none */
    uint64_t bytes;             /* of the bins that ended in it */
    uint32_t deepest;           /* of all calls stored, ever */
    uint32_t complete_depth[4]; /* by band of durations: every call of it down to this depth is kept that was
                                 * neither filtered nor lost, and over by the location's to_ns; 0: none */
};
/* Sorted by location and age. Decodes all bins on first use. None under other strategies. */
FDR_API size_t fdr_epochs(struct fdr_file *file, const struct fdr_epoch_info **rows);
/* The regions that mattered most in an epoch; the others share a rest. Together they are the epoch's sums. */
struct fdr_epoch_total {
    uint32_t location, epoch; /* epoch: index */
    uint32_t region;
    bool rest;
    bool at_least; /* more of this region may be in the rest */
    uint64_t calls, inclusive_ns, exclusive_ns;
};
FDR_API size_t fdr_epoch_totals(struct fdr_file *file, const struct fdr_epoch_total **rows);

/* ---- events in time order ---- */
enum fdr_event_kind {
    FDR_ENTER = 1,
    FDR_LEAVE,
    FDR_SEND,
    FDR_RECV,
    FDR_COLL_BEGIN,
    FDR_COLL_END,
    FDR_METRIC,
    FDR_MARKER,
    FDR_SAMPLE,
    FDR_EVENT
};
struct fdr_read_event {
    uint64_t time_ns;
    uint32_t location; /* id */
    uint8_t kind;      /* enum fdr_event_kind */
    uint8_t class_;
    bool repaired;        /* an edge or ancestor that was added, not recorded */
    bool reduced;         /* stands for an ancestor that is no longer held */
    uint32_t depth;       /* calls: their own depth (1 = outermost); others: open regions around them */
    uint32_t id;          /* region, metric, marker, event type, collective operation */
    uint64_t duration_ns; /* enter and leave of a closed call: of the call; else 0 */
    uint32_t field_count; /* messages: peer, tag, comm, bytes; coll_end: comm, root, sent, received; metric, marker:
                             value */
    bool filtered;        /* of a reduced one: it was never stored, because a filter kept it out */
    bool not_over;        /* of a reduced one: it was not over when the snapshot was taken, and its name is not known */
    bool open;            /* enter and leave of a call that did not end: it counts up to the newest event shown of its
                             location: its to_ns, or the end of a call that ended while the snapshot was made */
    const struct fdr_sample_path *sample; /* kind FDR_SAMPLE only; until the next call of fdr_iter_next */
    uint64_t field[16];                   /* signed ones as two's complement, f64 as bits */
};

/* What to look at; zero-initialised = everything. Arrays belong to the caller until the iterator is closed. */
struct fdr_select {
    const uint32_t *locations; /* ids; NULL: all. Where samples alone are asked for also those of these threads */
    size_t location_count;
    uint32_t classes;              /* bit per class; 0: all */
    uint32_t depth_min, depth_max; /* 0: no bound; only partitions in this range are decoded */
    uint64_t from_ns, to_ns;       /* 0: no bound; calls that overlap are shown */
    uint64_t min_duration_ns;      /* of calls; those made up (`reduced`) are shown around what is */
    const uint8_t *regions;        /* regions[id] != 0: show; NULL: all */
    size_t region_count;
    bool one_location_after_another; /* no merge over locations: each location whole, in order of id */
};
/* NULL: no memory. `select` itself is copied. Close it before the file. */
FDR_API struct fdr_iter *fdr_iter_open(struct fdr_file *file, const struct fdr_select *select);
/* true and *event filled, or false at the end (where memory is short some locations may be missing: fdr_file_met).
 * Linear in the number of events, times the logarithm of that of locations. One thread at a time per iterator. */
FDR_API bool fdr_iter_next(struct fdr_iter *iter, struct fdr_read_event *event);
/* Also before the end. NULL: nothing. */
FDR_API void fdr_iter_close(struct fdr_iter *iter);

/* Kept calls one by one: a stack for each location turns enters and leaves into calls with their times. */
struct fdr_call {
    uint32_t location, region, depth;
    uint64_t duration_ns;  /* what lies in the window asked for; open calls: up to the newest event of the location */
    uint64_t exclusive_ns; /* duration - all its kept children, shown or not */
    bool open;             /* an edge was added: not a closed call */
    bool reduced;          /* stands for an ancestor that is no longer held */
};
/* Each of the functions may be NULL. What they are given is theirs until they return. */
struct fdr_call_visitor {
    void *context;
    void (*location)(void *context, uint32_t location); /* a new one begins: the calls of the one before are complete */
    bool (*enter)(void *context, const struct fdr_read_event *event); /* false: stop */
    void (*leave)(void *context, const struct fdr_call *call);
    void (*progress)(void *context, uint64_t events); /* so many were looked at, shown or not: every 65,536 of them */
};
/* All calls that `select` shows (NULL: all), one location after another; what they contain is decoded as well, whether
 * that is shown or not. 0, -ECANCELED where `enter` said stop, or -ENOMEM. */
FDR_API int fdr_visit_calls(struct fdr_file *file, const struct fdr_select *select,
                            const struct fdr_call_visitor *visitor);

/* Takes the recording out of a core file (an anonymous arena is in it; a mapped one is in its live file) into a new
 * file: first under a temporary name beside it, never over an existing one. 0, `message` then says what of it is not in
 * the core (one that was cut off), or is ""; or -errno with `message`; -ENOTSUP in a build without elfutils. */
FDR_API int fdr_core_extract(const char *core, const char *out_path, char *message, size_t message_bytes);

/* Adds to the file of a process that ended how it ended: `wait_status` as waitpid gives it (INT_MIN: not known), how
 * many processes its cgroup killed for want of memory, and when (ns since 1970). 0 or -errno. */
FDR_API int fdr_file_add_end(const char *path, int wait_status, uint32_t oom_kills, uint64_t realtime_ns);

/* ---- bundles: what a fatal signal left behind the arena; nothing of it (counts 0) in other files ---- */
struct fdr_crash_cause_info {
    int signal, code, error; /* as siginfo says */
    uint32_t tid;
    uint64_t addr; /* of a fault; else 0 */
    uint64_t time_ns, realtime_ns;
    uint32_t sender_pid, sender_uid; /* where it was sent */
    bool sent;
    bool also;       /* another thread's, while the first was being handled */
    bool before;     /* was with the application's own handler when the first one came */
    bool in_handler; /* in the crash handler itself, which went on behind it */
};
/* [0]: what the process died of. */
FDR_API size_t fdr_crash_causes(const struct fdr_file *file, const struct fdr_crash_cause_info **rows);

struct fdr_crash_thread_info {
    uint32_t tid;
    const char *name;
    bool faulting;    /* it received the first cause */
    bool answered;    /* else only its name and texts "task/TID/..." are known */
    uint32_t machine; /* ELF's number: 62 x86-64, 183 aarch64 */
    uint64_t pc, sp, fp;
    size_t register_count;
    const uint64_t *registers; /* in the order of docs/FORMAT.md */
    bool own;                  /* fdr's own thread, by its name: it blocks all signals and does not answer */
    bool cut;                  /* the stack went on behind what was kept; whether callers are missing: its last frame */
    uint32_t kept_words;       /* of the stack: addresses of code, or of the stack itself */
    uint64_t kept_bytes;       /* how far from sp they are from */
};
/* The faulting one first. */
FDR_API size_t fdr_crash_threads(const struct fdr_file *file, const struct fdr_crash_thread_info **rows);
/* "rax", ...; NULL: there is none of that number. */
FDR_API const char *fdr_crash_register_name(uint32_t machine, size_t index);

struct fdr_crash_frame {
    uint64_t address;
    uint32_t line;        /* 0: unknown */
    const char *function; /* "": unknown */
    const char *file;     /* "": unknown */
    const char *module;   /* path, "" where the address lies in none */
    uint64_t offset;      /* of the address in the module */
    bool is_inline;       /* part of the next frame that is not */
    bool guessed;         /* an address found on the stack that may be left from earlier calls */
    bool cut;             /* the last one, of a stack larger than what was kept of it: its callers are not known */
};
/* The call stack of a thread, innermost first; 0 for one that is not there. Unwound and named on first use, with the
 * modules' files where they are found under their path with the build-id that was recorded. */
FDR_API size_t fdr_crash_frames(struct fdr_file *file, size_t thread, const struct fdr_crash_frame **rows);

/* "cmdline", "environment", "abort", "exception" (demangled), "status", "maps", ... NULL: there is none. *bytes may be
 * NULL; a NUL follows. */
FDR_API const char *fdr_crash_text(const struct fdr_file *file, const char *name, size_t *bytes);
FDR_API const char *fdr_crash_text_name(const struct fdr_file *file, size_t index);              /* NULL: no more */
FDR_API const char *fdr_crash_text_at(const struct fdr_file *file, size_t index, size_t *bytes); /* the text of it */

/* fdr_note: in every file. Oldest key first. */
struct fdr_note_info {
    const char *key, *value;
};
FDR_API size_t fdr_notes(const struct fdr_file *file, const struct fdr_note_info **rows);

/* Writes what is readable as a fresh, whole file, first under a temporary name beside it: damaged bins left out and
 * said so. 0 or -errno; -ENOSPC also where what has to be made anew is more than the recording ever held (1 MiB at
 * least): then nothing is written. */
FDR_API int fdr_file_recover(struct fdr_file *file, const char *out_path, char *message, size_t message_bytes);

/* ---- conversions: 0 or -errno. `out_path` "-": standard output; a file appears when it is whole ---- */
FDR_API int fdr_export_chrome(struct fdr_file *const *files, size_t count, const struct fdr_select *select,
                              const char *out_path);
FDR_API int fdr_export_folded(struct fdr_file *const *files, size_t count, const struct fdr_select *select,
                              const char *out_path);

/* "0.1.0", of the library that is loaded. A constant. */
FDR_API const char *fdr_reader_version(void);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
