/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P7
 * ctest: without=tsan (it runs handlers where its own functions wait)
 * P7: several threads fault at once. The bundle shows for each thread the place of its own fault. A failure shows as
 * the place where its handler waited for the first thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "tests/support/deaths.h"

enum { FAULTING = 4, ROUNDS = 20 };

static volatile int *volatile nowhere = (volatile int *)(uintptr_t)8;
static pthread_barrier_t together;

static void *fault(void *unused)
{
    (void)unused;
    fdr_region r = fdr_region_define("outer", NULL, 0);
    fdr_enter(r);
    pthread_barrier_wait(&together);
    *nowhere = 1;
    return NULL;
}

static void die(void)
{
    pthread_t t[FAULTING];
    pthread_barrier_init(&together, NULL, FAULTING);
    for (int i = 0; i < FAULTING; i++) pthread_create(&t[i], NULL, fault, NULL);
    pthread_join(t[0], NULL);
}

static const struct fdr_crash_thread_info *thread_of(const struct fdr_file *f, uint32_t tid)
{
    const struct fdr_crash_thread_info *t;
    size_t n = fdr_crash_threads(f, &t);
    for (size_t i = 0; i < n; i++)
        if (t[i].tid == tid) return &t[i];
    fail_msg("thread %u is not in the bundle", tid);
    return NULL;
}

/* Checks all causes after the first; returns the number of threads that answered. */
static int same_place(const struct fdr_file *f)
{
    const struct fdr_crash_cause_info *c;
    size_t n = fdr_crash_causes(f, &c);
    assert_true(n >= 1);
    uint64_t pc = thread_of(f, c[0].tid)->pc;
    int also = 0;
    for (size_t i = 1; i < n; i++) {
        const struct fdr_crash_thread_info *t = thread_of(f, c[i].tid);
        if (!c[i].also || !t->answered) continue; /* the thread got no processor in time */
        if (t->pc != pc) fail_msg("thread %u, which faulted at %lx, tells of %lx", t->tid, (long)pc, (long)t->pc);
        also++;
    }
    return also;
}

static void each_thread_reports_its_fault(void **state)
{
    (void)state;
    int also = 0;
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid;
        char message[200] = "";
        struct fdr_file *f = NULL;
        const struct death_place *p = death_place();
        struct fdr_config c = death_config(p);
        int status = death_of(&c, die, &pid);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) fail_msg("wait status %x", (unsigned)status);
        if (fdr_file_open(death_find(p->dir, ".crash.fdr"), &f, message, sizeof message) != FDR_WHOLE)
            fail_msg("%s", message);
        also += same_place(f);
        fdr_file_close(f);
    }
    assert_true(also > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_thread_reports_its_fault)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
