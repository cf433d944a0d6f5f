/* SPDX-License-Identifier: MIT */
/* ctest: label=stress,threads timeout=120 promise=P1,P2,P3
 * P1, P2, P3: bins lie on the node of the thread that uses them. The machine is made up: four nodes with two CPUs each,
 * and threads that state their CPU. */
#include <fdr/fdr.h>
#include <fdr/reader.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/system/topology.h"
#include "bins/bins.h"
#include "format/arena/arena.h"
#include "recorder/recording.h"
#include "recorder/thread/thread_state.h"
#include "tests/support/oracle.h"

enum { NODES = 4, ARENA = 1 << 20, BIN = 1024 };

static __thread int my_cpu;
static unsigned asked_where;
static uint32_t preferred = UINT32_MAX, prefers;
static int cpu(void)
{
    __atomic_fetch_add(&asked_where, 1, __ATOMIC_RELAXED);
    return my_cpu;
}
static bool prefer(uint32_t id)
{
    prefers++;
    preferred = id;
    return true;
}
static void *stays;
static bool stay(void *memory, uint64_t bytes)
{
    (void)bytes;
    stays = memory;
    return true;
}
static struct fdri_system_topology machine = {.nodes = NODES,
                                              .page_bytes = 4096,
                                              .id = {0, 1, 4, 5},
                                              .cpu = cpu,
                                              .prefer = prefer,
                                              .stay = stay,
                                              .of_cpu = {0, 0, 1, 1, 2, 2, 3, 3}};

static void *format(struct fdri_bins_arena *a, uint32_t bin_bytes)
{
    void *m = aligned_alloc(65536, ARENA);
    memset(m, 0, ARENA);
    assert_int_equal(fdri_bins_format(a, m, ARENA, bin_bytes), 0);
    fdri_bins_divide(a, &machine);
    assert_int_equal(a->nodes, NODES);
    return m;
}
static void sound(const struct fdri_bins_arena *a)
{
    char text[128];
    const char *wrong = fdri_bins_check(a, text, sizeof text);
    if (wrong) print_message("%s\n", wrong);
    assert_null(wrong);
}

/* Bins of the own node come first, to the last one, then those of other nodes, then none. Each bin is handed out once,
 * and the nodes stay balanced. */
static void P1_own_node_first_then_the_others(void **state)
{
    (void)state;
    for (uint32_t bin = 512; bin <= 65536; bin *= 2) {
        struct fdri_bins_arena a;
        void *m = format(&a, bin);
        uint32_t all = fdri_bins_free_count(&a), by_node[NODES] = {0}, taken = 0, off, *bins = calloc(all, 4);
        bool fell_over = false;
        while ((off = fdri_bins_take(&a, 2))) {
            uint32_t node = fdri_bins_node_of(&a, off);
            assert_true(off / fdri_bins_stripe_bytes(&machine, bin) ==
                        (off + bin - 1) / fdri_bins_stripe_bytes(&machine, bin));
            if (node != 2) fell_over = true;
            assert_true(node != 2 || !fell_over);
            assert_true(taken < all);
            bins[taken++] = off;
            by_node[node]++;
        }
        assert_int_equal(taken, all);
        uint32_t stripe = fdri_bins_stripe_bytes(&machine, bin) / bin;
        for (int i = 1; i < NODES; i++)
            assert_true(by_node[i] + stripe >= by_node[0] && by_node[i] <= by_node[0] + stripe);
        for (uint32_t i = 0; i < taken; i++) fdri_bins_give(&a, bins[i]);
        sound(&a);
        for (uint32_t node = 0; node < NODES; node++) /* returned bins are on their own nodes again */
            for (uint32_t i = 0; i < by_node[node]; i++)
                assert_int_equal(fdri_bins_node_of(&a, fdri_bins_take(&a, node)), node);
        assert_int_equal(fdri_bins_free_count(&a), 0);
        free(bins);
        free(m);
    }
}

