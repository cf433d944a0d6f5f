/* SPDX-License-Identifier: MIT */
/* Registers and stacks of all threads. Each thread stores its own, in the handler of a signal sent to it. A thread that
 * does not answer within 0.2 s is listed with its lines from /proc. Stacks are not unwound here: code addresses and
 * addresses of the stack itself are stored, and the reader unwinds offline. Fatal path: see crash_path.h. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/stack/registers.h"
#include "base/system/syscall.h"
#include "export/crash/bundle_room.h"
#include "export/crash/crash_path.h"
#include "export/crash/stack_words.h"
#include "export/view.h"
#include "format/arena/crash_section.h"

enum {
    THREADS = 256,
    WORDS = 160,
    SELF_WORDS = 2048,
    SCAN_SELF = 1 << 20,
    SCAN_OTHER = 128 << 10,
    WAIT_NS = 200000000
};

static uint32_t maps_ready;
struct fdri_crash_maps fdri_crash_maps;

void fdri_crash_threads_maps(void)
{
    fdri_crash_maps_read(&fdri_crash_maps);
    fdri_atomic_store_release(&maps_ready, 1u); /* R:maps - pairs with A:maps */
}

/* ---- one thread ---- */

struct slot {
    uint32_t tid;      /* atomic: claims the slot */
    uint32_t answered; /* atomic, release: the fields below are complete */
    bool deaf;         /* it blocks the signal, so it will not answer */
    /* context of its own fault, while it is in that handler; only the thread itself writes this and `begun` */
    const void *fault;
    bool begun; /* it is answering, or has answered */
    struct fdri_arena_crash_thread head;
    uint64_t registers[FDRI_STACK_REGISTERS];
    uint64_t word[WORDS];
    uint32_t place[WORDS];
};
static struct slot slots[THREADS];
static struct slot self; /* of the thread that got the fatal signal, with more room */
static uint64_t self_word[SELF_WORDS];
static uint32_t self_place[SELF_WORDS];
static uint32_t released; /* atomic: waiting threads may go on */

static void capture(struct slot *s, const void *context, uint64_t *word, uint32_t *place, uint32_t most, uint64_t far)
{
    fdri_stack_registers(context, s->registers);
    s->head.sp = fdri_stack_registers_sp(s->registers);
    s->head.pc = fdri_stack_registers_pc(s->registers);
    s->head.fp = fdri_stack_registers_fp(s->registers);
    s->head.machine = FDRI_STACK_MACHINE;
    s->head.registers = FDRI_STACK_REGISTERS;
    s->head.flags |= FDRI_ARENA_THREAD_ANSWERED;
    fdri_crash_words_scan(&fdri_crash_maps, &(struct fdri_crash_words){&s->head, word, place, most, far, -1});
}

static struct slot *slot_of(uint32_t tid)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t there = fdri_atomic_load_relaxed(&slots[i].tid);
        if (there == 0 && fdri_atomic_cas_acq_rel_u32(&slots[i].tid, &there, tid)) there = tid; /* L:slot */
        if (there != tid) continue;
        fdri_atomic_store_relaxed(&slots[i].head.tid, tid); /* set by the thread and by the asking thread alike */
        return &slots[i];
    }
    return NULL;
}

/* Stores registers and stack, once. A thread in the handler of its own fault reports the place of that fault, also if
 * it is asked within the handler. */
static void answer(struct slot *s, const void *context)
{
    if (s->begun || !fdri_atomic_load_acquire(&maps_ready)) return; /* A:maps */
    s->begun = true;
    fdri_atomic_signal_fence(); /* before the capture: on_asked may interrupt it */
    if (s == &self) capture(s, context, self_word, self_place, SELF_WORDS, SCAN_SELF);
    else capture(s, context, s->word, s->place, WORDS, SCAN_OTHER);
    fdri_atomic_store_release(&s->answered, 1u); /* R:answered - pairs with A:answered */
}

void fdri_crash_threads_fault(const void *context)
{
    struct slot *s = slot_of((uint32_t)fdri_system_gettid());
    if (s) s->fault = context;
}

