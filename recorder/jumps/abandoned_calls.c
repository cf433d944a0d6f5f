/* SPDX-License-Identifier: MIT */
/* Calls that a longjmp left: nobody says so, but the stack pointers of the functions that come later do. A function
 * that enters above the frame of an open call, on the same stack, stands where that call's frame was: the call is gone,
 * and with it all that is open inside. In the same place it may be part of that call (functions put into others by the
 * compiler share a frame), so it must be one of two things no part can be: called from elsewhere, for one frame has one
 * return address; or the same place in the code, where nobody comes again who has not left.
 *
 * Only the thread's own stack has an order. Frames of alternate signal stacks, of coroutines and of split stacks say
 * nothing about it; in the same place as one of them, the same holds. Regions entered by id have no frame, and go with
 * the function they are in. */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/stack/thread_stack.h"
#include "format/arena/arena.h"
#include "recorder/jumps/jumps.h"
#include "recorder/names/names.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

enum { IN_VAIN = 64 }; /* so often without use, and the kernel is not asked about frames on other stacks any more */

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

/* Is an open call on another stack, while we are on the thread's own, one of a handler that will not come back? */
static bool left_handler(uint64_t frame)
{
    struct fdri_thread *me = &fdri_record_self;
    if (me->asked_in_vain >= IN_VAIN) return false;
    bool left = fdri_stack_alternate_was_left(me->stack_end - frame);
    me->asked_in_vain = left ? 0 : me->asked_in_vain + 1;
    return left;
}

/* Is f a function of its own, not put into another one by the compiler? The hook is called near its beginning, and that
 * is no part of another function. (A copy of it within itself may be as near: then it is open already, unless a rule
 * kept that out.) */
static bool is_whole(const struct fdri_record_function *f)
{
    return f->site - f->address < FDRI_NAMES_HOOK_NEAR && !fdri_names_rules_any() &&
           fdri_names_cache_place(&fdri_record_self, f).whole;
}

/* A function that the compiler put into another one has that one's frame and return address. */
static bool shares(const struct fdri_arena_level *v, const struct fdri_record_function *f)
{
    if (v->caller != (uint32_t)f->caller || (v->site == (uint32_t)f->site && v->frame == f->frame)) return false;
    return v->address == f->address || !is_whole(f);
}

/* Where the compiler does not tell: the return address lies at the end of the frame, so not behind the first word that
 * is like it. What older calls have left in the frame may be taken for it: so the recorder keeps its complement only,
 * and the largest frame found in several calls counts. */
__attribute__((no_sanitize("address"))) uint64_t fdri_jumps_frame_upper(const struct fdri_record_function *f)
{
    enum { WORDS = 2048 };
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
    for (; d && v->address && v->frame > f->upper && v->frame <= f->frame && shares(v, f); d--)
        v = fdri_record_parent_of(t, v, d);
    return !d || (v->address && v->frame <= f->upper && v->frame < f->frame);
}

/* Frames of other stacks are deeper than all of the own one. So who is less deep is on the same stack as f, or f is
 * elsewhere. */
uint32_t fdri_jumps_first_abandoned(struct fdri_thread *t, const struct fdri_record_function *f)
{
    uint32_t gone = 0, above = 0; /* by its place alone; by its order */
    for (uint32_t d = t->loc->depth; d; d--) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d);
        if (!v->address || v->frame == FDRI_RECORD_FRAME_UNKNOWN) continue;
        if (v->frame <= f->upper && v->frame < f->frame) break;
        if (v->frame <= f->frame) gone = shares(v, f) ? gone : d; /* it stood where f stands */
        else if (fdri_jumps_is_own_frame(v->frame)) above = d;
        else if (fdri_jumps_is_own_frame(f->frame) && left_handler(v->frame)) gone = d;
    }
    /* There is no order where an alternate stack is a part of this one. And a handler lies below what it interrupts;
     * only where that was about to leave, and had a large frame, that call is still open and its frame above. */
    if (above && (!gone || above < gone) && !fdri_stack_returns_to_kernel(~f->caller) && !fdri_stack_alternate_in_use())
        gone = above;
    return gone;
}
