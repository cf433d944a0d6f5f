/* SPDX-License-Identifier: MIT */
/* The arena: the one memory image of a recording. What is written here while the program runs is,
 * byte for byte, what a snapshot, a crash file and the file left after SIGKILL contain.
 *
 *   0                superblock (4096 bytes)
 *   bins_off ..      bins, bin_bytes each, handed out upwards
 *   .. arena_bytes   meta blocks (definitions, locations, levels, partitions, totals), handed out downwards
 *   arena_bytes ..   only in snapshots: the tail (struct fdr_tail), at most 256 KiB
 *
 * All integers are little-endian and of fixed width. Positions are byte offsets from the start of the
 * arena (`off`, 0 = none); never pointers. A reader trusts none of it. docs/FORMAT.md is the specification.
 *
 * Words: a *tick* is the unit of the location's clock (TSC ticks, or ns); a *stored tick* is a tick
 * shifted right by `shift` (FDR_RESOLUTION). Every time below is a stored tick unless it says otherwise. */
#ifndef FDR_FORMAT_ARENA_H
#define FDR_FORMAT_ARENA_H

#include <assert.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FDR_ARENA_MAGIC      "FDRAREN1"
#define FDR_FORMAT_VERSION   1u
#define FDR_SUPERBLOCK_BYTES 4096u
#define FDR_META_ALIGN       64u /* every meta block starts at a multiple of this */
#define FDR_BIN_MIN_BYTES    512u
#define FDR_BIN_MAX_BYTES    65536u
#define FDR_TAIL_MAX_BYTES   262144u
#define FDR_TAIL_CHECKS      32768u /* of these for checks, at least */

/* ---- kinds of meta blocks; each starts with struct fdr_meta_head, so a scan finds them ---- */
#define FDR_META_MAGIC 0x4d524446u /* "FDRM" */
enum fdr_meta_kind {
    FDR_META_DEFS = 1,       /* definitions, a chain */
    FDR_META_LOCATION,       /* struct fdr_location */
    FDR_META_LEVELS,         /* levels of one location */
    FDR_META_PART,           /* struct fdr_part */
    FDR_META_ROWS,           /* slab of totals rows and histograms of one location */
    FDR_META_ROWTABLE,       /* hash table region -> row of one location */
    FDR_META_TABLE,          /* an encoder's prediction table: not needed to read */
    FDR_META_REDUCTIONS,     /* struct fdr_reductions_block of one location */
    FDR_META_POINTS,         /* struct fdr_level_points */
    FDR_META_FROZEN,         /* struct fdr_frozen of a location that stopped storing */
    FDR_META_SLAB,           /* a piece of a bin that holds further meta blocks behind its first 64 bytes */
    FDR_META_FREE,           /* given back, may be used again */
    FDR_META_NOTES = 32,     /* struct fdr_notes_block */
    FDR_META_SAMPLES = 48,   /* struct fdr_samples of a location of samples */
    FDR_META_EPOCHS = 56,    /* struct fdr_epochs of one location */
    FDR_META_EPOCHROWS = 57, /* struct fdr_epoch_rows: totals of one epoch */
    FDR_META_EPOCHBASE = 58, /* struct fdr_epoch_base: the totals as they stood at the newest cut, a chain */
    FDR_META_ORDER = 59,     /* partitions in order of their worth: not needed to read */
    FDR_META_FOLD = 64,      /* struct fdr_fold: a change under way in the accounts */
    FDR_META_NODES = 72,     /* struct fdr_nodes_block: free bins by NUMA node */
    FDR_META_STREWN = 73     /* a word for each bin: not needed to read */
};
struct fdr_meta_head {
    uint32_t magic;
    uint16_t kind;
    uint16_t units_log2; /* unused, 0 */
    uint32_t bytes;      /* whole block, head included, a multiple of FDR_META_ALIGN */
    uint32_t location;   /* location id, or UINT32_MAX */
};
static_assert(sizeof(struct fdr_meta_head) == 16, "meta head");

/* A block that holds further ones: memory of a location's meta blocks. */
struct fdr_slab {
    struct fdr_meta_head head; /* FDR_META_SLAB; FDR_META_FREE while nobody's */
    uint32_t next;             /* atomic: off of the location's next one, 0: none */
    uint32_t in_bins;          /* 1: a piece of a bin */
    uint8_t pad[40];
};
static_assert(sizeof(struct fdr_slab) == FDR_META_ALIGN, "slab");

/* ---- superblock ---- */
enum fdr_state { FDR_STATE_RECORDING = 1, FDR_STATE_FINALIZED = 2, FDR_STATE_CRASHED = 3 };
enum fdr_cut { FDR_CUT_NOT = 0, FDR_CUT_DEADLINE, FDR_CUT_DISK };
enum fdr_clock_kind { FDR_CLOCK_TSC = 0, FDR_CLOCK_NS = 1 };

/* One reading of all clocks at once. */
struct fdr_clock_pair {
    uint64_t tick; /* full ticks, not shifted */
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
    uint64_t reserved;
};
static_assert(sizeof(struct fdr_clock_pair) == 32, "clock pair");

/* The recording's clock stepped back. */
#define FDR_CLOCK_STEPS 8u
struct fdr_clock_step {
    uint64_t tick; /* full ticks: where time went on; 0: not known */
    uint64_t back; /* full ticks: how far back the clock had gone */
};
static_assert(sizeof(struct fdr_clock_step) == 16, "clock step");