void fdri_crash_threads_self(const void *context)
{
    uint32_t tid = (uint32_t)fdri_system_gettid();
    bool first = tid == fdri_crash_death.tid;
    struct slot *s = first ? &self : slot_of(tid);
    /* A:maps */
    for (int i = 0; !first && i < 50 && !fdri_atomic_load_acquire(&maps_ready); i++) fdri_system_sleep(1000000);
    if (!s) return;
    fdri_atomic_store_relaxed(&s->head.tid, tid);
    if (first) s->head.flags = FDRI_ARENA_THREAD_FAULTING;
    answer(s, context);
}

uint32_t fdri_crash_threads_place(uint64_t *pc, const uint64_t **word, const uint32_t **place)
{
    *pc = self.head.pc;
    *word = self_word;
    *place = self_place;
    return self.head.words;
}

/* ---- all the others ---- */

static void on_asked(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    int saved = errno;
    if (fdri_export_pid() == fdri_crash.pid && fdri_crash_under_way()) {
        struct slot *s = slot_of((uint32_t)fdri_system_gettid());
        /* it interrupted answer(), which must go on */
        bool answering = s && s->begun && !fdri_atomic_load_relaxed(&s->answered);
        if (s) answer(s, s->fault ? s->fault : context);
        /* wait until the process ends: a running thread could end it otherwise, or change the arena under the copy */
        while (!answering && !fdri_atomic_load_relaxed(&released) &&
               fdri_clock_ns(CLOCK_MONOTONIC) < fdri_atomic_load_relaxed(&fdri_crash_death.deadline_ns))
            fdri_system_sleep(1000000);
    }
    errno = saved;
}

void fdri_crash_threads_release(void) { fdri_atomic_store_relaxed(&released, 1u); }

void fdri_crash_threads_reset(void)
{
    memset(slots, 0, sizeof slots);
    memset(&self, 0, sizeof self);
    fdri_atomic_store_relaxed(&maps_ready, 0u);
    fdri_atomic_store_relaxed(&released, 0u);
}

/* A real-time signal without a handler, or with ours from an earlier bundle; 0: none. */
static int free_signal(void)
{
    struct sigaction now;
    for (int n = SIGRTMAX - 1; n >= SIGRTMIN; n--)
        if (!sigaction(n, NULL, &now) &&
            ((now.sa_flags & SA_SIGINFO) ? now.sa_sigaction == on_asked : now.sa_handler == SIG_DFL))
            return n;
    return 0;
}

static void ask(uint32_t tid, int number)
{
    if (tid == fdri_crash_death.tid) return;
    struct slot *s = slot_of(tid);
    if (s && number && !fdri_atomic_load_acquire(&s->answered)) /* A:answered */
        fdri_system_tgkill(fdri_crash.pid, (int)tid, number);
}

struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
}; /* of getdents64 */

