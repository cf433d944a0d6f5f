/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads,slow timeout=300 promise=P3,P9,P10
 * P3, P9, P10: threads record at full speed, start and end, in a buffer so small that reductions never stop. Another
 * thread takes snapshots without a break. Every snapshot is whole and nests, and its ledger lies within its bounds. */
#include <errno.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/atomic.h"
#include "base/system/topology.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "tests/support/oracle.h"
#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"

static int snapshots = SANITIZED ? 3 : 45; /* FDR_STRESS_SNAPSHOTS */
enum { STEADY = 3, REGIONS = 24 };

struct sample {
    int32_t a;
    uint64_t b;
    double c;
};
static fdr_region region[REGIONS];
static fdr_marker_id marker;
static fdr_metric_id metric;
static fdr_event_type event;
static bool stop;
static uint64_t presented; /* calls and points of all threads */
static uint64_t start_seed;

/* A random program: calls up to 12 deep with points in them. Returns the number of presented calls and points. */
static uint64_t calls(uint64_t *seed, uint32_t depth)
{
    uint64_t n = 1;
    fdr_region r = region[rnd(seed, REGIONS)];
    fdr_enter(r);
    uint32_t children = depth < 12 ? rnd(seed, depth < 3 ? 6 : 3) : 0;
    for (uint32_t i = 0; i < children; i++) n += calls(seed, depth + 1);
    struct sample s = {-(int32_t)n, n, 0.5};
    switch (rnd(seed, 8)) {
    case 0:
        fdr_marker(marker, n);
        n++;
        break;
    case 1:
        fdr_metric_f64(metric, (double)n);
        n++;
        break;
    case 2:
        fdr_event(event, &s);
        n++;
        break;
    case 3:
        fdr_message_send(1, 7, 0, n);
        n++;
        break;
    default: break;
    }
    fdr_leave(r);
    return n;
}

static void *steady(void *argument)
{
    uint64_t seed = start_seed + (uintptr_t)argument, n = 0;
    fdr_thread_name("steady");
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) n += calls(&seed, 1);
    __atomic_fetch_add(&presented, n, __ATOMIC_RELAXED);
    return NULL;
}

static void *brief(void *argument)
{
    uint64_t seed = start_seed ^ (uintptr_t)argument * 7919u, n = 0;
    for (int i = 0; i < 20; i++) n += calls(&seed, 1);
    __atomic_fetch_add(&presented, n, __ATOMIC_RELAXED);
    return NULL;
}

/* Threads start and end until `stop`, so every snapshot meets some. */
static uint64_t came;
static void *comings(void *unused)
{
    uintptr_t n = 1000;
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        pthread_t t[2];
        for (int i = 0; i < 2; i++) { /* an assertion in this thread would end the process without a message */
            int error = pthread_create(&t[i], NULL, brief, (void *)n++);
            if (error) print_message("no more threads: %s\n", strerror(error));
            if (error) return NULL;
        }
        for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
        fdri_atomic_add_relaxed(&came, 2u);
    }
    return NULL;
}

static void define_all(void)
{
    static const struct fdr_field fields[] = {{"a", FDR_I32, offsetof(struct sample, a)},
                                              {"b", FDR_U64, offsetof(struct sample, b)},
                                              {"c", FDR_F64, offsetof(struct sample, c)}};
    char name[16];
    for (int i = 0; i < REGIONS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        region[i] = fdr_region_define(name, __FILE__, (unsigned)i);
        assert_int_not_equal(region[i], 0);
    }
    marker = fdr_marker_define("marker");
    metric = fdr_metric_define("metric", "1", FDR_F64, FDR_METRIC_GAUGE);
    event = fdr_event_define("event", fields, 3);
}

static void one_storm(const char *strategy, const char *buffer, uint64_t bytes, const char *resolution,
                      const char *reduce)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.strategy = strategy;
    c.buffer = buffer;
    c.resolution = resolution;
    c.reduce = reduce;
    c.bin = "1K";
    c.timer = NULL;
    assert_int_equal(fdr_init(&c), 0);
    define_all();
    stop = false;
    presented = came = 0;
    pthread_t thread[STEADY + 1];
    for (uintptr_t i = 0; i < STEADY; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, steady, (void *)(i + 1)), 0);
    assert_int_equal(pthread_create(&thread[STEADY], NULL, comings, NULL), 0);
    uint64_t events = 0, whole = 0;
    const char *wrong = NULL;
    for (int i = 0; i < snapshots && !wrong; i++) {
        struct fdr_file *f = oracle_snapshot(bytes, &wrong);
        if (!wrong) wrong = oracle_check_any(f, &events);
        if (f) fdr_file_close(f);
        whole += !wrong;
    }
    /* A slow machine may take its snapshots before the buffer is full. So the storm lasts until the first reduction. In
     * a tiny buffer the first thread may hold everything; then it lasts until a thread finds no room. */
    const struct fdri_arena_superblock *super = fdri_life_recording.arena.super;
    for (int i = 0; i < 6000 && !wrong && !fdr_usage().reductions && !fdri_atomic_load_relaxed(&super->lost_unattached);
         i++)
        usleep(10000);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i <= STEADY; i++) pthread_join(thread[i], NULL);
    if (wrong) print_message("%s %s after %llu good ones: %s\n", strategy, buffer, (unsigned long long)whole, wrong);
    /* now all threads have ended, so the ledger is exact */
    struct fdr_usage u = fdr_usage();
    char text[160];
    const char *bins = fdri_bins_check(&fdri_life_recording.arena, text, sizeof text);
    if (bins) print_message("%s\n", bins);
    const char *last = NULL;
    struct fdr_file *f = oracle_snapshot(bytes, &last);
    if (!last) last = oracle_check_any(f, &events);
    if (last) print_message("quiet: %s\n", last);
    uint64_t sum = 0, unattached = 0;
    const struct fdr_ledger_row *rows;
    size_t n = f ? fdr_ledger(f, &rows) : 0;
    bool balance = true;
    for (size_t i = 0; i < n; i++) {
        sum += rows[i].presented;
        if (rows[i].presented != rows[i].kept + rows[i].filtered + rows[i].reduced + rows[i].lost) balance = false;
    }
    if (f) unattached = fdr_file_info(f)->lost_unattached;
    if (f) fdr_file_close(f);
    print_message("%s %s: %llu presented by %llu threads (%llu locations), %llu reductions, %llu snapshots with %llu "
                  "events\n",
                  strategy, buffer, (unsigned long long)presented, (unsigned long long)(STEADY + came),
                  (unsigned long long)u.locations, (unsigned long long)u.reductions, (unsigned long long)whole,
                  (unsigned long long)events);
    fdr_finalize();
    assert_null(wrong);
    assert_null(bins);
    assert_null(last);
    assert_true(balance);
    /* an unattached thread counts enters and leaves, so its count may exceed the missing calls */
    assert_true(sum <= presented && sum + unattached >= presented);
    if (!unattached) assert_int_equal(sum, presented);
    bool tiny = bytes < 1 << 20; /* in a tiny buffer one thread may hold everything, and the others find no room */
    assert_true((u.reductions || (tiny && unattached)) && events > 0);
}

