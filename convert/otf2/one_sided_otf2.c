/* SPDX-License-Identifier: MIT */
/* One-sided communication: user events fdr.rma as windows, operations and their completion. A synchronization completes
 * the operations before it: at their origin, or at the target, too. Each window numbers its synchronizations.
 * One may be missing, because it was given back or came from another thread. Then it is not known when the operations
 * before it were complete, or which lock an unlock ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "convert/otf2/otf2.h"

/* Fields of the event, and values of the first one: FORMAT.md, 9.4. */
enum { WHAT, WINDOW, TARGET, SENT, RECEIVED, COMPLETING, REQUEST, FIELDS };
enum {
    PUT = 1,
    GET,
    ACCUMULATE,
    COMPARE_AND_SWAP = 6,
    COMPLETED = 8,
    CREATED,
    FREED,
    LOCK,
    LOCK_SHARED,
    LOCK_ALL,
    WIN_SYNC
};
enum { FENCE = 16, COMPLETE, UNLOCK, UNLOCK_ALL, FLUSH_ALL = 21, FLUSH_LOCAL_ALL = 23 };

enum { MOST = 4096, MOST_LOCKS = 1024 };
struct operation {
    uint32_t window, target; /* world rank */
    uint64_t number;         /* matches it with its completion */
    uint64_t completing;     /* number of the next synchronization */
    uint64_t request;        /* 0: none; else its completion is that at the origin */
    bool at_origin;          /* it is complete there */
    bool ended;              /* no synchronization says more about it */
};
struct lock {
    uint32_t window, target; /* UINT32_MAX: all */
    uint64_t completing;     /* number of the next synchronization */
    OTF2_LockType type;
    bool acquired;
};
struct window {
    const struct fdr_comm_info *info;
    uint32_t comm;
    bool created;        /* somewhere in the archive */
    uint64_t created_by; /* 1 + number of the location, 0: none */
};
struct fdri_otf2_one_sided {
    struct fdri_convert_interned numbers; /* of windows, by communicator */
    struct window *window;
    size_t room;
    struct operation open[MOST]; /* of the location under way, the oldest first */
    uint32_t count;
    uint64_t newest;              /* number of an operation */
    struct lock lock[MOST_LOCKS]; /* the same of locks */
    uint32_t locks;
};

bool fdri_otf2_one_sided_open(struct fdri_otf2 *o)
{
    o->one_sided = calloc(1, sizeof *o->one_sided);
    return o->one_sided != NULL;
}

void fdri_otf2_one_sided_close(struct fdri_otf2 *o)
{
    if (!o->one_sided) return;
    fdri_convert_interned_free(&o->one_sided->numbers);
    free(o->one_sided->window);
    free(o->one_sided);
}

void fdri_otf2_one_sided_begin(struct fdri_otf2 *o) { o->one_sided->count = o->one_sided->locks = 0; }

/* ---- windows ---- */

static bool has_room(struct fdri_otf2_one_sided *s)
{
    if (s->numbers.count < s->room) return true;
    size_t room = s->room ? s->room * 2 : 16;
    struct window *more = realloc(s->window, room * sizeof *more);
    if (more) s->window = more, s->room = room;
    return more != NULL;
}

/* UINT32_MAX: no memory. */
static uint32_t window_of(struct fdri_otf2 *o, const struct fdr_comm_info *info)
{
    struct fdri_otf2_one_sided *s = o->one_sided;
    bool is_new;
    uint32_t comm = fdri_otf2_comm(o, info->id, 0, FDRI_OTF2_TOGETHER, NULL);
    uint32_t number = o->error || !has_room(s) ? UINT32_MAX
                                               : fdri_convert_intern(&s->numbers, &comm, sizeof comm, &is_new);
    if (number == UINT32_MAX) o->error = o->error ? o->error : -ENOMEM;
    else if (is_new) s->window[number] = (struct window){.info = info, .comm = comm};
    return number;
}

void fdri_otf2_windows(struct fdri_otf2 *o)
{
    for (uint32_t i = 0; i < o->one_sided->numbers.count; i++) {
        const struct window *w = &o->one_sided->window[i];
        fdri_otf2_check(o, OTF2_GlobalDefWriter_WriteRmaWin(o->def, i, fdri_otf2_string(o, w->info->name), w->comm,
                                                            w->created ? OTF2_RMA_WIN_FLAG_CREATE_DESTROY_EVENTS
                                                                       : OTF2_RMA_WIN_FLAG_NONE));
    }
}

