/* SPDX-License-Identifier: MIT */
/* Start and end of a recording. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <fdr/fdr.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/fd/kept_open.h"
#include "base/fd/open_high.h"
#include "base/system/loader.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "bins/bins.h"
#include "export/view.h"
#include "fdr_build.h"
#include "format/arena/arena.h"
#include "format/arena/checks.h"
#include "recorder/ended/ended.h"
#include "recorder/governor/governor.h"
#include "recorder/life/life.h"
#include "recorder/life/settings.h"
#include "recorder/memory/memory.h"
#include "recorder/names/module_symbols.h"
#include "recorder/names/region_rules.h"
#include "recorder/names/names.h"
#include "recorder/record/sample_stream.h"
#include "recorder/recording.h"
#include "recorder/tally/tally.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_clock.h"
#include "recorder/thread/thread_state.h"
#include "recorder/watch/watch.h"
#include "sampler/counters/counter_view.h"
#include "sampler/samples/samples_view.h"

/* The switch has a page of its own, so that the kernel can hand every kind of child a zeroed one. 64 KiB is the
 * largest page size of the supported machines. */
struct fdr_switch_page_ fdr_switch_ __attribute__((aligned(65536)));
static_assert(sizeof fdr_switch_ == 65536, "nothing else in its page");

struct fdri_life_recorder fdri_life_recording = {
    .kept_live_file = {.fd = -1}, .kept_live_dir = {.fd = -1}, .kept_dir = {.fd = -1}};
static uint32_t recordings;

uint64_t fdri_life_ns_to_ticks(uint64_t ns)
{
    if (!fdri_life_recording.ticks) return ns;
    return (uint64_t)((unsigned __int128)ns * fdri_life_recording.ticks_per_second / 1000000000u);
}

/* ---- exit ---- */

static int exit_status; /* of exit(), once it runs */
static bool exiting;    /* the whole process ends, not only the recording */

void fdri_life_exit_forget(void)
{
    exit_status = 0;
    exiting = false;
}

static void note_status(int status, void *unused)
{
    (void)unused;
    exit_status = status & 0xff; /* as waitpid() reports it */
}

/* Exit handlers run in reverse order, and at_exit below needs the status. A handler registered in a constructor, before
 * main, would run after at_exit. So this is called by fdr_init and again when the first thread attaches. The library is
 * never unloaded, so the handler stays valid. */
void fdri_life_watch_exit(bool attaching)
{
    static uint32_t noted[2]; /* atomic */
    uint32_t no = 0;
    if (fdri_life_recording.settings.crash != FDRI_EXPORT_CRASH_EXIT) return;
    if (!fdri_atomic_cas_acq_rel_u32(&noted[attaching], &no, 1)) return; /* L:noted */
#ifdef __GLIBC__
    on_exit(note_status, NULL);
#endif
}

static void register_handlers_once(void)
{
    fdri_life_fork_wipe();
    fdri_system_barrier_register();
    fdri_thread_attach_once();
    fdri_life_fork_watch();
}

/* ---- start ---- */

static int rank_of_environment(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < 4; i++) {
        const char *v = secure_getenv(names[i]);
        if (v && *v >= '0' && *v <= '9') return atoi(v);
    }
    return -1;
}

static void set_clock(struct fdri_life_recorder *r)
{
    r->ticks = !r->settings.monotonic && FDRI_CLOCK_HAVE_TICKS && fdri_clock_ticks_usable();
    if (!r->settings.monotonic && !r->ticks)
        fdri_text_message("FDR_TIMER=tsc: the tick counter is not known to be a reliable clock here; using monotonic");
    bool known = r->by_itself && r->ticks_per_second; /* from the process that was forked */
    if (!known) r->ticks_per_second = r->ticks ? fdri_clock_ticks_rate(5000000) : 1000000000u;
    r->tick_to_ns = (uint64_t)(((unsigned __int128)1000000000u << 32) / r->ticks_per_second);
    r->start = fdri_clock_read(r->ticks);
    uint64_t resolution = fdri_life_ns_to_ticks(r->settings.resolution_ns);
    r->shift = resolution > 1 ? fdri_bits_log2_floor(resolution) : 0;
    if (r->shift > 40) r->shift = 40;
}

