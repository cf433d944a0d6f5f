/* SPDX-License-Identifier: MIT */
/* bench_latency [-n CALLS] [-b BUFFER] [-s STRATEGY]: how long single calls take while reductions go on.
 * CALLS calls (20 million) of fdr and as many of the floor run by turns, in stretches of 100,000. The floor is two
 * clock reads and two stores into a ring of 32 KiB. So both meet the same machine, and a change between them is too
 * rare to be a percentile. Each call (enter, leave, no work) lies between two clock reads of its own, which count.
 * A third turn is a floor that waits until it has lasted as long as the median call of fdr. Interrupts meet longer work
 * more often: with 1000 interrupts a second, a call of 100 ns meets one in 10,000.
 * Lines:  latency <tab> percentile <tab> ns of floor <tab> ns of fdr <tab> quotient <tab> ns of the floor that waits
 *         faults <tab> page faults of this thread while it recorded
 *         reductions <tab> events given back <tab> calls
 * Exits with 1 if nothing was reduced or an event was lost. */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fdr/fdr.h>

#include "measure.h"

/* Logarithmic buckets, 64 to the octave: at most 1.6 % wide. */
enum { RING_WORDS = 32 * 1024 / 8, STRETCH = 100000, REGIONS = 40, OCTAVE = 64, BUCKETS = 40 * OCTAVE };
static uint64_t histogram[3][BUCKETS], *ring, head;
static fdr_region region[REGIONS];

static uint32_t bucket_of(uint64_t ticks)
{
    if (ticks < OCTAVE) return (uint32_t)ticks;
    uint32_t log2 = 63u ^ (uint32_t)__builtin_clzll(ticks);
    uint32_t b = (log2 - 5) * OCTAVE + (uint32_t)(ticks >> (log2 - 6) & (OCTAVE - 1));
    return b < BUCKETS ? b : BUCKETS - 1;
}
static double ticks_of(uint32_t bucket) /* its middle */
{
    if (bucket < OCTAVE) return bucket;
    uint32_t log2 = bucket / OCTAVE + 5;
    return (double)(1ull << log2) * (1 + ((double)(bucket % OCTAVE) + 0.5) / OCTAVE);
}

static inline __attribute__((always_inline)) void put(uint64_t value) { ring[head++ & (RING_WORDS - 1)] = value; }

/* Leaf calls at depth 3 and 4. Regions come as in a program with loops: mostly the same few, sometimes another. */
static void stretch_of_calls(uint32_t *seed)
{
    uint32_t hot = *seed >> 16;
    fdr_enter(region[0]);
    fdr_enter(region[1 + hot % 3]);
    for (int i = 0; i < STRETCH; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        fdr_region r = region[4 + (*seed >> 28 ? (i & 3) : hot % (REGIONS - 4))];
        uint64_t from = bench_ticks();
        fdr_enter(r);
        fdr_leave(r);
        histogram[1][bucket_of(bench_ticks() - from)]++;
        if (i % 64 == 32) fdr_enter(region[3]);
        if (i % 64 == 63) fdr_leave(region[3]);
    }
    fdr_leave(region[0]);
}

static void stretch_of_floor(uint32_t *seed)
{
    uint32_t hot = *seed >> 16;
    for (int i = 0; i < STRETCH; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        uint64_t r = 4 + (*seed >> 28 ? (uint32_t)(i & 3) : hot % (REGIONS - 4));
        uint64_t from = bench_ticks();
        put(bench_ticks() << 8 | r << 1);
        put(bench_ticks() << 8 | r << 1 | 1);
        histogram[0][bucket_of(bench_ticks() - from)]++;
    }
}

static void stretch_of_waits(uint32_t *seed, uint64_t ticks)
{
    uint32_t hot = *seed >> 16;
    for (int i = 0; i < STRETCH; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        uint64_t r = 4 + (*seed >> 28 ? (uint32_t)(i & 3) : hot % (REGIONS - 4));
        uint64_t from = bench_ticks(), now;
        put(bench_ticks() << 8 | r << 1);
        do now = bench_ticks();
        while (now - from < ticks);
        put(now << 8 | r << 1 | 1);
        histogram[2][bucket_of(bench_ticks() - from)]++;
    }
}

