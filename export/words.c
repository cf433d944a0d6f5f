/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "export/words.h"

#include <string.h>

#include "base/bits.h"
#include "base/raw.h"
#include "base/registers.h"

/* ---- the memory map ---- */

const char *fdri_hex(const char *p, const char *end, uint64_t *v)
{
    for (*v = 0; p < end; p++) {
        unsigned d = *p >= '0' && *p <= '9'   ? (unsigned)(*p - '0')
                     : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a' + 10)
                                              : 16;
        if (d > 15) break;
        *v = *v << 4 | d;
    }
    return p;
}

/* "from-to rwxp offset device inode path" */
static const char *map_line(struct fdri_maps *maps, const char *p, const char *end)
{
    struct fdri_map m;
    p = fdri_hex(p, end, &m.from);
    p = fdri_hex(p + (p < end), end, &m.to);
    if (end - p > 4) {
        m.code = p[1] == 'r' && p[3] == 'x';
        m.data = p[1] == 'r' && p[2] == 'w';
        if (maps->count < FDRI_MAPS && m.from < m.to && (m.code || m.data)) maps->map[maps->count++] = m;
    }
    while (p < end && *p != '\n') p++;
    return p + (p < end);
}

void fdri_maps_read(struct fdri_maps *maps)
{
    int fd = fdr_raw_openat(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    uint32_t got = 0;
    for (long n = fd >= 0; n > 0 && got<FDRI_MAPS_BYTES; got += n> 0 ? (uint32_t)n : 0)
        n = fdr_raw_read(fd, maps->text + got, FDRI_MAPS_BYTES - got);
    if (fd >= 0) fdr_raw_close(fd);
    maps->bytes = got;
    maps->count = 0;
    for (const char *p = maps->text, *end = p + got; p < end;) p = map_line(maps, p, end);
}

static const struct fdri_map *map_of(const struct fdri_maps *maps, uint64_t address)
{
    uint32_t low = 0, high = maps->count;
    while (low < high) {
        uint32_t i = (low + high) / 2;
        if (address < maps->map[i].from) high = i;
        else if (address >= maps->map[i].to) low = i + 1;
        else return &maps->map[i];
    }
    return NULL;
}

/* The mapping of a stack pointer, or the one just above it: a stack that overflowed has left its own. */
static const struct fdri_map *stack_map(const struct fdri_maps *maps, uint64_t sp)
{
    const struct fdri_map *m = map_of(maps, sp);
    for (uint32_t i = 0; !m && i < maps->count; i++)
        if (maps->map[i].from > sp && maps->map[i].from - sp <= 1u << 20) m = &maps->map[i];
    return m && m->data ? m : NULL;
}

/* ---- memory ---- */

enum { PIECE = 512 }; /* words read at a time where memory is not read as it is */

__attribute__((no_sanitize("thread", "address"))) static bool look(const struct fdri_words *w, uint64_t at, uint64_t to,
                                                                   uint64_t piece[PIECE], uint64_t *value)
{
    if (w->memory < 0) {
        *value = *(const volatile uint64_t *)(uintptr_t)at;
        return true;
    }
    uint64_t i = (at - w->head->sp) / 8 % PIECE;
    uint64_t bytes = fdr_min(PIECE * 8, to - at);
    if (i == 0 && fdr_raw_result(syscall(SYS_pread64, w->memory, piece, bytes, at)) != (long)bytes) return false;
    *value = piece[i];
    return true;
}

__attribute__((no_sanitize("thread", "address"))) static bool after_call(const struct fdri_words *w, uint64_t v)
{
    uint8_t code[8];
    if (w->memory < 0) return fdr_after_call((const uint8_t *)(uintptr_t)v);
    return syscall(SYS_pread64, w->memory, code, sizeof code, v - sizeof code) == sizeof code &&
           fdr_after_call(code + sizeof code);
}

/* ---- one stack ---- */

static void keep(const struct fdri_words *w, uint64_t value, uint64_t distance, bool call)
{
    w->word[w->head->words] = value;
    w->place[w->head->words++] = (uint32_t)distance | call;
}

void fdri_words_scan(const struct fdri_maps *maps, const struct fdri_words *w)
{
    struct fdr_crash_thread *t = w->head;
    const struct fdri_map *stack = stack_map(maps, t->sp), *code = NULL;
    uint64_t piece[PIECE], v;
    if (!stack || (w->memory >= 0 && t->sp % 8)) return;
    t->stack_end = stack->to;
    uint64_t from = fdr_max((t->sp + 7) & ~7ull, stack->from), to = fdr_min(stack->to, from + w->far);
    if (w->memory >= 0 && from != t->sp) return;
    if (to < stack->to) t->flags |= FDR_THREAD_CUT;
    for (uint64_t at = from; at + 8 <= to && look(w, at, to, piece, &v); at += 8) {
        if (v < 4096) continue;
        if (t->words == w->most) {
            t->flags |= FDR_THREAD_CUT;
            return;
        }
        if (v > at && v < stack->to && v % 8 == 0) {
            keep(w, v, at - t->sp, false);
            continue;
        }
        if (!code || v < code->from || v >= code->to) code = map_of(maps, v);
        if (code && code->code) keep(w, v, at - t->sp, v - code->from >= 8 && after_call(w, v));
    }
}