static void fill_superblock(struct fdri_life_recorder *r)
{
    struct fdri_arena_superblock *s = r->arena.super;
    s->state = FDRI_ARENA_STATE_RECORDING;
    s->clock_kind = r->ticks ? FDRI_ARENA_CLOCK_TSC : FDRI_ARENA_CLOCK_NS;
    s->shift = r->shift;
    s->ticks_per_second = r->ticks_per_second;
    s->clock_start = (struct fdri_arena_clock_pair){r->start.tick, r->start.monotonic_ns, r->start.realtime_ns, 0};
    s->clock_last = s->clock_start;
    s->pid = (uint32_t)r->identity.pid;
    s->rank = r->rank;
    s->created_realtime_ns = r->start.realtime_ns;
    s->process_start_time = r->identity.start_time;
    s->strategy = r->settings.strategy;
    s->band_edge_count = FDRI_ARENA_BANDS - 1;
    for (uint32_t i = 0; i < FDRI_ARENA_BANDS - 1; i++)
        s->band_edge[i] = fdri_bits_max(fdri_life_ns_to_ticks(fdri_arena_band_edge_ns(i)) >> r->shift, 1);
    gethostname(s->host, sizeof s->host - 1);
    memcpy(s->config, r->settings.text, sizeof s->config - 1);
    fdri_arena_spare_begin(s);
}

/* Called by the thread that takes a snapshot, which is to have the names that threads have by now.
 *
 * Waits at most 1 s for the accounts of ended threads. Folding takes microseconds, but on a busy machine the thread may
 * wait for a processor. */
static bool name_threads_and_hold_accounts(void)
{
    fdri_thread_look_at_names();
    return fdri_ended_freeze(1000000000);
}

static uint64_t poll_all(uint64_t now_ns)
{
    uint64_t next = fdri_names_symbols_poll(now_ns); /* first: triggers look for the names */
    next = fdri_bits_min(next, fdri_bits_min(fdri_watch_poll(now_ns), fdri_governor_poll(now_ns)));
    next = fdri_bits_min(next, fdri_bits_min(fdri_life_poll_forked(now_ns), fdri_thread_poll_names(now_ns)));
    next = fdri_bits_min(next, fdri_life_poll_heartbeat(now_ns));
    return fdri_bits_min(next, fdri_bits_min(fdri_life_poll_restored(now_ns), fdri_life_poll_last_thread(now_ns)));
}

static void start_export(struct fdri_life_recorder *r)
{
    struct fdri_export_view v = {.base = r->arena.base,
                                 .bytes = r->arena.super->arena_bytes,
                                 .ticks = r->ticks,
                                 .pid = r->pid,
                                 .rank = r->arena.super->rank,
                                 .signal = r->settings.signal,
                                 .holdoff_ns = r->settings.holdoff_ns,
                                 .disk_bytes = r->settings.disk_bytes,
                                 .keep = r->settings.keep,
                                 .keep_newest = r->settings.keep_newest,
                                 .watchdog_ns = r->settings.watchdog_ns,
                                 .watchdog_job = r->settings.watchdog_job,
                                 .needs_dumper = fdri_samples_sampler_wanted() || r->settings.counters.sampled[0] ||
                                                 r->settings.overhead >= 0 || r->provisional ||
                                                 fdri_names_symbols_wanted(),
                                 .poll = poll_all,
                                 .name_function = fdri_names_symbols_name,
                                 .check_process = fdri_life_check_restored,
                                 .self_check = fdri_memory_check_snapshot,
                                 .settle_thread = fdri_thread_settle_own};
    memcpy(v.name, r->settings.name, sizeof v.name);
    memcpy(v.watchdog_ignore, r->settings.watchdog_ignore, sizeof v.watchdog_ignore);
    memcpy(v.dir, r->settings.dir, sizeof v.dir);
    memcpy(v.live_path, r->live_path, sizeof v.live_path);
    r->kept_dir = fdri_fd_keep(fdri_fd_open(AT_FDCWD, r->settings.dir, O_PATH | O_DIRECTORY, 0));
    v.kept_live_file = r->kept_live_file;
    v.kept_live_dir = r->kept_live_dir;
    v.kept_dir = r->kept_dir;
    v.hold_accounts = name_threads_and_hold_accounts;
    v.release_accounts = fdri_ended_unfreeze;
    v.crash = (enum fdri_export_crash_mode)r->settings.crash;
    v.crash_first = r->settings.crash_first;
    v.crash_deadline_ns = r->settings.crash_deadline_ns;
    v.retention = r->settings.retention;
    int e = fdri_trigger_start(&v);
    if (e)
        fdri_text_message("FDR_SIGNAL: cannot start the thread that takes snapshots: %s; the signal does nothing, "
                          "fdr_snapshot() still works",
                          strerror(-e));
    fdri_crash_start();
}

enum { AT_END_NS = 10000000, AT_START_NS = 200000000 };

/* Is no other thread in the middle of a record? Records that ended threads left unfinished do not count, nor does one
 * that this thread left by longjmp or is interrupting. */
