/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,slow timeout=600 promise=P1 without=asan,tsan (their own memory grows)
 * P1: between event 10^6 and event 10^8 resident memory does not grow by a page, and recording causes no page fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/oracle.h"

static uint64_t resident_pages(void)
{
    char text[128] = "";
    unsigned long long size, resident = 0;
    int f = open("/proc/self/statm", O_RDONLY | O_CLOEXEC); /* no FILE: AddressSanitizer keeps freed memory */
    if (read(f, text, sizeof text - 1) <= 0 || sscanf(text, "%llu %llu", &size, &resident) != 2) abort();
    close(f);
    return resident;
}

static long faults(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt + u.ru_majflt;
}

/* Phases, regions and depths change. *n is the number of events so far. */
static void events_until(uint64_t *n, uint64_t end, const fdr_region *region)
{
    uint64_t x = *n | 1;
    while (*n < end) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint32_t depth = 1 + (uint32_t)(x >> 40) % 12;
        for (uint32_t d = 0; d < depth; d++) fdr_enter(region[(x >> (d * 2)) % 64]);
        fdr_marker(1, x);
        fdr_message_send(1, 2, 0, x >> 50);
        for (uint32_t d = depth; d-- > 0;) fdr_leave(region[(x >> (d * 2)) % 64]);
        *n += 2 * depth + 2;
    }
}

static void P1_memory_does_not_grow(void **state)
{
    static const char *const arenas[] = {"mapped", "anonymous"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct fdr_config c = oracle_config(oracle_directory());
        fdr_region region[64];
        char name[16], live[64];
        snprintf(live, sizeof live, "/dev/shm/fdr-test-memory-%d", (int)getpid());
        c.arena = arenas[k];
        c.live_dir = live;
        c.buffer = "16M";
        c.timer = NULL;
        assert_int_equal(fdr_init(&c), 0);
        for (int i = 0; i < 64; i++) {
            snprintf(name, sizeof name, "r%d", i);
            region[i] = fdr_region_define(name, NULL, 0);
        }
        uint64_t n = 0;
        resident_pages();
        events_until(&n, 1000000, region);
        resident_pages();
        uint64_t before = resident_pages();
        long faulted = faults();
        events_until(&n, 100000000, region);
        faulted = faults() - faulted;
        uint64_t after = resident_pages();
        struct fdr_usage u = fdr_usage();
        fdr_finalize();
        rmdir(live);
        print_message("%s: %llu events, %llu reductions, %llu pages before, %llu after, %ld faults\n", arenas[k],
                      (unsigned long long)n, (unsigned long long)u.reductions, (unsigned long long)before,
                      (unsigned long long)after, faulted);
        assert_true(u.presented > 50000000);
        assert_true(u.reductions > 0);
        assert_true(after <= before);
        assert_true(faulted < 16); /* the kernel may move a page; recording itself touches no new page */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P1_memory_does_not_grow)};
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
