/* SPDX-License-Identifier: MIT */
/* fdr messages: exact totals of messages and collectives by region, by calling region and by epoch. */
#include "tools/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 12, LATER_SHOWN = 40 };

void add_traffic(struct fdr_traffic *to, const struct fdr_traffic *more)
{
    to->sends += more->sends, to->bytes_sent += more->bytes_sent;
    to->receives += more->receives, to->bytes_received += more->bytes_received;
    to->collectives += more->collectives;
    to->collectives_sent += more->collectives_sent, to->collectives_received += more->collectives_received;
}

/* ---- text: the sums of all ranks ---- */

static int order(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int by_name(const void *x, const void *y)
{
    const struct region_sum *a = x, *b = y;
    if (a->caller != b->caller) return a->caller ? -1 : 1;
    return strcmp(a->name, b->name);
}

static uint64_t bytes_of(const struct region_sum *r)
{
    return r->sum.bytes_sent + r->sum.bytes_received + r->sum.collectives_sent + r->sum.collectives_received;
}

static int by_bytes(const void *x, const void *y)
{
    const struct region_sum *a = x, *b = y;
    if (a->caller != b->caller) return a->caller ? -1 : 1;
    int o = order(bytes_of(b), bytes_of(a));
    if (!o)
        o = order(b->sum.sends + b->sum.receives + b->sum.collectives,
                  a->sum.sends + a->sum.receives + a->sum.collectives);
    return o ? o : strcmp(a->name, b->name);
}

/* One row for each name; returns their number. */
static size_t join_ranks(struct region_sum *row, size_t count)
{
    size_t used = 0;
    if (count) qsort(row, count, sizeof *row, by_name);
    for (size_t i = 0; i < count; i++) {
        if (!used || by_name(&row[used - 1], &row[i])) {
            row[used++] = row[i];
            continue;
        }
        add_traffic(&row[used - 1].sum, &row[i].sum);
        row[used - 1].saturated |= row[i].saturated;
    }
    if (used) qsort(row, used, sizeof *row, by_bytes);
    return used;
}

static void print_row(const struct region_sum *r)
{
    char n[3][HUMAN_BYTES], b[4][HUMAN_BYTES];
    printf("%14s %12s %14s %12s %14s %12s %12s  %s%s\n", human_count(n[0], r->sum.sends),
           human_bytes(b[0], r->sum.bytes_sent), human_count(n[1], r->sum.receives),
           human_bytes(b[1], r->sum.bytes_received), human_count(n[2], r->sum.collectives),
           human_bytes(b[2], r->sum.collectives_sent), human_bytes(b[3], r->sum.collectives_received),
           plain_name(r->name), r->saturated ? "  [bytes or more: a sum overflowed 64 bits]" : "");
}

static void print_table(const struct region_sum *row, size_t count, bool all)
{
    size_t most = all ? count : row[0].caller ? SHOWN : LATER_SHOWN;
    printf("\n%14s %12s %14s %12s %14s %12s %12s  %s\n", "sends", "bytes", "receives", "bytes", "collectives", "sent",
           "received", row[0].caller ? "by calling region, exact" : "by region, exact");
    for (size_t i = 0; i < count && i < most; i++) print_row(&row[i]);
    if (count > most) printf("and %zu more: --all\n", count - most);
}

/* How many are in no row. They come from the totals of the run, which do not know regions. */
static struct fdr_traffic missing(const struct job *job)
{
    struct fdr_traffic in = {0}, all = job->recorded;
    for (size_t i = 0; i < job->regions; i++)
        if (!job->region[i].caller) add_traffic(&in, &job->region[i].sum);
    all.sends -= in.sends < all.sends ? in.sends : all.sends;
    all.receives -= in.receives < all.receives ? in.receives : all.receives;
    all.collectives -= in.collectives < all.collectives ? in.collectives : all.collectives;
    return all;
}

static void print_missing(const struct job *job)
{
    struct fdr_traffic m = missing(job);
    char sends[HUMAN_BYTES], receives[HUMAN_BYTES], collectives[HUMAN_BYTES];
    bool any = m.sends || m.receives || m.collectives;
    if (any)
        printf("\n%s sends, %s receives and %s collectives are in no region's row: %s\n", human_count(sends, m.sends),
               human_count(receives, m.receives), human_count(collectives, m.collectives),
               !job->regions       ? "the recording is of a version of fdr that did not count them"
               : job->traffic_lost ? "memory had no room for a row; a larger FDR_BUFFER has"
                                   : "rows are damaged, or events came while the copy was made");
    else if (job->traffic_lost)
        printf("\nsome callers have no row: memory had no room for it; a larger FDR_BUFFER has\n");
}

bool print_regions(const struct job *job, bool all)
{
    struct region_sum *row = calloc(job->regions + 1, sizeof *row);
    if (!row) return false;
    if (job->regions) memcpy(row, job->region, job->regions * sizeof *row);
    size_t count = join_ranks(row, job->regions), callers = 0;
    while (callers < count && row[callers].caller) callers++;
    bool some_caller = callers > 1 || (callers == 1 && strcmp(row[0].name, NO_REGION) != 0);
    if (some_caller) print_table(row, callers, all);
    if (count > callers) print_table(row + callers, count - callers, all);
    print_missing(job);
    free(row);
    return true;
}

/* ---- JSON: each rank by itself ---- */

void set_traffic(json_t *o, const struct fdr_traffic *t)
{
    json_object_set_new(o, "sends", json_u64(t->sends));
    json_object_set_new(o, "bytes_sent", json_u64(t->bytes_sent));
    json_object_set_new(o, "receives", json_u64(t->receives));
    json_object_set_new(o, "bytes_received", json_u64(t->bytes_received));
    json_object_set_new(o, "collectives", json_u64(t->collectives));
    json_object_set_new(o, "collectives_sent", json_u64(t->collectives_sent));
    json_object_set_new(o, "collectives_received", json_u64(t->collectives_received));
}

static json_t *known_rank(uint32_t rank) { return rank == UINT32_MAX ? json_null() : json_u64(rank); }

json_t *regions_json(const struct job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->regions; i++) {
        const struct region_sum *r = &job->region[i];
        json_t *o = json_object();
        json_object_set_new(o, "rank", known_rank(r->rank));
        json_object_set_new(o, "name", r->name == NO_REGION ? json_null() : json_text(r->name));
        json_object_set_new(o, "caller", json_boolean(r->caller));
        json_object_set_new(o, "saturated", json_boolean(r->saturated));
        set_traffic(o, &r->sum);
        json_array_append_new(list, o);
    }
    return list;
}