struct fdr_superblock {
    char magic[8];
    uint32_t format_version;
    uint32_t header_bytes; /* FDR_SUPERBLOCK_BYTES */
    uint64_t arena_bytes;
    uint64_t bins_off;         /* first bin */
    uint32_t bin_bytes;        /* power of two, 512 .. 65536 */
    uint32_t bins_total;       /* how many bins would fit between bins_off and arena_bytes */
    uint64_t virgin;           /* atomic {hi:32, lo:32}: bins [0,lo) were handed out at least once,
                                   64-byte units [hi, arena_bytes/64) are meta; both from bins_off/64 resp. 0 */
    uint64_t free_stack;       /* atomic {tag:32, bin index + 1:32}: bins given back; informative */
    uint32_t free_bins;        /* atomic: bins on the free stack; informative */
    uint32_t state;            /* enum fdr_state */
    uint32_t clock_kind;       /* enum fdr_clock_kind */
    uint32_t shift;            /* resolution: stored tick = tick >> shift */
    uint64_t ticks_per_second; /* calibrated at start; 10^9 for FDR_CLOCK_NS */
    struct fdr_clock_pair clock_start;
    struct fdr_clock_pair clock_last; /* taken at every snapshot and at finalize */
    uint32_t location_first;          /* off of the newest location; they chain by `next` */
    uint32_t location_count;          /* atomic; also the next id */
    uint32_t defs_first;              /* off of the first definition block */
    uint32_t defs_last;
    uint32_t def_count[16]; /* definitions by enum fdr_def_kind; also the next id of the kind */
    uint32_t pid;
    int32_t rank; /* -1: unknown */
    uint64_t created_realtime_ns;
    uint64_t process_start_time; /* /proc/self/stat field 22: tells a reused pid */
    /* counters of the whole recording that belong to no location; atomic, relaxed */
    uint64_t lost_locations;   /* threads that found no room to attach */
    uint64_t lost_unattached;  /* events of such threads */
    uint64_t lost_definitions; /* definitions asked for that found no room; their events name id 0 */
    uint64_t snapshots_taken;
    uint32_t strategy;        /* enum fdr_strategy */
    uint32_t band_edge_count; /* 3 */
    uint64_t band_edge[3];    /* durations in stored ticks: band of d = number of edges <= d */
    uint32_t reason_kind;     /* in a snapshot: enum fdr_reason_kind */
    uint32_t cause_signal;    /* crash: signal number, else 0 */
    int32_t cause_code;
    uint32_t cause_tid;
    uint64_t cause_addr;
    uint64_t cause_tick;      /* full ticks */
    uint64_t snapshot_number; /* in a snapshot: its number from 1; in a live arena: 0 */
    uint64_t dropped_bins;    /* in a snapshot: bins revoked under the copy */
    uint32_t build_id_bytes;
    uint8_t build_id[36];
    char host[64];
    char exe[512];
    char reason[256];           /* why this snapshot was taken */
    char config[1024];          /* the configuration as text: NAME=VALUE lines */
    uint32_t node_count;        /* NUMA nodes the arena lies on; 0 and 1: one */
    uint32_t nodes_off;         /* off of struct fdr_nodes_block, 0 with one node */
    uint32_t notes_off;         /* off of the newest block of notes, 0 = none */
    uint32_t handlers;          /* bit s - 1: signal s is caught when it would end the process */
    uint32_t handlers_lost;     /* of these: another handler stood there when it was looked at last */
    uint32_t cut;               /* a bundle that is not complete: enum fdr_cut */
    uint64_t cause_realtime_ns; /* when the cause was seen, since 1970 */
    uint64_t faults_survived;   /* faults that the application's own handler returned from */
    /* in a snapshot taken by a trigger or the watchdog: what they saw */
    uint64_t trigger_tick;       /* full ticks of the recording's clock; 0: no trigger */
    uint64_t trigger_value;      /* as trigger_value_type says */
    uint32_t trigger_value_type; /* enum fdr_value_type */
    uint32_t trigger_location;   /* id of the location that it was seen on, UINT32_MAX: none */
    char trigger_name[64];
    /* how the process ended, as its parent saw it: added to the file of a dead process by `fdr run` */
    uint32_t end_known;     /* 1: the next four say how */
    int32_t end_status;     /* as waitpid gives it; INT32_MIN: not a child of ours */
    uint32_t end_oom_kills; /* processes that the cgroup killed for memory meanwhile */
    uint32_t end_reserved;
    uint64_t end_realtime_ns;
    uint32_t fold_off;       /* off of struct fdr_fold, or 0 */
    uint32_t locations_sure; /* locations that find room whatever others hold */
    /* the clock stepped back by more than a millisecond, and time goes on from where it stood */
    uint64_t clock_offset; /* atomic: what is added to every reading of the recording's clock, modulo 2^64 */
    uint32_t clock_steps;  /* atomic: how often */
    uint32_t clock_reserved;
    struct fdr_clock_step clock_step[FDR_CLOCK_STEPS]; /* step n (from 0) is at [n % FDR_CLOCK_STEPS] */
    /* In a snapshot: where in the file a section as a bundle's lies (format/crash.h), 0 none. State crashed:
     * arena_bytes, stored before the section is written; 0: the process was gone before. */
    uint64_t section_off;
    /* atomic: full ticks; fdr's own thread, which looks every 5 s, was there then. 0: there is none */
    uint64_t alive_tick;
    /* atomic. 1: the process needs its live file no more: the recording ended, or its bundle is another file. It
     * removed this one next; over_error: it could not, for this errno, and there may be nothing left in it. */
    uint32_t over;
    uint32_t over_error;
};
enum fdr_reason_kind {
    FDR_REASON_UNKNOWN = 0,
    FDR_REASON_API,
    FDR_REASON_SIGNAL,
    FDR_REASON_FINALIZE,
    FDR_REASON_TRIGGER,
    FDR_REASON_WATCHDOG,
    FDR_REASON_OUTSIDE
};
static_assert(sizeof(struct fdr_superblock) <= FDR_SUPERBLOCK_BYTES, "superblock");
/* A recording of nothing: no location, no definition, no note, no bin. Async-signal-safe. */
static inline void fdr_superblock_forget(struct fdr_superblock *s)
{
    s->location_first = s->location_count = s->fold_off = 0;
    s->defs_first = s->defs_last = s->notes_off = 0;
    for (int i = 0; i < 16; i++) s->def_count[i] = 0;
    s->node_count = s->nodes_off = s->free_bins = 0;
    s->free_stack = s->alive_tick = 0;
    s->virgin = s->arena_bytes / FDR_META_ALIGN << 32;
}

/* ---- NUMA nodes: the stripe of `stripe_bytes` at offset k * stripe_bytes lies on node[k % node_count] ---- */
struct fdr_node {
    uint64_t free_stack; /* atomic, as in the superblock: bins of this node that were given back; informative */
    uint32_t free_bins;  /* atomic: their number; informative */
    uint32_t id;         /* the kernel's number of the node */
    uint8_t pad[48];     /* nodes do not share cache lines */
};
static_assert(sizeof(struct fdr_node) == 64, "node");
struct fdr_nodes_block {
    struct fdr_meta_head head;
    uint32_t count;
    uint32_t stripe_bytes;
    uint8_t pad[40];
    struct fdr_node node[];
};
static_assert(sizeof(struct fdr_nodes_block) == 64, "nodes block");

