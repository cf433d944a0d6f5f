/* SPDX-License-Identifier: MIT */
/* fdr as a peer of a comparison harness (harness.h in FDR_PEERS). Not part of the build: `run.sh peers` compiles it.
 * Settings come from the environment: FDR_BUFFER, FDR_MIN_DURATION, ... */
#include <fdr/fdr.h>

static fdr_region region[40];
#define PEER      "fdr"
#define ENTER(id) fdr_enter(region[id])
#define LEAVE(id) fdr_leave(region[id])
#include "harness.h"

static void peer_init(int threads, long calls)
{
    char name[16];
    (void)threads, (void)calls;
    if (fdr_init(NULL) != 0) exit(3);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "f%u", i);
        region[i] = fdr_region_define(name, NULL, i);
    }
}
static void peer_thread_init(int thread) { (void)thread; }
static void peer_thread_fini(int thread) { (void)thread; }
static double peer_fini(long calls)
{
    (void)calls;
    struct fdr_usage u = fdr_usage();
    return u.stored ? (double)u.bytes_stored / (2.0 * (double)u.stored) : 0;
}
