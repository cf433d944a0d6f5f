/* SPDX-License-Identifier: MIT */
/* Memory of an archive: small pieces of mapped blocks. A table that grows leaves its old piece behind. */
#include <string.h>
#include <sys/mman.h>

#include "adapters/otf2/otf2_adapter.h"

enum { BLOCK = 256 << 10, ALIGNED = 16 };
struct fdri_otf2_block {
    struct fdri_otf2_block *before;
    size_t used, bytes;
};

static struct fdri_otf2_block *map(struct fdri_otf2_memory *m, size_t least)
{
    size_t bytes = least > BLOCK ? (least + BLOCK - 1) / BLOCK * BLOCK : BLOCK;
    struct fdri_otf2_block *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED) return NULL;
    *b = (struct fdri_otf2_block){m->newest, (sizeof *b + ALIGNED - 1) / ALIGNED * ALIGNED, bytes};
    return m->newest = b;
}

void *fdri_otf2_take(struct fdri_otf2_memory *m, size_t bytes)
{
    struct fdri_otf2_block *b = m->newest;
    bytes = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (!b || b->bytes - b->used < bytes) b = map(m, bytes + sizeof *b + ALIGNED);
    if (!b) return NULL;
    void *piece = (char *)b + b->used;
    b->used += bytes;
    return piece;
}

void fdri_otf2_give_back(struct fdri_otf2_memory *m)
{
    for (struct fdri_otf2_block *b = m->newest, *before; b; b = before) {
        before = b->before;
        munmap(b, b->bytes);
    }
    m->newest = NULL;
}
