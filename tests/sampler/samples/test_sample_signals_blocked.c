/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10 wrap=fdri_samples_ring_open */
/* P10: a thread that blocks all signals, as server threads do, is sampled by the kernel, because no handler can run
 * there. Such a thread that only waits is left to the usual method. Too few milliseconds in the samples show a
 * failure. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "sampler/samples/sample_target.h"
#include "sampler/samples/sampler.h"

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *blocks(void *records)
{
    static volatile double sink;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    if (records) FDR_REGION("first") sink = 1;
    for (double end = cpu() + 1; cpu() < end;) sink = sink * 1.0000001 + 0.1;
    return NULL;
}

/* Milliseconds of the other thread that the samples represent; -1: perf events do not work here. */
static long sampled(const char *setting, void *records)
{
    char dir[] = "/tmp/fdr-blocked-XXXXXX", message[300];
    struct fdr_config c = {.size = sizeof c, .sample = setting, .arena = "anonymous", .buffer = "8M"};
    const struct fdr_sample_stream *s;
    struct fdr_file *f;
    pthread_t t;
    long ms = 0;
    assert_non_null(c.dir = mkdtemp(dir));
    assert_int_equal(fdr_init(&c), 0);
    bool perf = fdri_samples_sampler.perf;
    pthread_create(&t, NULL, blocks, records);
    pthread_join(t, NULL);
    assert_int_equal(fdr_snapshot("end"), 0);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    for (size_t n = fdr_sample_streams(f, &s); n--; s++)
        if (s->tid != (uint32_t)getpid()) ms += (long)s->periods;
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    rmdir(dir);
    return perf ? ms : -1;
}

static void sampled_by_the_kernel(void **state)
{
    (void)state;
    long silent = sampled("1kHz", NULL), records = sampled("1kHz", &records), unwound = sampled("1kHz,unwind", NULL);
    print_message("%ld, %ld, %ld ms of 1000\n", silent, records, unwound);
    if (silent < 0) skip();
    assert_in_range(silent, 500, 1100);
    assert_in_range(records, 300, 1100); /* fewer: the sampler needs time to notice that no handler runs */
    assert_in_range(unwound, 300, 1100);
}

static unsigned given_up; /* atomic; number of threads handed over to the kernel because they block signals */
bool __real_fdri_samples_ring_open(struct fdri_samples_target *t);
bool __wrap_fdri_samples_ring_open(struct fdri_samples_target *t);
bool __wrap_fdri_samples_ring_open(struct fdri_samples_target *t)
{
    if (t->blocked) __atomic_fetch_add(&given_up, 1, __ATOMIC_RELAXED);
    return __real_fdri_samples_ring_open(t);
}

enum { WAITING = 8 };
static pthread_barrier_t looked;

static void *waits(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    FDR_REGION("first") pthread_barrier_wait(&looked);
    pthread_barrier_wait(&looked);
    return unused;
}

static void waiting_thread_stays_sampled(void **state)
{
    (void)state;
    char dir[] = "/tmp/fdr-blocked-XXXXXX";
    struct fdr_config c = {.size = sizeof c, .sample = "1kHz", .arena = "anonymous", .buffer = "8M"};
    pthread_t t[WAITING];
    unsigned before = __atomic_load_n(&given_up, __ATOMIC_RELAXED);
    assert_non_null(c.dir = mkdtemp(dir));
    assert_int_equal(fdr_init(&c), 0);
    pthread_barrier_init(&looked, NULL, WAITING + 1);
    for (int i = 0; i < WAITING; i++) pthread_create(&t[i], NULL, waits, NULL);
    pthread_barrier_wait(&looked);
    usleep(1000000); /* time for the sampler to find the threads and to examine them */
    assert_int_equal(__atomic_load_n(&given_up, __ATOMIC_RELAXED), before);
    pthread_barrier_wait(&looked);
    for (int i = 0; i < WAITING; i++) pthread_join(t[i], NULL);
    fdr_finalize();
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sampled_by_the_kernel),
                                       cmocka_unit_test(waiting_thread_stays_sampled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
