/* SPDX-License-Identifier: MIT */
/* What the files of reader/ share.
 *
 *   process.c    where a running process has its arena; outside*.c: a copy of it; live.c: read as a file
 *   open.c       bytes of a file, verdict        clock.c      stored ticks to ns
 *   superblock.c its fields, or a way around     damage.c     what was found wrong, as text
 *   checks.c     its spare, checks of meta blocks   memory.c   memory, and whether it was short
 *   meta.c       where the meta blocks are       locations.c  locations, stacks, tail
 *   scan.c       all bin headers                 parts.c      partitions: lists of bins, or what a scan gives
 *   bins.c       one bin: header, decoding       list.c       the bins of one partition, in order
 *   keep.c       which records count as kept, reach   cut.c   the end of a snapshot of a location that went on
 *   decode.c     the fast way through a bin      care.c       may a call be missing around others?
 *   cursor.c     records of one partition        points.c     events without duration, in order
 *   stream*.c    events of one location          careful.c    the same where something may be missing
 *   samples.c    streams of samples: levels, weights   places.c   names for their addresses
 *   epochs.c     detail by age                  balance.c    how well memory is used
 *   undo.c       accounts that a kill left half moved   end.c   how the process ended, added by who saw it
 *   calls.c      calls with their times          unplaced.c   calls that are not shown, as their parents are lost
 *   merge.c      all locations by time           ledger.c, totals.c, reductions.c, info.c, definitions.c
 *   rows.c       rows of totals, and which are believed     agrees.c   does one agree with all else?
 *   bundle*.c    what a fatal signal left behind the arena, and notes; unwind_*.c its stacks;
 *                code_*.c lines and what is inlined
 *   recover*.c   a fresh whole file              symbols*.c, demangle*.c  names for addresses
 *   core_*.c     the arena out of a core file    newfile.c    a name that only whole files get
 *
 * Everything read from the file is checked against the file's size before it is used, and copied where it could
 * matter twice. Offsets are 64 bits wide here, so sums of two fields cannot wrap. */
#ifndef FDR_READER_READER_H
#define FDR_READER_READER_H

#include <assert.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "format/arena/arena.h"
#include "format/codec/record_codec.h"

/* The stack that is kept is at most this deep; a partition that claims more is damaged. */
#define FDRI_READER_DEPTH_MAX  FDR_LEVELS_MAX
#define FDRI_READER_DAMAGE_MAX 1000u

/* ---- clock.c ---- */
/* ns = ns0 + (tick - tick0) * mult >> shift_right, and exactly num / den for durations. */
struct fdri_reader_clock {
    uint64_t tick0, ns0, mult;
    uint64_t num, den;
    uint64_t stored_max; /* no believable stored tick is greater; up to here nothing overflows */
    uint8_t shift, shift_right;
};
static inline uint64_t fdri_reader_ns(const struct fdri_reader_clock *c, uint64_t stored)
{
    uint64_t tick = stored << c->shift;
    if (__builtin_expect(tick >= c->tick0, 1))
        return c->ns0 + (uint64_t)((unsigned __int128)(tick - c->tick0) * c->mult >> c->shift_right);
    uint64_t back = (uint64_t)((unsigned __int128)(c->tick0 - tick) * c->mult >> c->shift_right) + 1;
    return back < c->ns0 ? c->ns0 - back : 0;
}
/* The same for any full tick, saturating. */
uint64_t fdri_reader_full_ns(const struct fdri_reader_clock *c, uint64_t tick);
/* A duration in full ticks, rounded down. */
static inline uint64_t fdri_reader_duration_ns(const struct fdri_reader_clock *c, uint64_t ticks)
{
    unsigned __int128 ns = (unsigned __int128)ticks * c->num / c->den;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}
/* A stored tick that is not after `ns`. */
uint64_t fdri_reader_stored_before(const struct fdri_reader_clock *c, uint64_t ns);
void fdri_reader_clock_ns(struct fdri_reader_clock *c, uint32_t shift);
/* false: the fields make no sense and ticks are shown as ns. */
bool fdri_reader_clock_init(struct fdri_reader_clock *c, const struct fdr_superblock *sb);

/* ---- open.c ---- */
/* `message` has room for at least one byte. */
enum fdr_verdict fdri_reader_open_fd(int fd, bool headers_only, struct fdr_file **out, char *message,
                                     size_t message_bytes);

