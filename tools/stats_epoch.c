/* SPDX-License-Identifier: MIT */
/* fdr stats --by epoch: exact totals of each epoch, also of those whose calls were given back. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/fast_output.h"
#include "tools/common/short_names.h"
#include "tools/stats.h"

static bool wanted(const struct fdr_select *s, uint32_t location)
{
    for (size_t i = 0; i < s->location_count; i++)
        if (s->locations[i] == location) return true;
    return s->locations == NULL;
}

static bool overlaps(const struct fdr_select *s, const struct fdr_epoch_info *e)
{
    return wanted(s, e->location) && (!s->to_ns || e->from_ns < s->to_ns) && (!s->from_ns || e->to_ns > s->from_ns);
}

static bool total_selected(const struct fdr_select *s, const struct fdr_epoch_total *t)
{
    return !s->regions || (!t->rest && t->region < s->region_count && s->regions[t->region]);
}

static int by_exclusive(const void *a, const void *b)
{
    const struct fdr_epoch_total *x = a, *y = b;
    if (x->rest != y->rest) return x->rest ? 1 : -1;
    if (x->exclusive_ns != y->exclusive_ns) return x->exclusive_ns < y->exclusive_ns ? 1 : -1;
    return x->region < y->region ? -1 : x->region > y->region;
}

/* With a selection of regions, the rest is shown only if one of them has no exact row beside it. */
static bool rest_matters(const struct fdr_select *s, const struct fdr_epoch_total *rows, size_t count)
{
    size_t exact = 0;
    for (size_t i = 0; i < count; i++) exact += !rows[i].rest && !rows[i].at_least;
    return exact < chosen_regions(s);
}

/* Stores the totals of one epoch in `rows`, in order; returns their number. */
static size_t rows_of(const struct fdr_select *s, const struct fdr_epoch_info *e, const struct fdr_epoch_total *all,
                      size_t count, struct fdr_epoch_total *rows)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].location == e->location && all[i].epoch == e->index && (all[i].rest || total_selected(s, &all[i])))
            rows[n++] = all[i];
    qsort(rows, n, sizeof *rows, by_exclusive);
    return n && rows[n - 1].rest && !rest_matters(s, rows, n) ? n - 1 : n;
}

static bool row_selected(const struct fdr_select *s, const struct fdr_total *t)
{
    return !s->regions || (!t->rest && t->id < s->region_count && s->regions[t->id]);
}

/* Adds up the untimed calls of one location, whose rows are adjacent from `t` on; returns the number of its rows.
 * *or_more: the rest may contain untimed calls of a selected region. */
static size_t untimed_in(const struct fdr_select *s, const struct fdr_total *t, const struct fdr_total *end,
                         uint64_t *sum, bool *or_more)
{
    size_t n = 0, exact = 0;
    bool in_rest = false;
    for (; t + n < end && t[n].location == t->location; n++) {
        if (t[n].class_ != FDR_IN_REGION) continue;
        bool known = row_selected(s, &t[n]);
        if (known) *sum += t[n].untimed;
        exact += known && !t[n].at_least;
        in_rest |= !known && t[n].rest && (t[n].untimed || t[n].at_least);
    }
    *or_more |= in_rest && exact < chosen_regions(s);
    return n;
}

/* The number of calls only counted, by a filter or because the stack was too deep, so they belong to no epoch. location
 * UINT32_MAX: of all selected locations. */
static uint64_t untimed_calls(const struct fdr_file *file, const struct fdr_select *s, uint32_t location, bool *or_more)
{
    const struct fdr_total *t;
    uint64_t sum = 0;
    size_t count = fdr_totals(file, &t);
    const struct fdr_total *end = t + count;
    while (t < end) {
        bool asked = wanted(s, t->location) && (location == UINT32_MAX || t->location == location);
        uint64_t its = 0;
        bool more = false;
        t += untimed_in(s, t, end, &its, &more);
        sum += asked ? its : 0;
        *or_more |= asked && more;
    }
    return sum;
}

/* ---- text ---- */

static void untimed_line(const struct fdr_file *file, const struct fdr_select *s)
{
    char text[HUMAN_BYTES];
    bool or_more = false;
    uint64_t calls = untimed_calls(file, s, UINT32_MAX, &or_more);
    if (!calls && !or_more) return;
    out_text("# besides ");
    out_text(human_count(text, calls));
    out_text(or_more ? " or more" : "");
    out_text(" calls of the whole run that were only counted, without times\n");
}

