/* SPDX-License-Identifier: MIT */
/* Names of regions, metrics and events for reasons and messages. It searches all definitions in the arena, so it is
 * slow. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "export/snapshot/snapshot.h"
#include "export/trigger/trigger.h"
#include "export/view.h"
#include "format/arena/arena.h"

static const struct fdri_arena_def *find(uint32_t kind, uint32_t id)
{
    const struct fdri_arena_superblock *s = (const void *)fdri_snapshot_view.base;
    for (uint32_t off = fdri_atomic_load_acquire(&s->defs_first); off;) { /* A:defs */
        const struct fdri_arena_defs_block *b = (const void *)(fdri_snapshot_view.base + off);
        uint32_t used = fdri_atomic_load_acquire(&b->used); /* A:defs */
        for (uint32_t at = 0; at < used;) {
            const struct fdri_arena_def *d = (const void *)((const uint8_t *)(b + 1) + at);
            if (d->kind == kind && d->id == id) return d;
            if (!d->bytes) break;
            at += d->bytes;
        }
        off = fdri_atomic_load_acquire(&b->next); /* A:defs */
    }
    return NULL;
}

bool fdri_trigger_name_of(uint32_t key, char *name, size_t bytes)
{
    uint32_t kind = key >> 24, id = key & 0xffffffu;
    name[0] = 0;
    if (key == FDRI_EXPORT_NO_KEY) return false;
    if (kind == 0) {
        snprintf(name, bytes, "%s", id == 1 ? "send" : "recv");
        return true;
    }
    const struct fdri_arena_def *d = find(kind, id);
    if (!d) return false;
    if (d->name_bytes) snprintf(name, bytes, "%.*s", (int)d->name_bytes, (const char *)(d + 1));
    else if (kind == FDRI_ARENA_DEF_REGION && fdri_snapshot_view.name_function)
        fdri_snapshot_view.name_function((uint32_t)d->value2, d->value, name, bytes);
    bool named = name[0] != 0;
    if (!named) snprintf(name, bytes, "0x%llx", (unsigned long long)d->value);
    return named;
}

/* The name; then its place in the source as far as the definition has it; then the address of a function. */
void fdri_trigger_describe(uint32_t key, char *text, size_t bytes)
{
    bool named = fdri_trigger_name_of(key, text, bytes);
    const struct fdri_arena_def *d = named && key >> 24 ? find(key >> 24, key & 0xffffffu) : NULL;
    if (!d) return;
    const char *file = (const char *)(d + 1) + d->name_bytes + 1, *slash = strrchr(file, '/');
    size_t used = strlen(text);
    if (d->name_bytes && d->file_bytes && d->kind == FDRI_ARENA_DEF_REGION)
        snprintf(text + used, bytes - used, " (%.60s:%u)", slash ? slash + 1 : file, d->line);
    else if (!d->name_bytes && d->kind == FDRI_ARENA_DEF_REGION)
        snprintf(text + used, bytes - used, " 0x%llx", (unsigned long long)d->value);
}

void fdri_trigger_add_field_name(uint32_t key, uint32_t field, char *name, size_t bytes)
{
    const struct fdri_arena_def *d = key >> 24 == FDRI_ARENA_DEF_EVENT ? find(FDRI_ARENA_DEF_EVENT, key & 0xffffffu)
                                                                       : NULL;
    size_t used = strlen(name);
    if (!d || field >= d->payload_bytes / sizeof(struct fdri_arena_def_field)) return;
    const char *names = (const char *)(d + 1);
    const struct fdri_arena_def_field *f = (const void *)(names + fdri_bits_align_up(
                                                                      (uint64_t)d->name_bytes + d->file_bytes + 2, 8));
    snprintf(name + used, bytes - used, ".%.27s", f[field].name);
}
