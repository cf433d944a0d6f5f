/* SPDX-License-Identifier: MIT */
/* Which threads that stand are idle: collects what policies/idle.c decides by. It knows the places where threads have
 * waited, by their open regions. A place is learned at the looks of the watchdog: threads that work come back to it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/racy.h"
#include "base/system/loader.h"
#include "base/system/procfs.h"
#include "base/system/task_state.h"
#include "base/text/glob.h"
#include "export/snapshot/snapshot.h"
#include "export/trigger/trigger.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "policies/idle.h"

/* ---- functions of the C library that wait for a futex ---- */

enum { FUNCTIONS = 32, WORDS = 24 };
static struct {
    uint64_t from, to;
    enum fdri_system_wait wait;
    bool mutex;
} function[FUNCTIONS];
static uint32_t function_count;

static void add_function(void *at, const char *name)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (!at || function_count == FUNCTIONS || !dladdr1(at, &info, (void **)(void *)&symbol, RTLD_DL_SYMENT) || !symbol)
        return;
    uint64_t from = (uint64_t)(uintptr_t)at;
    for (uint32_t i = 0; i < function_count; i++)
        if (function[i].from == from) return;
    function[function_count].from = from;
    function[function_count].to = from + symbol->st_size;
    function[function_count].wait = fdri_system_wait_in(name);
    function[function_count++].mutex = strstr(name, "_mutex_") != NULL;
}

/* Another library may stand before the C library's functions, so both are taken. */
static void find_functions(void)
{
    static const char *const names[] = {"pthread_cond_wait",       "pthread_cond_timedwait",
                                        "pthread_cond_clockwait",  "pthread_mutex_lock",
                                        "pthread_mutex_timedlock", "pthread_mutex_clocklock",
                                        "pthread_rwlock_rdlock",   "pthread_rwlock_wrlock",
                                        "pthread_barrier_wait",    "cnd_wait",
                                        "cnd_timedwait",           "mtx_lock"};
    if (!fdri_system_loader_works()) return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        add_function(dlsym(RTLD_NEXT, names[i]), names[i]);
        add_function(dlsym(RTLD_DEFAULT, names[i]), names[i]);
    }
}

/* The wait by the innermost of these functions on the stack. */
static enum fdri_system_wait wait_by_stack(const struct fdri_system_call *c, bool *mutex)
{
    uint64_t word[WORDS];
    size_t words = WORDS;
    while (words && !fdri_system_read_memory(0, c->sp, word, words * sizeof word[0])) words /= 2;
    for (size_t i = 0; i < words; i++)
        for (uint32_t f = 0; f < function_count; f++) {
            if (word[i] <= function[f].from || word[i] > function[f].to) continue;
            *mutex = function[f].mutex;
            return function[f].wait;
        }
    return FDRI_SYSTEM_WAIT_UNKNOWN;
}

static struct fdri_trigger_wait wait_of(uint32_t tid)
{
    bool mutex = false;
    struct fdri_system_call c;
    fdri_system_call_read(0, tid, &c);
    struct fdri_trigger_wait w = {.wait = fdri_system_wait_of(0, &c)};
    if (!fdri_system_is_futex(&c)) return w;
    enum fdri_system_wait by_stack = wait_by_stack(&c, &mutex);
    w.wait = fdri_system_wait_by_both(0, &c, by_stack, mutex, &w.owner);
    return w;
}

/* ---- places ---- */

enum { PLACES = 512, PATH = 64 };
static struct place {
    uint64_t path; /* a hash of the open regions, 0: no entry */
    uint32_t seen; /* waits that were seen there, of different threads or with events in between */
    bool home;     /* a thread went there when it began */
} places[PLACES];
static uint32_t place_count;

FDRI_RACY static const struct fdri_arena_level *level_of(const struct fdri_arena_location *l, uint32_t depth)
{
    const struct fdri_arena_levels_block *b = (const void *)(fdri_snapshot_view.base +
                                                             l->levels_off[fdri_arena_level_block(depth)]);
    return &b->level[fdri_arena_level_entry(depth)];
}

FDRI_RACY static uint32_t open_calls(const struct fdri_arena_location *l)
{
    uint32_t depth = fdri_atomic_load_acquire(&l->depth); /* A:frame */
    return depth <= fdri_arena_levels_in(l->level_blocks) ? depth : 0;
}

/* Of a deep stack the innermost regions. */
FDRI_RACY static uint64_t path_of(const struct fdri_arena_location *l, uint32_t depth)
{
    uint64_t hash = depth;
    for (uint32_t d = depth > PATH ? depth - PATH + 1 : 1; d <= depth; d++)
        hash = (hash ^ level_of(l, d)->region) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
    return hash ? hash : 1;
}

/* The entry of this path, or an empty one. */
static struct place *place_of(uint64_t path)
{
    uint32_t i = (uint32_t)(path >> 32);
    while (places[i % PLACES].path && places[i % PLACES].path != path) i++;
    return &places[i % PLACES];
}

