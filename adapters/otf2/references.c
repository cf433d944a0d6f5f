/* SPDX-License-Identifier: MIT */
/* OTF2's references as ids of fdr. Events read them without a lock. */
#include <stdlib.h>
#include <string.h>

#include "adapters/otf2/otf2_adapter.h"
#include "base/atomic.h"

enum { PAGE = 4096 };

uint32_t fdri_otf2_refs_get(struct fdri_otf2_refs *r, uint32_t ref)
{
    if (ref / PAGE >= FDRI_OTF2_PAGES) return 0;
    uint32_t *page = fdri_atomic_load_acquire(&r->page[ref / PAGE]); /* A:refs */
    return page ? fdri_atomic_load_acquire(&page[ref % PAGE]) : 0;   /* A:refs */
}

bool fdri_otf2_refs_set(struct fdri_otf2_refs *r, uint32_t ref, uint32_t id)
{
    if (ref / PAGE >= FDRI_OTF2_PAGES) return false;
    uint32_t *page = fdri_atomic_load_relaxed(&r->page[ref / PAGE]);
    if (!page) {
        page = calloc(PAGE, sizeof *page);
        if (!page) return false;
        fdri_atomic_store_release(&r->page[ref / PAGE], page); /* R:refs */
    }
    fdri_atomic_store_release(&page[ref % PAGE], id); /* R:refs */
    return true;
}

/* The first reference from `ref` on that has an id; UINT32_MAX: none has. */
static uint32_t next(struct fdri_otf2_refs *r, uint32_t ref)
{
    for (; ref < PAGE * FDRI_OTF2_PAGES; ref++) {
        if (!fdri_atomic_load_relaxed(&r->page[ref / PAGE])) ref |= PAGE - 1;
        else if (fdri_otf2_refs_get(r, ref)) return ref;
    }
    return UINT32_MAX;
}

uint32_t *fdri_otf2_refs_inverse(struct fdri_otf2_refs *r, uint32_t *count)
{
    uint32_t most = 0;
    for (uint32_t ref = next(r, 0); ref != UINT32_MAX; ref = next(r, ref + 1))
        if (fdri_otf2_refs_get(r, ref) > most) most = fdri_otf2_refs_get(r, ref);
    uint32_t *inverse = malloc((most + 1) * sizeof *inverse);
    if (!inverse) return NULL;
    memset(inverse, 0xff, (most + 1) * sizeof *inverse);
    for (uint32_t ref = next(r, 0); ref != UINT32_MAX; ref = next(r, ref + 1))
        inverse[fdri_otf2_refs_get(r, ref)] = ref;
    *count = most + 1;
    return inverse;
}

void fdri_otf2_refs_free(struct fdri_otf2_refs *r)
{
    for (int i = 0; i < FDRI_OTF2_PAGES; i++) free(r->page[i]);
}
