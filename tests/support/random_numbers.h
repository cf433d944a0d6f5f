/* SPDX-License-Identifier: MIT */
/* Pseudo-random numbers (xorshift), the same in every run. */
#ifndef FDRI_TESTS_RND_H
#define FDRI_TESTS_RND_H

#include <stdint.h>

/* Returns a number less than `below`, which must not be 0. *seed must not be 0, and should have bits set all over. */
static inline uint32_t rnd(uint64_t *seed, uint32_t below)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 33) % below;
}
#endif
