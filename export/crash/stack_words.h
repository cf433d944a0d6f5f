/* SPDX-License-Identifier: MIT */
/* What is kept of a thread's stack: the words that are addresses of code, or of the stack above themselves, with their
 * places. A reader unwinds by them offline. Async-signal-safe, no allocation: on the fatal path, and in live
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
enum { FDRI_CRASH_MAPS_LOOK = 8 << 20 }; /* so much of the list is looked at: some 190,000 mappings, 0.15 s */
struct fdri_crash_maps {
    struct fdri_crash_map map[FDRI_CRASH_MAPS]; /* readable code, writable data; ascending */
    uint32_t count, bytes;
    uint32_t left_out; /* lines that are not in the text */
    /* /proc/self/maps; of very many mappings those that hold code, or begin a file */
    char text[FDRI_CRASH_MAPS_BYTES + FDRI_CRASH_MAPS_NOTE];
    char piece[FDRI_CRASH_MAPS_PIECE];
};
void fdri_crash_maps_read(struct fdri_crash_maps *maps);
/* The text for `room` bytes, of at least FDRI_CRASH_MAPS_NOTE: as many of its first lines as fit; where some are not
 * there a last one, "... N more", says so. Its bytes. */
uint32_t fdri_crash_maps_fit(struct fdri_crash_maps *maps, uint32_t room);
/* A hexadecimal number; returns what stands behind it. */
const char *fdri_crash_hex(const char *p, const char *end, uint64_t *v);

/* ---- one stack ---- */
struct fdri_crash_words {
    struct fdri_arena_crash_thread *head; /* sp is set; words, stack_end and the flag for what was cut are filled in */
    uint64_t *word;
    uint32_t *place;
    uint32_t most; /* words */
    uint64_t far;  /* bytes above sp to look at */
    int memory;    /* -1: memory is read as it is, and a fault is the caller's; else /proc/self/mem, open */
};
void fdri_crash_words_scan(const struct fdri_crash_maps *maps, const struct fdri_crash_words *w);

#endif