static bool no_record_under_way(const struct fdri_bins_arena *a)
{
    if (fdri_thread_holders()) return false;
    /* a location of an earlier recording may have had the same address */
    const struct fdri_arena_location *own = fdri_record_self.recording == fdri_life_recording.number
                                                ? fdri_record_self.loc
                                                : NULL,
                                     *lane = fdri_record_lane.recording == fdri_life_recording.number
                                                 ? fdri_record_lane.loc
                                                 : NULL;
    for (uint32_t off = fdri_atomic_load_acquire(&a->super->location_first); off;) { /* A:location */
        const struct fdri_arena_location *l = fdri_bins_at(a, off);
        uint32_t flags = fdri_atomic_load_acquire(&l->flags);  /* A:location */
        bool inside = fdri_atomic_load_acquire(&l->busy) != 0; /* A:busy */
        if (inside && flags & FDRI_ARENA_LOCATION_LIVE && l != own && l != lane) return false;
        off = l->next;
    }
    return true;
}

/* Waits at most most_ns until no other thread is in the middle of a record. False: one still is, perhaps a stopped
 * thread. */
static bool quiesce(const struct fdri_bins_arena *a, uint64_t most_ns)
{
    uint64_t until = fdri_clock_ns(CLOCK_MONOTONIC) + most_ns;
    while (!no_record_under_way(a)) {
        if (fdri_clock_ns(CLOCK_MONOTONIC) >= until) return false;
        sched_yield();
    }
    return true;
}

/* Frees the memory of the last recording, kept because a thread was in the middle of a record. -EBUSY: it still is. */
static int drop_left(struct fdri_life_recorder *r)
{
    if (!r->abandoned) return 0;
    if (!quiesce(&r->arena, AT_START_NS)) {
        fdri_text_message("a thread is still writing a record of the last recording; no new recording begins");
        return -EBUSY;
    }
    fdri_memory_arena_drop(r, false);
    r->abandoned = false;
    return 0;
}

/* Samples and counters need the loader: they load libraries and unwind stacks. Turns both off. */
static void without_loader(struct fdri_life_settings *s)
{
    s->sample[0] = s->counters.sampled[0] = s->counters.edges[0] = s->counters.papi[0] = 0;
    fdri_text_message("this process was forked while another thread loaded or closed a library, or it cannot start a "
                      "thread to check that; addresses have no names, and fdr takes no samples and no counters");
}

/* Begins a recording with the settings in fdri_life_recording. provisional: its live file gets no name yet. Returns 0
 * or -errno. Under the lock. */
static int begin(bool provisional)
{
    struct fdri_life_recorder *r = &fdri_life_recording;
    if (!fdri_system_loader_works()) without_loader(&r->settings);
    set_clock(r);
    r->identity = fdri_life_identity_now();
    r->rank = rank_of_environment();
    int e = fdri_memory_arena_make(r);
    if (e) return e;
    fill_superblock(r);
    fdri_names_rules_load(r->settings.filter, r->settings.counters.edges[0] || r->settings.counters.papi[0],
                          r->settings.edge_regions);
    fdri_tally_start();
    fdri_watch_start(r->settings.triggers); /* counts in tallies */
    if (!fdri_governor_start(r->settings.overhead))
        fdri_text_message("FDR_OVERHEAD: no memory, or FDR_BUFFER is below 1M; no region is muted");
    r->number = ++recordings;
    fdri_atomic_store_relaxed(&r->pid, r->identity.pid); /* fdri_life_forked_bare() reads it without the lock */
    fdri_atomic_store_relaxed(&fdr_switch_.pid, (uint32_t)r->pid);
    fdri_names_note_reset();
    fdri_memory_check_reset();
    fdri_thread_no_room_reset();
    fdri_names_modules_reset();
    fdri_names_define_reset();
    fdri_names_address_reset(); /* after fdri_names_define_reset: the old table may call functions REFUSED */
    fdri_names_define_modules();
    fdri_names_symbols_begin();
    fdri_samples_sampler_prepare(r->settings.sample, r->settings.counters.papi);
    if (provisional) fdri_memory_arena_choose_name(r);
    else fdri_memory_arena_publish(r);
    fdri_atomic_store_relaxed(&r->provisional, provisional);
    r->first_tick = fdri_thread_tick_now();
    /* R:on - pairs with A:on in attach.c: a thread that attaches finds everything above in place */
    fdri_atomic_store_release(&fdr_switch_.on, r->number);
    start_export(r);
    fdri_life_watch_exit(false);
    fdri_counters_start(&r->settings.counters);
    fdri_samples_sampler_start(r->settings.signal, fdri_record_open_calls);
    return 0;
}

