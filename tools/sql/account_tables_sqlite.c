/* SPDX-License-Identifier: MIT */
/* Tables of what is known of the whole run: totals, the ledger, the log of reductions, epochs. */
#include "tools/sql/sql_cursor.h"

enum { FIRST = SQL_COMMON_COLUMNS };

/* ---- totals ---- */

static void totals_begin(struct sql_cursor *c)
{
    const struct fdr_total *rows = NULL;
    size_t count = fdr_totals(c->file, &rows);
    sql_array(c, rows, count);
}

/* Of points: bits of what kind? */
static enum fdr_value_type type_of(const struct sql_cursor *c, const struct fdr_total *t)
{
    return t->class_ == FDR_IN_METRIC ? fdr_metric_info(c->file, t->id)->type : FDR_VALUE_U64;
}

static void totals_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { LOCATION = FIRST, CLASS, ID, NAME, CALLS, SUM = CALLS + 7, LEAST, GREATEST };
    const struct fdr_total *t = (const struct fdr_total *)c->rows + c->index;
    const uint64_t value[] = {t->calls,  t->untimed, t->inclusive_ns, t->exclusive_ns,
                              t->min_ns, t->max_ns,  t->at_least};
    bool is_point = t->class_ != FDR_IN_REGION;
    switch (number) {
    case LOCATION: sql_number(out, t->location); break;
    case CLASS: sql_text(out, fdr_class_name(t->class_)); break;
    case ID: sql_number(out, t->id); break;
    case NAME: sql_text(out, t->rest ? "[rest]" : fdr_id_name(c->file, t->class_, t->id)); break;
    case SUM:
        if (is_point) sql_value(out, type_of(c, t), t->sum_u);
        break;
    case LEAST:
        if (is_point) sql_value(out, type_of(c, t), t->min_u);
        break;
    case GREATEST:
        if (is_point) sql_value(out, type_of(c, t), t->max_u);
        break;
    default: sql_number(out, value[number - CALLS]); break;
    }
}

/* ---- messages and collectives of regions ---- */

enum { TRAFFIC = 7 };
static uint64_t traffic_value(const struct fdr_traffic *t, int number)
{
    const uint64_t value[TRAFFIC] = {t->sends,
                                     t->bytes_sent,
                                     t->receives,
                                     t->bytes_received,
                                     t->collectives,
                                     t->collectives_sent,
                                     t->collectives_received};
    return value[number];
}

static void traffic_begin(struct sql_cursor *c)
{
    const struct fdr_traffic_total *rows = NULL;
    size_t count = fdr_traffic(c->file, &rows);
    sql_array(c, rows, count);
}

static void traffic_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { LOCATION = FIRST, REGION, NAME, CALLER, SUMS };
    const struct fdr_traffic_total *t = (const struct fdr_traffic_total *)c->rows + c->index;
    bool none = t->region == UINT32_MAX;
    switch (number) {
    case LOCATION: sql_number(out, t->location); break;
    case REGION:
        if (!none) sql_number(out, t->region);
        break;
    case NAME:
        if (!none) sql_text(out, fdr_id_name(c->file, FDR_IN_REGION, t->region));
        break;
    case CALLER: sql_number(out, t->caller); break;
    default: sql_number(out, traffic_value(&t->sum, number - SUMS));
    }
}

/* ---- the ledger ---- */

static void ledger_begin(struct sql_cursor *c)
{
    const struct fdr_ledger_row *rows = NULL;
    size_t count = fdr_ledger(c->file, &rows);
    sql_array(c, rows, count);
}

static void ledger_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    const struct fdr_ledger_row *r = (const struct fdr_ledger_row *)c->rows + c->index;
    const uint64_t value[] = {r->location, 0, r->depth, r->presented, r->kept, r->filtered, r->reduced, r->lost};
    if (number == FIRST + 1) sql_text(out, fdr_class_name(r->class_));
    else sql_number(out, value[number - FIRST]);
}

/* ---- reductions ---- */

static void reductions_begin(struct sql_cursor *c)
{
    const struct fdr_reduction_info *rows = NULL;
    size_t count = fdr_reductions(c->file, &rows);
    sql_array(c, rows, count);
}

static void reductions_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    enum { STEP = FIRST + 2, WHAT };
    const struct fdr_reduction_info *r = (const struct fdr_reduction_info *)c->rows + c->index;
    const uint64_t value[] = {r->location, r->time_ns, 0,        0,        r->events,
                              r->bytes,    r->from_ns, r->to_ns, r->steps, r->gone};
    if (number == STEP) sql_text(out, r->step);
    else if (number == WHAT) sql_text(out, r->what);
    else sql_number(out, value[number - FIRST]);
}

/* ---- epochs ---- */

static void epochs_begin(struct sql_cursor *c)
{
    const struct fdr_epoch_info *rows = NULL;
    size_t count = fdr_epochs(c->file, &rows);
    sql_array(c, rows, count);
}

static void epochs_column(const struct sql_cursor *c, sqlite3_context *out, int number)
{
    const struct fdr_epoch_info *e = (const struct fdr_epoch_info *)c->rows + c->index;
    const uint64_t value[] = {e->location, e->index, e->tier,         e->current,      e->exact,       e->from_ns,
                              e->to_ns,    e->calls, e->inclusive_ns, e->exclusive_ns, e->kept_events, e->bytes};
    enum { OWN = sizeof value / sizeof *value };
    if (number - FIRST < OWN) sql_number(out, value[number - FIRST]);
    else if (e->traffic_known) sql_number(out, traffic_value(&e->traffic, number - FIRST - OWN));
}

const struct sql_table sql_account_tables[5] = {
    {.name = "totals",
     .columns = "location, class, id, name, calls, untimed, inclusive_ns, exclusive_ns, min_ns, max_ns, at_least, sum, "
                "least, greatest",
     .begin = totals_begin,
     .next = sql_next_in_array,
     .column = totals_column},
    {.name = "ledger",
     .columns = "location, class, depth, presented, kept, filtered, reduced, lost",
     .begin = ledger_begin,
     .next = sql_next_in_array,
     .column = ledger_column},
    {.name = "reductions",
     .columns = "location, time_ns, step, what, events, bytes, from_ns, to_ns, steps, gone",
     .begin = reductions_begin,
     .next = sql_next_in_array,
     .column = reductions_column},
    {.name = "epochs",
     .columns =
         "location, epoch, tier, current, exact, from_ns, to_ns, calls, inclusive_ns, exclusive_ns, kept_events, "
         "bytes, sends, bytes_sent, receives, bytes_received, collectives, collectives_sent, collectives_received",
     .begin = epochs_begin,
     .next = sql_next_in_array,
     .column = epochs_column},
    {.name = "traffic",
     .columns = "location, region, name, caller, sends, bytes_sent, receives, bytes_received, collectives, "
                "collectives_sent, collectives_received",
     .begin = traffic_begin,
     .next = sql_next_in_array,
     .column = traffic_column},
};
