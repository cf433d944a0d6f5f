/* SPDX-License-Identifier: MIT */
/* libfdr-reader: reads recordings (snapshots, live files, also after a kill, crash bundles) on any machine, without the
 * program that was recorded. This header is its contract.
 *
 *     struct fdr_file *file;
 *     char message[256];
 *     if (fdr_file_open("prog.host.17.1.fdr", &file, message, sizeof message) == FDR_UNREADABLE) fail(message);
 *     struct fdr_iter *iter = fdr_iter_open(file, NULL);       // NULL: all events, in order of time
 *     struct fdr_read_event e;
 *     while (iter && fdr_iter_next(iter, &e))
 *         if (e.kind == FDR_ENTER) puts(fdr_definition(file, FDR_REGION_DEFINITION, e.id)->name);
 *     fdr_iter_close(iter);
 *     if (fdr_file_met(file) != FDR_WHOLE) puts("parts of the file are damaged, or memory ran out");
 *     fdr_file_close(file);
 *
 * The reader trusts nothing. Whatever the bytes are, it returns a message and the part that holds; it does not crash,
 * hang or invent an event. A damaged bin (a piece of 512 bytes to 64 KiB) costs the records of that bin.
 *
 * Words: those of fdr/fdr.h (region, call, point, location, ledger), and
 *   partition  The records of one location, class and calling depth, for calls also of one band of durations. fdr gives
 *              back the oldest records of a partition first.
 *   epoch      A stretch of time of a location, with exact totals of its own (strategy telescope).
 *   [reduced]  A call that the reader makes up: it stands for a caller that is no longer kept, around its kept calls.
 *   [ended]    The location into which fdr merges the accounts of threads that ended, when their memory is needed.
 *   [rest]     The row of totals that stands for all regions without a row of their own.
 *
 * Rules for every function, unless its own text says otherwise
 *   Units      Times are ns on the recording's time line: CLOCK_MONOTONIC, or the times that the program passed
 *              to the _at functions. Sizes are bytes.
 *   Pointers   Not NULL, except where the text gives a meaning to NULL. `message` may be NULL if message_bytes is 0.
 *   Rows       A function that takes `rows` sets *rows to an array and returns its length; with 0, do not follow *rows.
 *              An index beyond the end gives NULL.
 *   Ownership  The results of a function belong to the fdr_file and live until that is closed. Arguments are needed
 *              until the function returns, except where the text says longer.
 *   Threads    Many threads may read one fdr_file, each with its own fdr_iter. Functions that compute something on
 *              first use do so under the file's lock. During fdr_file_close, fdr_file_symbolise and fdr_file_recover no
 *              other thread may use the file. While a thread reads the damage list, no other one may call a function
 *              that adds to it: fdr_file_verify, fdr_file_met, fdr_totals, fdr_traffic, fdr_reductions, fdr_epochs,
 *              fdr_governor, fdr_tallies.
 *   Signals    Not for signal handlers, except fdr_class_name, fdr_crash_register_name and fdr_reader_version.
 *   Progress   A function may block on the file's lock, on files and on symbol files. Each ends: its time is linear in
 *              the size of the file and of the result, apart from sorting.
 *   Errors     A verdict, or 0 or -errno. Nothing is printed. `message` gets one line, cut to its room, or "".
 *   Memory     If memory runs out, results may lack rows, events or names. fdr_file_verify and fdr_file_met then return
 *              FDR_UNREADABLE, for every file that is open at that moment. Call one of them before you take a result
 *              for complete.
 *   New files  Are written under a temporary name in the same directory and renamed when they are complete.
 *
 * docs/API.md tells the corner cases. Sources: Wagner, Concepts for In-memory Event Tracing, TU Dresden 2015: reading
 * some depths only (4.5.1, 4.5.2), summaries (4.5.3), memory balance (eq. 4.1), levels of samples (4.7). Ilsche et al.,
 * Combining Instrumentation and Sampling, 2014: both in one recording. */
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

/* WHOLE: nothing is damaged. DAMAGED: usable, some of it is missing. UNREADABLE: no recording, or memory ran out. */
enum fdr_verdict { FDR_WHOLE = 0, FDR_DAMAGED = 1, FDR_UNREADABLE = 2 };

/* ---- open and close ---- */

/* Opens a file, or a copy of one in memory that the caller keeps until fdr_file_close. Checks the headers; bins are
 * checked when they are decoded. FDR_UNREADABLE sets *out to NULL. `message`: the first problem. A file that is still
 * being written is copied first; any other is mapped. So a file that is truncated while it is open costs a SIGBUS. */
FDR_API enum fdr_verdict fdr_file_open(const char *path, struct fdr_file **out, char *message, size_t message_bytes);
FDR_API enum fdr_verdict fdr_file_open_memory(const void *bytes, size_t count, struct fdr_file **out, char *message,
                                              size_t message_bytes);
/* Frees the file and all that came from it. Close its iterators before. NULL: does nothing. */
FDR_API void fdr_file_close(struct fdr_file *file);

/* Copies the recording of a running process from outside, and opens the copy. Works also if the process hangs or is
 * stopped; nothing is written to it. The copy is a snapshot with the reason "live". events false: copies no events,
 * which is quick; locations, open calls, definitions, totals and the ledger are there. Needs read access to the live
 * file; with FDR_ARENA=anonymous, access to the process's memory (same user and dumpable, or root). */
FDR_API enum fdr_verdict fdr_process_open(uint32_t pid, bool events, struct fdr_file **out, char *message,
                                          size_t message_bytes);
/* The same into a new file of mode 0600; fails if `path` exists. reason NULL: "outside". 0 or -errno. */
FDR_API int fdr_process_snapshot(uint32_t pid, const char *path, const char *reason, char *message,
                                 size_t message_bytes);

/* ---- several files as one ---- */

