/* SPDX-License-Identifier: MIT */
/* The table of strategies. Each call goes to the one that FDR_STRATEGY chose. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "format/arena/arena.h"
#include "recorder/memory/memory.h"
#include "recorder/pressure/recorder_pressure.h"
#include "recorder/recording.h"
#include "recorder/strategy/reduce.h"
#include "recorder/strategy_table.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"

static const struct fdri_strategy *const table[] = {[FDRI_ARENA_STRATEGY_WHOLE] = &fdri_strategy_whole,
                                                    [FDRI_ARENA_STRATEGY_LAST] = &fdri_strategy_last,
                                                    [FDRI_ARENA_STRATEGY_FIRST] = &fdri_strategy_first,
                                                    [FDRI_ARENA_STRATEGY_TELESCOPE] = &fdri_strategy_telescope};

const struct fdri_strategy *fdri_strategy_now(void) { return table[fdri_life_recording.settings.strategy]; }

uint32_t fdri_strategy_reduce(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t size_log2, uint32_t *got_log2)
{
    const struct fdri_strategy *s = fdri_strategy_now();
    if (!s->room) return 0; /* the caller stops storage */
    uint32_t off = fdri_ready_take(t, *got_log2 = size_log2);
    if (off) return off;
    uint64_t since = fdri_thread_tick_now();
    off = s->room(t, p, size_log2, got_log2);
    if (fdri_life_recording.settings.check) fdri_memory_check_own(t);
    fdri_atomic_bump_relaxed(&t->loc->reduction_ticks, fdri_strategy_reduction_took(t, since));
    return off;
}

void fdri_strategy_full(struct fdri_thread *t)
{
    if (fdri_strategy_now()->full) fdri_strategy_now()->full(t);
}

bool fdri_strategy_levels(struct fdri_thread *t, uint32_t levels)
{
    const struct fdri_strategy *s = fdri_strategy_now();
    return !s->levels || s->levels(t, levels);
}

void fdri_strategy_made(struct fdri_thread *t, struct fdri_arena_part *p)
{
    if (fdri_strategy_now()->made) fdri_strategy_now()->made(t, p);
}

void fdri_strategy_opened(struct fdri_thread *t, struct fdri_arena_part *p)
{
    if (fdri_strategy_now()->opened) fdri_strategy_now()->opened(t, p);
}

void fdri_strategy_sealed(struct fdri_thread *t, struct fdri_arena_part *p)
{
    if (fdri_strategy_now()->sealed) fdri_strategy_now()->sealed(t, p);
}

void fdri_strategy_given(struct fdri_thread *t, struct fdri_arena_part *p, bool newest, uint64_t end,
                         uint32_t size_log2)
{
    if (fdri_strategy_now()->given) fdri_strategy_now()->given(t, p, newest, end, size_log2);
}

void fdri_strategy_rewinds(struct fdri_thread *t, struct fdri_arena_part *p, uint32_t off)
{
    if (fdri_strategy_now()->rewinds) fdri_strategy_now()->rewinds(t, p, off);
}

void fdri_strategy_rewound(struct fdri_thread *t)
{
    if (fdri_strategy_now()->rewound) fdri_strategy_now()->rewound(t);
}

void fdri_strategy_pinned(struct fdri_thread *t)
{
    if (fdri_strategy_now()->pinned) fdri_strategy_now()->pinned(t);
}

void fdri_strategy_step(struct fdri_thread *t)
{
    if (fdri_strategy_now()->step) fdri_strategy_now()->step(t);
}

void fdri_strategy_many_rows(struct fdri_thread *t)
{
    if (fdri_strategy_now()->many_rows) fdri_strategy_now()->many_rows(t);
}

bool fdri_strategy_row_fits(struct fdri_thread *t, uint32_t key)
{
    const struct fdri_strategy *s = fdri_strategy_now();
    return !s->row_fits || s->row_fits(t, key);
}

void fdri_strategy_row_made(struct fdri_thread *t, uint32_t row_off)
{
    if (fdri_strategy_now()->row_made) fdri_strategy_now()->row_made(t, row_off);
}

void fdri_strategy_mend(struct fdri_thread *t)
{
    if (fdri_strategy_now()->mend) fdri_strategy_now()->mend(t);
}

void fdri_strategy_mend_totals(struct fdri_thread *t)
{
    if (fdri_strategy_now()->mend_totals) fdri_strategy_now()->mend_totals(t);
}
