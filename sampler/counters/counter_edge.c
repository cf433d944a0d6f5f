/* SPDX-License-Identifier: MIT */
/* Counters at the edges of chosen calls, read by the calling thread. The differences between enter and leave become one
 * user event "fdr.edges" inside of the call, just before its leave, with a field for each counter.
 *
 * A thread opens its counters at its first such call outside of signal handlers, because opening locks and allocates.
 * From then on an edge costs a system call for a group of perf events, and one for each further source. Two more block
 * signals meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/system/cancellation.h"
#include "base/fd/open_high.h"
#include "base/text/message.h"
#include "base/system/signal_mask.h"
#include "sampler/counters/counter_view.h"
#include "sampler/counters/monitor.h"

enum { EDGE_COUNTERS = 16, EDGE_DEPTH = 64 };

struct frame {
    uint32_t region, depth;
    uint64_t value[EDGE_COUNTERS];
};
/* The counters to read. It does not change while threads use it. */
struct plan {
    struct fdri_counters_panel panel;
    fdr_event_type event;
};
struct edge_thread {
    const struct plan *plan; /* of the open counters */
    uint32_t generation;     /* of the open counters */
    uint32_t frames;
    bool busy, broken;
    struct fdri_counters_handle handle[MONITOR_SOURCES];
    struct frame frame[EDGE_DEPTH];
    struct edge_thread *next, **link;
};

static struct plan plans[2]; /* alternate: a thread may still use the one of the previous recording */
static uint32_t generation;  /* odd: counters are read, by plan generation / 2 mod 2 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct edge_thread *all;
static pthread_key_t key;
static bool have_key;
static __thread struct edge_thread *mine;

/* ---- per thread ---- */

static void close_thread(struct edge_thread *t)
{
    for (uint32_t i = 0; i < MONITOR_SOURCES; i++) fdri_counters_handle_close(&t->handle[i]);
    t->frames = 0;
}

static void thread_ends(void *p)
{
    struct edge_thread *t = p;
    mine = NULL;
    pthread_mutex_lock(&lock);
    *t->link = t->next;
    if (t->next) t->next->link = t->link;
    close_thread(t);
    pthread_mutex_unlock(&lock);
    munmap(t, sizeof *t);
}

static void make_key(void) { have_key = pthread_key_create(&key, thread_ends) == 0; }

static struct edge_thread *new_thread(void)
{
    struct edge_thread *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED) return NULL;
    pthread_mutex_lock(&lock);
    t->next = all;
    t->link = &all;
    if (all) all->link = &t->next;
    all = t;
    pthread_mutex_unlock(&lock);
    pthread_setspecific(key, t);
    return t;
}

static void open_counters(struct edge_thread *t)
{
    static unsigned said;
    int e = 0;
    t->broken = false;
    const struct plan *p = t->plan;
    for (uint32_t i = 0; i < p->panel.readings && !e; i++)
        e = fdri_counters_handle_open(&t->handle[i], p->panel.reading[i].source, 0, p->panel.reading[i].wanted);
    if (!e) return;
    close_thread(t);
    t->broken = true;
    if (fdri_text_once(&said))
        fdri_text_message(
            "cannot open the counters at the edges of calls in a thread: %s%s; its calls have no readings",
            strerror(-e), e == -EMFILE ? " (a quarter of RLIMIT_NOFILE is in use)" : "");
}

/* This thread's open counters; NULL: none. mask: the thread's signals before all were blocked. */
static struct edge_thread *open_thread(const sigset_t *mask)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static __thread bool making;
    uint32_t now = fdri_atomic_load_acquire(&generation); /* A:edges */
    if (!(now & 1)) return NULL;
    if (mine && mine->busy) return NULL;
    if (FDRI_UNLIKELY(!mine || mine->generation != now) && (making || fdri_counters_in_handler(mask))) return NULL;
    if (FDRI_UNLIKELY(!mine)) {
        making = true;
        pthread_once(&once, make_key);
        mine = have_key ? new_thread() : NULL;
        making = false;
        if (!mine) return NULL;
    }
    struct edge_thread *t = mine;
    t->busy = true;
    fdri_atomic_signal_fence();
    if (FDRI_UNLIKELY(t->generation != now)) {
        close_thread(t);
        t->generation = now;
        t->plan = &plans[now / 2 % 2];
        open_counters(t);
    }
    if (!t->broken) return t;
    t->busy = false;
    return NULL;
}

static void report_thread(struct edge_thread *t)
{
    fdri_atomic_signal_fence();
    t->busy = false;
}

/* The program closed the provider's descriptors. The counters cannot be opened again, because the provider cannot give
 * up its set. */
static void note_lost_descriptors(struct edge_thread *t)
{
    static unsigned said;
    t->broken = true;
    if (fdri_text_once(&said))
        fdri_text_message("FDR_PAPI: the program closed the counters of a thread; its calls are not read any more");
}

static bool read_all(struct edge_thread *t, uint64_t *value)
{
    const struct plan *p = t->plan;
    for (uint32_t i = 0; i < p->panel.readings; i++) {
        const struct fdri_counters_reading *r = &p->panel.reading[i];
        uint64_t some[FDR_SOURCE_COUNTERS];
        int e = fdri_counters_handle_read(&t->handle[i], some);
        if (e == -EBADF && r->source == &fdri_counters_source_provided) note_lost_descriptors(t);
        else if (e == -EBADF) t->generation = 0; /* the program closed them; the next edge opens them again */
        if (e) return false;
        for (uint32_t rest = r->wanted; rest; rest &= rest - 1) {
            uint32_t which = (uint32_t)__builtin_ctz(rest);
            value[r->place[which]] = some[which];
        }
    }
    return true;
}

