/* SPDX-License-Identifier: MIT */
/* Detects whether the calling thread runs a signal handler, which may have interrupted the allocator or a holder of a
 * lock. The kernel's frame lies on the stack between the handler and the interrupted code, and libgcc's unwinder
 * recognises it. If the stack cannot be followed to its end (code without unwind tables), the signal mask decides. A
 * handler usually runs with its own signal blocked. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <unwind.h>

#include "base/atomic.h"
#include "base/stack/fault_guard.h"
#include "base/system/signal_mask.h"
#include "sampler/counters/counter.h"

typedef _Unwind_Reason_Code backtrace_function(_Unwind_Trace_Fn, void *);
typedef _Unwind_Ptr ip_function(struct _Unwind_Context *, int *);
static backtrace_function *each_frame;
static ip_function *ip_of;

enum { FRAMES_MOST = 4096 };
enum found { NOT_TO_THE_END, NONE, A_SIGNAL };
struct search {
    uint32_t frames;
    enum found found;
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *argument)
{
    struct search *s = argument;
    int interrupted = 0;
    uint64_t ip = ip_of(context, &interrupted);
    if (interrupted) s->found = A_SIGNAL;
    else if (!ip) s->found = NONE; /* the function that starts a thread has no caller */
    return s->found != NOT_TO_THE_END || ++s->frames == FRAMES_MOST ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static enum found search(void)
{
    sigjmp_buf behind;
    struct search s = {0, NOT_TO_THE_END};
    if (!each_frame) return NOT_TO_THE_END;
    bool guarded = fdri_stack_guard_works();
    if (guarded && sigsetjmp(behind, 0)) {
        fdri_stack_guard = NULL;
        return NOT_TO_THE_END;
    }
    if (guarded) fdri_stack_guard = &behind;
    fdri_atomic_signal_fence();
    each_frame(on_frame, &s);
    fdri_atomic_signal_fence();
    fdri_stack_guard = NULL;
    return s.found;
}

static bool has_handler(int number, unsigned flags)
{
    struct sigaction a;
    return sigaction(number, NULL, &a) == 0 && a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN &&
           ((unsigned)a.sa_flags & flags) == flags;
}

bool fdri_counters_in_handler(const sigset_t *blocked)
{
    stack_t alternate;
    if (sigaltstack(NULL, &alternate) == 0 && (alternate.ss_flags & SS_ONSTACK)) return true;
    enum found found = search();
    if (found != NOT_TO_THE_END) return found == A_SIGNAL;
    for (int i = 1; i <= SIGRTMAX; i++)
        if (has_handler(i, sigismember(blocked, i) == 1 ? 0 : (unsigned)SA_NODEFER)) return true;
    return false;
}

/* In a static program the unwinder finds no frame before constructors without a priority have run, and would abort. */
extern const void *_Unwind_Find_FDE(void *pc, void *bases[3]) __attribute__((weak));
bool fdri_counters_unwinder_works(void)
{
    void *bases[3];
    return !_Unwind_Find_FDE || _Unwind_Find_FDE((void *)(uintptr_t)fdri_counters_unwinder_works, bases);
}

static _Unwind_Reason_Code four_frames(struct _Unwind_Context *context, void *frames)
{
    (void)context;
    return ++*(int *)frames < 4 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

void fdri_counters_unwinder_warm(_Unwind_Reason_Code (*frames_of)(_Unwind_Trace_Fn, void *))
{
    int frames = 0;
    frames_of(four_frames, &frames);
}

void fdri_counters_in_handler_warm(void)
{
    if (!fdri_counters_unwinder_works()) return;
    void *library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    void *each = library ? dlsym(library, "_Unwind_Backtrace") : NULL,
         *ip = each ? dlsym(library, "_Unwind_GetIPInfo") : NULL;
    if (!ip) return;
    memcpy(&ip_of, &ip, sizeof ip);
    memcpy(&each_frame, &each, sizeof each);
    fdri_counters_unwinder_warm(each_frame);
}
