/* SPDX-License-Identifier: MIT */
/* The fdr command for tests: FDR_COMMAND, or else that of the build. `./dev test full` builds no command for
 * ThreadSanitizer, because what reads a recording has no threads. */
#ifndef FDRI_TESTS_COMMAND_PATH_H
#define FDRI_TESTS_COMMAND_PATH_H

#include <stdio.h>
#include <stdlib.h>

static inline const char *command_path(void)
{
    static char path[1024];
    const char *build = getenv("FDR_BUILD"), *given = getenv("FDR_COMMAND");
    if (given) return given;
    snprintf(path, sizeof path, "%s/bin/fdr", build ? build : ".");
    return path;
}

#endif
