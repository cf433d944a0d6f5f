/* SPDX-License-Identifier: MIT */
/* Functions of the C library that this library replaces, so that fdr stays the kernel's handler of faults
 * (FDR_CRASH=first). Otherwise each of them passes its call on, at the cost of a load and a jump. Weak: a program may
 * have its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fdr/fdr.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "export/crash/crash_path.h"
#include "export/crash/program_handlers.h"
#include "export/view.h"

typedef void handler(int);
typedef handler *handler_function(int, handler *);

/* The C library's sigaction by its other name, which this library does not replace. */
int __sigaction(int, const struct sigaction *, struct sigaction *);
handler *__sysv_signal(int, handler *);
handler *bsd_signal(int, handler *);

static uint32_t probe; /* atomic: a call of sigaction shall say that it came here. 2: it did */

/* ---- the functions behind these ---- */

/* Also for calls before this library's constructor. A static program has no functions behind these. */
static struct {
    fdri_system_sigaction_function *sigaction;
    handler_function *signal, *sysv_signal;
    fdri_crash_mask_function *sigprocmask, *pthread_sigmask;
} next;

static void *behind(const char *name) { return dlsym(RTLD_NEXT, name); }

static handler *set_handler(int number, handler *to, int flags, bool itself)
{
    struct sigaction a, old;
    memset(&a, 0, sizeof a);
    a.sa_handler = to;
    a.sa_flags = flags;
    if (itself) sigaddset(&a.sa_mask, number);
    return sigaction(number, &a, &old) ? SIG_ERR : old.sa_handler;
}
static handler *signal_of_sigaction(int number, handler *to) { return set_handler(number, to, SA_RESTART, true); }
static handler *sysv_signal_of_sigaction(int number, handler *to)
{
    enum { INTERRUPT = 0x20000000 }; /* SA_INTERRUPT: glibc sets it, and Linux ignores it */
    return set_handler(number, to, (int)SA_RESETHAND | SA_NODEFER | INTERRUPT, false);
}
static int mask_of_kernel(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t was = {0};
    int e = (int)syscall(SYS_rt_sigprocmask, how, set, &was, 8);
    if (!e && old) *old = was;
    return e;
}
static int thread_mask_of_kernel(int how, const sigset_t *set, sigset_t *old)
{
    int error = errno, e = mask_of_kernel(how, set, old) ? errno : 0;
    errno = error;
    return e;
}

__attribute__((constructor)) static void find_next(void)
{
    if (next.sigaction) return;
    *(void **)(void *)&next.signal = behind("signal");
    *(void **)(void *)&next.sysv_signal = behind("__sysv_signal");
    *(void **)(void *)&next.sigprocmask = behind("sigprocmask");
    *(void **)(void *)&next.pthread_sigmask = behind("pthread_sigmask");
    if (!next.signal) next.signal = signal_of_sigaction;
    if (!next.sysv_signal) next.sysv_signal = sysv_signal_of_sigaction;
    if (!next.sigprocmask) next.sigprocmask = mask_of_kernel;
    if (!next.pthread_sigmask) next.pthread_sigmask = thread_mask_of_kernel;
    fdri_system_sigaction_function *found;
    *(void **)(void *)&found = behind("sigaction");
    next.sigaction = found ? found : __sigaction;
}

#define NEXT(function) (FDRI_LIKELY(next.function) ? next.function : (find_next(), next.function))

/* ---- FDR_CRASH=first ---- */

