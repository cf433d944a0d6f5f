/* SPDX-License-Identifier: MIT */
/* Builds recordings in memory, record by record, without the recorder. It states the rules of the format a second time.
 * So the tests check the reader against the specification, not against the recorder's habits.
 * A test includes arena_builder.c. Times are full ticks and must not step back within a location. */
#ifndef FDRI_TESTS_ARENA_BUILDER_H
#define FDRI_TESTS_ARENA_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"

struct builder;

struct builder_options {
    uint64_t arena_bytes; /* 0: 16 MiB */
    uint32_t bin_bytes;   /* 0: 4096 */
    uint32_t shift;
    uint64_t edge[3]; /* durations in stored ticks; 0: 64, 1024, 16384 */
    bool tsc;         /* true: ticks of a clock of `ticks_per_second`; false: ns */
    uint64_t ticks_per_second;
};

struct builder *builder_new(const struct builder_options *options);
void builder_free(struct builder *b);

uint32_t builder_define(struct builder *b, enum fdri_arena_def_kind kind, const char *name, const char *file,
                        uint32_t line);
uint32_t builder_module(struct builder *b, const char *path, const char *build_id, uint64_t address, uint64_t bytes);
uint32_t builder_function(struct builder *b, uint64_t address, uint32_t module); /* a region known by address */
uint32_t builder_location(struct builder *b, const char *name);

void builder_enter(struct builder *b, uint32_t location, uint32_t region, uint64_t tick);
/* Leaves the innermost open call. If `store` is false, the call counts as lost. */
void builder_leave(struct builder *b, uint32_t location, uint64_t tick);
void builder_leave_lost(struct builder *b, uint32_t location, uint64_t tick);
void builder_point(struct builder *b, uint32_t location, uint32_t class_, uint32_t id, uint64_t tick,
                   const uint64_t *fields, uint32_t count);
uint32_t builder_depth(const struct builder *b, uint32_t location);

/* Gives back the oldest bin of a partition. Returns false if only the newest bin is left. */
bool builder_give_back(struct builder *b, uint32_t location, uint32_t class_, uint32_t depth, uint32_t band);
/* Gives back `count` bins as the recorder's duration step does: the shortest band first, within it the deepest. Stops
 * early when no bin is left. Returns the number of bins given back. */
uint32_t builder_reduce(struct builder *b, uint32_t location, uint32_t count);

/* The present image. The builder owns the memory. */
uint8_t *builder_image(struct builder *b, size_t *bytes);
struct fdri_arena_part *builder_part(struct builder *b, uint32_t location, uint32_t class_, uint32_t depth,
                                     uint32_t band);
struct fdri_arena_location *builder_raw(struct builder *b, uint32_t location);

#endif
