/* SPDX-License-Identifier: MIT */
/* bench_read [-r TIMES] FILE...: reads all events of all locations in time order on one core. Prints "PATH <tab>
 * events <tab> seconds of the iteration <tab> seconds of opening": CPU time, the best of TIMES (3). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fdr/reader.h>

#include "measure.h"

struct figures {
    uint64_t events, disorder;
    double iterate, open;
};

static int read_once(const char *path, struct figures *f)
{
    char message[256];
    struct fdr_file *file;
    struct fdr_read_event e;
    uint64_t events = 0, last = 0, disorder = 0;
    double start = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    if (fdr_file_open(path, &file, message, sizeof message) != FDR_WHOLE) {
        fprintf(stderr, "bench_read: %s: %s\n", path, message);
        return 1;
    }
    double opened = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    struct fdr_iter *iter = fdr_iter_open(file, NULL);
    while (iter && fdr_iter_next(iter, &e)) {
        disorder += e.time_ns < last;
        last = e.time_ns;
        events++;
    }
    fdr_iter_close(iter);
    double done = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    fdr_file_close(file);
    f->events = events;
    f->disorder = disorder;
    if (opened - start < f->open) f->open = opened - start;
    if (done - opened < f->iterate) f->iterate = done - opened;
    return 0;
}

int main(int argc, char **argv)
{
    int option, status = 0, times = 3;
    while ((option = getopt(argc, argv, "r:")) != -1) {
        if (option != 'r' || (times = atoi(optarg)) < 1) return 64;
    }
    if (optind == argc) {
        fprintf(stderr, "usage: bench_read [-r TIMES] FILE...\n");
        return 64;
    }
    for (int i = optind; i < argc; i++) {
        struct figures f = {.iterate = 1e9, .open = 1e9};
        int bad = 0;
        for (int k = 0; k < times && !bad; k++) bad = read_once(argv[i], &f);
        if (!bad && (f.events == 0 || f.disorder != 0)) {
            fprintf(stderr, "bench_read: %s: %llu events, %llu out of order\n", argv[i], (unsigned long long)f.events,
                    (unsigned long long)f.disorder);
            bad = 1;
        }
        if (!bad) printf("%s\t%llu\t%.6f\t%.6f\n", argv[i], (unsigned long long)f.events, f.iterate, f.open);
        status |= bad;
    }
    return status;
}