/* ---- what a flipped bit must not go unnoticed by: a spare of the superblock, and checks of a snapshot's meta blocks
 * ---- The spare lies in the superblock's page: a copy of what says how to read everything else. A running recording
 * writes it once, at its start; a reader of such a file believes of it only what never changes (FORMAT.md, 3.1). A
 * snapshot has its own, written last, with checks of the whole header, of the tail, and of every chunk of the file that
 * holds meta blocks. */
#define FDR_SPARE_MAGIC 0x52415053u /* "SPAR" */
#define FDR_SPARE_OFF   (FDR_SUPERBLOCK_BYTES - 512u)
#define FDR_SPARE_COPY  400u /* the superblock up to `host` */
struct fdr_spare {
    uint32_t magic;
    uint32_t check;        /* fdr_check32 of this struct with this field 0 */
    uint32_t header_check; /* snapshots: of the bytes before the spare */
    uint32_t tail_check;   /* snapshots: of the tail */
    uint32_t tail_bytes;
    uint32_t chunk_log2;   /* snapshots: bytes of a chunk */
    uint32_t chunk_count;  /* 0 in a running recording */
    uint32_t chunks_check; /* of the array of struct fdr_chunk */
    uint64_t chunks_off;   /* of that array, in the file */
    uint8_t copy[FDR_SPARE_COPY];
};
static_assert(sizeof(struct fdr_spare) <= 512 && offsetof(struct fdr_superblock, host) == FDR_SPARE_COPY, "spare");
static_assert(sizeof(struct fdr_superblock) <= FDR_SPARE_OFF, "the superblock ends before its spare");
/* Chunks are aligned, in order, and do not overlap; the last ends with the arena. */
struct fdr_chunk {
    uint32_t off;
    uint32_t check; /* fdr_check32 of its bytes */
};

/* ---- definitions: append-only; block = head, u32 used, u32 next, then records of 8-byte multiples ---- */
enum fdr_def_kind {
    FDR_DEF_REGION = 1, /* id, line, name, file */
    FDR_DEF_METRIC,     /* value_type, unit in `file` */
    FDR_DEF_MARKER,
    FDR_DEF_COMM,      /* payload: u32 world ranks */
    FDR_DEF_EVENT,     /* user event: fields */
    FDR_DEF_MODULE,    /* name = path, file = build id in hex, value = load address, value2 = size;
                          payload: tick it was first seen there, where another one was before */
    FDR_DEF_COLLECTIVE /* collective operation names */
};
struct fdr_defs_block {
    struct fdr_meta_head head;
    uint32_t used; /* atomic, release: bytes of complete records that follow this struct */
    uint32_t next; /* off of the next block */
    uint64_t reserved;
};
static_assert(sizeof(struct fdr_defs_block) == 32, "defs block");
/* Followed by name, NUL, file, NUL, then (8-aligned) `payload_bytes` of payload, then padding to 8. */
struct fdr_def {
    uint32_t bytes; /* whole record, a multiple of 8 */
    uint16_t kind;
    uint16_t flags; /* FDR_REGION_* */
    uint32_t id;
    uint32_t line;
    uint64_t value;      /* region: code address or 0; module: load bias; metric: enum fdr_value_type */
    uint64_t value2;     /* region: id of its module definition, 0 = unknown; module: size in memory */
    uint16_t name_bytes; /* without NUL */
    uint16_t file_bytes;
    uint32_t payload_bytes;
    uint32_t check; /* fdr_check32 over the record with this field 0 */
    uint32_t reserved;
};
static_assert(sizeof(struct fdr_def) == 48, "definition");

/* Payload of a user event's definition: one of these per field. See docs/FORMAT.md. */
enum fdr_value_type { FDR_VALUE_U64 = 0, FDR_VALUE_I64 = 1, FDR_VALUE_F64 = 2 };
struct fdr_def_field {
    uint16_t type; /* enum fdr_value_type */
    uint16_t name_bytes;
    char name[28]; /* NUL-terminated, cut at 27 */
};
static_assert(sizeof(struct fdr_def_field) == 32, "field definition");

/* ---- notes: what the application says about itself, the newest value of each key ----
 * A value is written beside the one that counts, then `state` is changed: a kill leaves the old or the new one, and who
 * copies it meanwhile finds the same state before and after, or tries again. */
#define FDR_NOTE_KEY_BYTES   40
#define FDR_NOTE_VALUE_BYTES 104
#define FDR_NOTES_PER_BLOCK  15
struct fdr_note_entry {
    uint64_t state; /* FDR_NOTE_STATE */
    char key[FDR_NOTE_KEY_BYTES];
    char value[2][FDR_NOTE_VALUE_BYTES];
};
static_assert(sizeof(struct fdr_note_entry) == 256, "note");
/* which: 0 no note, else value[which - 1] counts; times: how often one was set. */
#define FDR_NOTE_STATE(which, times) ((uint64_t)(times) << 32 | (uint32_t)(which))
#define FDR_NOTE_WHICH(state)        ((uint32_t)(state))
#define FDR_NOTE_TIMES(state)        ((uint32_t)((state) >> 32))
#define FDR_NOTE_CHANGING            "[changing]" /* the value, in a copy that found no whole one */
static inline void fdr_note_give_up(struct fdr_note_entry *n)
{
    n->state = FDR_NOTE_STATE(1, 0);
    memset(n->value, 0, sizeof n->value);
    memcpy(n->value[0], FDR_NOTE_CHANGING, sizeof FDR_NOTE_CHANGING);
}
struct fdr_notes_block {
    struct fdr_meta_head head;
    uint32_t next; /* off of the block made before this one */
    uint32_t used; /* notes in it */
    uint8_t pad[40];
    struct fdr_note_entry note[FDR_NOTES_PER_BLOCK];
};
static_assert(sizeof(struct fdr_notes_block) == 64 + 256 * FDR_NOTES_PER_BLOCK, "notes");

/* ---- event classes ---- */
enum fdr_class {
    FDR_CLASS_REGION = 0,
    FDR_CLASS_MESSAGE,
    FDR_CLASS_COLLECTIVE,
    FDR_CLASS_METRIC,
    FDR_CLASS_MARKER,
    FDR_CLASS_SAMPLE,
    FDR_CLASS_IO,
    FDR_CLASS_TASK,
    FDR_CLASS_USER,
    FDR_CLASS_COUNT
};
#define FDR_BANDS 4
/* Calls of bands 1 to 3 take this many ns at least; i = band - 1. FORMAT.md, 2.2 */
static inline uint64_t fdr_band_edge_ns(uint32_t i)
{
    static const uint64_t ns[FDR_BANDS - 1] = {256, 4096, 262144};
    return ns[i];
}

