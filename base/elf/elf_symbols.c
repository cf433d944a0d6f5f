/* SPDX-License-Identifier: MIT */
/* Reads a table of symbols and keeps its functions. */
#define _GNU_SOURCE
#include "base/elf/elf_symbols.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/elf/shown_name.h"

enum { CHUNK = 256 }; /* symbols read at once */

bool fdri_elf_space_make(struct fdri_elf_space *s, size_t bytes)
{
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *s = (struct fdri_elf_space){m == MAP_FAILED ? NULL : m, 1, m == MAP_FAILED ? 0 : bytes}; /* place 0: none */
    return s->base;
}

void fdri_elf_space_cut(struct fdri_elf_space *s, size_t used)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), from = fdri_bits_align_up(used, page);
    s->used = used;
    if (from < s->bytes) madvise(s->base + from, s->bytes - from, MADV_DONTNEED);
}

/* Takes aligned room; NULL: there is none. */
static void *take(struct fdri_elf_space *s, size_t bytes)
{
    size_t at = fdri_bits_align_up(s->used, 8);
    if (at > s->bytes || bytes > s->bytes - at) return NULL;
    s->used = at + bytes;
    return s->base + at;
}

/* Of several names of one address those of global functions come first, as readers show them. */
static uint32_t rank_of(const ElfW(Sym) * s)
{
    unsigned bind = ELF64_ST_BIND(s->st_info);
    return bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2;
}

static bool is_function(const ElfW(Sym) * s, size_t text_bytes)
{
    unsigned type = ELF64_ST_TYPE(s->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && s->st_shndx != SHN_UNDEF && s->st_value && s->st_name &&
           s->st_name < text_bytes;
}

/* Takes the functions in the order of the file. text: place of the strings. Returns their number. */
static size_t take_functions(const struct fdri_elf_file *f, size_t text_bytes, uint32_t text,
                             struct fdri_elf_symbol *to, size_t room)
{
    ElfW(Sym) chunk[CHUNK];
    uint64_t at = f->symbols.offset;
    size_t count = 0;
    for (uint64_t left = room; left;) {
        size_t got = fdri_elf_read_at(f->fd, chunk, fdri_bits_min(left, CHUNK) * sizeof *chunk, at) / sizeof *chunk;
        if (!got) break; /* the file ends before its table */
        for (size_t i = 0; i < got; i++) {
            const ElfW(Sym) *s = &chunk[i];
            if (!is_function(s, text_bytes)) continue;
            uint32_t name = text + s->st_name;
            to[count++] = (struct fdri_elf_symbol){
                .begin = s->st_value,
                .bytes = (uint32_t)fdri_bits_min(fdri_bits_max(s->st_size, 1), UINT32_MAX),
                .rank = rank_of(s),
                .name = name,
                .shown = name,
                .brief = name};
        }
        left -= got;
        at += got * sizeof *chunk;
    }
    return count;
}

/* Sorts by address, a byte at a time from the lowest: ten times as fast as qsort. Returns where the result is: in row
 * or in other, which has as much room. */
static struct fdri_elf_symbol *sort(struct fdri_elf_symbol *row, struct fdri_elf_symbol *other, size_t count)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t from[257] = {0};
        for (size_t i = 0; i < count; i++) from[(row[i].begin >> shift & 255) + 1]++;
        if (from[(row[0].begin >> shift & 255) + 1] == count) continue; /* all alike */
        for (unsigned i = 1; i < 257; i++) from[i] += from[i - 1];
        for (size_t i = 0; i < count; i++) other[from[row[i].begin >> shift & 255]++] = row[i];
        struct fdri_elf_symbol *now = other;
        other = row;
        row = now;
    }
    return row;
}

