/* SPDX-License-Identifier: MIT */
/* Opening a recording: from bytes that nobody vouches for to locations, partitions, bins and definitions.
 *
 *   open_file.c       path or memory to a file             read_superblock.c  its fields, or a way around
 *   verify_checks.c   spare, checks of meta blocks         meta_scan.c        where the meta blocks are
 *   locations.c       accounts, open calls, tail           definitions.c      names
 *   partitions.c      along the chain, or from a scan      bin_list.c         the bins of a partition in order
 *   bin_scan.c        all bin headers                      read_bins.c        one bin: header and payload
 *   undo_fold.c       accounts half moved by a kill        tick_to_ns.c       stored ticks to ns
 *   damage.c          findings, as text                    reader_memory.c    memory, and whether it was short
 *   whole_file.c      writes a file under its final name once it is whole    process_end.c  how the process ended
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
#include "format/codec/record_codec.h"
#include "reader/file/file_model.h"
#include "reader/file/location_model.h"
#include "reader/file/tick_to_ns.h"

/* `message` has room for at least one byte. */
enum fdr_verdict fdri_file_open_fd(int fd, bool headers_only, struct fdr_file **out, char *message,
                                   size_t message_bytes);

/* As those of the C library, and remembered where there is none. A count or size of 0 is taken as 1. */
void *fdri_file_malloc(size_t bytes);
void *fdri_file_calloc(size_t count, size_t bytes);
void *fdri_file_realloc(void *old, size_t bytes);
void *fdri_file_aligned(size_t align, size_t bytes);
char *fdri_file_strdup(const char *text);
#define FDRI_FILE_NO_MEMORY "out of memory: not all of it could be read"
void fdri_file_memory_begin(struct fdr_file *f);
/* Was memory refused since? Then what is known of the file may lack anything. */
bool fdri_file_memory_short(const struct fdr_file *f);

/* Everything but the bytes themselves; `message` as in fdr_file_open. */
bool fdri_file_superblock(struct fdr_file *f, char *message, size_t message_bytes);
void *fdri_file_alloc(struct fdr_file *f, size_t bytes); /* zeroed, freed with the file */

void fdri_file_spare(struct fdr_file *f);  /* mends f->sb */
void fdri_file_checks(struct fdr_file *f); /* says which meta blocks are damaged */
/* Is any of these bytes in a damaged stretch? */
bool fdri_file_is_suspect(const struct fdr_file *f, uint64_t off, uint64_t bytes);

__attribute__((format(printf, 2, 3))) void fdri_file_damage(struct fdr_file *f, const char *format, ...);

void fdri_file_undo_fold(struct fdr_file *f); /* a change that the recorder was killed in the middle of */

/* The head of a meta block of this kind (0: any) and location (UINT32_MAX: any) at off, `bytes` of it present. */
const struct fdri_arena_meta_head *fdri_file_meta_at(const struct fdr_file *f, uint64_t off, uint32_t kind,
                                                     uint32_t location, uint64_t bytes);
/* All blocks of this kind and location (UINT32_MAX: any) that a scan finds, in the order they were handed out. */
const struct fdri_file_meta *fdri_file_meta_scan(struct fdr_file *f, uint32_t kind, uint32_t location, size_t *count);
/* No meta block that a scan finds lies before. */
uint64_t fdri_file_meta_lowest(struct fdr_file *f);

/* Copies the header at off; false when there is no valid one. */
bool fdri_file_bin_header(const struct fdr_file *f, uint64_t off, struct fdri_arena_bin *h);
/* The bin at `off` belongs to a partition of this class and depth, but its header is damaged: its records, and how long
 * after its base_tick the newest of them left; false: its payload says nothing either. */
bool fdri_file_bin_headless(const struct fdr_file *f, uint64_t off, uint32_t class_, uint32_t depth, uint64_t *records,
                            uint64_t *span);
/* How many records of a bin that is good come before the first that entered behind `cut`; *newest: their last leave. */
uint64_t fdri_file_bin_up_to(const struct fdr_file *f, const struct fdri_file_bin *b, uint64_t cut, uint64_t *newest);
/* Prepares `d` for a bin; false: its commit word promises more than there is. */
bool fdri_file_bin_begin(const struct fdr_file *f, const struct fdri_file_bin *b, struct fdri_codec_decoder *d);
/* Decodes it: true when all of it is right. *gone: how many leaves are below `mark`; *newest: the last leave. */
bool fdri_file_bin_read(const struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_bin *b,
                        uint64_t mark, uint64_t *gone, uint64_t *newest);
/* The same, once. */
bool fdri_file_bin_good(const struct fdr_file *f, const struct fdri_file_location *l, struct fdri_file_bin *b);
/* The newest leave that was given back, as far as the oldest bin held tells. */
uint64_t fdri_file_floor_of_bin(const struct fdri_file_bin *oldest, uint64_t given_back);
/* A bin is known to be missing, or to be damaged. */
bool fdri_file_bins_missing(const struct fdri_file_part *p);
void fdri_file_scan(struct fdr_file *f);
uint32_t fdri_file_scan_bin_bytes(const struct fdr_file *f);
/* Marks a header as listed. false: it was already. */
bool fdri_file_mark_listed(struct fdr_file *f, uint64_t off);
void fdri_file_parts(struct fdr_file *f, struct fdri_file_location *l);
/* All headers by location, class, depth, band, seq; NULL without memory. */
struct fdri_file_found **fdri_file_by_identity(struct fdr_file *f);
/* The bins of a partition: those its block lists (raw), or whatever the scan found (raw NULL). */
void fdri_file_list_bins(struct fdr_file *f, struct fdri_file_location *l, struct fdri_file_part *p,
                         const struct fdri_arena_part *raw);
/* From when on is there what calls of length 0 of that depth lie in, whatever is left of it? (Else its loss tells
 * nothing.) Stored tick; 0: always, UINT64_MAX: never; behind what was set aside, where only that may be gone. */
uint64_t fdri_file_zeros_from(const struct fdri_file_location *l, uint32_t depth);
/* Finds a class x depth x band of a location. */
const struct fdri_file_part *fdri_file_part(const struct fdri_file_location *l, uint32_t class_, uint32_t depth,
                                            uint32_t band, bool aside);

void fdri_file_locations(struct fdr_file *f);
struct fdri_file_location *fdri_file_location(struct fdr_file *f, uint32_t id);
/* Level d, or NULL. Level 0: events outside any region. */
const struct fdri_arena_level *fdri_file_level(const struct fdr_file *f, const struct fdri_file_location *l,
                                               uint32_t depth);
const struct fdri_arena_level_points *fdri_file_points(const struct fdr_file *f, const struct fdri_file_location *l,
                                                       uint32_t depth);
void fdri_file_tail(struct fdr_file *f);

void fdri_file_definitions(struct fdr_file *f);
/* The one with this id, or NULL. */
const struct fdri_file_definition *fdri_file_definition(const struct fdr_file *f, uint32_t kind, uint32_t id);
/* Bytes of the good definition record that starts here and is at most `room` bytes; 0: there is none. *vain, 0 at
 * first, is what was checked for nothing so far. */
uint32_t fdri_file_def_bytes(const uint8_t *bytes, uint32_t room, uint64_t *vain);

#endif
