/* SPDX-License-Identifier: MIT */
/* Stacks of all threads of a process that goes on, for the watchdog.
 *
 * A running thread is asked by a signal, as in a crash, and goes on at once. So is a thread in a call that the kernel
 * restarts after a handler. Other waiting threads are not disturbed. A signal would end their call early (sleep, poll,
 * all calls with a time limit), or they block the signal. /proc gives their place, and this thread reads their stacks.
 *
 * The signal is one with the default action "ignore". If it arrives late, or is pending at exec, it does no harm. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "base/fd/open_high.h"
#include "base/stack/registers.h"
#include "base/system/procfs.h"
#include "base/system/syscall.h"
#include "base/system/task_state.h"
#include "export/crash/crash_path.h"
#include "export/crash/stack_words.h"
#include "export/snapshot/snapshot.h"
#include "export/trigger/trigger.h"
#include "export/view.h"
#include "format/arena/crash_section.h"

enum { THREADS = FDRI_TRIGGER_STACKS, WORDS = 160, FAR = 128 << 10, WAIT_NS = 200000000, WAIT_LONG = 10 };

/* FREE -> ASKED (by the asking thread) -> WRITING (by the asked thread, in its handler) -> DONE */
enum { FREE, ASKED, WRITING, DONE };
struct slot {
    uint32_t state, tid; /* atomic */
    struct fdri_arena_crash_thread head;
    uint64_t registers[FDRI_STACK_REGISTERS];
    uint64_t word[WORDS];
    uint32_t place[WORDS];
};
static struct slot slots[THREADS];
static uint32_t used;
static struct fdri_crash_maps maps;
static int memory = -1; /* /proc/self/mem */

static void scan(struct slot *s)
{
    s->head.flags |= FDRI_ARENA_THREAD_ANSWERED;
    s->head.machine = FDRI_STACK_MACHINE;
    s->head.registers = FDRI_STACK_REGISTERS;
    fdri_crash_words_scan(&maps, &(struct fdri_crash_words){&s->head, s->word, s->place, WORDS, FAR, memory});
}

/* ---- in the asked thread ---- */

static void on_asked(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    int saved = errno;
    uint32_t me = (uint32_t)fdri_system_gettid();
    for (uint32_t i = 0; i < THREADS; i++) {
        struct slot *s = &slots[i];
        uint32_t asked = ASKED;
        /* A:stack */
        if (fdri_atomic_load_relaxed(&s->tid) != me || !fdri_atomic_cas_acq_rel_u32(&s->state, &asked, WRITING))
            continue;
        fdri_stack_registers(context, s->registers);
        s->head.sp = fdri_stack_registers_sp(s->registers);
        s->head.pc = fdri_stack_registers_pc(s->registers);
        s->head.fp = fdri_stack_registers_fp(s->registers);
        scan(s);
        fdri_atomic_store_release(&s->state, DONE); /* R:stack - pairs with A:stack */
        break;
    }
    errno = saved;
}

static int install(void)
{
    static const int choice[] = {SIGURG, SIGWINCH};
    struct sigaction now, ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_asked;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    for (int i = 0; i < 2; i++)
        if (choice[i] != fdri_snapshot_view.signal && !sigaction(choice[i], NULL, &now) &&
            !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL && !sigaction(choice[i], &ours, NULL))
            return choice[i];
    return 0;
}

static void uninstall(int number)
{
    struct sigaction now, standard;
    memset(&standard, 0, sizeof standard);
    if (number && !sigaction(number, NULL, &now) && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_asked)
        sigaction(number, &standard, NULL);
}

/* ---- from /proc ---- */

enum thread_execution { EXECUTION_UNKNOWN, RUNS, WAITS_AGAIN, WAITS_ONCE }; /* the last two: sp and pc are known */

