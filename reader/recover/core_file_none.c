/* SPDX-License-Identifier: MIT */
/* Without elfutils: core files cannot be read. */
#include <errno.h>
#include <fdr/reader.h>
#include <stdio.h>

int fdr_core_extract(const char *core, const char *out, char *message, size_t message_bytes)
{
    (void)out;
    if (message && message_bytes)
        snprintf(message, message_bytes, "%s: this build does not read core files (elfutils)", core);
    return -ENOTSUP;
}