static const char *sanitizer(void)
{
    static const char *const known[][2] = {{"__asan_init", "AddressSanitizer"},
                                           {"__tsan_init", "ThreadSanitizer"},
                                           {"__msan_init", "MemorySanitizer"},
                                           {"__hwasan_init", "HWAddressSanitizer"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (dlsym(RTLD_DEFAULT, known[i][0])) return known[i][1];
    return NULL;
}

/* True if a call of sigaction by the program comes to this library. */
static bool is_reached(void)
{
    fdri_system_sigaction_function *theirs;
    struct sigaction now;
    *(void **)(void *)&theirs = dlsym(RTLD_DEFAULT, "sigaction");
    if (!theirs) theirs = sigaction; /* a static program has no symbols at run time */
    fdri_atomic_store_relaxed(&probe, 1u);
    theirs(SIGSEGV, NULL, &now);
    return fdri_atomic_swap_relaxed(&probe, 0u) == 2;
}

fdri_system_sigaction_function *fdri_crash_first_possible(void)
{
    static unsigned said;
    const char *other = sanitizer();
    if (!other && is_reached()) return NEXT(sigaction);
    if (!fdri_text_once(&said)) return NULL;
    if (other)
        fdri_text_message("FDR_CRASH=first: %s has its own sigaction; handlers that come later replace fdr's", other);
    else
        fdri_text_message("FDR_CRASH=first: the program finds another sigaction before fdr's (link it with libfdr, or "
                          "preload fdr's library first); handlers that come later replace fdr's");
    return NULL;
}

/* A vfork child shares this memory, but not the kernel's actions. */
static bool is_first(int number)
{
    return fdri_crash_first() && fdri_crash_is_fault(number) && fdri_export_pid() == fdri_crash.pid;
}

static int first_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    struct fdri_crash_signal *s = fdri_crash_signals;
    struct sigaction now, wanted;
    sigset_t mask;
    while (s->number != number) s++;
    if (action) wanted = *action; /* a fault belongs here, before the lock */
    else if (NEXT(sigaction)(number, NULL, &now) == 0 && fdri_crash_is_ours(&now)) {
        if (old) *old = fdri_crash_first_action(s);
        return 0;
    }
    fdri_crash_handlers_lock(&mask);
    int e = NEXT(sigaction)(number, action ? &wanted : NULL, &now);
    if (!e && fdri_crash_is_ours(&now)) now = fdri_crash_first_action(s);
    if (!e && action && fdri_crash_first()) {
        fdri_crash_first_adopt(s);
        fdri_crash_handlers_note();
    }
    fdri_crash_handlers_unlock(&mask);
    if (!e && old) *old = now;
    return e;
}

/* ---- as the program calls them ---- */

/* A sanitizer's runtime calls sigaction before it can run code that it checks. So in such a build nothing is replaced
 * outside of this library. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(FDRI_ATOMIC_TSAN)
#define REPLACES __attribute__((weak, visibility("hidden")))
#else
#define REPLACES FDR_API __attribute__((weak))
#endif

REPLACES int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (FDRI_UNLIKELY(fdri_atomic_load_relaxed(&probe))) fdri_atomic_store_relaxed(&probe, 2u);
    return FDRI_UNLIKELY(is_first(number)) ? first_sigaction(number, action, old)
                                           : NEXT(sigaction)(number, action, old);
}

static handler *set_bsd(int number, handler *to)
{
    return is_first(number) && to != SIG_ERR ? signal_of_sigaction(number, to) : NEXT(signal)(number, to);
}
static handler *set_sysv(int number, handler *to)
{
    return is_first(number) && to != SIG_ERR ? sysv_signal_of_sigaction(number, to) : NEXT(sysv_signal)(number, to);
}
REPLACES handler *signal(int number, handler *to) { return set_bsd(number, to); }
REPLACES handler *bsd_signal(int number, handler *to) { return set_bsd(number, to); }
REPLACES handler *ssignal(int number, handler *to) { return set_bsd(number, to); }
REPLACES handler *sysv_signal(int number, handler *to) { return set_sysv(number, to); }
REPLACES handler *__sysv_signal(int number, handler *to) { return set_sysv(number, to); }

REPLACES int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    if (FDRI_UNLIKELY(fdri_crash_holds_back())) return fdri_crash_first_mask(how, set, old, NEXT(sigprocmask));
    return NEXT(sigprocmask)(how, set, old);
}
REPLACES int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    if (FDRI_UNLIKELY(fdri_crash_holds_back())) return fdri_crash_first_mask(how, set, old, NEXT(pthread_sigmask));
    return NEXT(pthread_sigmask)(how, set, old);
}
