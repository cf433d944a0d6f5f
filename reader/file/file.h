/* SPDX-License-Identifier: MIT */
/* Opening a recording: from untrusted bytes to locations, partitions, bins and definitions.
 *
 *   open_file.c       opens a path or memory                read_superblock.c  reads its fields, repairs damaged ones
 *   verify_checks.c   spare superblock, meta block checks   meta_scan.c        finds meta blocks without their links
 *   locations.c       accounts, open calls, tail            definitions.c      names
 *   typed_definitions.c metrics, events, communicators
 *   partitions.c      from their chain, or from a scan      bin_list.c         orders the bins of a partition
 *   bin_scan.c        finds all bin headers                 read_bins.c        reads one bin: header and payload
 *   undo_fold.c       undoes a fold cut short by a kill     tick_to_ns.c       converts stored ticks to ns
 *   damage.c          collects findings as text             reader_memory.c    allocates, remembers failures
 *   sections.c        the directory of sections             older_formats.c    files of format 1
 *   whole_file.c      writes a file, renames it when whole  process_end.c      how the process ended
 *
 * Neighbours: events/, account/, symbol/, bundle/ and recover/ read through this door; live/ makes files of
 * processes. */
#ifndef FDRI_READER_FILE_FILE_H
#define FDRI_READER_FILE_FILE_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "format/codec/decode.h"
#include "reader/file/file_model.h"
#include "reader/file/location_model.h"
#include "reader/file/tick_to_ns.h"

/* Opens a recording from a file descriptor. `message` must have room for at least one byte. */
enum fdr_verdict fdri_file_open_fd(int fd, bool headers_only, struct fdr_file **out, char *message,
                                   size_t message_bytes);

/* Like the C library's functions, but they remember a failure. They take a count or size of 0 as 1. */
void *fdri_file_malloc(size_t bytes);
void *fdri_file_calloc(size_t count, size_t bytes);
void *fdri_file_realloc(void *old, size_t bytes);
void *fdri_file_aligned(size_t align, size_t bytes);
char *fdri_file_strdup(const char *text);
#define FDRI_FILE_NO_MEMORY "out of memory: not all of it could be read"
/* Starts to watch allocations for f. */
void fdri_file_memory_begin(struct fdr_file *f);
/* Did an allocation fail since fdri_file_memory_begin? If so, anything read of the file may be incomplete. */
bool fdri_file_memory_short(const struct fdr_file *f);

/* Reads and repairs the superblock, and runs the checks of meta blocks. Returns false if the file is no readable
 * recording; `message` says why. */
bool fdri_file_superblock(struct fdr_file *f, char *message, size_t message_bytes);
void *fdri_file_alloc(struct fdr_file *f, size_t bytes); /* zeroed; freed with the file */

void fdri_file_spare(struct fdr_file *f);  /* repairs f->sb from its spare */
void fdri_file_checks(struct fdr_file *f); /* finds the damaged meta blocks */
/* Does a damaged stretch of meta blocks overlap these bytes? */
bool fdri_file_is_suspect(const struct fdr_file *f, uint64_t off, uint64_t bytes);

/* Adds a line to the list of damage; the file is then no longer sound. */
__attribute__((format(printf, 2, 3))) void fdri_file_damage(struct fdr_file *f, const char *format, ...);

void fdri_file_undo_fold(struct fdr_file *f); /* rolls back a fold into [ended] that a kill interrupted */

/* The head of the meta block at `off`. NULL if its kind (0: any) or location (UINT32_MAX: any) differs, or `bytes` of
 * it do not lie in the file. */
const struct fdri_arena_meta_head *fdri_file_meta_at(const struct fdr_file *f, uint64_t off, uint32_t kind,
                                                     uint32_t location, uint64_t bytes);
/* All blocks of this kind and location (UINT32_MAX: any) that a scan finds, in the order of their allocation. */
const struct fdri_file_meta *fdri_file_meta_scan(struct fdr_file *f, uint32_t kind, uint32_t location, size_t *count);
/* The lowest offset of a meta block that a scan finds. */
uint64_t fdri_file_meta_lowest(struct fdr_file *f);

/* Lists the sections in the directory, and takes damaged entries out of it. */
void fdri_file_sections(struct fdr_file *f);
/* The off of a section of this name in a version that this reader knows; 0: there is none. */
uint32_t fdri_file_section(const struct fdr_file *f, const char *name);
/* Brings a superblock of format 1 into the present format. */
void fdri_file_from_format1(struct fdr_file *f);

/* Copies the header at `off`. Returns false if it is not valid. */
bool fdri_file_bin_header(const struct fdr_file *f, uint64_t off, struct fdri_arena_bin *h);
/* For a bin whose header is damaged, in a partition of known class and depth. Sets the number of its records, and
 * the ticks from its base_tick to its newest leave. Returns false if the payload does not decode either. */
