/* SPDX-License-Identifier: MIT */
/* What is kept of a thread's stack: the words that are addresses of code, or of the stack above themselves, with their places.
 * A reader unwinds by them offline. Async-signal-safe, no allocation: on the fatal path, and in live processes. */
#ifndef FDR_EXPORT_WORDS_H
#define FDR_EXPORT_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/crash.h"

/* ---- the memory map ---- */
struct fdri_map {
    uint64_t from, to;
    bool code, data;
};
enum { FDRI_MAPS = 4096, FDRI_MAPS_BYTES = 262144 };
struct fdri_maps {
    struct fdri_map map[FDRI_MAPS]; /* readable code, writable data; ascending */
    uint32_t count, bytes;
    char text[FDRI_MAPS_BYTES]; /* /proc/self/maps */
};
void fdri_maps_read(struct fdri_maps *maps);
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
