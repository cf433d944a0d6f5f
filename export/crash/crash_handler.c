/* SPDX-License-Identifier: MIT */
/* The handler of signals that end a process. It stores the cause, then calls the handler installed before it. If the
 * process lives on, it removes the cause. Else it gathers the context and leaves the file. Then the signal's default
 * action happens at the interrupted instruction, as without fdr. Fatal path: see crash_path.h. */
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/stack/fault_guard.h"
#include "base/stack/registers.h"
#include "base/system/signal_action.h"
#include "base/system/syscall.h"
#include "export/crash/bundle_room.h"
#include "export/crash/crash_path.h"
#include "export/crash/program_handlers.h"
#include "export/snapshot/snapshot.h"
#include "export/view.h"
#include "format/arena/arena.h"
#include "format/arena/crash_section.h"

struct fdri_crash fdri_crash = {.file = {.fd = -1}};
struct fdri_crash_death fdri_crash_death = {.cause_count = 1}; /* [0] belongs to the death itself */
static uint32_t winner;   /* atomic: id of the thread that got the first fatal signal; 0: none */
static sigjmp_buf behind; /* the place to continue at after a fault in this handler */
static volatile uint32_t stage, faults, may_return;
static const void *interrupted; /* context of the winner's signal */

struct fdri_crash_signal fdri_crash_signals[FDRI_CRASH_SIGNALS] = {
    {.number = SIGSEGV, .fault = true, .reason = "crash: SIGSEGV"},
    {.number = SIGBUS, .fault = true, .reason = "crash: SIGBUS"},
    {.number = SIGFPE, .fault = true, .reason = "crash: SIGFPE"},
    {.number = SIGILL, .fault = true, .reason = "crash: SIGILL"},
    {.number = SIGABRT, .fault = true, .reason = "crash: SIGABRT"},
    {.number = SIGTRAP, .fault = true, .reason = "crash: SIGTRAP"},
    {.number = SIGSYS, .fault = true, .reason = "crash: SIGSYS"},
    {.number = SIGTERM, .reason = "ended by SIGTERM"},
    {.number = SIGINT, .reason = "ended by SIGINT"},
    {.number = SIGXCPU, .reason = "ended by SIGXCPU"}};

static char ended_by[80]; /* "ended by exit" */
static const struct fdri_crash_signal by_exit = {.fault = true, .reason = ended_by};

struct fdri_arena_superblock *fdri_crash_superblock(void) { return (void *)fdri_snapshot_view.base; }
bool fdri_crash_dies_here(uint32_t tid) { return fdri_atomic_load_relaxed(&winner) == tid; }
bool fdri_crash_under_way(void) { return fdri_atomic_load_relaxed(&winner) != 0; }
bool fdri_crash_ended(void) { return fdri_crash.exit_bundle_left; }

void fdri_crash_reset(void)
{
    /* The dumper, which runs already, may ask for the death under way: see fdri_crash_dies. */
    fdri_atomic_store_relaxed(&fdri_crash_death.deadline_ns, 0);
    fdri_crash_death.signal = NULL;
    fdri_crash_death.tid = 0;
    memset(fdri_crash_death.cause, 0, sizeof fdri_crash_death.cause);
    fdri_atomic_store_relaxed(&fdri_crash_death.cause_count, 1u);
    stage = faults = may_return = 0;
    fdri_crash.exit_bundle_left = false;
    fdri_crash_threads_reset();
}

void fdri_crash_forget(void)
{
    fdri_crash_reset();
    fdri_atomic_store_relaxed(&winner, 0u);
}

/* ---- the cause ---- */

