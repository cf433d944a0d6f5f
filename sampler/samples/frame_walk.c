/* SPDX-License-Identifier: MIT */
/* Return addresses by frame pointers. The stack is read through the kernel, which refuses unmapped addresses. So a
 * wrong frame pointer, from code built without them, only ends the walk. An address counts only if code lies there. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/stack/context.h"
#include "base/system/loader.h"
#include "base/text/message.h"
#include "sampler/samples/frame_walk.h"
#include "sampler/samples/sampler.h"

enum { FRAME_MOST = 1 << 20, TEXTS_MOST = 1024, PAGE = 4096 };

/* ---- loaded code: two tables, one of them in use ---- */

struct texts {
    uint32_t count;
    struct {
        uint64_t from, to;
    } at[TEXTS_MOST];
};
static struct texts table[2];
static uint32_t current; /* atomic: number of tables so far; its lowest bit selects the one in use */
static uint64_t adds, subs;

static int add_texts(struct dl_phdr_info *info, size_t size, void *to)
{
    struct texts *t = to;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum && t->count < TEXTS_MOST; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X)) continue;
        t->at[t->count].from = info->dlpi_addr + ph->p_vaddr;
        t->at[t->count++].to = info->dlpi_addr + ph->p_vaddr + ph->p_memsz;
    }
    return 0;
}

static int look_at_counts(struct dl_phdr_info *info, size_t size, void *changed)
{
    (void)size;
    *(bool *)changed = info->dlpi_adds != adds || info->dlpi_subs != subs;
    adds = info->dlpi_adds;
    subs = info->dlpi_subs;
    return 1; /* the first module has the counts of all */
}

bool fdri_samples_walk_modules(void)
{
    bool changed = false;
    fdri_system_each_module(look_at_counts, &changed);
    if (!changed) return false;
    uint32_t next = fdri_atomic_load_relaxed(&current) + 1;
    table[next & 1].count = 0;
    fdri_system_each_module(add_texts, &table[next & 1]);
    fdri_atomic_store_release(&current, next); /* R:texts - pairs with A:texts */
    return true;
}

/* `hint`: where the last address was found; the next one is often in the same file. */
static bool is_code(uint64_t address, uint32_t *hint)
{
    const struct texts *t = &table[fdri_atomic_load_acquire(&current) & 1]; /* A:texts - the table is complete */
    uint32_t i = *hint, n = t->count;
    if (i < n && address >= t->at[i].from && address < t->at[i].to) return true;
    for (i = 0; i < n && (address < t->at[i].from || address >= t->at[i].to);) i++;
    *hint = i;
    return i < n;
}

bool fdri_samples_walk_is_code(uint64_t address)
{
    uint32_t hint = 0;
    return is_code(address, &hint);
}

/* ---- the walk ---- */

/* Reads by the calling thread's id. The process's id is that of its first thread, which has no memory after
 * pthread_exit. */
static ssize_t own_memory(const struct iovec *here, const struct iovec *there)
{
    return process_vm_readv((pid_t)fdri_samples_own_tid(), here, 1, there, 1, 0);
}

/* Reads up to `bytes` at `at`; returns the number read. */
static ssize_t fetch(struct fdri_samples_window *w, uint64_t at, uint64_t bytes)
{
    struct iovec here = {w->word, bytes}, there = {(void *)(uintptr_t)at, bytes};
    return own_memory(&here, &there);
}

/* Loads the window if necessary. True: the 16 bytes at `at` are in it. */
static bool look_at(struct fdri_samples_window *w, uint64_t at)
{
    if (at >= w->from && at + 16 <= w->to) return true;
    uint64_t first = PAGE - at % PAGE; /* a page is readable as a whole, or not at all */
    ssize_t n = fetch(w, at, FDRI_SAMPLES_WINDOW);
    if (n < 16 && first < FDRI_SAMPLES_WINDOW) n = fetch(w, at, first); /* the stack may end with this page */
    w->from = at;
    w->to = n > 0 ? at + (uint64_t)n : at;
    return n >= 16;
}

void fdri_samples_walk_probe(void)
{
    uint64_t word = 0, copy = 0;
    struct iovec here = {&copy, sizeof copy}, there = {&word, sizeof word};
    if (own_memory(&here, &there) != (ssize_t)sizeof word)
        fdri_text_message(
            "stacks cannot be read here (process_vm_readv: %s): samples have regions and a program counter only",
            strerror(errno));
}

enum { FUNCTION_MOST = 65536 };

/* The target of the direct call before `address`; 0: there is none. The code may be unmapped, so it is read through the
 * kernel. The result is valid until a file is loaded or unloaded. */
static uint64_t call_target(struct fdri_samples_calls *known, uint64_t address)
{
    uint32_t tables = fdri_atomic_load_acquire(&current); /* A:texts */
    if (known->tables != tables) *known = (struct fdri_samples_calls){.tables = tables};
    struct fdri_samples_call *k = &known->call[address * 0x9E3779B97F4A7C15u >> 60];
    if (k->address == address) return k->target;
    uint8_t code[FDRI_STACK_CALL_BYTES];
    struct iovec here = {code, sizeof code}, there = {(void *)(uintptr_t)(address - sizeof code), sizeof code};
    if (!fdri_samples_walk_is_code(address)) return 0;
    bool came = own_memory(&here, &there) == (ssize_t)sizeof code;
    *k = (struct fdri_samples_call){address, came ? fdri_stack_call_target(code, address) : 0};
    return k->target;
}

bool fdri_samples_walk_is_caller(struct fdri_samples_calls *known, uint64_t address, uint64_t pc)
{
    uint64_t target = call_target(known, address);
    return target && target <= pc && pc - target < FUNCTION_MOST;
}

static void add_caller(struct fdri_samples_frames *f, struct fdri_samples_window *w, const struct fdri_stack_context *c,
                       struct fdri_samples_calls *known)
{
    uint64_t address = c->link;
    if (!address && look_at(w, c->sp)) address = w->word[0];
    if (address && address != c->pc && fdri_samples_walk_is_caller(known, address, c->pc))
        f->address[f->count++] = address;
}

void fdri_samples_walk(struct fdri_samples_frames *f, struct fdri_samples_window *w, const struct fdri_stack_context *c,
                       struct fdri_samples_calls *known)
{
    uint32_t hint = 0;
    uint64_t below = c->sp, fp = c->fp;
    w->from = w->to = 0;
    f->count = 0;
    f->cut = true;
    add_caller(f, w, c, known);
    for (bool first = true; f->count < FDRI_SAMPLES_FRAMES_MAX; first = false) {
        if (!fp && !first) f->cut = false; /* the outermost frame of a thread has frame pointer 0 */
        if (fp < below + (first ? 0 : 16) || fp - below > FRAME_MOST || fp % 8 || !look_at(w, fp)) return;
        uint64_t address = w->word[(fp - w->from) / 8 + 1];
        if (!is_code(address, &hint)) {
            f->cut = address != 0;
            return;
        }
        f->address[f->count++] = address;
        below = fp;
        fp = w->word[(fp - w->from) / 8];
    }
}