/* ---- location: one thread's stream ---- */
/* Levels lie in blocks: the first 36 have 7, which with their slab's head are 1 KiB, as larger pieces are dear where
 * memory is in small ones; the others, which hardly any thread needs, have 28. */
#define FDR_LEVELS_STEP      7 /* a block ends at a multiple of it */
#define FDR_LEVELS_LARGE     28
#define FDR_LEVEL_BLOCKS     36 /* of the first kind */
#define FDR_LEVEL_BLOCKS_MAX 64
#define FDR_LEVELS_NEAR      (FDR_LEVEL_BLOCKS * FDR_LEVELS_STEP)
#define FDR_LEVELS_MAX       (FDR_LEVELS_NEAR + (FDR_LEVEL_BLOCKS_MAX - FDR_LEVEL_BLOCKS) * FDR_LEVELS_LARGE) /* kept */
static_assert(FDR_LEVELS_LARGE % FDR_LEVELS_STEP == 0, "where blocks end");
static inline uint32_t fdr_levels_in(uint32_t blocks) /* in so many blocks */
{
    if (blocks <= FDR_LEVEL_BLOCKS) return blocks * FDR_LEVELS_STEP;
    return FDR_LEVELS_NEAR + (blocks - FDR_LEVEL_BLOCKS) * FDR_LEVELS_LARGE;
}
static inline uint32_t fdr_levels_of(uint32_t block)
{
    return block < FDR_LEVEL_BLOCKS ? FDR_LEVELS_STEP : FDR_LEVELS_LARGE;
}
/* Where level `depth` >= 1 is. */
static inline uint32_t fdr_level_block(uint32_t depth)
{
    if (depth <= FDR_LEVELS_NEAR) return (depth - 1) / FDR_LEVELS_STEP;
    return FDR_LEVEL_BLOCKS + (depth - 1 - FDR_LEVELS_NEAR) / FDR_LEVELS_LARGE;
}
static inline uint32_t fdr_level_entry(uint32_t depth)
{
    if (depth <= FDR_LEVELS_NEAR) return (depth - 1) % FDR_LEVELS_STEP;
    return (depth - 1 - FDR_LEVELS_NEAR) % FDR_LEVELS_LARGE;
}
#define FDR_REDUCTION_LINES 48
/* There the count of lines goes on at FDR_REDUCTION_LINES: all are there, and the next is the same. */
#define FDR_REDUCTION_COUNT_END (UINT32_MAX / FDR_REDUCTION_LINES * FDR_REDUCTION_LINES)
#define FDR_EPOCH_CUTS          16
#define FDR_READING_DEPTHS      32 /* depth of readings of level 0; those of level 31 and above: 1 */

enum fdr_location_flags {
    FDR_LOCATION_LIVE = 1,
    FDR_LOCATION_LANE = 2,
    FDR_LOCATION_NS = 4,
    FDR_LOCATION_STOPPED = 8,
    FDR_LOCATION_FREE = 16, /* nobody's: to be skipped */
    FDR_LOCATION_SAMPLES = 32,
    FDR_LOCATION_FOLDING = 64, /* is being given back */
    FDR_LOCATION_ENDED = 128,  /* stands for `tid` threads that ended */
    FDR_LOCATION_READINGS =
        256, /* user events at depth d > 0 are readings of level FDR_READING_DEPTHS - d, in no call */
    FDR_LOCATION_REWINDS = 512,       /* its thread has set a mark to rewind to */
    FDR_LOCATION_JOINED = 1024,       /* calls of band 1 are stored in band 2: since when is not said */
    FDR_LOCATION_JOINED_LONG = 2048,  /* those of bands 1 and 2 in band 3 */
    FDR_LOCATION_JOINED_ALL = 4096,   /* all in band 3, those of length 0 as well */
    FDR_LOCATION_MOVING = 8192,       /* being given back: its accounts are on their way just now */
    FDR_LOCATION_ANEW = 16384,        /* recovered: some of its accounts are made anew of what was found */
    FDR_LOCATION_TOTALS_LOST = 32768, /* recovered: rows of its totals were damaged and are not there */
    FDR_LOCATION_PARTS_LOST = 65536   /* recovered: the chain of its partitions was broken, and some may not be there */
};

/* One line of the reduction ledger. Consecutive steps of the same kind on the same partition share a line. */
struct fdr_reduction {
    uint64_t tick;   /* of the first step */
    uint64_t events; /* given back */
    uint64_t bytes;
    uint64_t from_tick, to_tick; /* the stretch of time the given-back bins covered */
    uint32_t steps;
    uint8_t step; /* enum fdr_step: 1 duration 2 depth 3 class 4 epoch 5 stop 6 claim 8 thin */
    uint8_t class_;
    uint8_t band;
    uint8_t reason;  /* enum fdri_reason of policies/ */
    uint32_t depth;  /* claim: id of the location whose bins were taken */
    uint32_t closed; /* 1: the partition is gone and its storage gate closed */
};
static_assert(sizeof(struct fdr_reduction) == 56, "reduction line");

struct fdr_reductions_block {
    struct fdr_meta_head head;
    uint8_t pad[48];
    struct fdr_reduction line[FDR_REDUCTION_LINES];
};