struct fdri_arena_crash_cause fdri_crash_cause_of(int number, const siginfo_t *info, uint32_t flags)
{
    struct fdri_arena_crash_cause c = {
        .signal = number, .code = info->si_code, .error = info->si_errno, .flags = flags};
    bool sent = info->si_code <= 0;
    c.tid = (uint32_t)fdri_system_gettid();
    c.tick = fdri_snapshot_tick_of(fdri_snapshot_view.ticks ? fdri_clock_ticks() : fdri_clock_ns(CLOCK_MONOTONIC));
    c.realtime_ns = fdri_clock_ns(CLOCK_REALTIME);
    if (sent) {
        c.flags |= FDRI_ARENA_CAUSE_SENT;
        c.sender_pid = (uint32_t)info->si_pid;
        c.sender_uid = info->si_uid;
    } else {
        c.addr = (uint64_t)(uintptr_t)info->si_addr;
    }
    return c;
}

/* Several threads may call it: an entry counts once its signal is set. */
static void add_cause(struct fdri_arena_crash_cause c)
{
    uint32_t i = fdri_atomic_add_relaxed(&fdri_crash_death.cause_count, 1u), number = (uint32_t)c.signal;
    if (i >= 8) return;
    c.signal = 0;
    fdri_crash_death.cause[i] = c;
    fdri_atomic_store_release((uint32_t *)&fdri_crash_death.cause[i].signal, number); /* R:cause - pairs with A:cause */
}

void fdri_crash_store_cause(const struct fdri_arena_crash_cause *c)
{
    struct fdri_arena_superblock *s = fdri_crash_superblock();
    s->cause_code = c->code;
    s->cause_tid = c->tid;
    s->cause_addr = c->addr;
    s->cause_tick = c->tick;
    s->cause_realtime_ns = c->realtime_ns;
    fdri_atomic_signal_fence();
    s->cause_signal = (uint32_t)c->signal;
    fdri_atomic_signal_fence();
}

static void store_death(void)
{
    struct fdri_arena_superblock *s = fdri_crash_superblock();
    fdri_crash_store_cause(&fdri_crash_death.cause[0]);
    struct fdri_clock_reading now = fdri_clock_read(fdri_snapshot_view.ticks);
    s->clock_last = (struct fdri_arena_clock_pair){fdri_snapshot_tick_of(now.tick), now.monotonic_ns, now.realtime_ns,
                                                   0};
    strncpy(s->reason, fdri_crash_death.signal->reason, sizeof s->reason - 1);
    fdri_atomic_signal_fence();
    s->state = FDRI_ARENA_STATE_CRASHED;
}

/* Raises the signal with its default action and its original information; now, unless it is blocked. */
static void send_again(int number, siginfo_t *info)
{
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    /* if a seccomp filter refuses sigaction, the fault would repeat for ever */
    if (fdri_system_sigaction(number, &standard, NULL))
        fdri_system_tgkill(fdri_export_pid(), fdri_system_gettid(), SIGKILL);
    fdri_system_queue(fdri_export_pid(), fdri_system_gettid(), number, info);
}

/* The same, at the interrupted instruction: the signal stays blocked until the handler returns. Otherwise a core file
 * would show the handler. */
static void default_action(int number, siginfo_t *info)
{
    uint64_t it = 1ull << (number - 1), old;
    fdri_system_mask(SIG_BLOCK, &it, &old);
    send_again(number, info);
}

/* ---- the end ---- */

static void add_causes_to_section(void)
{
    uint32_t n = fdri_atomic_load_relaxed(&fdri_crash_death.cause_count);
    for (uint32_t i = 0; i < n && i < 8; i++)
        if (!i || fdri_atomic_load_acquire((uint32_t *)&fdri_crash_death.cause[i].signal)) /* A:cause */
            fdri_crash_section_add(FDRI_ARENA_CRASH_CAUSE, &fdri_crash_death.cause[i], sizeof fdri_crash_death.cause[i],
                                   NULL, 0, NULL, 0);
}
static void capture_own_stack(void) { fdri_crash_threads_self(interrupted); }

static void (*const stages[])(void) = {store_death,
                                       fdri_crash_bundle_spend,
                                       fdri_crash_threads_maps,
                                       capture_own_stack,
                                       fdri_crash_fingerprint,
                                       fdri_crash_threads_others,
                                       fdri_crash_section_begin,
                                       add_causes_to_section,
                                       fdri_crash_threads_add,
                                       fdri_crash_section_abort,
                                       fdri_crash_section_texts,
                                       fdri_crash_section_end,
                                       fdri_crash_bundle_write};
