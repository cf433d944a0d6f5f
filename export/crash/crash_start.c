/* SPDX-License-Identifier: MIT */
/* Installs and removes the handlers of signals that end a process. docs/CRASH.md has the rules. */
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fd/kept_open.h"
#include "base/stack/fault_guard.h"
#include "base/system/signal_action.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "export/crash/bundle_room.h"
#include "export/crash/crash_path.h"
#include "export/crash/program_handlers.h"
#include "export/snapshot/snapshot.h"
#include "export/view.h"
#include "format/arena/arena.h"

/* a thread that checks the handlers finds all of them installed, or waits */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;

/* A handler of the program may call sigaction, which waits for the lock. So no signal may interrupt its holder, sent
 * faults included. SIGBUS may: the arena's file may have been cut. */
static void block(sigset_t *old)
{
    uint64_t faults = 0;
    fdri_system_signals_block(old);
    for (const struct fdri_crash_signal *s = fdri_crash_signals; s < fdri_crash_signals + FDRI_CRASH_SIGNALS; s++)
        if (s->number != SIGBUS) faults |= FDRI_SYSTEM_SIGNAL_BIT(s->number);
    fdri_system_mask(SIG_BLOCK, &faults, NULL);
}

void fdri_crash_handlers_lock(sigset_t *old)
{
    block(old);
    pthread_mutex_lock(&looking);
}
void fdri_crash_handlers_unlock(const sigset_t *old)
{
    pthread_mutex_unlock(&looking);
    fdri_system_signals_restore(old);
}

static bool has_handler(const struct sigaction *now, void (*handler)(int))
{
    return !(now->sa_flags & SA_SIGINFO) && now->sa_handler == handler;
}

/* True if fdr shall handle this signal. Process 1 of a container survives a request to end with its default action; a
 * handler would change that. */
static bool should_install(const struct fdri_crash_signal *s, const struct sigaction *now)
{
    if (s->number == fdri_snapshot_view.signal || has_handler(now, SIG_IGN) || fdri_crash_is_ours(now)) return false;
    return s->fault || (has_handler(now, SIG_DFL) && fdri_export_pid() != 1);
}

static uint32_t bit(const struct fdri_crash_signal *s) { return 1u << (s->number - 1); }

static void install(struct fdri_crash_signal *s, bool chained)
{
    fdri_atomic_store_relaxed(&s->installed, false);
    s->chained = chained;
    if (fdri_crash_first() && s->fault) {
        fdri_crash_first_adopt(s);
        return;
    }
    if (fdri_system_sigaction(s->number, NULL, &s->previous) || !should_install(s, &s->previous)) return;
    fdri_atomic_store_relaxed(&s->installed, fdri_crash_catch(s->number, chained));
}

/* Call with `looking` locked, except in a child. */
static void uninstall(void)
{
    struct sigaction now;
    for (struct fdri_crash_signal *s = fdri_crash_signals; s < fdri_crash_signals + FDRI_CRASH_SIGNALS; s++) {
        struct sigaction theirs = fdri_crash_first() && s->fault ? fdri_crash_first_action(s) : s->previous;
        if (s->installed && fdri_system_sigaction(s->number, NULL, &now) == 0 && fdri_crash_is_ours(&now))
            fdri_system_sigaction(s->number, &theirs, NULL);
        fdri_atomic_store_relaxed(&s->installed, false);
    }
    fdri_crash_first_end();
}

/* Excludes the arena from children made without atfork handlers (_Fork, clone). A signal handler that interrupted a
 * record may make such a child, which would go on with the record in memory shared with its parent.
 *
 * If such a child touches the arena, the handler of SIGSEGV maps a private view. A child of fork() gets one before
 * anything else. `arena_hidden` is set before madvise: another thread may make a child in between. That child must not
 * find the arena missing and the mark unset. */
static void hide(bool hidden)
{
    if (hidden == fdri_atomic_load_relaxed(&fdri_crash.arena_hidden)) return;
    if (hidden) fdri_atomic_store_relaxed(&fdri_crash.arena_hidden, true);
    if ((madvise(fdri_snapshot_view.base, fdri_snapshot_view.bytes, hidden ? MADV_DONTFORK : MADV_DOFORK) == 0) !=
        hidden)
        fdri_atomic_store_relaxed(&fdri_crash.arena_hidden, false);
}

/* In such a child: maps a private view of the file, so that a record can end and definitions can be read. */
bool fdri_crash_arena_visible_again(void)
{
    const struct fdri_fd_kept *live = &fdri_snapshot_view.kept_live_file;
    bool is = fdri_fd_is_kept(live->fd, live);
    long m = syscall(SYS_mmap, fdri_snapshot_view.base, fdri_snapshot_view.bytes, PROT_READ | PROT_WRITE,
                     MAP_FIXED | MAP_PRIVATE | (is ? 0 : MAP_ANONYMOUS | MAP_NORESERVE), is ? live->fd : -1, 0);
    if (m != -1) fdri_atomic_store_relaxed(&fdri_crash.arena_hidden, false);
    if (m != -1) fdri_crash.child_with_view = fdri_export_pid();
    return m != -1;
}

bool fdri_crash_own_view(void) { return fdri_crash.child_with_view == fdri_export_pid(); }

