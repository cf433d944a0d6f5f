/* SPDX-License-Identifier: MIT */
/* A small program that records events of every kind, for fuzz/make_seeds.sh. Environment variables configure it.
 *   seed calls|points|lanes|rewinds|threads|deep|ended|samples|readings|going [live|crash|fired|watched|held]
 * The second word says how it ends. Without it, the program takes one snapshot while calls are open. live: SIGKILL in
 * the middle, so that the live file stays. crash: SIGABRT, which leaves a bundle. fired: a trigger takes the snapshot.
 * watched: the watchdog takes it, because a thread stands still. held: threads run until the process is killed. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static _Thread_local uint64_t state = 88172645463325252u;
static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % n;
}

static fdr_region region[40];
static uint64_t began;
static fdr_marker_id marker;
static fdr_metric_id metric;
static fdr_event_type event;
struct payload {
    uint64_t a;
    double b;
    int32_t c;
};

static void define_all(void)
{
    static const struct fdr_field fields[] = {{"a", FDR_U64, offsetof(struct payload, a)},
                                              {"b", FDR_F64, offsetof(struct payload, b)},
                                              {"c", FDR_I32, offsetof(struct payload, c)}};
    static const uint32_t ranks[] = {0, 2, 4};
    char name[16];
    for (unsigned i = 0; i < sizeof region / sizeof *region; i++) {
        snprintf(name, sizeof name, "region%u", i);
        region[i] = fdr_region_define(name, i % 3 ? "seed.c" : NULL, i);
    }
    marker = fdr_marker_define("marker");
    fdr_io_file_define("input");
    metric = fdr_metric_define("metric", "bytes", FDR_F64, FDR_METRIC_GAUGE);
    event = fdr_event_define("event", fields, 3);
    fdr_comm_define("comm", ranks, 3);
    fdr_note("input", "seed.c");
    fdr_note("step", "0");
    fdr_note("step", "1200");
}

/* A random walk over calls. Its steps of time range from nothing to hours. */
static uint64_t walk(uint64_t now, int events, uint32_t depth_max, uint32_t points)
{
    fdr_region open[64];
    uint32_t depth = 0;
    struct payload p = {7, 0.5, -1};
    for (int i = 0; i < events; i++) {
        now += below(3) ? 0 : below(below(30) ? 400 : below(100) ? 300000 : 2000000000);
        if (points && below(points) == 0) {
            switch (below(8)) {
            case 0: fdr_marker_at(marker, below(100), now); break;
            case 6:
                began = fdr_io_begin_at(1, below(6), below(4096), below(2) ? FDR_IO_NO_OFFSET : below(9000), now);
                break;
            case 7: fdr_io_end_at(below(3), below(6), below(4096), below(2) ? 0 : 5, began, now); break;
            case 1: fdr_metric_f64_at(metric, below(1000) / 7.0, now); break;
            case 2: fdr_event_at(event, below(9) ? &p : NULL, now); break;
            case 3: fdr_message_send_at(below(4), -1, 0, 1u << below(20), now); break;
            case 4: fdr_message_recv_at(below(4), 3, 1, 8, now); break;
            default:
                fdr_collective_begin_at(10 + below(12), now);
                fdr_collective_end_at(13, 1, -1, 80, 80, now + below(50));
                now += 50;
            }
        } else if (depth == 0 || (depth < depth_max && below(2))) {
            open[depth] = region[below(below(4) ? 5 : 40)];
            fdr_enter_at(open[depth++], now);
        } else {
            fdr_leave_at(open[--depth], now);
        }
    }
    return now;
}

static volatile sig_atomic_t handled;
static void on_alarm(int unused)
{
    (void)unused;
    fdr_enter(region[1]);
    fdr_marker(marker, 1);
    fdr_leave(region[1]);
    handled++;
}
static void lanes(void)
{
    struct sigaction a = {.sa_handler = on_alarm};
    struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &a, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    while (handled < 200) {
        fdr_enter(region[2]);
        fdr_enter(region[3]);
        fdr_leave(region[3]);
        fdr_leave(region[2]);
    }
    setitimer(ITIMER_REAL, &never, NULL);
}

static void rewinds(void)
{
    uint64_t now = 1000;
    for (int i = 0; i < 20; i++) {
        fdr_enter_at(region[0], now);
        fdr_rewind_mark();
        fdr_enter_at(region[1], now);
        fdr_leave_at(region[1], now += below(1000));
        for (int k = 0; k < 50; k++) {
            fdr_enter_at(region[2], now += below(300));
            fdr_marker_at(marker, 1, now);
            fdr_leave_at(region[2], now += below(300));
        }
        if (i % 5) fdr_rewind();
        fdr_leave_at(region[0], now);
    }
}

static void *thread(void *number)
{
    fdr_thread_name("worker");
    walk(1000 + *(int *)number, 600, 6, 9);
    return NULL;
}
static void threads(void)
{
    int number[5];
    pthread_t t[5];
    for (int i = 0; i < 5; i++) number[i] = i, pthread_create(&t[i], NULL, thread, &number[i]);
    for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
    walk(5000, 500, 8, 0);
}

