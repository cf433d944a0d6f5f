/* SPDX-License-Identifier: MIT */
/* Functions that the C library for WebAssembly lacks. */
#include <stddef.h>

int mprotect(void *address, size_t bytes, int protection);

/* Memory has no protection here; the reader seals pages only to find mistakes of its own. */
int mprotect(void *address, size_t bytes, int protection)
{
    (void)address;
    (void)bytes;
    (void)protection;
    return 0;
}
