/* SPDX-License-Identifier: MIT */
/* The helper thread, which finds the threads of the process and keeps a target for each. It lists /proc/self/task after
 * a thread has attached, and periodically for threads that never attach. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fd/open_high.h"
#include "base/system/helper_threads.h"
#include "base/system/procfs.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "sampler/samples/frame_walk.h"
#include "sampler/samples/look.h"
#include "sampler/samples/own_overflow.h"
#include "sampler/samples/sample_setting.h"
#include "sampler/samples/sample_source.h"
#include "sampler/samples/sample_target.h"
#include "sampler/samples/sampler.h"
#include "sampler/samples/samples_view.h"

enum {
    CHUNK = 64,
    CHUNKS_MOST = 1024,
    ATTACHED_BITS = 1 << 20,
    CHECKS_PER_ROUND = 8,
    SCAN_NS = 50000000,
    MODULES_NS = 10000000,       /* longest time until it notices that a library replaced another */
    SCAN_EACH_NS = 500000,       /* for each thread */
    OUTSIDE_SCAN_NS = 200000000, /* with looks from outside: listing takes a tenth of their share of a processor */
    OUTSIDE_SCAN_EACH_NS = 2000000,
    RING_NS = 5000000
};

/* Targets lie in chunks, which are never freed. */
static struct fdri_samples_target *chunk[CHUNKS_MOST];
static uint32_t chunks;                     /* atomic */
static uint32_t used;                       /* number of targets ever used */
static struct fdri_samples_target **of_tid; /* the helper's hash table, open addressing */
static uint32_t slots, count, round_, check_at;
static uint8_t attached[ATTACHED_BITS / 8]; /* atomic; a bit for each thread id */

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static pthread_t helper;
static uint32_t helper_tid;
static bool running;
static uint32_t stopping; /* atomic */
static bool deaf;         /* atomic: the helper has used up its share of a processor, and is not to be woken */
static sem_t wake;
static pthread_mutex_t loader = PTHREAD_MUTEX_INITIALIZER; /* held by the helper while it asks the loader */
static bool loader_held;                                   /* by a forking thread; under `control` */

bool fdri_samples_is_target(const void *p)
{
    const struct fdri_samples_target *t = p;
    for (uint32_t i = 0, n = fdri_atomic_load_acquire(&chunks); i < n; i++) /* A:chunk */
        if (t >= chunk[i] && t < chunk[i] + CHUNK) return true;
    return false;
}

struct fdri_samples_target *fdri_samples_target(uint32_t i) { return &chunk[i / CHUNK][i % CHUNK]; }

/* ---- the table of targets ---- */

static uint32_t slot_of(struct fdri_samples_target **table, uint32_t size, uint32_t tid)
{
    uint32_t i = tid * 0x9E3779B1u & (size - 1);
    while (table[i] && table[i]->tid != tid) i = (i + 1) & (size - 1);
    return i;
}

/* Makes a new table of `size` with the targets that have a thread. */
static bool rebuild_table(uint32_t size)
{
    struct fdri_samples_target **table = calloc(size, sizeof *table);
    if (!table) return false;
    for (uint32_t i = 0; i < slots; i++)
        if (of_tid[i] && of_tid[i]->tid) table[slot_of(table, size, of_tid[i]->tid)] = of_tid[i];
    free(of_tid);
    of_tid = table;
    slots = size;
    return true;
}

