/* SPDX-License-Identifier: MIT */
/* The reader's memory, and whether an allocation ever failed. After a failure, the results for a file may lack
 * parts, so the verdict must not be "whole". */
#include "base/atomic.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Number of failed allocations for any file: memory that is short for one file is short for all. */
static uint32_t refused;

static void *count_failure(void *p)
{
    if (!p) fdri_atomic_add_relaxed(&refused, 1);
    return p;
}

void *fdri_file_malloc(size_t bytes) { return count_failure(malloc(bytes ? bytes : 1)); }
void *fdri_file_calloc(size_t count, size_t bytes)
{
    return count_failure(count && bytes ? calloc(count, bytes) : calloc(1, 1));
}
void *fdri_file_realloc(void *old, size_t bytes) { return count_failure(realloc(old, bytes)); }
void *fdri_file_aligned(size_t align, size_t bytes) { return count_failure(aligned_alloc(align, bytes)); }
char *fdri_file_strdup(const char *text) { return count_failure(strdup(text)); }

void fdri_file_memory_begin(struct fdr_file *f) { f->refused = fdri_atomic_load_relaxed(&refused); }
bool fdri_file_memory_short(const struct fdr_file *f) { return f->refused != fdri_atomic_load_relaxed(&refused); }
