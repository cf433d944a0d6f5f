/* SPDX-License-Identifier: MIT */
/* Names addresses with elfutils. It uses a module's file only if it has the recorded build id. */
#include "base/elf/shown_name.h"
#include "format/arena/arena.h"
#include "reader/file/file.h"
#include "reader/symbol/source_line.h"
#include "reader/symbol/symbols.h"

#include <elfutils/libdwfl.h>
#include <fdr/reader.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Local files only: reading a recording must not wait for a network. */
static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_build_id_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

static bool same_build_id(Dwfl_Module *m, const char *hex)
{
    const unsigned char *id;
    GElf_Addr where;
    int bytes = dwfl_module_build_id(m, &id, &where);
    if (bytes <= 0 || strlen(hex) != (size_t)bytes * 2) return false;
    for (int i = 0; i < bytes; i++) {
        char text[3];
        snprintf(text, sizeof text, "%02x", id[i]);
        if (memcmp(text, hex + 2 * i, 2)) return false;
    }
    return true;
}

/* Opens the module's file for elfutils; NULL: missing, or of another build. *bias: to add to an address in the file. */
static Dwfl_Module *open_module_file(Dwfl *dwfl, const struct fdri_file_definition *module, GElf_Addr *bias)
{
    int fd = fdri_symbol_symbols_fd(module->d.name);
    if (fd < 0) return NULL;
    dwfl_report_begin(dwfl);
    Dwfl_Module *m = dwfl_report_offline(dwfl, module->d.name, module->d.name, fd);
    if (!m) close(fd);
    dwfl_report_end(dwfl, NULL, NULL);
    if (!m || !same_build_id(m, module->d.file) || !dwfl_module_getelf(m, bias)) return NULL;
    return m;
}

