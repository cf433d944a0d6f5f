/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,stress,threads timeout=120
 * The monitor at its limits: memory for readings runs out, or a source has more counters than one reading holds. Also:
 * the monitor observes the program's threads, and not fdr's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "sampler/counters/counter.h"
#include "tests/support/fake_counters.h"

/* ---- little memory ---- */

/* In a small buffer readings are thinned evenly over the whole run. A reading holds the count since the start. So the
 * first and a recent count remain, and no gap is longer than a quarter of the run. */
struct thinned {
    uint64_t first, last, number, readings, widest;
};
static void add_thinned(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_event_info *d, void *p)
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
    while (!fdri_atomic_load_relaxed((uint32_t *)p)) usleep(1000);
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
    fdri_atomic_store_relaxed(&cycles, 5u);
    buffer = "256K";
    strategy = "whole";
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, wait_for_the_end, &over);
    start("chip:cycles", "", "");
    buffer = "16M";
    strategy = NULL;
    wait_for_readings(THREADS + 1);
    for (int i = 0; i < 1000000 && fdr_usage().reduced == 0; i++) {
        fdri_atomic_add_relaxed(&cycles, 1001u);
        usleep(50);
    }
    for (int i = 0; i < 5000; i++) {
        fdri_atomic_add_relaxed(&cycles, 1001u);
        usleep(50);
    }
    fdri_atomic_store_relaxed(&over, 1u);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    struct fdr_file *f = take();
    each_event(f, add_thinned, &r);
    const struct fdr_reduction_info *step;
    size_t steps = fdr_reductions(f, &step), thinned = 0;
    for (size_t i = 0; i < steps; i++) thinned += !strcmp(step[i].step, "thin");
    assert_true(thinned > 0);
    assert_int_equal(fdr_file_verify(f), FDR_WHOLE);
    assert_int_equal(r.first, 5); /* the first reading is stored */
    assert_true(r.readings > 50 && r.widest < r.number / 4);
    assert_true(fdri_atomic_load_relaxed(&cycles) - r.last < fdri_atomic_load_relaxed(&cycles) / 4);
    fdr_file_close(f);
    fdr_finalize();
}

/* ---- many counters ---- */

/* Two sources with as many counters as a source may have. */
#define COUNTER(n)                                                                                                     \
    {                                                                                                                  \
        "c" #n, "", FDR_METRIC_COUNTER, FDR_U64                                                                        \
    }
static const struct fdr_counter wide_counters[] = {
    COUNTER(0), COUNTER(1), COUNTER(2),  COUNTER(3),  COUNTER(4),  COUNTER(5),  COUNTER(6),  COUNTER(7),
    COUNTER(8), COUNTER(9), COUNTER(10), COUNTER(11), COUNTER(12), COUNTER(13), COUNTER(14), COUNTER(15)};
static int wide_read(struct fdr_counter_handle *h, uint64_t *value)
{
    (void)h;
    fdri_atomic_add_relaxed(&reads, 1u);
    for (uint64_t i = 0; i < FDR_SOURCE_COUNTERS; i++) value[i] = 100 + i;
    return 0;
}
static const struct fdr_counter_source wide = {.size = sizeof wide,
                                               .name = "wide",
                                               .scope = FDR_COUNTER_THREAD,
                                               .counter = wide_counters,
                                               .count = 16,
                                               .open = chip_open,
                                               .close = chip_close,
                                               .read = wide_read};
static const struct fdr_counter_source wider = {.size = sizeof wider,
                                                .name = "wider",
                                                .scope = FDR_COUNTER_THREAD,
                                                .counter = wide_counters,
                                                .count = 16,
                                                .open = chip_open,
                                                .close = chip_close,
                                                .read = wide_read};

struct wides {
    uint32_t type[2]; /* kinds of events in the main thread's readings */
    uint32_t fields, others;
};
static void add_wide(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_event_info *d, void *p)
{
    struct wides *w = p;
    (void)f;
    if (strncmp(d->name, "fdr.counters.", 13) || e->field[0] != (uint64_t)getpid()) return;
    if (e->id == w->type[0] || e->id == w->type[1]) return;
    w->type[w->type[0] != 0] = e->id;
    for (uint32_t i = 4; i < d->field_count; i++) w->others += strncmp(d->field[i].name, "wide", 4) != 0;
    w->fields += d->field_count - 4;
}

static const char *missing_in(struct fdr_file *f)
{
    for (uint32_t i = 1; i <= fdr_definition_count(f, FDR_MARKER_DEFINITION); i++)
        if (strstr(fdr_definition(f, FDR_MARKER_DEFINITION, i)->name, "fdr.counters.missing"))
            return fdr_definition(f, FDR_MARKER_DEFINITION, i)->name;
    return "";
}

/* Counters beyond the limit are named in the recording. A quotient is not recorded without its two parts; its value
 * would be 0. */
static void more_counters_than_fit(void **state)
{
    char list[300] = "", *end = list;
    struct wides w = {{0}, 0, 0};
    (void)state;
    fdr_counter_source_add(&wide);
    fdr_counter_source_add(&wider);
    for (int i = 0; i < 22; i++) end += sprintf(end, "%s:c%d,", i < 16 ? "wide" : "wider", i % 16);
    strcpy(end, "ipc,wider:c6,wider:c7,chip:temperature"); /* ipc is number 23, and needs instructions and cycles */
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
    fdri_counters_source_forget();
    fdr_counter_source_add(&chip);
}

/* ---- threads of the program ---- */

static atomic_int named; /* the id of this thread while it runs */
static void *counters_named_like_ours(void *unused)
{
    prctl(PR_SET_NAME, "fdr-of-theirs");
    named = (int)syscall(SYS_gettid);
    while (named) usleep(1000);
    return unused;
}

/* A program named "fdr-..." gives all its threads such names. They must be observed all the same. */
static void names_that_begin_like_ours(void **state)
{
    (void)state;
    pthread_t t;
    opened = closed = 0;
    start("chip:cycles", "", "");
    pthread_create(&t, NULL, counters_named_like_ours, NULL);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_thin_in_little_memory),
        cmocka_unit_test(more_counters_than_fit),
        cmocka_unit_test(names_that_begin_like_ours),
    };
    return cmocka_run_group_tests(tests, use_chip, NULL);
}
