/* SPDX-License-Identifier: MIT */
/* The table of all exporters, and the two of them that have functions of their own. */
#include "convert/exporters.h"

const struct fdr_exporter *fdr_exporter(size_t index)
{
#define ROW(name) &fdri_convert_##name,
    static const struct fdr_exporter *const all[] = {FDRI_CONVERT_EXPORTERS(ROW)};
#undef ROW
    return index < sizeof all / sizeof *all ? all[index] : NULL;
}

int fdr_export_chrome(struct fdr_file *const *files, size_t count, const struct fdr_select *select,
                      const char *out_path)
{
    return fdri_convert_chrome.run(files, count, select, NULL, out_path);
}

int fdr_export_folded(struct fdr_file *const *files, size_t count, const struct fdr_select *select,
                      const char *out_path)
{
    return fdri_convert_folded.run(files, count, select, NULL, out_path);
}
