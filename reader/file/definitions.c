/* SPDX-License-Identifier: MIT */
/* Reads the names of regions, metrics and so on. Each record has its own check, so damage to one costs only that
 * one. */
#include "format/arena/arena.h"
#include "format/codec/record_codec.h"
#include "reader/file/file.h"

#include <fdr/reader.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fdri_file_text(struct fdr_file *f, const char *text, size_t bytes)
{
    char *copy = fdri_file_alloc(f, bytes + 1);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

/* ---- one record ---- */

/* After bytes that are no record, the search goes on 8 bytes later. Each such place may claim to reach to the end of
 * the block. So after VAIN_MOST bytes checked in vain, only records of usual size are checked. */
enum { VAIN_MOST = 64 << 20, USUAL_BYTES = 1024 };

/* The record at `bytes`, if it has at most `room` bytes and its check is right; else NULL. */
static const struct fdri_arena_def *def_at(const uint8_t *bytes, uint32_t room, uint64_t *vain)
{
    const struct fdri_arena_def *d = (const void *)bytes;
    if (room < sizeof *d || d->bytes < sizeof *d || d->bytes % 8 || d->bytes > room) return NULL;
    uint64_t need = sizeof *d + (uint64_t)d->name_bytes + d->file_bytes + 2;
    need = ((need + 7) & ~(uint64_t)7) + d->payload_bytes;
    if (need > d->bytes || (*vain >= VAIN_MOST && d->bytes > USUAL_BYTES)) return NULL;
    uint8_t *copy = fdri_file_malloc(d->bytes);
    if (!copy) return NULL;
    memcpy(copy, bytes, d->bytes);
    memset(copy + offsetof(struct fdri_arena_def, check), 0, sizeof d->check);
    bool right = fdri_arena_check32(copy, d->bytes) == d->check;
    free(copy);
    if (!right) *vain += d->bytes;
    return right ? d : NULL;
}

uint32_t fdri_file_def_bytes(const uint8_t *bytes, uint32_t room, uint64_t *vain)
{
    const struct fdri_arena_def *d = def_at(bytes, room, vain);
    return d ? d->bytes : 0;
}

static void take_definition(struct fdr_file *f, const struct fdri_arena_def *d)
{
    if (d->kind == 0 || d->kind >= FDRI_FILE_KINDS || d->id > FDRI_CODEC_ID_MAX) return;
    struct fdri_file_definitions *all = &f->definitions[d->kind];
    if (!fdri_file_grow(&all->row, all->count, &all->room, sizeof *all->row)) return;
    const char *name = (const char *)(d + 1), *file = name + d->name_bytes + 1;
    const uint8_t *payload = (const uint8_t *)d + sizeof *d + (((uint32_t)d->name_bytes + d->file_bytes + 2 + 7) & ~7u);
    bool region = d->kind == FDRI_ARENA_DEF_REGION, module = d->kind == FDRI_ARENA_DEF_MODULE;
    bool renamed = d->kind == FDRI_ARENA_DEF_RENAMED;
    struct fdri_file_definition out = {.module = region || renamed ? (uint32_t)d->value2 : 0,
                                       .bytes = module ? d->value2 : 0};
    out.d = (struct fdr_definition){.kind = (enum fdr_definition_kind)d->kind,
                                    .id = d->id,
                                    .line = d->line,
                                    .address = region || module || renamed ? d->value : 0};
    out.d.name = fdri_file_text(f, name, strnlen(name, d->name_bytes));
    out.d.file = fdri_file_text(f, file, strnlen(file, d->file_bytes));
    if (!out.d.name || !out.d.file) return;
    out.d.symbol = region ? out.d.name : "";
    fdri_file_type_definition(f, d, payload, &out);
    if (module && d->payload_bytes == sizeof out.from) memcpy(&out.from, payload, sizeof out.from);
    all->row[all->count++] = out;
    if (d->id > all->id_max) all->id_max = d->id;
}

/* ---- finding the blocks ---- */

static void take_block(struct fdr_file *f, uint64_t off)
{
    const struct fdri_arena_defs_block *b = fdri_file_at(f, off, sizeof *b);
    uint64_t there = f->end - off - sizeof *b;
    uint32_t used = b->used, at = 0;
    if (used > there || (b->head.bytes >= sizeof *b && used > b->head.bytes - sizeof *b) || used % 8) {
        fdri_file_damage(f, "definitions at %llu are damaged", (unsigned long long)off);
        used = (uint32_t)(there < 4096 ? there & ~(uint64_t)7 : 4096 - sizeof *b);
    }
    bool complained = false;
    f->defs_bytes += used;
    if (f->defs_bytes > 2 * f->end) return; /* the blocks overlap: no recorder wrote them */
    if (!fdri_file_grow(&f->defs, f->defs_count, &f->defs_room, sizeof *f->defs)) return;
    f->defs[f->defs_count++] = (struct fdri_file_defs){off, used};
    while (at < used) {
        const struct fdri_arena_def *d = def_at((const uint8_t *)(b + 1) + at, used - at, &f->defs_failed_bytes);
        if (d) take_definition(f, d);
        else if (!complained) fdri_file_damage(f, "a definition at %llu is damaged", (unsigned long long)(off + at));
        complained = !d;
        at += d ? d->bytes : 8;
    }
}

/* Returns true if the chain ended regularly. */
static bool read_chain(struct fdr_file *f)
{
    uint64_t off = f->sb.defs_first, most = f->end / sizeof(struct fdri_arena_defs_block), n = 0;
    const struct fdri_arena_defs_block *b;
    while (off && (b = (const void *)fdri_file_meta_at(f, off, FDRI_ARENA_META_DEFS, UINT32_MAX, sizeof *b)) &&
           n++ < most) {
        take_block(f, off);
        off = b->next;
    }
    return !off;
}

static void find_all(struct fdr_file *f)
{
    size_t count;
    if (read_chain(f)) return;
    fdri_file_damage(f, "the chain of definitions is broken");
    f->defs_count = f->defs_bytes = 0; /* the blocks seen come again; equal ids drop the duplicates */
    const struct fdri_file_meta *m = fdri_file_meta_scan(f, FDRI_ARENA_META_DEFS, UINT32_MAX, &count);
    for (size_t i = 0; i < count; i++)
        if (fdri_file_at(f, m[i].off, sizeof(struct fdri_arena_defs_block))) take_block(f, m[i].off);
}

static int by_id(const void *x, const void *y)
{
    const struct fdri_file_definition *a = x, *b = y;
    return a->d.id < b->d.id ? -1 : a->d.id > b->d.id;
}

/* Later names, the oldest first. */
static void rename_all(struct fdr_file *f)
{
    const struct fdri_file_definitions *renamed = &f->definitions[FDRI_ARENA_DEF_RENAMED];
    for (size_t i = 0; i < renamed->count; i++) {
        const struct fdri_file_definition *r = &renamed->row[i];
        uint32_t kind = r->module, id = (uint32_t)r->d.address;
        if (kind != FDRI_ARENA_DEF_REGION && kind != FDRI_ARENA_DEF_METRIC && kind != FDRI_ARENA_DEF_MARKER) continue;
        struct fdri_file_definition *d = (struct fdri_file_definition *)fdri_file_definition(f, kind, id);
        if (!d) continue;
        d->d.name = r->d.name;
        if (kind == FDRI_ARENA_DEF_REGION) d->d.file = r->d.file, d->d.line = r->d.line, d->d.symbol = r->d.name;
        if (kind == FDRI_ARENA_DEF_METRIC) d->metric.name = r->d.name, d->metric.unit = r->d.file;
    }
}

void fdri_file_definitions(struct fdr_file *f)
{
    find_all(f);
    for (uint32_t kind = 1; kind < FDRI_FILE_KINDS; kind++) {
        struct fdri_file_definitions *all = &f->definitions[kind];
        size_t kept = 0;
        if (all->count) qsort(all->row, all->count, sizeof *all->row, by_id);
        for (size_t i = 0; i < all->count; i++)
            if (!kept || all->row[kept - 1].d.id != all->row[i].d.id) all->row[kept++] = all->row[i];
        all->count = kept;
        if (f->sb.def_count[kind] > kept + 1)
            fdri_file_damage(f, "only %zu of %u definitions of kind %u are readable", kept, f->sb.def_count[kind],
                             kind);
    }
    rename_all(f);
    fdri_file_field_units(f);
}

/* ---- lookup ---- */

const struct fdri_file_definition *fdri_file_definition(const struct fdr_file *f, uint32_t kind, uint32_t id)
{
    const struct fdri_file_definitions *all = &f->definitions[kind];
    /* the usual case: ids count from 1 without gaps */
    if (id - 1 < all->count && all->row[id - 1].d.id == id) return &all->row[id - 1];
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t i = low + (high - low) / 2;
        if (all->row[i].d.id < id) low = i + 1;
        else high = i;
    }
    return low < all->count && all->row[low].d.id == id ? &all->row[low] : NULL;
}

