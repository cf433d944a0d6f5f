/* SPDX-License-Identifier: MIT */
/* The rule `iterations` of FDR_FILTER: a call of such a region is an iteration. When it ends it stays with all inside
 * of it, or is rewound with all inside of it. Inside of an iteration no other one begins: the outermost decides.
 *
 * `every N` keeps the 1st, (N+1)th, ... iteration of each region. `differing` keeps the first iteration of each class
 * and those of unusual duration. Two iterations are of one class if they have the same calls and points: regions and
 * counts, in any order. So the signature of a class is a sum over the rows of the thread's totals. Each count is
 * multiplied by a number that belongs to the region. The totals have these counts anyway, so calls inside of an
 * iteration cost nothing. If memory for totals is short, rows move into [rest] and the sum changes: then an iteration
 * stays that need not. */
#include <assert.h>
#include <fdr/fdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "format/arena/arena.h"
#include "format/tallies/tally_table.h"
#include "policies/durations.h"
#include "recorder/memory/memory.h"
#include "recorder/names/names.h"
#include "recorder/names/region_rules.h"
#include "recorder/record/record.h"
#include "recorder/record/ruled_calls.h"
#include "recorder/tally/tally.h"
#include "recorder/thread/arena_place.h"
#include "recorder/thread/thread.h"
#include "recorder/thread/thread_state.h"
#include "recorder/totals/totals.h"

/* Blocks fit the smallest bin, because a full buffer has nothing larger. */
enum { BLOCK_BYTES = 512 - sizeof(struct fdri_arena_slab), HEAD = sizeof(struct fdri_arena_meta_head), CLASSES = 32 };
struct class
{
    uint64_t newest; /* number of its newest iteration */
    struct fdri_policies_durations durations;
};
/* Of one thread. */
struct fdri_record_iterations {
    const struct fdri_names_rule *rule; /* of the open iteration */
    bool keeps;                         /* it stays in any case */
    bool undecided;                     /* ... because it has no mark */
    uint32_t steps;                     /* reduction_steps at its begin */
    uint64_t unbalanced, sum;           /* at its begin */
    uint64_t number;                    /* iterations so far */
    uint32_t class_count, class_off[CLASSES];
    uint64_t signature[CLASSES];
};
static_assert(HEAD + sizeof(struct class) <= BLOCK_BYTES && HEAD + sizeof(struct fdri_record_iterations) <= BLOCK_BYTES,
              "blocks");

static void *block(struct fdri_thread *t, size_t bytes)
{
    uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_FREE, HEAD + (uint32_t)bytes);
    return off ? memset((uint8_t *)fdri_thread_at(t, off) + HEAD, 0, bytes) : NULL;
}

/* ---- counters of the process ---- */

static void count(const struct fdri_names_rule *rule, enum fdri_arena_tally_kind kind, bool a, bool b, bool c)
{
    uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES];
    fdri_tallies_name_key(fdri_names_rule_pattern(rule), key);
    struct fdri_arena_tally *row = fdri_tally_row(kind, key);
    if (row && a) fdri_atomic_add_relaxed(&row->counter[0], (uint64_t)1);
    if (row && b) fdri_atomic_add_relaxed(&row->counter[1], (uint64_t)1);
    if (row && c) fdri_atomic_add_relaxed(&row->counter[2], (uint64_t)1);
}

static void count_end(const struct fdri_names_rule *rule, bool removed, bool undecided)
{
    count(rule, FDRI_ARENA_TALLY_ITERATIONS, !removed, removed, undecided);
}

/* ---- classes ---- */

static uint64_t weight(uint64_t key)
{
    key = (key + 1) * 0x9E3779B97F4A7C15u;
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9u;
    return key ^ key >> 31;
}

/* The sum over all totals rows of the thread. */
static uint64_t sum_of_rows(const struct fdri_thread *t)
{
    uint64_t sum = 0;
    for (uint32_t i = 0, end = 1u << (32 - t->row_shift); i < end; i++) {
        const struct fdri_arena_row *r = fdri_thread_at(t, t->row_slot[i]);
        if (t->row_slot[i]) sum += (r->calls + r->untimed) * weight(r->key);
    }
    return sum;
}

static struct class *class_at(struct fdri_thread *t, uint32_t i)
{
    return (void *)((uint8_t *)fdri_thread_at(t, t->iterations->class_off[i]) + HEAD);
}