static struct fdri_samples_target *new_target(void)
{
    /* A target whose thread has ended is used again, unless a handler is still inside. That handler would go on with
     * the new thread's fields: it would arm its timer, by a clock reading before the timer's start. Searching is cheap
     * enough, because new threads are rare. */
    for (uint32_t i = 0; i < used; i++) {
        struct fdri_samples_target *t = &chunk[i / CHUNK][i % CHUNK];
        if (!t->tid && !fdri_atomic_load_acquire(&t->live)) return t; /* A:target */
    }
    if (used == chunks * CHUNK) {
        if (chunks == CHUNKS_MOST) return NULL;
        void *memory = mmap(NULL, CHUNK * sizeof(struct fdri_samples_target), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return NULL;
        chunk[chunks] = memory;
        fdri_atomic_store_release(&chunks, chunks + 1); /* R:chunk - pairs with A:chunk */
    }
    struct fdri_samples_target *t = &chunk[used / CHUNK][used % CHUNK];
    used++;
    return t;
}

/* ---- /proc ---- */

static const uint64_t unknown = UINT64_MAX;

/* The start time (field 22 of stat) and the name of a thread. 0: there is no such thread. `unknown`: the process has no
 * free descriptor to look. */
static uint64_t look_up(uint32_t tid, char name[20])
{
    char text[1024];
    errno = 0;
    if (!fdri_system_read_task(tid, "stat", text, sizeof text))
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? unknown : 0;
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close) return 0;
    snprintf(name, 20, "%.*s", (int)(close - open - 1 < 19 ? close - open - 1 : 19), open + 1);
    return fdri_system_stat_start_time(text);
}

static bool has_attached(uint32_t tid)
{
    return fdri_atomic_load_relaxed(&attached[tid % ATTACHED_BITS / 8]) >> tid % 8 & 1;
}

void fdri_samples_sampler_attached(uint32_t tid, const sigset_t *blocked)
{
    fdri_samples_own_begin(tid, blocked);
    fdri_atomic_or_relaxed(&attached[tid % ATTACHED_BITS / 8], (uint8_t)(1u << tid % 8));
    if (fdri_atomic_load_relaxed(&fdri_samples_sampler.active) && !fdri_atomic_load_relaxed(&deaf)) sem_post(&wake);
}

/* ---- beginning and ending targets ---- */

static void end_target(struct fdri_samples_target *t)
{
    fdri_samples_source_close(t);
    fdr_sampled_close(t->stream);
    uint8_t bit = (uint8_t)(1u << t->tid % 8);
    fdri_atomic_and_relaxed(&attached[t->tid % ATTACHED_BITS / 8], (uint8_t)~bit);
    fdri_atomic_store_relaxed(&t->tid, 0u); /* free; the hash table drops it when it is rebuilt */
    t->stream = NULL;
    count--;
}

static void say_no_descriptors(void)
{
    static unsigned said;
    if (fdri_text_once(&said))
        fdri_text_message("/proc/self/task: %s; new threads are not sampled until it can be read", strerror(errno));
}

/* The thread's own timer or event takes its samples from here on. name: of the thread. */
static void open_source(struct fdri_samples_target *t, char name[20])
{
    if (fdri_samples_source_open(t, 1)) return;
    int why = errno;
    static unsigned said;
    if (look_up(t->tid, name) != t->start_time)
        return;                /* the thread ended meanwhile; the next round drops the target */
    if (why == ENOENT) return; /* about to end: it has closed its event */
    const char *kind = fdri_samples_sampler.settings.events ? "event" : "timer";
    if (fdri_text_once(&said))
        fdri_text_message("no %s for thread %u (%s): %s; it is not sampled%s", kind, t->tid, name, strerror(why),
                          fdri_samples_sampler.settings.provided ? "" : " until there is one");
}

static void begin_target(uint32_t tid)
{
    char name[20] = "";
    uint64_t start_time = look_up(tid, name);
    if (start_time == unknown) say_no_descriptors(); /* the next round tries again */
    if (!start_time || start_time == unknown ||
        (tid != (uint32_t)fdri_samples_sampler.pid && fdri_system_is_helper(name)))
        return; /* ended meanwhile, or a helper thread of fdr */
    if (2 * (count + 1) > slots && !rebuild_table(slots ? slots * 2 : 256)) return;
    struct fdri_samples_target *t = new_target();
    if (!t) return;
    /* `live` stays: it may count a handler of a late signal */
    memset(&t->tid, 0, offsetof(struct fdri_samples_target, frames) - offsetof(struct fdri_samples_target, tid));
    t->fd = -1;
    t->start_time = start_time;
    t->seen_round = round_;
    t->attached = has_attached(tid);
    enum fdr_sampled_by by = fdri_samples_sampler.settings.events ? FDR_BY_EVENTS
                             : fdri_samples_sampler.settings.wall ? FDR_BY_WALL_TIME
                                                                  : FDR_BY_CPU_TIME;
    t->stream = fdr_sampled_open(tid, name, by, fdri_samples_sampler.settings.period_ns);
    if (!t->stream) {
        static unsigned said;
        if (fdri_text_once(&said))
            fdri_text_message("the buffer has no room for samples of one more thread; it is not sampled (a larger "
                              "FDR_BUFFER has room)");
        return;
    }
    fdri_atomic_store_relaxed(&t->tid, tid);
    count++;
    of_tid[slot_of(of_tid, slots, tid)] = t;
    if (fdri_samples_sampler.settings.outside) fdri_samples_rounds_add(t);
    else open_source(t, name);
}