static bool has_epochs(const struct fdr_epoch_info *epochs, size_t count, uint32_t location)
{
    for (size_t i = 0; i < count; i++)
        if (epochs[i].location == location) return true;
    return false;
}

/* Names the locations without epochs: [ended], which adds up ended threads, and threads that had too little memory. */
static void print_without_epochs(const struct fdr_file *file, const struct fdr_select *s,
                                 const struct fdr_epoch_info *epochs, size_t count, bool json)
{
    char text[HUMAN_BYTES], line[200];
    const struct fdr_total *t;
    uint64_t calls = 0;
    size_t n = fdr_totals(file, &t), locations = 0;
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t its = 0;
        for (end = i; end < n && t[end].location == t[i].location; end++)
            its += t[end].class_ == FDR_IN_REGION && row_selected(s, &t[end]) ? t[end].calls : 0;
        if (!its || !wanted(s, t[i].location) || has_epochs(epochs, count, t[i].location)) continue;
        calls += its;
        locations++;
    }
    if (!locations) return;
    snprintf(line, sizeof line,
             "and %s calls of %zu location%s without epochs (threads that ended, or had little memory): fdr stats has "
             "their totals",
             human_count(text, calls), locations, locations == 1 ? "" : "s");
    if (json) {
        complain("%s", line);
        return;
    }
    out_text("# ");
    out_text(line);
    out_text("\n");
}

static void epoch_line(const struct fdr_file *file, const struct fdr_epoch_info *e)
{
    char text[HUMAN_BYTES];
    uint64_t first = fdr_file_info(file)->first_ns;
    out_text("\nlocation ");
    out_location(file, e->location);
    out_text(", from ");
    out_text(human_since(text, e->from_ns, first));
    out_text(" to ");
    out_text(human_since(text, e->to_ns, first));
    out_text(" (");
    out_text(human_time(text, e->to_ns - e->from_ns));
    out_text(e->current ? ", still going on): " : "): ");
    out_text(human_count(text, e->calls));
    out_text(e->exact ? " calls ended, " : " calls or more ended, ");
    out_text(human_count(text, e->kept_events));
    out_text(" events kept\n");
}

static void out_counted(const char *before, uint64_t count, const char *what, uint64_t bytes, const char *after)
{
    char text[HUMAN_BYTES];
    out_text(before);
    out_text(human_count(text, count));
    out_text(what);
    out_text(human_bytes(text, bytes));
    out_text(after);
}

static bool has_messages(const struct fdr_file *file, uint32_t location)
{
    const struct fdr_total *t;
    for (size_t i = 0, n = fdr_totals(file, &t); i < n; i++)
        if (t[i].location == location && (t[i].class_ == FDR_IN_MESSAGE || t[i].class_ == FDR_IN_COLLECTIVE))
            return true;
    return false;
}

/* Messages and collectives, if there were any. */
static void traffic_line(const struct fdr_file *file, const struct fdr_epoch_info *e)
{
    const struct fdr_traffic *t = &e->traffic;
    if (!e->traffic_known && has_messages(file, e->location))
        out_text("  messages and collectives: not known (no room, a thread that went on, or an older recording)\n");
    if (!e->traffic_known || !(t->sends | t->receives | t->collectives)) return;
    out_counted("  ", t->sends, " messages sent (", t->bytes_sent, "), ");
    out_counted("", t->receives, " received (", t->bytes_received, "), ");
    out_counted("", t->collectives, " collectives (", t->collectives_sent, " sent, ");
    char text[HUMAN_BYTES];
    out_text(human_bytes(text, t->collectives_received));
    out_text(" received)\n");
}

static void total_line(const struct fdr_file *file, const struct fdr_epoch_total *t, uint64_t all, bool some)
{
    char text[HUMAN_BYTES];
    out_time(t->exclusive_ns);
    out_share(t->exclusive_ns, all);
    out_char(' ');
    out_time(t->inclusive_ns);
    out_text_wide(human_count(text, t->calls), 15);
    out_char(' ');
    out_time(t->inclusive_ns / t->calls);
    out_char(' ');
    out_cell(t->rest ? "[all others]" : shown_region(file, t->region));
    if (t->rest && some) out_text("  [all regions without an exact row; selected regions may be among them]");
    if (t->at_least) out_text("  [or more: some may be among the others]");
    out_char('\n');
}

