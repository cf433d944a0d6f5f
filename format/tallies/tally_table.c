/* SPDX-License-Identifier: MIT */
/* Finds, makes and reads rows of tallies. */
#include "format/tallies/tally_table.h"

#include <stdbool.h>
#include <string.h>

#include "base/atomic.h"
#include "format/arena/checksum.h"

#define SET ((uint64_t)1 << 48)
#define LOW (SET - 1)
enum { PIECE = 6 };

static uint64_t hash_of(uint32_t kind, const uint8_t *key)
{
    uint64_t h = kind, w;
    for (int i = 0; i < 3; i++) {
        memcpy(&w, key + 8 * i, 8);
        h = (h ^ w) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    return h & LOW;
}

struct fdri_tallies_key fdri_tallies_key(uint32_t kind, const void *key)
{
    uint8_t bytes[FDRI_ARENA_TALLY_KEY_BYTES];
    memcpy(bytes, key, sizeof bytes);
    struct fdri_tallies_key k = {.word = {(uint64_t)kind << 48 | hash_of(kind, bytes)}};
    for (uint32_t i = 1; i < FDRI_ARENA_TALLY_WORDS; i++) {
        memcpy(&k.word[i], bytes + (size_t)PIECE * (i - 1), PIECE);
        k.word[i] |= SET;
    }
    return k;
}

void fdri_tallies_name_key(const char *name, uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES])
{
    size_t n = strlen(name);
    uint32_t check = fdri_arena_check32(name, n);
    memset(key, 0, FDRI_ARENA_TALLY_KEY_BYTES);
    if (n <= FDRI_ARENA_TALLY_NAME_SHORT) {
        memcpy(key, name, n);
        return;
    }
    memcpy(key, name, FDRI_ARENA_TALLY_NAME_BEGIN);
    memcpy(key + FDRI_ARENA_TALLY_NAME_BEGIN, &check, sizeof check);
    key[FDRI_ARENA_TALLY_KEY_BYTES - 1] = 1;
}

/* Is this place the key's? Completes what is not set yet. */
static bool take_place(struct fdri_arena_tally *row, const struct fdri_tallies_key *key)
{
    for (uint32_t i = 0; i < FDRI_ARENA_TALLY_WORDS; i++) {
        uint64_t there = fdri_atomic_load_relaxed(&row->key[i]);
        /* L:tally - one thread sets the word; a failure leaves its value in `there` */
        if (!there && fdri_atomic_cas_acq_rel_u64(&row->key[i], &there, key->word[i])) continue;
        if (there != key->word[i]) return false;
    }
    return true;
}

/* Double hashing: an odd step reaches every place of a table whose size is a power of two. */
struct fdri_arena_tally *fdri_tallies_row(struct fdri_arena_tallies *t, const struct fdri_tallies_key *key,
                                          uint32_t probes)
{
    uint32_t mask = (1u << t->log2) - 1;
    uint32_t at = (uint32_t)key->word[0] & mask, step = (uint32_t)((key->word[0] & LOW) >> 24) | 1;
    for (uint32_t i = 0; i < probes && i <= mask; i++, at = (at + step) & mask)
        if (take_place(&t->row[at], key)) return &t->row[at];
    return NULL;
}

enum fdri_tallies_state fdri_tallies_read(const struct fdri_arena_tally *row, uint32_t *kind,
                                          uint8_t key[FDRI_ARENA_TALLY_KEY_BYTES])
{
    uint64_t word[FDRI_ARENA_TALLY_WORDS];
    uint32_t set = 0;
    bool damaged = false;
    for (uint32_t i = 0; i < FDRI_ARENA_TALLY_WORDS; i++) {
        word[i] = fdri_atomic_load_relaxed(&row->key[i]);
        damaged |= i && word[i] && (word[i] & ~LOW) != SET;
        set += word[i] != 0;
    }
    *kind = (uint32_t)(word[0] >> 48);
    if (damaged || (word[0] && !*kind)) return FDRI_TALLIES_DAMAGED;
    if (set < FDRI_ARENA_TALLY_WORDS) return set ? FDRI_TALLIES_HALF : FDRI_TALLIES_EMPTY;
    for (uint32_t i = 1; i < FDRI_ARENA_TALLY_WORDS; i++) memcpy(key + (size_t)PIECE * (i - 1), &word[i], PIECE);
    return hash_of(*kind, key) == (word[0] & LOW) ? FDRI_TALLIES_WHOLE : FDRI_TALLIES_DAMAGED;
}