/* The ranks of a job as one file. It has the locations and definitions of all, with ids of its own, and their totals,
 * ledger, epochs, reductions and samples. Events are merged by the times of the processes. A location's name is
 * "RANK:NAME", or "RANK:ID" without a name. Figures of fdr_file_info are sums; other facts are the first file's, or
 * none. Notes, tallies, sections, crash sections and the governor stay with the files. Keep the files open until the
 * joined one is closed. NULL: out of memory, or no files. */
FDR_API struct fdr_file *fdr_files_join(struct fdr_file *const *files, const int *ranks, size_t count);
#define FDR_ADDRESS_MASK UINT64_C(0xffffffffffff) /* the address itself, in a sample of a joined file */
struct fdr_origin {
    size_t file; /* index in `files` */
    int rank;
    uint32_t id; /* of the location there */
};
/* Where a location comes from. False: the file is not a joined one, or has no such location. */
FDR_API bool fdr_location_origin(const struct fdr_file *file, uint32_t location, struct fdr_origin *origin);

/* ---- damage ---- */

/* Decodes every bin and adds its findings to the damage list. FDR_UNREADABLE: memory ran out since the file was opened;
 * take no result so far for complete. */
FDR_API enum fdr_verdict fdr_file_verify(struct fdr_file *file);
/* The same for the bins only that were read so far. Decodes nothing; for after reading. */
FDR_API enum fdr_verdict fdr_file_met(struct fdr_file *file);
/* The damage found so far, one line each, at most a thousand. An index beyond the end gives "". */
FDR_API size_t fdr_file_damage_count(const struct fdr_file *file);
FDR_API const char *fdr_file_damage(const struct fdr_file *file, size_t index);

/* ---- the file as a whole ---- */

struct fdr_file_info {
    uint32_t format;              /* version of the format */
    const char *state;            /* "recording", "finalized", "crashed" */
    const char *reason;           /* why the snapshot was taken; "": a live file */
    bool has_cause;               /* the process crashed; the next five fields tell the cause */
    int cause_signal, cause_code; /* as siginfo has them */
    uint64_t cause_addr, cause_time_ns;
    uint32_t cause_tid;
    uint32_t pid;
    int rank; /* MPI rank; -1: unknown */
    const char *host, *exe, *build_id, *config, *strategy;
    uint64_t created_realtime_ns; /* start of the recording, since 1970 */
    double time_unit_ns;          /* length of one stored tick */
    uint64_t buffer_bytes, bin_bytes, bins, bins_free;
    uint64_t meta_bytes;        /* definitions, stacks, totals, ledger, wherever they lie */
    uint64_t bytes_stored;      /* in bins in use, headers included */
    uint64_t first_ns, last_ns; /* oldest and newest kept event of all locations */
    uint64_t common_from_ns;    /* each location reaches back to here, or is complete since its start */
    /* Threads, events and definitions that found no room; bins that changed while the snapshot copied them. */
    uint64_t lost_locations, lost_unattached, lost_definitions, dropped_bins;
    uint64_t unlisted_bins;     /* bins in no list: just given back, or just taken */
    int64_t realtime_offset_ns; /* time_ns + this = ns since 1970 */
    uint64_t taken_ns;          /* when the snapshot was taken; 0: no snapshot */
    const char *reason_kind; /* "api", "signal", "finalize", "trigger", "watchdog", "outside", "job"; "": not known */
    bool has_trigger;        /* a trigger or the watchdog took it; the next five fields describe it */
    const char *trigger_name;
    uint64_t trigger_time_ns, trigger_value;
    uint32_t trigger_value_type; /* enum fdr_value_type */
    uint32_t trigger_location;   /* id; UINT32_MAX: none */
    bool has_end;                /* `fdr run` saw how the process ended; the next three fields tell */
    int end_status;              /* as waitpid gives it; INT_MIN: not known */
    uint32_t end_oom_kills;      /* processes that the kernel killed in its cgroup for want of memory */
    uint64_t end_realtime_ns;    /* since 1970; 0: not known */
    uint64_t record_bytes;       /* the part of bytes_stored that is records */
    double memory_balance;       /* average use of the bins / greatest use of one; 0: nothing is stored */
    uint64_t band_edge_ns[3];    /* limits between the four bands of durations */
    uint64_t cause_realtime_ns;  /* of the cause, since 1970; 0: none */
    /* Not a crash: a signal that the program's own handler was working on when the recording stopped; 0: none. */
    int handled_signal;
    uint32_t handled_tid;
    uint64_t handled_time_ns;
    uint64_t faults_survived;         /* fatal signals from which the program's own handler returned */
    uint64_t handlers, handlers_lost; /* bit s - 1: fdr's crash handler took signal s; another one replaced it */
    /* How often the clock stepped back by more than 1 ms. fdr went on from the newest time; later times count from
     * there. */
    uint32_t clock_steps;
    uint32_t clock_step_count; /* entries of clock_step: the newest steps, oldest first */
    struct fdr_clock_step_info {
        uint64_t time_ns; /* where time went on */
        uint64_t back_ns; /* how far the clock had stepped back */
    } clock_step[8];
    uint64_t histograms_left_out; /* histograms that do not fit the calls of their row; known after fdr_totals */
    uint64_t alive_ns;            /* the process was still there; fdr's thread notes it every second; 0: not known */
    /* Threads that ended while they were copied from outside: their events are missing, and [ended] may lack them. */
    uint64_t threads_gone;
    /* Locations whose accounts fdr_file_recover rebuilt: `presented` is a lower bound there. */
    uint64_t accounts_anew;
    bool killed_in_handler; /* killed while it handled the cause: no stacks, registers, memory map and messages */
    /* A live file that its process no longer needed: the recording ended, or its bundle is another file. over_error:
     * the errno for which the process could not remove it (it may be empty then), else 0. */
    bool over;
    int over_error;
    /* Locations that lost rows of totals to damage, here or before a recovery; complete after fdr_totals. */
    uint64_t totals_lost;
    /* At alive_ns: the longest time without an event of any thread that was over; processor time of the process since
     * its newest event. 0: not known. */
    uint64_t longest_still_ns, still_cpu_ns;
    /* Of a bundle. The fingerprint is equal for deaths of one cause, place and build; 0: not known. `alike` is the
     * number of such deaths whose bundles were removed: this bundle counts them. */
    uint64_t fingerprint, alike;
};
FDR_API const struct fdr_file_info *fdr_file_info(const struct fdr_file *file);

