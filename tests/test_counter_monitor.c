/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,stress timeout=120
 * The monitor and the edges with sources and providers that this machine lacks, and with threads, recordings and children that
 * come and go. What the counters say is known exactly, so the recording must say just that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/descriptors.h"
#include "sampler/counter.h"
#include "tests/oracle.h"

/* ---- a source with cycles, instructions and energy ---- */

static uint64_t cycles, instructions, temperature; /* shared with the monitor thread */
static uint32_t opened, closed;
static int open_error;

static const struct fdri_counter chip_counters[] = {{"cycles", "", FDR_METRIC_COUNTER},
                                                    {"instructions", "", FDR_METRIC_COUNTER},
                                                    {"temperature", "mK", FDR_METRIC_GAUGE}};

static unsigned tries, try_us; /* how many were made; how long each takes */
static int chip_probe(uint32_t which, char *why, size_t bytes)
{
    (void)which;
    (void)why;
    (void)bytes;
    usleep(fdr_load_relaxed(&try_us));
    fdr_add_relaxed(&tries, 1u);
    return 0;
}
static uint32_t chip_descriptors(uint32_t wanted)
{
    (void)wanted;
    return 1;
}
static int chip_open(struct fdri_handle *h)
{
    (void)h;
    if (open_error) return open_error;
    fdr_add_relaxed(&opened, 1u);
    return 0;
}
static int chip_read(struct fdri_handle *h, uint64_t *value)
{
    (void)h;
    value[0] = fdr_load_relaxed(&cycles);
    value[1] = fdr_load_relaxed(&instructions);
    value[2] = fdr_load_relaxed(&temperature);
    return 0;
}
static void chip_close(struct fdri_handle *h)
{
    (void)h;
    fdr_add_relaxed(&closed, 1u);
}
static const struct fdri_source chip = {"chip",           true,      chip_counters, 3,         chip_probe,
                                        chip_descriptors, chip_open, chip_read,     chip_close};

/* Two with as many counters as a source may have. */
#define COUNTER(n)                                                                                                     \
    {                                                                                                                  \
        "c" #n, "", FDR_METRIC_COUNTER                                                                                 \
    }
static const struct fdri_counter wide_counters[] = {
    COUNTER(0), COUNTER(1), COUNTER(2),  COUNTER(3),  COUNTER(4),  COUNTER(5),  COUNTER(6),  COUNTER(7),
    COUNTER(8), COUNTER(9), COUNTER(10), COUNTER(11), COUNTER(12), COUNTER(13), COUNTER(14), COUNTER(15)};
static int wide_read(struct fdri_handle *h, uint64_t *value)
{
    (void)h;
    for (uint64_t i = 0; i < FDRI_SOURCE_COUNTERS; i++) value[i] = 100 + i;
    return 0;
}
static const struct fdri_source wide = {"wide",           true,      wide_counters, 16,        chip_probe,
                                        chip_descriptors, chip_open, wide_read,     chip_close},
                                wider = {"wider",          true,      wide_counters, 16,        chip_probe,
                                         chip_descriptors, chip_open, wide_read,     chip_close};

/* ---- a provider ---- */

static uint32_t sets;
static __thread uint64_t ticks_of_thread;

static size_t tick_probe(struct fdr_counter_info *out, size_t most)
{
    if (most)
        *out = (struct fdr_counter_info){.name = "ticks", .kind = FDR_METRIC_COUNTER, .per_thread = 1, .works = 1};
    return 1;
}
static size_t tick_choose(const char *names, struct fdr_counter_info *out, size_t most)
{
    assert_string_equal(names, "ticks");
    return tick_probe(out, most);
}
static void *tick_open(void)
{
    fdr_add_relaxed(&sets, 1u);
    return &ticks_of_thread;
}
static int tick_read(void *set, uint64_t *values)
{
    assert_ptr_equal(set, &ticks_of_thread); /* read by its own thread */
    *values = *(uint64_t *)set;
    return 0;
}
static void tick_close(void *set)
{
    (void)set;
    fdr_sub_relaxed(&sets, 1u);
}
static const struct fdr_counter_provider ticks = {.size = offsetof(struct fdr_counter_provider, overflow_choose),
                                                  .name = "ticks",
                                                  .probe = tick_probe,
                                                  .choose = tick_choose,
                                                  .open = tick_open,
                                                  .read = tick_read,
                                                  .close = tick_close}; /* as it was before there was overflow */

/* ---- help ---- */

