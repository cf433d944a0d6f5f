/* SPDX-License-Identifier: MIT */
/* Threads come and go. Attaching happens once per thread and recording, on its first event; it is the only moment
 * that may take a lock (liburcu's registry). All signals are blocked meanwhile, so a handler never sees half of it. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/recorder.h"

__thread uint32_t fdri_inside;
static pthread_key_t exit_key;
static bool have_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void) { have_key = pthread_key_create(&exit_key, fdri_detach) == 0; }

void fdri_set_soft(struct fdri_thread *t)
{
    struct fdr_location *l = t->loc;
    uint32_t kept = l->level_blocks * FDR_LEVELS_PER_BLOCK;
    t->kept_levels = kept;
    bool slow = t->fresh || !t->ticks || l->pause || l->overflow || (l->flags & FDR_LOCATION_STOPPED);
    t->soft = slow ? 0 : t->depth_limit < kept ? t->depth_limit : kept;
    t->counted_from = slow ? UINT32_MAX : t->depth_limit;
}

bool fdri_grow_levels(struct fdri_thread *t)
{
    struct fdr_location *l = t->loc;
    if (l->level_blocks >= FDR_LEVEL_BLOCKS_MAX || t->no_more_levels) return false;
    uint32_t off = fdri_meta(t, FDR_META_LEVELS, sizeof(struct fdr_levels_block));
    if (!off) return !(t->no_more_levels = true);
    l->levels_off[l->level_blocks] = off;
    fdr_signal_fence();
    l->level_blocks++;
    fdri_set_soft(t);
    return true;
}

static void set_clock(struct fdri_thread *t, bool ns)
{
    struct fdri_recorder *r = &fdri_rec;
    t->ticks = r->ticks && !ns;
    if (!t->ticks) t->loc->flags |= FDR_LOCATION_NS;
    t->shift = r->shift;
    t->to_ns = t->ticks ? r->tick_to_ns : 1ull << 32;
    static const uint64_t edge_ns[3] = {256, 4096, 262144};
    for (int i = 0; i < 3; i++) {
        uint64_t full = t->ticks ? fdri_ns_to_ticks(edge_ns[i]) : edge_ns[i];
        t->edge[i] = fdr_max(full >> r->shift, 1); /* zero-length calls always lie in the shortest band */
    }
    t->min_ticks = t->ticks ? fdri_ns_to_ticks(r->set.min_duration_ns) : r->set.min_duration_ns;
}

static void name_location(struct fdr_location *l, bool lane)
{
    char name[20] = "";
    prctl(PR_GET_NAME, name);
    memcpy(l->name, name, 16);
    if (lane) strcat(l->name, " (signals)");
}

static void link_location(struct fdr_superblock *s, struct fdr_location *l, uint32_t off)
{
    uint32_t first = fdr_load_relaxed(&s->location_first);
    do {
        l->next = first;
    } while (!fdr_cas_acq_rel_u32(&s->location_first, &first, off)); /* R:location - pairs with A:location in export/ */
}

static bool build(struct fdri_thread *t, bool lane)
{
    struct fdri_recorder *r = &fdri_rec;
    struct fdr_superblock *s = r->arena.super;
    uint32_t off = fdri_meta_take(&r->arena, FDR_META_LOCATION, sizeof(struct fdr_location), UINT32_MAX);
    uint32_t zero = off ? fdri_meta_take(&r->arena, FDR_META_LEVELS, 64 + sizeof(struct fdr_level), UINT32_MAX) : 0;
    if (!zero) return false;
    struct fdr_location *l = fdri_at(&r->arena, off);
    l->id = fdr_add_relaxed(&s->location_count, 1u);
    l->head.location = l->id;
    ((struct fdr_meta_head *)fdri_at(&r->arena, zero))->location = l->id;
    l->level0_off = zero + 64;
    l->tid = (uint32_t)syscall(SYS_gettid);
    l->parent = lane ? fdri_self.loc->id : UINT32_MAX;
    unsigned cpu, node; /* the kernel's word: libnuma allocates, and this may be a signal handler */
    l->numa_node = getcpu(&cpu, &node) == 0 ? node : 0;
    name_location(l, lane);
    t->loc = l;
    t->base = r->arena.base;
    t->top = fdri_at(&r->arena, l->level0_off);
    t->depth_limit = r->set.depth;
    t->victim = NULL;
    t->mark = NULL;
    t->no_more_levels = false;
    t->untimed = 0;
    set_clock(t, false);
    t->fresh = true;
    l->flags |= FDR_LOCATION_LIVE | (lane ? (uint32_t)FDR_LOCATION_LANE : 0u);
    l->pause = !lane && fdri_rules_phases(); /* until a phase begins */
    if (!fdri_rows_start(t) || !fdri_grow_levels(t)) {
        l->head.kind = FDR_META_FREE; /* never attached: no reader may find it */
        return false;
    }
    fdri_set_soft(t);
    link_location(s, l, off);
    return true;
}

