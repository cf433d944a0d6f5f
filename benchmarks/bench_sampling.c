/* SPDX-License-Identifier: MIT */
/* What samples cost and how right they are. One line a figure: name, value, unit.
 *   cost     CPU time per sample, call paths 20 deep: slope of the time of equal work over the number of samples, 0 to 10 kHz
 *   record   a call recorded between samples, sampled against not sampled: ratio of the least times of short stretches
 *   shares   shares of wall time per region from samples against the exact totals of the same run: how many lie inside the
 *            stated 95 % interval, pooled over five programs
 *   bytes    per sample, of the same call paths */
#define _GNU_SOURCE
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "benchmarks/measure.h"

static volatile double sink;
static char dir[] = "/tmp/fdr-bench-sampling-XXXXXX";

static void start(const char *sample)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .name = "bench",
                           .buffer = "16M",
                           .arena = "anonymous",
                           .signal = "none",
                           .dir = dir,
                           .sample = sample,
                           .crash = "0",
                           .keep = "1000000,oldest"};
    if (fdr_init(&c)) exit(2);
}

static struct fdr_file *finish(void)
{
    struct fdr_file *f;
    char message[200];
    if (fdr_snapshot("bench")) exit(2);
    fdr_finalize();
    if (fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message) != FDR_WHOLE) exit(2);
    unlink(fdr_last_snapshot());
    return f;
}

/* ---- cost and bytes ---- */

static __attribute__((noinline)) double leaf(long n)
{
    double x = 1;
    for (long i = 0; i < n; i++) x = x * 1.0000001 + 0.1;
    return sink = x;
}
static __attribute__((noinline)) double deep(int depth, long n)
{
    double x = depth ? deep(depth - 1, n) : leaf(n);
    __asm__ volatile("" : "+m"(sink));
    return x + 1;
}
static __attribute__((noinline)) double other(int depth, long n)
{
    double x = depth > 10 ? other(depth - 1, n) : deep(depth, n);
    __asm__ volatile("" : "+m"(sink));
    return x + 2;
}

static double work(void)
{
    double from = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < 150; i++) i % 3 ? deep(18 + i % 3, 150000) : other(19, 150000);
    return clock_seconds(CLOCK_THREAD_CPUTIME_ID) - from;
}

static void cost(int pairs)
{
    static double us[1000];
    double bytes = 0, kept = 0;
    for (int i = 0; i < pairs; i++) {
        const struct fdr_sample_stream *s;
        start("off");
        double without = work();
        fdr_finalize();
        start("10kHz");
        fdr_marker(fdr_marker_define("here"), 1);
        usleep(30000); /* the helper has seen this thread */
        double with = work();
        struct fdr_file *f = finish();
        double samples = 0;
        size_t n = fdr_sample_streams(f, &s);
        for (size_t k = 0; k < n; k++)
            samples += (double)s[k].presented, bytes += (double)s[k].bytes, kept += (double)s[k].kept;
        fdr_file_close(f);
        us[i] = samples ? (with - without) * 1e6 / samples : 0;
    }
    qsort(us, (size_t)pairs, sizeof *us, compare_double);
    printf("cpu_per_sample\t%.2f\tus (median of %d pairs; quartiles %.2f %.2f)\n", us[pairs / 2], pairs, us[pairs / 4],
           us[pairs * 3 / 4]);
    printf("bytes_per_sample\t%.2f\tbytes, paths of 20 frames\n", kept ? bytes / kept : 0);
}

/* ---- the record path between samples ---- */

enum { STRETCH = 200, STRETCHES = 20000 };

static double least_time(fdr_region region)
{
    double least = 1e9;
    for (int s = 0; s < STRETCHES; s++) {
        uint64_t from = bench_ticks();
        for (int i = 0; i < STRETCH; i++) {
            fdr_enter(region);
            fdr_leave(region);
        }
        double took = (double)(bench_ticks() - from);
        if (took < least) least = took;
    }
    return least;
}

