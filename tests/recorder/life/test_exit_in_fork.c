/* SPDX-License-Identifier: MIT */
/* ctest: label=signals,threads timeout=120 promise=P10
 * P10: a thread calls exit() while another is inside of fork(). When the recording ends, the C library has already
 * dropped fdr's fork handlers, so the other thread returns from fork() with fdr's locks held. The process must
 * still end and leave no live file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "tests/support/deaths.h"

static uint32_t inside;

/* Registered before fdr's handler, so it runs after that. */
static void take_long(void)
{
    __atomic_store_n(&inside, 1u, __ATOMIC_RELEASE);
    usleep(300000);
}

static void *forks(void *unused)
{
    pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    fdr_region_define("behind it", NULL, 0);
    return unused;
}

static void exits(void)
{
    struct fdr_config c = death_config(death_place_as_it_is());
    pthread_t t;
    pthread_atfork(take_long, NULL, NULL);
    if (fdr_init(&c)) _exit(98);
    FDR_REGION("work") pthread_create(&t, NULL, forks, NULL);
    while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE)) usleep(1000);
    exit(0);
}

static void P10_exit_while_another_thread_forks(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__) || defined(FDRI_ATOMIC_TSAN)
    skip(); /* locks are released on behalf of a thread that will never release them */
#endif
    const struct death_place *p = death_place();
    pid_t pid;
    assert_int_equal(death_of(NULL, exits, &pid), 0);
    assert_string_equal(death_file(p->live), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P10_exit_while_another_thread_forks)};
    return cmocka_run_group_tests(tests, NULL, death_place_leave);
}
