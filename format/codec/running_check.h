/* SPDX-License-Identifier: MIT */
/* The running check: a hash over the records of a bin. Its upper 24 bits stand in the commit word. */
#ifndef FDRI_FORMAT_CODEC_RUNNING_CHECK_H
#define FDRI_FORMAT_CODEC_RUNNING_CHECK_H

#include <stdint.h>

#include "format/codec/record_codec.h"

#define FDRI_CODEC_HASH_SEED 0x243F6A8885A308D3u
#define FDRI_CODEC_HASH_MUL  0x9E3779B97F4A7C15u

/* One step of the running check. */
static inline uint64_t fdri_codec_hash_step(uint64_t hash, uint64_t v) { return (hash ^ v) * FDRI_CODEC_HASH_MUL; }
static inline uint64_t fdri_codec_hashed(uint32_t id, uint64_t gap, uint64_t duration)
{
    return (gap << 32 | gap >> 32) ^ duration ^ (uint64_t)id << 44;
}
static inline uint64_t fdri_codec_hash_record(uint64_t hash, uint32_t id, uint64_t gap, uint64_t duration)
{
    return fdri_codec_hash_step(hash, fdri_codec_hashed(id, gap, duration));
}
static inline uint64_t fdri_codec_hash_parent(uint64_t hash, const struct fdri_codec_tie *tie)
{
    return fdri_codec_hash_step(hash, tie->parent_in_tick | (uint64_t)tie->parent << 1);
}
static inline uint64_t fdri_codec_hash_standing(uint64_t hash, const struct fdri_codec_standing *place)
{
    for (uint32_t i = 0; i < place->links; i++) hash = fdri_codec_hash_step(hash, 1 | (uint64_t)place->link[i] << 1);
    if (place->cut) hash = fdri_codec_hash_step(hash, 1 | (uint64_t)FDRI_CODEC_LINKS_CUT << 1);
    return fdri_codec_hash_step(hash, place->not_first_in_tick | (uint64_t)place->sibling << 1 |
                                          (uint64_t)place->point << 33);
}

static inline uint64_t fdri_codec_hash_ordinal(uint64_t hash, uint32_t ordinal)
{
    return fdri_codec_hash_step(hash, (uint64_t)ordinal << 32 | 1);
}

static inline uint32_t fdri_codec_check24(uint64_t hash) { return (uint32_t)(hash >> 40); }

#endif