static struct fdri_file_definition **unknown_slot(struct fdri_file_definition **table, size_t slots, uint32_t kind,
                                                  uint32_t id)
{
    size_t i = (id * 0x9E3779B1u ^ kind * 0x85EBCA6Bu) & (slots - 1);
    while (table[i] && (table[i]->d.id != id || (uint32_t)table[i]->d.kind != kind)) i = (i + 1) & (slots - 1);
    return &table[i];
}

static bool grow_unknown(struct fdr_file *f)
{
    if (f->unknown_slots && f->unknown_count < f->unknown_slots / 2) return true;
    size_t slots = f->unknown_slots ? f->unknown_slots * 2 : 64;
    struct fdri_file_definition **wider = fdri_file_calloc(slots, sizeof *wider);
    if (!wider) return false;
    for (size_t i = 0; i < f->unknown_slots; i++)
        if (f->unknown[i])
            *unknown_slot(wider, slots, (uint32_t)f->unknown[i]->d.kind, f->unknown[i]->d.id) = f->unknown[i];
    free(f->unknown);
    f->unknown = wider;
    f->unknown_slots = slots;
    return true;
}

static const struct fdri_file_definition *nobody(uint32_t kind)
{
    static const struct fdri_file_definition any = {.d = {.name = "[unknown]", .file = "", .symbol = ""},
                                                    .event = {.name = "[unknown]"}},
                                             metric = {.d = {.name = "[unknown]", .file = "", .symbol = ""},
                                                       .metric = {.name = "[unknown]", .unit = ""}};
    return kind == FDRI_ARENA_DEF_METRIC ? &metric : &any;
}