/* Its end is written if its begin is on the same location. */
static void created_or_freed(struct fdri_otf2 *o, const struct fdr_read_event *e, uint32_t window)
{
    struct window *w = &o->one_sided->window[window];
    uint64_t here = o->process[o->at].first + e->location + 1;
    if (e->field[COMPLETING] == UINT64_MAX) return; /* it may be several */
    if (e->field[WHAT] == CREATED) {
        w->created = true, w->created_by = here;
        fdri_otf2_check(o, OTF2_EvtWriter_RmaWinCreate(o->writer, o->list, e->time_ns, window));
    } else if (w->created_by == here) {
        w->created_by = 0;
        fdri_otf2_check(o, OTF2_EvtWriter_RmaWinDestroy(o->writer, o->list, e->time_ns, window));
    }
}

/* ---- operations ---- */

static void add(struct fdri_otf2_one_sided *s, const struct fdr_read_event *e, uint32_t window)
{
    if (e->field[COMPLETING] == UINT64_MAX) return;
    if (s->count == MOST) memmove(s->open, s->open + MOST / 2, (s->count = MOST / 2) * sizeof *s->open);
    s->open[s->count++] = (struct operation){.window = window,
                                             .target = (uint32_t)e->field[TARGET],
                                             .number = s->newest,
                                             .completing = e->field[COMPLETING],
                                             .request = e->field[REQUEST]};
}

static bool operation(struct fdri_otf2 *o, const struct fdr_read_event *e, uint32_t window)
{
    uint64_t sent = e->field[SENT], received = e->field[RECEIVED], time = e->time_ns, what = e->field[WHAT], number;
    uint32_t place;
    if (!fdri_otf2_place(o, o->one_sided->window[window].comm, (uint32_t)e->field[TARGET], &place)) return false;
    number = ++o->one_sided->newest;
    OTF2_RmaAtomicType type = what == ACCUMULATE         ? OTF2_RMA_ATOMIC_TYPE_ACCUMULATE
                              : what == COMPARE_AND_SWAP ? OTF2_RMA_ATOMIC_TYPE_COMPARE_AND_SWAP
                                                         : OTF2_RMA_ATOMIC_TYPE_FETCH_AND_ACCUMULATE;
    fdri_otf2_check(o, what == PUT   ? OTF2_EvtWriter_RmaPut(o->writer, o->list, time, window, place, sent, number)
                       : what == GET ? OTF2_EvtWriter_RmaGet(o->writer, o->list, time, window, place, received, number)
                                     : OTF2_EvtWriter_RmaAtomic(o->writer, o->list, time, window, place, type, sent,
                                                                received, number));
    add(o->one_sided, e, window);
    return true;
}

/* ---- locks ---- */

static uint32_t place_of_lock(const struct fdri_otf2 *o, const struct lock *l)
{
    uint32_t place;
    bool one = l->target != UINT32_MAX && fdri_otf2_place(o, o->one_sided->window[l->window].comm, l->target, &place);
    return one ? place : OTF2_UNDEFINED_UINT32; /* all processes of the window */
}

/* MPI_Win_lock may return before the process has the lock. False: it is not known whose lock that is. */
static bool lock_requested(struct fdri_otf2 *o, const struct fdr_read_event *e, uint32_t window)
{
    struct fdri_otf2_one_sided *s = o->one_sided;
    uint32_t place;
    bool all = e->field[WHAT] == LOCK_ALL;
    struct lock l = {.window = window, .target = (uint32_t)e->field[TARGET], .completing = e->field[COMPLETING]};
    l.type = e->field[WHAT] == LOCK ? OTF2_LOCK_EXCLUSIVE : OTF2_LOCK_SHARED;
    if (!all && (l.target == UINT32_MAX || !fdri_otf2_place(o, s->window[window].comm, l.target, &place))) return false;
    if (e->field[COMPLETING] == UINT64_MAX) return true; /* it may be one of several windows */
    fdri_otf2_check(
        o, OTF2_EvtWriter_RmaRequestLock(o->writer, o->list, e->time_ns, window, place_of_lock(o, &l), 0, l.type));
    if (s->locks == MOST_LOCKS) memmove(s->lock, s->lock + MOST_LOCKS / 2, (s->locks /= 2) * sizeof *s->lock);
    s->lock[s->locks++] = l;
    return true;
}

static void acquired(struct fdri_otf2 *o, const struct fdr_read_event *e, struct lock *l)
{
    if (!l->acquired)
        fdri_otf2_check(o, OTF2_EvtWriter_RmaAcquireLock(o->writer, o->list, e->time_ns, l->window, place_of_lock(o, l),
                                                         0, l->type));
    l->acquired = true;
}

/* An operation is complete at its target, so the process has the lock of that. */
static void acquired_by(struct fdri_otf2 *o, const struct fdr_read_event *e, const struct operation *p)
{
    struct fdri_otf2_one_sided *s = o->one_sided;
    for (uint32_t i = 0; i < s->locks; i++) {
        struct lock *l = &s->lock[i];
        bool missing = l->completing != e->field[COMPLETING];
        if (l->window == p->window && l->target == p->target && !missing) acquired(o, e, l);
    }
}