/* ---- locations ---- */

struct fdr_open_call {
    uint32_t region;
    uint32_t depth; /* 1: outermost */
    uint64_t enter_ns;
    bool untimed; /* only counted; enter_ns is that of an earlier event */
};
struct fdr_location_info {
    uint32_t id;
    const char *name;       /* of the thread, or "" */
    uint32_t tid;           /* 0: not of one thread */
    uint32_t ended_threads; /* [ended]: how many threads it stands for; else 0 */
    uint32_t parent;        /* of a signal lane or samples: id of the thread's location; else UINT32_MAX */
    bool samples;           /* it holds samples of a thread */
    uint32_t numa_node;
    bool live;
    uint64_t start_ns, end_ns; /* first event, 0: none yet; end of the thread, 0: it lives */
    uint64_t from_ns, to_ns;   /* oldest and newest kept event, open calls included */
    size_t open_count;
    const struct fdr_open_call *open; /* outermost first */
    uint32_t epochs;                  /* number of them now */
    uint64_t bytes_stored, bins;
    uint64_t moved_ns; /* newest event of any kind, kept or not */
    /* FDR_PIN: everything that ended by pinned_to_ns is there (0: no such guarantee), as so many events (a call is two)
     * and bytes. pinned_cut: the pinned time is shorter than asked for, as it had used up its share of memory. */
    uint64_t pinned_to_ns, pinned_events, pinned_bytes;
    bool pinned_cut;
    bool given_times; /* its times came from the _at functions; false also if the recording's clock counts ns */
    /* Numbers of times that stepped back, and of calls closed by the leave of an outer one. Leaves without a call.
     * Operations that a handler left by longjmp. Regions without a histogram. */
    uint64_t clamped, unbalanced, stray_leaves, abandoned, hists_dropped;
    uint64_t rows_folded;        /* calls in the row [rest] */
    uint64_t points_without_row; /* points that are in no total, as there was no room for a row of their kind */
    bool traffic_lost;           /* messages or collectives are in no row of fdr_traffic, as there was no room */
    bool pinned_given;           /* FDR_PIN: the thread ended, and fdr has given pinned records back */
    bool folding;                /* its accounts are just being merged into [ended]; only the sums of both are right */
    bool totals_lost; /* damage: the rows of its totals are exact, and some are missing; complete after fdr_totals */
    /* Calls for which memory, or the limit of 1,036, left no level. They are lost and have no time; the ledger has them
     * all in the row of depth levels_refused_from. 0: none. */
    uint64_t levels_refused;
    uint32_t levels_refused_from;
};
/* Sorted by id. */
FDR_API size_t fdr_location_count(const struct fdr_file *file);
FDR_API const struct fdr_location_info *fdr_location_info(const struct fdr_file *file, size_t index);

/* ---- definitions ---- */

enum fdr_definition_kind {
    FDR_REGION_DEFINITION = 1,
    FDR_METRIC_DEFINITION,
    FDR_MARKER_DEFINITION,
    FDR_COMM_DEFINITION,
    FDR_EVENT_DEFINITION,
    FDR_MODULE_DEFINITION,
    FDR_FILE_DEFINITION = 8 /* of io */
};
struct fdr_definition {
    enum fdr_definition_kind kind;
    uint32_t id;
    const char *name; /* of a region known by address: its symbol, else "module+0xoffset" */
    const char *file; /* of a region; "": unknown */
    uint32_t line;
    uint64_t address; /* 0: none */
    /* Of a region: a name that rules of FDR_FILTER see. For a region known by address that is its symbol, as linked;
     * "": it has none, or the module's file is not there. */
    const char *symbol;
};
/* The greatest id. Ids count from 1; some may have no definition. */
FDR_API size_t fdr_definition_count(const struct fdr_file *file, enum fdr_definition_kind kind);
/* Never NULL: an id without a definition has the name "[unknown ID]", or "[unknown]". */
FDR_API const struct fdr_definition *fdr_definition(const struct fdr_file *file, enum fdr_definition_kind kind,
                                                    uint32_t id);

/* The contents of definitions of three kinds beside a name. Never NULL: an id without a definition has a name as above,
 * and nothing else. */
enum fdr_value_type { FDR_VALUE_U64 = 0, FDR_VALUE_I64 = 1, FDR_VALUE_F64 = 2 };
struct fdr_metric_info {
    uint32_t id;
    const char *name, *unit; /* unit "": a count, or not given */
    enum fdr_value_type type;
    bool counter; /* its values are running counts; else it is a gauge */
};
FDR_API const struct fdr_metric_info *fdr_metric_info(const struct fdr_file *file, uint32_t id);
struct fdr_field_info {
    const char *name; /* at most 27 bytes */
    enum fdr_value_type type;
    /* Of readings of counters (events fdr.counters.N and fdr.edges): unit and id of the metric that describes the
     * counter. Else "" and 0. */
    const char *unit;
    uint32_t metric;
    const char *const *word; /* what its values 0, 1, ... stand for, ended by NULL; NULL: its values are numbers */
};
struct fdr_event_info { /* a type of user event */
    uint32_t id;
    const char *name;
    uint32_t field_count;
    const struct fdr_field_info *field;
};
FDR_API const struct fdr_event_info *fdr_event_info(const struct fdr_file *file, uint32_t id);
struct fdr_comm_info { /* a communicator; 0, the world, has no definition */
    uint32_t id;
    const char *name;
    uint32_t size;              /* 0: not known */
    uint64_t identity;          /* equal in all processes; of 0, the world, 1 */
    const uint32_t *world_rank; /* of each member */
};
FDR_API const struct fdr_comm_info *fdr_comm_info(const struct fdr_file *file, uint32_t id);
/* Finds names for addresses by build-id, with elfutils; C++ names are demangled. The open functions call it unless
 * FDR_SYMBOLS=0. Does nothing in a build without elfutils. */