/* A held bin of another node is exchanged as long as the own node has a free one. The number of free bins stays. */
static void P1_a_bin_follows_its_thread(void **state)
{
    (void)state;
    struct fdri_bins_arena a;
    void *m = format(&a, 4096);
    uint32_t off = fdri_bins_take(&a, 0), free_bins = fdri_bins_free_count(&a);
    assert_int_equal(fdri_bins_exchange_nearer(&a, off, 0), off);
    off = fdri_bins_exchange_nearer(&a, off, 3);
    assert_int_equal(fdri_bins_node_of(&a, off), 3);
    assert_int_equal(fdri_bins_free_count(&a), free_bins);
    while (fdri_bins_node_of(&a, fdri_bins_take(&a, 1)) == 1) {}
    assert_int_equal(fdri_bins_exchange_nearer(&a, off, 1), off); /* none is free there, so the bin stays */
    free(m);
}

struct taker {
    pthread_t thread;
    struct fdri_bins_arena *arena;
    uint32_t *holder, node, foreign;
    bool twice;
};
static void *take_and_give(void *argument)
{
    struct taker *t = argument;
    uint32_t held[32], n = 0;
    uint64_t seed = 88172645463325252u + t->node;
    for (int i = 0; i < 60000; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        if (n < 32 && seed >> 40 & 1) {
            uint32_t off = fdri_bins_take(t->arena, t->node);
            if (!off) continue;
            if (__atomic_exchange_n(&t->holder[off / BIN], 1, __ATOMIC_ACQ_REL)) t->twice = true;
            t->foreign += fdri_bins_node_of(t->arena, off) != t->node;
            held[n++] = off;
        } else if (n) {
            uint32_t off = held[--n];
            __atomic_store_n(&t->holder[off / BIN], 0, __ATOMIC_RELEASE);
            fdri_bins_give(t->arena, off);
        }
    }
    while (n) {
        __atomic_store_n(&t->holder[held[--n] / BIN], 0, __ATOMIC_RELEASE);
        fdri_bins_give(t->arena, held[n]);
    }
    return NULL;
}

static void P3_no_bin_is_handed_out_twice_on_many_nodes(void **state)
{
    (void)state;
    struct fdri_bins_arena a;
    void *m = format(&a, BIN);
    uint32_t *holder = calloc(ARENA / BIN, 4), before = fdri_bins_free_count(&a);
    struct taker t[NODES];
    for (uint32_t i = 0; i < NODES; i++) {
        t[i] = (struct taker){.arena = &a, .holder = holder, .node = i};
        pthread_create(&t[i].thread, NULL, take_and_give, &t[i]);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        pthread_join(t[i].thread, NULL);
        assert_false(t[i].twice);
        assert_int_equal(t[i].foreign, 0); /* each holds 32 bins, and each node has 250 */
    }
    sound(&a);
    assert_int_equal(fdri_bins_free_count(&a), before);
    free(holder);
    free(m);
}

/* ---- the whole recorder ---- */

static fdr_region region[8];
static struct fdri_arena_location *where[NODES];

static void calls(uint64_t n, uint64_t *seed)
{
    for (uint64_t i = 0; i < n; i++) {
        *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
        fdr_enter(region[0]);
        fdr_enter(region[1 + (*seed >> 20) % 7]);
        for (volatile uint32_t k = 0; k < (*seed >> 40) % 16; k++) {}
        fdr_leave(region[0]);
    }
}

static uint32_t bins_on(const struct fdri_arena_location *l, uint32_t node, uint32_t *all)
{
    const struct fdri_bins_arena *a = &fdri_life_recording.arena;
    uint32_t n = 0;
    *all = 0;
    for (uint32_t p = l->parts_first; p; p = ((const struct fdri_arena_part *)fdri_bins_at(a, p))->next)
        for (uint32_t off = (uint32_t)((const struct fdri_arena_part *)fdri_bins_at(a, p))->list_head; off;
             off = fdri_bins_bin(a, off)->next) {
            n += fdri_bins_node_of(a, off) == node;
            ++*all;
        }
    return n;
}

static void *one_thread(void *argument)
{
    uint32_t i = (uint32_t)(uintptr_t)argument;
    uint64_t seed = 0x9E3779B97F4A7C15u * (i + 1);
    my_cpu = (int)(2 * i);
    calls(30000, &seed);
    where[i] = fdri_record_self.loc;
    return NULL;
}

static void start(const struct fdri_system_topology *t, const char *buffer)
{
    struct fdr_config c = oracle_config(oracle_directory());
    c.buffer = buffer;
    c.bin = "1K";
    c.timer = NULL;
    fdri_system_topology_given = t;
    assert_int_equal(fdr_init(&c), 0);
    char name[8] = "r0";
    for (int i = 0; i < 8; i++, name[1]++) region[i] = fdr_region_define(name, __FILE__, (unsigned)i);
}

