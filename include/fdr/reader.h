/* SPDX-License-Identifier: MIT */
/* libfdr-reader: reads recordings (snapshots, live files, what a kill left) on any machine, without the application.
 *
 * It trusts nothing: any bytes give a message and what could be recovered; never a crash, a hang, or an invented
 * event. One bad bin costs that bin. No global state; one fdr_file may be read by many threads at once (each with
 * its own fdr_iter) once opened. Strings and arrays returned belong to the fdr_file and live until it is closed.
 * Times are ns on the recording's own time line (CLOCK_MONOTONIC for live recordings; what was presented for
 * replayed streams). */
#ifndef FDR_READER_H
#define FDR_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifndef FDR_API
#define FDR_API __attribute__((visibility("default")))
#endif

struct fdr_file;
struct fdr_iter;

enum fdr_verdict { FDR_WHOLE = 0, FDR_DAMAGED = 1, FDR_UNREADABLE = 2 };

/* Opens a file, or a copy of one in memory (kept by the caller until close). Always verifies headers; bins are
 * verified when they are decoded. Returns FDR_WHOLE, FDR_DAMAGED (usable; see fdr_file_damage) or FDR_UNREADABLE
 * (*out is NULL). `message`: one clear line about the first problem, or "". */
FDR_API enum fdr_verdict fdr_file_open(const char *path, struct fdr_file **out, char *message, size_t message_bytes);
FDR_API enum fdr_verdict fdr_file_open_memory(const void *bytes, size_t count, struct fdr_file **out, char *message,
                                              size_t message_bytes);
FDR_API void fdr_file_close(struct fdr_file *file);

/* Decodes every bin once. FDR_WHOLE or FDR_DAMAGED; findings are added to the damage list. */
FDR_API enum fdr_verdict fdr_file_verify(struct fdr_file *file);
FDR_API size_t fdr_file_damage_count(const struct fdr_file *file);
FDR_API const char *fdr_file_damage(const struct fdr_file *file, size_t index);

struct fdr_file_info {
    uint32_t format;                 /* format version */
    const char *state;               /* "recording" | "finalized" | "crashed" */
    const char *reason;              /* why it was taken; "" for a live file */
    bool has_cause;                  /* a crash: the next five say of what */
    int cause_signal, cause_code;
    uint64_t cause_addr, cause_time_ns;
    uint32_t cause_tid;
    uint32_t pid;
    int rank;                        /* -1: unknown */
    const char *host, *exe, *build_id, *config, *strategy;
    uint64_t created_realtime_ns;
    double time_unit_ns;             /* of one stored tick */
    uint64_t buffer_bytes, bin_bytes, bins, bins_free;
    uint64_t meta_bytes;             /* definitions, stacks, totals, ledger */
    uint64_t bytes_stored;           /* whole bins and headers in use */
    uint64_t first_ns, last_ns;      /* over all locations */
    uint64_t common_from_ns;         /* every location reaches back at least to here */
    uint64_t lost_locations, lost_unattached, lost_definitions, dropped_bins;
    uint64_t unlisted_bins;          /* bins found that no list holds (given back, or in flight) */
    int64_t realtime_offset_ns;      /* add to a time_ns for ns since 1970 */
};
FDR_API const struct fdr_file_info *fdr_file_info(const struct fdr_file *file);

struct fdr_open_call { uint32_t region; uint32_t depth; uint64_t enter_ns; bool untimed; };
struct fdr_location_info {
    uint32_t id;
    const char *name;                /* thread name, or "" */
    uint32_t tid;
    uint32_t parent;                 /* signal lane: its thread's location id; else UINT32_MAX */
    uint32_t numa_node;
    bool live;
    uint64_t start_ns, end_ns;       /* attached, ended (0: live) */
    uint64_t from_ns, to_ns;         /* reach: oldest and newest kept event or open call */
    size_t open_count;               /* open calls, outermost first */
    const struct fdr_open_call *open;
    uint32_t epochs;                 /* held now */
    uint64_t bytes_stored, bins;
    uint64_t clamped, unbalanced, stray_leaves, truncated, abandoned, hists_dropped, rows_folded;
};
FDR_API size_t fdr_location_count(const struct fdr_file *file);
FDR_API const struct fdr_location_info *fdr_location_info(const struct fdr_file *file, size_t index);

/* ---- definitions: kinds and ids as recorded ---- */
enum fdr_definition_kind { FDR_REGION_DEFINITION = 1, FDR_METRIC_DEFINITION, FDR_MARKER_DEFINITION,
                           FDR_COMM_DEFINITION, FDR_EVENT_DEFINITION, FDR_MODULE_DEFINITION };
struct fdr_definition {
    enum fdr_definition_kind kind;
    uint32_t id;
    const char *name;                /* a region known only by address: symbol if found, else "module+0xoffset" */
    const char *file;                /* "" if unknown; metric: its unit */
    uint32_t line;
    uint64_t address;                /* 0 if none */
    uint32_t value_type;             /* metrics: 0 u64, 1 i64, 2 f64 */
    uint32_t field_count;            /* user events */
    const char *const *field_name;
    const uint8_t *field_type;
};
FDR_API size_t fdr_definition_count(const struct fdr_file *file, enum fdr_definition_kind kind);
/* By id; never NULL: an id without definition gets the name "[unknown N]". */
FDR_API const struct fdr_definition *fdr_definition(const struct fdr_file *file, enum fdr_definition_kind kind, uint32_t id);
/* Resolves addresses with elfutils by build-id (C++ demangled). Called by open unless FDR_SYMBOLS=0; harmless where
 * the library was built without. */