FDR_API void fdr_file_symbolise(struct fdr_file *file);

/* ---- the ledger, and the log of reductions ---- */

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
/* "region", "message", ...; "unknown" for any other number. */
FDR_API const char *fdr_class_name(uint32_t class_);
struct fdr_ledger_row { /* presented = kept + filtered + reduced + lost, unless the location went on during the copy */
    uint32_t location, class_, depth;
    uint64_t presented, kept, filtered, reduced, lost;
};
/* Sorted by location, class, depth. Decodes all bins on first use. rows may be NULL. */
FDR_API size_t fdr_ledger(struct fdr_file *file, const struct fdr_ledger_row **rows);
/* Of a snapshot of a running process: the presented events of a location, before and after its bins were copied. The
 * sum of its ledger lies between the two; if they are equal it is exact. 0, 0: no such location. 0, UINT64_MAX: not
 * known. */
FDR_API void fdr_ledger_bounds(const struct fdr_file *file, uint32_t location, uint64_t *before, uint64_t *after);

struct fdr_reduction_info { /* one line of the log: steps of one kind on one partition */
    uint32_t location;
    uint64_t time_ns; /* of its first step */
    const char *step; /* "duration", "depth", "class", "epoch", "stop"; "claim": taken from another location; "thin":
                         samples; "earlier": the sum of lines that were overwritten */
    char what[96];    /* "region calls < 256 ns at depth 12" */
    uint64_t events, bytes, from_ns, to_ns;
    uint32_t steps; /* UINT32_MAX: that many or more */
    bool gone;      /* none of these events is left, and new ones of the kind are not stored */
};
/* Sorted by location, oldest first. */
FDR_API size_t fdr_reductions(const struct fdr_file *file, const struct fdr_reduction_info **rows);

/* ---- the governor: FDR_OVERHEAD ---- */

struct fdr_muted_region { /* a region that was muted at some time */
    uint32_t region;
    bool muted;       /* now */
    uint32_t times;   /* how often it was muted */
    uint64_t time_ns; /* of the newest change */
    double share;     /* then: what recording its calls would cost, of the program's processor time */
};
struct fdr_mute_change {
    uint64_t time_ns;
    uint32_t region;
    bool muted;        /* false: let back */
    double share;      /* what recording its calls would cost */
    double all_shares; /* what recording cost before the change */
};
/* Shares are parts of the program's processor time, 0.02 for 2 %. They are calls times a calibrated cost. */
struct fdr_governor {
    double target;
    uint32_t period;                       /* of so many calls of a muted region one has a time, on average */
    double recorded_call_ns;               /* calibrated: what a recorded call costs more than a muted one */
    double muted_call_ns;                  /* calibrated: what a muted call costs */
    double share, muting_share;            /* of the newest interval: recording; what is left if all is muted */
    double run_share, run_muting_share;    /* of the whole run */
    uint32_t muted_now;                    /* regions */
    bool no_room;                          /* more regions should have been muted than memory had places for */
    const struct fdr_muted_region *region; /* in order of their first change */
    size_t regions;
    const struct fdr_mute_change *change; /* oldest first */
    size_t changes;
    uint64_t changes_made; /* more than `changes`: the oldest lines were overwritten */
};
/* NULL: FDR_OVERHEAD was off, or the account is damaged. */
FDR_API const struct fdr_governor *fdr_governor(const struct fdr_file *file);
/* Was this region muted at some time? */
FDR_API bool fdr_region_was_muted(const struct fdr_file *file, uint32_t region);

/* ---- sections: optional parts of the file ---- */

struct fdr_section {
    char name[9];
    uint32_t version;
    uint32_t location; /* that it belongs to; UINT32_MAX: to the whole recording */
    uint64_t bytes;
    bool known; /* false: a newer fdr wrote it, and this reader skips it */
};
/* In the order of the file. */
FDR_API size_t fdr_sections(const struct fdr_file *file, const struct fdr_section **rows);

/* ---- tallies: counters of the process, by key (fdr/tally.h) ---- */

struct fdr_tally_row {
    uint32_t kind;
    uint8_t key[24];
    uint64_t counter[3];
};
/* Sorted by kind, then by the bytes of the key. Each is as it was when the file was written; counters that belong
 * together may be one event apart. */
FDR_API size_t fdr_tallies(const struct fdr_file *file, const struct fdr_tally_row **rows);
struct fdr_tally_room {
    uint64_t refused; /* how often a key found no room */
    uint32_t places;  /* for keys; 0: the file has no tallies */
    uint32_t half;    /* keys that were being made when the process died, or the file was written: not shown */
    uint32_t damaged; /* keys with wrong bytes: not shown */
};
FDR_API struct fdr_tally_room fdr_tally_room(const struct fdr_file *file);
/* "trigger", "mpi", ...; "": a kind of another library. Names of its counters: "seen", "dropped", "snapshots"; of
 * other libraries "0", "1", "2". */
FDR_API const char *fdr_tally_kind_name(uint32_t kind);
FDR_API const char *fdr_tally_counter_name(uint32_t kind, unsigned counter);
/* The key for people: a trigger's name, with "..." where it was cut, or the names of an envelope of messages or a
 * communicator. Keys of other libraries are 24 bytes in hex. */
FDR_API void fdr_tally_key_text(const struct fdr_tally_row *row, char *text, size_t bytes);

/* ---- MPI: what is under way (libfdr-mpi). Each function reads rows of fdr_tallies ---- */

