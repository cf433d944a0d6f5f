/* SPDX-License-Identifier: MIT */
/* Open calls that rules exclude: a list of them, so that their leaves are recognised.
 *
 * They are not on the shadow stack, but they have leaves. And a longjmp or an exception may skip the leave of an
 * excluded call; then the leave of another call must not be taken for it. So the list keeps excluded calls in the order
 * of their enters, each with the depth of the call directly around it. A call entered by id stays in the list if a
 * longjmp left it and its caller never ends. A list that cannot grow any more drops its older half. If memory holds no
 * list at all, the calls are only counted (fdri_arena_level.excluded_open).
 *
 * Two signs show that a longjmp left an excluded call. Either another call is excluded in its place. Or a leave may be
 * its own, and the newest function stored directly inside of the same call stands in its place. A stored call does not
 * look at this list when it is entered, but its level is still there. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "recorder/jumps/jumps.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread_state.h"

enum { FIRST_ROOM = 15, LAST_ROOM = 1920 }; /* the first list fits the smallest bin */

struct entry {
    uint64_t frame; /* as fdri_arena_level.frame */
    uint32_t depth, region, caller, site;
};
struct fdri_jumps_excluded {
    uint32_t count, room;
    struct entry at[];
};

static bool grow(struct fdri_thread *t)
{
    struct fdri_jumps_excluded *was = t->excluded_calls;
    uint32_t room = was ? was->room * 2 : FIRST_ROOM, head = sizeof(struct fdri_arena_meta_head);
    if (t->excluded_list_full || room > LAST_ROOM) return false;
    uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_FREE,
                                    head + (uint32_t)sizeof *was + room * (uint32_t)sizeof was->at[0]);
    if (!off) return !(t->excluded_list_full = true);
    struct fdri_jumps_excluded *s = fdri_thread_at(t, off + head);
    if (was) memcpy(s, was, sizeof *was + was->count * sizeof was->at[0]);
    s->room = room;
    fdri_atomic_signal_fence();
    t->excluded_calls = s;
    if (was) fdri_memory_meta_give(t, fdri_thread_offset_of(t, was) - head);
    return true;
}

static void forget_older_half(struct fdri_jumps_excluded *s)
{
    uint32_t half = s->count / 2;
    memmove(s->at, s->at + half, (s->count - half) * sizeof s->at[0]);
    s->count -= half;
}

/* Drops the newest call of the list. */
static void drop_newest(struct fdri_thread *t, struct fdri_jumps_excluded *s)
{
    uint32_t depth = s->at[--s->count].depth;
    if (!s->count || s->at[s->count - 1].depth != depth)
        fdri_thread_level(t, depth)->flags &= ~(uint32_t)FDRI_ARENA_LEVEL_HAS_EXCLUDED;
}

/* Did a longjmp leave excluded call e? Yes if f, entered later, stands in its place or above. As in abandoned_calls.c,
 * a part of e has e's return address. */
static bool was_left_by_longjmp(const struct entry *e, const struct fdri_record_function *f)
{
    bool again = f->frame == e->frame && (uint32_t)f->site == e->site;
    bool over = f->upper < e->frame && (uint32_t)f->caller != e->caller;
    return (f->frame < e->frame || again || over) && e->frame != FDRI_RECORD_FRAME_UNKNOWN &&
           fdri_jumps_is_own_frame(e->frame) && fdri_jumps_is_own_frame(f->frame);
}

/* The function stored last directly inside of the call at this depth, if it was entered after the newest excluded call
 * there. */
static bool newest_stored(const struct fdri_thread *t, uint32_t depth, struct fdri_record_function *f)
{
    if (depth == fdri_arena_levels_in(t->loc->level_blocks)) return false;
    const struct fdri_arena_level *v = fdri_thread_level(t, depth + 1);
    *f = (struct fdri_record_function){v->address, v->frame, v->caller, v->site, v->frame};
    if (!v->address || v->frame == FDRI_RECORD_FRAME_UNKNOWN) return false;
    f->upper -= fdri_bits_min(fdri_names_cache_frame(&fdri_record_self, f), v->frame);
    return true;
}

void fdri_jumps_excluded_add(struct fdri_thread *t, uint32_t region, const struct fdri_record_function *f)
{
    uint32_t depth = t->loc->depth;
    bool told = f && f->frame != FDRI_RECORD_FRAME_UNKNOWN;
    struct fdri_jumps_excluded *s = t->excluded_calls;
    while (s && told && s->count && s->at[s->count - 1].depth == depth && was_left_by_longjmp(&s->at[s->count - 1], f))
        drop_newest(t, s);
    if ((!s || s->count == s->room) && !grow(t) && s) forget_older_half(s);
    s = t->excluded_calls;
    t->top->flags |= FDRI_ARENA_LEVEL_HAS_EXCLUDED;
    if (s)
        s->at[s->count++] = (struct entry){told ? f->frame : FDRI_RECORD_FRAME_UNKNOWN, depth, region,
                                           told ? (uint32_t)f->caller : 0, told ? (uint32_t)f->site : 0};
    else t->top->excluded_open++;
}

void fdri_jumps_excluded_close(struct fdri_thread *t, uint32_t from)
{
    struct fdri_jumps_excluded *s = t->excluded_calls;
    while (s && s->count && s->at[s->count - 1].depth >= from) s->count--;
}

uint32_t fdri_jumps_excluded_find(struct fdri_thread *t, uint32_t region)
{
    struct fdri_jumps_excluded *s = t->excluded_calls;
    struct fdri_record_function f;
    while (s && s->count && newest_stored(t, s->at[s->count - 1].depth, &f) &&
           was_left_by_longjmp(&s->at[s->count - 1], &f))
        drop_newest(t, s);
    for (uint32_t i = s ? s->count : 0; i; i--)
        if (s->at[i - 1].region == region) return s->at[i - 1].depth;
    return !s && t->top->excluded_open ? t->loc->depth : FDRI_JUMPS_NOT_EXCLUDED;
}

void fdri_jumps_excluded_leave(struct fdri_thread *t, uint32_t region)
{
    struct fdri_jumps_excluded *s = t->excluded_calls;
    if (!s && --t->top->excluded_open == 0) t->top->flags &= ~(uint32_t)FDRI_ARENA_LEVEL_HAS_EXCLUDED;
    for (bool it = false; s && s->count && !it;) {
        it = s->at[s->count - 1].region == region;
        drop_newest(t, s);
    }
}