static void record(int pairs)
{
    double least[2] = {1e18, 1e18};
    for (int i = 0; i < 2 * pairs; i++) {
        start(i % 2 ? "1kHz" : "off");
        fdr_region region = fdr_region_define("call", "bench", 1);
        fdr_enter(region);
        fdr_leave(region);
        usleep(30000);
        double t = least_time(region);
        if (t < least[i % 2]) least[i % 2] = t;
        fdr_finalize();
    }
    printf("record_ratio\t%.4f\tsampled at 1 kHz against not, least of %d x %d stretches\n", least[1] / least[0], pairs,
           STRETCHES);
}

/* ---- shares ---- */

enum { REGIONS = 8 };
static fdr_region region[REGIONS];

/* Five programs: even, steep, periodic at the rate of sampling, nested, with sleeps. */
static void program(int which, double until)
{
    uint64_t r = (uint64_t)which * 77777 + 1;
    while (clock_seconds(CLOCK_MONOTONIC) < until) {
        for (int k = 0; k < REGIONS; k++) {
            r = r * 6364136223846793005u + 1442695040888963407u;
            long n = which == 0 ? 30000 : which == 1 ? 500l << k : which == 2 ? 62000 : (long)(r >> 40) % 60000;
            fdr_enter(region[k]);
            if (which == 3) {
                fdr_enter(region[(k + 3) % REGIONS]);
                leaf(n / 2);
                fdr_leave(region[(k + 3) % REGIONS]);
            }
            leaf(n);
            if (which == 4 && k % 3 == 0) usleep(300);
            fdr_leave(region[k]);
        }
    }
}

static void interval(double p, double n, double *low, double *high)
{
    const double z = 1.959964;
    double middle = (p + z * z / (2 * n)) / (1 + z * z / n),
           half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    *low = middle - half;
    *high = middle + half;
}

/* Of the regions' exact exclusive times, as shares of their sum: how many lie inside? */
static int inside(struct fdr_file *f)
{
    double exact[REGIONS] = {0}, weight[REGIONS] = {0}, sum = 0, all = 0, squares = 0;
    const struct fdr_total *t;
    size_t n = fdr_totals(f, &t);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < REGIONS && t[i].class_ == FDR_IN_REGION; k++)
            if (t[i].id == region[k]) exact[k] += (double)t[i].exclusive_ns, sum += (double)t[i].exclusive_ns;
    struct fdr_select select = {.classes = 1u << FDR_IN_SAMPLE};
    struct fdr_iter *it = fdr_iter_open(f, &select);
    struct fdr_read_event e;
    while (fdr_iter_next(it, &e)) {
        double w = (double)e.sample->weight;
        for (int k = 0; k < REGIONS; k++)
            if (e.id == region[k]) weight[k] += w, all += w, squares += w * w;
    }
    fdr_iter_close(it);
    int good = 0;
    for (int k = 0; k < REGIONS && all > 0; k++) {
        double low, high, share = exact[k] / sum;
        interval(weight[k] / all, all * all / squares, &low, &high);
        good += share >= low && share <= high;
    }
    return good;
}

static void shares(int runs)
{
    int good = 0, all = 0;
    for (int i = 0; i < 5 * runs; i++) {
        start("1kHz,wall");
        for (int k = 0; k < REGIONS; k++) region[k] = fdr_region_define("region", "bench", (unsigned)k + 10);
        fdr_enter(region[0]);
        fdr_leave(region[0]);
        usleep(30000);
        program(i % 5, clock_seconds(CLOCK_MONOTONIC) + 0.4);
        struct fdr_file *f = finish();
        good += inside(f);
        all += REGIONS;
        fdr_file_close(f);
    }
    printf("shares_inside\t%.1f\t%% of %d region-runs of five programs inside the 95 %% interval\n", 100.0 * good / all,
           all);
}

int main(int argc, char **argv)
{
    int pairs = argc > 1 ? atoi(argv[1]) : 30;
    if (!mkdtemp(dir) || pairs < 1 || pairs > 1000) return 2;
    setenv("FDR_SYMBOLS", "0", 1);
    cost(pairs);
    record(pairs < 5 ? pairs : 5);
    shares(pairs < 5 ? pairs : 5);
    rmdir(dir);
    return 0;
}