static const char *triggers, *buffer = "16M", *strategy; /* of the next recording */

static void start(const char *counters, const char *edges, const char *papi)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.arena = "anonymous";
    c.signal = "none";
    c.buffer = buffer;
    c.strategy = strategy;
    c.counters = counters;
    c.counter_interval = "100us";
    c.edge_counters = edges;
    c.papi = papi;
    c.triggers = triggers;
    fdr_finalize();
    assert_int_equal(fdr_init(&c), 0);
}

static struct fdr_file *take(void)
{
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(16 << 20, &wrong);
    if (!f) fail_msg("%s", wrong);
    return f;
}

typedef void event_function(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_definition *d,
                            void *p);
static void each_event(struct fdr_file *f, event_function *call, void *p)
{
    struct fdr_select user = {.classes = 1u << FDR_IN_USER};
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, &user);
    assert_non_null(it);
    while (fdr_iter_next(it, &e)) call(f, &e, fdr_definition(f, FDR_EVENT_DEFINITION, e.id), p);
    fdr_iter_close(it);
}

static void wait_for_readings(uint32_t threads)
{
    for (int i = 0; i < 5000 && fdr_load_relaxed(&opened) - fdr_load_relaxed(&closed) < threads; i++) usleep(1000);
    usleep(5000);
}

/* ---- readings ---- */

struct readings {
    uint64_t count, last[16], idle, thread;
    bool falls;
};
static void add_reading(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_definition *d, void *p)
{
    struct readings *r = p;
    (void)f;
    if (strncmp(d->name, "fdr.counters.", 13) || e->field[0] != r->thread) return;
    assert_string_equal(d->field_name[4], "chip:cycles");
    for (uint32_t i = 4; i < 6; i++) r->falls |= e->field[i] < r->last[i];
    memcpy(r->last, e->field, sizeof r->last);
    r->idle += e->field[3];
    r->count++;
}

static void readings_are_running_counts_of_each_thread(void **state)
{
    (void)state;
    opened = closed = 0;
    start("chip:cycles,chip:instructions,chip:temperature", "", "");
    fdr_marker(fdr_marker_define("here"), 1);
    wait_for_readings(1);
    for (int i = 0; i < 50; i++) {
        fdr_add_relaxed(&cycles, 2000u);
        fdr_add_relaxed(&instructions, 1000u);
        usleep(300);
    }
    usleep(20000); /* nothing happens */
    fdr_add_relaxed(&cycles, 7u);
    usleep(20000);
    struct fdr_file *f = take();
    struct readings r = {.thread = (uint64_t)getpid()};
    each_event(f, add_reading, &r);
    assert_true(r.count > 1 && !r.falls);
    assert_true(r.last[4] == fdr_load_relaxed(&cycles) && r.last[5] == fdr_load_relaxed(&instructions));
    assert_true(r.idle > 0); /* readings without news are counted, not stored */
    const struct fdr_definition *d = fdr_definition(f, FDR_METRIC_DEFINITION, 3);
    assert_string_equal(d->name, "chip:temperature");
    assert_string_equal(d->file, "mK");
    assert_int_equal(d->line, FDR_METRIC_GAUGE);
    fdr_file_close(f);
    fdr_finalize();
    assert_int_equal(fdri_descriptors_held(), 0);
    assert_int_equal(opened, closed);
}

/* In a small buffer readings thin, evenly over the whole run: what happened is there to the last count. */
struct thinned {
    uint64_t first, last, number, readings, widest;
};
static void add_thinned(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_definition *d, void *p)
{
    struct thinned *r = p;
    (void)f;
    if (strncmp(d->name, "fdr.counters.", 13) || e->field[0] != (uint64_t)getpid()) return;
    uint64_t gap = e->field[2] - r->number;
    assert_true(!r->readings || (gap && e->field[4] >= r->last));
    if (!r->readings) r->first = e->field[4];
    else if (gap > r->widest) r->widest = gap;
    r->last = e->field[4];
    r->number = e->field[2];
    r->readings++;
}

static void *wait_for_the_end(void *p)
{
    while (!fdr_load_relaxed((uint32_t *)p)) usleep(1000);
    return NULL;
}