static double percentile(const uint64_t *h, uint64_t count, double share)
{
    uint64_t seen = 0, want = (uint64_t)((double)count * share);
    for (uint32_t b = 0; b < BUCKETS; b++)
        if ((seen += h[b]) > want) return ticks_of(b);
    return ticks_of(BUCKETS - 1);
}

static long faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_minflt + u.ru_majflt;
}

static double tick_ns(void)
{
    double from = clock_seconds(CLOCK_MONOTONIC);
    uint64_t ticks = bench_ticks();
    while (clock_seconds(CLOCK_MONOTONIC) - from < 0.05) {}
    return (clock_seconds(CLOCK_MONOTONIC) - from) * 1e9 / (double)(bench_ticks() - ticks);
}

int main(int argc, char **argv)
{
    struct fdr_config config = {
        .size = sizeof config, .ignore_environment = 1, .name = "bench_latency", .buffer = "4M", .signal = "none"};
    long calls = 20000000;
    int option;
    while ((option = getopt(argc, argv, "n:b:s:")) != -1) {
        switch (option) {
        case 'n': calls = atol(optarg); break;
        case 'b': config.buffer = optarg; break;
        case 's': config.strategy = optarg; break;
        default: fprintf(stderr, "usage: bench_latency [-n CALLS] [-b BUFFER] [-s STRATEGY]\n"); return 64;
        }
    }
    int error = fdr_init(&config);
    if (error != 0) {
        fprintf(stderr, "bench_latency: the recorder does not start: %s\n", strerror(-error));
        return 1;
    }
    char name[32];
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "region_%d", i);
        region[i] = fdr_region_define(name, NULL, (unsigned)i);
    }
    ring = mmap(NULL, RING_WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (ring == MAP_FAILED) return 1;
    pin_thread();
    double ns = tick_ns();
    uint32_t seed = 1;
    /* Fill the buffer first, so that reductions go on from the first counted call. */
    for (long i = 0; i < calls / STRETCH && !fdr_usage().reductions; i++) {
        stretch_of_calls(&seed);
        stretch_of_floor(&seed);
    }
    uint64_t filled = 0;
    for (uint32_t b = 0; b < BUCKETS; b++) filled += histogram[1][b];
    uint64_t as_long = (uint64_t)percentile(histogram[1], filled, 0.5), read_costs = as_long;
    for (int i = 0; i < 1000; i++) {
        uint64_t from = bench_ticks(), took = bench_ticks() - from;
        if (took < read_costs) read_costs = took;
    }
    memset(histogram, 0, sizeof histogram);
    long before = faults(), counted = (calls + STRETCH - 1) / STRETCH * STRETCH;
    struct fdr_usage first = fdr_usage();
    for (long i = 0; i < counted; i += STRETCH) {
        stretch_of_calls(&seed);
        stretch_of_floor(&seed);
        stretch_of_waits(&seed, as_long > 2 * read_costs ? as_long - 2 * read_costs : 0); /* it ends a read late */
    }
    long after = faults();
    static const struct {
        const char *name;
        double share;
    } at[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}, {"p99.999", 0.99999}, {"max", 1}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        double share = at[i].share == 1 ? 1 - 0.5 / (double)counted : at[i].share;
        double f = percentile(histogram[0], (uint64_t)counted, share) * ns,
               r = percentile(histogram[1], (uint64_t)counted, share) * ns,
               w = percentile(histogram[2], (uint64_t)counted, share) * ns;
        printf("latency\t%s\t%.1f\t%.1f\t%.3f\t%.1f\n", at[i].name, f, r, r / f, w);
    }
    struct fdr_usage u = fdr_usage();
    printf("faults\t%ld\n", after - before);
    printf("reductions\t%llu\t%ld\n", (unsigned long long)(u.reduced - first.reduced), counted);
    int good = u.reduced > first.reduced && u.lost == 0;
    fdr_finalize();
    return !good;
}