/* ---- bins and partitions ---- */
enum fdri_reader_bin_state {
    FDRI_READER_BIN_UNKNOWN = 0,
    FDRI_READER_BIN_GOOD,
    FDRI_READER_BIN_SLOW, /* good, but the fast way does not read it */
    FDRI_READER_BIN_BAD
};
struct fdri_reader_bin {
    uint64_t base_tick, first_index;
    uint32_t off, seq, records;
    uint8_t size_log2;
    uint8_t state; /* enum fdri_reader_bin_state; relaxed atomic: any thread may find out */
    bool gap;      /* bins or records before it are missing */
    bool gap_told; /* they were when it was recovered */
    bool told;     /* that it is damaged is in the list of damage */
};
struct fdri_reader_part {
    uint64_t off; /* of struct fdr_part; 0: only its bins say that it is there */
    uint16_t depth;
    uint8_t class_, band;
    bool tail_gap;       /* something is missing after the newest bin */
    bool tail_told;      /* it was when it was recovered */
    bool tail_moved;     /* it may all be newer than the cut */
    bool aside;          /* set aside */
    bool aside_parents;  /* until then none had been lost of those that may be parents of its calls */
    uint64_t aside_tick; /* up to here: all that had ended by then */
    uint32_t bin_count, bin_room;
    struct fdri_reader_bin *bin;
    uint64_t given_back; /* records stored once and no longer held */
    uint64_t forgets;    /* a rewind was under way: so many at most are in no account yet */
    uint64_t floor;      /* newest leave that was given back; 0: nothing was */
    bool floor_unknown;  /* all was given back while a snapshot was made, or the block is damaged: later than `floor` */
    bool untold;         /* recovered, and more is missing than is told */
    uint64_t min_leave;  /* a record is kept when its leave is not below this */
    uint64_t first_tick, last_tick; /* of what is kept, when `any` */
    bool any;
};

/* ---- locations ---- */
struct fdri_reader_frame {
    uint64_t enter;
    uint32_t region, flags, ordinal; /* FDR_ORDINAL_COUNTED, mostly */
};
#define FDRI_READER_NO_ORDINAL (FDR_ORDINAL_COUNTED - 1u) /* not known, and nobody's */

struct fdri_reader_unplaced { /* unplaced.c */
    uint32_t depth;
    uint64_t leave;
};

struct fdri_reader_location {
    uint32_t id;
    uint64_t off;                              /* of struct fdr_location; 0: known from its bins only */
    struct fdr_location raw;                   /* a copy; zero when off is 0 */
    uint64_t levels_off[FDR_LEVEL_BLOCKS_MAX]; /* 0: missing */
    bool levels_lost, parts_lost, suspect;     /* suspect: its own block is damaged */
    bool parts_missing;    /* the chain of its partitions is broken, or was when the file was recovered */
    bool accounts_dropped; /* while it is recovered */
    bool rows_lost;        /* of its totals, as damage took them; known once they were read */
    bool epoch_rows_lost;  /* the same of those that its current epoch is counted with */
    struct fdri_reader_clock clock;
    struct fdri_reader_part *part; /* sorted by class, depth, band */
    size_t part_count, part_room;
    /* The stack of open calls, outermost first, in stored ticks. `frame` is what counts as kept and is shown: the
     * live stack, or what was open when the location stopped storing. */
    struct fdri_reader_frame *live, *frozen, *frame;
    uint32_t live_count, frozen_count, frame_count; /* frame_count: believed */
    bool stopped, frozen_lost; /* frozen_lost: of what was open when it stopped only a part can be read */
    /* A snapshot taken while this location went on: what is newer than the cut may lack ancestors, and bins opened
     * since may be missing. */
    bool moving, in_tail;
    bool settled;    /* it did not move, nor was an operation under way: whatever does not fit is damage */
    bool other_unit; /* its bins say another unit of time than its header */
    uint64_t cut;    /* stored tick */
    uint64_t *over;  /* by depth, where it moved: a missing call that was open behind this tick was open at the cut */
    struct fdr_tail_entry tail;
    uint64_t presented_before;
    uint64_t presented_in[FDR_CLASS_COUNT]; /* of this; samples: not known here */
    bool presented_doubted;                 /* it lacks accounts, or has some that are damaged */
    bool careful;                           /* a call's ancestor may be missing */
    uint64_t from_tick, end_tick;           /* stored: oldest and newest kept event or open call */
    struct fdr_location_info info;
    struct fdr_open_call *open;
    bool unplaced_known;
    struct fdri_reader_unplaced *unplaced; /* calls that lie in bins and are not shown */
    size_t unplaced_count, unplaced_room;
};

