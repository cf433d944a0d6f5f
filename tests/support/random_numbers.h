/* SPDX-License-Identifier: MIT */
/* Numbers that look random and are the same in every run: xorshift. */
#ifndef FDRI_TESTS_RND_H
#define FDRI_TESTS_RND_H

#include <stdint.h>

/* One below `below`, which is not 0; *seed is not 0, and should have bits all over. */
static inline uint32_t rnd(uint64_t *seed, uint32_t below)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 33) % below;
}
#endif