/* A place for one more class: a new one, or that of the class whose newest iteration is the oldest. NULL: no room. */
static struct class *place_for_class(struct fdri_thread *t, uint64_t signature)
{
    struct fdri_record_iterations *it = t->iterations;
    uint32_t at = 0;
    if (it->class_count < CLASSES) {
        uint32_t off = fdri_memory_meta(t, FDRI_ARENA_META_FREE, HEAD + sizeof(struct class));
        if (off) it->class_off[it->class_count++] = off;
    }
    if (!it->class_count) return NULL;
    for (uint32_t i = 1; i < it->class_count; i++)
        if (class_at(t, i)->newest < class_at(t, at)->newest) at = i;
    memset(class_at(t, at), 0, sizeof(struct class)); /* the newest place begins with 0, so it is found */
    it->signature[at] = signature;
    return class_at(t, at);
}

/* Counts the iteration in its class. True: it is the first of its class, or of unusual duration; then it is counted as
 * such. */
static bool differs(struct fdri_thread *t, uint64_t signature, uint64_t ns)
{
    struct fdri_record_iterations *it = t->iterations;
    struct class *c = NULL;
    for (uint32_t i = 0; i < it->class_count && !c; i++)
        if (it->signature[i] == signature) c = class_at(t, i);
    bool first = !c, odd = c && fdri_policies_odd_duration(&c->durations, ns);
    if (!c) c = place_for_class(t, signature);
    if (c) {
        c->newest = ++it->number;
        fdri_policies_add_duration(&c->durations, ns);
    }
    if (first || odd) count(it->rule, FDRI_ARENA_TALLY_DIFFERING, first, odd, false);
    return first || odd;
}

/* ---- begin and end ---- */

static bool may_begin(const struct fdri_thread *t)
{
    const struct fdri_arena_location *l = t->loc;
    return !t->iteration_depth && l->depth < t->depth_limit && !l->pause && !(l->flags & FDRI_ARENA_LOCATION_STOPPED);
}

/* Each Nth iteration of this region? */
static bool is_nth(struct fdri_thread *t, fdr_region region, const struct fdri_names_rule *rule)
{
    struct fdri_arena_row *row = fdri_totals_row(t, FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region));
    return rule->count && !fdri_record_ruled_skips(row, FDRI_NAMES_RULE_EVERY, rule->count);
}

uint32_t fdri_record_iteration_begins(struct fdri_thread *t, fdr_region region, const struct fdri_names_rule *rule)
{
    struct fdri_arena_location *l = t->loc;
    if (!may_begin(t)) return 0;
    if (!t->iterations) t->iterations = block(t, sizeof *t->iterations);
    struct fdri_record_iterations *it = t->iterations;
    if (!it) {
        count_end(rule, false, true);
        return 0;
    }
    it->rule = rule;
    it->keeps = is_nth(t, region, rule);
    it->undecided = !it->keeps && !fdri_record_mark_iteration(t);
    it->steps = l->reduction_steps;
    it->unbalanced = l->unbalanced;
    if (!rule->count) it->sum = sum_of_rows(t);
    t->iteration_depth = l->depth + 1;
    return FDRI_ARENA_LEVEL_ITERATION;
}

/* The signature of the iteration that ends. Calls inside that a jump left are part of it. */
static uint64_t signature_of(const struct fdri_thread *t, fdr_region region)
{
    const struct fdri_record_iterations *it = t->iterations;
    uint64_t own = weight(FDRI_TOTALS_KEY(FDRI_ARENA_DEF_REGION, region));
    return sum_of_rows(t) - it->sum + own + (t->loc->unbalanced - it->unbalanced);
}

/* If a handler leaves this function by longjmp, the call is still open, and its next end decides again. */
bool fdri_record_iteration_removed(struct fdri_thread *t, const struct fdri_arena_level *v, uint32_t depth,
                                   uint64_t duration)
{
    struct fdri_record_iterations *it = t->iterations;
    if (depth != t->iteration_depth) return false;
    bool keeps = it->keeps, reduced = t->loc->reduction_steps != it->steps;
    uint64_t ns = (uint64_t)((unsigned __int128)duration * t->to_ns >> 32);
    if (!it->rule->count) keeps = differs(t, signature_of(t, v->region), ns);
    if (reduced) count(it->rule, FDRI_ARENA_TALLY_DIFFERING, false, false, true);
    bool stopped = t->loc->flags & FDRI_ARENA_LOCATION_STOPPED; /* stored events may name calls that were open then */
    bool removed = !keeps && !stopped && fdri_record_rewind_iteration(t);
    fdri_record_unmark_iteration(t);
    t->iteration_depth = 0;
    count_end(it->rule, removed, !keeps && !removed);
    return removed;
}

void fdri_record_iteration_left(struct fdri_thread *t)
{
    if (!t->iteration_depth || t->iteration_depth <= t->loc->depth) return;
    t->iteration_depth = 0;
    fdri_record_unmark_iteration(t);
    count_end(t->iterations->rule, false, true);
}