static enum thread_execution execution_state(uint32_t tid, uint64_t *sp, uint64_t *pc)
{
    struct fdri_system_call c;
    fdri_system_call_read(0, tid, &c);
    if (c.state == FDRI_SYSTEM_CALL_RUNS) return RUNS;
    if (c.state == FDRI_SYSTEM_CALL_UNKNOWN) return EXECUTION_UNKNOWN;
    *sp = c.sp;
    *pc = c.pc;
    bool again = (fdri_system_is_futex(&c) && !c.argument[3]) || c.number == SYS_wait4 || c.number == SYS_waitid;
    return again ? WAITS_AGAIN : WAITS_ONCE;
}

static bool blocks(uint32_t tid, int number)
{
    char text[4096];
    uint64_t set = ~0ull;
    fdri_system_read_task(tid, "status", text, sizeof text);
    const char *line = strstr(text, "SigBlk:");
    if (line) set = strtoull(line + 7, NULL, 16);
    return set >> (number - 1) & 1;
}

static void by_proc(struct slot *s, uint64_t sp, uint64_t pc)
{
    memset(s->registers, 0, sizeof s->registers);
    fdri_stack_registers_place(s->registers, sp, pc);
    s->head = (struct fdri_arena_crash_thread){.tid = s->tid, .sp = sp, .pc = pc, .flags = FDRI_ARENA_THREAD_PLACE};
    scan(s);
    fdri_atomic_store_relaxed(&s->state, DONE);
}

/* ---- all of them ---- */

static void ask(uint32_t tid, int number)
{
    uint64_t sp, pc;
    /* A:stack - a late thread of an earlier round may still be writing */
    while (used < THREADS && fdri_atomic_load_acquire(&slots[used].state) == WRITING) used++;
    if (used == THREADS || tid == (uint32_t)fdri_system_gettid()) return;
    struct slot *s = &slots[used++];
    s->head = (struct fdri_arena_crash_thread){.tid = tid};
    fdri_atomic_store_relaxed(&s->tid, tid);
    bool hears = number && !blocks(tid, number);
    /* last: a call that begins after this look may end early */
    enum thread_execution way = execution_state(tid, &sp, &pc);
    hears &= way != EXECUTION_UNKNOWN;
    if (way == WAITS_ONCE || (way == WAITS_AGAIN && !hears)) {
        by_proc(s, sp, pc);
    } else if (hears) {
        fdri_atomic_store_release(&s->state, ASKED); /* R:stack - the slot is clear */
        fdri_system_tgkill(fdri_export_pid(), (int)tid, number);
    }
}

static bool contains_tid(const struct fdri_trigger_tids *these, uint32_t tid)
{
    for (uint32_t i = 0; i < these->count; i++)
        if (these->tid[i] == tid) return true;
    return false;
}

static void ask_all(int number, const struct fdri_trigger_tids *first)
{
    for (uint32_t i = 0; i < first->count; i++) ask(first->tid[i], number);
    DIR *d = fdri_system_open_folder("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10); /* 0 for . and .. */
        if (tid && !contains_tid(first, tid)) ask(tid, number);
    }
    if (d) closedir(d);
}

static bool all_answered(void)
{
    bool all = true;
    for (uint32_t i = 0; i < used; i++) {
        uint32_t state = fdri_atomic_load_acquire(&slots[i].state); /* A:stack */
        all &= state != ASKED && state != WRITING;
    }
    return all;
}

static bool is_running(uint32_t tid)
{
    char text[512];
    return fdri_system_read_task(tid, "syscall", text, sizeof text) && !strncmp(text, "running", 7);
}

/* True if a thread that was asked has had no processor yet. */
static bool one_may_answer(void)
{
    for (uint32_t i = 0; i < used; i++) {
        uint32_t state = fdri_atomic_load_acquire(&slots[i].state); /* A:stack */
        if ((state == ASKED || state == WRITING) && is_running(slots[i].tid)) return true;
    }
    return false;
}

static void await_answers(void)
{
    uint64_t since = fdri_clock_ns(CLOCK_MONOTONIC), now = since;
    while (!all_answered() && now - since < WAIT_NS) {
        usleep(500);
        now = fdri_clock_ns(CLOCK_MONOTONIC);
    }
    while (!fdri_trigger_dumper_stops() && one_may_answer() && now - since < (uint64_t)WAIT_LONG * WAIT_NS) {
        usleep(20000);
        now = fdri_clock_ns(CLOCK_MONOTONIC);
    }
}

