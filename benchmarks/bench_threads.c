/* SPDX-License-Identifier: MIT */
/* bench_threads [-c CALLS] MIB THREADS...: how much of each thread a buffer of MIB keeps. All threads live at once and
 * record by turns, 16 turns each, CALLS calls together, six deep, at presented times. So the counts hardly depend on
 * the load of the machine. Not part of `./dev bench`; docs/CAPACITY.md has its table. One line for each number of
 * threads. The columns after "calls of each" are of the threads that keep calls:
 *
 *     MIB <tab> threads <tab> that found room <tab> that keep calls <tab> calls of each <tab> bytes of bins, median
 *     <tab> calls kept, median <tab> least <tab> newest calls that are all there, median <tab> least
 *
 * All threads make the same calls, so one list of end times serves to find the kept calls of each. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

enum { DEEPEST = 6, A_LEVEL = 3, TURNS = 16, THREADS_MOST = 16384, A_TREE = 364 /* calls at most */ };

static fdr_region region[DEEPEST][A_LEVEL];

struct worker {
    pthread_t thread;
    sem_t go;
    uint64_t seed, now, made;
};
struct kept {
    uint64_t calls, newest, bytes;
};
static struct worker *worker;
static sem_t done;
static uint64_t calls_each;
static uint64_t *ended; /* end times of a thread's calls, ascending */

static uint32_t draw(struct worker *w, uint32_t below)
{
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return (uint32_t)((w->seed >> 32) * below >> 32);
}

static void one_call(struct worker *w, uint32_t depth)
{
    fdr_region r = region[depth][draw(w, A_LEVEL)];
    fdr_enter_at(r, w->now += 20 + draw(w, 60));
    if (depth + 1 < DEEPEST)
        for (uint32_t n = draw(w, 4); n > 0; n--) one_call(w, depth + 1);
    w->now += 20 + draw(w, draw(w, 16) ? 200 : 20000);
    fdr_leave_at(r, w->now);
    if (w == worker) ended[w->made] = w->now;
    w->made++;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    for (uint64_t turn = 1;; turn++) {
        while (sem_wait(&w->go)) continue;
        if (turn > TURNS) return NULL;
        while (w->made < calls_each * turn / TURNS) one_call(w, 0);
        sem_post(&done);
    }
}

static int each_in_turn(uint32_t threads)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    for (uint32_t i = 0; i < threads; i++) {
        worker[i] = (struct worker){.seed = 88172645463325252u, .now = 1000};
        sem_init(&worker[i].go, 0, 0);
        if (pthread_create(&worker[i].thread, &small, work, &worker[i])) return 1;
    }
    for (uint32_t turn = 0; turn < TURNS; turn++)
        for (uint32_t i = 0; i < threads; i++) {
            sem_post(&worker[i].go);
            while (sem_wait(&done)) continue;
        }
    return 0;
}

static void end_all(uint32_t threads)
{
    for (uint32_t i = 0; i < threads; i++) {
        sem_post(&worker[i].go);
        pthread_join(worker[i].thread, NULL);
    }
}