json_t *missing_json(const struct job *job)
{
    struct fdr_traffic m = missing(job);
    json_t *o = json_object();
    json_object_set_new(o, "sends", json_u64(m.sends));
    json_object_set_new(o, "receives", json_u64(m.receives));
    json_object_set_new(o, "collectives", json_u64(m.collectives));
    json_object_set_new(o, "no_room", json_boolean(job->traffic_lost));
    return o;
}

json_t *epoch_traffic_json(const struct job *job)
{
    const struct fdr_epoch_info *e;
    json_t *list = json_array();
    for (size_t f = 0; f < job->files; f++)
        for (size_t i = 0, n = fdr_epochs(job->file[f].file, &e); i < n; i++) {
            json_t *o = json_object();
            json_object_set_new(o, "rank", known_rank(rank_of_location(&job->file[f], e[i].location)));
            json_object_set_new(o, "location", json_u64(e[i].location));
            json_object_set_new(o, "epoch", json_u64(e[i].index));
            json_object_set_new(o, "from_ns", json_u64(e[i].from_ns));
            json_object_set_new(o, "to_ns", json_u64(e[i].to_ns));
            json_object_set_new(o, "known", json_boolean(e[i].traffic_known));
            if (e[i].traffic_known) set_traffic(o, &e[i].traffic);
            json_array_append_new(list, o);
        }
    return list;
}
