/* SPDX-License-Identifier: MIT */
/* Is this a row of totals? The question comes up where neither a whole table nor a check confirms one. Rows and
 * histograms lie mixed, so a piece of a histogram, or noise, may have the key of a row. A row counts only if it
 * agrees with itself and with everything else in the file. */
#include "format/arena/arena.h"
#include "format/classes/class_table.h"
#include "reader/account/account.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KEY_ID(key)   ((key)&0xffffffu)
#define KEY_KIND(key) ((key) >> 24)
#define NO_FLAGS      0xcf8u /* reserved */

bool fdri_account_among_rows(struct fdr_file *f, const struct fdri_file_location *l, uint64_t off, uint64_t bytes)
{
    size_t count, low = 0;
    const struct fdri_file_meta *m = fdri_file_meta_scan(f, FDRI_ARENA_META_ROWS, l->id, &count);
    /* finds the first block that begins before `off`; blocks are sorted downwards */
    for (size_t high = count; low < high;) {
        size_t half = low + (high - low) / 2;
        if (m[half].off > off) low = half + 1;
        else high = half;
    }
    const struct fdri_arena_meta_head *h = low < count ? fdri_file_at(f, m[low].off, sizeof *h) : NULL;
    return h && off > m[low].off && off + bytes <= m[low].off + h->bytes && fdri_file_at(f, off, bytes);
}

static uint32_t type_of(const struct fdri_arena_row *r) { return r->flags >> FDRI_ARENA_ROW_VALUE_SHIFT & 3; }

/* Is the region or kind defined that the row counts? If definitions are lost, it may be one of these. */
static bool defined(const struct fdr_file *f, const struct fdri_arena_row *r)
{
    uint32_t kind = KEY_KIND(r->key), id = KEY_ID(r->key);
    if (r->key == FDRI_ARENA_ROW_KEY_REST || !kind) return true;
    id >>= fdri_classes[fdri_account_row_class(r->key)].id_shift;
    const struct fdri_file_definition *d = fdri_file_definition(f, kind, id);
    if (!d) return id && f->definitions[kind].count < f->sb.def_count[kind] && id <= f->sb.def_count[kind];
    return kind != FDRI_ARENA_DEF_METRIC || (uint32_t)d->metric.type == type_of(r);
}

static double double_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Can the sum be one of that many values between the least and the greatest? The calls are stored before the sum. So
 * after a kill or in a copy, the sum may lack the newest call. */
static bool sum_between(const struct fdri_arena_row *r)
{
    __extension__ typedef unsigned __int128 wide;
    __extension__ typedef __int128 wide_signed;
    bool any_sum = r->flags & FDRI_ARENA_ROW_SATURATED;
    if (type_of(r) == FDRI_ARENA_VALUE_F64) return !(double_of(r->min) > double_of(r->max));
    if (type_of(r) == FDRI_ARENA_VALUE_I64) {
        wide_signed n = r->calls, sum = (int64_t)r->sum;
        if ((int64_t)r->calls < 0 || (int64_t)r->min > (int64_t)r->max) return false;
        return any_sum || (n * (int64_t)r->min <= sum && sum <= n * (int64_t)r->max);
    }
    if (r->min > r->max) return false;
    return any_sum || ((wide)(r->calls - 1) * r->min <= r->sum && r->sum <= (wide)r->calls * r->max);
}

static bool sums_agree(const struct fdri_arena_row *r)
{
    bool region = fdri_account_row_class(r->key) == FDR_IN_REGION;
    if (r->flags & NO_FLAGS || type_of(r) > FDRI_ARENA_VALUE_F64) return false;
    bool timed = region || fdri_classes[fdri_account_row_class(r->key)].timed;
    if ((!timed && r->exclusive) || (!region && r->untimed)) return false;
    if (region && (type_of(r) != FDRI_ARENA_VALUE_U64 || (r->exclusive > r->sum && r->exclusive - r->sum > r->max)))
        return false;
    return r->calls ? sum_between(r) : !(r->sum | r->max | r->histogram);
}

/* Sets *most: an upper bound for the calls of a row of this class. Returns false if no bound is known. */
static bool presented(const struct fdri_file_location *l, uint32_t class_, uint64_t *most)
{
    /* with this flag, the number presented is a lower bound */
    bool doubted = l->block_damaged || l->raw.flags & FDRI_ARENA_LOCATION_ANEW;
    *most = l->settled ? l->presented_in[class_] : l->tail.presented;
    return !doubted && (l->settled ? !l->presented_unsure : l->in_tail);
}

bool fdri_account_counts_plausible(const struct fdr_file *f, const struct fdri_file_location *l, uint64_t counted,
                                   uint64_t calls)
{
    uint64_t before, after, most = 1ull + l->raw.abandoned;
    uint64_t apart = counted > calls ? counted - calls : calls - counted;
    if (apart <= most) return true;
    if (!counted) return false;
    fdr_ledger_bounds(f, l->id, &before, &after);
    return after > before && apart <= most + (after - before);
}

/* Does the row lead to counters, and is each of its calls in one? */
static bool counters_agree(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_row *r)
{
    uint64_t off = fdri_arena_histogram_off(r->histogram), counted = 0;
    uint32_t first = fdri_arena_histogram_first(r->histogram), n = fdri_arena_histogram_count(r->histogram);
    if (!n || n > 64 || first + n > 64 || off % 8 || !fdri_account_among_rows(f, l, off, n * 8ull)) return false;
    if (r->flags & FDRI_ARENA_ROW_NO_HISTOGRAM || fdri_file_is_suspect(f, off, n * 8ull)) return false;
    const uint64_t *count = (const void *)(f->bytes + off);
    for (uint32_t i = 0; i < n; i++)
        if (__builtin_add_overflow(counted, count[i], &counted)) return false;
    return fdri_account_counts_plausible(f, l, counted, r->calls);
}

bool fdri_account_row_plausible(struct fdr_file *f, const struct fdri_file_location *l, const struct fdri_arena_row *r)
{
    uint64_t most, all;
    if (!fdri_account_row_wanted(r) || !sums_agree(r) || !defined(f, r)) return false;
    bool known = presented(l, fdri_account_row_class(r->key), &most);
    if (__builtin_add_overflow(r->calls, r->untimed, &all) || (known && all > most)) return false;
    if (r->histogram) return counters_agree(f, l, r);
    return known && (!r->calls || r->flags & FDRI_ARENA_ROW_NO_HISTOGRAM);
}
