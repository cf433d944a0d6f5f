/* SPDX-License-Identifier: MIT */
/* Arithmetic on bits and powers of two, and hints for the compiler. */
#ifndef FDRI_BASE_BITS_H
#define FDRI_BASE_BITS_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool fdri_bits_is_pow2(uint64_t v) { return v && !(v & (v - 1)); }
static inline uint32_t fdri_bits_log2_floor(uint64_t v) { return v ? 63u - (uint32_t)__builtin_clzll(v) : 0u; }
static inline uint32_t fdri_bits_log2_ceil(uint64_t v) { return v <= 1 ? 0u : 64u - (uint32_t)__builtin_clzll(v - 1); }
static inline uint64_t fdri_bits_align_up(uint64_t v, uint64_t to) { return (v + to - 1) & ~(to - 1); }
static inline uint64_t fdri_bits_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t fdri_bits_max(uint64_t a, uint64_t b) { return a > b ? a : b; }
/* A 32-bit counter that stays at its maximum. */
static inline uint32_t fdri_bits_add_saturating(uint32_t counter, uint64_t by)
{
    return (uint32_t)fdri_bits_min(counter + by, UINT32_MAX);
}

/* Conversions between a double and its bits. */
static inline uint64_t fdri_bits_of_double(double v)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    return u;
}
static inline double fdri_bits_to_double(uint64_t u)
{
    double v;
    memcpy(&v, &u, 8);
    return v;
}

#define FDRI_LIKELY(x)   __builtin_expect(!!(x), 1)
#define FDRI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FDRI_NOINLINE    __attribute__((noinline))
#define FDRI_COLD        __attribute__((noinline, cold))
#endif