enum fdri_elf_result fdri_elf_symbols_read(const struct fdri_elf_file *f, struct fdri_elf_space *s,
                                           struct fdri_elf_symbols *to)
{
    size_t before = s->used, room = f->symbols.bytes / sizeof(ElfW(Sym));
    *to = (struct fdri_elf_symbols){0};
    if (!room || !f->text.bytes) return FDRI_ELF_NO_SYMBOLS;
    if (room > s->bytes / sizeof *to->row || f->text.bytes >= s->bytes) return FDRI_ELF_TOO_LARGE;
    char *text = take(s, f->text.bytes + 1); /* a 0 behind all */
    struct fdri_elf_symbol *row = take(s, room * sizeof *row), *other = take(s, room * sizeof *row);
    if (!text || !row || !other) {
        fdri_elf_space_cut(s, before);
        return FDRI_ELF_TOO_LARGE;
    }
    size_t text_bytes = fdri_elf_read_at(f->fd, text, f->text.bytes, f->text.offset);
    text[text_bytes] = 0;
    to->count = take_functions(f, text_bytes, (uint32_t)(text - s->base), row, room);
    struct fdri_elf_symbol *sorted = to->count ? sort(row, other, to->count) : row;
    if (sorted != row) memcpy(row, sorted, to->count * sizeof *row);
    to->row = row;
    fdri_elf_space_cut(s, to->count ? (size_t)((char *)(row + to->count) - s->base) : before);
    return to->count ? FDRI_ELF_READ : FDRI_ELF_NO_SYMBOLS;
}

/* Appends a text and returns its place; 0: no room. */
static uint32_t append(struct fdri_elf_space *s, const char *text, size_t bytes)
{
    size_t at = s->used;
    if (bytes >= s->bytes - at) return 0;
    memcpy(s->base + at, text, bytes);
    s->base[at + bytes] = 0;
    s->used = at + bytes + 1;
    return (uint32_t)at;
}

/* False: no room. */
static bool set_shown(struct fdri_elf_symbol *row, struct fdri_elf_space *s, const char *shown)
{
    struct fdri_elf_brief b = fdri_elf_brief_name(shown);
    uint32_t whole = append(s, shown, strlen(shown)), brief = whole;
    if (whole && b.bytes < strlen(shown)) brief = append(s, shown + b.begin, b.bytes);
    if (!whole || !brief) return false;
    fdri_atomic_store_release(&row->brief, brief); /* R:shown - the text before its place */
    fdri_atomic_store_release(&row->shown, whole); /* R:shown */
    return true;
}

static bool show(struct fdri_elf_symbol *row, struct fdri_elf_space *s, const struct fdri_elf_showing *how)
{
    const char *name = s->base + row->name;
    char *shown = fdri_elf_shown_name(name, how->demangle);
    bool good = shown && (!strcmp(shown, name) || set_shown(row, s, shown));
    free(shown);
    return good;
}

bool fdri_elf_symbols_show(struct fdri_elf_symbols *t, struct fdri_elf_space *s, struct fdri_elf_showing *how)
{
    how->count = 0;
    for (size_t i = 0; i < t->count; i++) {
        struct fdri_elf_symbol *row = &t->row[i];
        const char *name = s->base + row->name;
        if (i % CHUNK == 0 && how->stop && how->stop()) return false;
        if (row->shown != row->name || !fdri_elf_is_coded(name)) continue;
        bool mangled = fdri_elf_is_mangled(name);
        if (mangled && !how->worth(name)) continue;
        how->count += mangled;
        if (how->count > how->most || !show(row, s, how)) return false;
    }
    return true;
}

const struct fdri_elf_symbol *fdri_elf_symbols_find(const struct fdri_elf_symbols *t, uint64_t address)
{
    size_t low = 0, high = t->count;
    while (low < high) { /* the first one behind the address */
        size_t i = low + (high - low) / 2;
        if (t->row[i].begin <= address) low = i + 1;
        else high = i;
    }
    if (!low) return NULL;
    const struct fdri_elf_symbol *r = &t->row[low - 1];
    while (r > t->row && r[-1].begin == r->begin) r--;
    return address - r->begin < r->bytes ? r : NULL;
}
