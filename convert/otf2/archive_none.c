/* SPDX-License-Identifier: MIT */
/* OTF2 archives, in a build without OTF2's library. */
#include <errno.h>

#include "convert/exporters.h"

static int run(struct fdr_file *const *files, size_t count, const struct fdr_select *select, const char *const *value,
               const char *out_path)
{
    (void)files, (void)count, (void)select, (void)value, (void)out_path;
    return -ENOTSUP;
}

const struct fdr_exporter fdri_convert_otf2 = {
    .name = "otf2",
    .help = "an OTF2 archive, a directory: Vampir, Scalasca, otf2-print",
    .call_bytes = 24,
    .directory = true,
    .run = run,
};
