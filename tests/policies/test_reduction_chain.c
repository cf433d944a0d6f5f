/* SPDX-License-Identifier: MIT */
/* ctest: label=unit promise=P1,P9,P10
 * P1, P9, P10: the chain of reduction as pure functions. Its steps define a consistent order of value, for every order
 * and subset of steps. The kept partitions always hold the parents of the kept calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "policies/policies.h"
#include "tests/support/random_numbers.h"

static uint64_t seed = 88172645463325252u;

/* Returns chain number n, of all orders of all subsets of the steps. */
static int chain_number(int n, struct fdri_policies_chain *c)
{
    memset(c, 0, sizeof *c);
    int used = 0;
    for (int i = 0; i < FDRI_POLICIES_STEPS; i++) {
        int digit = n % 5;
        n /= 5;
        if (!digit) return n == 0 ? 1 : 0; /* the chain ends here */
        if (used >> digit & 1) return 0;
        used |= 1 << digit;
        c->step[i] = (uint8_t)digit;
    }
    return 1;
}
enum { CHAINS = 5 * 5 * 5 * 5 };

static void random_ranks(struct fdri_policies_chain *c)
{
    uint8_t rank = 1;
    for (int i = 0; i < FDRI_POLICIES_CLASSES; i++) c->class_rank[i] = 0;
    if (rnd(&seed, 2)) return;
    for (uint32_t k = rnd(&seed, FDRI_POLICIES_CLASSES + 1); k; k--) {
        uint32_t class_ = rnd(&seed, FDRI_POLICIES_CLASSES);
        if (!c->class_rank[class_]) c->class_rank[class_] = rank++;
    }
}

/* All partitions of one location: one for each class, depth and band, with random contents. */
static int random_views(struct fdri_policies_part_view *v, int most)
{
    uint64_t bytes[FDRI_POLICIES_CLASSES];
    for (int i = 0; i < FDRI_POLICIES_CLASSES; i++) bytes[i] = 1 + rnd(&seed, 4);
    int n = 0;
    for (int tries = 0; n < most && tries < 10 * most; tries++) {
        struct fdri_policies_part_view p = {.class_ = rnd(&seed, 3) ? 0 : (uint8_t)(1 + rnd(&seed, 8)),
                                            .depth = rnd(&seed, 6),
                                            .oldest = rnd(&seed, 5)};
        if (!p.class_) p.band = (uint8_t)rnd(&seed, 4), p.depth++;
        p.class_bytes = bytes[p.class_];
        int twin = 0;
        for (int i = 0; i < n; i++) twin |= v[i].class_ == p.class_ && v[i].depth == p.depth && v[i].band == p.band;
        if (!twin) v[n++] = p;
    }
    return n;
}

static bool before(const struct fdri_policies_chain *c, const struct fdri_policies_part_view *a,
                   const struct fdri_policies_part_view *b)
{
    enum fdri_policies_reason why;
    return fdri_policies_precedes(c, a, b, &why);
}

static void P10_the_order_is_strict_and_weak(void **state)
{
    (void)state;
    int chains = 0;
    for (int n = 0; n < CHAINS; n++) {
        struct fdri_policies_chain c;
        struct fdri_policies_part_view v[24];
        if (!chain_number(n, &c)) continue;
        chains++;
        for (int round = 0; round < 20; round++) {
            random_ranks(&c);
            int m = random_views(v, 24);
            for (int i = 0; i < m; i++) {
                assert_false(before(&c, &v[i], &v[i]));
                for (int j = 0; j < m; j++) {
                    if (before(&c, &v[i], &v[j])) assert_false(before(&c, &v[j], &v[i]));
                    for (int k = 0; k < m; k++) {
                        if (before(&c, &v[i], &v[j]) && before(&c, &v[j], &v[k])) assert_true(before(&c, &v[i], &v[k]));
                        /* "equally valuable" must be transitive, too; otherwise the choice would depend on the first
                         * partition compared */
                        bool ij = !before(&c, &v[i], &v[j]) && !before(&c, &v[j], &v[i]);
                        bool jk = !before(&c, &v[j], &v[k]) && !before(&c, &v[k], &v[j]);
                        if (ij && jk) assert_false(before(&c, &v[i], &v[k]) || before(&c, &v[k], &v[i]));
                    }
                }
            }
        }
    }
    assert_int_equal(chains, 1 + 4 + 12 + 24 + 24);
}

/* Takes whole partitions, one after the other. The rest must hold every parent of its calls. Step `epoch` goes by time
 * and not by partition; there the reader's closure rule holds. */
