/* SPDX-License-Identifier: MIT */
/* bench_snapshot [-b BUFFER] [-d DIR] [-r ROUNDS]: the cost of a snapshot, and its effect on a recording thread. The
 * buffer is filled first. Lines:
 *   snapshot <tab> ms of a snapshot <tab> ms of memcpy and write of as many bytes <tab> quotient, medians; the two take
 *   turns, each
 *        into a new file in DIR, which is removed again
 *   rate <tab> calls per CPU second alone <tab> the same while another thread takes snapshots back to back <tab>
 *   quotient <tab> snapshots
 *        taken meanwhile <tab> quotient while another thread does the memcpy and write instead
 * The rate is per second of the recording thread's own CPU time, so time of other programs does not count. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fdr/fdr.h>

#include "measure.h"

enum { REGIONS = 40, ROUNDS_MOST = 101, BATCH = 20000 };
static fdr_region region[REGIONS];
static char plain_path[600];
static uint8_t *image, *copy; /* source and destination of the memcpy */
static size_t image_bytes;

#define W_PREFIX   fdr
#define W_ENTER(n) fdr_enter(region[n])
#define W_LEAVE(n) fdr_leave(region[n])
#include "workload.h"

#define W_PREFIX   count
#define W_ENTER(n) (counted++)
#define W_LEAVE(n) (void)0
static long counted;
#include "workload.h"

static int snapshot(void)
{
    if (fdr_snapshot("bench")) return 1;
    unlink(fdr_last_snapshot());
    return 0;
}

static int copy_and_write(void)
{
    memcpy(copy, image, image_bytes);
    int fd = open(plain_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return 1;
    size_t done = 0;
    while (done < image_bytes) {
        ssize_t n = write(fd, copy + done, image_bytes - done);
        if (n <= 0) break;
        done += (size_t)n;
    }
    close(fd);
    unlink(plain_path);
    return done != image_bytes;
}

static double median_of(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, compare_double);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double time_of(int (*job)(void))
{
    double from = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
    if (job()) return -1;
    return clock_seconds(CLOCK_THREAD_CPUTIME_ID) - from;
}

/* ---- cost of a snapshot (row n) ---- */

static int costs(int rounds)
{
    double s[ROUNDS_MOST], w[ROUNDS_MOST], q[ROUNDS_MOST];
    for (int i = -1; i < rounds; i++) { /* the first of each is not counted */
        double a = time_of(snapshot), b = time_of(copy_and_write);
        if (a < 0 || b <= 0) return 1;
        if (i >= 0) s[i] = a * 1e3, w[i] = b * 1e3, q[i] = a / b;
    }
    double quotient = median_of(q, rounds);
    printf("snapshot\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\n", median_of(s, rounds), median_of(w, rounds), quotient, q[0],
           q[rounds - 1]);
    return 0;
}

/* ---- recording rate beside snapshots (row l) ---- */

static int (*disturbance)(void);
static int stop, failed;
static long disturbed;

static void *disturb(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        if (disturbance()) failed = 1;
        disturbed++;
    }
    return NULL;
}

/* Calls per second of CPU time over about `seconds` of it. */
static double rate(double seconds)
{
    long calls = 0;
    double from = clock_seconds(CLOCK_THREAD_CPUTIME_ID), took;
    do {
        for (long i = 0; i < BATCH; i += counted) fdr_pass();
        calls += (BATCH + counted - 1) / counted * counted;
    } while ((took = clock_seconds(CLOCK_THREAD_CPUTIME_ID) - from) < seconds);
    return (double)calls / took;
}

static double rate_beside(int (*job)(void), double seconds)
{
    pthread_t t;
    disturbance = job;
    stop = 0;
    if (pthread_create(&t, NULL, disturb, NULL)) return -1;
    double r = rate(seconds);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    return r;
}

static int rates(int rounds)
{
    double alone[ROUNDS_MOST], beside[ROUNDS_MOST], q[ROUNDS_MOST], other[ROUNDS_MOST];
    long snapshots = 0;
    for (int i = 0; i < rounds; i++) {
        alone[i] = rate(0.2);
        disturbed = 0;
        beside[i] = rate_beside(snapshot, 0.2);
        snapshots += disturbed;
        alone[i] = (alone[i] + rate(0.2)) / 2;
        other[i] = rate_beside(copy_and_write, 0.2) / alone[i];
        q[i] = beside[i] / alone[i];
    }
    double quotient = median_of(q, rounds);
    printf("rate\t%.0f\t%.0f\t%.3f\t%ld\t%.3f\t%.3f\t%.3f\n", median_of(alone, rounds), median_of(beside, rounds),
           quotient, snapshots, median_of(other, rounds), q[0], q[rounds - 1]);
    return failed;
}

/* ---- all ---- */

static int start(const char *buffer, const char *directory)
{
    char name[32];
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .name = "bench_snapshot",
                                .buffer = buffer,
                                .dir = directory,
                                .signal = "none",
                                .disk = "100G",
                                .keep = "256"};
    int error = fdr_init(&config);
    if (error) {
        fprintf(stderr, "bench_snapshot: the recorder does not start: %s\n", strerror(-error));
        return 1;
    }
    for (int i = 0; i < W_REGIONS; i++) {
        snprintf(name, sizeof name, "region_%d", i);
        region[i] = fdr_region_define(name, NULL, (unsigned)i);
    }
    count_pass();
    return 0;
}

/* Records until the first reduction. memcpy and write then copy as many bytes as the buffer has. */
static int fill(const char *directory)
{
    struct stat st;
    while (!fdr_usage().reductions) rate(0.05);
    if (fdr_snapshot("bench") || stat(fdr_last_snapshot(), &st)) return 1;
    unlink(fdr_last_snapshot());
    image_bytes = fdr_usage().buffer_bytes;
    fprintf(stderr, "bench_snapshot: %ld bytes on disk of a buffer of %zu\n", (long)st.st_blocks * 512, image_bytes);
    image = mmap(NULL, image_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    copy = mmap(NULL, image_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (image == MAP_FAILED || copy == MAP_FAILED) return 1;
    for (size_t i = 0; i < image_bytes; i += 8) memcpy(image + i, &(uint64_t){i * 0x9E3779B97F4A7C15u}, 8);
    snprintf(plain_path, sizeof plain_path, "%s/bench_snapshot.%d.plain", directory, (int)getpid());
    return 0;
}

int main(int argc, char **argv)
{
    const char *buffer = "64M", *directory = "/tmp";
    int rounds = 11, option;
    while ((option = getopt(argc, argv, "b:d:r:")) != -1) {
        switch (option) {
        case 'b': buffer = optarg; break;
        case 'd': directory = optarg; break;
        case 'r': rounds = atoi(optarg); break;
        default: rounds = 0;
        }
    }
    if (rounds < 1 || rounds > ROUNDS_MOST) {
        fprintf(stderr, "usage: bench_snapshot [-b BUFFER] [-d DIR] [-r ROUNDS (1..%d)]\n", ROUNDS_MOST);
        return 64;
    }
    if (start(buffer, directory)) return 1;
    pin_thread();
    int bad = fill(directory) || costs(rounds);
    if (!bad) {
        cpu_set_t all; /* so the other thread may use the other cores */
        CPU_ZERO(&all);
        for (int i = 0; i < CPU_SETSIZE; i++) CPU_SET(i, &all);
        sched_setaffinity(0, sizeof all, &all);
        bad = rates(rounds);
    }
    fdr_finalize();
    return bad;
}
