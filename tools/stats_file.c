/* SPDX-License-Identifier: MIT */
/* fdr stats --by file: input and output, one row for each file and operation. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/fast_output.h"
#include "tools/common/short_names.h"
#include "tools/stats.h"

static int by_time(const void *a, const void *b)
{
    const struct point_row *x = a, *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? 1 : -1;
    if (x->sum != y->sum) return x->sum < y->sum ? 1 : -1;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->operation < y->operation ? -1 : x->operation > y->operation;
}

static size_t only_io(struct point_row *row, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (row[i].class_ == FDR_IN_IO) row[used++] = row[i];
    return used;
}

static void row_json(const struct fdr_file *file, const struct point_row *r)
{
    out_text("{\"file\": ");
    out_json(point_name(file, r));
    out_text(", \"operation\": ");
    out_json(operation_name(r->operation));
    key_u64("operations", r->events);
    key_u64("bytes", r->sum);
    key_u64("time_ns", r->time_ns);
    key_u64("min_bytes", r->min);
    key_u64("max_bytes", r->max);
    out_text(r->at_least ? ", \"at_least\": true" : ", \"at_least\": false");
    out_text(r->saturated ? ", \"saturated\": true" : ", \"saturated\": false");
    histogram_json(r->has_histogram, r->histogram);
    out_char('}');
}

static void row_text(const struct fdr_file *file, const struct point_row *r, uint64_t total)
{
    char text[HUMAN_BYTES];
    out_time(r->time_ns);
    out_share(r->time_ns, total);
    out_text_wide(human_count(text, r->events), 15);
    out_text_wide(human_count(text, r->sum), 19);
    out_text_wide(human_count(text, r->events ? r->sum / r->events : 0), 14);
    out_text_wide(human_count(text, r->max), 14);
    out_text("  ");
    out_text(operation_name(r->operation));
    out_spaces((unsigned)(7 - strlen(operation_name(r->operation))));
    out_cell(point_name(file, r));
    if (r->at_least) out_text("  [or more: a thread may have had no room for it, or rows are damaged]");
    if (r->saturated) out_text("  [or more: a sum overflowed 64 bits]");
    out_char('\n');
}

int print_files(const struct stats_arguments *a, const struct fdr_file *file, const struct fdr_select *select)
{
    struct point_row *row;
    size_t count;
    uint64_t total = 0;
    if (!points_from_totals(&row, &count, file, select)) return out_of_memory(a);
    count = only_io(row, count);
    qsort(row, count, sizeof *row, by_time);
    for (size_t i = 0; i < count; i++) add_time(&total, row[i].time_ns);
    uint64_t without = points_without_row(file, select);
    if (a->json) out_char('[');
    else if (count)
        out_text(without ? "# totals of the whole run" : "# exact totals of the whole run"),
            out_text("; time from begin to end of each operation\n        time    share"
                     "      operations              bytes          mean          most  operation and file\n");
    else out_text("# no input or output was recorded (libfdr-io records that of the C library: docs/IO.md)\n");
    for (size_t i = 0; i < limited(a, count); i++) {
        if (a->json) out_text(i ? ",\n" : "\n"), row_json(file, &row[i]);
        else row_text(file, &row[i], total);
    }
    if (a->json) out_text("\n]\n");
    else more_rows(count, limited(a, count));
    free(row);
    int status = out_finish();
    if (without)
        complain("%s: %llu events without duration are in no sum: there was no room for a row of their kind", a->path,
                 (unsigned long long)without);
    return status;
}