struct fdri_reader_found { /* a valid bin header somewhere */
    uint32_t off, location, seq;
    uint16_t depth;
    uint8_t class_, band, flags;
    bool listed;
};
struct fdri_reader_bad { /* a stretch of meta blocks whose check is wrong, or that has none to believe */
    uint64_t off, end;
};
struct fdri_reader_meta {
    uint64_t off;
    uint32_t location;
    uint16_t kind;
};

struct fdri_reader_definition {
    struct fdr_definition d;
    uint32_t module; /* region known by address: id of its module, 0: unknown */
    uint64_t bytes;  /* module: size in memory */
    uint64_t from;   /* module: full tick since when it is there, 0: nobody was there before */
};
struct fdri_reader_definitions {
    struct fdri_reader_definition *row; /* sorted by id */
    size_t count, room;
    uint32_t id_max;
};
#define FDRI_READER_KINDS 8
struct fdri_reader_defs {
    uint64_t off;
    uint32_t used;
}; /* a block of definitions */

struct fdr_file {
    const uint8_t *bytes;
    uint64_t size;
    void *owned; /* to unmap or free */
    bool mapped;
    struct fdr_superblock sb;    /* as repaired */
    struct fdr_spare spare;      /* zero: damaged */
    struct fdri_reader_bad *bad; /* in order */
    size_t bad_count, bad_room;
    uint64_t end;         /* arena bytes that are there */
    uint64_t bins_end;    /* no bin beyond */
    uint64_t meta_first;  /* no meta block before */
    bool cut_off;         /* its end is not there */
    bool has_tail;        /* a snapshot */
    bool tail_bad;        /* and what it says is not believed */
    bool has_crash;       /* a bundle: a crash section lies behind the arena */
    bool without_section; /* a bundle that has none */
    uint64_t section_end; /* in the file; 0: there is none, or nobody can find it */
    bool sound;           /* nothing found damaged so far */
    bool headers_only;    /* a look at a running process: bins have no payload */
    uint32_t refused;     /* memory.c: how often memory had been refused when this was opened */

    struct fdri_reader_found *found;
    size_t found_count, found_room;
    struct fdri_reader_found **by_identity; /* made when a list is broken */
    struct fdri_reader_meta *meta;
    size_t meta_count, meta_room;
    bool meta_scanned;

    struct fdri_reader_location *location; /* sorted by id */
    size_t location_count, location_room;
    bool locations_lost; /* the chain was broken, or lacks some: bins may belong to locations nobody describes */
    struct fdri_reader_clock clock;

    struct fdri_reader_definitions definitions[FDRI_READER_KINDS];
    struct fdri_reader_defs *defs;
    size_t defs_count, defs_room;
    uint64_t defs_bytes;
    uint64_t defs_vain;              /* bytes checked for definitions where there are none */
    struct fdr_definition **unknown; /* hash table of made-up ones */
    size_t unknown_count, unknown_slots;
    void **kept_memory; /* strings and arrays of definitions */
    size_t kept_count, kept_room;

    struct fdr_file_info info;
    char strategy[16];
    char build_id[80];

    char **damage;
    size_t damage_count, damage_room;

    struct fdri_reader_bundle *bundle; /* NULL: no crash section */
    struct fdr_note_info *note;
    size_t note_count, note_room;

    pthread_mutex_t lock; /* what is computed on first use */
    bool has_epochs;
    struct fdr_epoch_info *epoch;
    size_t epoch_count, epoch_room;
    struct fdr_epoch_total *epoch_total;
    size_t epoch_total_count, epoch_total_room;
    bool verified, has_ledger, has_totals, has_reductions;
    struct fdr_ledger_row *ledger;
    size_t ledger_count, ledger_room;
    struct fdr_total *total;
    size_t total_count, total_room;
    uint64_t total_slots; /* looked at so far */
    uint64_t total_looks; /* at rows in blocks whose table is damaged */
    struct fdr_sample_stream *stream;
    size_t stream_count, stream_room;
    bool has_streams;
    struct fdri_reader_places *places;
    struct fdr_reduction_info *reduction;
    size_t reduction_count, reduction_room;
};

