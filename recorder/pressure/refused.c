/* SPDX-License-Identifier: MIT */
/* Open calls for which memory had no level, deeper than the levels that the location has. Their leaves still come.
 * After a longjmp or an exception, the leave of an outer call must not be taken for one of them. Memory is short when
 * this happens, so this file allocates none. It uses little thread-local storage, as a dlopened library may find
 * little. The outermost 24 calls are known by their regions, in order. Of the calls beyond, only their number is
 * known, for each sixteenth of all regions. */
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/thread/thread_state.h"

enum { NAMED = 24, KINDS = 16 };

static __thread uint16_t named[NAMED];  /* regions, without their higher bits */
static __thread uint16_t beyond[KINDS]; /* UINT16_MAX: so many or more; it stays at that */

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
