/* SPDX-License-Identifier: MIT */
/* For the files of this room that define something: the definition that is wanted, and the lock around it. define.c
 * has the records and the lock, definition_kinds.c the kinds that programs define. */
#ifndef FDRI_RECORDER_NAMES_WANTED_DEFINITION_H
#define FDRI_RECORDER_NAMES_WANTED_DEFINITION_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/arena/arena.h"

enum {
    FDRI_NAMES_METRICS_MAX = 4096,
    FDRI_NAMES_EVENTS_MAX = 256,
};

struct fdri_names_wanted {
    uint16_t kind;
    const char *name, *file;
    size_t name_bytes, file_bytes;
    uint32_t line;
    uint64_t value, value2;
};
/* With the other fields 0. */
struct fdri_names_wanted fdri_names_wanted_as(enum fdri_arena_def_kind kind, const char *name, const char *file);
uint64_t fdri_names_hash_text(uint64_t h, const char *s, size_t n);

struct fdri_names_held {
    sigset_t mask;
    int error; /* the program's errno */
};
/* Takes the lock for a definition by the program. False, and the lock is free: nothing records. */
bool fdri_names_enter_on(struct fdri_names_held *h);
void fdri_names_leave_lock(const struct fdri_names_held *h);

/* ---- with the lock ---- */
/* Its id, also if it was there before; 0: no room (counted, and said once). Triggers see it if it is new. */
uint32_t fdri_names_define_wanted(const struct fdri_names_wanted *w, const void *payload, uint32_t payload_bytes);
/* The same without triggers. */
uint32_t fdri_names_find_or_write(const struct fdri_names_wanted *w, const void *payload, uint32_t payload_bytes);
uint32_t fdri_names_defined(enum fdri_arena_def_kind kind); /* how many there are */

#endif
