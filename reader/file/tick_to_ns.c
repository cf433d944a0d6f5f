/* SPDX-License-Identifier: MIT */
/* Converts stored ticks to ns by one straight line, in fixed point, monotonic and exact to less than 1 ns. */
#include <stdbool.h>
#include <stdint.h>

#include "format/arena/arena.h"
#include "reader/file/file.h"

#define MOST          ((uint64_t)1 << 62) /* neither ticks nor ns of a believable recording exceed this */
#define LEAST_SPAN_NS 10000000u /* the rate from two clock readings closer than this is worse than the calibration */

/* Sets mult = num / den in fixed point with as many bits as fit, and from it the greatest believable stored tick. */
static void set_rate(struct fdri_file_clock *c, uint64_t num, uint64_t den)
{
    c->num = num;
    c->den = den;
    uint32_t bits = 63;
    while (bits && ((unsigned __int128)num << bits) / den > UINT64_MAX) bits--;
    c->shift_right = (uint8_t)bits;
    c->mult = (uint64_t)(((unsigned __int128)num << bits) / den);
    unsigned __int128 span = (unsigned __int128)(MOST - c->ns0) * den / num;
    uint64_t most = span > MOST - c->tick0 ? MOST : c->tick0 + (uint64_t)span;
    c->stored_max = most >> c->shift;
}

void fdri_file_clock_ns(struct fdri_file_clock *c, uint32_t shift)
{
    *c = (struct fdri_file_clock){.shift = (uint8_t)shift};
    set_rate(c, 1, 1);
}

/* Believable: 1 MHz to 100 GHz. */
static bool sane_rate(uint64_t num, uint64_t den) { return num && den && den / num < 100 && num / den < 1000; }

static bool rate_plausible(uint64_t num, uint64_t den, uint64_t ticks_per_second)
{
    long double a = (long double)num / (long double)den, b = 1e9L / (long double)ticks_per_second;
    return a > b * 0.99L && a < b * 1.01L;
}

bool fdri_file_clock_init(struct fdri_file_clock *c, const struct fdri_arena_superblock *sb)
{
    fdri_file_clock_ns(c, sb->shift);
    if (sb->clock_kind == FDRI_ARENA_CLOCK_NS) return true;
    const struct fdri_arena_clock_pair *a = &sb->clock_start, *b = &sb->clock_last;
    bool calibrated = sane_rate(1000000000u, sb->ticks_per_second);
    bool ordered = b->tick > a->tick && b->monotonic_ns > a->monotonic_ns && b->tick < MOST && b->monotonic_ns < MOST;
    uint64_t num = b->monotonic_ns - a->monotonic_ns, den = b->tick - a->tick;
    bool measured = ordered && num >= LEAST_SPAN_NS && sane_rate(num, den) &&
                    (!calibrated || rate_plausible(num, den, sb->ticks_per_second));
    if (a->tick >= MOST || a->monotonic_ns >= MOST || (!measured && !calibrated)) return false;
    c->tick0 = a->tick;
    c->ns0 = a->monotonic_ns;
    if (measured) set_rate(c, num, den);
    else set_rate(c, 1000000000u, sb->ticks_per_second);
    return true;
}

uint64_t fdri_file_full_ns(const struct fdri_file_clock *c, uint64_t tick)
{
    struct fdri_file_clock full = *c;
    full.shift = 0;
    uint64_t most = c->stored_max << c->shift;
    return fdri_file_ns(&full, tick < most ? tick : most);
}

uint64_t fdri_file_stored_before(const struct fdri_file_clock *c, uint64_t ns)
{
    uint64_t low = 0, high = c->stored_max; /* finds the last stored tick whose time is below ns, or 0 */
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (fdri_file_ns(c, middle) < ns) low = middle;
        else high = middle - 1;
    }
    return low;
}
