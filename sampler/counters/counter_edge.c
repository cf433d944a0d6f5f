/* SPDX-License-Identifier: MIT */
/* Counters at the edges of chosen calls, read by the calling thread. The differences between enter and leave become one
 * user event "fdr.edges" inside of the call, just before its leave, with a field for each counter.
 *
 * A thread opens its counters at its first such call outside of signal handlers, because opening locks and allocates.
 * From then on an edge costs a system call for a group of perf events, one for each further source, and two that block
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
    struct fdri_counters_panel panel; /* the built-in counters */
    const struct fdr_counter_provider *provider;
    uint32_t provided, total; /* the provider's counters follow the built-in ones */
    fdr_event_type event;
};
struct edge_thread {
    const struct plan *plan; /* of the open counters */
    uint32_t generation;     /* of the open counters */
    uint32_t frames;
    bool busy, broken;
    struct fdri_counters_handle handle[MONITOR_SOURCES];
    void *set; /* of `provider`; the plan may name another one when the set is closed */
    const struct fdr_counter_provider *provider;
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

static void close_thread(struct edge_thread *t, bool with_set)
{
    for (uint32_t i = 0; i < MONITOR_SOURCES; i++) fdri_counters_handle_close(&t->handle[i]);
    if (t->set && with_set) t->provider->close(t->set);
    t->set = NULL;
    t->frames = 0;
}

static void thread_ends(void *p)
{
    struct edge_thread *t = p;
    mine = NULL;
    pthread_mutex_lock(&lock);
    *t->link = t->next;
    if (t->next) t->next->link = t->link;
    close_thread(t, true);
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
    t->provider = p->provider;
    struct fdri_fd_placeholders low;
    fdri_fd_fill_low(&low); /* the provider opens perf events */
    if (!e && p->provided && !(t->set = p->provider->open())) e = -ENODEV;
    fdri_fd_clear_low(&low);
    if (!e) return;
    close_thread(t, true);
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
        close_thread(t, true);
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
        uint64_t some[FDRI_COUNTERS_SOURCE_COUNTERS];
        int e = fdri_counters_handle_read(&t->handle[i], some);
        if (e == -EBADF) t->generation = 0; /* the program closed them; the next edge opens them again */
        if (e) return false;
        for (uint32_t rest = r->wanted; rest; rest &= rest - 1) {
            uint32_t which = (uint32_t)__builtin_ctz(rest);
            value[r->place[which]] = some[which];
        }
    }
    int e = p->provided ? p->provider->read(t->set, value + p->panel.count) : 0;
    if (e == -EBADF) note_lost_descriptors(t);
    return !e;
}

/* ---- edges ---- */

/* Drops calls that longjmp or an exception ended without a leave. */
static void drop_from(struct edge_thread *t, uint32_t depth)
{
    while (t->frames && t->frame[t->frames - 1].depth >= depth) t->frames--;
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
        for (uint32_t i = 0; good && i < t->plan->total; i++) value[i] -= f->value[i];
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

static void choose_built_in(struct plan *p, const char *list)
{
    struct fdri_counters_choice choice[EDGE_COUNTERS];
    char missing[900];
    size_t n = fdri_counters_choose(list, true, choice, EDGE_COUNTERS, missing, sizeof missing);
    fdri_counters_panel_make(&p->panel, choice, n, missing, sizeof missing);
    fdri_counters_missing("FDR_EDGE_COUNTERS", list, missing);
}

enum { FIELD_NAME = 27 }; /* longer field names are cut */

/* Names of processor events may differ only behind the cut, so a cut name ends with its metric's number. */
static void name_field(char name[64], const char *of, fdr_metric_id metric)
{
    char number[16];
    int n = snprintf(number, sizeof number, "#%u", metric);
    if (strlen(of) <= FIELD_NAME || !metric) snprintf(name, 64, "%.63s", of);
    else snprintf(name, 64, "%.*s%s", FIELD_NAME - n, of, number);
}

/* Chooses the provider's counters; their names follow the built-in ones. */
static void choose_provided(struct plan *p, const char *list, char name[][64])
{
    static struct fdr_counter_info info[EDGE_COUNTERS];
    char missing[900] = "", why[FDRI_COUNTERS_WHY_BYTES] = "";
    size_t used = 0, count = 0, room = EDGE_COUNTERS - p->panel.count;
    p->provider = fdri_counters_provider(why, sizeof why);
    if (p->provider) count = p->provider->choose(list, info, room);
    else snprintf(missing, sizeof missing, "%s", why);
    for (size_t i = 0; i < count && i < room; i++) {
        if (info[i].works) {
            fdr_metric_id metric = fdr_metric_define(info[i].name, info[i].unit, FDR_U64, info[i].kind);
            name_field(name[p->panel.count + p->provided++], info[i].name, metric);
        } else if (used < sizeof missing) {
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s: %s", used ? "; " : "", info[i].name,
                                     info[i].why);
        }
    }
    if (count > room && used < sizeof missing)
        snprintf(missing + used, sizeof missing - used, "%severything beyond %d counters", used ? "; " : "",
                 EDGE_COUNTERS);
    fdri_counters_missing("FDR_PAPI", list, missing);
}

static void define_event(struct plan *p, char name[][64])
{
    struct fdr_field field[EDGE_COUNTERS];
    for (uint32_t i = 0; i < p->total; i++) field[i] = (struct fdr_field){name[i], FDR_U64, 8 * (size_t)i};
    p->event = fdr_event_define("fdr.edges", field, p->total);
}

void fdri_counters_edges_start(const char *counters, const char *papi)
{
    char name[EDGE_COUNTERS][64];
    struct plan *p = &plans[(generation + 1) / 2 % 2];
    if (!*counters && !*papi) return;
    memset(p, 0, sizeof *p);
    if (*counters) choose_built_in(p, counters);
    for (uint32_t i = 0; i < p->panel.count; i++) fdri_counters_text(name[i], sizeof name[i], p->panel.choice[i]);
    if (*papi) choose_provided(p, papi, name);
    p->total = p->panel.count + p->provided;
    if (!p->total) return;
    define_event(p, name);
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
    for (struct edge_thread *t = all; t; t = t->next) close_thread(t, false);
    fdri_counters_edges_stop();
    pthread_mutex_unlock(&lock);
}
