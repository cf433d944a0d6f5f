/* SPDX-License-Identifier: MIT */
/* Takes snapshots, one at a time: fdr_snapshot() in the caller's thread, other requests in the dumper thread, and the
 * final one. A request by the API or by a signal during a snapshot gets that snapshot's result. */
#include <errno.h>
#include <fdr/fdr.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/stack/thread_stack.h"
#include "base/system/cancellation.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "export/snapshot/snapshot.h"
#include "export/view.h"
#include "format/arena/arena.h"

struct fdri_export_view fdri_snapshot_view;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static bool active;       /* between begin and end */
static bool running;      /* a snapshot is being written, */
static pthread_t runner;  /* by this thread, */
static uintptr_t frame;   /* which called from this place of its stack */
static uint64_t finished; /* snapshots written or failed in this process */
static int last_result;
static char last_path[FDRI_SNAPSHOT_PATH_MAX];

/* Signals are blocked while the lock is held: a handler that forks waits for the lock. */
static void lock_snapshots(sigset_t *old)
{
    fdri_system_signals_block(old);
    pthread_mutex_lock(&lock);
}
static void unlock_snapshots(const sigset_t *old)
{
    pthread_mutex_unlock(&lock);
    fdri_system_signals_restore(old);
}

/* Copies into the file; after an error no file is left. */
static int copy_into(struct fdri_snapshot_new_file *f, const struct fdri_snapshot_why *why)
{
    const struct fdri_arena_superblock *s = (const void *)fdri_snapshot_view.base;
    int e = fdri_snapshot_copy_arena(f->fd, why, fdri_atomic_load_relaxed(&s->snapshots_taken) + 1);
    if (!fdri_snapshot_file_is_ours(f)) e = -ECANCELED; /* a handler forked: this process is the child */
    if (e) fdri_snapshot_file_abandon(f);
    return e;
}

static int write_one(const struct fdri_snapshot_why *why, const struct fdri_snapshot_quota *quota)
{
    struct fdri_snapshot_new_file f;
    struct fdri_arena_superblock *s = (void *)fdri_snapshot_view.base;
    int e = quota ? fdri_snapshot_files_admit(quota) : 0;
    if (!e) e = fdri_snapshot_file_begin(&f);
    if (e) return e;
    fdri_crash_check_handlers();
    e = copy_into(&f, why);
    if (e && fdri_snapshot_files_make_room(quota, e)) {
        e = fdri_snapshot_file_begin(&f);
        if (e) return e;
        e = copy_into(&f, why);
    }
    if (e) {
        if (e != -ECANCELED && fdri_snapshot_files_failed(e))
            fdri_text_message("snapshot (%s) in %s failed: %s; recording goes on", why->reason, fdri_snapshot_view.dir,
                              strerror(-e));
        return e;
    }
    e = fdri_snapshot_file_commit(&f, quota ? quota->owner : 0);
    if (!e) fdri_atomic_add_relaxed(&s->snapshots_taken, 1u);
    if (!e && quota) fdri_snapshot_files_trim(quota);
    return e;
}

enum { A_MOMENT = 1000000 }; /* ns */

/* Waits for the snapshot under way. True: its result is the caller's, too. The condition variable does not serve: it
 * takes the lock again while signals are open, and a disk may be slow. A signal that ends the process must not wait for
 * it. */
static bool wait_for_other(bool join, int *result, sigset_t *old)
{
    bool one = running;
    while (running) {
        uint64_t mine = finished + 1;
        while (finished < mine) {
            unlock_snapshots(old);
            fdri_system_sleep(A_MOMENT);
            lock_snapshots(old);
        }
        *result = last_result;
        if (join) break;
    }
    return one && join;
}

static void end_snapshot(int result)
{
    running = false;
    finished++;
    last_result = result;
    if (!result) memcpy(last_path, fdri_snapshot_files_last(), sizeof last_path);
    pthread_cond_broadcast(&done);
}

bool fdri_snapshot_is_here(void) { return running && pthread_equal(runner, pthread_self()); }

/* Ends a snapshot of this thread that will not be finished. A handler of a fault left it by longjmp: then `here` is at
 * or above its place on the stack. On an alternate stack that test proves nothing, because the handler may return into
 * the snapshot. ends: the process ends, so it is not finished in any case. */
static void abandon_own(uintptr_t here, bool ends)
{
    if (!fdri_snapshot_is_here() || (!ends && (here < frame || fdri_stack_alternate_in_use()))) return;
    fdri_snapshot_copy_abandon();
    fdri_snapshot_files_drop();
    end_snapshot(-ECANCELED);
}

void fdri_snapshot_abandon(void)
{
    sigset_t old;
    lock_snapshots(&old);
    abandon_own(0, true);
    unlock_snapshots(&old);
}

/* Not locked while files are written. */
int fdri_snapshot_take(const struct fdri_snapshot_why *why, const struct fdri_snapshot_quota *quota, bool join)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    int result = -ESRCH;
    sigset_t old;
    lock_snapshots(&old);
    abandon_own(here, false);
    bool inside = fdri_snapshot_is_here();
    if (inside) result = -EDEADLK;
    /* the recording may have ended during the wait */
    if (!active || inside || wait_for_other(join, &result, &old) || !active) {
        unlock_snapshots(&old);
        return result;
    }
    running = true;
    runner = pthread_self();
    frame = here;
    unlock_snapshots(&old);
    result = write_one(why, quota);
    lock_snapshots(&old);
    end_snapshot(result);
    unlock_snapshots(&old);
    return result;
}

