/* SPDX-License-Identifier: MIT */
/* Calls the program's own handlers of the signals that end a process, and finds out whether the process goes on. Fatal
 * path: see crash_path.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "base/atomic.h"
#include "base/stack/fault_guard.h"
#include "base/stack/registers.h"
#include "base/system/signal_action.h"
#include "base/system/syscall.h"
#include "export/crash/crash_path.h"
#include "export/crash/program_handlers.h"
#include "export/snapshot/snapshot.h"
#include "export/view.h"
#include "format/arena/arena.h"

/* The signal for which this thread is in the application's own handler now; signal 0: none. */
static __thread struct given {
    uint64_t frame;
    const void *context;
    const struct fdri_arena_crash_cause *cause; /* in the frame of fdr's handler */
    int32_t signal;
} given;

/* True if the signal interrupted the application's handler: the thread was below fdr's frame on that stack. After a
 * longjmp out of the handler it is not. */
static bool inside_previous_handler(const void *context)
{
    uint64_t registers[FDRI_STACK_REGISTERS];
    if (!given.signal || context == given.context) return false;
    fdri_stack_registers(context, registers);
    uint64_t sp = fdri_stack_registers_sp(registers);
    return sp < given.frame && given.frame - sp < 1u << 20;
}

/* True if the application's handler called fdr's with its own context. fdr's handler then lies below its frame. A new
 * signal has another context, even in the same place after a longjmp. */
static bool previous_passed_it_back(uint64_t here, const void *context)
{
    return given.signal && context == given.context && here < given.frame;
}

void fdri_crash_program_left(uint64_t here, const void *context)
{
    if (!inside_previous_handler(context) && !previous_passed_it_back(here, context)) given.signal = 0;
}

bool fdri_crash_program_runs(const void *context, struct fdri_arena_crash_cause *cause)
{
    if (!inside_previous_handler(context)) return false;
    cause->signal = given.signal;
    cause->code = given.cause->code;
    cause->addr = given.cause->addr;
    cause->flags = given.cause->flags & (uint32_t)FDRI_ARENA_CAUSE_SENT;
    return true;
}

