/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=150 promise=P10 without=tsan (it closes descriptors that are in use)
 * ctest: wrap=fdr_sample,fdr_sample_at,fdr_reading,fdri_samples_source_close
 * P10: descriptors belong to the program. It closes all from 3 up, as many programs do when they start, and its own
 * files get the numbers that fdr had. Or it uses up all descriptors. fdr must not read or close the program's files,
 * and samples and counters must go on. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/observed_process.h"

#include <fcntl.h>
#include <fdr/reader.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>

#include "base/fd/descriptor.h"
#include "sampler/samples/sample_target.h"
#include "sampler/samples/sampler.h"
#include "tests/support/wait_for_snapshots.h"

enum { PIPES = 30, BYTES = 4000, PATIENCE = 60 /* s */ };

/* ---- the recorded events, by source ---- */

static unsigned by_handler, by_ring, readings, closed; /* atomic */

static void count(unsigned *n) { __atomic_fetch_add(n, 1, __ATOMIC_RELAXED); }
static unsigned seen(const unsigned *n) { return __atomic_load_n(n, __ATOMIC_RELAXED); }

uint64_t __real_fdr_sample(struct fdr_sampled *s, const struct fdr_look *look);
uint64_t __wrap_fdr_sample(struct fdr_sampled *s, const struct fdr_look *look);
uint64_t __wrap_fdr_sample(struct fdr_sampled *s, const struct fdr_look *look)
{
    count(&by_handler);
    return __real_fdr_sample(s, look);
}
uint64_t __real_fdr_sample_at(struct fdr_sampled *s, const struct fdr_look *look, uint64_t ns);
uint64_t __wrap_fdr_sample_at(struct fdr_sampled *s, const struct fdr_look *look, uint64_t ns);
uint64_t __wrap_fdr_sample_at(struct fdr_sampled *s, const struct fdr_look *look, uint64_t ns)
{
    count(&by_ring);
    return __real_fdr_sample_at(s, look, ns);
}
void __real_fdr_reading(fdr_event_type type, const void *payload, uint64_t before, uint64_t number);
void __wrap_fdr_reading(fdr_event_type type, const void *payload, uint64_t before, uint64_t number);
void __wrap_fdr_reading(fdr_event_type type, const void *payload, uint64_t before, uint64_t number)
{
    count(&readings);
    __real_fdr_reading(type, payload, before, number);
}
void __real_fdri_samples_source_close(struct fdri_samples_target *t);
void __wrap_fdri_samples_source_close(struct fdri_samples_target *t);
void __wrap_fdri_samples_source_close(struct fdri_samples_target *t)
{
    count(&closed);
    __real_fdri_samples_source_close(t);
}

/* ---- the program ---- */

static bool over; /* atomic */
static void work(void)
{
    for (int i = 0; i < 100000; i++) __asm__ volatile("");
}
static void *silent(void *unused) /* calls no function of fdr */
{
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) work();
    return unused;
}
static void *sleeps(void *unused)
{
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) sleep_ms(20);
    return unused;
}

static void start(const char *sample, const char *counters)
{
    __atomic_store_n(&over, false, __ATOMIC_RELAXED);
    snapshots_start((struct fdr_config){.buffer = "8M", .sample = sample, .counters = counters, .keep = "2,newest"});
}

/* Waits for so many more samples or readings of each chosen source. */
static void some_more(unsigned more, bool handler, bool ring, bool counters)
{
    unsigned h = seen(&by_handler) + more, r = seen(&by_ring) + more, c = seen(&readings) + more;
    for (time_t until = time(NULL) + PATIENCE; time(NULL) < until;) {
        bool there = (!handler || (int)(seen(&by_handler) - h) >= 0) && (!ring || (int)(seen(&by_ring) - r) >= 0) &&
                     (!counters || (int)(seen(&readings) - c) >= 0);
        if (there) return;
        for (int k = 0; k < 10; k++) {
            FDR_REGION("work") work();
        }
    }
    fail_msg("nothing came any more: %u by handlers, %u by rings, %u readings", seen(&by_handler), seen(&by_ring),
             seen(&readings));
}

