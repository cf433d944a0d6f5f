/* SPDX-License-Identifier: MIT */
/* fdr sql, in a build without SQLite. */
#include "tools/common/verbs.h"

int verb_sql(int argc, char **argv)
{
    (void)argc, (void)argv;
    complain("sql: this build of fdr lacks SQLite");
    return COULD_NOT;
}
