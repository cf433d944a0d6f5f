/* SPDX-License-Identifier: MIT */
/* Recordings with a made-up source of counters. The test sets its values, so the expected readings are known exactly.
 * Tests include this file. */
#ifndef FDRI_TESTS_COUNTER_CHIP_H
#define FDRI_TESTS_COUNTER_CHIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "sampler/counters/counter.h"
#include "tests/support/oracle.h"

/* ---- a source with cycles, instructions and energy ---- */

static uint64_t cycles, instructions, temperature; /* shared with the monitor thread */
static uint32_t opened, closed, reads;
static int open_error;

static const struct fdr_counter chip_counters[] = {{"cycles", "", FDR_METRIC_COUNTER, FDR_U64},
                                                   {"instructions", "", FDR_METRIC_COUNTER, FDR_U64},
                                                   {"temperature", "mK", FDR_METRIC_GAUGE, FDR_U64}};

static unsigned tries, try_us; /* number of probes; microseconds of each */
static inline int chip_probe(uint32_t which, char *why, size_t bytes)
{
    (void)which;
    (void)why;
    (void)bytes;
    usleep(fdri_atomic_load_relaxed(&try_us));
    fdri_atomic_add_relaxed(&tries, 1u);
    return 0;
}
static inline uint32_t chip_descriptors(uint32_t wanted)
{
    (void)wanted;
    return 1;
}
static inline int chip_open(struct fdr_counter_handle *h)
{
    (void)h;
    if (open_error) return open_error;
    fdri_atomic_add_relaxed(&opened, 1u);
    return 0;
}
static inline int chip_read(struct fdr_counter_handle *h, uint64_t *value)
{
    (void)h;
    fdri_atomic_add_relaxed(&reads, 1u);
    value[0] = fdri_atomic_load_relaxed(&cycles);
    value[1] = fdri_atomic_load_relaxed(&instructions);
    value[2] = fdri_atomic_load_relaxed(&temperature);
    return 0;
}
static inline void chip_close(struct fdr_counter_handle *h)
{
    (void)h;
    fdri_atomic_add_relaxed(&closed, 1u);
}
static const struct fdr_counter_source chip = {.size = sizeof chip,
                                               .name = "chip",
                                               .scope = FDR_COUNTER_THREAD,
                                               .counter = chip_counters,
                                               .count = 3,
                                               .probe = chip_probe,
                                               .descriptors = chip_descriptors,
                                               .open = chip_open,
                                               .close = chip_close,
                                               .read = chip_read};

/* ---- a recording ---- */

static const char *triggers, *buffer = "16M", *strategy; /* for the next recording */

static inline void start(const char *counters, const char *edges, const char *papi)
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

static inline struct fdr_file *take(void)
{
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(16 << 20, &wrong);
    if (!f) fail_msg("%s", wrong);
    return f;
}

typedef void event_function(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_event_info *d,
                            void *p);
static inline void each_event(struct fdr_file *f, event_function *call, void *p)
{
    struct fdr_select user = {.classes = 1u << FDR_IN_USER};
    struct fdr_read_event e;
    struct fdr_iter *it = fdr_iter_open(f, &user);
    assert_non_null(it);
    while (fdr_iter_next(it, &e)) call(f, &e, fdr_event_info(f, e.id), p);
    fdr_iter_close(it);
}

static inline uint32_t open_now(void) { return fdri_atomic_load_relaxed(&opened) - fdri_atomic_load_relaxed(&closed); }

/* Waits until the monitor has read the present values of every thread and recorded them. The round under way may have
 * read older values. After more than two reads for each thread, a later round has ended, too. */
static inline void wait_for_rounds(void)
{
    uint32_t before = fdri_atomic_load_relaxed(&reads);
    for (int i = 0; i < 30000 && fdri_atomic_load_relaxed(&reads) - before <= 2 * open_now(); i++) usleep(1000);
}
static inline void wait_for_readings(uint32_t threads)
{
    for (int i = 0; i < 30000 && open_now() < threads; i++) usleep(1000);
    wait_for_rounds();
}

/* ---- readings ---- */

/* The readings of one thread. */
struct readings {
    uint64_t count, last[16], idle, thread;
    bool falls;
};
static inline void add_reading(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_event_info *d,
                               void *p)
{
    struct readings *r = p;
    (void)f;
    if (strncmp(d->name, "fdr.counters.", 13) || e->field[0] != r->thread) return;
    assert_string_equal(d->field[4].name, "chip:cycles");
    for (uint32_t i = 4; i < 6; i++) r->falls |= e->field[i] < r->last[i];
    memcpy(r->last, e->field, sizeof r->last);
    r->idle += e->field[3];
    r->count++;
}

/* Setup of a group of such tests. */
static inline int use_chip(void **state)
{
    (void)state;
    fdri_counters_source_forget();
    fdr_counter_source_add(&chip);
    return 0;
}
#endif