/* `count` bytes at `off` of the file, or NULL when they are not all there. */
static inline const void *fdri_reader_at(const struct fdr_file *f, uint64_t off, uint64_t count)
{
    return off <= f->end && count <= f->end - off ? f->bytes + off : NULL;
}
/* Room for one more element: grows *array (of *room elements of `size` bytes). false: no memory. */
bool fdri_reader_room(void *array, size_t count, size_t *room, size_t size);

/* ---- memory.c ---- */
/* As those of the C library, and remembered where there is none. A count or size of 0 is taken as 1. */
void *fdri_reader_malloc(size_t bytes);
void *fdri_reader_calloc(size_t count, size_t bytes);
void *fdri_reader_realloc(void *old, size_t bytes);
void *fdri_reader_aligned(size_t align, size_t bytes);
char *fdri_reader_strdup(const char *text);
#define FDRI_READER_NO_MEMORY "out of memory: not all of it could be read"
void fdri_reader_memory_begin(struct fdr_file *f);
/* Was memory refused since? Then what is known of the file may lack anything. */
bool fdri_reader_memory_short(const struct fdr_file *f);

/* ---- open.c ---- */
/* Everything but the bytes themselves; `message` as in fdr_file_open. */
bool fdri_reader_superblock(struct fdr_file *f, char *message, size_t message_bytes);
void *fdri_reader_keep(struct fdr_file *f, size_t bytes); /* zeroed, freed with the file */

/* ---- checks.c ---- */
void fdri_reader_spare(struct fdr_file *f);  /* mends f->sb */
void fdri_reader_checks(struct fdr_file *f); /* says which meta blocks are damaged */
/* Is any of these bytes in a damaged stretch? */
bool fdri_reader_suspect(const struct fdr_file *f, uint64_t off, uint64_t bytes);

/* ---- damage.c ---- */
__attribute__((format(printf, 2, 3))) void fdri_reader_damage(struct fdr_file *f, const char *format, ...);

/* ---- undo.c ---- */
void fdri_reader_undo(struct fdr_file *f); /* a change that the recorder was killed in the middle of */

/* ---- meta.c ---- */
/* The head of a meta block of this kind (0: any) and location (UINT32_MAX: any) at off, `bytes` of it present. */
const struct fdr_meta_head *fdri_reader_meta_at(const struct fdr_file *f, uint64_t off, uint32_t kind,
                                                uint32_t location, uint64_t bytes);
/* All blocks of this kind and location (UINT32_MAX: any) that a scan finds, in the order they were handed out. */
const struct fdri_reader_meta *fdri_reader_meta_scan(struct fdr_file *f, uint32_t kind, uint32_t location,
                                                     size_t *count);
/* No meta block that a scan finds lies before. */
uint64_t fdri_reader_meta_lowest(struct fdr_file *f);

/* ---- bins.c, scan.c, parts.c ---- */
/* Copies the header at off; false when there is no valid one. */
bool fdri_reader_bin_header(const struct fdr_file *f, uint64_t off, struct fdr_bin *h);
/* The bin at `off` belongs to a partition of this class and depth, but its header is damaged: its records, and how long
 * after its base_tick the newest of them left; false: its payload says nothing either. */
bool fdri_reader_bin_headless(const struct fdr_file *f, uint64_t off, uint32_t class_, uint32_t depth,
                              uint64_t *records, uint64_t *span);
/* How many records of a bin that is good come before the first that entered behind `cut`; *newest: their last leave. */
uint64_t fdri_reader_bin_up_to(const struct fdr_file *f, const struct fdri_reader_bin *b, uint64_t cut,
                               uint64_t *newest);
/* Prepares `d` for a bin; false: its commit word promises more than there is. */
bool fdri_reader_bin_begin(const struct fdr_file *f, const struct fdri_reader_bin *b, struct fdr_decoder *d);
/* Decodes it: true when all of it is right. *gone: how many leaves are below `mark`; *newest: the last leave. */
bool fdri_reader_bin_read(const struct fdr_file *f, const struct fdri_reader_location *l, struct fdri_reader_bin *b,
                          uint64_t mark, uint64_t *gone, uint64_t *newest);