static void open_again(struct fdri_samples_target *t)
{
    static unsigned said;
    uint64_t step = t->step;
    fdri_samples_source_close(t);
    if (!fdri_samples_source_open(t, step) && fdri_samples_sampler.settings.provided && fdri_text_once(&said))
        fdri_text_message("the program closed the event of thread %u (%s); it is not sampled any more", t->tid,
                          fdri_samples_sampler.settings.name);
}

/* The thread attached. From now on its own handler samples it, which knows the open calls. */
static void change_over(struct fdri_samples_target *t)
{
    t->attached = true;
    if (t->source == FDRI_SAMPLES_BY_RING) open_again(t);
}

/* True if another thread now has this id. */
static bool id_was_reused(struct fdri_samples_target *t)
{
    char name[20];
    uint32_t taken = fdri_atomic_load_relaxed(&t->taken);
    if (t->checked != taken) { /* sampled since the last check, so it is alive */
        t->checked = taken;
        return false;
    }
    uint64_t start_time = look_up(t->tid, name);
    return start_time != unknown && start_time != t->start_time;
}

static bool is_fdr_thread(uint32_t tid)
{
    char text[4096];
    const char *mask = fdri_system_read_task(tid, "status", text, sizeof text) ? strstr(text, "\nSigBlk:") : NULL;
    return mask && strtoull(mask + sizeof "\nSigBlk:" - 1, NULL, 16) >> (fdri_samples_sampler.signal - 1) & 1;
}

/* True if a handler should have run since the last look. */
static bool overdue(struct fdri_samples_target *t)
{
    uint32_t taken = fdri_atomic_load_relaxed(&t->taken);
    uint64_t cpu_ns = fdri_samples_source_cpu_ns(t->tid) | 1, /* 0 means: no look yet */
        least = 8 * t->step * t->period_factor * fdri_samples_sampler.settings.period_ns;
    bool by_cpu = !fdri_samples_sampler.settings.wall && !fdri_samples_sampler.settings.events;
    bool first = !t->seen_ns, due = !first && taken == t->seen_taken && (!by_cpu || cpu_ns >= t->seen_ns + least);
    if (first || due || taken != t->seen_taken) t->seen_ns = cpu_ns;
    if (taken != t->seen_taken) t->blocked_changes = 0;
    t->seen_taken = taken;
    return due;
}

enum { LOOKS = 3 }; /* the time of one look is too short: many programs block signals for a moment */

/* A thread that blocks the signal, as threads of servers do that block all, is sampled by the kernel meanwhile. */
static void look_at_mask(struct fdri_samples_target *t)
{
    static unsigned said, said_not;
    char name[20] = "";
    bool ring = fdri_samples_sampler.perf && !fdri_samples_sampler.settings.provided;
    if (!t->blocked && (t->source == FDRI_SAMPLES_BY_RING || !overdue(t))) return;
    bool blocked = is_fdr_thread(t->tid);
    t->blocked_changes = blocked == t->blocked ? 0 : t->blocked_changes + 1;
    if (t->blocked_changes < (blocked ? LOOKS : 1)) return;
    t->blocked_changes = 0;
    t->blocked = blocked;
    if (ring) open_again(t);
    /* a helper thread of fdr, seen before it set its name */
    if (!blocked || !look_up(t->tid, name) || fdri_system_is_helper(name)) return;
    ring = t->source == FDRI_SAMPLES_BY_RING;
    if (fdri_text_once(ring ? &said : &said_not))
        fdri_text_message("thread %u (%s) blocks signal %d, which samples it: %s", t->tid, name,
                          fdri_samples_sampler.signal,
                          ring ? "the kernel samples it instead, without its regions"
                               : "it is not sampled until it unblocks the signal");
}