/* More threads, one after the other, than have room for accounts of their own: [ended] gets the accounts. */
static void ended(void)
{
    for (int i = 0, number; i < 200; i++) {
        pthread_t t;
        number = i % 50;
        if (pthread_create(&t, NULL, thread, &number) == 0) pthread_join(t, NULL);
    }
}

static void samples(void)
{
    struct fdr_sampled *s = fdr_sampled_open(1, "sampled", FDR_BY_WALL_TIME, 1000);
    uint64_t now = walk(1000, 500, 6, 0), missed = 0;
    for (int i = 0; i < 6000; i++) {
        uint64_t stack[24];
        fdr_region path[4];
        uint32_t frames = below(24), regions = below(4);
        for (uint32_t k = 0; k < frames; k++) stack[k] = (uint64_t)(uintptr_t)walk + 16 * below(below(9) ? 4 : 900);
        for (uint32_t k = 0; k < regions; k++) path[k] = region[below(3)];
        struct fdr_look l = {.weight = 1 + below(3) + missed,
                             .pc = (uint64_t)(uintptr_t)walk + below(300),
                             .stack = stack,
                             .stack_count = frames,
                             .flags = below(20) ? 0 : FDR_LOOK_CUT,
                             .path = path,
                             .path_count = regions};
        missed = fdr_sample_at(s, &l, now += below(5000)) ? 0 : l.weight;
    }
}

static int all_read;
static void *reads(void *unused)
{
    struct payload p = {0, 0.25, 0};
    (void)unused;
    fdr_thread_name("readings");
    for (uint64_t i = 1; i <= 6000; i++) {
        p.a += below(100);
        p.b *= 1.001;
        fdr_reading(event, &p, i - 1, i);
    }
    __atomic_store_n(&all_read, 1, __ATOMIC_RELEASE);
    for (;;) pause();
    return NULL;
}
static void readings(void)
{
    pthread_t t;
    pthread_create(&t, NULL, reads, NULL);
    while (!__atomic_load_n(&all_read, __ATOMIC_ACQUIRE)) usleep(1000);
    walk(1000, 500, 6, 0);
}

static uint32_t rounds[2];
static void *goes_on(void *number)
{
    for (;;) {
        fdr_enter(region[1]);
        for (uint32_t i = below(9); i-- > 0;) {
            fdr_enter(region[2 + i]);
            if (!below(4)) fdr_marker(marker, i);
            fdr_leave(region[2 + i]);
        }
        fdr_leave(region[1]);
        __atomic_fetch_add((uint32_t *)number, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}
/* Two threads that run until the process ends. */
static void going(void)
{
    pthread_t t;
    for (int i = 0; i < 2; i++) pthread_create(&t, NULL, goes_on, &rounds[i]);
    for (int i = 0; i < 2; i++)
        while (__atomic_load_n(&rounds[i], __ATOMIC_ACQUIRE) < 5000) usleep(1000);
}

/* Main holds it for ever: a thread that waits for it is not idle. */
static pthread_mutex_t held_by_main = PTHREAD_MUTEX_INITIALIZER;

static void *stands_still(void *unused)
{
    (void)unused;
    fdr_thread_name("still");
    fdr_enter(region[4]);
    fdr_enter(region[5]);
    pthread_mutex_lock(&held_by_main);
    return NULL;
}

/* Waits up to half a minute for a snapshot by the trigger or the watchdog. */
static int comes(void)
{
    for (int i = 0; i < 3000 && !*fdr_last_snapshot(); i++) usleep(10000);
    return !*fdr_last_snapshot();
}
static int watched(void)
{
    pthread_t t;
    pthread_mutex_lock(&held_by_main);
    return pthread_create(&t, NULL, stands_still, NULL) || comes();
}
static int fired(void)
{
    int trigger = fdr_trigger_add("mine: api");
    if (trigger <= 0) return 1;
    fdr_trigger_fire(trigger, 42.5);
    return comes();
}
static int held(void)
{
    puts("ready");
    fflush(stdout);
    for (;;) pause();
    return 0;
}

static void record(const char *what)
{
    if (!strcmp(what, "lanes")) lanes();
    else if (!strcmp(what, "rewinds")) rewinds();
    else if (!strcmp(what, "threads")) threads();
    else if (!strcmp(what, "ended")) ended();
    else if (!strcmp(what, "samples")) samples();
    else if (!strcmp(what, "readings")) readings();
    else if (!strcmp(what, "going")) going();
    else walk(1000, 20000, !strcmp(what, "deep") ? 60 : 9, !strcmp(what, "points") ? 3 : 0);
}

int main(int argc, char **argv)
{
    if (argc < 2 || fdr_init(NULL)) return 1;
    define_all();
    record(argv[1]);
    const char *then = argc > 2 ? argv[2] : "";
    int failed = 0;
    if (!strcmp(then, "held")) failed = held();
    else if (!strcmp(then, "fired")) failed = fired();
    else if (!strcmp(then, "watched")) failed = watched();
    else if (*then) raise(!strcmp(then, "crash") ? SIGABRT : SIGKILL);
    else failed = fdr_snapshot(argv[1]);
    if (!failed) fdr_finalize();
    return failed ? 1 : 0;
}
