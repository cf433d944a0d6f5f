/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * ctest: without=asan,tsan (their runtimes do not survive threads cancelled anywhere)
 * P10: reading counters or taking samples is never a cancellation point. A thread is cancelled at random moments while
 * counters are read at the edges of its calls. It must end, and its joiner must go on. A second thread is sampled by
 * page faults; it must end at its own cancellation point, not at the interrupted instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/observed_process.h"

#include <sys/mman.h>

#include "tests/support/wait_for_snapshots.h"

static void *at_any_moment(void *unused)
{
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    for (;;) {
        FDR_REGION("call") for (volatile int i = 0; i < 300;) i = i + 1;
    }
    return unused;
}

static void by_edges(void **state)
{
    enum { THREADS = 400 };
    pthread_t t;
    (void)state;
    snapshots_start((struct fdr_config){.edge_counters = "page-faults"});
    for (unsigned n = 0; n < THREADS; n++) {
        assert_int_equal(pthread_create(&t, NULL, at_any_moment, NULL), 0);
        usleep(300 + n * 7919 % 1200);
        pthread_cancel(t);
        pthread_join(t, NULL); /* if fdr broke the cancellation, this hangs */
    }
    fdr_finalize();
}

static volatile bool stops, reached;
static void *by_itself(void *unused)
{
    size_t bytes = 64 << 12;
    uint8_t *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    while (page != MAP_FAILED && !stops) {
        fdr_marker(1, 1);
        for (size_t i = 0; i < bytes; i += 4096) page[i] = 1;
        madvise(page, bytes, MADV_DONTNEED);
    }
    reached = true;
    pthread_testcancel();
    return unused;
}

static void by_samples(void **state)
{
    pthread_t t;
    (void)state;
    snapshots_start((struct fdr_config){.sample = "page-faults/100"});
    fdr_marker_define("m");
    assert_int_equal(pthread_create(&t, NULL, by_itself, NULL), 0);
    sleep_ms(300); /* time for the sampler to find the thread */
    pthread_cancel(t);
    sleep_ms(300);
    stops = true;
    pthread_join(t, NULL);
    assert_true(reached);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_edges), cmocka_unit_test(by_samples)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
