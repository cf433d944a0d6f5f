/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P2
 * P2: if another thread wins every compare-and-swap, the allocator gives up after a bounded number of tries and finds
 * no bin. The test compiles the allocator's source with a compare-and-swap that always loses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/atomic.h"

static unsigned tries, win_after;
static bool contended(uint64_t *p, uint64_t *expected, uint64_t desired)
{
    if (++tries > win_after) return fdri_atomic_cas_acq_rel_u64(p, expected, desired);
    *expected = *p;
    return false;
}
#define fdri_atomic_cas_acq_rel_u64 contended
#define fdri_bins_format            copy_of_format
#define fdri_bins_stripe_bytes      copy_of_stripe_bytes
#define fdri_bins_divide            copy_of_divide
#define fdri_bins_node_here         copy_of_node_here
#define fdri_bins_take              copy_of_take
#define fdri_bins_give              copy_of_give
#define fdri_bins_exchange_nearer   copy_of_nearer
#define fdri_bins_free_count        copy_of_free
#define fdri_bins_meta_take         copy_of_meta_take
#define fdri_bins_meta_used         copy_of_meta_used
#include "bins/alloc.c"

static int cpu(void) { return 0; }

static void P2_tries_are_bounded(void **state)
{
    (void)state;
    static struct fdri_system_topology machine = {.page_bytes = 4096, .id = {0, 1, 2, 3}, .cpu = cpu};
    for (machine.nodes = 1; machine.nodes <= 4; machine.nodes += 3) {
        struct fdri_bins_arena a;
        void *memory = aligned_alloc(65536, 1 << 20);
        memset(memory, 0, 1 << 20);
        win_after = 0;
        assert_int_equal(fdri_bins_format(&a, memory, 1 << 20, 4096), 0);
        fdri_bins_divide(&a, &machine);
        uint32_t held = fdri_bins_take(&a, 0), free_before = fdri_bins_free_count(&a);
        /* no stack is empty */
        for (uint32_t node = 0; node < machine.nodes; node++) fdri_bins_give(&a, fdri_bins_take(&a, node));
        assert_true(held != 0);

        win_after = UINT32_MAX;
        tries = 0;
        assert_int_equal(fdri_bins_take(&a, 0), 0);
        print_message("%u nodes: a bin is given up after %u tries\n", machine.nodes, tries);
        assert_true(tries >= FDRI_BINS_TRIES && tries <= (machine.nodes + 1) * FDRI_BINS_TRIES);
        tries = 0;
        assert_int_equal(fdri_bins_meta_take(&a, FDRI_ARENA_META_FREE, 64, 0), 0);
        assert_int_equal(tries, FDRI_BINS_TRIES);
        assert_int_equal(fdri_bins_free_count(&a), free_before); /* no bin was lost by the failed tries */

        /* Giving a bin back repeats until it succeeds: each loss is another thread's success. */
        win_after = 3 * FDRI_BINS_TRIES;
        tries = 0;
        fdri_bins_give(&a, held);
        assert_int_equal(tries, 3 * FDRI_BINS_TRIES + 1);
        assert_int_equal(fdri_bins_free_count(&a), free_before + 1);
        /* A success after some losses counts as well. */
        win_after = FDRI_BINS_TRIES / 2;
        tries = 0;
        assert_true(fdri_bins_take(&a, 0) != 0);
        free(memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(P2_tries_are_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
