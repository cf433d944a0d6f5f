/* SPDX-License-Identifier: MIT */
/* ctest: label=unit,threads timeout=120 promise=P1 excuse=NUMA
 * P1: bins lie on this machine's real nodes, as the kernel reports the place of each page. With one node the test skips
 * itself; test_numa_qemu.sh runs it on two. */
#include <fdr/fdr.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/system/topology.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/oracle.h"

static fdr_region outer, inner;

static void run_on(uint32_t node)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < FDRI_SYSTEM_CPUS_MAX; cpu++)
        if (fdri_life_recording.topology.of_cpu[cpu] == node && cpu < sysconf(_SC_NPROCESSORS_CONF)) CPU_SET(cpu, &set);
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

static void calls(int n)
{
    for (int i = 0; i < n; i++) {
        fdr_enter(outer);
        for (int k = 0; k < 10; k++) {
            fdr_enter(inner);
            fdr_leave(inner);
        }
        fdr_leave(outer);
    }
}

static int node_of_page(const void *p)
{
    void *page = (void *)((uintptr_t)p & ~(uintptr_t)4095);
    int status = -1;
    return syscall(SYS_move_pages, 0, 1ul, &page, NULL, &status, 0) == 0 ? status : -1;
}

struct count {
    uint32_t bins, near, as_divided;
};
static struct count count_bins(const struct fdri_arena_location *l)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    struct count c = {0, 0, 0};
    for (uint32_t p = l->parts_first; p; p = ((const struct fdri_arena_part *)fdri_bins_at(a, p))->next)
        for (uint32_t off = (uint32_t)((const struct fdri_arena_part *)fdri_bins_at(a, p))->list_head; off;
             off = fdri_bins_bin(a, off)->next) {
            int node = node_of_page(fdri_bins_at(a, off));
            c.bins++;
            c.near += node == (int)l->numa_node;
            c.as_divided += node == (int)a->node[fdri_bins_node_of(a, off)].id;
        }
    return c;
}

static struct fdri_arena_location *location_of[2];
static void *one_thread(void *argument)
{
    uint32_t node = (uint32_t)(uintptr_t)argument;
    run_on(node);
    calls(6000);
    location_of[node] = fdri_record_self.loc;
    return NULL;
}

static void on_both(const char *arena)
{
    struct fdr_config c = oracle_config("/tmp");
    c.arena = arena;
    c.buffer = "8M";
    c.timer = NULL;
    c.resolution = "1us"; /* an emulator's clock is slow; the place of records matters here, not their times */
    c.live_dir = "/dev/shm/fdr-test-numa";
    assert_int_equal(fdr_init(&c), 0);
    assert_true(fdri_life_recording.topology.nodes >= 2 &&
                fdri_life_recording.arena.nodes == fdri_life_recording.topology.nodes);
    assert_int_equal(fdri_life_recording.settings.arena, arena[0] == 'm' ? FDRI_LIFE_MAPPED : FDRI_LIFE_ANONYMOUS);
    outer = fdr_region_define("outer", NULL, 1);
    inner = fdr_region_define("inner", NULL, 2);
    pthread_t t[2];
    for (uintptr_t i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, one_thread, (void *)i), 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    for (uint32_t i = 0; i < 2; i++) {
        struct count n = count_bins(location_of[i]);
        print_message("%s: location %u on node %u: %u of %u bins there, %u where they were meant to be\n", arena,
                      location_of[i]->id, location_of[i]->numa_node, n.near, n.bins, n.as_divided);
        assert_int_equal(location_of[i]->numa_node, fdri_life_recording.topology.id[i]);
        assert_true(n.bins >= 5);
        assert_int_equal(n.near, n.bins);
        assert_int_equal(n.as_divided, n.bins);
    }
    /* The thread moves to another node. */
    run_on(0);
    calls(6000);
    struct count before = count_bins(fdri_record_self.loc);
    run_on(1);
    calls(6000);
    struct count after = count_bins(fdri_record_self.loc);
    print_message("%s: moved: %u of %u bins near, then %u of %u near the new place\n", arena, before.near, before.bins,
                  after.near, after.bins);
    assert_int_equal(before.near, before.bins);
    assert_int_equal(fdri_record_self.loc->numa_node, fdri_life_recording.topology.id[1]);
    assert_true(after.near + 20 >= after.bins - before.bins && after.near > 2);
    fdr_finalize();
}

static void P1_mapped_bins_lie_on_their_node(void **state)
{
    (void)state;
    on_both("mapped");
}
static void P1_anonymous_bins_lie_on_their_node(void **state)
{
    (void)state;
    on_both("anonymous");
}

int main(void)
{
    struct fdri_system_topology t;
    fdri_system_topology_read(&t);
    if (t.nodes < 2) {
        printf("skipped: this machine has one NUMA node (or libfdr was built without libnuma)\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P1_mapped_bins_lie_on_their_node),
        cmocka_unit_test(P1_anonymous_bins_lie_on_their_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
