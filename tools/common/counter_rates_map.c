/* SPDX-License-Identifier: MIT */
/* Small hash maps from 32-bit keys: time spent per region, and rates per counter and key. */
#include <stdlib.h>
#include <string.h>

#include "tools/common/counter_rates.h"

static uint32_t place(uint64_t key, uint32_t log2) { return (uint32_t)((key * 0x9E3779B97F4A7C15u) >> (64 - log2)); }

/* ---- time spent ---- */

static bool spent_grow(struct spent_map *m)
{
    struct spent_map wider = {NULL, m->slot ? m->log2 + 1 : 5, 0};
    wider.slot = calloc((size_t)1 << wider.log2, sizeof *wider.slot);
    if (!wider.slot) return false;
    for (uint32_t i = 0; m->slot && i < 1u << m->log2; i++)
        if (m->slot[i].used) *spent_at(&wider, m->slot[i].key) = m->slot[i];
    free(m->slot);
    *m = wider;
    return true;
}

struct spent *spent_at(struct spent_map *m, uint32_t key)
{
    if ((!m->slot || m->count >= (1u << m->log2) / 2) && !spent_grow(m)) return NULL;
    uint32_t mask = (1u << m->log2) - 1, i = place(key, m->log2);
    while (m->slot[i].used && m->slot[i].key != key) i = (i + 1) & mask;
    if (!m->slot[i].used) {
        m->slot[i] = (struct spent){.key = key, .used = true};
        m->count++;
    }
    return &m->slot[i];
}

void spent_clear(struct spent_map *m)
{
    if (m->slot && m->count) memset(m->slot, 0, sizeof *m->slot << m->log2);
    m->count = 0;
}

void spent_free(struct spent_map *m)
{
    free(m->slot);
    *m = (struct spent_map){0};
}

/* ---- results ---- */

static bool rate_grow(struct rate_map *m)
{
    uint32_t log2 = m->slot ? m->log2 + 1 : 6, mask = (1u << log2) - 1;
    uint32_t *slot = calloc((size_t)1 << log2, sizeof *slot);
    struct rate_row *row = slot ? realloc(m->row, ((size_t)1 << log2) / 2 * sizeof *row) : NULL;
    if (!row) {
        free(slot);
        return false;
    }
    for (size_t k = 0; k < m->count; k++) {
        uint32_t i = place((uint64_t)row[k].counter << 32 | row[k].key, log2);
        while (slot[i]) i = (i + 1) & mask;
        slot[i] = (uint32_t)k + 1;
    }
    free(m->slot);
    *m = (struct rate_map){row, slot, log2, m->count, ((size_t)1 << log2) / 2};
    return true;
}

struct rate *rate_at(struct rate_map *m, uint32_t counter, uint32_t key)
{
    if (m->count == m->room && !rate_grow(m)) return NULL;
    uint32_t mask = (1u << m->log2) - 1, i = place((uint64_t)counter << 32 | key, m->log2);
    for (; m->slot[i]; i = (i + 1) & mask) {
        struct rate_row *r = &m->row[m->slot[i] - 1];
        if (r->counter == counter && r->key == key) return &r->rate;
    }
    m->row[m->count] = (struct rate_row){.counter = counter, .key = key};
    m->slot[i] = (uint32_t)++m->count;
    return &m->row[m->count - 1].rate;
}

void rate_map_free(struct rate_map *m)
{
    free(m->slot);
    free(m->row);
    *m = (struct rate_map){0};
}
