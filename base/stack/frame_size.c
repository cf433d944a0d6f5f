/* SPDX-License-Identifier: MIT */
/* A reader of .eh_frame that knows just enough to find a function and the size of its frame. */
#define _GNU_SOURCE
#include "base/stack/frame_size.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
enum { FDRI_STACK_POINTER = 7 }; /* the stack pointer's DWARF number */
#else
enum { FDRI_STACK_POINTER = -1 };
#endif

/* .eh_frame_hdr in the only form that linkers write: a sorted table of 32-bit distances from the header's beginning. */
struct header {
    uint8_t version, frame_encoding, count_encoding, table_encoding;
    int32_t frames;
    uint32_t count;
    struct {
        int32_t code, entry;
    } at[];
};
enum { VERSION = 1, RELATIVE = 0x1b /* relative to its own place */, COUNT = 0x03, DISTANCES = 0x3b };

/* An entry (FDE): its length, the distance to the shared part (CIE), the function's beginning relative to that field,
 * and its size in bytes. */
struct entry {
    uint32_t length, shared;
    int32_t begin;
    uint32_t bytes;
};
enum { INSTRUCTIONS = sizeof(struct entry) };

/* The address of the entry for `code`, or 0. *begin: the beginning of its function. */
static uint64_t search_table(const struct header *h, uint64_t code, uint64_t *begin)
{
    uint64_t base = (uint64_t)(uintptr_t)h;
    if (h->version != VERSION || h->frame_encoding != RELATIVE || h->count_encoding != COUNT ||
        h->table_encoding != DISTANCES)
        return 0;
    uint32_t low = 0, high = h->count; /* at[low - 1] <= code < at[high] */
    while (low < high) {
        uint32_t i = low + (high - low) / 2;
        if (base + (uint64_t)(int64_t)h->at[i].code <= code) low = i + 1;
        else high = i;
    }
    if (!low) return 0;
    struct entry e;
    uint64_t entry = base + (uint64_t)(int64_t)h->at[low - 1].entry;
    *begin = base + (uint64_t)(int64_t)h->at[low - 1].code;
    memcpy(&e, (const void *)(uintptr_t)entry, sizeof e);
    return entry + 8 + (uint64_t)(int64_t)e.begin == *begin && code - *begin < e.bytes ? entry : 0;
}

static uint64_t frame_entry_of(uint64_t code, uint64_t *begin)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)code, &found) == 0 && found.dlfo_eh_frame)
        return search_table(found.dlfo_eh_frame, code, begin);
#else
    (void)code, (void)begin;
#endif
    return 0;
}

uint64_t fdri_stack_function_begin(uint64_t code)
{
    uint64_t begin;
    return frame_entry_of(code, &begin) ? begin : 0;
}

/* ---- the size of a frame ---- */

static uint64_t number(const uint8_t **p) /* LEB128: seven bits in each byte */
{
    uint64_t n = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t b = *(*p)++;
        if (shift < 64) n |= (uint64_t)(b & 127) << shift;
        if (!(b & 128)) return n;
    }
}

static uint64_t read_fixed(const uint8_t **p, unsigned bytes)
{
    uint64_t n = 0;
    memcpy(&n, *p, bytes);
    *p += bytes;
    return n;
}

/* The frame ends `offset` bytes above the address in the register. */
struct end {
    uint64_t reg, offset;
};
struct rows {
    struct end now, kept[4];
    unsigned depth;
    uint64_t at, unit;
};

/* Executes one DWARF call frame instruction. False: an instruction that this reader does not know. */
static bool execute_instruction(struct rows *r, const uint8_t **p)
{
    uint8_t op = *(*p)++;
    switch (op & 0xc0) {
    case 0x40: r->at += (op & 0x3fu) * r->unit; return true;
    case 0x80: number(p); return true;
    case 0xc0: return true;
    default: break;
    }
    switch (op) {
    case 0x00: return true;
    case 0x02: r->at += read_fixed(p, 1) * r->unit; return true;
    case 0x03: r->at += read_fixed(p, 2) * r->unit; return true;
    case 0x04: r->at += read_fixed(p, 4) * r->unit; return true;
    case 0x05:
    case 0x09: number(p), number(p); return true;
    case 0x06:
    case 0x07:
    case 0x08:
    case 0x2e: number(p); return true;
    case 0x0a:
        if (r->depth == 4) return false;
        r->kept[r->depth++] = r->now;
        return true;
    case 0x0b:
        if (!r->depth) return false;
        r->now = r->kept[--r->depth];
        return true;
    case 0x0c: r->now.reg = number(p), r->now.offset = number(p); return true;
    case 0x0d: r->now.reg = number(p); return true;
    case 0x0e: r->now.offset = number(p); return true;
    default: return false;
    }
}

/* Executes the instructions that apply up to `code`. False: as step. */
static bool execute_until(struct rows *r, const uint8_t *p, const uint8_t *end, uint64_t code)
{
    struct end now = r->now;
    while (p < end) {
        if (!execute_instruction(r, &p)) return false;
        if (r->at > code) {
            r->now = now;
            return true;
        }
        now = r->now;
    }
    return true;
}

uint64_t fdri_stack_frame_bytes(uint64_t code)
{
    uint64_t begin, entry = frame_entry_of(code, &begin);
    struct entry e;
    uint32_t length;
    if (!entry || FDRI_STACK_POINTER < 0) return 0;
    memcpy(&e, (const void *)(uintptr_t)entry, sizeof e);
    const uint8_t *p = (const uint8_t *)(uintptr_t)(entry + INSTRUCTIONS);
    const uint8_t *shared = (const uint8_t *)(uintptr_t)(entry + 4 - e.shared);
    memcpy(&length, shared, sizeof length);
    const uint8_t *s = shared + 8, version = *s++;
    if (*s++ != 'z') return 0; /* every usual CIE has this letter: a length and data follow */
    while (*s++) continue;
    struct rows r = {.at = begin, .unit = number(&s)};
    number(&s); /* the data alignment factor, not needed */
    if (version == 1) s++;
    else number(&s);
    for (uint64_t skip = number(&s); skip; skip--) s++;
    for (uint64_t skip = number(&p); skip; skip--) p++;
    if (!execute_until(&r, s, shared + 4 + length, UINT64_MAX) ||
        !execute_until(&r, p, (const uint8_t *)(uintptr_t)(entry + 4 + e.length), code - 1))
        return 0;
    return r.now.reg == (uint64_t)FDRI_STACK_POINTER ? r.now.offset : 0;
}
