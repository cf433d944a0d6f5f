/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * ctest: wrap=fdr_sample,fdri_samples_source_open,fdri_samples_source_close
 * P10: the sampler reuses a thread's slot for another thread after the first one ended in good order. If a handler left
 * the slot by longjmp, the slot is never reused: the handler's work could still touch it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/observed_process.h"

#include <sys/syscall.h>
#include <time.h>

#include "base/atomic.h"
#include "sampler/samples/sample_target.h"
#include "tests/support/wait_for_snapshots.h"

static uint32_t jumper; /* atomic; the thread whose handler jumps out; 0 after the jump */
static sigjmp_buf out;

uint64_t __real_fdr_sample(struct fdr_sampled *s, const struct fdr_look *look);
uint64_t __wrap_fdr_sample(struct fdr_sampled *s, const struct fdr_look *look);
uint64_t __wrap_fdr_sample(struct fdr_sampled *s, const struct fdr_look *look)
{
    uint32_t self = (uint32_t)syscall(SYS_gettid);
    if (__atomic_compare_exchange_n(&jumper, &self, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) siglongjmp(out, 1);
    return __real_fdr_sample(s, look);
}

/* Written by the helper thread, which alone opens and closes slots. */
static uint32_t left_tid;                        /* atomic; id of the thread that jumped */
static struct fdri_samples_target *left, *clean; /* atomic; closed: slot of the jump; a good one behind it */
static unsigned left_opened, clean_opened;       /* atomic */
bool __real_fdri_samples_source_open(struct fdri_samples_target *t, uint64_t step);
bool __wrap_fdri_samples_source_open(struct fdri_samples_target *t, uint64_t step);
bool __wrap_fdri_samples_source_open(struct fdri_samples_target *t, uint64_t step)
{
    if (t == __atomic_load_n(&left, __ATOMIC_ACQUIRE)) __atomic_fetch_add(&left_opened, 1, __ATOMIC_RELEASE);
    if (t == __atomic_load_n(&clean, __ATOMIC_ACQUIRE)) __atomic_fetch_add(&clean_opened, 1, __ATOMIC_RELEASE);
    return __real_fdri_samples_source_open(t, step);
}
void __real_fdri_samples_source_close(struct fdri_samples_target *t);
void __wrap_fdri_samples_source_close(struct fdri_samples_target *t);
void __wrap_fdri_samples_source_close(struct fdri_samples_target *t)
{
    uint32_t is = __atomic_load_n(&left_tid, __ATOMIC_ACQUIRE);
    __real_fdri_samples_source_close(t);
    if (is && t->tid == is && !left) __atomic_store_n(&left, t, __ATOMIC_RELEASE);
    else if (left && t != left && t->source == FDRI_SAMPLES_BY_NOTHING && !fdri_atomic_load_relaxed(&t->live))
        __atomic_store_n(&clean, t, __ATOMIC_RELEASE);
}

static void work(void) { FDR_REGION("work") for (int i = 0; i < 10000; i++) __asm__ volatile(""); }

static void *jumps(void *unused)
{
    uint32_t self = (uint32_t)syscall(SYS_gettid);
    if (sigsetjmp(out, 1)) {
        __atomic_store_n(&left_tid, self, __ATOMIC_RELEASE);
        return unused;
    }
    __atomic_store_n(&jumper, self, __ATOMIC_RELEASE);
    for (;;) work();
}

/* Runs long enough for the helper to find the thread. */
static void *works(void *unused)
{
    struct timespec t;
    do {
        work();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_sec == 0 && t.tv_nsec < 150000000);
    return unused;
}

static void slot_stays_while_its_handler_runs(void **state)
{
    (void)state;
    pthread_t t;
    snapshots_start((struct fdr_config){.sample = "1000Hz"});
    assert_int_equal(pthread_create(&t, NULL, jumps, NULL), 0);
    pthread_join(t, NULL);
    for (int i = 0; i < 6000 && !__atomic_load_n(&left, __ATOMIC_ACQUIRE); i++) sleep_ms(10);
    assert_non_null(left);
    /* One thread after the other: the first ends in good order, and a later one gets its slot. */
    for (int i = 0; i < 100 && !__atomic_load_n(&clean_opened, __ATOMIC_ACQUIRE); i++) {
        assert_int_equal(pthread_create(&t, NULL, works, NULL), 0);
        pthread_join(t, NULL);
        sleep_ms(100);
    }
    assert_int_equal(__atomic_load_n(&left_opened, __ATOMIC_ACQUIRE), 0);
    assert_true(__atomic_load_n(&clean_opened, __ATOMIC_ACQUIRE) > 0);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(slot_stays_while_its_handler_runs)};
    return cmocka_run_group_tests(tests, snapshots_enter, snapshots_leave);
}
