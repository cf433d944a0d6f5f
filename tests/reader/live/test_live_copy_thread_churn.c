/* SPDX-License-Identifier: MIT */
/* ctest: label=threads,slow timeout=120 promise=P8
 * P8: copies from outside while threads come and go beside busy ones. Memory of an ended thread may serve another
 * before the copy follows its list, or during the copy. No bin of the copy is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <fdr/fdr.h>
#include <fdr/reader.h>

#include "tests/support/random_numbers.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_directory.h"

enum { COPIES = SANITIZED ? 4 : 80, BUSY = 2, MAKERS = 2, AT_ONCE = 16, BURSTS = 200, DEPTH = 6 };
static fdr_region region[DEPTH];
static uint32_t over; /* atomic */

static uint32_t is_over(void) { return __atomic_load_n(&over, __ATOMIC_RELAXED); }

static void burst(void)
{
    for (int d = 0; d < DEPTH; d++) fdr_enter(region[d]);
    for (int d = DEPTH; d-- > 0;) fdr_leave(region[d]);
}

static void *is_busy(void *unused)
{
    while (!is_over()) burst();
    return unused;
}

static void *is_short(void *bursts)
{
    for (uintptr_t i = 0; i < (uintptr_t)bursts; i++) burst();
    return NULL;
}

static void *makes(void *which)
{
    uint64_t seed = (uintptr_t)which + 1;
    pthread_t t[AT_ONCE];
    while (!is_over()) {
        uint32_t n = 0, want = 1 + rnd(&seed, AT_ONCE);
        for (; n < want; n++)
            if (pthread_create(&t[n], NULL, is_short, (void *)(uintptr_t)(1 + rnd(&seed, BURSTS)))) break;
        while (n > 0) pthread_join(t[--n], NULL);
    }
    return NULL;
}

static void is_whole(const char *path)
{
    struct fdr_file *f;
    char message[300] = "";
    if (fdr_file_open(path, &f, message, sizeof message) != FDR_WHOLE || fdr_file_verify(f) != FDR_WHOLE)
        fail_msg("%s %s", message, f && fdr_file_damage(f, 0) ? fdr_file_damage(f, 0) : "");
    fdr_file_close(f);
}

static void P8_threads_come_and_go(void **state)
{
    const struct fdr_config c = {.size = sizeof c,
                                 .ignore_environment = 1,
                                 .buffer = "4M",
                                 .signal = "none",
                                 .crash = "0",
                                 .arena = "anonymous"};
    pthread_t t[BUSY + MAKERS];
    char path[64], message[300] = "";
    (void)state;
    snprintf(path, sizeof path, "%s/outside.fdr", scratch);
    assert_int_equal(fdr_init(&c), 0);
    for (int d = 0; d < DEPTH; d++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", d);
        region[d] = fdr_region_define(name, NULL, 0);
    }
    for (uintptr_t i = 0; i < BUSY + MAKERS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, i < BUSY ? is_busy : makes, (void *)i), 0);
    for (int i = 0; i < COPIES; i++) {
        assert_int_equal(fdr_process_snapshot((uint32_t)getpid(), path, NULL, message, sizeof message), 0);
        is_whole(path);
        unlink(path);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < BUSY + MAKERS; i++) pthread_join(t[i], NULL);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P8_threads_come_and_go)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