/* Threads often set their names late. True: it is a helper thread of fdr, seen before it had its name. */
static bool look_at_name(const struct fdri_samples_target *t)
{
    char name[20];
    size_t n = fdri_system_read_task(t->tid, "comm", name, sizeof name);
    if (!n) return false;
    if (name[n - 1] == '\n') name[n - 1] = 0;
    fdr_sampled_name(t->stream, name);
    return t->tid != (uint32_t)fdri_samples_sampler.pid && fdri_system_is_helper(name);
}

static void note_thread(uint32_t tid)
{
    struct fdri_samples_target *t = slots ? of_tid[slot_of(of_tid, slots, tid)] : NULL;
    if (!t) {
        if (!fdri_samples_sampler.settings.provided || fdri_samples_own_there(tid)) begin_target(tid);
        return;
    }
    t->seen_round = round_;
    if (!t->attached && has_attached(tid)) change_over(t);
    if (!fdri_samples_source_there(t)) open_again(t); /* the program closed descriptors that it had not opened */
}

static void drop_gone(void)
{
    uint32_t before = count, checks = 0;
    for (uint32_t i = 0; i < used; i++) {
        struct fdri_samples_target *t = &chunk[i / CHUNK][i % CHUNK];
        if (t->tid && t->seen_round != round_) end_target(t);
    }
    for (uint32_t i = 0; i < used && checks < CHECKS_PER_ROUND; i++) {
        struct fdri_samples_target *t = &chunk[check_at / CHUNK][check_at % CHUNK];
        check_at = (check_at + 1) % used;
        if (!t->tid) continue;
        checks++;
        if (id_was_reused(t)) {
            end_target(t); /* the next round finds the new thread */
            continue;
        }
        bool of_fdr = look_at_name(t);
        if (fdri_samples_sampler.settings.outside) {
            if (of_fdr) end_target(t);
            continue;
        }
        /* no source worked before */
        if (t->source == FDRI_SAMPLES_BY_NOTHING && !fdri_samples_sampler.settings.provided)
            fdri_samples_source_open(t, 1);
        look_at_mask(t);
    }
    if (count != before) rebuild_table(slots);
}

/* Opens the list anew each time: the program may close a descriptor that stays open, and reuse its number. */
static void scan(void)
{
    DIR *tasks = fdri_system_open_folder("/proc/self/task");
    if (!tasks) {
        say_no_descriptors();
        return;
    }
    round_++;
    for (struct dirent *e; (e = readdir(tasks));) {
        uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);
        if (tid && tid != helper_tid) note_thread(tid);
    }
    closedir(tasks);
    drop_gone();
}

static void drain(void)
{
    for (uint32_t i = 0; i < used; i++) {
        struct fdri_samples_target *t = &chunk[i / CHUNK][i % CHUNK];
        if (t->tid && t->source == FDRI_SAMPLES_BY_RING) fdri_samples_ring_drain(t);
    }
}

/* False: the signal has another handler, which would get fdr's signals from now on. */
static bool still_ours(void)
{
    if (fdri_samples_sampler.settings.outside || fdri_samples_handler_ours()) return true;
    fdri_text_message("signal %d has another handler now; sampling ends here", fdri_samples_sampler.signal);
    return false;
}

/* ---- the helper ---- */

static uint64_t scan_interval(void)
{
    if (fdri_samples_sampler.settings.outside) return OUTSIDE_SCAN_NS + (uint64_t)count * OUTSIDE_SCAN_EACH_NS;
    return fdri_bits_max(SCAN_NS, (uint64_t)count * SCAN_EACH_NS);
}