FDR_API void fdr_file_symbolise(struct fdr_file *file);

/* ---- the ledger (P3) and reductions ---- */
enum fdr_event_class { FDR_IN_REGION = 0, FDR_IN_MESSAGE, FDR_IN_COLLECTIVE, FDR_IN_METRIC, FDR_IN_MARKER,
                       FDR_IN_SAMPLE, FDR_IN_IO, FDR_IN_TASK, FDR_IN_USER };
FDR_API const char *fdr_class_name(uint32_t class_);
struct fdr_ledger_row {
    uint32_t location, class_, depth;
    uint64_t presented, kept, filtered, reduced, lost;
};
/* Decodes all bins on first use. Rows sorted by location, class, depth. */
FDR_API size_t fdr_ledger(struct fdr_file *file, const struct fdr_ledger_row **rows);
/* Snapshots of a live process: presented of a location before and after its bins were copied (equal elsewhere). */
FDR_API void fdr_ledger_bounds(const struct fdr_file *file, uint32_t location, uint64_t *before, uint64_t *after);

struct fdr_reduction_info {
    uint32_t location;
    uint64_t time_ns;                /* first step of this line */
    const char *step;                /* "duration" | "depth" | "class" | "epoch" | "stop" */
    char what[96];                   /* e.g. "region calls < 256 ns at depth 12" */
    uint64_t events, bytes, from_ns, to_ns;
    uint32_t steps;
    bool gone;                       /* nothing of it is left and it is no longer stored */
};
FDR_API size_t fdr_reductions(const struct fdr_file *file, const struct fdr_reduction_info **rows);

/* ---- exact totals (P5) ---- */
struct fdr_total {
    uint32_t location;
    uint32_t class_;                 /* FDR_IN_REGION, _MESSAGE (id 1 send 2 recv), _COLLECTIVE, _METRIC, _MARKER, _USER */
    uint32_t id;
    bool rest;                       /* the regions that found no row of their own */
    uint64_t calls, untimed;
    uint64_t inclusive_ns, exclusive_ns, min_ns, max_ns;  /* regions */
    uint64_t sum_u, min_u, max_u;    /* points: sum, min and max as their value_type's bits (bytes for messages) */
    bool has_histogram;
    uint64_t histogram[64];          /* [i]: values in [2^i, 2^(i+1)), [0] also 0; ns for regions */
};
FDR_API size_t fdr_totals(const struct fdr_file *file, const struct fdr_total **rows);

/* ---- events in time order ---- */
enum fdr_event_kind { FDR_ENTER = 1, FDR_LEAVE, FDR_SEND, FDR_RECV, FDR_COLL_BEGIN, FDR_COLL_END, FDR_METRIC,
                      FDR_MARKER, FDR_SAMPLE, FDR_EVENT };
struct fdr_read_event {
    uint64_t time_ns;
    uint32_t location;               /* id */
    uint8_t kind;                    /* enum fdr_event_kind */
    uint8_t class_;
    bool repaired;                   /* an edge or ancestor that was added, not recorded */
    bool reduced;                    /* stands for an ancestor that is no longer held */
    uint32_t depth;                  /* calls: their own depth (1 = outermost); others: open regions around them */
    uint32_t id;                     /* region, metric, marker, event type, collective operation */
    uint64_t duration_ns;            /* enter and leave of a closed call: of the call; else 0 */
    uint32_t field_count;            /* messages: peer, tag, comm, bytes; coll_end: comm, root, sent, received; metric, marker: value */
    uint64_t field[16];              /* signed ones as two's complement, f64 as bits */
};

/* What to look at; zero-initialised = everything. Arrays belong to the caller until the iterator is closed. */
struct fdr_select {
    const uint32_t *locations;       /* ids; NULL: all */
    size_t location_count;
    uint32_t classes;                /* bit per class; 0: all */
    uint32_t depth_min, depth_max;   /* 0: no bound; only partitions in this range are decoded */
    uint64_t from_ns, to_ns;         /* 0: no bound; calls that overlap are shown */
    uint64_t min_duration_ns;
    const uint8_t *regions;          /* regions[id] != 0: show; NULL: all */
    size_t region_count;
    bool one_location_after_another; /* no merge over locations: each location whole, in order of id */
};
FDR_API struct fdr_iter *fdr_iter_open(struct fdr_file *file, const struct fdr_select *select);
/* true and *event filled, or false at the end. Linear in the number of events. */
FDR_API bool fdr_iter_next(struct fdr_iter *iter, struct fdr_read_event *event);
FDR_API void fdr_iter_close(struct fdr_iter *iter);

/* Writes what is readable as a fresh, whole file: damaged bins left out and said so. 0 or -errno. */
FDR_API int fdr_file_recover(struct fdr_file *file, const char *out_path, char *message, size_t message_bytes);

/* ---- conversions: 0 or -errno ---- */
FDR_API int fdr_export_chrome(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *out_path);
FDR_API int fdr_export_folded(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *out_path);

FDR_API const char *fdr_reader_version(void);

#ifdef __cplusplus
}
#endif
#endif