static void readings_thin_in_little_memory(void **state)
{
    enum { THREADS = 12 };
    pthread_t t[THREADS];
    uint32_t over = 0;
    struct thinned r = {0};
    (void)state;
    opened = closed = 0;
    fdr_store_relaxed(&cycles, 5u);
    buffer = "256K";
    strategy = "whole";
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, wait_for_the_end, &over);
    start("chip:cycles", "", "");
    buffer = "16M";
    strategy = NULL;
    wait_for_readings(THREADS + 1);
    for (int i = 0; i < 1000000 && fdr_usage().reduced == 0; i++) {
        fdr_add_relaxed(&cycles, 1001u);
        usleep(50);
    }
    for (int i = 0; i < 5000; i++) {
        fdr_add_relaxed(&cycles, 1001u);
        usleep(50);
    }
    fdr_store_relaxed(&over, 1u);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    struct fdr_file *f = take();
    each_event(f, add_thinned, &r);
    const struct fdr_reduction_info *step;
    size_t steps = fdr_reductions(f, &step), thinned = 0;
    for (size_t i = 0; i < steps; i++) thinned += !strcmp(step[i].step, "thin");
    assert_true(thinned > 0);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    assert_int_equal(r.first, 5); /* the first reading is there */
    assert_true(r.readings > 50 && r.widest < r.number / 4);
    assert_true(fdr_load_relaxed(&cycles) - r.last < fdr_load_relaxed(&cycles) / 4);
    fdr_file_close(f);
    fdr_finalize();
}

/* Instructions per cycle, as far as it is known. */
struct quotients {
    uint64_t known, unknown;
    double least, most;
};
static void add_quotient(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_definition *d, void *p)
{
    struct quotients *q = p;
    double v;
    (void)f;
    if (strncmp(d->name, "fdr.counters.", 13) || e->field[0] != (uint64_t)getpid()) return;
    assert_string_equal(d->field_name[4], "derived:ipc");
    assert_int_equal(d->field_type[4], FDR_F64);
    memcpy(&v, &e->field[4], sizeof v);
    if (v != v) {
        q->unknown++;
    } else {
        if (!q->known || v < q->least) q->least = v;
        if (!q->known || v > q->most) q->most = v;
        q->known++;
    }
}

static void instructions_per_cycle(void **state)
{
    struct quotients q = {0};
    char why[FDRI_WHY_BYTES];
    (void)state;
    opened = closed = 0;
    enum { SLOW = 1, FAST, HOT }; /* numbered as they stand */
    triggers = "slow: metric *derived:ipc below 0.3; fast: metric *derived:ipc above 2; hot: metric *chip:temperature "
               "above 1000";
    start("ipc,chip:temperature", "", "");
    triggers = NULL;
    wait_for_readings(1);
    for (int i = 0; i < 300; i++) {
        fdr_add_relaxed(&instructions, 100u); /* read between the two, the quotient is twice as large at most */
        fdr_add_relaxed(&cycles, 2000u);
        usleep(1000);
    }
    for (int i = 0; i < 5000 && !fdr_trigger_count(SLOW); i++) usleep(1000);
    /* once beyond, until it comes back; in each thread, and ThreadSanitizer may have one of its own */
    const int threads = getenv("TSAN_OPTIONS") ? 2 : 1;
    assert_in_range(fdr_trigger_count(SLOW), 1, threads);
    assert_int_equal(fdr_trigger_count(FAST), 0);
    assert_int_equal(fdr_trigger_count(HOT), 0);
    fdr_store_relaxed(&temperature, 1001u);
    for (int i = 0; i < 5000 && !fdr_trigger_count(HOT); i++) usleep(1000);
    assert_in_range(fdr_trigger_count(HOT), 1, threads);
    struct fdr_file *f = take();
    each_event(f, add_quotient, &q);
    fdr_file_close(f);
    fdr_finalize();
    assert_true(q.unknown > 0 && q.known > 0); /* not a number before there is one, never 0 */
    assert_true(q.least > 0.02 && q.most < 0.3);
    fdri_source_add(
        NULL); /* without the chip, on a machine without hardware counters: refused with the part's reason */
    if (fdri_source_derived.probe(FDRI_IPC, why, sizeof why))
        assert_non_null(strstr(why, "perf_event_open(instructions)"));
    fdri_source_add(&chip);
}

struct wides {
    uint32_t type[2]; /* kinds of events that readings of the main thread are */
    uint32_t fields, others;
};
static void add_wide(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_definition *d, void *p)
{
    struct wides *w = p;
    (void)f;
    if (strncmp(d->name, "fdr.counters.", 13) || e->field[0] != (uint64_t)getpid()) return;
    if (e->id == w->type[0] || e->id == w->type[1]) return;
    w->type[w->type[0] != 0] = e->id;
    for (uint32_t i = 4; i < d->field_count; i++) w->others += strncmp(d->field_name[i], "wide", 4) != 0;
    w->fields += d->field_count - 4;
}