/* False: it is over, or a synchronization is missing, which may have ended it. */
static bool still_locked(struct fdri_otf2 *o, const struct fdr_read_event *e, struct lock *l)
{
    uint64_t what = e->field[WHAT];
    bool all = l->target == UINT32_MAX;
    if (l->completing++ != e->field[COMPLETING]) return false;
    if (what != (all ? UNLOCK_ALL : UNLOCK) || (!all && e->field[TARGET] != l->target)) return true;
    acquired(o, e, l);
    fdri_otf2_check(o,
                    OTF2_EvtWriter_RmaReleaseLock(o->writer, o->list, e->time_ns, l->window, place_of_lock(o, l), 0));
    return false;
}

static void unlock(struct fdri_otf2 *o, const struct fdr_read_event *e, uint32_t window)
{
    struct fdri_otf2_one_sided *s = o->one_sided;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->locks; i++)
        if (s->lock[i].window != window || still_locked(o, e, &s->lock[i])) s->lock[kept++] = s->lock[i];
    s->locks = kept;
}

/* Of the process's own copies of the window. */
static void memory_synchronized(struct fdri_otf2 *o, const struct fdr_read_event *e, uint32_t window)
{
    uint32_t place;
    if (fdri_otf2_place(o, o->one_sided->window[window].comm, (uint32_t)e->field[TARGET], &place))
        fdri_otf2_check(
            o, OTF2_EvtWriter_RmaSync(o->writer, o->list, e->time_ns, window, place, OTF2_RMA_SYNC_TYPE_MEMORY));
}

/* ---- their completion ---- */

static void complete_at_origin(struct fdri_otf2 *o, const struct fdr_read_event *e, struct operation *p)
{
    if (!p->at_origin)
        fdri_otf2_check(o,
                        OTF2_EvtWriter_RmaOpCompleteNonBlocking(o->writer, o->list, e->time_ns, p->window, p->number));
    p->at_origin = true;
}

/* MPI_Win_fence and MPI_Win_complete return when the origin is ready, and end the epoch. */
static void meet(struct fdri_otf2 *o, const struct fdr_read_event *e, struct operation *p)
{
    uint64_t what = e->field[WHAT];
    bool one_target = e->field[TARGET] != UINT32_MAX;
    if (p->completing++ != e->field[COMPLETING]) {
        p->ended = true;
        return;
    }
    if (one_target && e->field[TARGET] != p->target) return;
    if (!p->request) complete_at_origin(o, e, p);
    if (what >= UNLOCK && what <= FLUSH_ALL) {
        acquired_by(o, e, p);
        fdri_otf2_check(o, OTF2_EvtWriter_RmaOpCompleteRemote(o->writer, o->list, e->time_ns, p->window, p->number));
    }
    p->ended = what <= FLUSH_ALL;
}

static void remove_done(struct fdri_otf2_one_sided *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->open[i].ended || (s->open[i].request && !s->open[i].at_origin)) s->open[kept++] = s->open[i];
    s->count = kept;
}

static void synchronization(struct fdri_otf2 *o, const struct fdr_read_event *e, uint32_t window)
{
    struct fdri_otf2_one_sided *s = o->one_sided;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->open[i].window == window && !s->open[i].ended) meet(o, e, &s->open[i]);
    remove_done(s);
    unlock(o, e, window);
    if (e->field[WHAT] != FENCE) return;
    fdri_otf2_check(o, OTF2_EvtWriter_RmaGroupSync(o->writer, o->list, e->time_ns, OTF2_RMA_SYNC_LEVEL_MEMORY, window,
                                                   fdri_otf2_group(o, s->window[window].comm)));
}

static void request_completed(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    struct fdri_otf2_one_sided *s = o->one_sided;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->open[i].request == e->field[REQUEST]) complete_at_origin(o, e, &s->open[i]);
    remove_done(s);
}

bool fdri_otf2_one_sided_event(struct fdri_otf2 *o, const struct fdr_read_event *e)
{
    uint64_t what = e->field_count == FIELDS ? e->field[WHAT] : 0;
    if (!what || what > FLUSH_LOCAL_ALL || e->field[WINDOW] > UINT32_MAX) return false;
    const struct fdr_comm_info *info = fdr_comm_info(o->process[o->at].file, (uint32_t)e->field[WINDOW]);
    if (!fdri_otf2_has_members(info)) return false;
    uint32_t window = window_of(o, info);
    if (o->error) return true;
    if (what <= COMPARE_AND_SWAP) return operation(o, e, window);
    if (what == CREATED || what == FREED) created_or_freed(o, e, window);
    else if (what == COMPLETED) request_completed(o, e);
    else if (what >= LOCK && what <= LOCK_ALL) return lock_requested(o, e, window);
    else if (what == WIN_SYNC) memory_synchronized(o, e, window);
    else if (what >= FENCE) synchronization(o, e, window);
    return true;
}