static void epoch_text(const struct stats_arguments *a, const struct fdr_file *file, const struct fdr_epoch_info *e,
                       const struct fdr_epoch_total *rows, size_t count)
{
    size_t most = limited(a, count);
    epoch_line(file, e);
    traffic_line(file, e);
    if (count) out_text("   exclusive    share    inclusive           calls         mean  region\n");
    for (size_t i = 0; i < most; i++) total_line(file, &rows[i], e->exclusive_ns, a->selection.region_count > 0);
    more_rows(count, most);
}

/* ---- JSON ---- */

static void traffic_json(const struct fdr_epoch_info *e)
{
    const struct fdr_traffic *t = &e->traffic;
    out_text(e->traffic_known ? ", \"messages\": {\"sends\": " : ", \"messages\": null");
    if (!e->traffic_known) return;
    out_u64(t->sends);
    key_u64("bytes_sent", t->bytes_sent);
    key_u64("receives", t->receives);
    key_u64("bytes_received", t->bytes_received);
    key_u64("collectives", t->collectives);
    key_u64("collectives_sent", t->collectives_sent);
    key_u64("collectives_received", t->collectives_received);
    out_text("}");
}

static void epoch_json(const struct stats_arguments *a, const struct fdr_file *file, const struct fdr_select *s,
                       const struct fdr_epoch_info *e, const struct fdr_epoch_total *rows, size_t count)
{
    bool or_more = false;
    uint64_t besides = untimed_calls(file, s, e->location, &or_more);
    out_text("{\"location\": ");
    out_location_json(file, e->location);
    key_u64("epoch", e->index);
    key_u64("tier", e->tier);
    out_text(e->current ? ", \"current\": true" : ", \"current\": false");
    out_text(e->exact ? ", \"exact\": true" : ", \"exact\": false");
    key_u64("from_ns", e->from_ns);
    key_u64("to_ns", e->to_ns);
    key_u64("calls", e->calls);
    key_u64("inclusive_ns", e->inclusive_ns);
    key_u64("exclusive_ns", e->exclusive_ns);
    key_u64("kept_events", e->kept_events);
    key_u64("location_untimed", besides); /* of the location, in no epoch */
    out_text(or_more ? ", \"untimed_at_least\": true" : ", \"untimed_at_least\": false");
    traffic_json(e);
    out_text(", \"regions\": [");
    for (size_t i = 0; i < limited(a, count); i++) {
        const struct fdr_epoch_total *t = &rows[i];
        out_text(i ? ",\n  {\"id\": " : "\n  {\"id\": ");
        if (t->rest) out_text("null");
        else out_u64(t->region);
        out_text(", \"name\": ");
        out_json(t->rest ? "[all others]" : region_name(file, t->region));
        key_u64("calls", t->calls);
        key_u64("inclusive_ns", t->inclusive_ns);
        key_u64("exclusive_ns", t->exclusive_ns);
        out_text(t->rest ? ", \"rest\": true" : ", \"rest\": false");
        out_text(t->at_least ? ", \"at_least\": true}" : ", \"at_least\": false}");
    }
    out_text("]}");
}

int print_epochs(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select)
{
    const struct fdr_epoch_info *epochs;
    const struct fdr_epoch_total *totals;
    size_t count = fdr_epochs(file, &epochs), total_count = fdr_epoch_totals(file, &totals);
    struct fdr_epoch_total *rows = malloc((total_count + 1) * sizeof *rows);
    const char *before = "[\n";
    if (!rows) return out_of_memory(a);
    const struct fdr_total *whole_run;
    fdr_totals(file, &whole_run); /* so that the damage to it is known */
    bool exact = !fdr_file_info(file)->totals_lost;
    if (!a->json && !count)
        out_text("# no epochs here: they come with the strategy telescope, once a thread has recorded enough\n");
    if (!a->json && count) {
        out_text(exact ? "# exact totals" : "# totals (without damaged rows)");
        out_text(" of each stretch of time, kept or not; a call belongs to the one in which it ended\n");
    }
    if (!a->json && count) untimed_line(file, select);
    if (count) print_without_epochs(file, select, epochs, count, a->json);
    for (size_t i = 0; i < count; i++) {
        if (!overlaps(select, &epochs[i])) continue;
        size_t n = rows_of(select, &epochs[i], totals, total_count, rows);
        if (a->json) {
            out_text(before);
            before = ",\n";
        }
        if (a->json) epoch_json(a, file, select, &epochs[i], rows, n);
        else epoch_text(a, file, &epochs[i], rows, n);
    }
    if (a->json) out_text(before[0] == '[' ? "[\n]\n" : "\n]\n");
    free(rows);
    return out_finish();
}
