/* SPDX-License-Identifier: MIT */
/* Numbers as bits: how many a number needs, and signed numbers as unsigned ones. */
#ifndef FDRI_FORMAT_CODEC_BIT_LENGTH_H
#define FDRI_FORMAT_CODEC_BIT_LENGTH_H

#include <stdint.h>

/* Number of bits of v < 2^63, without a branch for 0. */
static inline uint32_t fdri_codec_bitlen(uint64_t v) { return 63u ^ (uint32_t)__builtin_clzll(v << 1 | 1); }
/* 0 for a duration of 0, else one more than the bits of duration - 1. A length has six bits; duration <= 2^62. */
static inline uint32_t fdri_codec_duration_length(uint64_t duration)
{
    return duration ? fdri_codec_bitlen(duration - 1) + 1 : 0;
}
static inline uint64_t fdri_codec_zigzag(uint64_t v) { return v << 1 ^ (0 - (v >> 63)); }
static inline uint64_t fdri_codec_unzigzag(uint64_t v) { return v >> 1 ^ (0 - (v & 1)); }
static inline uint64_t fdri_codec_mask(uint32_t bits) { return bits >= 64 ? ~0ull : (1ull << bits) - 1; }

#endif