/* The same, once. */
bool fdri_reader_bin_good(const struct fdr_file *f, const struct fdri_reader_location *l, struct fdri_reader_bin *b);
/* The newest leave that was given back, as far as the oldest bin held tells. */
uint64_t fdri_reader_floor_told(const struct fdri_reader_bin *oldest, uint64_t given_back);
/* A bin is known to be missing, or to be damaged. */
bool fdri_reader_bins_missing(const struct fdri_reader_part *p);
void fdri_reader_scan(struct fdr_file *f);
uint32_t fdri_reader_scan_bin_bytes(const struct fdr_file *f);
/* Marks a header as listed. false: it was already. */
bool fdri_reader_listed(struct fdr_file *f, uint64_t off);
void fdri_reader_parts(struct fdr_file *f, struct fdri_reader_location *l);
/* All headers by location, class, depth, band, seq; NULL without memory. */
struct fdri_reader_found **fdri_reader_by_identity(struct fdr_file *f);
/* The bins of a partition: those its block lists (raw), or whatever the scan found (raw NULL). */
void fdri_reader_list(struct fdr_file *f, struct fdri_reader_location *l, struct fdri_reader_part *p,
                      const struct fdr_part *raw);
/* From when on is there what calls of length 0 of that depth lie in, whatever is left of it? (Else its loss tells
 * nothing.) Stored tick; 0: always, UINT64_MAX: never; behind what was set aside, where only that may be gone. */
uint64_t fdri_reader_zeros_from(const struct fdri_reader_location *l, uint32_t depth);
/* Finds a class x depth x band of a location. */
const struct fdri_reader_part *fdri_reader_part(const struct fdri_reader_location *l, uint32_t class_, uint32_t depth,
                                                uint32_t band, bool aside);

/* ---- locations.c ---- */
void fdri_reader_locations(struct fdr_file *f);
struct fdri_reader_location *fdri_reader_location(struct fdr_file *f, uint32_t id);
/* Level d, or NULL. Level 0: events outside any region. */
const struct fdr_level *fdri_reader_level(const struct fdr_file *f, const struct fdri_reader_location *l,
                                          uint32_t depth);
const struct fdr_level_points *fdri_reader_points(const struct fdr_file *f, const struct fdri_reader_location *l,
                                                  uint32_t depth);
void fdri_reader_tail(struct fdr_file *f);

/* ---- keep.c ---- */
/* What left up to here does not count as kept, as the location says; 0: all does, or that is not believed. */
uint64_t fdri_reader_floor(const struct fdri_reader_location *l);
void fdri_reader_keep_rule(struct fdri_reader_location *l);
/* Calls of this depth that were ever stored, or counted as left out; UINT64_MAX: not known. */
uint64_t fdri_reader_accounted(const struct fdr_file *f, const struct fdri_reader_location *l, uint32_t depth);
void fdri_reader_reach(struct fdr_file *f, struct fdri_reader_location *l);

/* ---- ledger.c ---- */
/* The row that calls without a level are in; 0: there are none. */
uint32_t fdri_reader_refused_from(const struct fdri_reader_location *l);

/* ---- care.c ---- */
bool fdri_reader_needs_care(struct fdr_file *f, struct fdri_reader_location *l);

/* ---- cut.c ---- */
/* Of a location that went on: which frames are believed, and `over`. */
void fdri_reader_cut(struct fdr_file *f, struct fdri_reader_location *l);
/* Are records of this depth missing, by damage, anywhere? Decodes all there are. */
bool fdri_reader_gaps(const struct fdr_file *f, const struct fdri_reader_location *l, uint32_t depth);
/* The call of this depth around r, which is in p (NULL: an open call), is not there. Was it not over at the cut, beyond
 * doubt, where nothing is missing by damage? */
bool fdri_reader_not_over(const struct fdr_file *f, const struct fdri_reader_location *l, uint32_t depth,
                          const struct fdri_reader_part *p, const struct fdr_record *r);

/* ---- samples.c ---- */
/* Levels: what is held of one counts as kept as far back as all sparser ones reach. */
void fdri_reader_keep_samples(struct fdri_reader_location *l);
/* The accounts of one level, or NULL. */
const struct fdr_samples *fdri_reader_samples(const struct fdr_file *f, const struct fdri_reader_location *l);
/* The number that what is kept counts from: all before it is given back at every level. */
uint64_t fdri_reader_samples_from(struct fdr_file *f, struct fdri_reader_location *l);

void fdri_reader_show_sample(struct fdr_read_event *e, const struct fdr_sample_path *path);
/* By depth (regions open around it) and region (any of them). */
bool fdri_reader_sample_wanted(const struct fdr_select *w, const struct fdr_sample_path *path);

/* ---- places.c ---- */
void fdri_reader_places_close(struct fdr_file *f);

