/* SPDX-License-Identifier: MIT */
/* Return addresses by frame pointers. The stack is read through the kernel, which says no where there is no memory: a
 * frame pointer that is none (code built without them) ends the walk and nothing else. An address counts only if code
 * lies there. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sampler/sampler.h"

enum { WINDOW = 2048, FRAME_MOST = 1 << 20, TEXTS_MOST = 1024, PAGE = 4096 };

/* ---- where code is: two tables, one of them in use ---- */

struct texts {
    uint32_t count;
    struct {
        uint64_t from, to;
    } at[TEXTS_MOST];
};
static struct texts table[2];
static uint32_t current; /* atomic */
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
    return 1; /* the first one tells */
}

bool fdri_walk_modules(void)
{
    bool changed = false;
    dl_iterate_phdr(look_at_counts, &changed);
    if (!changed) return false;
    uint32_t next = 1 - fdr_load_relaxed(&current);
    table[next].count = 0;
    dl_iterate_phdr(add_texts, &table[next]);
    fdr_store_release(&current, next); /* R:texts - pairs with A:texts */
    return true;
}

bool fdri_walk_is_code(uint64_t address)
{
    const struct texts *t = &table[fdr_load_acquire(&current)]; /* A:texts - the table is whole */
    for (uint32_t i = 0; i < t->count; i++)
        if (address >= t->at[i].from && address < t->at[i].to) return true;
    return false;
}

/* ---- the walk ---- */

struct window {
    uint64_t from, to;
    pid_t pid;
    uint64_t word[WINDOW / 8];
};

/* 16 bytes at `at` are in the window, if they are anywhere. */
static bool look_at(struct window *w, uint64_t at)
{
    if (at >= w->from && at + 16 <= w->to) return true;
    uint64_t first = PAGE - at % PAGE; /* what lies on one page comes or does not */
    if (first > WINDOW) first = WINDOW;
    struct iovec here = {w->word, WINDOW},
                 there[2] = {{(void *)(uintptr_t)at, first}, {(void *)(uintptr_t)(at + first), WINDOW - first}};
    ssize_t n = process_vm_readv(w->pid, &here, 1, there, first < WINDOW ? 2 : 1, 0);
    w->from = at;
    w->to = n > 0 ? at + (uint64_t)n : at;
    return n >= 16;
}

void fdri_walk_probe(void)
{
    uint64_t word = 0, copy = 0;
    struct iovec here = {&copy, sizeof copy}, there = {&word, sizeof word};
    if (process_vm_readv(fdri_sampler.pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof word)
        fdri_say("stacks cannot be read here (process_vm_readv: %s): samples have regions and a program counter only",
                 strerror(errno));
}

enum { FUNCTION_MOST = 65536 };

bool fdri_walk_is_caller(uint64_t address, uint64_t pc)
{
    uint8_t code[FDR_CALL_BYTES];
    struct iovec here = {code, sizeof code}, there = {(void *)(uintptr_t)(address - sizeof code), sizeof code};
    if (!fdri_walk_is_code(address) ||
        process_vm_readv(fdri_sampler.pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof code)
        return false;
    uint64_t target = fdr_call_target(code, address);
    return target && target <= pc && pc - target < FUNCTION_MOST;
}

static void add_caller(struct fdri_frames *f, struct window *w, const struct fdr_context *c)
{
    uint64_t address = c->link;
    if (!address && look_at(w, c->sp)) address = w->word[0];
    if (address && address != c->pc && fdri_walk_is_caller(address, c->pc)) f->address[f->count++] = address;
}

void fdri_walk(struct fdri_frames *f, const struct fdr_context *c)
{
    struct window w;
    uint64_t below = c->sp, fp = c->fp;
    w.from = w.to = 0;
    w.pid = fdri_sampler.pid;
    f->count = 0;
    f->cut = true;
    add_caller(f, &w, c);
    for (bool first = true; f->count < FDRI_FRAMES_MAX; first = false) {
        if (!fp && !first) f->cut = false; /* where threads begin there is a 0 */
        if (fp < below + (first ? 0 : 16) || fp - below > FRAME_MOST || fp % 8 || !look_at(&w, fp)) return;
        uint64_t address = w.word[(fp - w.from) / 8 + 1];
        if (!fdri_walk_is_code(address)) {
            f->cut = address != 0;
            return;
        }
        f->address[f->count++] = address;
        below = fp;
        fp = w.word[(fp - w.from) / 8];
    }
}