static const struct fdri_file_definition *unknown(struct fdr_file *f, uint32_t kind, uint32_t id)
{
    if (!grow_unknown(f)) return nobody(kind);
    struct fdri_file_definition **slot = unknown_slot(f->unknown, f->unknown_slots, kind, id);
    if (*slot) return *slot;
    struct {
        struct fdri_file_definition all;
        char name[32];
    } *made = fdri_file_calloc(1, sizeof *made);
    if (!made) return nobody(kind);
    if (id) snprintf(made->name, sizeof made->name, "[unknown %u]", id);
    else snprintf(made->name, sizeof made->name, "[unknown]"); /* an event in no region */
    made->all.d = (struct fdr_definition){
        .kind = (enum fdr_definition_kind)kind, .id = id, .name = made->name, .file = "", .symbol = ""};
    fdri_file_type_unknown(&made->all);
    f->unknown_count++;
    /* cppcheck-suppress memleak ; the table has it */
    return *slot = &made->all;
}

const struct fdri_file_definition *fdri_file_definition_or_unknown(const struct fdr_file *file, uint32_t kind,
                                                                   uint32_t id)
{
    struct fdr_file *f = (struct fdr_file *)(uintptr_t)file; /* placeholders for unknown ids are made on first use */
    uint32_t k = kind < FDRI_FILE_KINDS ? kind : 0;
    const struct fdri_file_definition *d = fdri_file_definition(f, k, id);
    if (d) return d;
    pthread_mutex_lock(&f->lock);
    d = unknown(f, k, id);
    pthread_mutex_unlock(&f->lock);
    return d;
}

size_t fdr_definition_count(const struct fdr_file *f, enum fdr_definition_kind kind)
{
    return (uint32_t)kind < FDRI_FILE_KINDS ? f->definitions[kind].id_max : 0;
}

const struct fdr_definition *fdr_definition(const struct fdr_file *file, enum fdr_definition_kind kind, uint32_t id)
{
    return &fdri_file_definition_or_unknown(file, (uint32_t)kind, id)->d;
}
