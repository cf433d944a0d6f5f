/* SPDX-License-Identifier: MIT */
/* Recordings of forked children (FDR_FORK). A child records nothing at first: most children call exec at once.
 *
 *   daemon   A child that calls setsid or daemon begins a recording there. If it forks a daemon and ends, its first
 *            child records as well.
 *   follow   A child that runs on for a second begins one, too, in a thread of its own.
 *
 * A recording that begins in setsid has no name in the live directory for a second. If the child calls exec or _exit
 * before that, the kernel frees its memory and nothing is left.
 *
 * All recordings that descend from one process are a family. They share a limit of memory, which lies in a page that
 * children inherit. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fdr/fdr.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/stack/thread_stack.h"
#include "base/system/helper_threads.h"
#include "base/system/procfs.h"
#include "base/system/signal_mask.h"
#include "base/system/syscall.h"
#include "base/text/message.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "recorder/jumps/jumps.h"
#include "recorder/life/life.h"
#include "recorder/life/settings.h"
#include "recorder/names/names.h"
#include "recorder/record/record.h"
#include "recorder/record/shadow_stack.h"
#include "recorder/recording.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"

/* orphan_ns: the most time that a process may take between setsid and the fork of its daemon, and to its end then. */
static const uint64_t second_ns = 1000000000, orphan_ns = 10000000000u;

/* The state of this process. The fork handlers write it under all locks of fdr, setsid in the thread that calls it. */
static struct {
    int pid;           /* the process to which this applies: a vfork child shares it and has another */
    bool may_record;   /* atomic: it descends by fork from one that recorded, and records nothing so far */
    uint64_t led_ns;   /* when it called setsid; 0: it did not */
    bool first_forked; /* and forked a child since */
    bool orphan;       /* it records only if its parent, which called setsid, ends */
    bool late;         /* atomic: its recording began some time after the fork */
    int parent;
} me;

static bool may_record(void) { return fdri_atomic_load_relaxed(&me.may_record); }
void fdri_life_fork_forget(void) { fdri_atomic_store_relaxed(&me.may_record, false); }

/* ---- the family ---- */

/* A recording takes one unit, or as many as make the whole buffer. Each unit names its process. */
enum { UNITS = 64, BUFFERS = 4, SHARES = 16 };
static const uint64_t least_bytes = 256 << 10;
struct family {
    uint64_t buffer, unit; /* bytes */
    uint32_t units;
    unsigned said;          /* a child found no unit */
    uint32_t holder[UNITS]; /* atomic: process id; 0: free */
};
static struct family *family; /* atomic; shared memory; NULL: not needed yet, or none to be had */

/* Only the first process of a family decides how much memory it has. */
static void make_family(uint64_t buffer)
{
    if (me.parent && family) return;
    void *m = family ? family : mmap(NULL, sizeof *family, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct family *f = m;
    if (m == MAP_FAILED) return;
    f->buffer = buffer;
    f->unit = fdri_bits_min(fdri_bits_max(buffer / SHARES, least_bytes), buffer);
    f->units = (uint32_t)fdri_bits_min(UNITS, BUFFERS * buffer / f->unit);
    if (f != family) fdri_atomic_store_release(&family, f); /* R:members - the dumper may look already */
}

static bool take_unit(uint32_t *holder, uint32_t pid)
{
    uint32_t other = fdri_atomic_load_relaxed(holder);
    bool ended = other && other != pid && kill((pid_t)other, 0) && errno == ESRCH;
    return (!other || ended) && fdri_atomic_cas_acq_rel_u32(holder, &other, pid); /* L:family */
}

void fdri_life_family_leave(void)
{
    uint32_t pid = (uint32_t)fdri_system_getpid();
    for (uint32_t i = 0; family && i < family->units; i++)
        if (fdri_atomic_load_relaxed(&family->holder[i]) == pid) fdri_atomic_store_relaxed(&family->holder[i], 0u);
}

static bool enter_family(uint32_t wanted)
{
    uint32_t pid = (uint32_t)fdri_system_getpid(), got = 0;
    for (uint32_t i = 0; i < family->units && got < wanted; i++) got += take_unit(&family->holder[i], pid);
    if (got < wanted) fdri_life_family_leave();
    return got == wanted;
}

void fdri_life_family_begin(void)
{
    const struct fdri_life_recorder *r = &fdri_life_recording;
    me.pid = fdri_system_getpid();
    if (r->settings.fork != FDRI_LIFE_FORK_OFF) make_family(r->arena.super->arena_bytes);
    if (family && me.parent) enter_family(1);
    fdri_life_fork_forget();
}

static bool is_recorded(int pid)
{
    for (uint32_t i = 0; i < UNITS; i++) /* those beyond `units` are free */
        if (fdri_atomic_load_relaxed(&family->holder[i]) == (uint32_t)pid) return true;
    return false;
}

uint64_t fdri_life_family_room(bool whole)
{
    if (!may_record() || !family) return 0;
    uint32_t wanted = whole ? (uint32_t)((family->buffer + family->unit - 1) / family->unit) : 1;
    if (enter_family(wanted)) {
        fdri_life_fork_forget();
        return whole ? family->buffer : family->unit;
    }
    if (fdri_text_once(&family->said))
        fdri_text_message("FDR_FORK: the recordings of forked processes hold their limit of memory, %d times the "
                          "buffer of %" PRIu64 " bytes; process %d and later ones record nothing",
                          BUFFERS, family->buffer, fdri_system_getpid());
    return 0;
}

/* ---- calls that were open at the fork ---- */

struct open_call {
    fdr_region region;
    uint64_t address, frame; /* 0: entered by the region's id; as in struct fdri_arena_level */
    uint32_t caller, site;
    const uint64_t *words; /* the stack from this frame up to the frame around it */
    uint32_t count, found; /* of these words; of return addresses of this call among them */
};
enum { OPEN_CALLS = 1100, WORDS = 2048 }; /* more than the levels of a shadow stack */
static struct open_call open_calls[OPEN_CALLS];
static uint32_t open_count;
static __thread bool has_open_calls; /* they are this thread's */

/* How many words of its frame hold the call's return address? Older calls may have left more of them. When the call has
 * ended and another one stands in its place, there are fewer. */
__attribute__((no_sanitize("address"))) static uint32_t return_words(const struct open_call *c)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < c->count; i++) found += (uint32_t)~c->words[i] == c->caller;
    return found;
}