static const char *missing_in(struct fdr_file *f)
{
    for (uint32_t i = 1; i <= fdr_definition_count(f, FDR_MARKER_DEFINITION); i++)
        if (strstr(fdr_definition(f, FDR_MARKER_DEFINITION, i)->name, "fdr.counters.missing"))
            return fdr_definition(f, FDR_MARKER_DEFINITION, i)->name;
    return "";
}

/* What finds no room is named; and a quotient is not recorded without what it is made of: it would be 0. */
static void more_than_there_is_room_for(void **state)
{
    char list[300] = "", *end = list;
    struct wides w = {{0}, 0, 0};
    (void)state;
    fdri_source_add(&wide);
    fdri_source_add(&wider);
    for (int i = 0; i < 22; i++) end += sprintf(end, "%s:c%d,", i < 16 ? "wide" : "wider", i % 16);
    strcpy(end, "ipc,wider:c6,wider:c7,chip:temperature"); /* ipc is the 23rd, and brings instructions and cycles */
    opened = closed = 0;
    start(list, "", "");
    wait_for_readings(2);
    struct fdr_file *f = take();
    each_event(f, add_wide, &w);
    assert_int_equal(w.fields, 24);
    assert_int_equal(w.others, 0);
    assert_non_null(strstr(missing_in(f), "derived:ipc: more than 24 counters of threads"));
    assert_non_null(strstr(missing_in(f), "chip:temperature: more than 24 counters of threads"));
    assert_null(strstr(missing_in(f), "wide"));
    fdr_file_close(f);
    fdr_finalize();
    fdri_source_add(NULL);
    fdri_source_add(&chip);
}

/* Trying opens files and closes them: a program that begins by closing all that it did not open comes after that. */
static void what_works_is_tried_before_the_program_goes_on(void **state)
{
    (void)state;
    tries = 0;
    try_us = 100000;
    start("chip:cycles,chip:temperature", "", "");
    unsigned after = fdr_load_relaxed(&tries);
    wait_for_readings(1);
    try_us = 0;
    assert_int_equal(after, fdr_load_relaxed(&tries));
    assert_true(after >= 2);
    fdr_finalize();
}

static void *short_life(void *p)
{
    usleep((useconds_t)(uintptr_t)p);
    return NULL;
}

static void threads_come_and_go(void **state)
{
    (void)state;
    opened = closed = 0;
    start("chip:cycles,task:page-faults", "", "");
    wait_for_readings(1);
    for (int round = 0; round < 20; round++) {
        pthread_t t[8];
        for (uintptr_t i = 0; i < 8; i++) pthread_create(&t[i], NULL, short_life, (void *)(i * 400));
        for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
    }
    struct fdr_file *f = take();
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    fdr_file_close(f);
    fdr_finalize();
    assert_int_equal(opened, closed);
    assert_int_equal(fdri_descriptors_held(), 0);
}

static atomic_int named; /* its thread id, while it is there */
static void *called_as_ours_are(void *unused)
{
    prctl(PR_SET_NAME, "fdr-of-theirs");
    named = (int)syscall(SYS_gettid);
    while (named) usleep(1000);
    return unused;
}

/* A program called "fdr-..." names all its threads so. */
static void names_that_begin_as_ours(void **state)
{
    (void)state;
    pthread_t t;
    opened = closed = 0;
    start("chip:cycles", "", "");
    pthread_create(&t, NULL, called_as_ours_are, NULL);
    while (!named) usleep(1000);
    wait_for_readings(getenv("TSAN_OPTIONS") ? 3 : 2);
    struct readings r = {.thread = (uint64_t)named};
    struct fdr_file *f = take();
    each_event(f, add_reading, &r);
    fdr_file_close(f);
    named = 0;
    pthread_join(t, NULL);
    fdr_finalize();
    assert_true(r.count > 0);
}

static void a_source_that_does_not_open_is_no_zeros(void **state)
{
    (void)state;
    opened = closed = 0;
    open_error = -EIO;
    start("chip:cycles", "", "");
    usleep(20000);
    struct fdr_file *f = take();
    struct readings r = {.thread = (uint64_t)getpid()};
    each_event(f, add_reading, &r);
    assert_int_equal(r.count, 0);
    fdr_file_close(f);
    fdr_finalize();
    open_error = 0;
}

