/* SPDX-License-Identifier: MIT */
/* Collects the damage found, one line each, in the order found. */
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fdri_file_grow(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room) return true;
    size_t more = *room ? *room * 2 : 16;
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = fdri_file_realloc(old, more * size);
    if (!grown) return false;
    memcpy(array, &grown, sizeof grown);
    *room = more;
    /* cppcheck-suppress memleak ; it lies in *array */
    return true;
}

void fdri_file_damage(struct fdr_file *f, const char *format, ...)
{
    f->sound = false;
    if (f->damage_count > FDRI_FILE_DAMAGE_MAX) return;
    if (!fdri_file_grow(&f->damage, f->damage_count, &f->damage_room, sizeof *f->damage)) return;
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const char *text = f->damage_count == FDRI_FILE_DAMAGE_MAX ? "more damage follows that is not listed" : line;
    char *copy = fdri_file_strdup(text);
    if (copy) f->damage[f->damage_count++] = copy;
}

/* The last line says that memory was short. */
size_t fdr_file_damage_count(const struct fdr_file *f) { return f->damage_count + fdri_file_memory_short(f); }

const char *fdr_file_damage(const struct fdr_file *f, size_t index)
{
    if (index < f->damage_count) return f->damage[index];
    return index == f->damage_count && fdri_file_memory_short(f) ? FDRI_FILE_NO_MEMORY : "";
}
