/* SPDX-License-Identifier: MIT */
/* The baseline of whole programs (whole.sh): hooks that read the clock and store the value, nothing else. With
 * HOOKS_EMPTY the hooks return at once. */
#include <stdint.h>

#include "measure.h"

#define HOOK __attribute__((no_instrument_function, visibility("default")))
HOOK void __cyg_profile_func_enter(void *function, void *call_site);
HOOK void __cyg_profile_func_exit(void *function, void *call_site);

#ifdef HOOKS_EMPTY
static inline __attribute__((always_inline, no_instrument_function)) void keep(void) {}
#else
enum { SLOTS = 32768 / 8 }; /* fits the first-level cache */
static __thread struct {
    uint64_t next, slot[SLOTS];
} ring __attribute__((tls_model("initial-exec")));

static inline __attribute__((always_inline, no_instrument_function)) void keep(void)
{
    ring.slot[ring.next++ % SLOTS] = bench_ticks();
}
#endif

void __cyg_profile_func_enter(void *function, void *call_site)
{
    (void)function;
    (void)call_site;
    keep();
}

void __cyg_profile_func_exit(void *function, void *call_site)
{
    (void)function;
    (void)call_site;
    keep();
}