struct fdri_snapshot_why fdri_snapshot_because(enum fdri_arena_reason_kind kind, const char *reason)
{
    struct fdri_snapshot_why why = {.kind = kind, .location = UINT32_MAX};
    strncpy(why.reason, reason, sizeof why.reason - 1);
    return why;
}

struct fdri_snapshot_quota fdri_snapshot_whole_quota(void)
{
    return (struct fdri_snapshot_quota){
        .owner = 0, .keep = fdri_snapshot_view.keep, .keep_newest = fdri_snapshot_view.keep_newest};
}

/* Checks the process and repairs the thread before a snapshot by the API; the checks may begin a recording. Returns the
 * quota of all snapshots of this recording. If the recording has only just begun, there is no view to ask yet. */
static struct fdri_snapshot_quota check_process(uint64_t here)
{
    sigset_t old;
    lock_snapshots(&old);
    void (*it)(void) = active ? fdri_snapshot_view.check_process : NULL;
    void (*settle)(uint64_t) = active ? fdri_snapshot_view.settle_thread : NULL;
    struct fdri_snapshot_quota quota = fdri_snapshot_whole_quota();
    unlock_snapshots(&old);
    if (it) it();
    if (settle) settle(here);
    return quota;
}

/* Each snapshot gets a reason: a file without one is a live recording. Signals with handlers of the program are
 * blocked, because such a handler might leave by longjmp, fork, or end the process. */
int fdr_snapshot(const char *reason)
{
    sigset_t old;
    /* also 0 in a child made without atfork handlers */
    if (!fdri_atomic_load_relaxed(&fdr_switch_.on)) return -ESRCH;
    /* signals first, and restored before the rest: a handler that leaves by longjmp finds the thread as it was */
    fdri_system_signals_block_handled(&old, fdri_trigger_handles);
    struct fdri_system_cancel cancel = fdri_system_cancel_off();
    struct fdri_snapshot_quota quota = check_process((uint64_t)(uintptr_t)__builtin_frame_address(0));
    struct fdri_snapshot_why why = fdri_snapshot_because(FDRI_ARENA_REASON_API, reason && reason[0] ? reason : "api");
    int result = fdri_snapshot_take(&why, &quota, true);
    fdri_system_cancel_defer(cancel);
    fdri_system_signals_restore(&old);
    fdri_system_cancel_restore(cancel);
    return result;
}
int fdri_snapshot_final(const char *reason)
{
    struct fdri_snapshot_why why = fdri_snapshot_because(FDRI_ARENA_REASON_FINALIZE, reason);
    return fdri_snapshot_take(&why, NULL, false); /* a snapshot under way lacks the end of the recording */
}

/* ---- the path of the newest one, in memory of the asking thread: the dumper may write another one at any time ---- */

static pthread_key_t path_key;
static bool have_key;
static void make_key(void) { have_key = pthread_key_create(&path_key, free) == 0; }

/* NULL: no memory. */
static char *own_path(void)
{
    static pthread_once_t made = PTHREAD_ONCE_INIT;
    pthread_once(&made, make_key);
    char *own = have_key ? pthread_getspecific(path_key) : NULL;
    if (own || !have_key || !(own = malloc(FDRI_SNAPSHOT_PATH_MAX))) return own;
    if (!pthread_setspecific(path_key, own)) return own;
    free(own);
    return NULL;
}

const char *fdr_last_snapshot(void)
{
    sigset_t old;
    fdri_system_signals_block(&old); /* a handler that forks waits for the lock */
    struct fdri_system_cancel cancel = fdri_system_cancel_off();
    char *own = own_path();
    if (own) {
        pthread_mutex_lock(&lock);
        memcpy(own, last_path, FDRI_SNAPSHOT_PATH_MAX);
        pthread_mutex_unlock(&lock);
    }
    fdri_system_cancel_defer(cancel);
    fdri_system_signals_restore(&old);
    fdri_system_cancel_restore(cancel);
    return own ? own : "";
}

/* ---- begin and end ---- */

void fdri_snapshot_take_begin(const struct fdri_export_view *view)
{
    pthread_mutex_lock(&lock);
    fdri_snapshot_view = *view;
    fdri_snapshot_files_reset();
    active = true;
    pthread_mutex_unlock(&lock);
}

void fdri_snapshot_take_end(void)
{
    pthread_mutex_lock(&lock);
    abandon_own(0, true);
    while (running) pthread_cond_wait(&done, &lock);
    active = false;
    uint64_t unsaid = fdri_snapshot_files_unsaid();
    pthread_mutex_unlock(&lock);
    if (unsaid)
        fdri_text_message("%" PRIu64 " more snapshot%s failed for a reason reported before", unsaid,
                          unsaid > 1 ? "s" : "");
}

void fdri_snapshot_take_fork(int phase)
{
    if (phase >= 2) fdri_snapshot_files_fork(fdri_snapshot_is_here());
    if (phase == 3) {
        pthread_mutex_init(&lock, NULL);
        return;
    }
    if (phase == 0) {
        pthread_mutex_lock(&lock);
        return;
    }
    if (phase == 2) { /* the child has no recording to copy */
        active = running = false;
        last_path[0] = 0;
        pthread_cond_init(&done, NULL);
    }
    pthread_mutex_unlock(&lock);
}
