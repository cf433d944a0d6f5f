/* SPDX-License-Identifier: MIT */
/* bench_trigger call N: ns per call of the workload, without a trigger and with one, by turns in one process. The
 * trigger is on all regions and never fires. Prints "call <tab> without <tab> with".
 * bench_trigger latency DIR: microseconds from firing a trigger to the time of its snapshot, 64 MiB full. Prints
 * "latency <tab> median <tab> greatest" of 20.
 * bench_trigger outside DIR: seconds of a snapshot from outside of a stopped process with a full 64 MiB. Beside it,
 * memcpy and write of as much; medians of 7 by turns. Prints "outside <tab> snapshot <tab> copy". */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "measure.h"

static fdr_region region[40];
#define W_PREFIX   fdr
#define W_ENTER(n) fdr_enter(region[n])
#define W_LEAVE(n) fdr_leave(region[n])
#include "workload.h"

static void start(const char *directory)
{
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .name = "bench_trigger",
                           .buffer = "64M",
                           .dir = directory,
                           .keep = "1,newest",
                           .holdoff = "0ns",
                           .signal = "none"};
    char name[32];
    if (fdr_init(&c)) exit(1);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "region_%d", i);
        region[i] = fdr_region_define(name, NULL, (unsigned)i);
    }
}

static void fill(void)
{
    while (fdr_usage().reductions < 100)
        for (int i = 0; i < 10000; i++) fdr_pass();
}

static double middle(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, compare_double);
    return v[n / 2];
}

static uint64_t calls_of_a_pass(void)
{
    uint64_t before = fdr_usage().presented;
    fdr_pass();
    return fdr_usage().presented - before;
}

static int calls(long count)
{
    enum { TURNS = 5 };
    double without[TURNS], with[TURNS];
    start(".");
    pin_thread();
    long per_pass = (long)calls_of_a_pass();
    if (per_pass <= 0) return 1;
    for (int i = 0; i < TURNS; i++) {
        without[i] = measure(fdr_pass, per_pass, count / TURNS);
        int id = fdr_trigger_add("region region_* over 100s");
        if (id < 0) return 1;
        with[i] = measure(fdr_pass, per_pass, count / TURNS);
        fdr_trigger_remove(id);
    }
    printf("call\t%.4f\t%.4f\n", middle(without, TURNS), middle(with, TURNS));
    return 0;
}

/* Waits for the next snapshot and returns its latency in us; negative: none came. */
static double next_latency(char *last, size_t bytes)
{
    struct fdr_file *f;
    char message[200];
    for (int i = 0; strcmp(last, fdr_last_snapshot()) == 0; i++) {
        if (i > 100000) return -1;
        usleep(200);
    }
    snprintf(last, bytes, "%s", fdr_last_snapshot());
    if (fdr_file_open(last, &f, message, sizeof message) != FDR_WHOLE) return -1;
    const struct fdr_file_info *info = fdr_file_info(f);
    double us = (double)(int64_t)(info->taken_ns - info->trigger_time_ns) / 1e3;
    fdr_file_close(f);
    return us;
}

static int latency(const char *directory)
{
    enum { SHOTS = 20 };
    double us[SHOTS];
    char last[1024] = "";
    start(directory);
    fill();
    int id = fdr_trigger_add("shot: api keep 1,newest");
    if (id < 0) return 1;
    for (int i = 0; i < SHOTS; i++) {
        usleep(20000);
        fdr_trigger_fire(id, i);
        if ((us[i] = next_latency(last, sizeof last)) < 0) return 1;
    }
    unlink(last);
    middle(us, SHOTS);
    printf("latency\t%.1f\t%.1f\n", us[SHOTS / 2], us[SHOTS - 1]);
    return 0;
}

static double copy_and_write(const char *path, size_t bytes)
{
    char *from = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    char *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (from == MAP_FAILED || to == MAP_FAILED) exit(1);
    memset(from, 7, bytes);
    double begin = clock_seconds(CLOCK_MONOTONIC);
    memcpy(to, from, bytes);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (size_t at = 0; at < bytes;) {
        ssize_t n = write(fd, to + at, bytes - at < 1 << 20 ? bytes - at : 1 << 20);
        if (n <= 0) exit(1);
        at += (size_t)n;
    }
    close(fd);
    double took = clock_seconds(CLOCK_MONOTONIC) - begin;
    unlink(path);
    munmap(from, bytes);
    munmap(to, bytes);
    return took;
}

static double from_outside(pid_t pid, const char *path)
{
    char message[300] = "";
    double begin = clock_seconds(CLOCK_MONOTONIC);
    if (fdr_process_snapshot((uint32_t)pid, path, "bench", message, sizeof message)) {
        fprintf(stderr, "bench_trigger: %s\n", message);
        exit(1);
    }
    double took = clock_seconds(CLOCK_MONOTONIC) - begin;
    unlink(path);
    return took;
}

static int outside(const char *directory)
{
    enum { TURNS = 7 };
    double snapshot[TURNS], copy[TURNS];
    char path[1024];
    int status;
    snprintf(path, sizeof path, "%s/bench_trigger.tmp.fdr", directory);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        start(directory);
        fill();
        raise(SIGSTOP);
        fdr_finalize();
        _exit(0);
    }
    if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) return 1;
    for (int i = 0; i < TURNS; i++) {
        snapshot[i] = from_outside(pid, path);
        copy[i] = copy_and_write(path, 64 << 20);
    }
    kill(pid, SIGCONT);
    waitpid(pid, &status, 0);
    printf("outside\t%.6f\t%.6f\n", middle(snapshot, TURNS), middle(copy, TURNS));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "call")) return calls(atol(argv[2]));
    if (argc == 3 && !strcmp(argv[1], "latency")) return latency(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "outside")) return outside(argv[2]);
    fprintf(stderr, "usage: bench_trigger call N | latency DIR | outside DIR\n");
    return 64;
}
