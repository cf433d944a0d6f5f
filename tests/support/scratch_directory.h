/* SPDX-License-Identifier: MIT */
/* A directory for one test program: fixtures that make and remove it, and a reader of the files in it. */
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

/* Fails if a test left a file in the directory. */
static inline int scratch_remove(void **state)
{
    (void)state;
    return rmdir(scratch);
}

/* Reads a whole file. Returns the size of `to` if the file does not fit, and 0 if it does not exist. */
static inline size_t scratch_read(const char *path, uint8_t *to, size_t most)
{
    FILE *f = fopen(path, "rb");
    size_t bytes = f ? fread(to, 1, most, f) : 0;
    if (f) fclose(f);
    return bytes;
}
#endif