static void P9_what_is_kept_is_closed_upward(void **state)
{
    (void)state;
    int closed = 0;
    for (int n = 0; n < CHAINS; n++) {
        struct fdri_policies_chain c;
        if (!chain_number(n, &c)) continue;
        for (int round = 0; round < 40; round++) {
            struct fdri_policies_part_view v[40];
            random_ranks(&c);
            int m = random_views(v, 40);
            bool gone[40] = {false};
            for (int step = 0; step < m; step++) {
                int best = -1;
                for (int i = 0; i < m; i++)
                    if (!gone[i] && (best < 0 || before(&c, &v[i], &v[best]))) best = i;
                uint32_t index;
                struct fdri_policies_verdict what = fdri_policies_step(&c, &v[best], &index);
                if (!fdri_policies_closes_gate(what.step)) break;
                gone[best] = true;
                if (v[best].class_) continue;
                for (int i = 0; i < m; i++) {
                    if (gone[i] || v[i].class_) continue;
                    /* `best` may hold the parent of a call in v[i] */
                    bool parent = v[best].depth < v[i].depth && v[best].band >= v[i].band;
                    if (parent)
                        print_message("chain %d%d%d%d: (depth %u, band %u) went before (depth %u, band %u)\n",
                                      c.step[0], c.step[1], c.step[2], c.step[3], v[best].depth, v[best].band,
                                      v[i].depth, v[i].band);
                    assert_false(parent);
                    closed++;
                }
            }
        }
    }
    assert_true(closed > 1000);
}

static void P10_each_step_takes_what_it_says(void **state)
{
    (void)state;
    struct fdri_policies_chain c = {
        {FDRI_POLICIES_BY_DURATION, FDRI_POLICIES_BY_DEPTH, FDRI_POLICIES_BY_CLASS, FDRI_POLICIES_BY_EPOCH}, {0}};
    struct fdri_policies_part_view brief = {.depth = 2, .band = 0}, deep = {.depth = 9, .band = 3},
                                   outer = {.depth = 1, .band = 3},
                                   message = {.depth = 4, .class_ = 1, .class_bytes = 10},
                                   marker = {.depth = 4, .class_ = 4, .class_bytes = 20};
    enum fdri_policies_reason why;
    uint32_t index;
    assert_true(fdri_policies_precedes(&c, &brief, &deep, &why));
    assert_int_equal(why, FDRI_POLICIES_REASON_SHORTEST);
    assert_true(fdri_policies_precedes(&c, &deep, &message, &why));
    assert_int_equal(why, FDRI_POLICIES_REASON_DEEPEST);
    assert_true(fdri_policies_precedes(&c, &marker, &message, &why));
    assert_int_equal(why, FDRI_POLICIES_REASON_LARGEST_CLASS);
    assert_true(fdri_policies_precedes(&c, &message, &outer, &why));
    assert_int_equal(fdri_policies_step(&c, &outer, &index).step, FDRI_POLICIES_BY_EPOCH);
    assert_int_equal(fdri_policies_step(&c, &outer, &index).reason, FDRI_POLICIES_REASON_OLDEST);
    assert_int_equal(index, 3);
    struct fdri_policies_part_view deeper = brief;
    deeper.depth = 7;
    assert_true(fdri_policies_precedes(&c, &deeper, &brief, &why)); /* shortest band: deepest first */
    assert_int_equal(why, FDRI_POLICIES_REASON_DEEPEST);
    struct fdri_policies_chain turned = {{FDRI_POLICIES_BY_DEPTH, FDRI_POLICIES_BY_DURATION, 0, 0}, {0}};
    assert_true(fdri_policies_precedes(&turned, &deep, &brief, &why));
    assert_int_equal(why, FDRI_POLICIES_REASON_DEEPEST);
}

static void P10_classes_go_in_the_users_order(void **state)
{
    (void)state;
    for (int round = 0; round < 1000; round++) {
        struct fdri_policies_chain c = {
            {FDRI_POLICIES_BY_CLASS, FDRI_POLICIES_BY_DURATION, FDRI_POLICIES_BY_DEPTH, FDRI_POLICIES_BY_EPOCH}, {0}};
        random_ranks(&c);
        for (uint8_t x = 1; x < FDRI_POLICIES_CLASSES; x++)
            for (uint8_t y = 1; y < FDRI_POLICIES_CLASSES; y++) {
                struct fdri_policies_part_view a = {.depth = rnd(&seed, 9), .class_ = x, .class_bytes = 100 + 10 * x};
                struct fdri_policies_part_view b = {.depth = rnd(&seed, 9), .class_ = y, .class_bytes = 100 + 10 * y};
                enum fdri_policies_reason why;
                bool first = fdri_policies_precedes(&c, &a, &b, &why);
                uint8_t ra = c.class_rank[x], rb = c.class_rank[y];
                if (x == y) assert_int_equal(first, a.depth > b.depth);
                else if (ra && rb) assert_int_equal(first, ra < rb);
                else if (ra || rb) assert_int_equal(first, ra != 0);
                else assert_int_equal(first, x > y); /* the larger class */
                if (first && ra) assert_int_equal(why, FDRI_POLICIES_REASON_LEAST_IMPORTANT);
                if (first && !ra) assert_int_equal(why, FDRI_POLICIES_REASON_LARGEST_CLASS);
            }
    }
}