static void close_all(void)
{
    for (int fd = 3; fd < 1024; fd++) close(fd);
}

static void pipes_stay(const char *sample, bool ring)
{
    int p[PIPES][2], bytes;
    char data[BYTES] = {0};
    pthread_t t;
    start(sample, "default,io:written");
    assert_int_equal(pthread_create(&t, NULL, silent, NULL), 0);
    some_more(100, true, ring, true);
    for (int round = 0; round < 2; round++) {
        close_all();
        for (int i = 0; i < PIPES; i++) {
            assert_int_equal(pipe(p[i]), 0);
            assert_int_equal(write(p[i][1], data, BYTES), BYTES);
        }
        some_more(300, true, ring, true);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    fdr_finalize();
    for (int i = 0; i < PIPES; i++) {
        assert_int_equal(ioctl(p[i][0], FIONREAD, &bytes), 0);
        assert_int_equal(bytes, BYTES);
        assert_int_equal(close(p[i][0]) | close(p[i][1]), 0);
    }
}

/* Do perf events work here? Timers take their place otherwise; these have no descriptors. */
static bool perf_works(void)
{
    start("1kHz", "");
    sleep_ms(100);
    bool works = fdri_samples_sampler.perf;
    fdr_finalize();
    return works;
}

static void by_cpu_time(void **state)
{
    (void)state;
    pipes_stay("1kHz", perf_works());
}
static void by_wall_time(void **state)
{
    (void)state;
    pipes_stay("1kHz,wall,signal", false);
}
/* All descriptors are in use: the known threads stay as they are. */
static void none_left(void **state)
{
    (void)state;
    struct rlimit before, less;
    int fd[256], n = 0;
    pthread_t t;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    less = (struct rlimit){200, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    start("1kHz", "");
    assert_int_equal(pthread_create(&t, NULL, sleeps, NULL), 0);
    some_more(200, true, false, false);
    while (n < 256 && (fd[n] = open("/dev/null", O_RDONLY)) >= 0) n++;
    assert_int_equal(errno, EMFILE);
    unsigned had = seen(&closed);
    some_more(700, true, false, false);
    assert_int_equal(seen(&closed), had);
    while (n) close(fd[--n]);
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(t, NULL);
    fdr_finalize();
    setrlimit(RLIMIT_NOFILE, &before);
}

/* Counts the threads with samples. */
static unsigned sampled_threads(void)
{
    const struct fdr_sample_stream *s;
    struct fdr_file *f;
    char message[300];
    unsigned n = 0;
    assert_int_equal(fdr_snapshot("now"), 0);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    for (size_t i = fdr_sample_streams(f, &s); i-- > 0; s++) n += s->kept > 0;
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
    return n;
}

/* More threads than a quarter of the allowed descriptors: timers sample the others. */
static void beyond_a_quarter(void **state)
{
    enum { CROWD = 24, MOST = 64 };
    (void)state;
    struct rlimit before, less;
    pthread_t t[CROWD];
    unsigned sampled = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    less = (struct rlimit){MOST, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    start("1kHz", "");
    bool perf = fdri_samples_sampler.perf;
    for (int i = 0; i < CROWD; i++) assert_int_equal(pthread_create(&t[i], NULL, silent, NULL), 0);
    for (time_t until = time(NULL) + PATIENCE; sampled < CROWD && time(NULL) < until;) {
        sleep_ms(100);
        sampled = sampled_threads();
    }
    uint32_t held = fdri_fd_budget_used();
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < CROWD; i++) pthread_join(t[i], NULL);
    fdr_finalize();
    setrlimit(RLIMIT_NOFILE, &before);
    assert_true(sampled >= CROWD);
    assert_int_equal(held, perf ? MOST / 4 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_cpu_time), cmocka_unit_test(by_wall_time),
                                       cmocka_unit_test(none_left), cmocka_unit_test(beyond_a_quarter)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