/* ---- the view of a thread ---- */

/* Calls of the region that the thread has ended; 0 also if memory had no row. */
FDRI_RACY static uint64_t ended_calls(const struct fdri_arena_location *l, uint32_t region)
{
    uint32_t key = (uint32_t)FDRI_ARENA_DEF_REGION << 24 | region,
             off = fdri_atomic_load_acquire(&l->rows_table_off); /* A:rows */
    const struct fdri_arena_rowtable *table = (const void *)(fdri_snapshot_view.base + off);
    if (!off || !table->log2 || table->log2 > 24) return 0;
    const uint32_t *slot = (const void *)(table + 1);
    uint32_t slots = 1u << table->log2, i = key * 0x9E3779B1u >> (32 - table->log2);
    for (uint32_t n = 0; n < slots; n++, i++) {
        off = fdri_atomic_load_acquire(&slot[i & (slots - 1)]); /* A:rows */
        if (!off) return 0;
        const struct fdri_arena_row *r = (const void *)(fdri_snapshot_view.base + off);
        if (r->key == key) return r->calls + r->untimed;
    }
    return 0;
}

FDRI_RACY static void add_begin(struct fdri_policies_waiter *w, const struct fdri_arena_location *l)
{
    const struct fdri_arena_superblock *s = (const void *)fdri_snapshot_view.base;
    double ticks = (double)(fdri_atomic_load_relaxed(&l->last_tick) - (l->start_tick << s->shift));
    if (!s->ticks_per_second) return;
    w->has_begin = true;
    w->calls = fdri_snapshot_presented_of(l);
    w->waits_from_ns = ticks > 0 ? (uint64_t)(ticks * 1e9 / (double)s->ticks_per_second) : 0;
}

/* A thread has moved since the last look. If it waits now, it has come to this place once more. */
FDRI_RACY void fdri_trigger_idle_learn(const struct fdri_arena_location *l)
{
    uint32_t depth = open_calls(l);
    uint64_t path = path_of(l, depth);
    struct place *p = place_of(path);
    if (!depth || p->home || p->seen >= FDRI_POLICIES_OFTEN || (!p->path && place_count == PLACES / 2)) return;
    struct fdri_policies_waiter w = {.wait = wait_of(l->tid).wait};
    if (w.wait < FDRI_SYSTEM_WAIT_CONDITION || w.wait == FDRI_SYSTEM_WAIT_OTHER) return;
    add_begin(&w, l);
    place_count += !p->path;
    p->path = path;
    p->home = fdri_policies_waits_from_begin(&w);
    p->seen++;
}

static bool is_ignored(const char *name)
{
    char pattern[sizeof fdri_snapshot_view.watchdog_ignore];
    for (const char *p = fdri_snapshot_view.watchdog_ignore; *p;) {
        size_t n = strcspn(p, ",");
        memcpy(pattern, p, n);
        pattern[n] = 0;
        if (n && fdri_text_glob(pattern, name)) return true;
        p += n + (p[n] == ',');
    }
    return false;
}

/* FDR_WATCHDOG_IGNORE holds for the name in the recording and for the kernel's name. */
FDRI_RACY static bool ignored(const struct fdri_arena_location *l)
{
    _Alignas(8) char name[sizeof l->name];
    char comm[32];
    if (!fdri_snapshot_view.watchdog_ignore[0]) return false;
    fdri_racy_copy(name, l->name, sizeof name);
    name[sizeof name - 1] = 0;
    fdri_system_task_read(0, l->tid, "comm", comm, sizeof comm);
    comm[strcspn(comm, "\n")] = 0;
    return is_ignored(name) || is_ignored(comm);
}

FDRI_RACY bool fdri_trigger_is_idle(const struct fdri_arena_location *l, bool excluded, struct fdri_trigger_wait *wait)
{
    char status[4096];
    uint32_t depth = open_calls(l);
    *wait = wait_of(l->tid);
    if (!depth) return false;
    if (ignored(l)) return true;
    struct fdri_policies_waiter w = {.wait = wait->wait, .excluded = excluded};
    const struct place *p = place_of(path_of(l, depth));
    w.seen_waiting = p->home ? FDRI_POLICIES_OFTEN : p->seen;
    w.passed = ended_calls(l, level_of(l, depth)->region);
    fdri_system_task_read(0, l->tid, "status", status, sizeof status);
    w.blocked = fdri_system_task_waits(status);
    add_begin(&w, l);
    w.came_back = depth == 1 && w.calls ? w.calls - 1 : 0;
    return fdri_policies_is_idle(&w) == FDRI_POLICIES_YES;
}

void fdri_trigger_idle_start(void)
{
    memset(places, 0, sizeof places);
    place_count = 0;
    if (fdri_snapshot_view.watchdog_ns && !function_count) find_functions();
}
