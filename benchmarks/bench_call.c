/* SPDX-License-Identifier: MIT */
/* bench_call MODE [-n CALLS] [-b BUFFER] [-s STRATEGY] [-t THREADS [-a]] [-o DIR]: ns per call (enter + leave) of one
 * kind of recording.
 *   empty     the workload alone
 *   clock     two clock reads per call
 *   floor     two clock reads and two 8-byte stores into a ring of 32 KiB: the least that a recorder in the process
 *             can do
 *   fdr       recorded by libfdr, lossless, totals and histograms on
 *   short     every call below FDR_MIN_DURATION
 *   deep      every call deeper than FDR_DEPTH
 *   off       FDR_ENABLE=0
 *   excluded  every call of regions that a rule excludes
 *   every     one call in 1000 of each region is stored; the rule leaves out the others
 *   min       every call of regions with a rule that stores them all (min 1ns)
 *   below-min every call below the minimum of its region's rule
 *   hook      as fdr, by code address, as the compiler's hooks do
 *   excluded-hook  excluded, by code address
 *   tally     fdr_tally_add in place of a call, one key for each region
 *   io        begin and end of an operation on a file in place of a call
 *   bare      as fdr, into anonymous memory and without handlers of fatal signals
 * -t: THREADS record at once, CALLS each, each on its own processor; the figure is their mean.
 * -a: the same threads run on the same processors, but one after another. Processors differ, so -t is compared with
 *     this.
 * -o: writes a snapshot to DIR at the end (untimed).
 * Prints "MODE <tab> ns per call". Exits with 1 if the ledger does not show the calls that the mode must record or
 * drop. */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/tally.h>

#include "measure.h"

enum { RING_WORDS = 32 * 1024 / 8, THREADS_MOST = 64 };
static __thread uint64_t *ring;
static __thread uint64_t head;
static fdr_region region[64];
static long counted;

static inline __attribute__((always_inline)) void put(uint64_t value)
{
    ring[head & (RING_WORDS - 1)] = value;
    head++;
}
static inline __attribute__((always_inline)) void use(uint64_t value) { __asm__ volatile("" : : "r"(value)); }

#define W_PREFIX   count
#define W_ENTER(n) (counted++)
#define W_LEAVE(n) (void)0
#include "workload.h"

#define W_PREFIX   empty
#define W_ENTER(n) (void)0
#define W_LEAVE(n) (void)0
#include "workload.h"

#define W_PREFIX   clock
#define W_ENTER(n) use(bench_ticks())
#define W_LEAVE(n) use(bench_ticks())
#include "workload.h"

#define W_PREFIX   floor
#define W_ENTER(n) put(bench_ticks() << 8 | (n) << 1)
#define W_LEAVE(n) put(bench_ticks() << 8 | (n) << 1 | 1)
#include "workload.h"

#define W_PREFIX   fdr
#define W_ENTER(n) fdr_enter(region[n])
#define W_LEAVE(n) fdr_leave(region[n])
#include "workload.h"

static char code[64]; /* stands for the functions; nothing runs there */
static inline __attribute__((always_inline)) void enter_code(unsigned n)
{
    fdr_enter_function_(&code[n], __builtin_return_address(0), __builtin_frame_address(0), &code[n]);
}
#define W_PREFIX   hook
#define W_ENTER(n) enter_code(n)
#define W_LEAVE(n) fdr_leave_address(&code[n])
#include "workload.h"

static fdr_tally tally[64];
#define W_PREFIX   tally
#define W_ENTER(n) fdr_tally_add(tally[n], 0, 1, NULL)
#define W_LEAVE(n) (void)0
#include "workload.h"

static __thread uint64_t began;
#define W_PREFIX   io
#define W_ENTER(n) (began = fdr_io_begin(1, FDR_IO_READ, n, FDR_IO_NO_OFFSET))
#define W_LEAVE(n) fdr_io_end(1, FDR_IO_READ, n, 0, began)
#include "workload.h"