struct fdr_mpi_comm_state { /* of a row of kind FDR_TALLY_COLLECTIVES */
    uint64_t identity;      /* equal in all processes */
    uint32_t comm;          /* for fdr_comm_info */
    uint64_t begun, ended;  /* collectives; the newest one has the ordinal begun - 1 */
    uint32_t operation;     /* of the newest one, while one is under way; 0: none is */
    uint32_t root;          /* its world rank; UINT32_MAX: it has none, or this is not known */
    uint64_t since_ns;
};
/* False: the row is of another kind. */
FDR_API bool fdr_mpi_comm_state(const struct fdr_tally_row *row, struct fdr_mpi_comm_state *state);
struct fdr_mpi_comm_bytes {         /* of the collectives of a communicator that ended, as this process saw them */
    uint64_t sent, received, ended; /* ended: also persistent ones, which are not in fdr_mpi_comm_state.ended */
};
/* `row`: of kind FDR_TALLY_COLLECTIVES. False: not known, as the tallies had no room, or the recording is older. */
FDR_API bool fdr_mpi_comm_bytes(const struct fdr_file *file, const struct fdr_tally_row *row,
                                struct fdr_mpi_comm_bytes *bytes);

enum fdr_mpi_wait {
    FDR_MPI_WAIT_UNKNOWN, /* fdr does not know what the call waits for */
    FDR_MPI_WAIT_SEND,
    FDR_MPI_WAIT_RECEIVE,
    FDR_MPI_WAIT_SENDRECV, /* both; the receive is told */
    FDR_MPI_WAIT_PROBE,
    FDR_MPI_WAIT_COLLECTIVE,
    FDR_MPI_WAIT_REQUESTS, /* all of them; one is told, if `pending` is not 0: the first receive, else the first */
    FDR_MPI_WAIT_ANY,      /* any of them */
    FDR_MPI_WAIT_COMM,     /* the others that make a communicator out of the one that is told */
    FDR_MPI_WAIT_NOTHING,  /* the call does not block */
    FDR_MPI_WAIT_FINALIZE,
    FDR_MPI_WAIT_KINDS
};
#define FDR_MPI_ANY 0xfffffffeu
struct fdr_mpi_thread_state { /* of a row of kind FDR_TALLY_CALL */
    uint32_t tid;
    uint64_t calls;    /* of MPI that ended */
    bool in_call;      /* of MPI */
    bool torn;         /* it went from one call to another while it was copied: the fields below say nothing */
    uint32_t region;   /* of that call; UINT32_MAX: not known */
    uint64_t since_ns; /* exact to some ms */
    enum fdr_mpi_wait wait;
    uint32_t comm;      /* for fdr_comm_info; UINT32_MAX: none */
    uint32_t pending;   /* open requests of the call */
    uint32_t peer;      /* or root; world rank. FDR_MPI_ANY: any; UINT32_MAX: none, or not known */
    int32_t tag;        /* INT32_MIN: any */
    uint32_t operation; /* of a collective; of requests also 0: a receive, 1: a send */
    uint64_t ordinal;   /* UINT64_MAX: not known */
};
/* False: the row is of another kind. */
FDR_API bool fdr_mpi_thread_state(const struct fdr_file *file, const struct fdr_tally_row *row,
                                  struct fdr_mpi_thread_state *state);

/* ---- exact totals of the whole run ---- */

struct fdr_total {
    uint32_t location;
    uint32_t class_; /* FDR_IN_REGION, _MESSAGE (id 1: sent, 2: received), _COLLECTIVE, _METRIC, _MARKER, _USER, _IO */
    uint32_t id;
    bool rest;               /* the row [rest] */
    bool at_least;           /* a lower bound: more of it may be in [rest] or be missing; docs/API.md, "Totals" */
    bool saturated;          /* a sum did not fit 64 bits and stands at its limit */
    uint64_t calls, untimed; /* timed calls that ended, or points; calls that were only counted */
    uint64_t inclusive_ns, exclusive_ns, min_ns, max_ns; /* of calls; of io: inclusive_ns, from begin to end */
    uint64_t sum_u, min_u, max_u;                        /* of points: bits of the value type; messages, io: bytes */
    bool has_histogram;
    uint64_t histogram[64]; /* [i]: values in [2^i, 2^(i+1)), [0] also below, [63] also above; calls: ns */
    uint32_t operation;     /* of io: enum fdr_io_operation (fdr/fdr.h); else 0 */
};
FDR_API size_t fdr_totals(const struct fdr_file *file, const struct fdr_total **rows);

/* ---- messages and collectives of regions ---- */

struct fdr_traffic {
    uint64_t sends, bytes_sent, receives, bytes_received;
    uint64_t collectives, collectives_sent, collectives_received; /* that ended; their bytes, of this process */
};
/* Exact sums for one region of one location, whatever was given back. A message counts for the region under way when it
 * was recorded, as MPI_Send, and for the caller, the region around that one. So either kind of rows has each message
 * once. If traffic_lost of the location is set, memory had no room for the rows of some regions. */
struct fdr_traffic_total {
    uint32_t location, region; /* UINT32_MAX: outside of all regions */
    bool caller;               /* of the messages in calls that the region made; else in the region itself */
    bool saturated;            /* a sum of bytes did not fit 64 bits and stands at its limit */
    struct fdr_traffic sum;
};
/* Sorted by location; callers come last; then by region. */
FDR_API size_t fdr_traffic(const struct fdr_file *file, const struct fdr_traffic_total **rows);

/* ---- samples ---- */

