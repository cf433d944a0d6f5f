/* SPDX-License-Identifier: MIT */
/* The encoder of calls that fit a candidate, as nearly all do: the inlined part of the hot path. */
#ifndef FDRI_FORMAT_CODEC_FORESEEN_CALL_H
#define FDRI_FORMAT_CODEC_FORESEEN_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format/arena/arena.h"
#include "format/codec/bit_length.h"
#include "format/codec/encode.h"
#include "format/codec/prediction.h"
#include "format/codec/record_codec.h"
#include "format/codec/running_check.h"

/* The encoding of a call that fits a candidate. */
struct fdri_codec_foreseen {
    uint64_t chunk;
    uint32_t bits, entry;
};

/* True if the call fits this candidate; fills *f. The record begins with `start`, of `bits` bits. */
static inline __attribute__((always_inline)) bool fdri_codec_fits(uint32_t entry, uint64_t start, uint32_t bits,
                                                                  uint64_t gap, uint64_t duration,
                                                                  struct fdri_codec_foreseen *f)
{
    uint32_t for_gap = fdri_codec_entry_gap(entry), for_duration = fdri_codec_entry_bits(entry);
    if (__builtin_expect((gap >> for_gap | (duration - 1) >> for_duration) != 0, 0)) return false;
    f->chunk = (gap | (duration - 1) << for_gap) << bits | start;
    f->bits = bits + for_gap + for_duration;
    f->entry = entry;
    return true;
}

/* True if the call fits one of the two candidates, as most do; fills *f. Always false for duration 0. `slot`: selected
 * by the partition's context; `progress`: of the partition. */
static inline __attribute__((always_inline)) bool fdri_codec_foresee(uint64_t slot, uint64_t progress, uint32_t id,
                                                                     uint64_t gap, uint64_t duration,
                                                                     struct fdri_codec_foreseen *f)
{
    const uint32_t first = (uint32_t)slot, second = (uint32_t)(slot >> 32),
                   key = FDRI_CODEC_ENTRY_EMPTY | FDRI_CODEC_ENTRY_ZERO;
    if (__builtin_expect(FDRI_ARENA_COMMIT_RECORDS(progress) % FDRI_CODEC_SPELL_EVERY == 0, 0)) return false;
    if (((first ^ id) & key) == 0) return fdri_codec_fits(first, 0, 1, gap, duration, f);
    return __builtin_expect(((second ^ id) & key) == 0, 1) && fdri_codec_fits(second, 1, 2, gap, duration, f);
}

/* Appends the call of *f. Returns the commit word. */
static inline __attribute__((always_inline)) uint64_t
fdri_codec_put_foreseen(struct fdri_arena_part *p, uint8_t *payload, uint32_t id, const struct fdri_codec_foreseen *f)
{
    uint64_t progress = p->progress, hash = p->hash = fdri_codec_hash_step(p->hash, f->chunk);
    uint8_t *at = payload + (FDRI_ARENA_COMMIT_BITS(progress) >> 3);
    uint64_t word = *at | f->chunk << (progress & 7);
    memcpy(at, &word, 8);
    p->newest = f->entry;
    p->context = fdri_codec_context(p->context, id, p->context_mask);
    p->progress = progress += f->bits + FDRI_CODEC_ONE_RECORD;
    return progress | (hash & ~fdri_codec_mask(40));
}

#endif