enum { STAGES = sizeof stages / sizeof *stages };

static void go_through_stages(void)
{
    if (sigsetjmp(behind, 0)) stage++; /* this stage faulted: continue with the next one */
    may_return = 1;
    for (; stage < STAGES; stage++) stages[stage]();
    may_return = 0;
}

bool fdri_crash_dies(void)
{
    return fdri_atomic_load_acquire(&fdri_crash_death.deadline_ns) && fdri_crash_death.cause[0].signal; /* A:death */
}

static void begin_death(const struct fdri_crash_signal *s, siginfo_t *info, const void *context)
{
    fdri_crash_death.signal = s;
    fdri_crash_death.tid = (uint32_t)fdri_system_gettid();
    interrupted = context;
    fdri_crash_death.cause[0] = fdri_crash_cause_of(s->number, info, 0);
    /* R:death - pairs with A:death: other dying threads wait until then */
    fdri_atomic_store_release(&fdri_crash_death.deadline_ns,
                              fdri_clock_ns(CLOCK_MONOTONIC) + fdri_snapshot_view.crash_deadline_ns);
    struct fdri_arena_crash_cause before = fdri_crash_death.cause[0];
    if (fdri_crash_program_runs(context, &before)) {
        before.flags |= FDRI_ARENA_CAUSE_BEFORE;
        add_cause(before);
    }
}

/* Runs on the winner only. status: of an exit, else 0. */
static void leave_file(const struct fdri_crash_signal *s, siginfo_t *info, const void *context, int status)
{
    uint64_t all = ~0ull, old;
    /* leave signals of faults open: a blocked fault would kill at once */
    for (int i = 0; i < FDRI_CRASH_SIGNALS; i++)
        if (fdri_crash_signals[i].fault) all &= ~(1ull << (fdri_crash_signals[i].number - 1));
    if (fdri_crash_program_raised_again(s)) all |= 1ull << (s->number - 1);
    fdri_system_mask(SIG_SETMASK, &all, &old);
    fdri_atomic_store_relaxed(&fdr_switch_.on, 0u);
    begin_death(s, info, context);
    if (s == &by_exit) fdri_crash_death.cause[0].code = status;
    go_through_stages();
    fdri_system_mask(SIG_SETMASK, &old, NULL);
}

bool fdri_crash_exit(const char *by, int status, const void *context)
{
    uint32_t none = 0, me = (uint32_t)fdri_system_gettid();
    siginfo_t nothing;
    memset(&nothing, 0, sizeof nothing);
    nothing.si_code = 1;                                                /* no process sent it */
    if (!fdri_atomic_cas_acq_rel_u32(&winner, &none, me)) return false; /* L:winner */
    fdri_crash_append(fdri_crash_append(ended_by, ended_by + sizeof ended_by, "ended by "), ended_by + sizeof ended_by,
                      by);
    fdri_crash.exit_bundle_left = true;
    leave_file(&by_exit, &nothing, context, status);
    fdri_crash_threads_release();
    fdri_atomic_store_relaxed(&winner, 0u);
    return true;
}

static void die(struct fdri_crash_signal *s, siginfo_t *info, void *context)
{
    uint32_t none = 0, me = (uint32_t)fdri_system_gettid();
    /* exit left the bundle; this signal ended the process later */
    if (fdri_crash.exit_bundle_left && fdri_atomic_load_relaxed(&winner) == 0) {
    } else if (fdri_atomic_cas_acq_rel_u32(&winner, &none, me)) { /* L:winner */
        leave_file(s, info, context, 0);
    } else if (none == me) { /* this thread has left its bundle already */
    } else {                 /* another thread's fault is being handled and ends the process */
        fdri_crash_threads_fault(context);
        add_cause(fdri_crash_cause_of(s->number, info, FDRI_ARENA_CAUSE_ALSO));
        /* A:death */
        for (int i = 0; i < 200 && !fdri_atomic_load_acquire(&fdri_crash_death.deadline_ns); i++)
            fdri_system_sleep(1000000);
        fdri_crash_threads_self(context);
        while (fdri_clock_ns(CLOCK_MONOTONIC) < fdri_crash_death.deadline_ns + 200000000u) fdri_system_sleep(1000000);
    }
    default_action(s->number, info);
}