static void P3_P9_snapshots_under_load_whole(void **state)
{
    (void)state;
    one_storm("whole", "1M", 1 << 20, "0", "duration,depth,class,epoch");
}
static void P3_P9_snapshots_under_load_oldest_first(void **state)
{
    (void)state;
    one_storm("whole", "1M", 1 << 20, "128ns", "epoch");
}
static void P3_P9_snapshots_under_load_last(void **state)
{
    (void)state;
    one_storm("last", "1M", 1 << 20, "128ns", NULL);
}
static void P3_P9_snapshots_under_load_first(void **state)
{
    (void)state;
    one_storm("first", "1M", 1 << 20, "0", NULL);
}
static void P3_P9_snapshots_under_load_tiny(void **state)
{
    (void)state;
    one_storm("whole", "256K", 256 << 10, "0", "class,depth,duration");
}

static void P3_P9_snapshots_under_load_telescope(void **state)
{
    (void)state;
    one_storm("telescope", "1M", 1 << 20, "0", NULL);
}

/* The same on two NUMA nodes: threads change nodes all the time and take bins of the new node. */
static int some_cpu(void)
{
    static uint32_t n;
    return (int)(__atomic_fetch_add(&n, 1, __ATOMIC_RELAXED) / 8 & 1);
}
static bool no_preference(uint32_t id)
{
    (void)id;
    return true;
}
static bool any_memory(void *memory, uint64_t bytes)
{
    (void)memory;
    (void)bytes;
    return true;
}
static void P3_P9_snapshots_under_load_on_two_nodes(void **state)
{
    static const struct fdri_system_topology two = {.nodes = 2,
                                                    .page_bytes = 4096,
                                                    .id = {0, 1},
                                                    .of_cpu = {0, 1},
                                                    .cpu = some_cpu,
                                                    .prefer = no_preference,
                                                    .stay = any_memory};
    (void)state;
    fdri_system_topology_given = &two;
    one_storm("telescope", "1M", 1 << 20, "128ns", NULL);
    fdri_system_topology_given = NULL;
}

/* Several threads request snapshots at once. Each request succeeds, and its file is complete when it returns. */
static void *asker(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20; i++)
        if (fdr_snapshot("many")) return (void *)1;
    return NULL;
}
static void P10_snapshots_asked_at_once_are_one(void **state)
{
    (void)state;
    /* under qemu-user each thread has its own start time, so fdr takes it for another process */
    if (getenv("FDR_TEST_EMULATED")) skip();
    struct fdr_config c = oracle_config(oracle_directory());
    c.keep = "2,newest";
    assert_int_equal(fdr_init(&c), 0);
    define_all();
    uint64_t seed = start_seed;
    calls(&seed, 1);
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, asker, NULL);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(t[i], &result);
        assert_null(result);
    }
    uint64_t taken = fdr_usage().snapshots;
    print_message("80 asked, %llu taken\n", (unsigned long long)taken);
    assert_true(taken >= 20 && taken <= 80);
    struct stat st;
    assert_int_equal(stat(fdr_last_snapshot(), &st), 0);
    char command[400];
    snprintf(command, sizeof command, "rm -f %s/*.fdr", oracle_directory());
    assert_int_equal(system(command), 0);
    fdr_finalize();
}

int main(void)
{
    const char *given = getenv("FDR_SEED");
    start_seed = given ? strtoull(given, NULL, 0) : 0x9E3779B97F4A7C15u;
    if (getenv("FDR_STRESS_SNAPSHOTS")) snapshots = atoi(getenv("FDR_STRESS_SNAPSHOTS"));
    print_message("FDR_SEED=0x%llx\n", (unsigned long long)start_seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_P9_snapshots_under_load_whole),
        cmocka_unit_test(P3_P9_snapshots_under_load_oldest_first),
        cmocka_unit_test(P3_P9_snapshots_under_load_last),
        cmocka_unit_test(P3_P9_snapshots_under_load_first),
        cmocka_unit_test(P3_P9_snapshots_under_load_tiny),
        cmocka_unit_test(P3_P9_snapshots_under_load_telescope),
        cmocka_unit_test(P3_P9_snapshots_under_load_on_two_nodes),
        cmocka_unit_test(P10_snapshots_asked_at_once_are_one),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