static bool is_default(const struct sigaction *a) { return !(a->sa_flags & SA_SIGINFO) && a->sa_handler == SIG_DFL; }
static bool is_handler(const struct sigaction *a)
{
    return (a->sa_flags & SA_SIGINFO) || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

static bool at_default(int number)
{
    struct sigaction now;
    return fdri_system_sigaction(number, NULL, &now) == 0 && is_default(&now);
}

static bool is_pending(const struct fdri_crash_signal *s) { return fdri_system_pending() >> (s->number - 1) & 1; }

bool fdri_crash_program_raised_again(const struct fdri_crash_signal *s)
{
    if (fdri_crash_first()) return is_pending(s);
    return fdri_crash_program_has_handler(s) && at_default(s->number);
}

/* True if the application's handler reinstalled the action that it had found: ours, as it was before
 * fdr_handlers_chain() put it in front. */
static bool previous_reinstalled_ours(const struct fdri_crash_signal *s)
{
    struct sigaction now;
    return s->chained && fdri_system_sigaction(s->number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == fdri_crash_on_signal && !(now.sa_flags & FDRI_CRASH_CHAINED);
}

/* Many handlers put back the default action and raise the signal again. That signal, too, waits until ours has
 * returned. */
void fdri_crash_program_call(const struct fdri_crash_signal *s, siginfo_t *info, void *context)
{
    const struct sigaction *p = &s->previous;
    uint64_t block, old;
    memcpy(&block, &p->sa_mask, sizeof block);
    if (!(p->sa_flags & SA_NODEFER)) block |= 1ull << (s->number - 1);
    fdri_system_mask(SIG_BLOCK, &block, &old);
    if (p->sa_flags & (int)SA_RESETHAND) {
        struct sigaction standard;
        memset(&standard, 0, sizeof standard);
        fdri_system_sigaction(s->number, &standard, NULL);
    }
    if (p->sa_flags & SA_SIGINFO) p->sa_sigaction(s->number, info, context);
    else p->sa_handler(s->number);
    if (at_default(s->number)) old |= 1ull << (s->number - 1);
    fdri_system_mask(SIG_SETMASK, &old, NULL);
}

bool fdri_crash_program_has_handler(const struct fdri_crash_signal *s) { return is_handler(&s->previous); }

/* True if the signal interrupted abort(). Then its handler may return and the process dies all the same, without a
 * handler. raise() leaves an address in abort() on the stack. */
__attribute__((no_sanitize("thread", "address"))) static bool in_abort(const void *context)
{
    uint64_t registers[FDRI_STACK_REGISTERS];
    sigjmp_buf fault, *before = fdri_stack_guard;
    volatile bool is = false;
    if (!fdri_crash.abort_bytes) return false;
    fdri_stack_registers(context, registers);
    const volatile uint64_t *word = (void *)(uintptr_t)(fdri_stack_registers_sp(registers) & ~7ull);
    fdri_stack_guard = &fault; /* the stack may end here */
    if (sigsetjmp(fault, 0) == 0)
        for (int i = 0; i < 128 && !is; i++) is = word[i] - fdri_crash.abort_at <= fdri_crash.abort_bytes;
    fdri_stack_guard = before;
    return is;
}

static void forget_previous(struct fdri_crash_signal *s)
{
    memset(&s->previous, 0, sizeof s->previous);
    s->chained = false;
}

/* For a previous handler that serves one signal (SA_RESETHAND), or that put back the default action or ours. True: the
 * process goes on. fdr's handler then takes the next signal as the last, also if the same instruction faults again. */
static bool process_continues(struct fdri_crash_signal *s, const void *context)
{
    if (is_pending(s)) return false; /* raised again */
    if (s->number == SIGABRT && in_abort(context)) return false;
    forget_previous(s);
    if (fdri_atomic_load_relaxed(&s->installed)) fdri_crash_catch(s->number, false);
    return true;
}

/* Stores the cause: if the program's handler ends the process itself, the file has it. */
static void begin_handler(const struct fdri_arena_crash_cause *c, const void *context, const void *frame)
{
    fdri_crash_store_cause(c);
    given = (struct given){.frame = (uint64_t)(uintptr_t)frame, .context = context, .cause = c, .signal = c->signal};
}

static void survived(void) { fdri_atomic_add_relaxed(&fdri_crash_superblock()->faults_survived, 1u); }

bool fdri_crash_program_handled(struct fdri_crash_signal *s, siginfo_t *info, void *context)
{
    if (!given.signal && previous_reinstalled_ours(s)) forget_previous(s); /* the program removed its handler */
    if (!fdri_crash_program_has_handler(s)) return false;
    /* The application's handler raised the signal itself, or passed it on. It passes it to the handler that it had
     * found, which is ours since fdr_handlers_chain(). */
    if (given.signal == s->number && (info->si_code <= 0 || context == given.context)) return false;
    struct fdri_arena_crash_cause c = fdri_crash_cause_of(s->number, info, 0);
    begin_handler(&c, context, __builtin_frame_address(0));
    fdri_crash_program_call(s, info, context);
    given.signal = 0;
    if (fdri_crash_dies_here(c.tid)) return false; /* it passed the signal to us: the bundle is complete */
    fdri_crash_superblock()->cause_signal = 0;
    bool last = at_default(s->number) || previous_reinstalled_ours(s);
    if (last && !process_continues(s, context)) return false; /* it only reported the signal */
    /* the instruction runs again; whether the fault is survived is not known yet */
    if (!last || info->si_code <= 0) survived();
    return true;
}

/* ---- FDR_CRASH=first ---- */

/* True if this thread belongs to the process that records. A vfork child shares its memory and has another id. */
static bool is_recorded(uint32_t tid)
{
    static __thread uint32_t known;
    if (tid != known && fdri_export_pid() == fdri_crash.pid) known = tid;
    return tid == known;
}

static bool in_arena(const siginfo_t *info)
{
    uint64_t at = (uint64_t)(uintptr_t)info->si_addr, base = (uint64_t)(uintptr_t)fdri_snapshot_view.base;
    return info->si_code > 0 && at >= base && at - base < fdri_snapshot_view.bytes;
}

/* The signal waits until the program's handler has returned, as if it were blocked. */
static void wait_for_handler(const struct fdri_crash_signal *s, uint32_t tid, siginfo_t *info, void *context)
{
    uint64_t it = 1ull << (s->number - 1), mask;
    sigset_t *interrupted = &((ucontext_t *)context)->uc_sigmask;
    fdri_system_mask(SIG_BLOCK, &it, NULL);
    memcpy(&mask, interrupted, sizeof mask);
    mask |= it;
    memcpy(interrupted, &mask, sizeof mask);
    fdri_system_queue(fdri_crash.pid, (int)tid, s->number, info);
}

static void call_handler(const struct fdri_crash_signal *s, const struct sigaction *a, siginfo_t *info, void *context,
                         int error)
{
    uint64_t before;
    fdri_crash_hold_back(s->number, a, context, &before);
    errno = error;
    if (a->sa_flags & SA_SIGINFO) a->sa_sigaction(s->number, info, context);
    else a->sa_handler(s->number);
    fdri_crash_held_restore(before);
}

enum fdri_crash_outcome fdri_crash_first_signal(struct fdri_crash_signal *s, siginfo_t *info, void *context, int error)
{
    uint32_t tid = (uint32_t)fdri_system_gettid();
    bool sent = info->si_code <= 0;
    if (!s->fault || !is_recorded(tid) || fdri_crash_dies_here(tid) || in_arena(info)) return FDRI_CRASH_NOT_MINE;
    if (given.signal && context == given.context) return FDRI_CRASH_DIES; /* the handler passed the signal to us */
    bool aborts = s->number == SIGABRT && in_abort(context);              /* abort() has unblocked the signal */
    if (!aborts && fdri_crash_held_back(context) >> (s->number - 1) & 1) {
        if (sent) wait_for_handler(s, tid, info, context);
        return sent ? FDRI_CRASH_GOES_ON : FDRI_CRASH_DIES;
    }
    struct sigaction a = fdri_crash_first_take(s);
    if (!is_handler(&a)) return sent && !is_default(&a) ? FDRI_CRASH_GOES_ON : FDRI_CRASH_DIES;
    struct given outer = given;
    struct fdri_arena_crash_cause c = fdri_crash_cause_of(s->number, info, 0);
    begin_handler(&c, context, __builtin_frame_address(0));
    call_handler(s, &a, info, context, error);
    given = outer;
    fdri_crash_superblock()->cause_signal = 0;
    if (outer.signal) fdri_crash_store_cause(outer.cause); /* that handler goes on */
    if (aborts) return FDRI_CRASH_DIES;
    a = fdri_crash_first_action(s);
    if (is_default(&a) && is_pending(s)) return FDRI_CRASH_DIES; /* raised again */
    if (!is_default(&a) || sent) survived();
    return FDRI_CRASH_GOES_ON;
}