/* A thread that did not answer may be waiting by now, so /proc can give its place. A slot in state WRITING is left to
 * its thread. */
static void fill_from_proc(struct slot *s)
{
    uint64_t sp, pc;
    uint32_t asked = ASKED;
    if (fdri_atomic_cas_acq_rel_u32(&s->state, &asked, FREE) || asked == FREE) /* L:stack */
        if (execution_state(s->tid, &sp, &pc) >= WAITS_AGAIN) by_proc(s, sp, pc);
}

static void add_thread_entry(struct fdri_crash_section *to, struct slot *s, uint32_t most)
{
    static uint8_t body[sizeof s->registers + sizeof s->word];
    struct slot silent = {.head = {.tid = s->tid}};
    if (fdri_atomic_load_acquire(&s->state) != DONE) s = &silent; /* A:stack */
    if (s->head.words > most) {
        s->head.words = most;
        s->head.scanned_bytes = s->place[most] & ~7u;
        s->head.flags |= FDRI_ARENA_THREAD_CUT;
    }
    uint32_t registers = s->head.registers * 8, words = s->head.words * 8;
    char name[32];
    size_t n = fdri_system_read_task(s->head.tid, "comm", name, sizeof name);
    memset(s->head.name, 0, sizeof s->head.name);
    memcpy(s->head.name, name, n && n <= sizeof s->head.name ? n - 1 : 0);
    memcpy(body, s->registers, registers);
    memcpy(body + registers, s->word, words);
    fdri_crash_section_put(to, FDRI_ARENA_CRASH_THREAD, &s->head, sizeof s->head, body, registers + words, s->place,
                           s->head.words * 4);
}

static void put_all(struct fdri_crash_section *to)
{
    uint32_t fixed = sizeof(struct fdri_arena_crash_entry) + sizeof(struct fdri_arena_crash_thread) +
                     8 * FDRI_STACK_REGISTERS + 8;
    uint32_t each = used ? (to->room - to->used) / used : 0;
    uint32_t most = each > fixed ? (uint32_t)fdri_bits_min((each - fixed) / 12, WORDS) : 0;
    for (uint32_t i = 0; i < used; i++) add_thread_entry(to, &slots[i], most);
    if (to->room - to->used > 256) { /* as much of the map as fits: the recording knows earlier modules */
        uint32_t room = to->room - to->used - 64;
        fdri_crash_section_put(to, FDRI_ARENA_CRASH_TEXT, "maps", 5, maps.text, fdri_crash_maps_fit(&maps, room), NULL,
                               0);
    }
}

uint32_t fdri_trigger_stacks_take(uint8_t *bytes, uint32_t room, const struct fdri_trigger_tids *first)
{
    struct fdri_crash_section section = {.bytes = bytes, .room = room};
    if (room < 4096) return 0;
    bool busy = false; /* a thread of an earlier round is still writing; it reads `maps` and `memory` */
    for (uint32_t i = 0; i < THREADS; i++) busy |= fdri_atomic_load_acquire(&slots[i].state) == WRITING; /* A:stack */
    if (busy) return 0;
    for (uint32_t i = 0; i < THREADS; i++) fdri_atomic_store_relaxed(&slots[i].state, (uint32_t)FREE);
    used = 0;
    /* thread-self: the first thread may have ended */
    memory = fdri_fd_open(AT_FDCWD, "/proc/thread-self/mem", O_RDONLY, 0);
    if (memory < 0) return 0;
    fdri_crash_maps_read(&maps);
    int number = install();
    ask_all(number, first);
    await_answers();
    for (uint32_t i = 0; i < used; i++) fill_from_proc(&slots[i]);
    fdri_crash_section_open(&section);
    put_all(&section);
    fdri_crash_section_close(&section);
    uninstall(number);
    close(memory);
    return section.used;
}
