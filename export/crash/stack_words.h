/* SPDX-License-Identifier: MIT */
/* What is kept of a thread's stack: the words that are addresses of code, or of the stack above themselves, with their
 * places. A reader unwinds by them offline. Async-signal-safe, no allocation: on the fatal path, and in live
 * processes. */
#ifndef FDR_EXPORT_CRASH_STACK_WORDS_H
#define FDR_EXPORT_CRASH_STACK_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/arena/crash_section.h"

/* ---- the memory map ---- */
struct fdri_map {
    uint64_t from, to;
    bool code, data;
};
enum { FDRI_MAPS = 16384, FDRI_MAPS_BYTES = 512 << 10, FDRI_MAPS_PIECE = 16384, FDRI_MAPS_NOTE = 32 };
enum { FDRI_MAPS_LOOK = 8 << 20 }; /* so much of the list is looked at: some 190,000 mappings, 0.15 s */
struct fdri_maps {
    struct fdri_map map[FDRI_MAPS]; /* readable code, writable data; ascending */
    uint32_t count, bytes;
    uint32_t left_out; /* lines that are not in the text */
    char text[FDRI_MAPS_BYTES +
              FDRI_MAPS_NOTE]; /* /proc/self/maps; of very many mappings those that hold code, or begin a file */
    char piece[FDRI_MAPS_PIECE];
};
void fdri_maps_read(struct fdri_maps *maps);
/* The text for `room` bytes, of at least FDRI_MAPS_NOTE: as many of its first lines as fit; where some are not there a
 * last one, "... N more", says so. Its bytes. */
uint32_t fdri_maps_fit(struct fdri_maps *maps, uint32_t room);
/* A hexadecimal number; returns what stands behind it. */
const char *fdri_hex(const char *p, const char *end, uint64_t *v);

/* ---- one stack ---- */
struct fdri_words {
    struct fdr_crash_thread *head; /* sp is set; words, stack_end and the flag for what was cut are filled in */
    uint64_t *word;
    uint32_t *place;
    uint32_t most; /* words */
    uint64_t far;  /* bytes above sp to look at */
    int memory;    /* -1: memory is read as it is, and a fault is the caller's; else /proc/self/mem, open */
};
void fdri_words_scan(const struct fdri_maps *maps, const struct fdri_words *w);

#endif
