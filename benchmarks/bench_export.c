/* SPDX-License-Identifier: MIT */
/* bench_export [-r TIMES] [-d DIRECTORY] FORMAT FILE...: exports each recording on one core. Prints "PATH <tab> format
 * <tab> events <tab> seconds <tab> bytes written <tab> MiB at most": CPU time, the best of TIMES (3); memory without
 * the mapped recording. Output goes to DIRECTORY (/dev/shm) and is removed. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fdr/reader.h>

#include "measure.h"

static uint64_t written;

static int add_and_remove(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)at;
    if (type == FTW_F) written += (uint64_t)s->st_size;
    return remove(path);
}

/* A line of /proc/self/status, in KiB. */
static double status_of(const char *name)
{
    char line[200];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0) kib = atof(line + strlen(name));
    if (f) fclose(f);
    return kib;
}

static const struct fdr_exporter *find(const char *name)
{
    const struct fdr_exporter *e;
    for (size_t i = 0; (e = fdr_exporter(i)) && strcmp(e->name, name) != 0;) i++;
    return e;
}

static uint64_t events_of(struct fdr_file *file)
{
    struct fdr_read_event e;
    struct fdr_iter *iter = fdr_iter_open(file, NULL);
    uint64_t events = 0;
    while (iter && fdr_iter_next(iter, &e)) events++;
    fdr_iter_close(iter);
    return events;
}

static int export(const struct fdr_exporter *format, const char *path, const char *directory, int times)
{
    char message[256], out[600];
    struct fdr_file *file;
    double best = 1e9;
    if (fdr_file_open(path, &file, message, sizeof message) != FDR_WHOLE) {
        fprintf(stderr, "bench_export: %s: %s\n", path, message);
        return 1;
    }
    snprintf(out, sizeof out, "%.500s/bench_export.%d", directory, (int)getpid());
    uint64_t events = events_of(file);
    for (int i = 0; i < times; i++) {
        double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
        int error = format->run(&file, 1, NULL, NULL, out);
        double took = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
        written = 0;
        nftw(out, add_and_remove, 16, FTW_DEPTH | FTW_PHYS);
        if (error) {
            fprintf(stderr, "bench_export: %s to %s: %s\n", path, format->name, strerror(-error));
            return 1;
        }
        if (took < best) best = took;
    }
    printf("%s\t%s\t%llu\t%.6f\t%llu\t%.1f\n", path, format->name, (unsigned long long)events, best,
           (unsigned long long)written, (status_of("VmHWM:") - status_of("RssFile:")) / 1024);
    fdr_file_close(file);
    return 0;
}

int main(int argc, char **argv)
{
    int option, status = 0, times = 3;
    const char *directory = "/dev/shm";
    while ((option = getopt(argc, argv, "r:d:")) != -1) {
        if (option == 'd') directory = optarg;
        else if (option != 'r' || (times = atoi(optarg)) < 1) return 64;
    }
    const struct fdr_exporter *format = optind < argc ? find(argv[optind]) : NULL;
    if (!format || optind + 1 >= argc) {
        fprintf(stderr, "bench_export: [-r TIMES] [-d DIRECTORY] FORMAT FILE...\n");
        return 64;
    }
    for (int i = optind + 1; i < argc; i++) status |= export(format, argv[i], directory, times);
    return status;
}
