/* SPDX-License-Identifier: MIT */
/* Cost and accuracy of samples. One line a figure: name, value, unit, quartiles, description.
 *   cost     CPU time per sample, call paths 20 deep: slope of the time of equal work over the number of samples, 0 to
 *            10 kHz; the same for an empty handler; bytes per sample of these paths
 *   record   a call recorded between samples: ratio of the least times of short stretches, sampled to not sampled
 *   shares   one of five programs, sampled by wall time: prints the path of its snapshot, which
 *            benchmarks/sampling.py compares with exact totals */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "benchmarks/measure.h"

static volatile double sink;
static char own_dir[] = "/tmp/fdr-bench-sampling-XXXXXX";
static char *dir;

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
                           .keep = "256,oldest"};
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

/* The recorder's source of signals without the recorder: a perf event on this thread's task clock, and a handler that
 * counts. */
static volatile unsigned long signals;
static void count_signal(int number)
{
    (void)number;
    signals++;
}

static int start_empty(void)
{
    struct perf_event_attr a = {.size = sizeof a,
                                .type = PERF_TYPE_SOFTWARE,
                                .config = PERF_COUNT_SW_TASK_CLOCK,
                                .sample_period = 100000,
                                .wakeup_events = 1,
                                .exclude_hv = 1,
                                .exclude_kernel = geteuid() != 0};
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    struct sigaction ours = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    signals = 0;
    sigaction(SIGWINCH, &ours, NULL);
    int fd = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) return -1;
    fcntl(fd, F_SETOWN_EX, &owner);
    fcntl(fd, F_SETSIG, SIGWINCH);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC);
    return fd;
}

/* CPU time in us of a signal whose handler only counts; below 0: no perf events on this machine. */
static double empty_handler(double without)
{
    int fd = start_empty();
    if (fd < 0) return -1;
    double with = work();
    ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
    close(fd);
    return signals ? (with - without) * 1e6 / (double)signals : -1;
}

struct costs {
    double us[1000], empty[1000], bytes, kept;
};

static double sampled(const char *how, double without, struct costs *c)
{
    const struct fdr_sample_stream *s;
    double samples = 0;
    start(how);
    fdr_marker(fdr_marker_define("here"), 1);
    usleep(30000); /* time for the sampler to find this thread */
    double with = work();
    struct fdr_file *f = finish();
    size_t n = fdr_sample_streams(f, &s);
    for (size_t k = 0; k < n; k++)
        samples += (double)s[k].presented, c->bytes += (double)s[k].bytes, c->kept += (double)s[k].kept;
    fdr_file_close(f);
    return samples > 0 ? (with - without) * 1e6 / samples : 0;
}

static void print_median(const char *name, double *us, int n, const char *what)
{
    qsort(us, (size_t)n, sizeof *us, compare_double);
    printf("%s\t%.2f\tus\t%.2f\t%.2f\t%s\n", name, us[n / 2], us[n / 4], us[n * 3 / 4], what);
}

static void cost(int pairs)
{
    static struct costs cpu, wall;
    for (int i = 0; i < pairs; i++) {
        start("off");
        double without = work();
        fdr_finalize();
        cpu.us[i] = sampled("10kHz", without, &cpu);
        cpu.empty[i] = empty_handler(without);
        wall.us[i] = sampled("10kHz,wall,signal", without, &wall);
    }
    print_median("cost_cpu", cpu.us, pairs, "CPU time per sample, by CPU time, paths of 20 frames, 0 against 10 kHz");
    print_median("cost_wall", wall.us, pairs, "the same by wall time");
    if (cpu.empty[0] >= 0) print_median("cost_empty", cpu.empty, pairs, "a perf event's signal with an empty handler");
    printf("bytes_made\t%.2f\tbytes\t\t\tper sample, paths of 20 frames, runs of a few hundred samples\n",
           cpu.kept > 0 ? cpu.bytes / cpu.kept : 0);
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
    printf("record_ratio\t%.4f\tratio\t\t\ta call sampled at 1 kHz against not, least of %d x %d stretches\n",
           least[1] / least[0], pairs, STRETCHES);
}

/* ---- shares: programs with exact totals of each region ---- */

enum { REGIONS = 8 };

/* Five programs: even, steep, periodic near the rate of sampling, nested, with sleeps. */
static void program(const fdr_region *region, int which, uint64_t r, double until)
{
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

/* Writes a snapshot and prints its path. */
static void shares(int which)
{
    fdr_region region[REGIONS];
    start("1kHz,wall,signal");
    for (unsigned k = 0; k < REGIONS; k++) {
        char name[] = {'r', (char)('0' + k), 0};
        region[k] = fdr_region_define(name, "bench", k + 10);
    }
    fdr_enter(region[0]);
    fdr_leave(region[0]);
    usleep(30000);
    program(region, which, (uint64_t)getpid(), clock_seconds(CLOCK_MONOTONIC) + 0.4);
    if (fdr_snapshot("bench")) exit(2);
    fdr_finalize();
    puts(fdr_last_snapshot());
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int n = argc > 2 ? atoi(argv[2]) : 30;
    setenv("FDR_SYMBOLS", "0", 1);
    if (!strcmp(what, "shares") && argc == 4) {
        dir = argv[3];
        shares(n % 5);
        return 0;
    }
    if (n < 1 || n > 1000 || !mkdtemp(dir = own_dir)) return 2;
    if (!strcmp(what, "cost")) cost(n);
    else if (!strcmp(what, "record")) record(n);
    else fputs("bench_sampling cost [PAIRS] | record [PAIRS] | shares PROGRAM DIRECTORY\n", stderr);
    rmdir(dir);
    return strcmp(what, "cost") && strcmp(what, "record") ? 64 : 0;
}
