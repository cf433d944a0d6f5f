/* SPDX-License-Identifier: MIT */
/* fdr stats: the table of events without duration, from exact totals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/fast_output.h"
#include "tools/stats.h"

static void out_value(uint32_t type, uint64_t bits)
{
    char text[48];
    double real;
    memcpy(&real, &bits, sizeof real);
    if (type == 2 && real != real) snprintf(text, sizeof text, "nan"); /* the sign of a NaN means nothing */
    else if (type == 2) snprintf(text, sizeof text, "%.6g", real);
    else if (type == 1) snprintf(text, sizeof text, "%lld", (long long)(int64_t)bits);
    else snprintf(text, sizeof text, "%llu", (unsigned long long)bits);
    out_char(' '); /* also if the text is wider than its column */
    out_text_wide(text, 17);
}

static void out_metric_kind(const struct fdr_metric_info *m)
{
    out_text(m->counter ? "  (counter" : "  (gauge");
    if (m->unit[0]) {
        out_text(", ");
        out_cell(m->unit);
    }
    out_char(')');
}

bool points_text(const struct stats_arguments *a, const struct fdr_file *file, const struct fdr_select *select)
{
    struct point_row *rows;
    size_t count;
    char text[HUMAN_BYTES];
    if (!points_from_totals(&rows, &count, file, select)) return false;
    if (count)
        out_text("\n         events               sum               min               max  other events "
                 "(messages, io: bytes)\n");
    size_t shown = shown_rows(a, count);
    for (size_t i = 0; i < shown; i++) {
        out_text_wide(human_count(text, rows[i].events), 15);
        out_value(rows[i].value_type, rows[i].sum);
        out_value(rows[i].value_type, rows[i].min);
        out_value(rows[i].value_type, rows[i].max);
        out_text("  ");
        out_text(fdr_class_name(rows[i].class_));
        out_char(' ');
        if (rows[i].class_ == FDR_IN_IO) out_text(operation_name(rows[i].operation)), out_char(' ');
        out_cell(point_name(file, &rows[i]));
        if (rows[i].class_ == FDR_IN_METRIC) out_metric_kind(fdr_metric_info(file, rows[i].id));
        if (rows[i].at_least)
            out_text(fdr_file_info(file)->totals_lost ? "  [or more: rows of totals are damaged]"
                                                      : "  [or more: a thread may have had no room for it]");
        if (rows[i].saturated)
            out_text(rows[i].value_type == 1 ? "  [the sum is beyond that: it overflowed 64 bits]"
                                             : "  [the sum is that or more: it overflowed 64 bits]");
        out_char('\n');
    }
    more_rows(count, shown);
    free(rows);
    uint64_t without = points_without_row(file, select);
    if (without) {
        out_text(count ? "# " : "\n# ");
        out_text(human_count(text, without));
        out_text(" events without duration are in no sum: there was no room for a row of their kind\n");
    }
    return true;
}
