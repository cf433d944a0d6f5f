/* SPDX-License-Identifier: MIT */
/* Which regions are muted, one byte for each. The governor (recorder/governor/) decides. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "format/codec/record_codec.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"

enum { MUTED = 1, BEFORE = 2, BYTES = FDRI_CODEC_ID_MAX + 1 };

uint32_t fdri_names_mutes_version;
static const struct fdri_names_rule mute_rule = {.mode = FDRI_NAMES_RULE_MUTED, .count = FDRI_NAMES_MUTE_PERIOD};
/* Reserved address space, touched as regions are muted. Made once: a late reader may still look at it. */
static uint8_t *state;
static uint32_t on; /* atomic: the governor is on */

bool fdri_names_mutes_start(bool wanted)
{
    fdri_atomic_store_relaxed(&on, 0u);
    if (state) madvise(state, BYTES, MADV_DONTNEED); /* forgets those of an earlier recording */
    if (!wanted) return true;
    if (!state) {
        void *m = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m == MAP_FAILED) return false;
        state = m;
    }
    fdri_atomic_store_relaxed(&on, 1u);
    return true;
}

void fdri_names_mute(uint32_t region, bool muted)
{
    if (region <= FDRI_CODEC_ID_MAX)
        fdri_atomic_store_relaxed(&state[region], (uint8_t)(muted ? MUTED | BEFORE : BEFORE));
}

void fdri_names_mutes_changed(void)
{
    /* R:mutes - a thread that sees the version sees the states, too */
    fdri_atomic_add_acq_rel(&fdri_names_mutes_version, 1u);
}

static uint8_t state_of(uint32_t region)
{
    if (!fdri_atomic_load_relaxed(&on) || region > FDRI_CODEC_ID_MAX) return 0;
    return fdri_atomic_load_relaxed(&state[region]);
}

bool fdri_names_is_muted(uint32_t region) { return state_of(region) & MUTED; }
bool fdri_names_was_muted(uint32_t region) { return state_of(region) != 0; }

const struct fdri_names_rule *fdri_names_rule_now(uint32_t region)
{
    const struct fdri_names_rule *rule = fdri_names_rule_of(region);
    return rule || !fdri_names_is_muted(region) ? rule : &mute_rule;
}

bool fdri_names_rules_any(void) { return fdri_names_rules_loaded() || fdri_atomic_load_relaxed(&on); }