/* ---- info.c, definitions.c, symbols, demangle ---- */
void fdri_reader_info(struct fdr_file *f);
void fdri_reader_balance(struct fdr_file *f);
void fdri_reader_definitions(struct fdr_file *f);
/* The one with this id, or NULL. */
const struct fdri_reader_definition *fdri_reader_definition(const struct fdr_file *f, uint32_t kind, uint32_t id);
/* Bytes of the good definition record that starts here and is at most `room` bytes; 0: there is none. *vain, 0 at
 * first, is what was checked for nothing so far. */
uint32_t fdri_reader_def_bytes(const uint8_t *bytes, uint32_t room, uint64_t *vain);

/* ---- epochs.c ---- */
/* One block of what the current epoch is counted from; NULL: damaged. *most: rows that may still come, at first as many
 * as the file has room for. */
const struct fdr_epoch_base *fdri_reader_epoch_base(const struct fdr_file *f, const struct fdri_reader_location *l,
                                                    uint64_t off, size_t *most);

/* How many epochs are told: the last two are one where the first of them has not got all of its totals yet. */
static inline uint32_t fdri_reader_epochs_told(const struct fdr_epochs *e)
{
    return e->count - (e->walking && e->count > 1);
}

/* Are the rows of this epoch, which is over, in bytes that are damaged? Then all of it is in its rest. */
bool fdri_reader_epoch_rows_lost(const struct fdr_file *f, const struct fdr_epoch *e);

/* ---- reductions.c ---- */
/* Does the line say something, in bytes that are not damaged? */
bool fdri_reader_reduction_good(const struct fdr_file *f, const struct fdr_reduction *r);

/* ---- rows.c ---- */
#define FDRI_READER_ROW_NO_CLASS UINT32_MAX
uint32_t fdri_reader_row_class(uint32_t key); /* FDR_IN_*; NO_CLASS: of no row that totals are read from */
/* Is this a row that the totals show? */
bool fdri_reader_row_wanted(const struct fdr_row *r);
const struct fdr_row *fdri_reader_row_at(const struct fdr_file *f, uint64_t off); /* NULL: none can lie there */
/* Is any of its bytes in a damaged stretch? */
bool fdri_reader_row_suspect(const struct fdr_file *f, const struct fdr_row *r);

enum fdri_reader_slot {
    FDRI_READER_SLOT_END = 0,
    FDRI_READER_SLOT_ROW,
    FDRI_READER_SLOT_FOREIGN, /* what the copy found there is none of this table's */
    FDRI_READER_SLOT_LOST     /* damaged: the row, or what led to it */
};
struct fdri_reader_rows { /* a walk through the table of a location */
    const uint32_t *slot;
    const struct fdr_row *row; /* of slot `at` */
    uint32_t log2, at, run;    /* run: slots before it that are taken */
    bool lost;                 /* so far: of some rows nobody knows, or that there were any */
    bool doubted;              /* it leads to what is no row, and no check says that this is damage */
};
/* false: the table that the location has is damaged. *looked: slots so far, of all locations. */
bool fdri_reader_rows_begin(struct fdr_file *f, const struct fdri_reader_location *l, uint64_t *looked,
                            struct fdri_reader_rows *t);
/* The next slot that is taken. */
enum fdri_reader_slot fdri_reader_rows_next(struct fdr_file *f, const struct fdri_reader_location *l,
                                            struct fdri_reader_rows *t);
/* Whatever its table says: rows of it may be gone. */
bool fdri_reader_rows_doubted(const struct fdri_reader_location *l);

/* ---- agrees.c ---- */
/* Does everything that it says agree with itself, with its counters, definitions and the ledger? */
bool fdri_reader_row_agrees(struct fdr_file *f, const struct fdri_reader_location *l, const struct fdr_row *r);
/* Do these bytes lie in memory for rows of this location? */
bool fdri_reader_among_rows(struct fdr_file *f, const struct fdri_reader_location *l, uint64_t off, uint64_t bytes);
/* Every call is in a bucket. In a copy made beside its thread the row may be older or newer than its histogram, by what
 * happened meanwhile; by more only where the histogram had moved, and its old place serves others. One without any
 * count is not there: it moved to a place that was copied before, and the row that leads there behind that. */
bool fdri_reader_counts_go_with(const struct fdr_file *f, const struct fdri_reader_location *l, uint64_t counted,
                                uint64_t calls);

