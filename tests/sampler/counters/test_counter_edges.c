/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,stress,threads timeout=120 promise=P10
 * P10: counters at the edges of calls, from a made-up provider with exactly known values. Each thread reads its own
 * counters. The test interrupts readings by signal handlers, cancels threads, and reads in a child after fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fd/descriptor.h"
#include "sampler/counters/counter.h"
#include "tests/support/fake_counters.h"

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
    pthread_testcancel();
    fdri_atomic_add_relaxed(&sets, 1u);
    return &ticks_of_thread;
}
static int tick_read(void *set, uint64_t *values)
{
    pthread_testcancel();                    /* a cancellation point, as reading a file is */
    assert_ptr_equal(set, &ticks_of_thread); /* a thread reads only its own counters */
    *values = *(uint64_t *)set;
    return 0;
}
static void tick_close(void *set)
{
    (void)set;
    fdri_atomic_sub_relaxed(&sets, 1u);
}
static const struct fdr_counter_provider ticks = {.size = offsetof(struct fdr_counter_provider, overflow_choose),
                                                  .name = "ticks",
                                                  .probe = tick_probe,
                                                  .choose = tick_choose,
                                                  .open = tick_open,
                                                  .read = tick_read,
                                                  .close = tick_close}; /* as providers were before they had overflow */

/* ---- edges ---- */

struct edges {
    uint64_t count, sum, wrong;
};
static void add_edge(struct fdr_file *f, const struct fdr_read_event *e, const struct fdr_event_info *d, void *p)
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
        ticks_of_thread += 100; /* outside of the call */
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
        assert_int_equal(fdri_atomic_load_relaxed(&sets), 1); /* this thread's; the others closed theirs at their end */
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

static pthread_mutex_t of_program = PTHREAD_MUTEX_INITIALIZER;
static void *holds_a_lock(void *region)
{
    pthread_cancel(pthread_self());
    pthread_mutex_lock(&of_program);
    fdr_enter(*(fdr_region *)region);
    fdr_leave(*(fdr_region *)region);
    pthread_mutex_unlock(&of_program);
    pthread_testcancel();
    return NULL;
}

static void P10_a_call_is_no_cancellation_point(void **state)
{
    pthread_t t;
    void *result;
    (void)state;
    fdr_counter_provide(&ticks);
    start("", "", "ticks");
    fdr_region region = fdr_region_define("ticking", NULL, 0);
    assert_int_equal(pthread_create(&t, NULL, holds_a_lock, &region), 0);
    assert_int_equal(pthread_join(t, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(pthread_mutex_trylock(&of_program), 0);
    pthread_mutex_unlock(&of_program);
    fdr_finalize();
    fdr_counter_provide(NULL);
}

static void child_has_no_counters_nor_lock(void **state)
{
    int status;
    const char *sanitizers = getenv("FDR_SANITIZE");
    (void)state;
    if (sanitizers && strstr(sanitizers, "thread")) skip(); /* its runtime allows no threads after fork */
    opened = closed = 0;
    start("chip:cycles,task:page-faults", "task:page-faults", "");
    tick_away(NULL);
    wait_for_readings(1);
    pid_t child = fork();
    if (child == 0) {
        tick_away(NULL); /* no recording runs here */
        uint32_t held = fdri_fd_budget_used();
        struct fdr_config c = oracle_config(oracle_directory());
        c.arena = "anonymous";
        c.signal = "none";
        c.buffer = "4M";
        c.counters = "chip:cycles";
        c.edge_counters = "task:page-faults";
        int e = fdr_init(&c);
        tick_away(NULL);
        fdr_finalize();
        _exit(held > 1 ? 2 : e ? 3 : 0); /* the monitor may have been opening one */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_reads_its_own_provider),
        cmocka_unit_test(handlers_interrupt_edges),
        cmocka_unit_test(P10_a_call_is_no_cancellation_point),
        cmocka_unit_test(child_has_no_counters_nor_lock),
    };
    return cmocka_run_group_tests(tests, use_chip, NULL);
}