static bool has_frame(const struct open_call *c) { return c->address && c->frame != FDRI_RECORD_FRAME_UNKNOWN; }

/* Saves where a function's frame lies. outer: the distance of the frame around it from the end of the stack. */
static void save_place(struct open_call *c, uint64_t end, uint64_t outer)
{
    if (!FDRI_STACK_RETURN_ABOVE_FRAME || !has_frame(c) || c->frame <= outer || !fdri_jumps_is_own_frame(c->frame))
        return;
    c->words = (const uint64_t *)(uintptr_t)(end - c->frame); /* NOLINT(performance-no-int-to-ptr) */
    c->count = (uint32_t)fdri_bits_min((c->frame - outer) / 8, WORDS);
    c->found = return_words(c);
}

/* In the parent, because the child's view of the arena changes while the parent goes on. */
static void save_open_calls(void)
{
    struct fdri_thread *t = &fdri_record_self;
    open_count = 0;
    has_open_calls = t->loc && t->recording == fdri_life_recording.number && !fdri_atomic_load_relaxed(&t->loc->busy);
    if (!has_open_calls) return;
    uint32_t depth = fdri_atomic_load_relaxed(&t->loc->depth);
    uint64_t outer = 0;
    for (uint32_t d = 1; d <= depth && d <= OPEN_CALLS; d++) {
        const struct fdri_arena_level *v = fdri_thread_level(t, d);
        struct open_call *c = &open_calls[open_count++];
        *c = (struct open_call){v->region, v->address, v->frame, v->caller, v->site, NULL, 0, 0};
        save_place(c, t->stack_end, outer);
        if (has_frame(c)) outer = c->frame;
    }
}

/* Opens one of them again, at the present time. No jump is looked for: the calls were open together. */
static void open_again(const struct open_call *c)
{
    /* before the operation: looking up an address takes a lock */
    fdr_region region = c->address ? fdri_names_function_region(c->address, c->site) : c->region;
    struct fdri_thread *t = fdri_thread_begin(FDRI_THREAD_LIVE);
    if (!t) return;
    uint32_t depth = t->loc->depth;
    const struct fdri_record_function f = {c->address, c->frame, c->caller, c->site, c->frame};
    fdri_record_enter(t, region, NULL, true, 0);
    if (c->address && t->loc->depth > depth) fdri_record_level_place(t->top, &f);
    fdri_thread_end(t);
}

/* A call whose frame lies below `here`, or holds another return address, has ended since the fork, with all calls
 * inside of it. If the program has run on for a second, nothing is known of regions entered by id. */