/* A fault in this handler: skips the failed stage; after four such faults gives up. */
static void second_fault(int number, siginfo_t *info)
{
    add_cause(fdri_crash_cause_of(number, info, FDRI_ARENA_CAUSE_HANDLER));
    if (++faults <= 4 && stage < STAGES && may_return) siglongjmp(behind, 1);
    if (may_return && fdri_crash_death.signal == &by_exit) { /* the process was not dying of a fault, so it goes on */
        stage = STAGES;
        siglongjmp(behind, 1);
    }
    uint64_t none = 0;
    fdri_system_mask(SIG_SETMASK, &none, NULL);
    if (fdri_crash_death.signal) send_again(fdri_crash_death.signal->number, info);
    send_again(number, info);
}

/* ---- the arena is not mapped: its file was truncated, or this is a child that finishes its parent's record ---- */

static bool in_arena(const siginfo_t *info, int code)
{
    uint64_t at = (uint64_t)(uintptr_t)info->si_addr, base = (uint64_t)(uintptr_t)fdri_snapshot_view.base;
    return info->si_code == code && at >= base && at - base < fdri_snapshot_view.bytes;
}

/* Anonymous memory takes the place of the arena; recording stops. */
static bool arena_replaced(void)
{
    fdri_atomic_store_relaxed(&fdr_switch_.on, 0u);
    return syscall(SYS_mmap, fdri_snapshot_view.base, fdri_snapshot_view.bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != -1;
}

bool fdri_crash_catch(int number, bool chained)
{
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = fdri_crash_on_signal;
    /* SA_NODEFER: a second fault must reach the handler, not kill */
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    if (chained) ours.sa_flags |= FDRI_CRASH_CHAINED;
    return fdri_system_sigaction(number, &ours, NULL) == 0;
}

void fdri_crash_on_signal(int number, siginfo_t *info, void *context)
{
    bool faulted = info->si_code > 0; /* the kernel raised it, no process sent it */
    if (fdri_stack_guard && faulted && (number == SIGSEGV || number == SIGBUS)) siglongjmp(*fdri_stack_guard, 1);
    int saved = errno;
    struct fdri_crash_signal *s = fdri_crash_signals;
    uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    fdri_crash_program_left(here, context);
    while (s < fdri_crash_signals + FDRI_CRASH_SIGNALS - 1 && s->number != number) s++;
    enum fdri_crash_outcome outcome = fdri_crash_first() ? fdri_crash_first_signal(s, info, context, saved)
                                                         : FDRI_CRASH_NOT_MINE;
    if (outcome == FDRI_CRASH_GOES_ON) return; /* with the errno of the program's handler */
    if (fdri_export_pid() != fdri_crash.pid) { /* in a child: not its recording */
        bool gone = number == SIGSEGV && fdri_atomic_load_relaxed(&fdri_crash.arena_hidden) &&
                    in_arena(info, SEGV_MAPERR);
        if (gone && fdri_crash_arena_visible_again()) { /* the child finishes its parent's record in its own view */
        } else if (fdri_crash_program_has_handler(s)) {
            fdri_crash_program_call(s, info, context);
        } else {
            default_action(number, info);
        }
    } else if (fdri_atomic_load_relaxed(&winner) == (uint32_t)fdri_system_gettid()) {
        second_fault(number, info);
    } else if (number != SIGBUS || !in_arena(info, BUS_ADRERR) || !arena_replaced()) {
        if (outcome == FDRI_CRASH_DIES || !fdri_crash_program_handled(s, info, context)) die(s, info, context);
    }
    errno = saved;
}