enum expect { NOTHING, STORED, FILTERED, MOSTLY, TALLIED, OFF };
static const struct mode {
    const char *name;
    void (*pass)(void);
    enum expect expect;
    const char *min_duration, *depth, *enable, *arena, *crash, *rule;
} modes[] = {
    {"empty", empty_pass, NOTHING, NULL, NULL, NULL, NULL, NULL, NULL},
    {"clock", clock_pass, NOTHING, NULL, NULL, NULL, NULL, NULL, NULL},
    {"floor", floor_pass, NOTHING, NULL, NULL, NULL, NULL, NULL, NULL},
    {"fdr", fdr_pass, STORED, NULL, NULL, NULL, NULL, NULL, NULL},
    {"short", fdr_pass, FILTERED, "1000s", NULL, NULL, NULL, NULL, NULL},
    {"deep", fdr_pass, FILTERED, NULL, "1", NULL, NULL, NULL, NULL},
    {"off", fdr_pass, OFF, NULL, NULL, "0", NULL, NULL, NULL},
    {"bare", fdr_pass, STORED, NULL, NULL, NULL, "anonymous", "0", NULL},
    {"excluded", fdr_pass, FILTERED, NULL, NULL, NULL, NULL, NULL, "exclude name *"},
    {"every", fdr_pass, MOSTLY, NULL, NULL, NULL, NULL, NULL, "every 1000 name *"},
    {"min", fdr_pass, STORED, NULL, NULL, NULL, NULL, NULL, "min 1ns name *"},
    {"below-min", fdr_pass, FILTERED, NULL, NULL, NULL, NULL, NULL, "min 1000s name *"},
    {"hook", hook_pass, STORED, NULL, NULL, NULL, NULL, NULL, NULL},
    {"tally", tally_pass, TALLIED, NULL, NULL, NULL, NULL, NULL, NULL},
    {"io", io_pass, STORED, NULL, NULL, NULL, NULL, NULL, NULL},
    {"excluded-hook", hook_pass, FILTERED, NULL, NULL, NULL, NULL, NULL, "exclude name *"},
};

/* Writes the mode's rule to a file of its own. Returns the file's path, or NULL if there is no rule. */
static const char *rule_file(const struct mode *m)
{
    static char path[] = "/tmp/bench_call-XXXXXX";
    int fd = m->rule ? mkstemp(path) : -1;
    if (fd < 0) return NULL;
    bool written = dprintf(fd, "%s\n", m->rule) > 0;
    close(fd);
    return written ? path : NULL;
}

static int start(const struct mode *m, const char *buffer, const char *strategy, const char *directory)
{
    char name[32];
    const char *rules = rule_file(m);
    struct fdr_config config = {.size = sizeof config,
                                .ignore_environment = 1,
                                .name = "bench_call",
                                .buffer = buffer,
                                .strategy = strategy,
                                .dir = directory,
                                .signal = "none",
                                .disk = "4G",
                                .min_duration = m->min_duration,
                                .depth = m->depth,
                                .enable = m->enable,
                                .arena = m->arena,
                                .crash = m->crash,
                                .filter = rules};
    int error = fdr_init(&config);
    if (rules) unlink(rules);
    if (error != 0) {
        fprintf(stderr, "bench_call: the recorder does not start: %s\n", strerror(-error));
        return 1;
    }
    for (int i = 0; i < W_REGIONS; i++) {
        snprintf(name, sizeof name, "region_%d", i);
        region[i] = fdr_region_define(name, NULL, (unsigned)i);
        unsigned char key[FDR_TALLY_KEY_BYTES] = {(unsigned char)i};
        fdr_tally_make(FDR_TALLY_YOURS, key, &tally[i]);
    }
    fdr_io_file_define("input");
    return 0;
}

static uint64_t tallied(void)
{
    uint64_t sum = 0, one;
    for (int i = 0; i < W_REGIONS; i++)
        if (fdr_tally_read(tally[i], 0, &one) == 0) sum += one;
    return sum;
}

/* The ledger shows at least `calls` calls, recorded or dropped as the mode says. */
static int as_expected(const struct mode *m, uint64_t calls)
{
    struct fdr_usage u = fdr_usage();
    int good = u.lost == 0;
    if (m->expect == STORED) good = good && u.presented >= calls && u.stored + u.reduced >= calls - 8;
    if (m->expect == FILTERED) good = good && u.filtered >= calls && u.stored < 8;
    if (m->expect == MOSTLY) good = good && u.presented >= calls && u.filtered >= u.presented - u.presented / 900;
    if (m->expect == TALLIED) good = tallied() >= calls;
    if (m->expect == OFF) good = u.presented == 0;
    if (!good)
        fprintf(stderr, "bench_call %s: %llu calls, but presented %llu stored %llu filtered %llu lost %llu\n", m->name,
                (unsigned long long)calls, (unsigned long long)u.presented, (unsigned long long)u.stored,
                (unsigned long long)u.filtered, (unsigned long long)u.lost);
    return good;
}

