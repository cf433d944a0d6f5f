/* SPDX-License-Identifier: MIT */
/* fdr stats --by class, and --by depth without --events: sums of the ledger. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/fast_output.h"
#include "tools/stats.h"

struct account {
    bool used;
    uint64_t presented, kept, filtered, reduced, lost;
};

static void add_account(struct account *to, const struct fdr_ledger_row *row)
{
    to->used = true;
    to->presented += row->presented;
    to->kept += row->kept;
    to->filtered += row->filtered;
    to->reduced += row->reduced;
    to->lost += row->lost;
}

static bool selected(const struct fdr_select *select, uint32_t location)
{
    for (size_t i = 0; i < select->location_count; i++)
        if (select->locations[i] == location) return true;
    return select->locations == NULL;
}

/* Limits the depth: a damaged file must not decide the amount of memory. */
static size_t ledger_key(const struct fdr_ledger_row *row, enum stat_by by)
{
    uint32_t key = by == BY_DEPTH ? row->depth : row->class_;
    return key < DEPTHS_MOST ? key : DEPTHS_MOST;
}

/* Returns accounts[key], which grows with the depths met. */
static struct account *sum_ledger(struct fdr_file *file, const struct fdr_select *select, enum stat_by by,
                                  size_t *count)
{
    const struct fdr_ledger_row *rows;
    size_t n = fdr_ledger(file, &rows), have = 0;
    for (size_t i = 0; i < n; i++) {
        size_t key = ledger_key(&rows[i], by);
        if (key >= have) have = key + 1;
    }
    struct account *accounts = calloc(have + 1, sizeof *accounts);
    for (size_t i = 0; accounts && i < n; i++) {
        if (!selected(select, rows[i].location) || (by == BY_DEPTH && rows[i].class_ != FDR_IN_REGION)) continue;
        add_account(&accounts[ledger_key(&rows[i], by)], &rows[i]);
    }
    *count = have;
    return accounts;
}

static void account_json(const struct account *a)
{
    key_u64("presented", a->presented);
    key_u64("kept", a->kept);
    key_u64("filtered", a->filtered);
    key_u64("reduced", a->reduced);
    key_u64("lost", a->lost);
}

static void point_value_json(const char *key, uint32_t type, uint64_t bits)
{
    double real;
    memcpy(&real, &bits, sizeof real);
    out_text(", \"");
    out_text(key);
    out_text("\": ");
    if (type == 0) out_u64(bits);
    else if (type == 1) out_i64((int64_t)bits);
    else if (real - real == 0) out_f64(real);
    else out_text("null");
}

static void kinds_json(const struct fdr_file *file, const struct point_row *rows, size_t count, uint32_t class_)
{
    const char *before = "";
    out_text(", \"kinds\": [");
    for (size_t i = 0; i < count; i++) {
        const struct point_row *r = &rows[i];
        if (r->class_ != class_) continue;
        out_text(before);
        out_text("{\"id\": ");
        out_u64(r->id);
        out_text(", \"name\": ");
        out_json(point_name(file, r));
        if (class_ == FDR_IN_IO) out_text(", \"operation\": "), out_json(operation_name(r->operation));
        key_u64("events", r->events);
        point_value_json("sum", r->value_type, r->sum);
        point_value_json("min", r->value_type, r->min);
        point_value_json("max", r->value_type, r->max);
        histogram_json(r->has_histogram, r->histogram);
        out_text(r->at_least ? ", \"at_least\": true" : ", \"at_least\": false");
        out_text(r->saturated ? ", \"saturated\": true" : ", \"saturated\": false");
        out_char('}');
        before = ", ";
    }
    out_char(']');
}

/* The end of the rows to show; *used: their number. */
static size_t end_of(const struct stats_arguments *arguments, const struct account *a, size_t count, size_t *used)
{
    size_t end = 0;
    *used = 0;
    for (size_t i = 0; i < count; i++)
        if (a[i].used && (*used)++ < limited(arguments, SIZE_MAX)) end = i + 1;
    return end;
}

static void accounts_json(const struct fdr_file *file, const struct account *a, size_t count, enum stat_by by,
                          const struct point_row *points, size_t point_count)
{
    const char *before = "[\n";
    for (size_t i = 0; i < count; i++) {
        if (!a[i].used) continue;
        out_text(before);
        out_text(by == BY_DEPTH ? "{\"depth\": " : "{\"class\": ");
        if (by == BY_DEPTH) out_u64(i);
        else out_json(fdr_class_name((uint32_t)i));
        if (by == BY_DEPTH) key_u64("calls", a[i].presented);
        account_json(&a[i]);
        if (by == BY_CLASS) kinds_json(file, points, point_count, (uint32_t)i);
        out_char('}');
        before = ",\n";
    }
    out_text(before[0] == '[' ? "[\n]\n" : "\n]\n");
}

static void accounts_text(const struct account *a, size_t count, enum stat_by by, size_t used)
{
    char text[HUMAN_BYTES];
    out_text("# from the ledger: presented = kept + filtered + reduced + lost; calls of the class region, "
             "else events\n");
    out_text("       presented            kept        filtered         reduced            lost  ");
    out_text(by == BY_DEPTH ? "calling depth\n" : "class\n");
    size_t shown = 0;
    for (size_t i = 0; i < count; i++) {
        if (!a[i].used) continue;
        shown++;
        out_text_wide(human_count(text, a[i].presented), 16);
        out_text_wide(human_count(text, a[i].kept), 16);
        out_text_wide(human_count(text, a[i].filtered), 16);
        out_text_wide(human_count(text, a[i].reduced), 16);
        out_text_wide(human_count(text, a[i].lost), 16);
        out_text("  ");
        if (by == BY_DEPTH) out_u64(i);
        else out_text(fdr_class_name((uint32_t)i));
        out_char('\n');
    }
    more_rows(used, shown);
}

int print_accounts(const struct stats_arguments *a, struct fdr_file *file, const struct fdr_select *select)
{
    struct point_row *points = NULL;
    size_t count, point_count = 0;
    struct account *accounts = sum_ledger(file, select, a->by, &count);
    bool good = accounts && points_from_totals(&points, &point_count, file, select);
    size_t used = 0, end = good ? end_of(a, accounts, count, &used) : 0;
    if (good && a->json) accounts_json(file, accounts, end, a->by, points, point_count);
    else if (good) accounts_text(accounts, end, a->by, used);
    if (good && !a->json && a->by == BY_CLASS) good = points_text(a, file, select);
    free(accounts);
    free(points);
    return good ? out_finish() : out_of_memory(a);
}