struct fdr_location {
    struct fdr_meta_head head;
    uint32_t id;
    uint32_t next;       /* off of the location attached before this one */
    uint32_t tid;        /* FDR_LOCATION_ENDED: how many locations it stands for */
    uint32_t flags;      /* atomic: enum fdr_location_flags */
    uint32_t parent;     /* a lane: id of the location it belongs to; else UINT32_MAX */
    uint32_t numa_node;  /* the kernel's number: where the thread ran when it last took a bin */
    uint64_t start_tick; /* stored ticks */
    uint64_t end_tick;   /* 0 while live */
    /* the owner's hot words */
    uint64_t busy;         /* stack address of the operation under way, 0 = none */
    uint64_t last_tick;    /* full ticks of the newest event */
    uint32_t depth;        /* open regions on the stack that is kept: levels 1..depth */
    uint32_t overflow;     /* open regions deeper than that */
    uint16_t pause;        /* not 0: paused, by fdr_pause or outside of phases */
    uint16_t refused_from; /* depth of the first call that memory held no level for; 0: none, or behind all levels */
    uint32_t level_blocks; /* how many of levels_off[] are there */
    uint32_t levels_off[FDR_LEVEL_BLOCKS_MAX]; /* fdr_level_block(d): level d from 1 on */
    uint32_t level0_off;                       /* the level of events outside any region (depth 0) */
    uint32_t parts_first;                      /* off of the newest partition; they chain by `next` */
    uint32_t rows_table_off;                   /* off of the hash table (struct fdr_rowtable) */
    uint32_t slab_off;                         /* where the next totals row comes from */
    uint32_t slab_end;
    uint32_t rest_row_off; /* the row that folded regions share, 0 = none */
    /* accounts beside the per-level ones; owner writes */
    uint64_t presented_overflow; /* calls deeper than the stack that was kept then: presented, all lost */
    uint64_t lost_overflow;
    uint64_t clamped;            /* events whose clock stepped back */
    uint64_t unbalanced;         /* regions closed by a leave of an outer one */
    uint64_t stray_leaves;       /* leaves of regions that were not open */
    uint64_t rows_folded;        /* calls accounted in the rest row */
    uint64_t hists_dropped;      /* regions without a histogram */
    uint64_t points_without_row; /* points of kinds that found no row: in no total */
    uint32_t abandoned;          /* operations left by longjmp from a handler */
    uint32_t meta_units;         /* atomic: 512 bytes each: what of its bins and pieces its accounts lie in */
    /* ties: events at tick tie_tick so far that carry no duration */
    uint64_t point_tick;               /* stored tick of the newest point event */
    uint32_t point_count;              /* how many point events had that tick */
    uint32_t epoch;                    /* number of the current epoch, from 0 */
    uint64_t cut_tick[FDR_EPOCH_CUTS]; /* epoch e began at cut_tick[e % 16] */
    uint64_t floor_tick;      /* records with leave <= this are given back, whatever bin still holds them (0 = none) */
    uint32_t epoch_floor;     /* oldest epoch still held */
    uint32_t bins_held;       /* bins of bin_bytes this location holds now */
    uint32_t strewn_units;    /* 512 bytes each: what it has of bins that belong to several locations */
    uint32_t piece_free[7];   /* off of free pieces by log2(bytes) - 9: halves of a bin not in use */
    uint32_t counting;        /* off of the histogram's counter that the newest call is not in yet; 0: it is */
    uint32_t reduction_count; /* lines begun, up to FDR_REDUCTION_COUNT_END; n is at [n % .._LINES] */
    uint32_t reductions_off;  /* off of struct fdr_reductions_block, 0 = none yet */
    uint32_t epochs_off;      /* struct fdr_epochs, 0 = none yet */
    uint64_t reductions_dropped_events; /* sums of lines that were overwritten or found no block */
    uint64_t reductions_dropped_bytes;
    uint32_t gate_depth[FDR_BANDS]; /* calls of band b deeper than or at this are not stored; 0 = open */
    uint32_t class_closed;          /* bit per class: storage gate closed */
    uint32_t reduction_steps;       /* steps that gave bins back; closed gates */
    uint32_t epoch_bins;            /* bins opened in the current epoch */
    uint32_t meta_free[9]; /* given-back meta blocks by bytes / 64 - 1, chained through the word behind their head */
    uint32_t meta_off;     /* rest of the newest slab */
    uint32_t meta_end;
    uint32_t frozen_off;  /* FDR_LOCATION_STOPPED: the open calls when storing stopped (struct fdr_frozen) */
    uint32_t piece_units; /* 512 bytes each: free pieces */
    char name[32];
    /* fair shares; not needed to read */
    uint32_t claim;           /* atomic: bit 31: nobody may take bins of it */
    uint32_t returned;        /* atomic: stack of pieces that claimers found on their way to whole bins */
    uint32_t split_bins;      /* bins held that are in pieces */
    uint32_t ended_turn;      /* how many bins had been filled, first or anew, when the thread ended */
    uint64_t asleep;          /* atomic: may newest bins be taken, too? bins/asleep.c */
    uint32_t ended_next;      /* the location that ended after this one */
    uint32_t fold_from;       /* how far its accounts were folded */
    uint32_t slabs;           /* off of the newest block of further meta */
    uint32_t samples_off;     /* FDR_LOCATION_SAMPLES: struct fdr_samples */
    uint64_t reduction_ticks; /* time its owner has spent giving memory back: full ticks of the recording's clock */
    uint64_t reduction_worst; /* the longest of these steps, and of cuts and merges of epochs */
};
static_assert(sizeof(struct fdr_location) == 832, "location");

/* A location of samples: looks at one thread from outside its stream. Its partitions are of class sample, their depth
 * is the sample's level: the highest bit in which its number differs from the one before, so level k and above hold one
 * sample for each 2^k periods. */
#define FDR_SAMPLE_LEVELS 40
enum fdr_sample_clock { FDR_SAMPLE_CPU = 0, FDR_SAMPLE_WALL = 1, FDR_SAMPLE_EVENTS = 2 };
struct fdr_samples {
    struct fdr_meta_head head;
    uint64_t number;   /* of the newest sample presented: periods that passed */
    uint64_t period;   /* ns of `clock`, or events */
    uint32_t clock;    /* enum fdr_sample_clock */
    uint32_t low;      /* levels below this are no longer stored */
    uint64_t unpathed; /* samples whose stack could not be followed */
    struct {
        uint64_t presented, filtered, reduced_gate, lost;
        uint32_t part; /* off of the partition, 0 = none */
        uint32_t reserved;
    } level[FDR_SAMPLE_LEVELS];
};
static_assert(sizeof(struct fdr_samples) == 48 + 40 * FDR_SAMPLE_LEVELS, "samples");

/* Folding moves numbers from one location's accounts to another's, some words at a time. The words that are about to
 * change are here with what they were before; count is set before the first and cleared after the last of them changes.
 * While it is not 0 a reader takes the words to be what they were. */
#define FDR_FOLD_WORDS 120
struct fdr_fold {
    struct fdr_meta_head head;
    uint32_t count; /* atomic */
    uint32_t reserved[11];
    struct {
        uint64_t off, was;
    } word[FDR_FOLD_WORDS]; /* aligned words of 8 bytes */
};
static_assert(sizeof(struct fdr_fold) == 64 + 16 * FDR_FOLD_WORDS, "fold");