/* Frequent enough that no ring overflows, and rare enough to cost almost nothing with many threads. round_ns: the time
 * of the next looks from outside; a helper without credit awaits it. */
static struct timespec next_time(uint64_t round_ns)
{
    bool outside = fdri_samples_sampler.settings.outside, wait = outside && !fdri_samples_rounds_may_work();
    uint64_t ring = fdri_samples_sampler.settings.events ? RING_NS : 64 * fdri_samples_sampler.settings.period_ns,
             soon = outside ? scan_interval() : fdri_bits_min(fdri_bits_min(ring, MODULES_NS), scan_interval()),
             ns = fdri_clock_ns(CLOCK_MONOTONIC) + soon;
    if (wait || (outside && round_ns < ns)) ns = round_ns;
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

static void look_at_modules(void)
{
    pthread_mutex_lock(&loader);
    if (fdri_samples_walk_modules()) fdr_modules_changed();
    pthread_mutex_unlock(&loader);
}

/* One turn of the helper. *scanned: when it listed the threads last; called: a thread has attached since. False: the
 * signal has another handler. *round_ns: the time of the next looks. */
static bool turn(uint64_t *scanned, bool called, uint64_t *round_ns)
{
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
    bool outside = fdri_samples_sampler.settings.outside, may = !outside || fdri_samples_rounds_may_work();
    bool due = may && now - *scanned >= scan_interval();
    if (may) look_at_modules();
    if (due && !still_ours()) return false;
    if (may && (due || called)) scan();
    if (due) *scanned = now;
    if (outside) *round_ns = fdri_samples_rounds_look(used, count);
    else drain();
    fdri_atomic_store_relaxed(&deaf, outside && !fdri_samples_rounds_may_work());
    return true;
}

static void *helper_main(void *unused)
{
    (void)unused;
    uint64_t scanned = 0, round_ns = 0;
    bool called = true;
    fdri_atomic_store_relaxed(&helper_tid, (uint32_t)syscall(SYS_gettid));
    if (fdri_samples_sampler.settings.outside) fdri_samples_rounds_begin(fdri_samples_sampler.settings.period_ns);
    while (!fdri_atomic_load_acquire(&stopping) && turn(&scanned, called, &round_ns)) { /* A:stop */
        struct timespec until = next_time(round_ns);
        int e;
        while ((e = sem_clockwait(&wake, CLOCK_MONOTONIC, &until)) && errno == EINTR) {}
        called = e == 0;
        while (sem_trywait(&wake) == 0) {}
    }
    for (uint32_t i = 0; i < used; i++) {
        struct fdri_samples_target *t = &chunk[i / CHUNK][i % CHUNK];
        if (!t->tid) continue;
        look_at_name(t);
        end_target(t);
    }
    return NULL;
}

static bool start_helper(void)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = pthread_create(&helper, NULL, helper_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (e) fdri_text_message("FDR_SAMPLE: cannot start the thread that samples: %s; no samples are taken", strerror(e));
    else fdri_fd_name_thread(helper, FDRI_SYSTEM_THREAD_SAMPLER);
    return !e;
}

void fdri_samples_sampler_prepare(const char *setting, const char *papi)
{
    struct fdri_samples_settings *how = &fdri_samples_sampler.settings;
    *how = fdri_samples_parse_setting(setting);
    if (!how->provided) fdri_samples_own_none();
    else if (!fdri_samples_own_choose(how, papi)) *how = (struct fdri_samples_settings){0};
}

bool fdri_samples_sampler_wanted(void) { return fdri_samples_sampler.settings.period_ns != 0; }

static void remove_handler(void)
{
    if (!fdri_samples_sampler.settings.outside) fdri_samples_handler_remove();
}

/* Prepares samples in the program's threads. False: they cannot be taken here. */
static bool prepare_handler(struct fdri_samples_sampler *s, int signal)
{
    fdri_samples_source_probe();
    if (!s->settings.period_ns) return false;
    if (!s->by_fd) {
        s->by_fd_count = 65536;
        s->by_fd = mmap(NULL, s->by_fd_count * sizeof *s->by_fd, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
        if (s->by_fd == MAP_FAILED) s->by_fd = NULL, s->by_fd_count = 0;
    }
    if (s->settings.stacks == FDRI_SAMPLES_UNWINDER) fdri_samples_unwind_warm();
    if (s->settings.stacks == FDRI_SAMPLES_FRAME_POINTERS) fdri_samples_walk_probe();
    return fdri_samples_handler_install(signal);
}

void fdri_samples_sampler_start(int signal, fdri_samples_open_calls_of *open_calls)
{
    struct fdri_samples_sampler *s = &fdri_samples_sampler;
    if (!s->settings.period_ns) return;
    pthread_mutex_lock(&control);
    s->pid = getpid();
    used = slots = count = 0;
    free(of_tid);
    of_tid = NULL;
    stopping = 0;
    deaf = false;
    sem_init(&wake, 0, 0);
    fdri_samples_walk_modules();
    fdri_samples_look_begin(open_calls);
    running = s->settings.outside || prepare_handler(s, signal);
    fdri_atomic_store_release(&s->active, running); /* R:target */
    if (running && !start_helper()) {
        fdri_atomic_store_relaxed(&s->active, 0u);
        remove_handler();
        running = false;
    }
    pthread_mutex_unlock(&control);
}

void fdri_samples_sampler_stop(void)
{
    pthread_mutex_lock(&control);
    if (running) {
        fdri_atomic_store_release(&stopping, 1u); /* R:stop */
        sem_post(&wake);
        pthread_join(helper, NULL);
        fdri_atomic_store_relaxed(&fdri_samples_sampler.active, 0u);
        remove_handler();
        running = false;
    }
    pthread_mutex_unlock(&control);
}

/* The child has no helper and no timers, and its descriptors count threads of the parent. */
static void forget_in_child(void)
{
    fdri_samples_handler_forked(); /* even if nothing runs now: the thread may have been sampled before */
    if (!running) return;
    fdri_atomic_store_relaxed(&fdri_samples_sampler.active, 0u);
    remove_handler();
    for (uint32_t i = 0; i < used; i++) {
        struct fdri_samples_target *t = &chunk[i / CHUNK][i % CHUNK];
        if (t->tid && t->fd >= 0 && fdri_samples_source_there(t)) close(t->fd);
        memset(t, 0, offsetof(struct fdri_samples_target, frames));
        t->fd = -1;
    }
    if (fdri_samples_sampler.by_fd)
        memset(fdri_samples_sampler.by_fd, 0, fdri_samples_sampler.by_fd_count * sizeof *fdri_samples_sampler.by_fd);
    running = false;
}

enum { LOADER_WAITS = 1000 };

/* A child inherits the state of the loader's own lock for ever, so the helper must not hold that lock during a fork.
 * The wait is bounded: the forking thread may itself hold the lock, in a callback of dl_iterate_phdr, and the helper
 * wait. */
static void keep_helper_from_loader(void)
{
    for (int i = 0; !(loader_held = !pthread_mutex_trylock(&loader)) && i < LOADER_WAITS; i++)
        fdri_system_sleep(i < 20 ? 20000 : 1000000); /* no cancellation point: base/system/signal_mask.h */
}

static void let_helper_to_loader(bool child)
{
    if (loader_held) pthread_mutex_unlock(&loader);
    else if (child) pthread_mutex_init(&loader, NULL);
}

void fdri_samples_sampler_fork(int phase)
{
    if (phase == 3) {
        pthread_mutex_init(&control, NULL);
        pthread_mutex_init(&loader, NULL);
        fdri_samples_own_fork(phase);
        return;
    }
    if (phase == 0) {
        pthread_mutex_lock(&control);
        keep_helper_from_loader();
        fdri_samples_own_fork(phase);
        return;
    }
    fdri_samples_own_fork(phase);
    let_helper_to_loader(phase == 2);
    if (phase == 2) forget_in_child();
    pthread_mutex_unlock(&control);
}