static void P10_epochs_are_cut_by_share(void **state)
{
    (void)state;
    assert_false(fdri_policies_begins_epoch(1, 0, 8));
    assert_false(fdri_policies_begins_epoch(9, 80, 8));
    assert_true(fdri_policies_begins_epoch(10, 80, 8));
    assert_true(fdri_policies_closes_gate(FDRI_POLICIES_BY_DURATION) &&
                fdri_policies_closes_gate(FDRI_POLICIES_BY_DEPTH) && fdri_policies_closes_gate(FDRI_POLICIES_BY_CLASS));
    assert_false(fdri_policies_closes_gate(FDRI_POLICIES_BY_EPOCH));
}

/* Epochs merge as a binary counter carries. They stay few, older ones are never shorter, and each is as long as its
 * tier says. */
static void P1_epochs_grow_with_the_logarithm(void **state)
{
    uint32_t tier[64], births[64], count = 0, most = 0;
    (void)state;
    for (uint32_t n = 1; n <= 100000; n++) {
        tier[count] = 0;
        births[count++] = 1;
        for (uint32_t i; (i = fdri_policies_merge(tier, count, 64)) < count; count--) {
            assert_int_equal(tier[i], tier[i + 1]);
            tier[i]++;
            births[i] += births[i + 1];
            for (uint32_t k = i + 1; k + 1 < count; k++) tier[k] = tier[k + 1], births[k] = births[k + 1];
        }
        uint32_t all = 0, log2 = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (i) assert_true(tier[i] <= tier[i - 1]);
            assert_int_equal(births[i], 1u << tier[i]);
            all += births[i];
        }
        while (n >> (log2 + 1)) log2++;
        assert_int_equal(all, n);
        assert_true(count <= FDRI_POLICIES_EPOCHS_A_TIER * (log2 + 1));
        if (count > most) most = count;
    }
    assert_true(most < 40);
}

/* If the table is full and no tier has too many epochs, the two oldest merge. With room left nothing merges. */
static void P1_a_full_table_merges_the_oldest(void **state)
{
    uint32_t tier[8] = {3, 3, 2, 2, 1, 1, 0, 0};
    (void)state;
    assert_int_equal(fdri_policies_merge(tier, 8, 9), 8);
    assert_int_equal(fdri_policies_merge(tier, 8, 8), 0);
    assert_int_equal(fdri_policies_merge(tier, 1, 1), 1);
    tier[5] = tier[6] = 0; /* four epochs of one tier merge first */
    assert_true(fdri_policies_merge(tier, 8, 8) > 0);
}

static void P10_tiers_have_their_shares(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct fdri_policies_tier_shares s = {.count = rnd(&seed, 6)};
        uint32_t tiers = 1 + rnd(&seed, FDRI_POLICIES_TIERS - 1);
        uint64_t held[FDRI_POLICIES_TIERS], total = 1000 + rnd(&seed, 1000000), sum = 0, over;
        for (uint32_t i = 0; i < s.count; i++) s.share[i] = (uint16_t)(1 + rnd(&seed, 1000));
        for (uint32_t t = 0; t < tiers; t++) {
            held[t] = rnd(&seed, 3) ? rnd(&seed, 100000) : 0;
            sum += fdri_policies_tier_share(&s, t, tiers, total);
        }
        assert_true(sum <= total && sum + tiers >= total);
        uint32_t tier = fdri_policies_tier_to_give(&s, held, tiers, total, 0, &over);
        bool any = false;
        for (uint32_t t = 1; t < tiers; t++) any |= held[t] != 0;
        assert_int_equal(tier != 0, any);             /* the newest tier never gives here */
        for (uint32_t t = 1; t < tiers && any; t++) { /* no tier is further above its share */
            double a = (double)held[t] / (double)fdri_policies_tier_share(&s, t, tiers, 1u << 30);
            double b = (double)held[tier] / (double)fdri_policies_tier_share(&s, tier, tiers, 1u << 30);
            assert_true(a <= b * 1.001);
        }
        if (any) assert_true(fdri_policies_tier_to_give(&s, held, tiers, total, 1u << tier, &over) != tier);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P10_the_order_is_strict_and_weak),  cmocka_unit_test(P9_what_is_kept_is_closed_upward),
        cmocka_unit_test(P10_each_step_takes_what_it_says),  cmocka_unit_test(P10_classes_go_in_the_users_order),
        cmocka_unit_test(P10_epochs_are_cut_by_share),       cmocka_unit_test(P1_epochs_grow_with_the_logarithm),
        cmocka_unit_test(P1_a_full_table_merges_the_oldest), cmocka_unit_test(P10_tiers_have_their_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
