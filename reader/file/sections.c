/* SPDX-License-Identifier: MIT */
/* The directory of sections: which there are, which of them this reader knows. The others are skipped, and named. */
#include "format/arena/arena.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The newest version of each section that this reader reads. */
static const struct {
    const char *name;
    uint32_t version;
} known[] = {{FDRI_ARENA_SECTION_GOVERNOR, FDRI_ARENA_SECTION_GOVERNOR_VERSION},
             {FDRI_ARENA_SECTION_TALLIES, FDRI_ARENA_SECTION_TALLIES_VERSION}};

static bool is_known(const struct fdri_arena_section *s)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (fdri_arena_section_is(s, known[i].name) && s->version && s->version <= known[i].version) return true;
    return false;
}

/* A name is printable ASCII, then zeros. */
static bool is_name(const char *name)
{
    size_t n = strnlen(name, FDRI_ARENA_SECTION_NAME);
    for (size_t i = 0; i < FDRI_ARENA_SECTION_NAME; i++)
        if (i < n ? name[i] <= ' ' || name[i] > '~' : name[i] != 0) return false;
    return n > 0;
}

/* False: the entry is damaged. */
static bool add(struct fdr_file *f, const struct fdri_arena_section *s, uint32_t location)
{
    const struct fdri_arena_meta_head *h = fdri_file_meta_at(f, s->off, 0, location, sizeof *h);
    if (!is_name(s->name) || !h) {
        fdri_file_damage(f, "an entry of the directory of sections is damaged");
        return false;
    }
    if (!fdri_file_grow(&f->section, f->section_count, &f->section_room, sizeof *f->section)) return true;
    struct fdr_section *to = &f->section[f->section_count++];
    *to = (struct fdr_section){.version = s->version, .location = location, .bytes = h->bytes, .known = is_known(s)};
    memcpy(to->name, s->name, sizeof s->name);
    return true;
}

void fdri_file_sections(struct fdr_file *f)
{
    struct fdri_arena_section *list = f->sb.section;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < FDRI_ARENA_SECTIONS && list[i].off; i++)
        if (add(f, &list[i], UINT32_MAX)) list[kept++] = list[i];
    memset(list + kept, 0, (FDRI_ARENA_SECTIONS - kept) * sizeof *list);
}

uint32_t fdri_file_section(const struct fdr_file *f, const char *name)
{
    for (uint32_t i = 0; i < FDRI_ARENA_SECTIONS && f->sb.section[i].off; i++)
        if (fdri_arena_section_is(&f->sb.section[i], name) && is_known(&f->sb.section[i])) return f->sb.section[i].off;
    return 0;
}

size_t fdr_sections(const struct fdr_file *file, const struct fdr_section **rows)
{
    *rows = file->section;
    return file->section_count;
}
