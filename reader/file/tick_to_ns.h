/* SPDX-License-Identifier: MIT */
/* Converts stored ticks to ns by one straight line for each location. */
#ifndef FDRI_READER_FILE_TICK_TO_NS_H
#define FDRI_READER_FILE_TICK_TO_NS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"

/* For times: ns = ns0 + ((tick - tick0) * mult >> shift_right). For durations: ns = ticks * num / den, exactly. */
struct fdri_file_clock {
    uint64_t tick0, ns0, mult;
    uint64_t num, den;
    uint64_t stored_max; /* greater stored ticks are damage; up to this one nothing overflows */
    uint8_t shift, shift_right;
};
static inline uint64_t fdri_file_ns(const struct fdri_file_clock *c, uint64_t stored)
{
    uint64_t tick = stored << c->shift;
    if (__builtin_expect(tick >= c->tick0, 1))
        return c->ns0 + (uint64_t)((unsigned __int128)(tick - c->tick0) * c->mult >> c->shift_right);
    uint64_t back = (uint64_t)((unsigned __int128)(c->tick0 - tick) * c->mult >> c->shift_right) + 1;
    return back < c->ns0 ? c->ns0 - back : 0;
}
/* The same for any full tick; saturates. */
uint64_t fdri_file_full_ns(const struct fdri_file_clock *c, uint64_t tick);
/* Converts a duration in full ticks to ns, rounded down. */
static inline uint64_t fdri_file_duration_ns(const struct fdri_file_clock *c, uint64_t ticks)
{
    unsigned __int128 ns = (unsigned __int128)ticks * c->num / c->den;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}
/* A stored tick that is not after `ns`. */
uint64_t fdri_file_stored_before(const struct fdri_file_clock *c, uint64_t ns);
/* Sets a clock whose ticks are ns. A tick is a stored tick << shift. */
void fdri_file_clock_ns(struct fdri_file_clock *c, uint32_t shift);
/* Returns false if the superblock's fields are invalid; then the reader shows ticks as ns. */
bool fdri_file_clock_init(struct fdri_file_clock *c, const struct fdri_arena_superblock *sb);

#endif
