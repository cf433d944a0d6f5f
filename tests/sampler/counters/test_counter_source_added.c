/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 promise=P10
 * Sources of counters that a program adds: of the process, of threads, and of threads that read only themselves. The
 * recording has their values with unit, kind and type, by the monitor and around calls; each set that was opened is
 * closed. P10: a wrong source changes nothing. */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "tests/support/fake_counters.h"

/* ---- of the process: a whole number, a signed one and a real one ---- */

static const struct fdr_counter pool_counters[] = {{"in-use", "bytes", FDR_METRIC_GAUGE, FDR_U64},
                                                   {"balance", "coins", FDR_METRIC_GAUGE, FDR_I64},
                                                   {"load", "share", FDR_METRIC_GAUGE, FDR_F64},
                                                   {"never", "", FDR_METRIC_COUNTER, FDR_U64}};
static int pool_probe(uint32_t which, char *why, size_t bytes)
{
    if (which < 3) return 0;
    snprintf(why, bytes, "pool: no such thing here");
    return -ENOENT;
}
static int pool_read(struct fdr_counter_handle *h, uint64_t *value)
{
    const double load = 0.25;
    fdri_atomic_add_relaxed(&reads, 1u);
    assert_int_equal(h->wanted, 7);
    assert_int_equal(h->state[0][0], 4711);
    value[0] = 123456;
    value[1] = (uint64_t)-7;
    memcpy(&value[2], &load, sizeof load);
    return 0;
}
static int pool_open(struct fdr_counter_handle *h)
{
    fdri_atomic_add_relaxed(&opened, 1u);
    h->state[0][0] = 4711;
    return 0;
}
static void pool_close(struct fdr_counter_handle *h)
{
    (void)h;
    fdri_atomic_add_relaxed(&closed, 1u);
}
static const struct fdr_counter_source pool = {.size = sizeof pool,
                                               .name = "pool",
                                               .counter = pool_counters,
                                               .count = 4,
                                               .probe = pool_probe,
                                               .open = pool_open,
                                               .close = pool_close,
                                               .read = pool_read};

/* ---- of a thread, by itself ---- */

static __thread uint64_t steps_here;
static __thread double way_here;
static uint32_t sets;
static const struct fdr_counter step_counters[] = {
    {"steps", "", FDR_METRIC_COUNTER, FDR_U64},
    {"a-name-that-is-longer-than-a-field-may-be", "m", FDR_METRIC_COUNTER, FDR_F64}};
static int step_open(struct fdr_counter_handle *h)
{
    h->state[0][0] = (uint64_t)(uintptr_t)&steps_here;
    fdri_atomic_add_relaxed(&sets, 1u);
    return 0;
}
static int step_read(struct fdr_counter_handle *h, uint64_t *value)
{
    assert_int_equal(h->state[0][0], (uintptr_t)&steps_here); /* a thread reads only its own counters */
    value[0] = steps_here;
    memcpy(&value[1], &way_here, sizeof way_here);
    return 0;
}
static void step_close(struct fdr_counter_handle *h)
{
    assert_int_equal(h->state[0][0], (uintptr_t)&steps_here);
    fdri_atomic_sub_relaxed(&sets, 1u);
}
static const struct fdr_counter_source walker = {.size = sizeof walker,
                                                 .name = "walker",
                                                 .scope = FDR_COUNTER_OWN_THREAD,
                                                 .counter = step_counters,
                                                 .count = 2,
                                                 .open = step_open,
                                                 .close = step_close,
                                                 .read = step_read};

/* ---- tests ---- */

static void wrong_sources_are_refused(void **state)
{
    struct fdr_counter bad_counter = {"with:colon", "", FDR_METRIC_COUNTER, FDR_U64};
    struct fdr_counter_source bad = pool;
    (void)state;
    size_t before = fdri_counters_source_count();
    assert_int_equal(fdr_counter_source_add(NULL), -EINVAL);
    bad.size = 16;
    assert_int_equal(fdr_counter_source_add(&bad), -EINVAL);
    bad = pool;
    bad.read = NULL;
    assert_int_equal(fdr_counter_source_add(&bad), -EINVAL);
    bad = pool;
    bad.name = "two words";
    assert_int_equal(fdr_counter_source_add(&bad), -EINVAL);
    bad = pool;
    bad.counter = &bad_counter;
    bad.count = 1;
    assert_int_equal(fdr_counter_source_add(&bad), -EINVAL);
    bad = pool;
    bad.count = FDR_SOURCE_COUNTERS + 1;
    assert_int_equal(fdr_counter_source_add(&bad), -EINVAL);
    bad = pool;
    bad.name = "perf";
    assert_int_equal(fdr_counter_source_add(&bad), -EEXIST);
    assert_int_equal(fdri_counters_source_count(), before);
    assert_int_equal(fdr_counter_source_add(&pool), 0);
    assert_int_equal(fdr_counter_source_add(&pool), 0); /* twice is once */
    assert_int_equal(fdri_counters_source_count(), before + 1);
    bad.name = "pool";
    assert_int_equal(fdr_counter_source_add(&bad), -EEXIST);
    static struct fdr_counter_source many[FDRI_COUNTERS_SOURCES_MAX];
    static char name[FDRI_COUNTERS_SOURCES_MAX][24];
    for (int i = 0; i < FDRI_COUNTERS_SOURCES_MAX; i++) {
        many[i] = pool;
        snprintf(name[i], sizeof name[i], "many%d", i);
        many[i].name = name[i];
        int e = fdr_counter_source_add(&many[i]);
        assert_int_equal(e, fdri_counters_source_count() < FDRI_COUNTERS_SOURCES_MAX || !e ? 0 : -ENOSPC);
    }
    assert_int_equal(fdri_counters_source_count(), FDRI_COUNTERS_SOURCES_MAX);
    fdri_counters_source_forget();
}

