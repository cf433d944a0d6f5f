/* SPDX-License-Identifier: MIT */
/* The table of all exporters, and the two of them that have functions of their own. */
#include "convert/exporters.h"

#include <errno.h>
#include <stdlib.h>

const struct fdr_exporter *fdr_exporter(size_t index)
{
#define ROW(name) &fdri_convert_##name,
    static const struct fdr_exporter *const all[] = {FDRI_CONVERT_EXPORTERS(ROW)};
#undef ROW
    return index < sizeof all / sizeof *all ? all[index] : NULL;
}

/* The same selection of each file. */
static int run(const struct fdr_exporter *format, struct fdr_file *const *files, size_t count,
               const struct fdr_select *select, const char *out_path)
{
    struct fdr_select *each = select ? malloc((count + 1) * sizeof *each) : NULL;
    if (select && !each) return -ENOMEM;
    for (size_t i = 0; each && i < count; i++) each[i] = *select;
    int status = format->run(files, count, each, NULL, out_path);
    free(each);
    return status;
}

int fdr_export_chrome(struct fdr_file *const *files, size_t count, const struct fdr_select *select,
                      const char *out_path)
{
    return run(&fdri_convert_chrome, files, count, select, out_path);
}

int fdr_export_folded(struct fdr_file *const *files, size_t count, const struct fdr_select *select,
                      const char *out_path)
{
    return run(&fdri_convert_folded, files, count, select, out_path);
}
