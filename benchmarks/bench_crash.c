/* SPDX-License-Identifier: MIT */
/* bench_crash DIR [THREADS] [MIB]: wall time from a SIGSEGV to the complete bundle in DIR, with a full arena in
 * /dev/shm. Also that of memcpy and write of as many bytes. Prints "THREADS <tab> seconds to the bundle <tab> seconds
 * of memcpy and write". The bundle stays in DIR. Exits with 1 if there is none. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fdr/fdr.h>

#include "measure.h"

static double *struck; /* shared with the child: time of the fault */

static void *record(void *is_first)
{
    static fdr_region region[64];
    char name[32];
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "region_%d", i);
        region[i] = fdr_region_define(name, NULL, (unsigned)i);
    }
    for (long n = 0;; n++) { /* until the first reduction is seen */
        fdr_enter(region[n & 63]);
        fdr_leave(region[n & 63]);
        if (is_first && n % 1000000 == 0 && n && fdr_usage().reductions > 0) break;
    }
    *struck = clock_seconds(CLOCK_MONOTONIC);
    static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
    *nowhere = 1;
    return NULL;
}

static int victim(const char *directory, int threads, const char *buffer)
{
    struct rlimit none = {0, 0};
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .name = "bench_crash",
                                .buffer = buffer,
                                .dir = directory,
                                .strategy = "whole"};
    pthread_t t;
    setrlimit(RLIMIT_CORE, &none);
    if (fdr_init(&config)) return 1;
    for (int i = 1; i < threads; i++) pthread_create(&t, NULL, record, NULL);
    record("first");
    return 1;
}

static int has_bundle(const char *directory)
{
    DIR *d = opendir(directory);
    int found = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        found |= n > 10 && !strcmp(e->d_name + n - 10, ".crash.fdr");
    }
    if (d) closedir(d);
    return found;
}

/* Copies memory to memory, then writes it to a file in `directory`; returns seconds, 0 on failure. */
static double copy_and_write(const char *directory, size_t bytes)
{
    char path[600];
    snprintf(path, sizeof path, "%s/bench_crash.plain", directory);
    char *from = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    char *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (from == MAP_FAILED || to == MAP_FAILED) return 0;
    memset(from, 7, bytes);
    double begin = clock_seconds(CLOCK_MONOTONIC);
    memcpy(to, from, bytes);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (size_t at = 0; fd >= 0 && at < bytes;) {
        ssize_t n = write(fd, to + at, bytes - at < 1 << 20 ? bytes - at : 1 << 20);
        if (n <= 0) return 0;
        at += (size_t)n;
    }
    close(fd);
    double took = clock_seconds(CLOCK_MONOTONIC) - begin;
    unlink(path);
    munmap(from, bytes);
    munmap(to, bytes);
    return took;
}

int main(int argc, char **argv)
{
    int threads = argc > 2 ? atoi(argv[2]) : 1, mib = argc > 3 ? atoi(argv[3]) : 64, status;
    char buffer[16];
    snprintf(buffer, sizeof buffer, "%dM", mib);
    if (argc < 2 || threads < 1 || mib < 1) {
        fprintf(stderr, "usage: bench_crash DIR [THREADS] [MIB]\n");
        return 64;
    }
    struck = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double plain = copy_and_write(argv[1], (size_t)mib << 20), done = 0;
    pid_t pid = fork();
    if (pid == 0) _exit(victim(argv[1], threads, buffer));
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (!done && *struck != 0 && has_bundle(argv[1])) done = clock_seconds(CLOCK_MONOTONIC);
        usleep(200);
    }
    if (!done && has_bundle(argv[1])) done = clock_seconds(CLOCK_MONOTONIC);
    if (!done || plain == 0) {
        fprintf(stderr, "bench_crash: no bundle in %s (wait status %x)\n", argv[1], (unsigned)status);
        return 1;
    }
    printf("%d\t%.6f\t%.6f\n", threads, done - *struck, plain);
    return 0;
}
