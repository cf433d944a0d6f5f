/* SPDX-License-Identifier: MIT */
/* fdr info: the table of detail by age. One line per tier; --json has the single epochs. */
#include <stdio.h>

#include "tools/common/verbs.h"
#include "tools/info.h"

enum { LOCATIONS_SHOWN = 4 };

/* Calls of a location that are missing for other reasons than memory. */
struct left_out {
    uint64_t filtered, lost; /* of the timed calls; if only their sum is known, both have it */
    uint64_t untimed;        /* only counted, so they belong to no epoch */
};

/* Calls that the ledger counts as filtered or lost include some that were never timed; the totals count these as
 * untimed. */
static struct left_out left_out_of(struct fdr_file *file, uint32_t location)
{
    const struct fdr_ledger_row *rows;
    const struct fdr_total *totals;
    size_t count = fdr_ledger(file, &rows), total_count = fdr_totals(file, &totals);
    struct left_out o = {0};
    for (size_t i = 0; i < count; i++) {
        if (rows[i].location != location || rows[i].class_ != FDR_IN_REGION) continue;
        o.filtered += rows[i].filtered;
        o.lost += rows[i].lost;
    }
    for (size_t i = 0; i < total_count; i++)
        if (totals[i].location == location && totals[i].class_ == FDR_IN_REGION) o.untimed += totals[i].untimed;
    uint64_t all = o.filtered + o.lost, timed = all > o.untimed ? all - o.untimed : 0;
    if (o.filtered) o.filtered = timed;
    if (o.lost) o.lost = timed;
    return o;
}

static void print_head(const struct fdr_file *file, uint32_t location, bool others, const struct left_out *o)
{
    const char *kept = o->filtered && o->lost ? "all not filtered or lost is kept, of"
                       : o->filtered          ? "every call not filtered is kept, of"
                       : o->lost              ? "every call not lost is kept, of"
                                              : "every call is kept, of";
    const struct fdr_file_info *info = fdr_file_info(file);
    char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES];
    if (others) printf("  location %u %s\n", location, plain_name(location_name(file, location)));
    printf("  %-36sany length  >= %s  >= %s  >= %s\n", kept, human_time(a, info->band_edge_ns[0]),
           human_time(b, info->band_edge_ns[1]), human_time(c, info->band_edge_ns[2]));
    printf("  %-4s %19s %12s %11s %11s %11s %11s %15s %15s %10s\n", "tier", "from", "for", "down to", "down to",
           "down to", "down to", "calls made", "events kept", "bins");
}

/* Returns "all", "depth 7" or "-". */
static const char *depth_text(char *text, uint32_t depth, uint32_t deepest)
{
    if (depth >= deepest) return "all";
    if (depth == 0) return "-";
    snprintf(text, HUMAN_BYTES, "depth %u", depth);
    return text;
}

/* Adds an epoch to the line of its tier. */
static void add(struct fdr_epoch_info *line, const struct fdr_epoch_info *e)
{
    line->to_ns = e->to_ns;
    line->calls += e->calls;
    line->kept_events += e->kept_events;
    line->bytes += e->bytes;
    line->exact &= e->exact;
    for (int b = 0; b < 4; b++)
        if (e->complete_depth[b] < line->complete_depth[b]) line->complete_depth[b] = e->complete_depth[b];
}

/* A + behind the calls means: at least so many. */
static void print_line(const struct fdr_file *file, const struct fdr_epoch_info *e)
{
    char text[HUMAN_BYTES], count[HUMAN_BYTES];
    printf("  %-4u %19s %12s", e->tier, human_since(text, e->from_ns, fdr_file_info(file)->first_ns),
           human_time(count, e->to_ns - e->from_ns));
    for (int b = 0; b < 4; b++) printf(" %11s", depth_text(text, e->complete_depth[b], e->deepest));
    printf(" %15s%c%15s", human_count(count, e->calls), e->exact ? ' ' : '+', human_count(text, e->kept_events));
    printf(" %10s\n", human_bytes(text, e->bytes));
}

static const struct fdr_location_info *location_of(const struct fdr_file *file, uint32_t id)
{
    for (size_t i = 0, n = fdr_location_count(file); i < n; i++)
        if (fdr_location_info(file, i)->id == id) return fdr_location_info(file, i);
    return NULL;
}

/* True if the location went on during the snapshot. */
static bool recorded_during_snapshot(const struct fdr_file *file, uint32_t location)
{
    uint64_t before, after;
    fdr_ledger_bounds(file, location, &before, &after);
    return before != after;
}

/* True if this epoch began after the copy of its location. */
static bool is_later(const struct fdr_file *file, const struct fdr_epoch_info *e)
{
    return recorded_during_snapshot(file, e->location) && e->from_ns >= location_of(file, e->location)->to_ns;
}