/* ---- edges ---- */

/* Drops calls that longjmp or an exception ended without a leave. */
static void drop_from(struct edge_thread *t, uint32_t depth)
{
    while (t->frames && t->frame[t->frames - 1].depth >= depth) t->frames--;
}

static uint64_t difference(enum fdr_type type, uint64_t to, uint64_t from)
{
    return type == FDR_F64 ? fdri_bits_of_double(fdri_bits_to_double(to) - fdri_bits_to_double(from)) : to - from;
}

static void edge_enter(uint32_t region, uint32_t depth, const sigset_t *mask)
{
    struct edge_thread *t = open_thread(mask);
    if (!t) return;
    drop_from(t, depth);
    if (t->frames < EDGE_DEPTH) {
        struct frame *f = &t->frame[t->frames];
        f->region = region;
        f->depth = depth;
        if (read_all(t, f->value)) t->frames++;
    }
    report_thread(t);
}

static void edge_leave(uint32_t region, uint32_t depth, const sigset_t *mask)
{
    uint64_t value[EDGE_COUNTERS];
    struct edge_thread *t = open_thread(mask);
    if (!t) return;
    drop_from(t, depth + 1);
    struct frame *f = t->frames ? &t->frame[t->frames - 1] : NULL;
    if (f && f->depth == depth && f->region == region) {
        bool good = read_all(t, value);
        t->frames--;
        for (uint32_t i = 0; good && i < t->plan->panel.count; i++)
            value[i] = difference(fdri_counters_type(t->plan->panel.choice[i]), value[i], f->value[i]);
        if (good) fdr_event(t->plan->event, value);
    }
    report_thread(t);
}

/* Blocks signals and cancellation around the edge. The thread must not be cancelled in a recorded call although files
 * are read; and no handler may leave by longjmp with counters half read. */
static void at_edge(void (*edge)(uint32_t region, uint32_t depth, const sigset_t *mask), uint32_t region,
                    uint32_t depth)
{
    sigset_t mask;
    uint32_t now = fdri_atomic_load_relaxed(&generation);
    if (!(now & 1) || (mine && mine->broken && mine->generation == now)) return; /* nothing to read: no system call */
    fdri_system_signals_block(&mask);
    struct fdri_system_cancel cancel = fdri_system_cancel_off();
    edge(region, depth, &mask);
    fdri_system_cancel_defer(cancel);
    fdri_system_signals_restore(&mask);
    fdri_system_cancel_restore(cancel);
}

void fdri_counters_edge_enter(uint32_t region, uint32_t depth) { at_edge(edge_enter, region, depth); }
void fdri_counters_edge_leave(uint32_t region, uint32_t depth) { at_edge(edge_leave, region, depth); }

/* ---- start and stop ---- */

static void choose_sources(struct plan *p, const char *list)
{
    struct fdri_counters_choice choice[EDGE_COUNTERS];
    char missing[900];
    size_t n = fdri_counters_choose(list, true, choice, EDGE_COUNTERS, missing, sizeof missing);
    fdri_counters_panel_add(&p->panel, choice, n, missing, sizeof missing);
    fdri_counters_missing("FDR_EDGE_COUNTERS", list, missing);
}

/* The provider's counters follow those of the sources. */
static void choose_provided(struct plan *p, const char *list)
{
    struct fdri_counters_choice choice[EDGE_COUNTERS];
    char missing[900];
    fdri_counters_provided_choose(list, EDGE_COUNTERS - p->panel.count, missing, sizeof missing);
    uint32_t n = fdri_counters_source_provided.count;
    for (uint32_t i = 0; i < n; i++) choice[i] = (struct fdri_counters_choice){&fdri_counters_source_provided, i};
    fdri_counters_panel_add(&p->panel, choice, n, missing, sizeof missing);
    fdri_counters_missing("FDR_PAPI", list, missing);
}

void fdri_counters_edges_start(const char *counters, const char *papi)
{
    char name[EDGE_COUNTERS][64];
    struct fdr_field field[EDGE_COUNTERS];
    struct plan *p = &plans[(generation + 1) / 2 % 2];
    if (!*counters && !*papi) return;
    memset(p, 0, sizeof *p);
    if (*counters) choose_sources(p, counters);
    if (*papi) choose_provided(p, papi);
    if (!p->panel.count) return;
    fdri_counters_fields(field, name, p->panel.choice, p->panel.count, 0);
    p->event = fdr_event_define("fdr.edges", field, p->panel.count);
    fdri_counters_in_handler_warm();
    /* R:edges - the plan is complete; pairs with A:edges */
    if (p->event) fdri_atomic_store_release(&generation, generation + 1);
}

/* A thread closes its open counters at its next edge, or when it ends. */
void fdri_counters_edges_stop(void)
{
    if (generation & 1) fdri_atomic_store_release(&generation, generation + 1); /* R:edges - no edge begins now */
}

void fdri_counters_edges_fork(int phase)
{
    if (phase == 3) pthread_mutex_init(&lock, NULL);
    else if (phase == 0) pthread_mutex_lock(&lock);
    else if (phase == 1) pthread_mutex_unlock(&lock);
    if (phase != 2) return;
    /* The child has no other threads. A provider's sets belong to threads of the parent and stay as they are. */
    for (struct edge_thread *t = all; t; t = t->next) {
        for (uint32_t i = 0; i < MONITOR_SOURCES; i++) fdri_counters_handle_drop(&t->handle[i]);
        t->frames = 0;
    }
    fdri_counters_edges_stop();
    pthread_mutex_unlock(&lock);
}