void fdri_life_inherit_calls(uint64_t here)
{
    if (!has_open_calls || !fdri_life_recording.by_itself) return;
    uint64_t mine = fdri_record_self.stack_end - here;
    has_open_calls = false;
    for (uint32_t i = 0; i < open_count; i++) {
        const struct open_call *c = &open_calls[i];
        if (has_frame(c) && (c->frame >= mine || return_words(c) != c->found)) return;
        if (!fdri_atomic_load_relaxed(&me.late) || c->found) open_again(c);
    }
}

/* ---- a recording of this child ---- */

static void note_origin(void)
{
    char text[16];
    snprintf(text, sizeof text, "%d", me.parent);
    fdr_note("forked from", text);
}

static bool in_thread(void *(*function)(void *))
{
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t old;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    fdri_system_signals_block(&old); /* the thread must not take the program's signals */
    int e = pthread_create(&thread, &detached, function, NULL);
    fdri_system_signals_restore(&old);
    pthread_attr_destroy(&detached);
    return !e;
}

/* In the thread of the program that calls this. */
static void begin_here(void)
{
    int saved = errno;
    if (fdri_life_begin_forked(true)) {
        fdri_thread_attached();
        note_origin();
    }
    errno = saved;
}

static bool parent_lives(void) { return getppid() == me.parent; }

/* Follow: a child that is here a second later is none that calls exec. An orphan is a daemon and gets the whole
 * buffer. */
static void *begin_later(void *unused)
{
    pthread_setname_np(pthread_self(), FDRI_SYSTEM_THREAD_FORKED);
    fdri_system_sleep(second_ns);
    fdri_atomic_store_relaxed(&me.late, true);
    if (fdri_life_begin_forked(me.orphan && !parent_lives())) note_origin();
    return unused;
}

/* In a thread of its own: ending a recording waits for the dumper thread. */
static void *settle(void *unused)
{
    pthread_setname_np(pthread_self(), FDRI_SYSTEM_THREAD_FORKED);
    bool keep = !me.orphan || !parent_lives();
    fdri_atomic_store_relaxed(&me.late, true); /* for a recording that begins anew */
    fdri_life_settle_forked(keep);
    if (keep) note_origin();
    else fdri_atomic_store_relaxed(&me.may_record, true);
    return unused;
}

/* A recording that began in setsid or for an orphan goes on if its process has run for a second. An orphan's parent
 * must have ended, too. */
static uint64_t poll_provisional(uint64_t now_ns)
{
    static uint64_t began_ns;
    static uint32_t number;
    if (!fdri_atomic_load_relaxed(&fdri_life_recording.provisional)) return UINT64_MAX;
    if (number != fdri_life_recording.number) began_ns = now_ns;
    number = fdri_life_recording.number;
    uint64_t due = began_ns + (me.orphan && parent_lives() ? orphan_ns : second_ns);
    if (now_ns >= due) fdri_atomic_store_relaxed(&fdri_life_recording.provisional, !in_thread(settle));
    return now_ns + second_ns;
}

/* ---- children that record nothing: their parent says so once ---- */

static uint32_t has_forked; /* atomic: look for children */
static uint64_t look_ns;    /* of the dumper thread: when; 0: none is awaited */
enum { LOOKS = 100 };       /* then no more: a program may fork all the time and have all children call exec */

static uint64_t age_ns(const char *stat)
{
    uint64_t began = fdri_system_stat_start_time(stat) * (second_ns / (uint64_t)sysconf(_SC_CLK_TCK));
    uint64_t now = fdri_clock_ns(CLOCK_BOOTTIME);
    return began && now > began ? now - began : 0;
}

/* Has this child the same program, and runs for a second without a recording? *young: it may be one later. */
static bool is_deaf(int pid, bool *young)
{
    char path[64], text[1024], ours[512], its[512];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t n = readlink(path, its, sizeof its - 1);
    fdri_life_program_path(ours, sizeof ours);
    if (n <= 0) return false;
    its[n] = 0;
    if (strcmp(ours, its) != 0 || is_recorded(pid)) return false;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    fdri_system_read_text(path, text, sizeof text);
    bool old = age_ns(text) >= second_ns;
    *young |= !old;
    return old;
}

static int deaf_child_of(const char *task, bool *young)
{
    char path[300], list[4096], *next = list;
    snprintf(path, sizeof path, "/proc/self/task/%s/children", task);
    fdri_system_read_text(path, list, sizeof list);
    for (long pid; (pid = strtol(next, &next, 10)) > 0;)
        if (is_deaf((int)pid, young)) return (int)pid;
    return 0;
}