static void print_moved(const struct fdr_file *file, const struct fdr_epoch_info *newest)
{
    const struct fdr_location_info *l = location_of(file, newest->location);
    char since[HUMAN_BYTES];
    if (recorded_during_snapshot(file, newest->location) && newest->to_ns > l->to_ns)
        printf("       later than %s: recorded during the copy, and incomplete\n",
               human_since(since, l->to_ns, fdr_file_info(file)->first_ns));
}

/* Prints the stretch that FDR_PIN keeps. */
static void print_pinned(const struct fdr_file *file, uint32_t location)
{
    char from[HUMAN_BYTES], length[HUMAN_BYTES], events[HUMAN_BYTES], bytes[HUMAN_BYTES];
    const struct fdr_location_info *l = location_of(file, location);
    if (!l || !l->pinned_to_ns) return;
    printf("  %-4s %19s %12s %11s %11s %11s %11s %15s %15s %10s\n", "pin",
           human_since(from, l->start_ns, fdr_file_info(file)->first_ns),
           human_time(length, l->pinned_to_ns - l->start_ns), "all", "all", "all", "all", "",
           human_count(events, l->pinned_events), human_bytes(bytes, l->pinned_bytes));
    if (l->pinned_cut)
        printf("       the pinned time ends there: its events filled a quarter of the location's share\n");
}

static void print_left_out(const struct left_out *o)
{
    char text[HUMAN_BYTES];
    uint64_t timed = o->filtered ? o->filtered : o->lost;
    if (timed)
        printf("       of the calls made %s were %s (ledger)\n", human_count(text, timed),
               o->filtered && o->lost ? "filtered or lost"
               : o->filtered          ? "filtered"
                                      : "lost");
    if (o->untimed)
        printf("       besides %s calls that were only counted, without times\n", human_count(text, o->untimed));
}

void print_ages(struct fdr_file *file)
{
    const struct fdr_epoch_info *rows;
    size_t count = fdr_epochs(file, &rows), shown = 0, i = 0;
    bool exact = true;
    if (count == 0) return;
    printf("\ndetail by age (a call is two events, and belongs to the time at which it ended)\n");
    for (size_t end; i < count && shown < LOCATIONS_SHOWN; i = end, shown++) {
        struct left_out o = left_out_of(file, rows[i].location);
        print_head(file, rows[i].location, fdr_location_count(file) > 1, &o);
        for (end = i; end < count && rows[end].location == rows[i].location;) {
            struct fdr_epoch_info line = rows[end++];
            bool later = is_later(file, &line);
            for (; end < count && rows[end].location == line.location && rows[end].tier == line.tier &&
                   is_later(file, &rows[end]) == later;
                 end++)
                add(&line, &rows[end]);
            print_line(file, &line);
            exact &= line.exact;
        }
        print_moved(file, &rows[end - 1]);
        print_pinned(file, rows[i].location);
        print_left_out(&o);
    }
    if (i < count) printf("  (more than %d locations: --json has all)\n", LOCATIONS_SHOWN);
    printf("  totals of each stretch: fdr stats --by epoch%s\n", exact ? "" : "; +: at least that many");
}

json_t *epochs_json(struct fdr_file *file)
{
    const struct fdr_epoch_info *rows;
    size_t count = fdr_epochs(file, &rows);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct fdr_epoch_info *e = &rows[i];
        json_t *o = json_object(), *complete = json_array();
        json_object_set_new(o, "location", json_u64(e->location));
        json_object_set_new(o, "epoch", json_u64(e->index));
        json_object_set_new(o, "tier", json_u64(e->tier));
        json_object_set_new(o, "current", json_boolean(e->current));
        json_object_set_new(o, "from_ns", json_u64(e->from_ns));
        json_object_set_new(o, "to_ns", json_u64(e->to_ns));
        json_object_set_new(o, "exact", json_boolean(e->exact));
        json_object_set_new(o, "calls", json_u64(e->calls));
        json_object_set_new(o, "inclusive_ns", json_u64(e->inclusive_ns));
        json_object_set_new(o, "exclusive_ns", json_u64(e->exclusive_ns));
        json_object_set_new(o, "kept_events", json_u64(e->kept_events));
        json_object_set_new(o, "bytes", json_u64(e->bytes));
        json_object_set_new(o, "deepest", json_u64(e->deepest));
        for (int b = 0; b < 4; b++) json_array_append_new(complete, json_u64(e->complete_depth[b]));
        json_object_set_new(o, "complete_depth", complete);
        json_array_append_new(list, o);
    }
    return list;
}
