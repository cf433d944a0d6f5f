/* SPDX-License-Identifier: MIT */
/* Finds the words of one stack that are worth storing, and reads the memory map, which separates code from data. */
#define _GNU_SOURCE
#include "base/bits.h"
#include "base/stack/registers.h"
#include "base/system/syscall.h"
#include "export/crash/stack_words.h"
#include "export/crash/bundle_room.h"
#include "format/arena/crash_section.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- the memory map ---- */

const char *fdri_crash_hex(const char *p, const char *end, uint64_t *v)
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

static void keep_line(struct fdri_crash_maps *maps, const char *p, uint32_t bytes, bool matters)
{
    if (maps->bytes + bytes > (uint32_t)(matters ? FDRI_CRASH_MAPS_BYTES : FDRI_CRASH_MAPS_BYTES / 2)) {
        maps->left_out++;
        return;
    }
    memcpy(maps->text + maps->bytes, p, bytes);
    maps->bytes += bytes;
}

/* Parses one line "from-to rwxp offset device inode path", up to `end` behind it. */
static void map_line(struct fdri_crash_maps *maps, const char *line, const char *end)
{
    struct fdri_crash_map m;
    uint64_t offset = 1;
    bool code = false, file = false;
    const char *p = fdri_crash_hex(line, end, &m.from);
    p = fdri_crash_hex(p + (p < end), end, &m.to);
    if (end - p > 6) {
        code = p[3] == 'x';
        m.code = p[1] == 'r' && code;
        m.data = p[1] == 'r' && p[2] == 'w';
        if (maps->count < FDRI_CRASH_MAPS && m.from < m.to && (m.code || m.data)) maps->map[maps->count++] = m;
        p = fdri_crash_hex(p + 6, end, &offset);
    }
    while (p < end) file |= *p++ == '/';
    keep_line(maps, line, (uint32_t)(end - line), file && (code || offset == 0));
}

/* Reads line by line: a process may have tens of thousands of mappings, and its stack is among the last. False: the
 * file is empty or cannot be read. */
static bool read_lines(struct fdri_crash_maps *maps, const char *path)
{
    int fd = fdri_system_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    uint32_t held = 0, seen = 0;
    for (long n = fd >= 0; n > 0 && seen < FDRI_CRASH_MAPS_LOOK;) {
        n = fdri_system_read(fd, maps->piece + held, FDRI_CRASH_MAPS_PIECE - held);
        if (n > 0) held += (uint32_t)n, seen += (uint32_t)n;
        const char *p = maps->piece, *end = p + held, *next;
        while ((next = memchr(p, '\n', (size_t)(end - p)))) map_line(maps, p, next + 1), p = next + 1;
        if (p == maps->piece && held == FDRI_CRASH_MAPS_PIECE) p = end; /* no line of the kernel is that long */
        held = (uint32_t)(end - p);
        memmove(maps->piece, p, held);
    }
    if (fd >= 0) fdri_system_close(fd);
    return seen > 0;
}

void fdri_crash_maps_read(struct fdri_crash_maps *maps)
{
    maps->bytes = maps->count = maps->left_out = 0;
    if (read_lines(maps, "/proc/self/maps")) return;
    read_lines(maps, "/proc/thread-self/maps"); /* the first thread has ended, so its list is empty */
}

uint32_t fdri_crash_maps_fit(struct fdri_crash_maps *maps, uint32_t room)
{
    char digits[24], *d = digits + sizeof digits;
    if (room > sizeof maps->text) room = sizeof maps->text;
    if (!maps->left_out && maps->bytes <= room) return maps->bytes;
    while (maps->bytes > room - FDRI_CRASH_MAPS_NOTE) {
        maps->left_out++;
        maps->bytes--;
        while (maps->bytes && maps->text[maps->bytes - 1] != '\n') maps->bytes--;
    }
    for (uint32_t n = maps->left_out; n; n /= 10) *--d = (char)('0' + n % 10);
    char *to = maps->text + maps->bytes, *from = to;
    memcpy(to, "... ", 4), to += 4;
    memcpy(to, d, (size_t)(digits + sizeof digits - d)), to += digits + sizeof digits - d;
    memcpy(to, " more\n", 6), to += 6;
    return maps->bytes + (uint32_t)(to - from);
}