static void P1_bins_of_a_location_come_from_its_node(void **state)
{
    (void)state;
    start(&machine, "4M");
    assert_true(prefers > NODES && preferred == UINT32_MAX); /* placed; the program's policy is restored */
    assert_ptr_equal(stays, fdri_life_recording.arena.base); /* and the arena is to stay there */
    pthread_t t[NODES];
    for (uintptr_t i = 0; i < NODES; i++) pthread_create(&t[i], NULL, one_thread, (void *)i);
    for (uint32_t i = 0; i < NODES; i++) pthread_join(t[i], NULL);
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t all, own = bins_on(where[i], i, &all);
        assert_true(all > 30);
        assert_int_equal(own, all);
        assert_int_equal(where[i]->numa_node, machine.id[i]);
    }
    const char *wrong;
    struct fdr_file *f = oracle_snapshot(4 << 20, &wrong);
    assert_null(wrong);
    bool seen[8] = {false};
    for (size_t i = 0; i < fdr_location_count(f); i++) seen[fdr_location_info(f, i)->numa_node & 7] = true;
    for (uint32_t i = 0; i < NODES; i++) assert_true(seen[machine.id[i]]);
    fdr_file_close(f);
    sound(&fdri_life_recording.arena);
    fdr_finalize();
}

/* One of four events, so that at most one bin is taken at a time. */
static void one_event(uint64_t i)
{
    fdr_region inner = region[1 + i / 4 % 7];
    if (i % 4 < 2) fdr_enter(i % 4 ? inner : region[0]);
    else fdr_leave(i % 4 == 2 ? inner : region[0]);
}

/* One busy thread takes the bins of all nodes before it gives events back. Then it moves, and its memory follows. */
static void P2_nothing_is_lost_while_another_node_has_room(void **state)
{
    (void)state;
    start(&machine, "1M");
    uint64_t seed = 88172645463325252u;
    my_cpu = 0;
    uint32_t left = 0; /* before the first call that gave events back; small bins may become whole ones at once */
    for (uint64_t i = 0; !fdr_usage().reductions; i++) {
        left = fdri_bins_free_count(&fdri_life_recording.arena);
        one_event(i);
    }
    assert_true(left <= fdri_life_recording.bin_reserve);
    assert_int_equal(fdr_usage().lost, 0);
    my_cpu = 6;
    uint32_t all, before = bins_on(fdri_record_self.loc, 3, &all);
    calls(400000, &seed);
    uint32_t after = bins_on(fdri_record_self.loc, 3, &all);
    print_message("of %u bins %u, later %u, lie on the node the thread moved to\n", all, before, after);
    assert_true(after > before);
    assert_int_equal(fdri_record_self.loc->numa_node, machine.id[3]);
    assert_int_equal(fdr_usage().lost, 0);
    sound(&fdri_life_recording.arena);
    fdr_finalize();
}

static void P2_one_node_pays_nothing(void **state)
{
    (void)state;
    struct fdri_system_topology single = machine;
    single.nodes = 1;
    asked_where = prefers = 0;
    start(&single, "1M");
    uint64_t seed = 88172645463325252u;
    calls(20000, &seed);
    assert_int_equal(asked_where + prefers, 0);
    assert_int_equal(fdri_life_recording.arena.super->nodes_off, 0);
    fdr_finalize();
    /* With several nodes fdr asks for the node when it takes a bin, not at each call. */
    start(&machine, "4M");
    asked_where = 0;
    calls(20000, &seed);
    print_message("40000 calls, %u times asked where\n", asked_where);
    assert_true(asked_where > 0 && asked_where < 400);
    fdr_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P1_own_node_first_then_the_others),
        cmocka_unit_test(P1_a_bin_follows_its_thread),
        cmocka_unit_test(P3_no_bin_is_handed_out_twice_on_many_nodes),
        cmocka_unit_test(P1_bins_of_a_location_come_from_its_node),
        cmocka_unit_test(P2_nothing_is_lost_while_another_node_has_room),
        cmocka_unit_test(P2_one_node_pays_nothing),
    };
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    return bad;
}
