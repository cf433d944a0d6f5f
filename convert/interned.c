/* SPDX-License-Identifier: MIT */
/* Numbers for keys: a hash table with open addressing, at most half full, over one array of bytes. */
#include "convert/interned.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_of(const void *key, size_t bytes)
{
    const unsigned char *c = key;
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < bytes; i++) h = (h ^ c[i]) * 0x100000001B3u;
    return (uint32_t)(h ^ h >> 32);
}

/* The slot of this key, or the free one where it belongs. */
static size_t slot_of(const struct fdri_convert_interned *t, const void *key, size_t bytes, uint32_t hash)
{
    size_t i = hash & (t->slots - 1);
    for (; t->slot[i]; i = (i + 1) & (t->slots - 1)) {
        const struct fdri_convert_interned_key *k = &t->key[t->slot[i] - 1];
        if (k->hash == hash && k->count == bytes && memcmp(t->bytes + k->at, key, bytes) == 0) break;
    }
    return i;
}

static bool more_slots(struct fdri_convert_interned *t)
{
    size_t slots = t->slots ? t->slots * 2 : 256;
    uint32_t *slot = calloc(slots, sizeof *slot);
    if (!slot) return false;
    for (uint32_t i = 0; i < t->count; i++) {
        size_t at = t->key[i].hash & (slots - 1);
        while (slot[at]) at = (at + 1) & (slots - 1);
        slot[at] = i + 1;
    }
    free(t->slot);
    t->slot = slot;
    t->slots = slots;
    return true;
}

static bool room_for(struct fdri_convert_interned *t, size_t bytes)
{
    if (t->count * 2 >= t->slots && !more_slots(t)) return false;
    if (t->count == t->room) {
        struct fdri_convert_interned_key *key = realloc(t->key, t->slots * sizeof *key);
        if (!key) return false;
        t->key = key;
        t->room = t->slots;
    }
    if (t->bytes_room - t->used <= bytes) {
        size_t more = ((t->bytes_room + bytes) * 2 + 4096) & ~(size_t)7;
        char *all = realloc(t->bytes, more);
        if (!all) return false;
        t->bytes = all;
        t->bytes_room = more;
    }
    return true;
}

uint32_t fdri_convert_interned_find(const struct fdri_convert_interned *t, const void *key, size_t bytes)
{
    uint32_t place = t->slots ? t->slot[slot_of(t, key, bytes, hash_of(key, bytes))] : 0;
    return place ? place - 1 : FDRI_CONVERT_NO_NUMBER;
}

uint32_t fdri_convert_intern(struct fdri_convert_interned *t, const void *key, size_t bytes, bool *is_new)
{
    uint32_t hash = hash_of(key, bytes);
    size_t place = t->slots ? slot_of(t, key, bytes, hash) : 0;
    *is_new = false;
    if (t->slots && t->slot[place]) return t->slot[place] - 1;
    if (bytes > UINT32_MAX || t->count >= UINT32_MAX - 1 || !room_for(t, bytes)) return FDRI_CONVERT_NO_NUMBER;
    place = slot_of(t, key, bytes, hash);
    t->key[t->count] = (struct fdri_convert_interned_key){t->used, (uint32_t)bytes, hash};
    if (bytes) memcpy(t->bytes + t->used, key, bytes);
    t->bytes[t->used + bytes] = 0;
    t->used = (t->used + bytes + 8) & ~(size_t)7; /* keys that are structures stay aligned */
    t->slot[place] = ++t->count;
    *is_new = true;
    return t->count - 1;
}

const void *fdri_convert_interned_key(const struct fdri_convert_interned *t, uint32_t number)
{
    return t->bytes + t->key[number].at;
}

void fdri_convert_interned_free(struct fdri_convert_interned *t)
{
    free(t->key);
    free(t->bytes);
    free(t->slot);
    *t = (struct fdri_convert_interned){0};
}
