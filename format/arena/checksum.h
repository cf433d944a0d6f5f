/* SPDX-License-Identifier: MIT */
/* The 32-bit check over bytes that all other parts of the arena use. */
#ifndef FDRI_FORMAT_ARENA_CHECKSUM_H
#define FDRI_FORMAT_ARENA_CHECKSUM_H

#include <stdint.h>

/* Multiplies and rotates over single bytes; not cryptographic. fdri_arena_check32 does it at once; the other three in
 * pieces, and begin needs the total number of bytes. */
static inline uint64_t fdri_arena_check32_begin(uint32_t count) { return 0x9E3779B97F4A7C15u ^ count; }
static inline uint64_t fdri_arena_check32_add(uint64_t h, const void *bytes, uint32_t count)
{
    const uint8_t *p = (const uint8_t *)bytes;
    for (uint32_t i = 0; i < count; i++) h = (h ^ p[i]) * 0x100000001B3u + (h >> 41);
    return h;
}
static inline uint32_t fdri_arena_check32_end(uint64_t h) { return (uint32_t)(h ^ h >> 32); }
static inline uint32_t fdri_arena_check32(const void *bytes, uint32_t count)
{
    return fdri_arena_check32_end(fdri_arena_check32_add(fdri_arena_check32_begin(count), bytes, count));
}

#endif
