/* SPDX-License-Identifier: MIT */
/* Finds open calls that a longjmp left, by the stack pointers of later functions.
 *
 * No event reports a longjmp. But a function that enters above the frame of an open call, on the same stack, stands
 * where that call's frame was. So that call has ended, with all calls inside of it.
 *
 * A function in the same place may also be a part of the open call: an inlined function shares its caller's frame. Two
 * signs exclude that. A part has the same return address, so a function called from elsewhere is no part. And a
 * function that enters at the same place in the code was entered twice, so its first call has ended.
 *
 * Only the thread's own stack has an order. Frames of alternate signal stacks, of coroutines and of split stacks have
 * no order against it. Only a frame in the same place proves something there, by the same two signs. Regions entered by
 * id have no frame, and end with the function around them. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/stack/thread_stack.h"
#include "format/arena/arena.h"
#include "recorder/jumps/jumps.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

/* After this many questions without a result the kernel is not asked any more about frames on other stacks. */
enum { IN_VAIN = 64 };

bool fdri_jumps_is_own_frame(uint64_t frame)
{
    struct fdri_thread *me = &fdri_record_self;
    if (FDRI_UNLIKELY(!me->stack_known)) {
        me->stack_bytes = fdri_stack_own_bytes(fdri_thread_is_first(me->loc));
        fdri_atomic_signal_fence();
        me->stack_known = true;
    }
    return frame - 1 < me->stack_bytes;
}

/* The thread runs on its own stack, and an open call lies on another one. Was it a call of a handler that will not
 * return? */
static bool left_handler(uint64_t frame)
{
    struct fdri_thread *me = &fdri_record_self;
    if (me->stack_lookups_failed >= IN_VAIN) return false;
    bool left = fdri_stack_alternate_was_left(me->stack_end - frame);
    me->stack_lookups_failed = left ? 0 : me->stack_lookups_failed + 1;
    return left;
}

/* Is a call of f open in f's frame, with f's return address? */
static bool is_open_here(struct fdri_thread *t, const struct fdri_record_function *f)
{
    for (uint32_t d = t->loc->depth; d; d--) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (!v->address || v->frame > f->frame) continue;
        if (v->frame <= f->upper || v->caller != (uint32_t)f->caller) return false;
        if (v->address == f->address) return true;
    }
    return false;
}

/* Is f a function of its own, and not inlined into another one? Its hook is called near its beginning, and the
 * beginning of a function is no part of another one. A copy of f inlined into f may also be near it. But then f is
 * open already, unless a rule excluded that call. */
static bool is_whole(struct fdri_thread *t, const struct fdri_record_function *f)
{
    return f->site - f->address < FDRI_NAMES_HOOK_NEAR && !fdri_names_rules_any() && !is_open_here(t, f) &&
           fdri_names_cache_place(&fdri_record_self, f).whole;
}

/* May f be a part of call v? A function inlined into another has that one's frame and return address. */
static bool may_be_part_of(struct fdri_thread *t, const struct fdri_arena_level *v,
                           const struct fdri_record_function *f)
{
    if (v->caller != (uint32_t)f->caller || (v->site == (uint32_t)f->site && v->frame == f->frame)) return false;
    if (fdri_names_at_entry(f->address, f->site)) return false; /* what is inlined has no such hook */
    return v->address == f->address || !is_whole(t, f);
}

/* If the compiler does not report the frame's size, the return address ends the frame. So the frame ends no later than
 * the first word equal to it. Remains of older calls in the frame may be equal, too. Therefore the recorder keeps only
 * the complement of return addresses, and uses the largest frame found in several calls. */
__attribute__((no_sanitize("address"))) uint64_t fdri_jumps_frame_upper(const struct fdri_record_function *f)
{
    enum { WORDS = 2048 };
    if (fdri_names_at_entry(f->address, f->site)) return f->frame - FDRI_NAMES_LEAST_FRAME;
    uint64_t words = FDRI_STACK_RETURN_ABOVE_FRAME && f->frame < 1u << 30 ? fdri_bits_min(f->frame / 8, WORDS) : 0;
    const uint64_t *word = (const uint64_t *)(uintptr_t)(fdri_record_self.stack_end - f->frame);
    uint64_t bytes = fdri_names_cache_frame(&fdri_record_self, f);
    if (!bytes && words) bytes = fdri_names_cache_place(&fdri_record_self, f).frame_bytes;
    if (bytes > f->frame) bytes = 0;
    for (uint64_t i = 0; i < words && !bytes; i++) bytes = word[i] == ~f->caller ? (i + 1) * 8 : 0;
    return f->frame - bytes;
}

bool fdri_jumps_is_below(struct fdri_thread *t, const struct fdri_record_function *f)
{
    struct fdri_arena_level *v = t->top;
    uint32_t d = t->loc->depth;
    for (; d && v->address && v->frame > f->upper && v->frame <= f->frame && may_be_part_of(t, v, f); d--)
        v = fdri_record_parent_of(t, v, d);
    return !d || (v->address && v->frame <= f->upper && v->frame < f->frame);
}

/* Frames of other stacks count as deeper than all of the own stack. So a frame less deep than f's is on f's stack, or f
 * is on another stack. */
uint32_t fdri_jumps_first_abandoned(struct fdri_thread *t, const struct fdri_record_function *f)
{
    uint32_t gone = 0, above = 0; /* depth of the outermost call gone by its place; by its order */
    for (uint32_t d = t->loc->depth; d; d--) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (!v->address || v->frame == FDRI_RECORD_FRAME_UNKNOWN) continue;
        if (v->frame <= f->upper && v->frame < f->frame) break;
        if (v->frame <= f->frame) gone = may_be_part_of(t, v, f) ? gone : d; /* f stands in its place */
        else if (fdri_jumps_is_own_frame(v->frame)) above = d;
        else if (fdri_jumps_is_own_frame(f->frame) && left_handler(v->frame)) gone = d;
    }
    /* The order proves nothing in two cases. An alternate stack in use may be a part of this stack. And f may be a
     * signal handler. Usually it lies below the call it interrupted. But that call may have been about to leave, with a
     * large frame. Then the handler's frame lies above the call's, and the call is still open. */
    if (above && (!gone || above < gone) && !fdri_stack_returns_to_kernel(~f->caller) && !fdri_stack_alternate_in_use())
        gone = above;
    return gone;
}
