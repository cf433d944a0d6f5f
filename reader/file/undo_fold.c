/* SPDX-License-Identifier: MIT */
/* Rolls back an interrupted fold. The recorder moves the accounts of ended threads a few words at a time. A kill in
 * between leaves a list of these words with their old values; this restores them. */
#include "format/arena/arena.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Makes the bytes writable. */
static uint8_t *make_writable(struct fdr_file *f)
{
    if (!f->owned) {
        f->owned = fdri_file_aligned(64, (f->size + 63) & ~(uint64_t)63);
        if (f->owned) memcpy(f->owned, f->bytes, f->size);
        if (f->owned) f->bytes = f->owned;
    } else if (f->mapped && mprotect(f->owned, f->size, PROT_READ | PROT_WRITE)) {
        return NULL;
    }
    return f->owned;
}

void fdri_file_undo_fold(struct fdr_file *f)
{
    uint64_t off = f->sb.fold_off;
    const struct fdri_arena_fold *z = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_FOLD, UINT32_MAX,
                                                                      sizeof *z);
    if (off && !z) fdri_file_damage(f, "the fold's list of words under way is missing");
    if (!z || !z->count) return;
    uint8_t *bytes = z->count <= FDRI_ARENA_FOLD_WORDS ? make_writable(f) : NULL;
    if (!bytes) {
        fdri_file_damage(f, "the fold's list of words under way is damaged");
        return;
    }
    struct fdri_arena_fold *w = (void *)(bytes + off);
    for (uint32_t i = w->count; i-- > 0;) {
        uint64_t at = w->word[i].off;
        bool good = at % 8 == 0 && at >= f->sb.bins_off && fdri_file_at(f, at, 8) &&
                    (at < off || at >= off + sizeof *w);
        if (good) memcpy(bytes + at, &w->word[i].old_value, 8);
        else fdri_file_damage(f, "word %u in the fold's list has an impossible offset", i);
    }
    w->count = 0;
}