struct fdr_sample_path {
    uint64_t pc;
    uint64_t weight; /* periods that the sample stands for */
    uint64_t number; /* of the newest of these periods, since the stream began */
    uint32_t flags;  /* 1: fdr itself was at work; with `state`: inner regions may be missing; 2: the path is cut */
    uint32_t region_count, frame_count;
    const uint32_t *region; /* open regions, outermost first */
    const uint64_t *frame;  /* return addresses, outermost first */
    /* In a joined file the upper 16 bits of `pc` and `frame` say which file knows the address; fdr_place_at takes
     * them so. */
    /* Another thread looked: a definition of kind FDR_REGION_DEFINITION, whose name is the state of the thread, as
     * "[blocked in poll]". `pc`: the place where it waits, 0 unknown. UINT32_MAX: the thread itself was interrupted. */
    uint32_t state;
};
struct fdr_sample_stream { /* of one thread */
    uint32_t location;     /* the location of samples */
    uint32_t parent, tid;  /* the thread's location, UINT32_MAX: none; its id, 0: several threads in turn */
    const char *name;
    uint32_t by;              /* 0: CPU time, 1: wall time, 2: events */
    uint64_t period;          /* length of a weight of 1, in ns or events */
    uint64_t periods;         /* all that passed */
    uint64_t from, to;        /* the weights of the kept samples sum to `to - from` */
    uint64_t presented, kept; /* samples */
    uint64_t unpathed;        /* samples without a stack */
    uint32_t low;             /* of each 2^low periods one sample is kept, over the whole run */
    uint64_t bytes;           /* in bins, headers included */
    uint64_t left_out;        /* looks from outside that were due and not taken (FDR_SAMPLE=wall) */
};
/* streams may be NULL. */
FDR_API size_t fdr_sample_streams(struct fdr_file *file, const struct fdr_sample_stream **streams);

/* The place of a code address. inlined: the functions inlined there, innermost first, all of them inside `function`. */
struct fdr_place {
    const char *function, *file, *module;
    uint32_t line;
    uint32_t inlined_count;
    const struct fdr_place *inlined;
};
/* call: the address is a return address, so look at the instruction before it. Never NULL; without a symbol the name is
 * "[module]". The modules are those at the end of the recording. */
FDR_API const struct fdr_place *fdr_place(const struct fdr_file *file, uint64_t address, bool call);
/* The same with the modules at that time: dlclose makes room for others. */
FDR_API const struct fdr_place *fdr_place_at(const struct fdr_file *file, uint64_t address, bool call,
                                             uint64_t time_ns);

/* ---- epochs: detail by age (strategy telescope) ---- */

struct fdr_epoch_info {
    uint32_t location, index; /* 0 is the oldest of its location; epochs follow each other without a gap */
    uint32_t tier;            /* it is made of 2^tier epochs of the newest tier */
    bool current;             /* not over yet */
    bool exact;               /* the sums below are those of all timed calls that ended in it, kept or not */
    uint64_t from_ns, to_ns;
    uint64_t calls, inclusive_ns, exclusive_ns;
    bool traffic_known;         /* false: memory had no room, or the copy was made meanwhile, or by an older version */
    struct fdr_traffic traffic; /* messages and collectives recorded in it, kept or not */
    uint64_t kept_events;       /* that ended in it: a call counts as two, an open one as none */
    uint64_t bytes;             /* of bins that ended in it */
    uint32_t deepest;           /* depth of the deepest call ever stored in the location */
    uint32_t complete_depth[4]; /* by band of durations: its calls down to this depth are all kept; 0: none. Filtered
                                 * calls, lost ones, and those that ended after the location's to_ns do not count */
};
/* Sorted by location, oldest first. Decodes all bins on first use. None under other strategies. */
FDR_API size_t fdr_epochs(struct fdr_file *file, const struct fdr_epoch_info **rows);
/* The regions with most time in an epoch; all others share one rest. Together they are the sums of the epoch. */
struct fdr_epoch_total {
    uint32_t location, epoch; /* index of the epoch */
    uint32_t region;
    bool rest;
    bool at_least; /* a lower bound: more of the region may be in the rest */
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
    FDR_EVENT,
    FDR_IO_BEGIN,
    FDR_IO_END,
    FDR_RESOLVE /* says the ordinal of an open receive */
};
/* The ordinal of a message or a collective, and how sure it is. */
enum fdr_ordinal_kind {
    FDR_ORDINAL_NONE,
    FDR_ORDINAL_KNOWN,
    FDR_ORDINAL_OPEN,  /* `ordinal` is the token of an FDR_RESOLVE */
    FDR_ORDINAL_SHARED /* ambiguous: it may be that of another one of its envelope */
};
struct fdr_read_event {
    uint64_t time_ns;
    uint32_t location;    /* id */
    uint8_t kind;         /* enum fdr_event_kind */
    uint8_t class_;       /* enum fdr_event_class */
    bool repaired;        /* not recorded: an enter, a leave or a caller that the reader added */
    bool reduced;         /* stands for a caller that is no longer kept */
    uint32_t depth;       /* of a call: its own, 1 is outermost; of a point: number of open calls around it */
    uint32_t id;          /* of the region, metric, marker, event type or collective operation */
    uint64_t duration_ns; /* enter and leave of a call that ended; else 0 */
    uint32_t field_count; /* messages: peer, tag, comm, bytes; end of a collective: comm, root, sent, received
                             (begin: comm, if it has an ordinal);
                             metrics and markers: the value; user events: their own fields; others: fdr_event_fields */
    bool filtered;        /* with `reduced`: a rule kept it out, it was never stored */
    bool not_over;        /* with `reduced`: it was open when the snapshot was taken, and its name is not known */
    bool open; /* enter and leave of a call that did not end: it counts up to the newest event shown of the location */
    const struct fdr_sample_path *sample; /* of kind FDR_SAMPLE; valid until the next fdr_iter_next */
    uint8_t ordinal_kind;                 /* enum fdr_ordinal_kind, of messages and collectives */
    uint64_t ordinal;                     /* among those of its envelope, or of its communicator */
    uint64_t field[16];                   /* signed values as two's complement, f64 as bits */
};

