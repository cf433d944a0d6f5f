/* SPDX-License-Identifier: MIT */
/* Counters of the program's own, read by a thread of fdr's every millisecond: what a pool of memory holds. Look at them
 * with `fdr counters counters.*.fdr`. */
#include <fdr/counters.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static _Atomic uint64_t in_use, allocations;

static void *pool_take(size_t bytes)
{
    in_use += bytes;
    allocations++;
    return malloc(bytes);
}
static void pool_give(void *p, size_t bytes)
{
    in_use -= bytes;
    free(p);
}

/* In the thread fdr-monitor, beside the program's threads. */
static int read_pool(struct fdr_counter_handle *handle, uint64_t *value)
{
    (void)handle;
    value[0] = in_use;
    value[1] = allocations;
    return 0;
}
static const struct fdr_counter pool_counters[] = {{"in-use", "bytes", FDR_METRIC_GAUGE, FDR_U64},
                                                   {"allocations", "", FDR_METRIC_COUNTER, FDR_U64}};
static const struct fdr_counter_source pool = {
    .size = sizeof pool, .name = "pool", .counter = pool_counters, .count = 2, .read = read_pool};

int main(void)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    fdr_counter_source_add(&pool);
    fdr_init(&(struct fdr_config){.size = sizeof(struct fdr_config), .counters = "pool:in-use,pool:allocations"});
    for (size_t i = 1; i <= 20; i++) {
        void *p = pool_take(i * 1000);
        FDR_REGION("work") nanosleep(&moment, NULL);
        pool_give(p, i * 1000);
    }
    if (fdr_snapshot("done") == 0) printf("%s\n", fdr_last_snapshot());
    fdr_finalize();
    return 0;
}
