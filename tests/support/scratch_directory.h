/* SPDX-License-Identifier: MIT */
/* A directory of a test program's own: fixtures that make and remove it, and the files that are left there. */
#ifndef FDRI_TESTS_SCRATCH_H
#define FDRI_TESTS_SCRATCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char scratch[] = "/tmp/fdr-test-XXXXXX";

static inline int scratch_make(void **state)
{
    (void)state;
    return mkdtemp(scratch) ? 0 : -1;
}

/* It fails where a test left something there. */
static inline int scratch_remove(void **state)
{
    (void)state;
    return rmdir(scratch);
}

/* All of a file; the size of `to` where it does not fit, 0 where it is not there. */
static inline size_t scratch_read(const char *path, uint8_t *to, size_t most)
{
    FILE *f = fopen(path, "rb");
    size_t bytes = f ? fread(to, 1, most, f) : 0;
    if (f) fclose(f);
    return bytes;
}
#endif
