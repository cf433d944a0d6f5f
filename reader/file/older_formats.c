/* SPDX-License-Identifier: MIT */
/* Recordings of format 1, in the terms of the present format. */
#include "format/arena/arena.h"
#include "reader/file/file.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { GOVERNOR_OFF_1 = 2584 }; /* u32: off of the governor's account, 0 none */

void fdri_file_from_format1(struct fdr_file *f)
{
    uint32_t governor;
    memcpy(&governor, f->bytes + GOVERNOR_OFF_1, sizeof governor);
    memset(f->sb.section, 0, sizeof f->sb.section);
    if (governor) fdri_arena_section_add(f->sb.section, FDRI_ARENA_SECTIONS, FDRI_ARENA_SECTION_GOVERNOR, 1, governor);
    f->sb.format_version = FDRI_ARENA_FORMAT_VERSION;
}