static const struct fdr_metric_info *metric(const struct fdr_file *f, const char *name)
{
    for (uint32_t i = 1; i <= fdr_definition_count(f, FDR_METRIC_DEFINITION); i++)
        if (!strcmp(fdr_metric_info(f, i)->name, name)) return fdr_metric_info(f, i);
    fail_msg("no metric %s", name);
    return NULL;
}

static void find_pool(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_event_info *d, void *found)
{
    double load;
    (void)f;
    if (strncmp(d->name, "fdr.counters.", 13)) return;
    assert_int_equal(d->field_count, 7);
    assert_string_equal(d->field[4].name, "pool:in-use");
    assert_int_equal(d->field[5].type, FDR_VALUE_I64);
    assert_int_equal(d->field[6].type, FDR_VALUE_F64);
    memcpy(&load, &e->field[6], sizeof load);
    assert_true(e->field[4] == 123456 && (int64_t)e->field[5] == -7 && load == 0.25);
    ++*(int *)found;
}

static void the_monitor_reads_an_added_source(void **state)
{
    int found = 0;
    (void)state;
    opened = closed = 0;
    assert_int_equal(fdr_counter_source_add(&pool), 0);
    assert_int_equal(fdr_counter_source_add(&walker), 0);
    start("pool:in-use,pool:balance,load,pool:never,walker:steps", "", "");
    wait_for_rounds();
    struct fdr_file *f = take();
    each_event(f, find_pool, &found);
    assert_true(found > 0);
    const struct fdr_metric_info *m = metric(f, "pool:balance");
    assert_string_equal(m->unit, "coins");
    assert_true(m->type == FDR_VALUE_I64 && !m->counter);
    assert_true(metric(f, "pool:in-use")->type == FDR_VALUE_U64 && metric(f, "pool:load")->type == FDR_VALUE_F64);
    bool missing = false;
    for (uint32_t i = 1; i <= fdr_definition_count(f, FDR_MARKER_DEFINITION); i++)
        missing |= strcmp(fdr_definition(f, FDR_MARKER_DEFINITION, i)->name,
                          "fdr.counters.missing: pool:never: pool: no such thing here; walker:steps: only the counted "
                          "thread can read it; FDR_EDGE_COUNTERS does") == 0;
    assert_true(missing);
    fdr_file_close(f);
    fdr_finalize();
    assert_true(opened == 1 && closed == 1);
    fdri_counters_source_forget();
}

static void *walk(void *unused)
{
    fdr_region region = fdr_region_define("walk", NULL, 0);
    for (int i = 0; i < 100; i++) {
        fdr_enter(region);
        steps_here += 2;
        way_here += 0.5;
        fdr_leave(region);
        steps_here++; /* between calls: in no reading */
    }
    return unused;
}

static void add_walk(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_event_info *d, void *p)
{
    double way;
    if (strcmp(d->name, "fdr.edges")) return;
    memcpy(&way, &e->field[1], sizeof way);
    assert_string_equal(d->field[0].name, "walker:steps");
    const char *number = strchr(d->field[1].name, '#'); /* cut: the number of its metric follows */
    assert_non_null(number);
    assert_int_equal(d->field[1].metric, atoi(number + 1));
    assert_string_equal(fdr_metric_info(f, d->field[1].metric)->name,
                        "walker:a-name-that-is-longer-than-a-field-may-be");
    assert_string_equal(d->field[1].unit, "m");
    assert_true(e->field[0] == 2 && way == 0.5);
    ++*(int *)p;
}

static void calls_read_an_added_source(void **state)
{
    int found = 0, status;
    pthread_t t;
    (void)state;
    assert_int_equal(fdr_counter_source_add(&walker), 0);
    start("", "walker:steps,walker:a-name-that-is-longer-than-a-field-may-be", "");
    walk(NULL);
    assert_int_equal(pthread_create(&t, NULL, walk, NULL), 0);
    pthread_join(t, NULL);
    assert_int_equal(fdri_atomic_load_relaxed(&sets), 1); /* the ended thread closed its own */
    pid_t child = fork();
    if (child == 0) _exit(fdri_atomic_load_relaxed(&sets) != 1); /* left alone in the child */
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct fdr_file *f = take();
    each_event(f, add_walk, &found);
    assert_int_equal(found, 200);
    assert_string_equal(metric(f, "walker:a-name-that-is-longer-than-a-field-may-be")->unit, "m");
    fdr_file_close(f);
    fdr_finalize();
    fdri_counters_source_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_sources_are_refused),
        cmocka_unit_test(the_monitor_reads_an_added_source),
        cmocka_unit_test(calls_read_an_added_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