static bool attach(struct fdri_thread *t, uint32_t number, bool lane)
{
    if (t->dead_for == number || fdri_inside) return false;
    if (fdr_load_acquire(&fdr_switch_.on) != number) return false; /* A:on - pairs with R:on in start.c */
    fdri_inside++;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool ok = build(t, lane);
    if (!ok) {
        t->dead_for = number;
        static unsigned said;
        fdr_add_relaxed(&fdri_rec.arena.super->lost_locations, 1u);
        if (fdri_once(&said))
            fdri_say("the buffer of %llu bytes has no room for one more thread; its events are only counted "
                     "(FDR_BUFFER makes it larger)", (unsigned long long)fdri_rec.arena.super->arena_bytes);
    } else if (!lane) {
        pthread_once(&once, make_key);
        if (have_key) pthread_setspecific(exit_key, t);
        fdri_address_thread(true);
    }
    fdr_signal_fence();
    if (ok) t->recording = number;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    fdri_inside--;
    return ok;
}

void fdri_detach(void *unused)
{
    (void)unused;
    struct fdri_thread *t = &fdri_self;
    uint32_t on = fdr_load_relaxed(&fdr_switch_.on);
    if (!t->recording) return;
    if (t->recording == on) {
        struct fdri_thread *both[2] = {t, &fdri_lane};
        for (int i = 0; i < 2; i++) {
            if (both[i]->recording != on) continue;
            struct fdr_location *l = both[i]->loc;
            l->end_tick = fdr_max(l->last_tick >> both[i]->shift, 1);
            l->flags &= ~(uint32_t)FDR_LOCATION_LIVE;
        }
    }
    t->recording = fdri_lane.recording = 0;
    fdri_rewind_release(t);
    fdri_address_thread(false);
}

/* An operation that a handler interrupted and then left by longjmp never cleared `busy`. If this frame lies above the
 * interrupted one, or beside it as when a loop calls again, and not on an alternate stack, that operation is gone: what
 * a handler does lies below by at least the frame the kernel pushed for it, which is over a kilobyte. What it left half-done is sealed away. */
static bool abandoned(struct fdri_thread *t, uint64_t here)
{
    struct fdr_location *l = t->loc;
    stack_t alternate;
    if (here + 768 <= l->busy || (sigaltstack(NULL, &alternate) == 0 && (alternate.ss_flags & SS_ONSTACK))) return false;
    l->abandoned++;
    for (uint32_t off = l->parts_first; off; off = ((struct fdr_part *)fdri_off(t, off))->next)
        fdri_part_seal(&fdri_rec.arena, fdri_off(t, off));
    t->top = fdri_level(t, l->depth);
    t->untimed = 0;
    for (uint32_t d = 1; d <= l->depth; d++) t->untimed += fdri_level(t, d)->flags & FDR_LEVEL_UNTIMED;
    return true;
}

static struct fdri_thread *claim(struct fdri_thread *t, uint64_t here, enum fdri_domain domain)
{
    if (t->loc->busy && !abandoned(t, here)) return NULL;
    fdr_store_relaxed(&t->loc->busy, here);
    fdr_signal_fence();
    if (t->fresh && domain != FDRI_NO_EVENT) {
        if (domain == FDRI_NS) set_clock(t, true);
        else t->loc->start_tick = fdri_tick_live(t) >> t->shift;
        t->fresh = false;
        fdri_set_soft(t);
    }
    return t;
}

bool fdri_attached(void)
{
    uint32_t on = fdr_load_relaxed(&fdr_switch_.on);
    if (on && (fdri_self.recording == on || attach(&fdri_self, on, false))) return true;
    if (on) fdr_add_relaxed(&fdri_rec.arena.super->lost_unattached, 1u);
    return false;
}

struct fdri_thread *fdri_begin(enum fdri_domain domain)
{
    uint32_t on = fdr_load_relaxed(&fdr_switch_.on);
    if (!on) return NULL;
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    struct fdri_thread *t = &fdri_self;
    if (t->recording == on || attach(t, on, false)) {
        if (claim(t, here, domain)) return t;
        struct fdri_thread *lane = &fdri_lane;
        if ((lane->recording == on || attach(lane, on, true)) && claim(lane, here, domain)) return lane;
    }
    fdr_add_relaxed(&fdri_rec.arena.super->lost_unattached, 1u);
    return NULL;
}

uint64_t fdri_tick_at(struct fdri_thread *t, uint64_t time_ns)
{
    const uint64_t far = 1ull << 62; /* 146 years; keeps every sum of times in the codec's range */
    struct fdri_recorder *r = &fdri_rec;
    uint64_t tick = fdr_min(time_ns, far);
    if (t->ticks) {
        uint64_t since = tick > r->start.monotonic_ns ? tick - r->start.monotonic_ns : 0;
        tick = fdr_min(r->start.tick + fdri_ns_to_ticks(since), far);
    }
    return fdri_clamp(t->loc, tick);
}

void fdr_thread_name(const char *name)
{
    struct fdri_thread *t = fdri_begin(FDRI_NO_EVENT);
    if (!t) return;
    strncpy(t->loc->name, name ? name : "", sizeof t->loc->name - 1);
    fdri_end(t);
}

static void set_pause(bool begin)
{
    struct fdri_thread *t = fdri_begin(FDRI_NO_EVENT);
    if (!t) return;
    if (begin) t->loc->pause++;
    else if (t->loc->pause) t->loc->pause--;
    fdri_set_soft(t);
    fdri_end(t);
}
void fdr_pause(void) { set_pause(true); }
void fdr_resume(void) { set_pause(false); }
