/* SPDX-License-Identifier: MIT */
/* Names the addresses of samples: finds the module, then asks its symbol file. It looks each address up once. */
#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/arena/arena.h"
#include "reader/file/file.h"
#include "reader/job/job.h"
#include "reader/symbol/symbols.h"

struct entry {
    uint64_t address;
    const struct fdri_file_definition *module;
    struct fdr_place *place;
};
/* Modules sorted by address; `end` is the highest end of this one and all before it. */
struct span {
    const struct fdri_file_definition *module;
    uint64_t end;
};
struct fdri_symbol_places {
    struct fdri_symbol_symbols *symbols;
    struct span *span;
    size_t spans;
    const struct fdri_file_definition *fixed; /* the executable that is not relocated, or NULL */
    struct entry *slot;
    size_t count, slots; /* a power of two */
};

static const struct fdr_place nowhere = {.function = "[unknown]", .file = "", .module = ""};

static size_t slot_of(const struct fdri_symbol_places *p, uint64_t address, const struct fdri_file_definition *module)
{
    size_t i = (size_t)(address * 0x9E3779B97F4A7C15u >> 20) & (p->slots - 1);
    while (p->slot[i].place && (p->slot[i].address != address || p->slot[i].module != module))
        i = (i + 1) & (p->slots - 1);
    return i;
}

static bool grow(struct fdri_symbol_places *p)
{
    if (p->slots && p->count < p->slots / 2) return true;
    struct fdri_symbol_places wider = *p;
    wider.slots = p->slots ? p->slots * 2 : 1024;
    if (!(wider.slot = fdri_file_calloc(wider.slots, sizeof *wider.slot))) return false;
    for (size_t i = 0; i < p->slots; i++)
        if (p->slot[i].place) wider.slot[slot_of(&wider, p->slot[i].address, p->slot[i].module)] = p->slot[i];
    free(p->slot);
    *p = wider;
    return true;
}

static int by_address(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->module->d.address != y->module->d.address) return x->module->d.address < y->module->d.address ? -1 : 1;
    return x->module < y->module ? -1 : x->module > y->module;
}

static struct fdri_symbol_places *places_open(const struct fdr_file *f)
{
    const struct fdri_file_definitions *all = &f->definitions[FDRI_ARENA_DEF_MODULE];
    struct fdri_symbol_places *p = fdri_file_calloc(1, sizeof *p);
    if (!p || !(p->span = fdri_file_calloc(all->count + 1, sizeof *p->span))) return free(p), NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct fdri_file_definition *m = &all->row[i];
        if (m->d.address) p->span[p->spans++].module = m;
        else if (!p->fixed) p->fixed = m;
    }
    qsort(p->span, p->spans, sizeof *p->span, by_address);
    for (size_t i = 0; i < p->spans; i++) {
        const struct fdri_file_definition *m = p->span[i].module;
        uint64_t end = m->d.address + m->bytes < m->bytes ? UINT64_MAX : m->d.address + m->bytes;
        p->span[i].end = i && p->span[i - 1].end > end ? p->span[i - 1].end : end;
    }
    if (fdri_symbol_symbols_allowed()) p->symbols = fdri_symbol_symbols_open(f);
    return p;
}

/* Number of modules that begin at or before the address. */
static size_t modules_up_to(const struct fdri_symbol_places *p, uint64_t address)
{
    size_t from = 0, to = p->spans;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (p->span[middle].module->d.address <= address) from = middle + 1;
        else to = middle;
    }
    return from;
}

/* The module of an address: the newest of those loaded by then, the first of equally new ones. If none covers it:
 * the executable that is not relocated. */
static const struct fdri_file_definition *module_of(const struct fdr_file *f, uint64_t address, uint64_t time_ns)
{
    const struct fdri_symbol_places *p = f->places;
    const struct fdri_file_definition *best = NULL;
    for (size_t i = modules_up_to(p, address); i-- > 0 && address < p->span[i].end;) {
        const struct fdri_file_definition *m = p->span[i].module;
        if (address - m->d.address < m->bytes && (!m->from || fdri_file_full_ns(&f->clock, m->from) <= time_ns) &&
            (!best || m->from > best->from || (m->from == best->from && m < best)))
            best = m;
    }
    return best ? best : p->fixed;
}

static const char *fallback_name(struct fdr_file *f, const struct fdri_file_definition *module, uint64_t address)
{
    const char *path = module ? module->d.name : "", *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t bytes = strlen(base) + 40;
    char *name = fdri_file_alloc(f, bytes);
    if (!name) return nowhere.function;
    if (*base) snprintf(name, bytes, "[%s]", base); /* one row for everything in a stripped file */
    else                                            /* code made at run time: one row a page */
        snprintf(name, bytes, "[no module] 0x%llx", (unsigned long long)address & ~0xfffull);
    return name;
}

static const struct fdr_place *look_up(struct fdr_file *f, uint64_t address, uint64_t time_ns)
{
    if (!f->places && !(f->places = places_open(f))) return &nowhere;
    if (!grow(f->places)) return &nowhere;
    const struct fdri_file_definition *module = module_of(f, address, time_ns);
    struct entry *e = &f->places->slot[slot_of(f->places, address, module)];
    if (e->place) return e->place;
    struct fdr_place *place = fdri_file_alloc(f, sizeof *place);
    if (!place) return &nowhere;
    *place = (struct fdr_place){.file = "", .module = module ? module->d.name : ""};
    if (module && f->places->symbols) fdri_symbol_symbols_place(f->places->symbols, f, module, address, place);
    if (!place->function) place->function = fallback_name(f, module, address);
    *e = (struct entry){address, module, place};
    f->places->count++;
    return place;
}

const struct fdr_place *fdr_place_at(const struct fdr_file *file, uint64_t address, bool call, uint64_t time_ns)
{
    struct fdr_file *f = (struct fdr_file *)(uintptr_t)file; /* names are looked up on first use */
    if (f->job) f = fdri_job_address(f, &address)->file;
    pthread_mutex_lock(&f->lock);
    const struct fdr_place *place = look_up(f, address - (call && address), time_ns);
    pthread_mutex_unlock(&f->lock);
    return place;
}

const struct fdr_place *fdr_place(const struct fdr_file *file, uint64_t address, bool call)
{
    return fdr_place_at(file, address, call, UINT64_MAX);
}

void fdri_symbol_places_close(struct fdr_file *f)
{
    if (!f->places) return;
    if (f->places->symbols) fdri_symbol_symbols_close(f->places->symbols);
    free(f->places->slot);
    free(f->places->span);
    free(f->places);
}