static int deaf_child(bool *young)
{
    int found = 0;
    DIR *tasks = fdri_system_open_folder("/proc/self/task");
    if (!tasks) return 0;
    for (struct dirent *e; !found && (e = readdir(tasks));)
        if (e->d_name[0] != '.') found = deaf_child_of(e->d_name, young);
    closedir(tasks);
    return found;
}

static uint64_t poll_children(uint64_t now_ns)
{
    static unsigned said, looks;
    bool young = false;
    if (said || looks >= LOOKS || !fdri_atomic_load_acquire(&family)) return UINT64_MAX; /* A:members */
    if (fdri_atomic_load_relaxed(&has_forked) && !look_ns) look_ns = now_ns + second_ns + second_ns / 10;
    if (!look_ns || now_ns < look_ns) return look_ns ? look_ns : UINT64_MAX;
    fdri_atomic_store_relaxed(&has_forked, 0u);
    looks++;
    int pid = deaf_child(&young);
    if (pid && fdri_text_once(&said))
        fdri_text_message("process %d is a forked child of this one and records nothing (FDR_FORK=follow has such "
                          "children record, FDR_FORK=off turns this line off)",
                          pid);
    look_ns = young ? now_ns + second_ns : 0;
    return look_ns ? look_ns : UINT64_MAX;
}

uint64_t fdri_life_poll_forked(uint64_t now_ns)
{
    return fdri_bits_min(poll_provisional(now_ns), poll_children(now_ns));
}

/* ---- around fork ---- */

void fdri_life_fork_prepare(void)
{
    const struct fdri_life_recorder *r = &fdri_life_recording;
    me.pid = fdri_system_getpid();
    if (r->running && r->settings.fork != FDRI_LIFE_FORK_OFF) save_open_calls();
}

void fdri_life_fork_parent(void)
{
    if (me.led_ns) me.first_forked = true;
    has_open_calls = false;
    if (!fdri_life_recording.running || fdri_life_recording.settings.fork != FDRI_LIFE_FORK_DAEMON) return;
    if (!fdri_atomic_swap_relaxed(&has_forked, 1u)) fdri_trigger_dumper_wake();
}

void fdri_life_fork_child(bool recorded)
{
    bool may = (recorded || may_record()) && fdri_life_recording.settings.fork != FDRI_LIFE_FORK_OFF;
    me.parent = me.pid;
    me.pid = fdri_system_getpid();
    me.orphan = may && me.led_ns && !me.first_forked && fdri_clock_ns(CLOCK_MONOTONIC) - me.led_ns < orphan_ns;
    me.led_ns = 0;
    me.first_forked = me.late = false;
    fdri_atomic_store_relaxed(&me.may_record, may);
    has_forked = 0;
    look_ns = 0;
}

void fdri_life_fork_follow(void)
{
    static unsigned said;
    bool follow = fdri_life_recording.settings.fork == FDRI_LIFE_FORK_FOLLOW;
    if (!may_record()) return;
    if (!follow && me.orphan) begin_here();
    if (follow && !in_thread(begin_later) && fdri_text_once(&said))
        fdri_text_message("FDR_FORK=follow: cannot start a thread in process %d; it records nothing", me.pid);
}

/* ---- functions of the C library that this library replaces. Weak: a program may have its own ---- */

static void made_session(void)
{
    fdri_life_fork_notice();
    if (me.pid != fdri_system_getpid()) return; /* a vfork child: the memory is its parent's */
    me.led_ns = fdri_clock_ns(CLOCK_MONOTONIC);
    me.first_forked = me.orphan = false;
    if (may_record()) begin_here();
}

FDR_API __attribute__((weak)) pid_t setsid(void)
{
    pid_t session = (pid_t)syscall(SYS_setsid);
    if (session >= 0) made_session();
    return session;
}

/* Three descriptors of /dev/null, unless somebody has put another file there. */
static int to_null(void)
{
    struct stat st;
    int fd = open("/dev/null", O_RDWR);
    if (fd < 0 || fstat(fd, &st)) return -1;
    bool is_null = S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
    for (int i = 0; i < 3 && is_null; i++) dup2(fd, i);
    if (fd > 2) close(fd);
    if (!is_null) errno = ENODEV;
    return is_null ? 0 : -1;
}

/* The C library's own calls its setsid past this one. */
FDR_API __attribute__((weak)) int daemon(int nochdir, int noclose)
{
    pid_t pid = fork();
    if (pid < 0) return -1;
    if (pid > 0) {
        fdr_finalize(); /* _exit would leave the live file of a process that did not crash */
        _exit(0);
    }
    if (setsid() < 0) return -1;
    if (!nochdir && chdir("/")) {} /* as the C library's, this goes on */
    return noclose ? 0 : to_null();
}
