/* SPDX-License-Identifier: MIT */
#ifndef FDR_BASE_BITS_H
#define FDR_BASE_BITS_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool fdr_is_pow2(uint64_t v) { return v && !(v & (v - 1)); }
static inline uint32_t fdr_log2_floor(uint64_t v) { return v ? 63u - (uint32_t)__builtin_clzll(v) : 0u; }
static inline uint32_t fdr_log2_ceil(uint64_t v) { return v <= 1 ? 0u : 64u - (uint32_t)__builtin_clzll(v - 1); }
static inline uint64_t fdr_align_up(uint64_t v, uint64_t to) { return (v + to - 1) & ~(to - 1); }
static inline uint64_t fdr_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t fdr_max(uint64_t a, uint64_t b) { return a > b ? a : b; }
/* A counter of 32 bits that stands still at its greatest value. */
static inline uint32_t fdr_count_up(uint32_t counter, uint64_t by)
{
    return (uint32_t)fdr_min(counter + by, UINT32_MAX);
}

/* A double and its bits. */
static inline uint64_t fdr_bits_of(double v)
{
    uint64_t u;
    memcpy(&u, &v, 8);
    return u;
}
static inline double fdr_double_of(uint64_t u)
{
    double v;
    memcpy(&v, &u, 8);
    return v;
}

#define FDR_LIKELY(x)   __builtin_expect(!!(x), 1)
#define FDR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FDR_NOINLINE    __attribute__((noinline))
#define FDR_COLD        __attribute__((noinline, cold))
#endif
