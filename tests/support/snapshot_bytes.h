/* SPDX-License-Identifier: MIT */
/* A snapshot of the running recording, as bytes in memory. Include after cmocka.h. */
#ifndef FDRI_TESTS_SNAPSHOT_BYTES_H
#define FDRI_TESTS_SNAPSHOT_BYTES_H

#include <fdr/fdr.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The caller frees them. The file is removed. */
static inline uint8_t *snapshot_bytes(size_t *count)
{
    assert_int_equal(fdr_snapshot(NULL), 0);
    FILE *in = fopen(fdr_last_snapshot(), "re");
    assert_non_null(in);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    *count = (size_t)ftell(in);
    rewind(in);
    uint8_t *bytes = malloc(*count);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *count, in), *count);
    fclose(in);
    unlink(fdr_last_snapshot());
    return bytes;
}

#endif
