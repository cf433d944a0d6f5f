/* SPDX-License-Identifier: MIT */
/* Numbers for things that occur again and again: each different key gets the next number, from 0 on. Formats with
 * tables of strings, functions or stacks take their references from it. */
#ifndef FDRI_CONVERT_INTERNED_H
#define FDRI_CONVERT_INTERNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FDRI_CONVERT_NO_NUMBER UINT32_MAX

/* Zero-initialise. */
struct fdri_convert_interned {
    struct fdri_convert_interned_key {
        size_t at; /* in `bytes` */
        uint32_t count, hash;
    } * key;
    char *bytes;    /* of all keys, one behind the other, each followed by a NUL */
    uint32_t *slot; /* hash table of numbers + 1; 0: free */
    uint32_t count;
    size_t room, slots, used, bytes_room;
};

/* The number of a key; *is_new says whether it has just been given. FDRI_CONVERT_NO_NUMBER: no memory. */
uint32_t fdri_convert_intern(struct fdri_convert_interned *t, const void *key, size_t bytes, bool *is_new);
/* The number, or FDRI_CONVERT_NO_NUMBER for a key that has none. */
uint32_t fdri_convert_interned_find(const struct fdri_convert_interned *t, const void *key, size_t bytes);
/* The bytes of a key, followed by a NUL; valid until the next key is added. */
const void *fdri_convert_interned_key(const struct fdri_convert_interned *t, uint32_t number);
void fdri_convert_interned_free(struct fdri_convert_interned *t);

#endif