/* ---- bundle.c ---- */
/* Of a chain that is damaged: does it come to where it was? Asked of each place in turn, from {0} on; the answer comes
 * within a few rounds (Brent). */
struct fdri_reader_chain {
    uint64_t mark, steps, until;
};
static inline bool fdri_reader_goes_round(struct fdri_reader_chain *c, uint64_t off)
{
    if (c->until && off == c->mark) return true;
    if (c->steps++ < c->until) return false;
    c->mark = off;
    c->until = c->until * 2 + 1;
    c->steps = 0;
    return false;
}
void fdri_reader_notes(struct fdr_file *f);
void fdri_reader_bundle(struct fdr_file *f);
void fdri_reader_behind(struct fdr_file *f); /* what lies behind all of that */
void fdri_reader_bundle_free(struct fdr_file *f);

/* ---- cursor.c ---- */
#define FDRI_READER_CHUNK 64u
struct fdri_reader_cursor {
    const struct fdr_record *at, *end; /* the newest decoded ones; at == end: all seen */
    struct fdr_file *file;
    struct fdri_reader_location *location;
    struct fdri_reader_part *part;
    uint64_t min_leave, max_enter;
    uint64_t gap_from, gap_to; /* the newest stretch of ticks where something is missing; empty when from > to */
    uint64_t newest;           /* leave of the newest record seen */
    uint32_t next_bin;
    bool decoding, gapped, slowly;
    uint32_t chunk;
    /* A bin nobody has decoded yet is decoded as a whole, once, where memory is no question; else it is decoded to its
     * end first and then again, a chunk at a time. */
    bool may_keep_whole;
    struct fdr_record *whole;
    uint32_t whole_room;
    struct fdr_decoder decoder;
    struct fdr_record record[FDRI_READER_CHUNK];
};
static_assert(sizeof(struct fdri_reader_cursor) <= 5120, "there is one for each partition of each location");
/* chunk 1: after each fill decoder.fields are those of *at. */
void fdri_reader_cursor_init(struct fdri_reader_cursor *c, struct fdr_file *f, struct fdri_reader_location *l,
                             struct fdri_reader_part *p, uint64_t min_leave, uint32_t chunk);
bool fdri_reader_cursor_fill(struct fdri_reader_cursor *c);
void fdri_reader_cursor_done(struct fdri_reader_cursor *c);

/* ---- points.c ---- */
#define FDRI_READER_PENDING 16u
struct fdri_reader_point {
    struct fdr_record record;
    struct fdr_standing place;
    uint16_t depth;
    uint8_t class_;
    uint8_t field_count;
    uint64_t field[FDR_FIELDS_MAX];
    const struct fdr_sample_path *path;
};
struct fdri_reader_paths {
    uint64_t number; /* of the newest one pulled */
    uint32_t next;   /* buffer of the next one */
    struct fdr_sample_path path[3];
    uint32_t region[3][FDR_SAMPLE_STEPS_MAX];
    uint64_t frame[3][FDR_SAMPLE_STEPS_MAX];
};
struct fdri_reader_points {
    struct fdri_reader_cursor **heap;
    size_t heap_count;
    struct fdri_reader_cursor *memory;
    size_t memory_count;
    struct fdri_reader_point pending[FDRI_READER_PENDING]; /* of one tick, in order */
    uint32_t first, count;
    uint64_t tick;                   /* of the pending ones; UINT64_MAX: none */
    struct fdri_reader_paths *paths; /* a location of samples: one is pending at a time, and one was shown */
    bool readings;                   /* user events of any depth are in no call */
};
const struct fdr_sample_path *fdri_reader_path(struct fdri_reader_paths *p, const struct fdr_sample_decoder *d);
bool fdri_reader_points_open(struct fdri_reader_points *q, struct fdr_file *f, struct fdri_reader_location *l,
                             const struct fdr_select *s, uint64_t min_tick);
void fdri_reader_points_next(struct fdri_reader_points *q); /* drops the first pending one */
void fdri_reader_points_close(struct fdri_reader_points *q);

/* ---- unplaced.c ---- */
/* Once for each location, where it can have such calls; under f->lock. */
void fdri_reader_find_unplaced(struct fdr_file *f, struct fdri_reader_location *l);
void fdri_reader_unplaced_add(struct fdri_reader_location *l, uint32_t depth, uint64_t leave);