/* Stores which handlers were replaced. If another thread holds the lock, it does the check, or is starting or ending
 * the recording. So this never waits, whichever handler calls it. A vfork child has handlers of its own. */
static void check_handlers(void)
{
    struct sigaction now;
    uint32_t lost = 0;
    if (pthread_mutex_trylock(&looking)) return;
    struct fdri_arena_superblock *super = (void *)fdri_snapshot_view.base;
    for (struct fdri_crash_signal *s = fdri_crash_signals; s < fdri_crash_signals + FDRI_CRASH_SIGNALS; s++)
        if (fdri_atomic_load_relaxed(&s->installed) && fdri_system_sigaction(s->number, NULL, &now) == 0 &&
            !fdri_crash_is_ours(&now))
            lost |= bit(s);
    fdri_atomic_store_relaxed(&super->handlers_lost, lost);
    if (lost >> (SIGSEGV - 1) & 1) hide(false);
    pthread_mutex_unlock(&looking);
}

void fdri_crash_check_handlers(void)
{
    sigset_t old;
    if (fdri_atomic_load_acquire(&fdri_crash.pid) != fdri_export_pid()) return; /* A:crash */
    block(&old);
    check_handlers();
    fdri_system_signals_restore(&old);
}

void fdr_handlers_changed(void)
{
    if (fdri_atomic_load_relaxed(&fdr_switch_.on)) fdri_crash_check_handlers();
}

void fdri_crash_handlers_note(void)
{
    struct fdri_arena_superblock *super = (void *)fdri_snapshot_view.base;
    uint32_t handlers = 0;
    for (const struct fdri_crash_signal *s = fdri_crash_signals; s < fdri_crash_signals + FDRI_CRASH_SIGNALS; s++)
        if (s->installed) handlers |= bit(s);
    fdri_atomic_store_relaxed(&super->handlers, handlers);
    hide(fdri_snapshot_view.kept_live_file.fd >= 0 && handlers >> (SIGSEGV - 1) & 1);
}

void fdr_handlers_chain(void)
{
    struct sigaction now;
    sigset_t old;
    /* A:crash */
    if (!fdri_atomic_load_relaxed(&fdr_switch_.on) || fdri_atomic_load_acquire(&fdri_crash.pid) != fdri_export_pid())
        return;
    fdri_crash_handlers_lock(&old);
    for (struct fdri_crash_signal *s = fdri_crash_signals; s < fdri_crash_signals + FDRI_CRASH_SIGNALS; s++)
        if (s->installed && fdri_system_sigaction(s->number, NULL, &now) == 0 && !fdri_crash_is_ours(&now))
            install(s, true);
    fdri_crash_handlers_note();
    fdri_crash_handlers_unlock(&old);
    fdri_crash_check_handlers();
}

void fdri_crash_start(void)
{
    sigset_t old;
    fdri_crash_reset();
    if (fdri_snapshot_view.crash == FDRI_EXPORT_CRASH_OFF) return;
    fdri_crash_bundle_open();
    fdri_crash_context();
    fdri_crash_room_start();
    fdri_stack_guard_handler = fdri_crash_on_signal;
    /* R:crash - fdri_snapshot_view is complete */
    fdri_atomic_store_release(&fdri_crash.pid, fdri_export_pid());
    fdri_crash_stacks(true);
    fdri_crash_thread_begin();
    fdri_system_sigaction_function *next = fdri_snapshot_view.crash_first ? fdri_crash_first_possible() : NULL;
    fdri_crash_handlers_lock(&old);
    if (next) fdri_crash_first_begin(next);
    for (int i = 0; i < FDRI_CRASH_SIGNALS; i++) install(&fdri_crash_signals[i], false);
    fdri_crash_handlers_note();
    fdri_crash_handlers_unlock(&old);
}

bool fdri_crash_end(const char *by, int status)
{
    ucontext_t here;
    if (fdri_snapshot_view.crash != FDRI_EXPORT_CRASH_EXIT || !fdri_crash.pid) return false;
    memset(&here, 0, sizeof here);
    getcontext(&here);
    return fdri_crash_exit(by, status, &here);
}

void fdri_crash_stop(void)
{
    sigset_t old;
    if (!fdri_crash.pid) return;
    /* wait up to 2 s while its file is being written */
    for (int i = 0; i < 2000 && fdri_crash_under_way(); i++) usleep(1000);
    fdri_crash_handlers_lock(&old); /* the lock keeps fdr_handlers_chain() from hiding the arena again in between */
    hide(false);
    uninstall();
    fdri_crash_handlers_unlock(&old);
    fdri_crash_stacks(false);
    fdri_atomic_store_relaxed(&fdri_crash.pid, 0);
    fdri_crash_bundle_close();
}

/* The child inherits handlers and files of its parent and may use neither. */
void fdri_crash_fork(int phase)
{
    if (phase < 2) return;
    fdri_crash_forget();
    if (fdri_atomic_load_relaxed(&fdri_crash.arena_hidden)) fdri_crash_arena_visible_again();
    pthread_mutex_init(&looking, NULL);
    if (!fdri_crash.pid) return;
    uninstall();
    fdri_crash_stacks(false);
    fdri_atomic_store_relaxed(&fdri_crash.pid, 0);
    fdri_crash_bundle_close();
}