/* ---- edges ---- */

struct edges {
    uint64_t count, sum, wrong;
};
static void add_edge(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_definition *d, void *p)
{
    struct edges *r = p;
    (void)f;
    if (strcmp(d->name, "fdr.edges")) return;
    r->count++;
    r->sum += e->field[e->field_count - 1];
    r->wrong += e->field[e->field_count - 1] != 3 || e->depth == 0;
}

static void *tick_away(void *p)
{
    fdr_region region = fdr_region_define("ticking", NULL, 0);
    for (int i = 0; i < 100; i++) {
        fdr_enter(region);
        ticks_of_thread += 3;
        fdr_leave(region);
        ticks_of_thread += 100; /* outside */
    }
    return p;
}

static void each_thread_reads_its_own_provider(void **state)
{
    pthread_t t[4];
    struct edges r = {0};
    (void)state;
    assert_int_equal(fdr_counter_provide(&(struct fdr_counter_provider){.size = 8}), -EINVAL);
    assert_int_equal(fdr_counter_provide(&ticks), 0);
    for (int recording = 0; recording < 3; recording++) {
        start("", "chip:cycles", "ticks");
        for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, tick_away, NULL);
        tick_away(NULL);
        for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
        struct fdr_file *f = take();
        r = (struct edges){0};
        each_event(f, add_edge, &r);
        fdr_file_close(f);
        assert_int_equal(r.count, 500);
        assert_int_equal(r.sum, 1500);
        assert_int_equal(r.wrong, 0);
        assert_int_equal(fdr_load_relaxed(&sets), 1); /* this thread's; the others closed theirs at their end */
        fdr_finalize();
    }
    fdr_counter_provide(NULL);
}

static fdr_region in_handler;
static void handler(int s)
{
    (void)s;
    fdr_enter(in_handler);
    fdr_leave(in_handler);
}

static void handlers_interrupt_edges(void **state)
{
    struct edges r = {0};
    struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    (void)state;
    fdr_counter_provide(&ticks);
    start("", "", "ticks");
    in_handler = fdr_region_define("in handler", NULL, 0);
    sigaction(SIGALRM, &a, &old);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 50; i++) tick_away(NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    struct fdr_file *f = take();
    each_event(f, add_edge, &r);
    assert_true(r.count >= 4000 && r.sum >= 3 * 4000);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    fdr_file_close(f);
    fdr_finalize();
    fdr_counter_provide(NULL);
}

static void a_child_has_neither(void **state)
{
    int status;
    const char *sanitizers = getenv("FDR_SANITIZE");
    (void)state;
    if (sanitizers && strstr(sanitizers, "thread")) skip(); /* it allows no threads after fork */
    opened = closed = 0;
    start("chip:cycles,task:page-faults", "task:page-faults", "");
    tick_away(NULL);
    wait_for_readings(1);
    pid_t child = fork();
    if (child == 0) {
        tick_away(NULL); /* nothing records */
        uint32_t held = fdri_descriptors_held();
        struct fdr_config c = oracle_config(oracle_directory());
        c.arena = "anonymous";
        c.signal = "none";
        c.buffer = "4M";
        c.counters = "chip:cycles";
        c.edge_counters = "task:page-faults";
        int e = fdr_init(&c);
        tick_away(NULL);
        fdr_finalize();
        _exit(held > 1 ? 2 : e ? 3 : 0); /* at most one: the monitor may have been opening it */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    fdr_finalize();
}

static int use_chip(void **state)
{
    (void)state;
    fdri_source_add(NULL);
    fdri_source_add(&chip);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_are_running_counts_of_each_thread),
        cmocka_unit_test(readings_thin_in_little_memory),
        cmocka_unit_test(instructions_per_cycle),
        cmocka_unit_test(more_than_there_is_room_for),
        cmocka_unit_test(what_works_is_tried_before_the_program_goes_on),
        cmocka_unit_test(threads_come_and_go),
        cmocka_unit_test(names_that_begin_as_ours),
        cmocka_unit_test(a_source_that_does_not_open_is_no_zeros),
        cmocka_unit_test(each_thread_reads_its_own_provider),
        cmocka_unit_test(handlers_interrupt_edges),
        cmocka_unit_test(a_child_has_neither),
    };
    return cmocka_run_group_tests(tests, use_chip, NULL);
}
