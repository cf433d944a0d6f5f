/* SPDX-License-Identifier: MIT */
/* May a dying process copy its bundle to FDR_DIR? Decided ahead of time: bundle_room.c is promised room while the
 * process is healthy; fingerprint.c computes which deaths are alike, and asks, on the fatal path. */
#ifndef FDRI_EXPORT_CRASH_BUNDLE_ROOM_H
#define FDRI_EXPORT_CRASH_BUNDLE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "export/crash/stack_words.h"
#include "retention/retention.h"

struct fdri_crash_room {
    uint32_t promised;    /* atomic: there is room for a bundle */
    uint32_t known_count; /* atomic: fingerprints with a bundle in FDR_DIR; the array may change meanwhile */
    uint64_t known[FDRI_RETENTION_KNOWN];
    uint64_t program_from, program_to; /* code of the executable */
    uint64_t build;                    /* a hash of its build id, or of its path; and of the rank */
};
extern struct fdri_crash_room fdri_crash_room;

/* ---- bundle_room.c ---- */
void fdri_crash_room_start(void);
/* For the dumper: looks if it is time. Returns the time of its next call. */
uint64_t fdri_crash_room_look(uint64_t now_ns);

/* ---- fingerprint.c, on the fatal path ---- */
/* Stores the death's fingerprint in the superblock. After the dying thread's stack was stored. */
void fdri_crash_fingerprint(void);
/* True if room was promised, or this is the first bundle of its fingerprint and no other process has written one beyond
 * the limits. dir: of the live files, else FDR_DIR. */
bool fdri_crash_fingerprint_may_copy(int dir);
/* No bundle was written after all. */
void fdri_crash_fingerprint_not_copied(int dir);

/* ---- crash_threads.c ---- */
/* The dying thread's place: its pc, and the stored words of its stack with their places. Returns their number. */
uint32_t fdri_crash_threads_place(uint64_t *pc, const uint64_t **word, const uint32_t **place);
/* ---- stack_words.c ---- */
/* The mapping of an address, NULL: none. */
const struct fdri_crash_map *fdri_crash_words_map(const struct fdri_crash_maps *maps, uint64_t address);

#endif
