/* SPDX-License-Identifier: MIT */
/* The rounds of looks: when, and at which threads. Time is divided into stretches of one or more periods. Each has one
 * round, at a random moment, so that no rhythm of the program can hide. If not all threads fit a round, the next round
 * goes on with the others. A look stands for all periods since the thread's look before. */
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "policies/looks.h"
#include "sampler/samples/look.h"
#include "sampler/samples/sample_target.h"
#include "sampler/samples/sampler.h"

static struct {
    struct fdri_policies_looks account;
    uint64_t period_ns, zero_ns;
    uint64_t moment_ns, stretch_end; /* of the next round; the end in periods since zero_ns */
    uint64_t random;
    uint32_t looks, next; /* looks of the next round; the target that it begins with */
} rounds;

static uint64_t random_below(uint64_t most)
{
    rounds.random ^= rounds.random << 13; /* xorshift */
    rounds.random ^= rounds.random >> 7;
    rounds.random ^= rounds.random << 17;
    return (uint64_t)((unsigned __int128)(rounds.random >> 11) * most >> 53);
}

static uint64_t periods_until(uint64_t now_ns) { return (now_ns - rounds.zero_ns) / rounds.period_ns; }

/* Plans the next round, after one of `done` looks that took looks_ns of processor time. step: the least number of
 * periods after which any thread is to be looked at again. */
static void plan(uint64_t looks_ns, uint32_t done, uint64_t step, uint32_t threads)
{
    uint64_t now_ns = fdri_clock_ns(CLOCK_MONOTONIC), cpu_ns = fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    struct fdri_policies_looks_round round = fdri_policies_looks_step(&rounds.account, now_ns, cpu_ns, looks_ns, done,
                                                                      rounds.period_ns * step, threads);
    uint64_t first = fdri_bits_max(rounds.stretch_end, periods_until(now_ns) + 1), length = round.periods * step;
    rounds.stretch_end = first + length;
    rounds.moment_ns = rounds.zero_ns + first * rounds.period_ns + random_below(length * rounds.period_ns);
    rounds.looks = round.looks;
}

static uint64_t least_step(uint32_t count)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct fdri_samples_target *t = fdri_samples_target(i);
        if (t->tid) least = fdri_bits_min(least, t->step);
    }
    return least == UINT64_MAX ? 1 : least;
}

void fdri_samples_rounds_begin(uint64_t period_ns)
{
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
    rounds.account = (struct fdri_policies_looks){0};
    rounds.period_ns = period_ns;
    rounds.zero_ns = now;
    rounds.stretch_end = 0;
    rounds.next = 0;
    rounds.random = (now * 0x9E3779B97F4A7C15u) | 1;
    plan(0, 0, 1, 0);
}

void fdri_samples_rounds_add(struct fdri_samples_target *t)
{
    t->step = 1;
    t->periods_accounted = periods_until(fdri_clock_ns(CLOCK_MONOTONIC));
}

bool fdri_samples_rounds_may_work(void) { return fdri_policies_looks_may_work(&rounds.account); }

static bool look_if_due(struct fdri_samples_target *t, uint64_t number)
{
    if (!t->tid || number - t->periods_accounted < t->step) return false;
    if (fdri_samples_look(t, number - t->periods_accounted)) t->periods_accounted = number;
    return true;
}

uint64_t fdri_samples_rounds_look(uint32_t count, uint32_t threads)
{
    uint64_t now = fdri_clock_ns(CLOCK_MONOTONIC);
    uint32_t done = 0;
    if (now < rounds.moment_ns) return rounds.moment_ns;
    uint64_t before_ns = fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t i = 0; i < count && done < rounds.looks; i++) {
        if (rounds.next >= count) rounds.next = 0;
        done += look_if_due(fdri_samples_target(rounds.next++), periods_until(now));
    }
    plan(fdri_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns, done, least_step(count), threads);
    return rounds.moment_ns;
}