/* ---- stream.c, stream_open.c, careful.c ---- */
#define FDRI_READER_OPEN (UINT64_MAX - 1) /* leave of an open call */
struct fdri_reader_depth {                /* the calls of one depth */
    const struct fdr_record *head;
    struct fdri_reader_cursor *cursor[FDR_BANDS * 2]; /* of each band also what was set aside */
    uint32_t cursors, from;                           /* how many; which one head is of */
    /* where calls of length 0 lie: of band 0, of the longest where bands are joined, set aside or not */
    const struct fdri_reader_cursor *zeros[4];
    uint32_t zeros_count;
    uint64_t zero_tick; /* the newest zero-length calls seen */
    uint32_t zero_next;
    uint64_t unnumbered; /* calls of length 0 may be missing anywhere before: longer ones have no ordinal */
    bool looked, gaps;   /* were all of them decoded once, and is one damaged, or was when the file was recovered? */
    bool has_frame;
    struct fdr_record frame; /* the open call of this depth comes last */
};
struct fdri_reader_call { /* on the reader's own stack */
    uint64_t enter, leave, leave_ns, duration_ns;
    uint32_t id, ordinal;
    uint64_t place; /* for points: its ordinal + 1, or, of a longer call that none of them names, more than any */
    /* filtered, not_over: made up for one that a filter kept out, that was open when a snapshot's stack was copied */
    bool shown, open, made_up, filtered, not_over, ordinal_known;
    bool placed;   /* it was made up and has a place, or one right around it */
    uint32_t real; /* the depth of this one, or of the next further out that was not made up */
};
struct fdri_reader_stream {
    struct fdr_file *file;
    struct fdri_reader_location *location;
    struct fdri_reader_clock clock;
    const struct fdr_select *select;
    bool plain;       /* nothing to filter */
    uint8_t band_min; /* shorter ones are not touched */
    bool careful, done;
    uint32_t base, depth, depth_max; /* depth: index of the top call; base: of the root */
    uint64_t now, now_ns;
    uint64_t stop; /* calls that enter later are not wanted */
    struct fdri_reader_depth *level;
    struct fdri_reader_call *stack;
    struct fdri_reader_cursor *memory, **used;
    size_t used_count;
    bool may_keep_whole;
    uint64_t *tree; /* careful: least key over depths */
    uint32_t tree_size;
    struct fdri_reader_points points;
    struct fdri_reader_location *unplaced; /* gets calls that fit nowhere; NULL: nobody asks */
    bool point_next;                       /* the next point comes before anything else */
};
enum fdri_reader_step { FDRI_READER_CALL, FDRI_READER_MAKE_UP, FDRI_READER_LEAVE, FDRI_READER_END };

struct fdri_reader_stream *fdri_reader_stream_open(struct fdr_file *f, struct fdri_reader_location *l,
                                                   const struct fdr_select *s);
/* Fills everything but unused fields; false at the end. */
bool fdri_reader_stream_next(struct fdri_reader_stream *s, struct fdr_read_event *e);
void fdri_reader_stream_head(struct fdri_reader_depth *v); /* what comes next at a depth whose cursors are there */
void fdri_reader_stream_close(struct fdri_reader_stream *s);
/* The next record of depth d becomes its head. */
void fdri_reader_stream_advance(struct fdri_reader_stream *s, uint32_t d);
/* What comes next where anything may be missing; *d: the depth it happens at. */
enum fdri_reader_step fdri_reader_careful_step(struct fdri_reader_stream *s, uint32_t *d);
bool fdri_reader_careful_start(struct fdri_reader_stream *s);
void fdri_reader_careful_update(struct fdri_reader_stream *s, uint32_t d);
bool fdri_reader_careful_gaps(struct fdri_reader_stream *s, uint32_t d); /* fdri_reader_gaps, once */

/* Does the open call count as kept, and is it shown? */
static inline bool fdri_reader_frame_kept(const struct fdri_reader_frame *frame)
{
    return !(frame->flags & (FDR_LEVEL_UNTIMED | FDR_LEVEL_SETTLED));
}
/* Is this location (class) selected? */
/* Readings: what is said to be their depth tells their level (FORMAT.md, 12.3). */
static inline bool fdri_reader_is_reading(const struct fdri_reader_location *l, uint32_t class_, uint32_t depth)
{
    return class_ == FDR_CLASS_USER && depth && l->raw.flags & FDR_LOCATION_READINGS;
}
static inline bool fdri_reader_class_selected(const struct fdr_select *s, uint32_t class_)
{
    return !s->classes || s->classes >> class_ & 1;
}
#endif