struct worker {
    pthread_t thread;
    const struct mode *m;
    int cpu;
    long calls;
    double ns;
};
static pthread_barrier_t together;

static bool make_ring(void)
{
    ring = mmap(NULL, RING_WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return ring != MAP_FAILED;
}

/* FDR_DEPTH is 1, so one open region puts the whole workload below it. */
static double timed(const struct mode *m, long calls)
{
    if (m->depth || m->expect == TALLIED) fdr_enter(region[0]); /* tallies: a thread that records */
    double ns = measure(m->pass, counted, calls);
    if (m->depth || m->expect == TALLIED) fdr_leave(region[0]);
    return ns;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    pin_to(w->cpu);
    bool good = make_ring();
    pthread_barrier_wait(&together);
    w->ns = good ? timed(w->m, w->calls) : 0;
    return NULL;
}

/* Runs `at_once` of the threads at a time. Returns 0 if they cannot run. */
static double in_threads(const struct mode *m, long calls, int threads, int at_once)
{
    struct worker w[THREADS_MOST];
    double sum = 0;
    if (threads > processors() || pthread_barrier_init(&together, NULL, (unsigned)at_once) != 0) {
        fprintf(stderr, "bench_call: %d threads on %d processors\n", threads, processors());
        return 0;
    }
    for (int first = 0; first < threads; first += at_once) {
        for (int i = first; i < first + at_once; i++) {
            w[i] = (struct worker){.m = m, .cpu = nth_processor(i), .calls = calls};
            if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0) exit(1);
        }
        for (int i = first; i < first + at_once; i++) {
            pthread_join(w[i].thread, NULL);
            if (w[i].ns <= 0) return 0;
            sum += w[i].ns;
        }
    }
    return sum / threads;
}

static double alone(const struct mode *m, long calls)
{
    pin_thread();
    return make_ring() ? timed(m, calls) : 0;
}

static int run(const struct mode *m, long calls, int threads, int at_once, const char *directory)
{
    count_pass();
    double ns = threads > 1 ? in_threads(m, calls, threads, at_once) : alone(m, calls);
    if (ns <= 0 || (m->expect != NOTHING && !as_expected(m, (uint64_t)calls * (uint64_t)threads))) return 1;
    printf("%s\t%.4f\n", m->name, ns);
    if (directory) {
        int error = fdr_snapshot("bench");
        if (error != 0) return 1;
        printf("%s\n", fdr_last_snapshot());
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *buffer = "64M", *strategy = NULL, *directory = NULL;
    const struct mode *m = NULL;
    long calls = 4000000;
    int option, threads = 1;
    bool one_after_another = false;
    while ((option = getopt(argc, argv, "n:b:s:t:ao:")) != -1) {
        switch (option) {
        case 'n': calls = atol(optarg); break;
        case 'b': buffer = optarg; break;
        case 's': strategy = optarg; break;
        case 't': threads = atoi(optarg); break;
        case 'a': one_after_another = true; break;
        case 'o': directory = optarg; break;
        default: return 64;
        }
    }
    for (size_t i = 0; optind < argc && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[optind], modes[i].name) == 0) m = &modes[i];
    if (!m || calls < 1000 || threads < 1 || threads > THREADS_MOST) {
        fprintf(stderr,
                "usage: bench_call [-n CALLS] [-b BUFFER] [-s STRATEGY] [-t THREADS [-a]] [-o DIR] "
                "empty|clock|floor|fdr|short|deep|off|bare|excluded|every|min|below-min|hook|excluded-hook|tally|io\n");
        return 64;
    }
    if (m->expect != NOTHING && start(m, buffer, strategy, directory) != 0) return 1;
    int status = run(m, calls, threads, one_after_another ? 1 : threads, directory);
    fdr_finalize();
    return status;
}
