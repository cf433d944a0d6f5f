/* SPDX-License-Identifier: MIT */
/* The stored words of a thread's stack: addresses of code and addresses of the stack above themselves, with their
 * places. A reader unwinds by them offline. Async-signal-safe, no allocation: used on the fatal path and in live
 * processes. */
#ifndef FDRI_EXPORT_CRASH_STACK_WORDS_H
#define FDRI_EXPORT_CRASH_STACK_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/crash_section.h"

/* ---- the memory map ---- */
struct fdri_crash_map {
    uint64_t from, to;
    bool code, data;
};
enum {
    FDRI_CRASH_MAPS = 16384,
    FDRI_CRASH_MAPS_BYTES = 512 << 10,
    FDRI_CRASH_MAPS_PIECE = 16384,
    FDRI_CRASH_MAPS_NOTE = 32
};
enum { FDRI_CRASH_MAPS_LOOK = 8 << 20 }; /* bytes of the list to read: some 190,000 mappings, 0.15 s */
struct fdri_crash_maps {
    struct fdri_crash_map map[FDRI_CRASH_MAPS]; /* readable code, writable data; ascending */
    uint32_t count, bytes;
    uint32_t left_out; /* lines missing in the text */
    /* /proc/self/maps; with very many mappings only the lines with code or with the start of a file */
    char text[FDRI_CRASH_MAPS_BYTES + FDRI_CRASH_MAPS_NOTE];
    char piece[FDRI_CRASH_MAPS_PIECE];
};
void fdri_crash_maps_read(struct fdri_crash_maps *maps);
/* Shortens the text to `room` bytes, at least FDRI_CRASH_MAPS_NOTE: as many first lines as fit. If lines are missing,
 * the last line says "... N more". Returns the number of bytes. */
uint32_t fdri_crash_maps_fit(struct fdri_crash_maps *maps, uint32_t room);
/* Reads a hexadecimal number; returns the place behind it. */
const char *fdri_crash_hex(const char *p, const char *end, uint64_t *v);

/* ---- one stack ---- */
struct fdri_crash_words {
    struct fdri_arena_crash_thread *head; /* in: sp; out: words, stack_end and the flag for a shortened stack */
    uint64_t *word;
    uint32_t *place;
    uint32_t most; /* capacity in words */
    uint64_t far;  /* bytes above sp to scan */
    int memory;    /* /proc/self/mem, open; -1: read memory directly, the caller handles a fault */
};
void fdri_crash_words_scan(const struct fdri_crash_maps *maps, const struct fdri_crash_words *w);

#endif
