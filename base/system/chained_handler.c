/* SPDX-License-Identifier: MIT */
/* The chain of a signal's previous handlers, kept in words that a handler reads whole. */
#include "base/system/chained_handler.h"

#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "base/stack/thread_stack.h"

/* A word holds the handler's address in its low 56 bits, the signal's number above, and this flag for a handler with
 * three arguments. */
#define WITH_INFO (1ull << 63)
enum { NUMBER = 56 };

/* The signal that this thread is passing on, the handler's position in the list, and the stack address of that call. */
static _Thread_local struct passing {
    uint64_t frame;
    int number;
    uint32_t level;
} passing;

static bool has_handler(const struct sigaction *a, void (*handler)(int, siginfo_t *, void *))
{
    return (a->sa_flags & SA_SIGINFO) && a->sa_sigaction == handler;
}

static uint64_t address_in(uint64_t word) { return word & ((1ull << NUMBER) - 1); }
static int number_in(uint64_t word) { return (int)((word & ~WITH_INFO) >> NUMBER); }

static uint64_t word_of(int number, const struct sigaction *a)
{
    uint64_t word = (uint64_t)number << NUMBER;
    if (a->sa_flags & SA_SIGINFO) return word | (uint64_t)(uintptr_t)a->sa_sigaction | WITH_INFO;
    bool standard = a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN;
    return standard ? word : word | (uint64_t)(uintptr_t)a->sa_handler;
}

/* Stores the word before the count that covers it. A full list loses its last entry. */
static void push(struct fdri_system_previous *p, const struct sigaction *found)
{
    uint32_t i = p->count < FDRI_SYSTEM_PREVIOUS_MOST ? p->count : FDRI_SYSTEM_PREVIOUS_MOST - 1;
    p->action[i] = *found;
    fdri_atomic_store_relaxed(&p->handler[i], word_of(p->number, found));
    fdri_atomic_store_release(&p->count, i + 1); /* R:previous */
}

bool fdri_system_previous_install(struct fdri_system_previous *p, int number, const struct sigaction *ours)
{
    struct sigaction found;
    if (sigaction(number, NULL, &found)) return false;
    if (p->number != number) { /* of another recording; fdr's handler may have stayed there, and now passes nothing
                                * on */
        fdri_atomic_store_relaxed(&p->count, 0u);
        p->number = number;
    }
    bool again = has_handler(&found,
                             ours->sa_sigaction); /* another library's handler was in front, and has put fdr's back */
    if (again && !p->count) memset(&found, 0, sizeof found);
    if (!again || !p->count) push(p, &found); /* before `handler` can be called */
    return sigaction(number, ours, NULL) == 0;
}

bool fdri_system_previous_ours(int number, void (*ours)(int, siginfo_t *, void *))
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && has_handler(&now, ours);
}

void fdri_system_previous_restore(struct fdri_system_previous *p, int number, void (*ours)(int, siginfo_t *, void *))
{
    if (!p->count || !fdri_system_previous_ours(number, ours)) return;
    sigaction(number, &p->action[p->count - 1], NULL);
    fdri_atomic_store_relaxed(&p->count, p->count - 1);
}

bool fdri_system_previous_any(const struct fdri_system_previous *p)
{
    uint32_t levels = fdri_atomic_load_acquire(&p->count); /* A:previous */
    return levels && address_in(fdri_atomic_load_relaxed(&p->handler[levels - 1]));
}

/* If the handler left by longjmp, its frame is not above this one any more. If the kernel called this handler, the
 * signal is a new one. */
bool fdri_system_previous_gives_back(int number, const void *code)
{
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    bool inside = passing.number == number && here < passing.frame && passing.frame - here < 1u << 20;
    return inside && !fdri_stack_returns_to_kernel((uint64_t)(uintptr_t)code);
}

void fdri_system_previous_pass(const struct fdri_system_previous *p, bool given_back, int number, siginfo_t *info,
                               void *context)
{
    struct passing before = passing;
    uint32_t levels = given_back ? before.level : fdri_atomic_load_acquire(&p->count); /* A:previous */
    uint64_t word = levels ? fdri_atomic_load_relaxed(&p->handler[levels - 1]) : 0;
    if (!address_in(word) || number_in(word) != number) return;
    passing = (struct passing){(uint64_t)(uintptr_t)__builtin_frame_address(0), number, levels - 1};
    fdri_atomic_signal_fence();
    if (word & WITH_INFO) ((void (*)(int, siginfo_t *, void *))(uintptr_t)address_in(word))(number, info, context);
    else ((void (*)(int))(uintptr_t)address_in(word))(number);
    fdri_atomic_signal_fence();
    passing = before;
}