const struct fdri_crash_map *fdri_crash_words_map(const struct fdri_crash_maps *maps, uint64_t address)
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

/* The mapping of a stack pointer, or one within 1 MiB above it: an overflowed stack pointer has left its mapping. */
static const struct fdri_crash_map *stack_map(const struct fdri_crash_maps *maps, uint64_t sp)
{
    const struct fdri_crash_map *m = fdri_crash_words_map(maps, sp);
    for (uint32_t i = 0; !m && i < maps->count; i++)
        if (maps->map[i].from > sp && maps->map[i].from - sp <= 1u << 20) m = &maps->map[i];
    return m && m->data ? m : NULL;
}

/* ---- memory ---- */

enum { PIECE = 512 }; /* words for one pread of /proc/self/mem */

__attribute__((no_sanitize("thread", "address"))) static bool
scan_piece(const struct fdri_crash_words *w, uint64_t at, uint64_t to, uint64_t piece[PIECE], uint64_t *value)
{
    if (w->memory < 0) {
        *value = *(const volatile uint64_t *)(uintptr_t)at;
        return true;
    }
    uint64_t i = (at - w->head->sp) / 8 % PIECE;
    uint64_t bytes = fdri_bits_min(PIECE * 8, to - at);
    if (i == 0 && fdri_system_result(syscall(SYS_pread64, w->memory, piece, bytes, at)) != (long)bytes) return false;
    *value = piece[i];
    return true;
}

__attribute__((no_sanitize("thread", "address"))) static bool after_call(const struct fdri_crash_words *w, uint64_t v)
{
    uint8_t code[8];
    if (w->memory < 0) return fdri_stack_after_call((const uint8_t *)(uintptr_t)v);
    return syscall(SYS_pread64, w->memory, code, sizeof code, v - sizeof code) == sizeof code &&
           fdri_stack_after_call(code + sizeof code);
}

/* ---- one stack ---- */

static void keep_word(const struct fdri_crash_words *w, uint64_t value, uint64_t distance, bool call)
{
    w->word[w->head->words] = value;
    w->place[w->head->words++] = (uint32_t)distance | call;
}

void fdri_crash_words_scan(const struct fdri_crash_maps *maps, const struct fdri_crash_words *w)
{
    struct fdri_arena_crash_thread *t = w->head;
    const struct fdri_crash_map *stack = stack_map(maps, t->sp), *code = NULL;
    uint64_t piece[PIECE], v;
    if (!stack || (w->memory >= 0 && t->sp % 8)) return;
    t->stack_end = stack->to;
    uint64_t from = fdri_bits_max((t->sp + 7) & ~7ull, stack->from), to = fdri_bits_min(stack->to, from + w->far);
    if (w->memory >= 0 && from != t->sp) return;
    uint64_t at = from;
    for (; at + 8 <= to && scan_piece(w, at, to, piece, &v); at += 8) {
        if (v < 4096) continue;
        if (t->words >= w->most) break;
        if (v > at && v < stack->to && v % 8 == 0) {
            keep_word(w, v, at - t->sp, false);
            continue;
        }
        if (!code || v < code->from || v >= code->to) code = fdri_crash_words_map(maps, v);
        if (code && code->code) keep_word(w, v, at - t->sp, v - code->from >= 8 && after_call(w, v));
    }
    t->scanned_bytes = (uint32_t)(at - t->sp);
    if (at + 8 <= stack->to) t->flags |= FDRI_ARENA_THREAD_CUT;
}
