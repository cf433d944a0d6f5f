/* SPDX-License-Identifier: MIT */
/* Streams of the corpus (NAME.evt.zst): one call per record. Included by tests that read them. */
#ifndef FDR_TESTS_EVT_STREAM_H
#define FDR_TESTS_EVT_STREAM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    EV_TICK = 0,
    EV_ENTER,
    EV_LEAVE,
    EV_SEND,
    EV_RECV,
    EV_ISEND,
    EV_ISEND_DONE,
    EV_IRECV_REQ,
    EV_IRECV,
    EV_COLL_BEGIN,
    EV_COLL_END
};
struct evt_header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t n_records;
    uint32_t n_regions, n_params, n_comms, strings_bytes, rank, nranks, thread, n_prefix;
    uint64_t t0_ns, run_events, window_first;
    uint32_t n_repaired, reserved0;
    uint64_t off_regions, off_strings, off_comms, off_params, off_dt, off_word;
};
struct evt_param {
    int32_t peer, tag;
    uint32_t comm, req;
    uint64_t bytes, bytes2;
};
struct evt_region {
    uint32_t name, file, line, reserved;
};

__attribute__((unused)) static const char *evt_folder(void)
{
    static char path[512];
    const char *said = getenv("FDR_CORPUS"), *source = getenv("FDR_SOURCE");
    if (said) return said;
    snprintf(path, sizeof path, "%s/../shared/corpus", source ? source : ".");
    return path;
}

/* The whole stream in memory (free it), or NULL where there is none. */
__attribute__((unused)) static struct evt_header *evt_load(const char *name)
{
    char path[640];
    snprintf(path, sizeof path, "%s/%s.evt.zst", evt_folder(), name);
    FILE *in = fopen(path, "rb");
    if (!in) return NULL;
    fseek(in, 0, SEEK_END);
    size_t packed_bytes = (size_t)ftell(in);
    rewind(in);
    void *packed = malloc(packed_bytes);
    size_t got = fread(packed, 1, packed_bytes, in);
    fclose(in);
    unsigned long long bytes = ZSTD_getFrameContentSize(packed, got);
    void *plain = bytes < 1ull << 32 ? malloc(bytes) : NULL;
    if (plain && ZSTD_decompress(plain, bytes, packed, got) != bytes) {
        free(plain);
        plain = NULL;
    }
    free(packed);
    return plain;
}

__attribute__((unused)) static const char *const evt_names[] = {"npb-cg.r0.t0",   "npb-is.r0.t0", "npb-bt.r0.t0",
                                                                "npb-lu.r0.t0",   "lulesh.r0.t0", "comd.r0.t0",
                                                                "lua-json.r0.t0", "sqlite.r0.t0"};
#define EVT_NAMES (sizeof evt_names / sizeof *evt_names)

#endif