static const char *keep_copy(struct fdr_file *f, const char *text)
{
    char *copy = fdri_file_alloc(f, strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

static const char *plain_name(struct fdr_file *f, const char *symbol)
{
    char *name = symbol ? fdri_file_strdup(symbol) : NULL, *plain = NULL;
    if (name) fdri_elf_cut_to_source(name);
    if (name) plain = fdri_symbol_demangle(name);
    const char *kept = name ? keep_copy(f, plain ? plain : name) : NULL;
    free(plain);
    free(name);
    return kept;
}

static void name_region(struct fdr_file *f, struct fdri_file_definition *region, Dwfl_Module *m, GElf_Addr address)
{
    GElf_Off offset;
    GElf_Sym symbol;
    const char *name = dwfl_module_addrinfo(m, address, &offset, &symbol, NULL, NULL, NULL);
    if (!name || !*name) return;
    const char *kept = plain_name(f, name);
    if (kept) region->d.name = kept;
    const char *linked = keep_copy(f, name);
    if (linked) region->d.symbol = linked;
    uint32_t line;
    const char *file = region->d.file[0] ? NULL : fdri_symbol_code_line(m, address, &line);
    const char *kept_file = file ? keep_copy(f, file) : NULL;
    if (!kept_file) return;
    region->d.file = kept_file;
    region->d.line = line;
}

struct wanted {
    const struct fdri_file_definition *module;
    struct fdri_file_definition *region;
};

static int by_module(const void *x, const void *y)
{
    const struct wanted *a = x, *b = y;
    if (a->module != b->module) return a->module < b->module ? -1 : 1;
    return a->region < b->region ? -1 : a->region > b->region;
}

/* Names `count` regions of one module; opens its file once. */
static void name_module(struct fdr_file *f, const struct wanted *w, size_t count)
{
    GElf_Addr bias = 0;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    Dwfl_Module *m = dwfl ? open_module_file(dwfl, w->module, &bias) : NULL;
    for (size_t i = 0; m && i < count; i++)
        name_region(f, w[i].region, m, w[i].region->d.address - w[i].module->d.address + bias);
    if (dwfl) fdri_symbol_code_end(dwfl);
}

/* Names all regions. A recording may have any number of modules and regions, so it sorts them once. */
static void name_all(struct fdr_file *f)
{
    struct fdri_file_definitions *regions = &f->definitions[FDRI_ARENA_DEF_REGION];
    const struct fdri_file_definition *module;
    struct wanted *w = fdri_file_calloc(regions->count, sizeof *w);
    size_t count = 0, same;
    for (size_t i = 0; w && i < regions->count; i++)
        if (fdri_symbol_wanted(f, &regions->row[i], &module) && module && module->d.name[0] && module->d.file[0])
            w[count++] = (struct wanted){module, &regions->row[i]};
    if (count) qsort(w, count, sizeof *w, by_module);
    for (size_t i = 0; i < count; i += same) {
        for (same = 1; i + same < count && w[i + same].module == w[i].module;) same++;
        name_module(f, w + i, same);
    }
    free(w);
}

void fdr_file_symbolise(struct fdr_file *f)
{
    if (fdri_symbol_symbols_allowed()) name_all(f);
    fdri_symbol_symbols_fallback(f);
}

/* ---- samples: any address, with the functions inlined there ---- */

struct opened {
    bool tried;
    Dwfl *dwfl;
    Dwfl_Module *m; /* NULL: missing, or of another build */
    GElf_Addr bias;
};
struct fdri_symbol_symbols {
    const struct fdri_file_definition *first; /* the first of all modules */
    size_t count;
    size_t *file_of; /* by module: index in `file`; a module that was loaded again has the same file */
    struct opened *file;
};

static int by_file(const void *x, const void *y)
{
    const struct fdri_file_definition *a = *(struct fdri_file_definition *const *)x,
                                      *b = *(struct fdri_file_definition *const *)y;
    int d = strcmp(a->d.name, b->d.name);
    return d ? d : strcmp(a->d.file, b->d.file);
}

struct fdri_symbol_symbols *fdri_symbol_symbols_open(const struct fdr_file *f)
{
    const struct fdri_file_definitions *all = &f->definitions[FDRI_ARENA_DEF_MODULE];
    struct fdri_symbol_symbols *s = fdri_file_calloc(1, sizeof *s);
    const struct fdri_file_definition **m = fdri_file_calloc(all->count, sizeof *m);
    if (s) {
        *s = (struct fdri_symbol_symbols){.first = all->row, .count = all->count};
        s->file_of = fdri_file_calloc(all->count, sizeof *s->file_of);
        s->file = fdri_file_calloc(all->count, sizeof *s->file);
    }
    if (!s || !m || !s->file_of || !s->file) {
        if (s) fdri_symbol_symbols_close(s);
        return free(m), NULL;
    }
    for (size_t i = 0; i < all->count; i++) m[i] = &all->row[i];
    if (all->count) qsort(m, all->count, sizeof *m, by_file);
    for (size_t i = 0; i < all->count; i++) /* the first of equal files stands for all */
        s->file_of[m[i] - all->row] = i && by_file(&m[i - 1], &m[i]) == 0 ? s->file_of[m[i - 1] - all->row] : i;
    free(m);
    return s;
}

void fdri_symbol_symbols_close(struct fdri_symbol_symbols *s)
{
    for (size_t i = 0; s->file && i < s->count; i++)
        if (s->file[i].dwfl) fdri_symbol_code_end(s->file[i].dwfl);
    free(s->file);
    free(s->file_of);
    free(s);
}

static const struct opened *open_module(struct fdri_symbol_symbols *s, const struct fdri_file_definition *module)
{
    struct opened *o = &s->file[s->file_of[module - s->first]];
    if (o->tried || !module->d.name[0] || !module->d.file[0]) return o;
    o->tried = true;
    o->dwfl = dwfl_begin(&callbacks);
    o->m = o->dwfl ? open_module_file(o->dwfl, module, &o->bias) : NULL;
    return o;
}

/* Stores the functions inlined at the address, innermost first. */
static void keep_inlined(struct fdr_file *f, const struct fdri_symbol_code *code, struct fdr_place *out)
{
    const char *file = out->file;
    uint32_t line = out->line;
    struct fdr_place *kept = code->count ? fdri_file_alloc(f, code->count * sizeof *kept) : NULL;
    for (uint32_t i = 0; kept && i < code->count; i++) {
        const struct fdri_symbol_inlined *call = &code->inlined[i];
        const char *name = plain_name(f, call->function);
        kept[i] = (struct fdr_place){
            .function = name ? name : "[inlined]", .file = file, .line = line, .module = out->module};
        file = call->file ? keep_copy(f, call->file) : NULL;
        if (!file) file = "";
        line = call->line;
    }
    if (!kept) return;
    out->inlined = kept;
    out->inlined_count = code->count;
}

void fdri_symbol_symbols_place(struct fdri_symbol_symbols *s, struct fdr_file *f,
                               const struct fdri_file_definition *module, uint64_t recorded, struct fdr_place *out)
{
    const struct opened *o = open_module(s, module);
    if (!o->m) return;
    GElf_Addr address = recorded - module->d.address + o->bias;
    GElf_Off offset;
    GElf_Sym symbol;
    const char *name = dwfl_module_addrinfo(o->m, address, &offset, &symbol, NULL, NULL, NULL);
    if (name && *name) out->function = plain_name(f, name);
    struct fdri_symbol_code code;
    fdri_symbol_code_at(o->m, address, &code);
    const char *kept = code.file ? keep_copy(f, code.file) : NULL;
    if (kept) {
        out->file = kept;
        out->line = code.line;
    }
    keep_inlined(f, &code, out);
}
