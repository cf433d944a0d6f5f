/* SPDX-License-Identifier: MIT */
/* Sections: optional parts of a recording. A section is a meta block that a directory lists with a name and a version.
 * A reader that does not know the name, or the version, skips it and says so (FORMAT.md, 3.2). */
#ifndef FDRI_FORMAT_ARENA_SECTION_H
#define FDRI_FORMAT_ARENA_SECTION_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"

#define FDRI_ARENA_SECTION_NAME 8u
struct fdri_arena_section {
    char name[FDRI_ARENA_SECTION_NAME]; /* text, padded with NUL; complete before `off` is */
    uint16_t version;                   /* of its contents; changes when a reader of the old one would be wrong */
    uint16_t reserved;
    uint32_t off; /* of its meta block, 0 none */
};
static_assert(sizeof(struct fdri_arena_section) == 16, "section");

#define FDRI_ARENA_SECTION_GOVERNOR "governor" /* struct fdri_arena_governor */
#define FDRI_ARENA_SECTION_TALLIES  "tallies"  /* struct fdri_arena_tallies */
enum { FDRI_ARENA_SECTION_GOVERNOR_VERSION = 1, FDRI_ARENA_SECTION_TALLIES_VERSION = 1 };

/* Adds a section to a directory of `room` entries. False: it is full. A kill in between leaves no entry, because `off`
 * comes last. Before the recording begins; nobody else reads or writes it then. */
static inline bool fdri_arena_section_add(struct fdri_arena_section *list, uint32_t room, const char *name,
                                          uint16_t version, uint32_t off)
{
    while (room && list->off) list++, room--;
    if (!room) return false;
    memset(list->name, 0, sizeof list->name);
    memcpy(list->name, name, strnlen(name, sizeof list->name));
    list->version = version;
    fdri_atomic_signal_fence();
    fdri_atomic_store_relaxed(&list->off, off);
    return true;
}
static inline bool fdri_arena_section_is(const struct fdri_arena_section *s, const char *name)
{
    return strncmp(s->name, name, sizeof s->name) == 0;
}

#endif