/* Strategy `first`: what was open when the location stopped storing. These calls count as kept; the same frames on
 * the live stack carry FDR_LEVEL_SETTLED and do not. */
struct fdr_frozen {
    struct fdr_meta_head head;
    uint64_t tick; /* full ticks: the moment it stopped */
    uint32_t count;
    uint32_t next; /* off of the block with the frames inside of these; 0: these are all */
    struct {
        uint64_t enter_tick;
        uint32_t region, flags;
    } frame[]; /* outermost first; flags: FDR_LEVEL_UNTIMED, FDR_LEVEL_ORDINAL */
};
static inline uint32_t fdr_frozen_bytes(uint32_t frames)
{
    return (uint32_t)(sizeof(struct fdr_frozen) + frames * sizeof((struct fdr_frozen *)0)->frame[0]);
}
static inline uint32_t fdr_frozen_room(const struct fdr_frozen *f)
{
    return (uint32_t)((f->head.bytes - sizeof *f) / sizeof f->frame[0]);
}
/* The ordinal stands in the flags from this bit on. */
#define FDR_FROZEN_ORDINAL     8
#define FDR_FROZEN_ORDINAL_MAX (UINT32_MAX >> FDR_FROZEN_ORDINAL) /* this one or a greater one */

/* One calling depth of one location. Level d holds what is open at depth d, the accounts of depth d,
 * and the partitions of calls made at depth d. */
struct fdr_level {
    /* one cache line: all that enter and leave touch */
    uint64_t enter_tick;      /* full ticks; open call */
    uint32_t region;          /* open call; of level 0 none: UINT32_MAX */
    uint32_t flags;           /* FDR_LEVEL_* : of the open call */
    uint64_t child_ticks;     /* full ticks spent in its closed children */
    uint64_t presented;       /* region class: enters at this depth */
    uint32_t part[FDR_BANDS]; /* off of the partition; 0 none yet; 1 gate closed */
    uint32_t row_off;         /* its totals row */
    uint32_t skipped; /* calls kept out by rules that are open directly inside this one, where no list has them */
    uint64_t address; /* code address of the open call, 0 = recorded by region */
    /* the rest */
    uint64_t filtered;
    uint64_t reduced_gate; /* not stored because a reduction closed the gate */
    uint64_t lost;
    uint64_t zero_tick;    /* stored tick of the newest zero-length call that has an ordinal at this depth */
    uint32_t zero_count;   /* how many have one in that tick: those stored, and those left out that others point to */
    uint32_t points_off;   /* off of struct fdr_level_points (accounts and partitions of point classes) */
    uint32_t zero_gap;     /* 1: the newest with an ordinal was left out */
    uint32_t reading_gate; /* of level 0: readings this deep or deeper are no longer stored; 0 all are */
    /* of an open call with an address, as the compiler's hook told: recorder/gone.c */
    uint64_t frame;        /* how far below the end of the thread's stack; UINT64_MAX: nobody told */
    uint32_t caller, site; /* low halves: the complement of the function's return address, and the hook's */
};
static_assert(sizeof(struct fdr_level) == 128, "level");
enum fdr_level_flags {
    FDR_LEVEL_UNTIMED = 1,  /* beyond FDR_DEPTH or paused: counted only */
    FDR_LEVEL_SETTLED = 2,  /* already accounted: not stored when it ends, not kept while it is open */
    FDR_LEVEL_RULED = 4,    /* the region has a minimum duration of its own */
    FDR_LEVEL_EDGES = 8,    /* counters are read at the edges of this call */
    FDR_LEVEL_ORDINAL = 16, /* its ordinal in its tick is zero_count (0 in another zero_tick), and its record says so */
    FDR_LEVEL_NAMED = 32,   /* with RULED: a call of length 0 stored inside names it as its parent: it stays */
    FDR_LEVEL_SKIPS = 64,   /* there are calls kept out by rules that are open directly inside this one */
    FDR_LEVEL_OUTSIDE = 128, /* of level 0, always: it is no call, and no leave fits it */
    FDR_LEVEL_MARKED = 256   /* was open when a mark to rewind to was set: that one is told when it ends */
};

/* Accounts and partitions of the point classes at one depth; made when the first point event happens there. */
struct fdr_level_points {
    struct fdr_meta_head head;
    struct {
        uint64_t presented, filtered, reduced_gate, lost;
        uint32_t part; /* as fdr_level.part */
        uint32_t reserved;
    } by_class[FDR_CLASS_COUNT];
};

struct fdr_levels_block {
    struct fdr_meta_head head;
    uint32_t index; /* of this block in levels_off; UINT32_MAX: it holds level 0 */
    uint8_t pad[44];
    struct fdr_level level[]; /* fdr_levels_of(index) */
};
static_assert(sizeof(struct fdr_levels_block) == 64, "levels");
static inline uint32_t fdr_levels_bytes(uint32_t count)
{
    return (uint32_t)(sizeof(struct fdr_levels_block) + count * sizeof(struct fdr_level));
}

/* ---- partition: the time-ordered list of bins of one class x depth x band of one location ----
 * Bins are appended at the tail and given back at the head only, so what is kept is always a suffix in time.
 *   records ever stored = first_index(open bin) + records(open bin)
 *   reduced             = first_index(head bin)            (all of them when the list is empty)
 *   kept                = records of the listed bins
 * A bin whose seq is below head_seq was given back and must not rise again. */