bool fdri_file_bin_headless(const struct fdr_file *f, uint64_t off, uint32_t class_, uint32_t depth, uint64_t *records,
                            uint64_t *span);
/* Counts the records of a good bin before the first one that entered after `cut`. *newest: the last leave among
 * them. */
uint64_t fdri_file_bin_up_to(const struct fdr_file *f, const struct fdri_file_bin *b, uint64_t cut, uint64_t *newest);
/* Prepares `d` for a bin. Returns false if the commit word covers more bytes than the file has of it. */
bool fdri_file_bin_begin(const struct fdr_file *f, const struct fdri_file_bin *b, struct fdri_codec_decoder *d);
/* Decodes a whole bin and notes its state. Returns true if all of it is valid. *gone: number of leaves below `mark`;
 * *newest: the last leave. */
bool fdri_file_bin_read(const struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_bin *b,
                        uint64_t mark, uint64_t *gone, uint64_t *newest);
/* As fdri_file_bin_read, but decodes a bin only once. */
bool fdri_file_bin_good(const struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_bin *b);
/* The floor, by the oldest listed bin alone: its base_tick, or 0 if nothing was given back. */
uint64_t fdri_file_floor_of_bin(const struct fdri_file_bin *oldest, uint64_t given_back);
/* Is a bin of this list known to be missing or damaged? */
bool fdri_file_bins_missing(const struct fdri_file_part *p);
/* Finds all valid bin headers. */
void fdri_file_scan(struct fdr_file *f);
/* The size of the largest bin in the file, for a superblock that lost it. */
uint32_t fdri_file_scan_bin_bytes(const struct fdr_file *f);
/* Marks a bin header as listed. Returns false if it was listed already. */
bool fdri_file_mark_listed(struct fdr_file *f, uint64_t off);
/* Finds the partitions of a location, with their bins. */
void fdri_file_parts(struct fdr_file *f, struct fdri_file_location *l);
/* All bin headers, sorted by location, class, depth, band and seq. Returns NULL without memory. */
struct fdri_file_found **fdri_file_by_identity(struct fdr_file *f);
/* Finds the bins of a partition: from the list of its block `raw`, or from the scan if `raw` is NULL. */
void fdri_file_list_bins(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p,
                         const struct fdri_arena_part *raw);
/* From which stored tick on is the partition known that holds zero-length calls of this depth? Before that tick, its
 * loss would not be noticed. 0: always known; UINT64_MAX: never. If only the pinned partition can be lost: the tick
 * after the pinning. */
uint64_t fdri_file_zeros_from(const struct fdri_file_location *l, uint32_t depth);
/* The partition of this class, depth and band, pinned if `pinned`. Returns NULL if there is none. */
const struct fdri_file_part *fdri_file_part(const struct fdri_file_location *l, uint32_t class_, uint32_t depth,
                                            uint32_t band, bool pinned);

/* Finds all locations, with their partitions, open calls and tail entries. The bin headers must be known. */
void fdri_file_locations(struct fdr_file *f);
/* The location with this id, or NULL. */
struct fdri_file_location *fdri_file_location(struct fdr_file *f, uint32_t id);
/* Level `depth`, or NULL. Level 0: events outside of any region. */
const struct fdri_arena_level *fdri_file_level(const struct fdr_file *f, const struct fdri_file_location *l,
                                               uint32_t depth);
/* The accounts of points at this depth, or NULL. */
const struct fdri_arena_level_points *fdri_file_points(const struct fdr_file *f, const struct fdri_file_location *l,
                                                       uint32_t depth);

/* Reads all definitions. */
void fdri_file_definitions(struct fdr_file *f);
/* The definition with this id, or NULL. */
const struct fdri_file_definition *fdri_file_definition(const struct fdr_file *f, uint32_t kind, uint32_t id);
/* The same; without one a placeholder with the name "[unknown ID]". Never NULL. */
const struct fdri_file_definition *fdri_file_definition_or_unknown(const struct fdr_file *f, uint32_t kind,
                                                                   uint32_t id);
/* A copy of the text that lives as long as the file; NULL: no memory. */
const char *fdri_file_text(struct fdr_file *f, const char *text, size_t bytes);

/* ---- typed_definitions.c ---- */
/* Fills the part of `out` that depends on the kind; its name and text are set. */
void fdri_file_type_definition(struct fdr_file *f, const struct fdri_arena_def *d, const uint8_t *payload,
                               struct fdri_file_definition *out);
void fdri_file_type_unknown(struct fdri_file_definition *out);
/* When all definitions are there: gives the fields of fdr's own events their units. */
void fdri_file_field_units(struct fdr_file *f);

/* ---- definitions.c ---- */
/* Bytes of the valid definition record at `bytes`, at most `room`; 0: there is none. *vain counts the bytes checked
 * without success; it must be 0 at first. */
uint32_t fdri_file_def_bytes(const uint8_t *bytes, uint32_t room, uint64_t *vain);

#endif
