/* SPDX-License-Identifier: MIT */
/* Arenas without a recorder, for tests of bins/. Tests include this file. */
#ifndef FDRI_TESTS_ARENAS_H
#define FDRI_TESTS_ARENAS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bins/bins.h"

static inline void *format(struct fdri_bins_arena *a, uint64_t bytes, uint32_t bin_bytes)
{
    void *m = aligned_alloc(65536, bytes);
    memset(m, 0, bytes);
    assert_int_equal(fdri_bins_format(a, m, bytes, bin_bytes), 0);
    return m;
}

static inline void sound(const struct fdri_bins_arena *a)
{
    char text[128];
    const char *wrong = fdri_bins_check(a, text, sizeof text);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
}
#endif
