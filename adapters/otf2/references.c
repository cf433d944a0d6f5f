/* SPDX-License-Identifier: MIT */
/* OTF2's references as ids of fdr. Events read them without a lock. */
#include <stdlib.h>
#include <string.h>

#include "adapters/otf2/otf2_adapter.h"
#include "base/atomic.h"

enum { PAGE = 4096 };
struct fdri_otf2_refs_part {
    uint32_t *page[PAGE];
};
#define PART_OF(ref) ((ref) / PAGE / PAGE)
#define PAGE_OF(ref) ((ref) / PAGE % PAGE)

uint32_t fdri_otf2_refs_get(struct fdri_otf2_refs *r, uint32_t ref)
{
    struct fdri_otf2_refs_part *part = fdri_atomic_load_acquire(&r->part[PART_OF(ref)]); /* A:refs */
    uint32_t *page = part ? fdri_atomic_load_acquire(&part->page[PAGE_OF(ref)]) : NULL;  /* A:refs */
    return page ? fdri_atomic_load_acquire(&page[ref % PAGE]) : 0;                       /* A:refs */
}

static uint32_t *page_of(struct fdri_otf2_memory *m, struct fdri_otf2_refs *r, uint32_t ref)
{
    struct fdri_otf2_refs_part *part = fdri_atomic_load_relaxed(&r->part[PART_OF(ref)]);
    if (!part) {
        part = fdri_otf2_take(m, sizeof *part);
        if (!part) return NULL;
        fdri_atomic_store_release(&r->part[PART_OF(ref)], part); /* R:refs */
    }
    uint32_t *page = fdri_atomic_load_relaxed(&part->page[PAGE_OF(ref)]);
    if (!page) {
        page = fdri_otf2_take(m, PAGE * sizeof *page);
        if (!page) return NULL;
        fdri_atomic_store_release(&part->page[PAGE_OF(ref)], page); /* R:refs */
    }
    return page;
}

bool fdri_otf2_refs_set(struct fdri_otf2_memory *m, struct fdri_otf2_refs *r, uint32_t ref, uint32_t id)
{
    uint32_t *page = ref == UINT32_MAX ? NULL : page_of(m, r, ref);
    if (!page) return false;
    fdri_atomic_store_release(&page[ref % PAGE], id); /* R:refs */
    return true;
}

/* The first reference from `ref` on that has an id; UINT32_MAX: none has. */
static uint32_t next(struct fdri_otf2_refs *r, uint32_t ref)
{
    for (; ref < UINT32_MAX; ref++) {
        struct fdri_otf2_refs_part *part = fdri_atomic_load_relaxed(&r->part[PART_OF(ref)]);
        if (!part) ref |= PAGE * PAGE - 1;
        else if (!fdri_atomic_load_relaxed(&part->page[PAGE_OF(ref)])) ref |= PAGE - 1;
        else if (fdri_otf2_refs_get(r, ref)) return ref;
        if (ref == UINT32_MAX) break;
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