static int ascending(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Prints the median, and if asked the least, of one number over the threads that keep calls. */
static void print_of(const struct kept *k, size_t count, size_t member, bool least)
{
    uint64_t *v = calloc(count + 1, sizeof *v);
    size_t n = 0;
    if (!v) exit(1);
    for (size_t i = 0; i < count; i++)
        if (k[i].calls) memcpy(&v[n++], (const char *)&k[i] + member, sizeof *v);
    qsort(v, n, sizeof *v, ascending);
    printf("\t%llu", (unsigned long long)v[n / 2]);
    if (least) printf("\t%llu", (unsigned long long)v[0]);
    free(v);
}

/* Fills kept[], one for each location. Leaves of one location come in order, and so do their times in `ended`. */
static int look(struct fdr_file *f, struct kept *kept)
{
    struct fdr_select one = {.one_location_after_another = true, .classes = 1u << FDR_IN_REGION};
    struct fdr_iter *it = fdr_iter_open(f, &one);
    struct fdr_read_event e;
    size_t i = 0;
    uint64_t next = 0;
    if (!it) return 1;
    while (fdr_iter_next(it, &e)) {
        for (; fdr_location_info(f, i)->id != e.location; i++) next = 0;
        if (e.kind != FDR_LEAVE || e.repaired || e.reduced) continue;
        kept[i].calls++;
        kept[i].newest = next < worker->made && ended[next] == e.time_ns ? kept[i].newest + 1 : 1;
        while (next < worker->made && ended[next] <= e.time_ns) next++;
    }
    fdr_iter_close(it);
    for (i = 0; i < fdr_location_count(f); i++) kept[i].bytes = fdr_location_info(f, i)->bytes_stored;
    return 0;
}

static int report(uint32_t mib, uint32_t threads)
{
    char message[256];
    struct fdr_file *f;
    if (fdr_snapshot("bench")) return 1;
    enum fdr_verdict verdict = fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message);
    unlink(fdr_last_snapshot());
    if (verdict != FDR_WHOLE) return fprintf(stderr, "%s\n", message), 1;
    size_t count = fdr_location_count(f), found = 0;
    struct kept *kept = calloc(count + 1, sizeof *kept);
    if (!kept || look(f, kept)) return 1;
    for (size_t i = 0; i < count; i++) found += kept[i].calls > 0;
    printf("%u\t%u\t%zu\t%zu\t%llu", mib, threads, count, found, (unsigned long long)calls_each);
    print_of(kept, count, offsetof(struct kept, bytes), false);
    print_of(kept, count, offsetof(struct kept, calls), true);
    print_of(kept, count, offsetof(struct kept, newest), true);
    printf("\n");
    fflush(stdout);
    fdr_file_close(f);
    free(kept);
    return 0;
}

static int measure(uint32_t mib, uint32_t threads, uint64_t calls)
{
    char buffer[16], name[16];
    snprintf(buffer, sizeof buffer, "%uM", mib);
    struct fdr_config c = {.size = sizeof c,
                           .ignore_environment = 1,
                           .buffer = buffer,
                           .keep = "256",
                           .disk = "4G",
                           .crash = "0",
                           .signal = "none",
                           .strict = 1};
    calls_each = calls / threads;
    ended = malloc((calls_each + A_TREE) * sizeof *ended);
    worker = calloc(threads, sizeof *worker);
    if (!ended || !worker || sem_init(&done, 0, 0) || fdr_init(&c)) return 1;
    for (uint32_t d = 0; d < DEEPEST; d++)
        for (uint32_t i = 0; i < A_LEVEL; i++) {
            snprintf(name, sizeof name, "r%u.%u", d + 1, i);
            region[d][i] = fdr_region_define(name, "bench_threads.c", i);
        }
    int bad = each_in_turn(threads) || report(mib, threads);
    if (!bad) end_all(threads);
    fdr_finalize();
    free(ended);
    free(worker);
    return bad;
}

int main(int argc, char **argv)
{
    uint64_t calls = 1 << 24;
    int i = 1;
    if (argc > 3 && !strcmp(argv[1], "-c")) calls = strtoull(argv[2], NULL, 10), i = 3;
    uint32_t mib = argc > i + 1 ? (uint32_t)strtoul(argv[i], NULL, 10) : 0;
    if (!mib) return fprintf(stderr, "usage: bench_threads [-c CALLS] MIB THREADS...\n"), 2;
    for (i++; i < argc; i++) {
        uint32_t threads = (uint32_t)strtoul(argv[i], NULL, 10);
        if (!threads || threads > THREADS_MOST || calls / threads < TURNS) return 2;
        if (measure(mib, threads, calls)) return fprintf(stderr, "bench_threads: %u threads failed\n", threads), 1;
    }
    return 0;
}