static void finalize(void);

/* Ends an old recording, unless the process is dying, then begins a new one. 0 or -errno. Under the lock. */
static int start(const struct fdr_config *config)
{
    finalize();
    int busy = fdri_life_recording.running ? -EBUSY : drop_left(&fdri_life_recording);
    if (busy) return busy;
    int wrong = fdri_life_settings_parse(&fdri_life_recording.settings, config);
    if (wrong) return wrong;
    fdri_life_recording.by_itself = false;
    int e = fdri_life_recording.settings.enable ? begin(false) : 0;
    if (!e && fdri_life_recording.running) fdri_life_family_begin();
    return e;
}

int fdr_init(const struct fdr_config *config)
{
    static pthread_once_t control = PTHREAD_ONCE_INIT;
    pthread_once(&control, register_handlers_once);
    if (config && config->size < offsetof(struct fdr_config, enable)) {
        fdri_text_message(
            "fdr_init: size of the configuration is %zu, not sizeof(struct fdr_config); nothing is recorded",
            config->size);
        return -EINVAL;
    }
    fdri_life_fork_notice();
    struct fdri_life_held h = fdri_life_lock();
    fdri_thread_inside++; /* an instrumented allocator records only when everything is in place */
    /* a recording that began by itself gives way to one with settings of the program */
    bool stays = fdri_atomic_load_relaxed(&fdr_switch_.on) && !(config && fdri_life_recording.by_itself);
    int result = stays ? 0 : start(config);
    fdri_thread_inside--;
    fdri_life_unlock(&h);
    return result;
}

/* ---- end ---- */

static void stop_recording(void)
{
    fdri_counters_stop(); /* records its last readings */
    fdri_samples_sampler_stop();
    fdri_atomic_store_relaxed(&fdr_switch_.on, 0u);
    fdri_system_barrier(); /* a thread that marks its location busy after this sees the switch off, or is seen below */
    quiesce(&fdri_life_recording.arena, AT_END_NS);
}

/* The patterns that matched nothing, as far as they fit into a line. Under the lock. */
static struct {
    char text[700];
    size_t used;
    uint32_t more;
} unmatched;

static void add_unmatched(const char *where, const char *pattern)
{
    char one[200];
    size_t n = (size_t)snprintf(one, sizeof one, "%s%.80s '%.80s'", unmatched.used ? ", " : "", where, pattern);
    bool fits = !unmatched.more && unmatched.used + n < sizeof unmatched.text;
    if (fits) memcpy(unmatched.text + unmatched.used, one, n + 1);
    unmatched.used += fits ? n : 0;
    unmatched.more += !fits;
}

static void say_unmatched(void)
{
    char more[40] = "", missing[60] = "";
    unmatched.used = unmatched.more = 0;
    fdri_names_rules_unmatched(add_unmatched);
    fdri_watch_unmatched(add_unmatched);
    if (!unmatched.used) return;
    uint32_t files = fdri_names_symbols_missing();
    if (unmatched.more) snprintf(more, sizeof more, " and %u more", unmatched.more);
    if (files) snprintf(missing, sizeof missing, "; files whose symbols were not known: %u", files);
    fdri_text_message("nothing matched these patterns: %s%s%s", unmatched.text, more, missing);
}

/* Frees the arena, or keeps it if a thread is still in a record. over: recording had ended before, and the arena's
 * contents may be gone. */
static void give_memory_back(bool over, bool unlink_live)
{
    fdri_trigger_stop(!over);
    say_unmatched();
    fdri_watch_stop();
    fdri_names_define_end();
    fdri_life_recording.abandoned = !quiesce(&fdri_life_recording.arena, AT_END_NS);
    fdri_crash_stop(); /* until here a crash leaves a bundle */
    if (fdri_life_recording.abandoned) fdri_memory_arena_abandon(&fdri_life_recording, unlink_live);
    else fdri_memory_arena_drop(&fdri_life_recording, unlink_live);
    fdri_life_family_leave();
    if (!exiting) fdri_trigger_leave(); /* else a late request for a snapshot would end the process by its signal */
}

/* Ends the recording. Under the lock. The switch may be off already: fdr_ending() has left a bundle, or the arena is
 * gone. In a process that dies this does nothing, as the bundle is being written from the arena. */
