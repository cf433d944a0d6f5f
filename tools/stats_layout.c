/* SPDX-License-Identifier: MIT */
/* fdr stats: how a table of regions fits its terminal. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/fast_output.h"
#include "tools/common/short_names.h"
#include "tools/common/terminal.h"
#include "tools/stats.h"

/* The folder that the files of all rows are in. */
static size_t shared_folder(const struct fdr_file *file, const struct stat_rows *rows, size_t shown)
{
    const char *first = NULL;
    size_t bytes = 0, files = 0;
    for (size_t i = 0; i < shown; i++) {
        const char *path = fdr_definition(file, FDR_REGION_DEFINITION, rows->row[i].id)->file;
        const char *slash = rows->row[i].rest ? NULL : strrchr(path, '/');
        if (rows->row[i].rest || !path[0]) continue;
        size_t own = slash ? (size_t)(slash - path) + 1 : 0, same = 0;
        if (!first) bytes = own, first = path;
        while (same < bytes && same < own && path[same] == first[same]) same++;
        while (same && first[same - 1] != '/') same--;
        bytes = same;
        files++;
    }
    return files > 1 && bytes > 1 ? bytes : 0;
}

struct layout layout_of(const struct stats_arguments *a, const struct fdr_file *file, const struct stat_rows *rows,
                        size_t shown)
{
    enum { WIDE = 150, NARROW_FIGURES = 74, FIGURES = 100 };
    unsigned columns = table_columns();
    if (a->by != BY_REGION) return (struct layout){0};
    struct layout l = {.narrow = columns && columns < WIDE};
    if (columns) l.name = columns - (l.narrow ? NARROW_FIGURES : FIGURES);
    if (columns && columns < NARROW_FIGURES + 20) l.name = 20;
    if (!l.narrow) l.folder_bytes = shared_folder(file, rows, shown);
    return l;
}

void region_label(const struct fdr_file *file, const struct stat_row *r, const struct layout *layout)
{
    char name[4 * 1000 + 4];
    const struct fdr_definition *d = fdr_definition(file, FDR_REGION_DEFINITION, r->id);
    const char *shown = r->rest ? "[rest]" : shown_region(file, r->id);
    out_cell(layout->name ? fit(name, shown, layout->name) : shown);
    if (r->rest || !d->file[0] || layout->narrow) return;
    out_text("  (");
    out_cell(d->file + layout->folder_bytes);
    if (d->line) out_char(':'), out_u64(d->line);
    out_char(')');
}

void folder_line(const struct fdr_file *file, const struct stat_rows *rows, const struct layout *layout)
{
    const char *path = "";
    for (size_t i = 0; layout->folder_bytes && !*path; i++)
        if (!rows->row[i].rest) path = fdr_definition(file, FDR_REGION_DEFINITION, rows->row[i].id)->file;
    char *folder = *path ? strndup(path, layout->folder_bytes) : NULL;
    if (!folder) return;
    out_text("# files are in ");
    out_cell(folder);
    out_char('\n');
    free(folder);
}