static void ask_all(int number)
{
    static char list[8192] __attribute__((aligned(8)));
    int fd = fdri_system_openat(AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return;
    for (long n; (n = fdri_system_getdents(fd, list, sizeof list)) > 0;)
        for (long at = 0; at < n; at += ((struct entry *)(void *)(list + at))->bytes) {
            uint32_t tid = 0;
            for (const char *c = ((struct entry *)(void *)(list + at))->name; *c >= '0' && *c <= '9'; c++)
                tid = tid * 10 + (uint32_t)(*c - '0');
            if (tid) ask(tid, number);
        }
    fdri_system_close(fd);
}

static bool all_answered(void)
{
    for (uint32_t i = 0; i < THREADS && fdri_atomic_load_relaxed(&slots[i].tid); i++)
        if (!slots[i].deaf && !fdri_atomic_load_acquire(&slots[i].answered)) return false; /* A:answered */
    return true;
}

static uint32_t read_task(uint32_t tid, const char *file, char *to, uint32_t bytes)
{
    char path[64], *p = fdri_crash_append(path, path + sizeof path, "/proc/self/task/");
    fdri_crash_append(fdri_crash_decimal(p, tid), path + sizeof path, file);
    int fd = fdri_system_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd >= 0 ? fdri_system_read(fd, to, bytes - 1) : 0;
    if (fd >= 0) fdri_system_close(fd);
    to[n > 0 ? n : 0] = 0;
    return n > 0 ? (uint32_t)n : 0;
}

/* Marks threads that block the signal, as fdr's own threads do: they will not answer. Without a free signal no thread
 * can be asked, so all count as deaf. */
static void find_deaf(int number)
{
    static const char line[] = "SigBlk:\t";
    uint32_t tid;
    for (uint32_t i = 0; i < THREADS && (tid = fdri_atomic_load_relaxed(&slots[i].tid)); i++) {
        char text[4096];
        if (fdri_atomic_load_acquire(&slots[i].answered)) continue; /* A:answered */
        uint32_t n = read_task(tid, "/status", text, sizeof text);
        for (const char *p = text; p + sizeof line < text + n; p++) {
            uint64_t blocked;
            if (memcmp(p, line, sizeof line - 1)) continue;
            fdri_crash_hex(p + sizeof line - 1, text + n, &blocked);
            slots[i].deaf = !number || (blocked >> (number - 1) & 1);
            break;
        }
        if (!n) slots[i].deaf = true; /* the thread has ended */
    }
}

void fdri_crash_threads_others(void)
{
    struct sigaction asked;
    int number = free_signal();
    memset(&asked, 0, sizeof asked);
    asked.sa_sigaction = on_asked;
    asked.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    if (number && sigaction(number, &asked, NULL)) number = 0;
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
    uint64_t until = fdri_bits_min(
        now + WAIT_NS, now < fdri_crash_death.deadline_ns ? now + (fdri_crash_death.deadline_ns - now) / 3 : now);
    ask_all(number);
    for (uint64_t nap = 50000; !all_answered() && fdri_clock_ns(CLOCK_MONOTONIC) < until;
         nap = fdri_bits_min(nap * 2, 2000000)) {
        if (nap == 800000) find_deaf(number);
        fdri_system_sleep(nap);
    }
}

/* ---- into the section ---- */

static void name_thread(struct fdri_arena_crash_thread *t)
{
    uint32_t n = read_task(t->tid, "/comm", t->name, sizeof t->name);
    if (n && t->name[n - 1] == '\n') t->name[n - 1] = 0;
}

static void add_thread_entry(struct slot *s, const uint64_t *word, const uint32_t *place)
{
    static uint8_t body[FDRI_STACK_REGISTERS * 8 + SELF_WORDS * 8];
    uint32_t registers = s->head.registers * 8, words = s->head.words * 8;
    name_thread(&s->head);
    memcpy(body, s->registers, registers);
    memcpy(body + registers, word, words);
    fdri_crash_section_add(FDRI_ARENA_CRASH_THREAD, &s->head, sizeof s->head, body, registers + words, place,
                           s->head.words * 4);
}

static void add_silent(struct slot *s)
{
    static const char *const files[] = {"/syscall", "/stat"};
    uint32_t tid = fdri_atomic_load_relaxed(&s->tid);
    struct slot silent = {.head = {.tid = tid}}; /* a copy: it may answer at this moment */
    add_thread_entry(&silent, silent.word, silent.place);
    for (int i = 0; i < 2; i++) {
        char path[48], *p = fdri_crash_append(path, path + sizeof path, "task/");
        fdri_crash_append(fdri_crash_decimal(p, tid), path + sizeof path, files[i]);
        fdri_crash_section_proc(path);
    }
}

void fdri_crash_threads_add(void)
{
    self.head.tid = fdri_crash_death.tid;
    self.head.flags |= FDRI_ARENA_THREAD_FAULTING;
    add_thread_entry(&self, self_word, self_place);
    for (uint32_t i = 0; i < THREADS && fdri_atomic_load_relaxed(&slots[i].tid); i++) {
        uint32_t answered = fdri_atomic_load_acquire(&slots[i].answered); /* A:answered */
        if (answered) add_thread_entry(&slots[i], slots[i].word, slots[i].place);
        else add_silent(&slots[i]);
    }
}
