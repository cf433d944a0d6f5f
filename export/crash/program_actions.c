/* SPDX-License-Identifier: MIT */
/* FDR_CRASH=first: the program's actions of the signals of faults, while the kernel has fdr's handler. Fatal path: see
 * crash_path.h. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "base/atomic.h"
#include "base/system/signal_action.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "export/crash/crash_path.h"
#include "export/crash/program_handlers.h"

#define BIT FDRI_SYSTEM_SIGNAL_BIT
static const uint64_t faults = BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGABRT) | BIT(SIGTRAP) |
                               BIT(SIGSYS);
/* The kernel blocks this signal, which nobody sends, while faults are held back. So the mask that a siglongjmp out of
 * the handler restores says that they are not any more. */
static const uint64_t mark = BIT(SIGSTKFLT);

static uint32_t active; /* atomic */

/* The newest action lies in slot[turn & 1]. A writer fills the other one first. */
static struct {
    struct sigaction slot[2];
    uint32_t turn; /* atomic */
} program[FDRI_CRASH_SIGNALS];

static __thread uint64_t held_back;

bool fdri_crash_first(void) { return fdri_atomic_load_relaxed(&active); }
bool fdri_crash_is_fault(int number) { return number > 0 && number <= 64 && (faults & BIT(number)); }

bool fdri_crash_is_ours(const struct sigaction *a)
{
    return (a->sa_flags & SA_SIGINFO) && a->sa_sigaction == fdri_crash_on_signal;
}

void fdri_crash_first_begin(fdri_system_sigaction_function *next)
{
    fdri_system_sigaction = next;
    fdri_atomic_store_relaxed(&active, 1u);
}

void fdri_crash_first_end(void)
{
    fdri_atomic_store_relaxed(&active, 0u);
    fdri_system_sigaction = sigaction;
}

/* ---- the program's action ---- */

static bool is(const struct sigaction *a, void (*handler)(int))
{
    return !(a->sa_flags & SA_SIGINFO) && a->sa_handler == handler;
}

static void store(const struct fdri_crash_signal *s, const struct sigaction *a)
{
    uint32_t *turn = &program[s - fdri_crash_signals].turn, next = fdri_atomic_load_relaxed(turn) + 1;
    fdri_atomic_fence_release(); /* G:action - the slot may be read as the one before the newest */
    program[s - fdri_crash_signals].slot[next & 1] = *a;
    fdri_atomic_store_release(turn, next); /* G:action */
}

static struct sigaction action_of_turn(const struct fdri_crash_signal *s, uint32_t *turn)
{
    struct sigaction a;
    do {
        *turn = fdri_atomic_load_acquire(&program[s - fdri_crash_signals].turn); /* G:action */
        a = program[s - fdri_crash_signals].slot[*turn & 1];
        fdri_atomic_fence_acquire(); /* G:action */
    } while (fdri_atomic_load_relaxed(&program[s - fdri_crash_signals].turn) != *turn);
    return a;
}

struct sigaction fdri_crash_first_action(const struct fdri_crash_signal *s)
{
    uint32_t turn;
    return action_of_turn(s, &turn);
}

/* As the kernel does, it changes the handler alone. */
struct sigaction fdri_crash_first_take(const struct fdri_crash_signal *s)
{
    for (;;) {
        uint32_t turn;
        struct sigaction a = action_of_turn(s, &turn), *kept = &program[s - fdri_crash_signals].slot[turn & 1];
        if (!(a.sa_flags & (int)SA_RESETHAND) || a.sa_handler == SIG_DFL) return a;
        uint64_t was = (uint64_t)(uintptr_t)a.sa_handler;
        /* L:action */
        if (fdri_atomic_cas_acq_rel_u64((uint64_t *)(void *)&kept->sa_handler, &was, 0)) return a;
    }
}

/* ---- the kernel's action ---- */

/* Faults, and the signal of the mark, that the kernel would block during the handler of this action. */
static uint64_t blocked_by(int number, const struct sigaction *a)
{
    uint64_t mask;
    memcpy(&mask, &a->sa_mask, sizeof mask);
    if (!(a->sa_flags & SA_NODEFER)) mask |= BIT(number);
    return mask & (faults | mark);
}

/* fdr's handler with the mask and flags of the program's action, as far as faults in a handler still reach fdr. */
static struct sigaction in_front_of(int number, const struct sigaction *a)
{
    struct sigaction ours;
    uint64_t mask;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = fdri_crash_on_signal;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (is(a, SIG_DFL)) {
        ours.sa_flags |= SA_ONSTACK | SA_RESTART;
        return ours;
    }
    ours.sa_flags |= a->sa_flags & (SA_ONSTACK | SA_RESTART);
    memcpy(&mask, &a->sa_mask, sizeof mask);
    mask &= ~faults;
    if (blocked_by(number, a)) mask |= mark;
    memcpy(&ours.sa_mask, &mask, sizeof mask);
    return ours;
}

void fdri_crash_first_adopt(struct fdri_crash_signal *s)
{
    struct sigaction theirs, ours;
    if (fdri_system_sigaction(s->number, NULL, &theirs) || fdri_crash_is_ours(&theirs)) return;
    store(s, &theirs);
    s->previous = theirs;
    fdri_atomic_store_relaxed(&s->installed, false);
    if (is(&theirs, SIG_IGN)) return;
    ours = in_front_of(s->number, &theirs);
    fdri_atomic_store_relaxed(&s->installed, fdri_system_sigaction(s->number, &ours, NULL) == 0);
}

/* ---- faults that a handler holds back ---- */

static bool is_marked(const void *context)
{
    uint64_t mask;
    memcpy(&mask, &((const ucontext_t *)context)->uc_sigmask, sizeof mask);
    return mask & mark;
}

uint64_t fdri_crash_held_back(const void *context)
{
    if (held_back && !is_marked(context)) held_back = 0;
    return held_back;
}

/* In a thread that blocks the signal of the mark itself, the kernel blocks the faults. */
void fdri_crash_hold_back(int number, const struct sigaction *a, const void *context, uint64_t *before)
{
    uint64_t more = blocked_by(number, a);
    *before = held_back;
    if (more && !held_back && is_marked(context)) fdri_system_mask(SIG_BLOCK, &more, NULL);
    else held_back |= more;
    fdri_atomic_signal_fence();
}

void fdri_crash_held_restore(uint64_t before)
{
    fdri_atomic_signal_fence();
    held_back = before;
}

bool fdri_crash_holds_back(void) { return held_back != 0; }

/* The program's view: what is held back is blocked, and nobody knows the mark. */
int fdri_crash_first_mask(int how, const sigset_t *set, sigset_t *old, fdri_crash_mask_function *real)
{
    uint64_t now, change = 0, held = held_back;
    sigset_t changed, seen;
    int e = real(SIG_BLOCK, NULL, &seen);
    memcpy(&now, &seen, sizeof now);
    if (!e && !(now & mark)) held_back = 0;
    if (e || !held_back) return real(how, set, old);
    if (set) {
        changed = *set;
        memcpy(&change, set, sizeof change);
        held = how == SIG_UNBLOCK ? held & ~change : (how == SIG_SETMASK ? held & change : held) | (change & mark);
        if (how == SIG_UNBLOCK) change = held ? change & ~mark : change | mark;
        else change = (change & ~held) | (held ? mark : 0);
        memcpy(&changed, &change, sizeof change);
        e = real(how, &changed, NULL);
        if (e) return e;
    }
    now = (now & ~mark) | held_back;
    held_back = held;
    memcpy(&seen, &now, sizeof now);
    if (old) *old = seen;
    return 0;
}
