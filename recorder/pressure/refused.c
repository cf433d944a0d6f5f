/* SPDX-License-Identifier: MIT */
/* Open calls without a level, deeper than those that have one. Their leaves come. A leave that skips theirs (longjmp,
 * exceptions) must not be taken for one of them. This happens when memory is short, so this takes none, and little
 * thread-local storage, of which a dlopened library finds little. The outermost 24 are known by their regions, in their
 * order. Of the others it counts how many there are of each sixteenth of all regions. */
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/thread/thread_state.h"

enum { NAMED = 24, KINDS = 16 };

static __thread uint16_t named[NAMED];  /* regions, without their higher bits */
static __thread uint16_t beyond[KINDS]; /* UINT16_MAX: that many or more; stays so */

static uint16_t *kind_of(uint32_t region) { return &beyond[region % KINDS]; }

uint32_t fdri_refused_enter(const struct fdri_thread *t, uint32_t region)
{
    uint32_t open = t->loc->overflow;
    if (t != &fdri_record_self) return open + 1;
    if (open == NAMED) memset(beyond, 0, sizeof beyond);
    if (open < NAMED) named[open] = (uint16_t)region;
    else if (*kind_of(region) < UINT16_MAX) ++*kind_of(region);
    return open + 1;
}

uint32_t fdri_refused_leave(const struct fdri_thread *t, uint32_t region)
{
    uint32_t open = t->loc->overflow;
    if (t != &fdri_record_self) return open - 1;
    uint16_t *kind = kind_of(region);
    if (open > NAMED && *kind) {
        if (*kind < UINT16_MAX) --*kind;
        return open - 1;
    }
    for (uint32_t i = fdri_bits_min(open, NAMED); i; i--)
        if (named[i - 1] == (uint16_t)region) return i - 1;
    return open;
}