struct fdr_part {
    struct fdr_meta_head head;
    uint64_t list_head;  /* atomic {seq:32, off:32} of the oldest bin held; off 0: empty */
    uint64_t total;      /* records stored in sealed bins, ever (= first_index of the next bin) */
    uint64_t floor_tick; /* newest leave that was given back from this partition; 0 = nothing was */
    uint32_t next;       /* off of the location's next partition */
    uint32_t open_seq;   /* seq of the open bin; the next bin gets the next seq */
    uint16_t depth;
    uint8_t class_;
    uint8_t band;
    uint8_t size_log2;  /* size of the open bin; grows up to bin_bytes */
    uint8_t flags;      /* enum fdr_part_flags */
    uint16_t aside_how; /* set aside: FDR_ASIDE_... */
    uint32_t bins;      /* bins and pieces held */
    uint32_t bytes;     /* their sum / 512 */
    /* one cache line: all that storing a record touches; see format/record.h */
    uint64_t progress;     /* bits:20 | records:20 of the open bin that are complete */
    uint64_t hash;         /* running check */
    uint64_t last_tick;    /* leave (or time) of the newest record */
    uint32_t open_off;     /* bin being written, 0 = none */
    uint32_t table_off;    /* encoder's prediction table */
    uint32_t limit;        /* a record may start while its first bit is <= limit */
    uint32_t context;      /* table slot for the next record */
    uint32_t newest;       /* table entry of the newest record */
    uint32_t context_mask; /* contexts - 1 of the open bin */
    /* set aside: when; its records and all others of the location so far are not newer. Else not 0 while the records of
     * a newest bin that was taken come to `total`: what that will be then */
    uint64_t aside_tick;
    uint64_t forgets; /* records that a rewind under way takes away, at most; 0 = none is */
};
static_assert(sizeof(struct fdr_part) == 128 && offsetof(struct fdr_part, progress) == 64, "partition");

enum fdr_part_flags {
    FDR_PART_CLOSED = 1,
    FDR_PART_COUNTED = 2 /* its newest bin is counted in an epoch */,
    FDR_PART_UNTOLD = 4,   /* more is missing than accounts tell, T is floor_tick (FORMAT 7.2); only recovery sets it */
    FDR_PART_REWOUND = 8,  /* a rewind ended the newest bin: the next one is small */
    FDR_PART_GROWING = 16, /* twice as large as the one before, until the size is right again */
    FDR_PART_ASIDE = 32,   /* set aside: of the first moments (FDR_PIN), and nothing is given back of it */
    FDR_PART_PLACED = 64,  /* it stands in its owner's order of worth */
    FDR_PART_SHORT = 128   /* the newest bins were lost; only recovery sets it */
};
enum fdr_aside {
    FDR_ASIDE_CUT = 1,    /* before its time was over: it had used up its share */
    FDR_ASIDE_PARENTS = 2 /* no call one level less deep had been lost by then */
};

/* ---- bins ---- */
#define FDR_BIN_MAGIC 0x4e424446u /* "FDBN" */
#define FDR_BIN_NS    1u          /* times in ns, as the location's flag FDR_LOCATION_NS says */
#define FDR_BIN_GAP   2u          /* records between the bin before and this one were lost; only recovery sets it */
struct fdr_bin {
    uint32_t magic;
    uint32_t check; /* fdr_check32 of bytes 8..47 (all that never changes while the bin is in use) */
    uint32_t location;
    uint32_t seq; /* within the partition, from 1 */
    uint16_t depth;
    uint8_t class_;
    uint8_t band;
    uint8_t size_log2; /* of this bin; 9 .. log2(bin_bytes) */
    uint8_t flags;     /* FDR_BIN_NS, FDR_BIN_GAP */
    uint16_t reserved;
    uint32_t epoch;        /* of its birth */
    uint32_t base_ordinal; /* ordinals given at this depth in tick base_tick before this bin */
    uint64_t base_tick;    /* newest leave of the partition before this bin; the first gap counts from here */
    uint64_t first_index;  /* records stored in this partition before this bin */
    /* from here on: not covered by `check` */
    uint64_t commit;     /* atomic: bits:20 | records:20 | check:24 (low to high) of what is complete */
    uint32_t next;       /* off of the next bin of the partition, 0 while this is the newest */
    uint32_t generation; /* atomic: rises whenever the memory changes hands; odd while a list may name it */
};
static_assert(sizeof(struct fdr_bin) == 64, "bin header");
#define FDR_BIN_HEADER 64u

#define FDR_COMMIT_BITS(c)    ((uint32_t)((c)&0xfffffu))
#define FDR_COMMIT_RECORDS(c) ((uint32_t)((c) >> 20 & 0xfffffu))
#define FDR_COMMIT_CHECK(c)   ((uint32_t)((c) >> 40 & 0xffffffu))
#define FDR_COMMIT(bits, records, check)                                                                               \
    ((uint64_t)(bits) | (uint64_t)(records) << 20 | (uint64_t)((check)&0xffffffu) << 40)

/* ---- exact totals ---- */
/* One region (or metric, message kind, collective) of one location.
 * key: id | kind << 24 (enum fdr_def_kind; messages: kind 0, id 1 send, 2 recv). */
struct fdr_row {
    uint32_t key;
    uint32_t flags;     /* FDR_ROW_* */
    uint64_t calls;     /* closed and timed; points: events */
    uint64_t sum;       /* inclusive full ticks; messages, collectives: bytes; metrics: sum of the value type */
    uint64_t exclusive; /* full ticks */
    uint64_t min, max;  /* full ticks; bytes; values of the value type */
    uint64_t histogram; /* fdr_histogram_word; 0 = none */
    uint64_t untimed;   /* calls counted only */
};
static_assert(sizeof(struct fdr_row) == 64, "totals row");
/* {off:32, first bucket:8, buckets:8}: off is where the counter of bucket 0 would be. Whatever lies between min and max
 * of a row with a histogram has a bucket in it. */
static inline uint32_t fdr_histogram_first(uint64_t word) { return (uint32_t)(word >> 32 & 0xff); }
static inline uint32_t fdr_histogram_count(uint64_t word) { return (uint32_t)(word >> 40); }
static inline uint32_t fdr_histogram_off(uint64_t word) { return (uint32_t)word + fdr_histogram_first(word) * 8; }
static inline uint64_t fdr_histogram_word(uint32_t off, uint32_t first, uint32_t count)
{
    return (uint32_t)(off - first * 8) | (uint64_t)first << 32 | (uint64_t)count << 40;
}
enum fdr_row_flags {
    FDR_ROW_NO_HISTOGRAM = 1, /* memory did not hold it */
    FDR_ROW_GATED = 2,        /* a rule applies: look at the region's rule */
    FDR_ROW_SATURATED = 4,    /* `sum` met the bound of its type, and stays there */
    FDR_ROW_VALUE_SHIFT = 8,  /* bits 8..9: enum fdr_value_type of sum, min, max */
    FDR_ROW_SEEN_SHIFT = 12   /* bits 12..31: calls a counting rule has seen, saturating */
};
#define FDR_ROW_KEY_REST 0x7fffffffu /* the row folded regions share */
/* Else it counts a kind of points. */
static inline bool fdr_row_of_calls(uint32_t key) { return key >> 24 == FDR_DEF_REGION || key == FDR_ROW_KEY_REST; }

