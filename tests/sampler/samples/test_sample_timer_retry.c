/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 wrap=timer_create */
/* A thread gets no CPU timer, because its user has as many as the system allows. It must be sampled as soon as one is
 * free. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
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

static bool none_left;   /* atomic */
static unsigned refused; /* atomic */
static unsigned granted; /* atomic */
static uint32_t tid;     /* of the working thread */
static sem_t go_on;

int __real_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer);
int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer);
int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
    if (!__atomic_load_n(&none_left, __ATOMIC_RELAXED)) {
        int status = __real_timer_create(clock, event, timer);
        if (status == 0) __atomic_fetch_add(&granted, 1, __ATOMIC_RELAXED);
        return status;
    }
    __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
    errno = EAGAIN;
    return -1;
}

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *works(void *unused)
{
    static volatile double sink;
    tid = (uint32_t)gettid();
    FDR_REGION("first") sink = 1; /* from here on the thread's own timer samples it */
    sem_wait(&go_on);
    /* fdr's own thread asks again; on a busy machine it may come late. */
    double begun = cpu();
    while (!__atomic_load_n(&granted, __ATOMIC_RELAXED) && cpu() < begun + 60) sink = sink * 1.0000001 + 0.1;
    for (double end = cpu() + 1; cpu() < end;) sink = sink * 1.0000001 + 0.1;
    return unused;
}

static void sampled_once_there_is_a_timer(void **state)
{
    char dir[] = "/tmp/fdr-again-XXXXXX", message[300];
    struct fdr_config c = {.size = sizeof c, .sample = "1kHz,wall,signal", .arena = "anonymous", .buffer = "8M"};
    const struct fdr_sample_stream *s;
    struct fdr_file *f;
    pthread_t t;
    uint64_t ms = 0;
    (void)state;
    assert_non_null(c.dir = mkdtemp(dir));
    sem_init(&go_on, 0, 0);
    assert_int_equal(fdr_init(&c), 0);
    __atomic_store_n(&none_left, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&t, NULL, works, NULL), 0);
    for (int i = 0; i < 6000 && !__atomic_load_n(&refused, __ATOMIC_RELAXED); i++) usleep(5000);
    assert_true(__atomic_load_n(&refused, __ATOMIC_RELAXED));
    __atomic_store_n(&granted, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&none_left, false, __ATOMIC_RELAXED);
    sem_post(&go_on);
    pthread_join(t, NULL);
    assert_int_equal(fdr_snapshot("end"), 0);
    assert_int_equal(fdr_file_open(fdr_last_snapshot(), &f, message, sizeof message), FDR_WHOLE);
    for (size_t n = fdr_sample_streams(f, &s); n--; s++)
        if (s->tid == tid) ms += s->periods;
    fdr_file_close(f);
    unlink(fdr_last_snapshot());
    fdr_finalize();
    rmdir(dir);
    assert_true(ms >= 500); /* of at least 1,000 ms that it had a timer */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sampled_once_there_is_a_timer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