/* The facts that the events of a kind have in common. */
struct fdr_kind_info {
    const char *name;     /* "send", as in fdr dump --tsv */
    const char *phase;    /* "begin" or "end" of an operation; "": the event is a moment */
    uint32_t class_;      /* enum fdr_event_class */
    uint32_t named_by;    /* enum fdr_definition_kind: its definitions name the events' `id`; 0: none does */
    uint32_t field_count; /* that do not depend on the id */
    const struct fdr_field_info *field;
};
/* NULL: there is no such kind. They are numbered from 1 without gaps. */
FDR_API const struct fdr_kind_info *fdr_kind_info(uint32_t kind);
/* The name of the region, operation, metric, file ... that events of this class and `id` are about. */
FDR_API const char *fdr_id_name(const struct fdr_file *file, uint32_t class_, uint32_t id);
/* Sets *field to what the fields of an event are, in the order of its values, and returns how many are known. An event
 * may have fewer: then the last ones are not known or 0. */
FDR_API size_t fdr_event_fields(const struct fdr_file *file, const struct fdr_read_event *event,
                                const struct fdr_field_info **field);

/* A choice of events. All zero: everything. Arrays must stay until the iterator is closed. */
struct fdr_select {
    const uint32_t *locations; /* ids; NULL: all. If only samples are chosen, also the samples of these threads */
    size_t location_count;
    uint32_t classes; /* bit of each class; 0: all */
    /* 0: no limit. Calls of other depths are not decoded: a missing call may then not show, or stand for several. */
    uint32_t depth_min, depth_max;
    uint64_t from_ns, to_ns;  /* 0: no limit; a call that overlaps is shown */
    uint64_t min_duration_ns; /* of calls */
    const uint8_t *regions;   /* regions[id] != 0: show it; NULL: all */
    size_t region_count;
    bool one_location_after_another;                  /* in order of id, instead of merged by time */
    void (*progress)(void *context, uint64_t events); /* called every 65,536 events of an iterator; NULL: it is not */
    void *progress_context;
};
/* select NULL: everything; the structure itself is copied. Returns NULL if there is no memory. One thread at a time per
 * iterator. */
FDR_API struct fdr_iter *fdr_iter_open(struct fdr_file *file, const struct fdr_select *select);
/* Fills *event and returns true; false at the end. Time per event: logarithmic in the number of locations. */
FDR_API bool fdr_iter_next(struct fdr_iter *iter, struct fdr_read_event *event);
/* Fills at most `count` events, and returns how many; fewer only at the end. For languages where a call costs more than
 * an event. `sample` is NULL in all of them: paths of samples live for one event only. */
FDR_API size_t fdr_iter_take(struct fdr_iter *iter, struct fdr_read_event *events, size_t count);
/* At any time. NULL: does nothing. */
FDR_API void fdr_iter_close(struct fdr_iter *iter);

/* A kept call, put together from its enter and leave. */
struct fdr_call {
    uint32_t location, region, depth;
    uint64_t duration_ns; /* the part inside the time window; of an open call: up to the newest event of the location */
    uint64_t exclusive_ns; /* duration_ns without all kept calls in it, shown or not */
    bool open;             /* the reader added its enter or leave */
    bool reduced;          /* stands for a caller that is no longer kept */
};
/* Each function may be NULL. Arguments are valid until it returns. */
struct fdr_call_visitor {
    void *context;
    void (*location)(void *context, uint32_t location);               /* the calls of the next location follow */
    bool (*enter)(void *context, const struct fdr_read_event *event); /* false: stop */
    void (*leave)(void *context, const struct fdr_call *call);
    void (*progress)(void *context, uint64_t events); /* every 65,536 events, shown or not */
};
/* Visits the calls that `select` shows (NULL: all), one location after another. Decodes also the calls inside of these.
 * Returns 0, -ECANCELED if `enter` returned false, or -ENOMEM. */
FDR_API int fdr_visit_calls(struct fdr_file *file, const struct fdr_select *select,
                            const struct fdr_call_visitor *visitor);

/* ---- files made by others ---- */

/* Takes the recording out of a core file into a new file; fails if out_path exists. For FDR_ARENA=anonymous only: else
 * the recording is in the live file. Returns 0, and `message` lists the missing parts if the core was cut off. Or
 * returns -errno; -ENOTSUP in a build without elfutils. */
FDR_API int fdr_core_extract(const char *core, const char *out_path, char *message, size_t message_bytes);

/* Adds to a file how its process ended. wait_status: as waitpid gives it, INT_MIN: not known. oom_kills: processes that
 * its cgroup killed for want of memory. realtime_ns: since 1970. 0 or -errno. */
FDR_API int fdr_file_add_end(const char *path, int wait_status, uint32_t oom_kills, uint64_t realtime_ns);

/* Which crash bundles of this user may stay in a directory (docs/CRASH.md). share: of the file system; below 0, `bytes`
 * count. age_ns 0: no limit. now_ns: since 1970; 0: now. */
struct fdr_bundle_limit {
    double share;
    uint64_t bytes;
};
struct fdr_bundle_rule {
    struct fdr_bundle_limit most, unused;
    uint64_t age_ns, now_ns;
};
enum fdr_bundle_end { FDR_BUNDLE_ALIKE = 1, FDR_BUNDLE_OLD, FDR_BUNDLE_TOO_MUCH };
/* Removes the others; `gone` (may be NULL) learns of each. dry_run: of each that would go. Returns the number of
 * bundles that could not be removed, or -errno. */
FDR_API int fdr_bundles_tidy(const char *directory, const struct fdr_bundle_rule *rule, int dry_run,
                             void (*gone)(void *argument, const char *name, uint64_t bytes, enum fdr_bundle_end why),
                             void *argument);

/* ---- the crash section: of crash bundles, and of snapshots by the watchdog (threads without a cause) ----
 *
 * In all other files the counts are 0. */

struct fdr_crash_cause_info {
    int signal, code, error; /* as siginfo has them */
    uint32_t tid;
    uint64_t addr; /* of a fault; else 0 */
    uint64_t time_ns, realtime_ns;
    uint32_t sender_pid, sender_uid; /* if `sent` */
    bool sent;                       /* by kill() and the like */
    bool also;                       /* another thread's, while fdr handled the first */
    bool before;                     /* the program's own handler was working on it when the first one came */
    bool in_handler;                 /* a fault inside fdr's crash handler, which went on */
};
/* [0] is the cause of the death. */
FDR_API size_t fdr_crash_causes(const struct fdr_file *file, const struct fdr_crash_cause_info **rows);

