/* SPDX-License-Identifier: MIT */
/* Recovers the tallies. Damaged ones are left out: with the checks of the new file they would look whole. */
#include "format/arena/arena.h"
#include "reader/account/account.h"
#include "reader/file/file.h"
#include "reader/recover/recover_image.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static void leave_section_out(struct fdri_arena_superblock *sb, uint32_t off)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < FDRI_ARENA_SECTIONS && sb->section[i].off; i++)
        if (sb->section[i].off != off) sb->section[kept++] = sb->section[i];
    memset(sb->section + kept, 0, (FDRI_ARENA_SECTIONS - kept) * sizeof sb->section[0]);
}

/* False: the table is damaged. */
static bool recover_table(const struct fdri_recover_image *m, uint32_t off)
{
    const struct fdri_arena_tallies *was = fdri_account_tallies(m->file, off);
    if (!was) return false;
    struct fdri_arena_tallies *is = fdri_recover_image_at(m, off);
    struct fdr_tally_row unused;
    for (uint32_t i = 0; i < 1u << was->log2; i++)
        if (fdri_account_tally(m->file, &was->row[i], &unused) == FDRI_TALLIES_DAMAGED)
            memset(&is->row[i], 0, sizeof is->row[i]);
    return true;
}

void fdri_recover_tallies(struct fdri_recover_image *m)
{
    uint32_t off = fdri_file_section(m->file, FDRI_ARENA_SECTION_TALLIES);
    if (!off) return;
    if (!recover_table(m, off)) {
        leave_section_out(fdri_recover_image_at(m, 0), off);
        return;
    }
    struct fdri_arena_tallies *first = fdri_recover_image_at(m, off);
    if (!first->larger || first->larger == FDRI_ARENA_TALLIES_NEVER) return;
    if (first->larger == off || !recover_table(m, first->larger)) first->larger = FDRI_ARENA_TALLIES_NEVER;
}
