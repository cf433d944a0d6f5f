/* SPDX-License-Identifier: MIT */
/* Reads streams of the corpus (NAME.evt.zst). Tests include this file. */
#ifndef FDRI_TESTS_EVT_STREAM_H
#define FDRI_TESTS_EVT_STREAM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "benchmarks/stream.h"

__attribute__((unused)) static const char *evt_folder(void)
{
    static char path[512];
    const char *said = getenv("FDR_CORPUS"), *source = getenv("FDR_SOURCE");
    if (said) return said;
    snprintf(path, sizeof path, "%s/../shared/corpus", source ? source : ".");
    return path;
}

/* Reads the whole stream into memory; free it by evt_free. Returns false if the file is missing. */
__attribute__((unused)) static bool evt_load(struct stream *s, const char *name)
{
    char path[640];
    snprintf(path, sizeof path, "%s/%s.evt.zst", evt_folder(), name);
    FILE *in = fopen(path, "rb");
    if (!in) return false;
    fseek(in, 0, SEEK_END);
    size_t packed_bytes = (size_t)ftell(in);
    rewind(in);
    void *packed = malloc(packed_bytes);
    size_t got = fread(packed, 1, packed_bytes, in);
    fclose(in);
    unsigned long long bytes = ZSTD_getFrameContentSize(packed, got);
    void *plain = bytes < 1ull << 32 ? malloc(bytes) : NULL;
    bool good = plain && ZSTD_decompress(plain, bytes, packed, got) == bytes && stream_take(s, plain, bytes);
    if (!good) free(plain);
    free(packed);
    return good;
}
__attribute__((unused)) static void evt_free(struct stream *s) { free((void *)(uintptr_t)s->head); }

__attribute__((unused)) static const char *const evt_names[] = {"npb-cg.r0.t0",   "npb-is.r0.t0", "npb-bt.r0.t0",
                                                                "npb-lu.r0.t0",   "lulesh.r0.t0", "comd.r0.t0",
                                                                "lua-json.r0.t0", "sqlite.r0.t0"};
#define EVT_NAMES (sizeof evt_names / sizeof *evt_names)

#endif