struct fdr_crash_thread_info {
    uint32_t tid;
    const char *name;
    bool faulting;    /* it received the first cause */
    bool answered;    /* false: only its name and the texts "task/TID/..." are known */
    uint32_t machine; /* ELF's number: 62 x86-64, 183 aarch64 */
    uint64_t pc, sp, fp;
    size_t register_count;
    const uint64_t *registers; /* in the order of docs/FORMAT.md */
    bool own;                  /* by its name a thread of fdr's own; these block all signals and do not answer */
    bool cut; /* the stack is larger than the recorded part; its last frame says whether callers are missing */
    uint32_t kept_words; /* kept words of the stack: addresses of code and of the stack itself */
    uint64_t kept_bytes; /* how far from sp they reach */
};
/* The faulting thread first. */
FDR_API size_t fdr_crash_threads(const struct fdr_file *file, const struct fdr_crash_thread_info **rows);
/* "rax", ...; NULL: no such register. */
FDR_API const char *fdr_crash_register_name(uint32_t machine, size_t index);

struct fdr_crash_frame {
    uint64_t address;
    uint32_t line;        /* 0: unknown */
    const char *function; /* "": unknown */
    const char *file;     /* "": unknown */
    const char *module;   /* path; "": the address is in none */
    uint64_t offset;      /* of the address in the module */
    bool is_inline;       /* inlined into the next frame that is not */
    bool guessed;         /* found on the stack; may be left from an earlier call */
    bool cut;             /* the last one that was kept; its callers are missing */
};
/* The call stack of thread number `thread` of fdr_crash_threads, innermost first. Unwound on first use, with the
 * modules' files if they still have their recorded path and build-id. */
FDR_API size_t fdr_crash_frames(struct fdr_file *file, size_t thread, const struct fdr_crash_frame **rows);

/* Texts: "cmdline", "environment", "abort", "exception" (demangled), "status", "maps", ... NULL: there is none. A NUL
 * follows the text; `bytes` may be NULL. By name, or by index: the name and the text. */
FDR_API const char *fdr_crash_text(const struct fdr_file *file, const char *name, size_t *bytes);
FDR_API const char *fdr_crash_text_name(const struct fdr_file *file, size_t index);
FDR_API const char *fdr_crash_text_at(const struct fdr_file *file, size_t index, size_t *bytes);

/* ---- threads of a running process, as the kernel shows them ---- */

struct fdr_task_info {
    uint32_t tid;
    const char *name; /* the kernel's */
    char state;       /* R runs, S sleeps, D cannot be interrupted, T stopped, t traced; '?' not known */
    bool frozen;      /* with its control group */
    /* "lock", "condition", "join", "events", "signal", "input", "child", "time", "sleep", "call"; "": it runs, or this
     * is not known */
    const char *waits_for;
    uint32_t lock_owner; /* the thread that holds the mutex for which it waits; 0: not known */
    uint64_t waits;      /* how often it has given up its processor to wait */
};
/* Looks at the threads of process `pid`, whose copy `file` is, without stopping them. Then fdr_tasks has them, and
 * fdr_crash_threads the stacks of those that wait. Returns 0, or -errno with a message about the missing part. Another
 * user's process shows only states; so does one that is no child, under kernel.yama.ptrace_scope. */
FDR_API int fdr_process_look(struct fdr_file *file, uint32_t pid, char *message, size_t message_bytes);
FDR_API size_t fdr_tasks(const struct fdr_file *file, const struct fdr_task_info **rows);

/* Is the thread of this location, which stands, idle: does it wait for work? 1 yes, 0 no, -1 not known. By its state,
 * its stack and its totals; docs/TRIGGERS.md, "Idle threads". For processes that were looked at, and for snapshots. */
FDR_API int fdr_location_idle(struct fdr_file *file, size_t index);

/* ---- notes of fdr_note, in every file, oldest key first ---- */

struct fdr_note_info {
    const char *key, *value;
};
FDR_API size_t fdr_notes(const struct fdr_file *file, const struct fdr_note_info **rows);

/* ---- other files out of this one ---- */

/* Writes the readable part as a new, whole file; replaces an existing one. Damaged bins are left out and counted as
 * lost. Returns 0 or -errno; `message` says how much was recovered. -ENOSPC also if the parts to be rebuilt are larger
 * than the recording and than 1 MiB. */
FDR_API int fdr_file_recover(struct fdr_file *file, const char *out_path, char *message, size_t message_bytes);

/* A format of another viewer. */
struct fdr_export_option {
    const char *name, *value, *help; /* value: what stands for it in a help text, as "TEXT" */
};
struct fdr_exporter {
    const char *name, *help; /* "chrome"; one line, without a full stop */
    const struct fdr_export_option *option;
    size_t options;
    uint32_t call_bytes; /* about as much output for each call; 0: the number of calls does not matter */
    bool directory;      /* the output is a directory, which must not exist */
    /* Writes several files as one output. select[i]: of file i; select NULL: everything. value[i]: of option i, NULL:
     * its default; `value` may be NULL. out_path "-": standard output; an existing file is replaced. 0 or -errno;
     * -EINVAL: a bad value; -ENOTSUP: this build lacks a library for it. */
    int (*run)(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path);
};
/* All formats by turns, from index 0 on. NULL: there are no more. Static storage. */
FDR_API const struct fdr_exporter *fdr_exporter(size_t index);
/* Two of them by name: Chrome JSON, and folded stacks. */
FDR_API int fdr_export_chrome(struct fdr_file *const *files, size_t count, const struct fdr_select *select,
                              const char *out_path);
FDR_API int fdr_export_folded(struct fdr_file *const *files, size_t count, const struct fdr_select *select,
                              const char *out_path);

/* The version of the library that is loaded: "0.1.0". A constant. */
FDR_API const char *fdr_reader_version(void);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif
#endif