struct fdr_rows_block {
    struct fdr_meta_head head;
    uint8_t pad[48];
    /* rows and histograms (arrays of u64) of 64 bytes each follow; found through the row table */
};
struct fdr_rowtable {
    struct fdr_meta_head head;
    uint32_t log2; /* 1 << log2 slots of u32 row offs follow: open addressing, linear probing from
                    * key * 0x9E3779B1 >> (32 - log2) */
    uint32_t used;
    uint8_t pad[40];
};
static_assert(sizeof(struct fdr_rowtable) == 64, "row table");

/* ---- strategy `telescope`: epochs, oldest first, without a gap; they merge two by two as they age ----
 * Epoch i holds what ended after from_tick of i and not after from_tick of i + 1; the last one is the current one. Its
 * sums and rows come when it is cut; until then they are the totals less the base. */
#define FDR_EPOCHS_MAX 60
struct fdr_epoch {
    uint64_t from_tick;
    uint64_t calls;                /* of regions, ended in it and timed */
    uint64_t inclusive, exclusive; /* full ticks, of these */
    uint32_t number;               /* birth number (fdr_bin.epoch) of the first one merged into it */
    uint32_t births;               /* how many were */
    uint32_t units;                /* 512 bytes each: held bins that ended in it; a hint */
    uint32_t rows_off;             /* struct fdr_epoch_rows, 0 = none: all is in the sums */
    uint32_t tier;                 /* its age tier: made of 2^tier epochs */
    uint32_t reserved[3];
};
static_assert(sizeof(struct fdr_epoch) == 64, "epoch");
struct fdr_epochs {
    struct fdr_meta_head head;
    uint32_t version; /* atomic: odd while it is rearranged */
    uint32_t count;
    uint32_t opened;     /* units opened in the current epoch */
    uint32_t row_bytes;  /* size of a block of rows */
    uint32_t base_first; /* off of struct fdr_epoch_base */
    uint32_t base_last;
    uint32_t untracked; /* regions that found no base: in no epoch's sums */
    uint32_t merging;   /* 1: tiers with too many epochs are left */
    uint32_t spare;     /* blocks of rows that no epoch uses, chained through `count` */
    uint32_t tracked;   /* rows in the base; one more for each that was left in its making */
    uint32_t walking;   /* 1: the last epoch but one has not got all of its totals: the rest counts in the last one */
    uint32_t reserved;
    struct fdr_epoch epoch[FDR_EPOCHS_MAX];
};
static_assert(sizeof(struct fdr_epochs) == 64 + 64 * FDR_EPOCHS_MAX, "epochs");

/* The regions that mattered most in an epoch (inclusive + exclusive time); all others share the rest. Sums are
 * exact. */
struct fdr_epoch_row {
    uint32_t key;   /* as fdr_row.key */
    uint32_t flags; /* 1: more of this region may be in the rest */
    uint64_t calls, inclusive, exclusive;
};
static_assert(sizeof(struct fdr_epoch_row) == 32, "epoch row");
#define FDR_EPOCH_ROWS_MOST 4096u /* bytes of such a block, at most */
struct fdr_epoch_rows {
    struct fdr_meta_head head;
    uint32_t count;
    uint32_t reserved0;
    uint64_t rest_calls, rest_inclusive, rest_exclusive;
    uint64_t reserved1[2];
    struct fdr_epoch_row row[];
};
static_assert(sizeof(struct fdr_epoch_rows) == 64, "epoch rows");
struct fdr_base_row {
    uint32_t row_off, reserved;
    uint64_t calls, sum, exclusive;
};
struct fdr_epoch_base {
    struct fdr_meta_head head;
    uint32_t next;
    uint32_t count;
    uint64_t reserved;
    struct fdr_base_row row[];
};
static_assert(sizeof(struct fdr_epoch_base) == 32, "epoch base");

/* ---- tail of a snapshot: each location's accounts after its bins were copied ---- */
#define FDR_TAIL_MAGIC 0x4c494154u /* "TAIL" */
struct fdr_tail {
    uint32_t magic;
    uint32_t count; /* entries that follow */
    uint64_t reserved;
};
struct fdr_tail_entry {
    uint32_t location;
    uint32_t under_way; /* 1: the owner was in the middle of an operation before all of it, or at the end */
    uint64_t presented; /* all classes and depths, after */
    uint64_t cut_tick;  /* full ticks: newest event when the open stack was copied */
    uint64_t completed; /* events of all classes and depths that were over before anything was copied */
    uint64_t end_tick;  /* full ticks: newest event after; equal to cut_tick when the location did not move */
};
static_assert(sizeof(struct fdr_tail_entry) == 40, "tail entry");
/* 5,734: more than the threads that 64 MiB are sure to have room for. Others have none (FORMAT.md, 14.1). */
#define FDR_TAIL_ENTRIES                                                                                               \
    ((FDR_TAIL_MAX_BYTES - FDR_TAIL_CHECKS - sizeof(struct fdr_tail)) / sizeof(struct fdr_tail_entry))

enum fdr_strategy { FDR_STRATEGY_WHOLE = 0, FDR_STRATEGY_LAST = 1, FDR_STRATEGY_FIRST = 2, FDR_STRATEGY_TELESCOPE = 3 };
enum fdr_step {
    FDR_STEP_DURATION = 1,
    FDR_STEP_DEPTH,
    FDR_STEP_CLASS,
    FDR_STEP_EPOCH,
    FDR_STEP_STOP,
    FDR_STEP_CLAIM,
    FDR_STEP_THIN = 8
};

/* Multiply-and-rotate check over whole bytes; not for secrets. In one go, or begun with the number of all bytes. */
static inline uint64_t fdr_check32_begin(uint32_t count) { return 0x9E3779B97F4A7C15u ^ count; }
static inline uint64_t fdr_check32_add(uint64_t h, const void *bytes, uint32_t count)
{
    const uint8_t *p = (const uint8_t *)bytes;
    for (uint32_t i = 0; i < count; i++) h = (h ^ p[i]) * 0x100000001B3u + (h >> 41);
    return h;
}
static inline uint32_t fdr_check32_end(uint64_t h) { return (uint32_t)(h ^ h >> 32); }
static inline uint32_t fdr_check32(const void *bytes, uint32_t count)
{
    return fdr_check32_end(fdr_check32_add(fdr_check32_begin(count), bytes, count));
}
#endif
