/* SPDX-License-Identifier: MIT */
/* The stack by libgcc's unwinder, which glibc's backtrace uses, too. It goes frame by frame, so the frames found before
 * an error remain. Errors happen while an exception is thrown. Just before _Unwind_RaiseException and similar functions
 * jump to a handler, their saved registers belong to the target frame, so their callers cannot be found. If fdr's
 * handler of faults is installed, it catches a fault there. Otherwise the stack ends at these functions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <unwind.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/stack/fault_guard.h"
#include "base/text/message.h"
#include "sampler/counters/counter.h"
#include "sampler/samples/frame_walk.h"

typedef _Unwind_Reason_Code backtrace_function(_Unwind_Trace_Fn, void *);
typedef _Unwind_Ptr ip_function(struct _Unwind_Context *);
typedef _Unwind_Word cfa_function(struct _Unwind_Context *);
typedef void *enclosing_function(void *);

enum { THROWERS = 4, OURS_MOST = 64 };
static backtrace_function *each_frame;
static ip_function *ip_of;
static cfa_function *cfa_of;
static enclosing_function *enclosing;
static void *thrower[THROWERS];
static uint64_t lowest, highest; /* of the throwers: addresses outside are not looked up */

struct unwinding {
    struct fdri_samples_frames *f;
    uint64_t pc, ip, cfa;
    uint32_t ours;                   /* number of frames of this handler */
    bool reached, careful, doubtful; /* doubtful: beyond a thrower */
};

static bool may_throw(uint64_t address)
{
    if (address < lowest || address >= highest) return false;
    void *start = enclosing((void *)(uintptr_t)address);
    for (int i = 0; i < THROWERS; i++)
        if (start && start == thrower[i]) return true;
    return false;
}

/* The frames of this handler come first. The thread's frames begin behind its program counter. */
static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *argument)
{
    struct unwinding *u = argument;
    struct fdri_samples_frames *f = u->f;
    uint64_t ip = ip_of(context), cfa = cfa_of(context);
    if (!u->reached) {
        u->reached = ip == u->pc;
        if (!u->reached && ++u->ours < OURS_MOST) return _URC_NO_REASON;
    } else if (!ip) {
        f->cut = false;
        return _URC_END_OF_STACK;
    } else if (f->count == FDRI_SAMPLES_FRAMES_MAX || (ip == u->ip && cfa == u->cfa) ||
               (u->doubtful && !fdri_samples_walk_is_code(ip))) {
        return _URC_END_OF_STACK;
    } else {
        f->address[f->count++] = ip;
    }
    u->ip = ip;
    u->cfa = cfa;
    u->doubtful |= may_throw(ip);
    return u->reached && !(u->careful && u->doubtful) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void fdri_samples_unwind(struct fdri_samples_frames *f, uint64_t pc)
{
    sigjmp_buf behind;
    struct unwinding u = {.f = f, .pc = pc, .careful = !fdri_stack_guard_works()};
    f->count = 0;
    f->cut = true;
    if (!each_frame) return;
    if (!u.careful && sigsetjmp(behind, 0) == 0) {
        fdri_stack_guard = &behind;
        fdri_atomic_signal_fence();
        if (each_frame(on_frame, &u) == _URC_END_OF_STACK) f->cut = false;
    } else if (u.careful && each_frame(on_frame, &u) == _URC_END_OF_STACK) {
        f->cut = false;
    }
    fdri_atomic_signal_fence();
    fdri_stack_guard = NULL;
    f->cut |= !u.reached;
}

static void *look_up(void *library, const char *name)
{
    void *p = dlsym(library, name);
    if (!p) fdri_text_message("FDR_SAMPLE: unwind: libgcc_s has no %s; samples have no return addresses", name);
    return p;
}

void fdri_samples_unwind_warm(void)
{
    static const char *const throwers[THROWERS] = {"_Unwind_RaiseException", "_Unwind_Resume",
                                                   "_Unwind_Resume_or_Rethrow", "_Unwind_ForcedUnwind"};
    enum { FUNCTION_MOST = 4096 };
    if (!fdri_counters_unwinder_works()) {
        fdri_text_message(
            "FDR_SAMPLE: unwind: this program is linked statically, and its unwinder is not ready before main; "
            "samples have no return addresses (fdr_init in main has them)");
        return;
    }
    void *library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) fdri_text_message("FDR_SAMPLE: unwind: %s; samples have no return addresses", dlerror());
    void *each = library ? look_up(library, "_Unwind_Backtrace") : NULL,
         *ip = each ? look_up(library, "_Unwind_GetIP") : NULL, *cfa = ip ? look_up(library, "_Unwind_GetCFA") : NULL,
         *enclose = cfa ? look_up(library, "_Unwind_FindEnclosingFunction") : NULL;
    if (!enclose) return;
    lowest = UINT64_MAX;
    highest = 0;
    for (int i = 0; i < THROWERS; i++) {
        thrower[i] = look_up(library, throwers[i]);
        if (!thrower[i]) return;
        lowest = fdri_bits_min(lowest, (uint64_t)(uintptr_t)thrower[i]);
        highest = fdri_bits_max(highest, (uint64_t)(uintptr_t)thrower[i] + FUNCTION_MOST);
    }
    memcpy(&ip_of, &ip, sizeof ip);
    memcpy(&cfa_of, &cfa, sizeof cfa);
    memcpy(&enclosing, &enclose, sizeof enclose);
    memcpy(&each_frame, &each, sizeof each);
    fdri_counters_unwinder_warm(each_frame);
}