static void finalize(void)
{
    if (!fdri_life_recording.running || fdri_life_recording.pid != fdri_export_pid() || fdri_crash_under_way()) return;
    bool over = !fdri_atomic_load_relaxed(&fdr_switch_.on) || (exit_status && fdri_crash_end("exit", exit_status));
    stop_recording();
    if (!over) fdri_life_recording.arena.super->state = FDRI_ARENA_STATE_FINALIZED;
    if (fdri_life_recording.settings.final_snapshot && !over) fdri_snapshot_final("finalize");
    /* a bundle left by exit is the live file, or replaced it. If replacing failed, removing it reports the reason */
    bool again = fdri_atomic_load_relaxed(&fdri_life_recording.arena.super->over_error) != 0;
    give_memory_back(over, !fdri_crash_ended() || again);
}

void fdr_finalize(void)
{
    if (fdri_life_forked_bare()) return; /* the lock may be held by a thread that only the parent has */
    fdri_thread_settle_own((uint64_t)(uintptr_t)__builtin_frame_address(0));
    struct fdri_life_held h = fdri_life_lock();
    finalize();
    fdri_life_fork_forget();
    fdri_life_unlock(&h);
}

/* May run in a handler that interrupted the holder of the lock; then at_lock is the holder's, and this does nothing. */
int fdr_ending(const char *by, int status)
{
    bool left = false;
    if (!fdri_atomic_load_relaxed(&fdr_switch_.on) ||
        (int)fdri_atomic_load_relaxed(&fdr_switch_.pid) != fdri_export_pid() || fdri_life_holds_lock() ||
        !fdri_life_try_lock())
        return 0;
    if (fdri_atomic_load_relaxed(&fdr_switch_.on)) left = fdri_crash_end(by ? by : "?", status);
    fdri_life_give_lock();
    return left;
}

/* The old arena is a file whose original process may still run: its contents stay as they are. */
void fdri_life_begin_anew(void)
{
    struct fdri_life_held h = fdri_life_lock();
    struct fdri_life_identity now = fdri_life_identity_now();
    if (fdri_atomic_load_relaxed(&fdr_switch_.on) && fdri_life_identity_differs(&now)) {
        fdri_thread_inside++;
        fdri_system_barrier_register(); /* the registration does not survive a checkpoint */
        stop_recording();
        give_memory_back(false, false);
        fdri_life_recording.by_itself = false;
        int e = drop_left(&fdri_life_recording);
        if (!e) e = begin(false);
        fdri_text_message("this process was restored from a checkpoint; %s",
                          e ? "it is not recorded any more" : "a new recording begins");
        fdri_thread_inside--;
    }
    fdri_life_unlock(&h);
}

bool fdri_life_begin_forked(bool whole)
{
    struct fdri_life_recorder *r = &fdri_life_recording;
    struct fdri_life_held h = fdri_life_lock();
    fdri_thread_inside++;
    bool may = !fdri_atomic_load_relaxed(&fdr_switch_.on) && !exiting;
    uint64_t bytes = may ? fdri_life_family_room(whole) : 0;
    if (bytes) r->settings.buffer_bytes = bytes;
    r->by_itself |= bytes != 0;
    bool begun = bytes && !drop_left(r) && !begin(whole);
    if (bytes && !begun) fdri_life_family_leave();
    fdri_thread_inside--;
    fdri_life_unlock(&h);
    return begun;
}

/* A daemon may have closed all descriptors, and with them the nameless file's. Then a new recording begins. */
void fdri_life_settle_forked(bool keep)
{
    struct fdri_life_recorder *r = &fdri_life_recording;
    struct fdri_life_held h = fdri_life_lock();
    bool closed = r->nameless && !fdri_fd_is_kept(r->kept_live_file.fd, &r->kept_live_file);
    if (fdri_atomic_load_relaxed(&fdr_switch_.on) && r->by_itself) {
        fdri_thread_inside++;
        if (keep && !closed) {
            fdri_memory_arena_publish(r);
        } else {
            stop_recording();
            give_memory_back(false, true);
            if (keep && !drop_left(r)) begin(false);
        }
        fdri_thread_inside--;
    }
    fdri_life_unlock(&h);
}

/* Priority 101: in a static program this runs after the program's destructors. */
__attribute__((destructor(101))) static void at_exit(void)
{
    if (fdri_life_forked_bare() || fdri_life_holds_lock()) return; /* exit() by a handler that interrupted the holder */
    fdri_thread_settle_own((uint64_t)(uintptr_t)__builtin_frame_address(0));
    struct fdri_life_held h = fdri_life_lock_at_exit();
    exiting = true;
    fdri_snapshot_abandon();
    finalize();
    fdri_life_unlock(&h);
}

const char *fdr_version(void) { return FDR_VERSION_STRING; }
const char *fdr_build(void) { return FDR_BUILD_TEXT; }
