/* SPDX-License-Identifier: MIT */
/* The cost of one rank's flushes for the others (Wagner 2015, 5.4). Ranks do equal work and meet in a collective; they
 * record at different rates, so their buffers are full at different times. Not part of the build: flush_bias.py
 * compiles it.
 *
 *     flush_bias none|otf2|fdr MIB ITERATIONS STEPS DIR
 *
 * Rank 0 prints five numbers of all ranks, separated by tabs:
 * - wall time in s
 * - flushes
 * - s in flushes (otf2) or in giving memory back (fdr)
 * - s that ranks waited for the flush of another
 * - events */
#include <fdr/fdr.h>
#include <math.h>
#include <mpi.h>
#include <otf2/otf2.h>
#include <stdbool.h>
#include <string.h>

#include "measure.h"

static int rank, ranks;
static enum { NONE, OTF2, FDR } way;
static double flush_s, flush_began;
static uint64_t flushes, events;

/* ---- OTF2 with a buffer of so many chunks ---- */

enum { CHUNK = 256 << 10 };
static struct {
    void **chunk;
    size_t count, most;
} pool;

static void *allocate(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer, uint64_t size)
{
    (void)data, (void)location, (void)buffer;
    if (type != OTF2_FILETYPE_EVENTS) return malloc(size);
    return pool.count < pool.most ? pool.chunk[pool.count++] : NULL;
}
static void release(void *data, OTF2_FileType type, OTF2_LocationRef location, void **buffer, bool final)
{
    (void)data, (void)location, (void)buffer, (void) final;
    if (type == OTF2_FILETYPE_EVENTS) pool.count = 0;
}
static OTF2_FlushType before_flush(void *data, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
    (void)data, (void)location, (void)caller;
    if (type == OTF2_FILETYPE_EVENTS && !final) flush_began = MPI_Wtime();
    return OTF2_FLUSH;
}
static OTF2_TimeStamp after_flush(void *data, OTF2_FileType type, OTF2_LocationRef location)
{
    (void)data, (void)location;
    if (type == OTF2_FILETYPE_EVENTS && flush_began > 0) {
        flush_s += MPI_Wtime() - flush_began;
        flushes++;
        flush_began = 0;
    }
    return bench_ticks();
}

static OTF2_Archive *archive;
static OTF2_EvtWriter *writer;
static fdr_region region[8];

static void begin_otf2(const char *directory, size_t mib)
{
    static const OTF2_MemoryCallbacks memory = {allocate, release};
    static const OTF2_FlushCallbacks flush = {before_flush, after_flush};
    char path[4000];
    snprintf(path, sizeof path, "%s/rank%d", directory, rank);
    pool.most = (mib << 20) / CHUNK;
    pool.chunk = calloc(pool.most, sizeof *pool.chunk);
    for (size_t i = 0; i < pool.most; i++) memset(pool.chunk[i] = malloc(CHUNK), 1, CHUNK);
    archive = OTF2_Archive_Open(path, "t", OTF2_FILEMODE_WRITE, CHUNK, 4 << 20, OTF2_SUBSTRATE_POSIX,
                                OTF2_COMPRESSION_NONE);
    OTF2_Archive_SetFlushCallbacks(archive, &flush, NULL);
    OTF2_Archive_SetMemoryCallbacks(archive, &memory, NULL);
    OTF2_Archive_SetSerialCollectiveCallbacks(archive);
    OTF2_Archive_OpenEvtFiles(archive);
    writer = OTF2_Archive_GetEvtWriter(archive, (uint64_t)rank);
    if (!writer) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void begin_fdr(size_t mib)
{
    char buffer[24], name[16];
    snprintf(buffer, sizeof buffer, "%zuM", mib);
    const struct fdr_config c = {.size = sizeof c, .ignore_environment = 1, .buffer = buffer, .arena = "anonymous"};
    if (fdr_init(&c) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "step%u", i);
        region[i] = fdr_region_define(name, "", i);
    }
}

/* ---- the work ---- */

static void enter(uint32_t r)
{
    if (way == OTF2) OTF2_EvtWriter_Enter(writer, NULL, bench_ticks(), r);
    else if (way == FDR) fdr_enter(region[r]);
}
static void leave(uint32_t r)
{
    if (way == OTF2) OTF2_EvtWriter_Leave(writer, NULL, bench_ticks(), r);
    else if (way == FDR) fdr_leave(region[r]);
}

static volatile double sink;
/* Rank r does not record each (r + 3)rd step. */
static void iterate(long steps)
{
    double x = sink;
    for (long i = 0; i < steps; i++) {
        bool recorded = i % (rank + 3) != 0;
        if (recorded) enter((uint32_t)i & 7);
        for (int k = 0; k < 20; k++) x = x * 0.999 + k;
        if (recorded) leave((uint32_t)i & 7);
        events += recorded ? 2 : 0;
    }
    sink = x;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Waiting beyond this rank's usual one, in iterations in which another rank flushed. Not known without usual ones. */
static double waited_for_others(const double *wait, const double *flushed, const double *all, int iterations)
{
    double *usual = malloc((size_t)iterations * sizeof *usual), sum = 0;
    int calm = 0;
    if (!usual) return 0;
    for (int i = 0; i < iterations; i++)
        if (all[i] == 0) usual[calm++] = wait[i];
    qsort(usual, (size_t)calm, sizeof *usual, by_value);
    for (int i = 0; i < iterations; i++)
        if (calm && all[i] > flushed[i] && wait[i] > usual[calm / 2]) sum += wait[i] - usual[calm / 2];
    free(usual);
    return calm ? sum : (double)NAN;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 6) MPI_Abort(MPI_COMM_WORLD, 64);
    way = !strcmp(argv[1], "otf2") ? OTF2 : !strcmp(argv[1], "fdr") ? FDR : NONE;
    size_t mib = strtoul(argv[2], NULL, 10);
    int iterations = atoi(argv[3]);
    long steps = atol(argv[4]);
    if (way == OTF2) begin_otf2(argv[5], mib);
    if (way == FDR) begin_fdr(mib);
    double *wait = calloc((size_t)iterations, sizeof *wait), *flushed = calloc((size_t)iterations, sizeof *flushed),
           *all = calloc((size_t)iterations, sizeof *all), value = rank, total;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < iterations; i++) {
        double before = flush_s;
        iterate(steps);
        flushed[i] = flush_s - before;
        double from = MPI_Wtime();
        MPI_Allreduce(&value, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        wait[i] = MPI_Wtime() - from;
    }
    double wall = MPI_Wtime() - begin;
    if (way == FDR) {
        struct fdr_usage u = fdr_usage();
        flush_s = (double)u.reduction_ns * 1e-9;
        flushes = u.reductions;
    }
    MPI_Allreduce(flushed, all, iterations, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double own[4] = {flush_s, waited_for_others(wait, flushed, all, iterations), (double)flushes, (double)events},
           sum[4];
    MPI_Reduce(own, sum, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%.6f\t%.0f\t%.6f\t%.6f\t%.0f\n", wall, sum[2], sum[0], sum[1], sum[3]);
    if (archive) OTF2_Archive_CloseEvtFiles(archive), OTF2_Archive_Close(archive);
    MPI_Finalize();
    return 0;
}
