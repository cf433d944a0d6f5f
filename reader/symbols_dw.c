/* SPDX-License-Identifier: MIT */
/* Names for addresses with elfutils: each module's file is used only if its build-id is the one that was recorded. */
#include "reader/symbols.h"

#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Local files only: looking at a recording must not wait for a network. */
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

/* The module's file as elfutils sees it, or NULL. *bias: add to an address of the file. */
static Dwfl_Module *report(Dwfl *dwfl, const struct fdri_reader_definition *module, GElf_Addr *bias)
{
    dwfl_report_begin(dwfl);
    Dwfl_Module *m = dwfl_report_offline(dwfl, module->d.name, module->d.name, -1);
    dwfl_report_end(dwfl, NULL, NULL);
    if (!m || !same_build_id(m, module->d.file) || !dwfl_module_getelf(m, bias)) return NULL;
    return m;
}

static const char *keep_copy(struct fdr_file *f, const char *text)
{
    char *copy = fdri_reader_keep(f, strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

static void name_region(struct fdr_file *f, struct fdri_reader_definition *region, Dwfl_Module *m,
                        GElf_Addr address)
{
    GElf_Off offset;
    GElf_Sym symbol;
    const char *name = dwfl_module_addrinfo(m, address, &offset, &symbol, NULL, NULL, NULL);
    if (!name || !*name) return;
    char *plain = fdri_reader_demangle(name);
    const char *kept = keep_copy(f, plain ? plain : name);
    free(plain);
    if (kept) region->d.name = kept;
    int line = 0;
    Dwfl_Line *at = dwfl_module_getsrc(m, address);
    const char *file = at ? dwfl_lineinfo(at, NULL, &line, NULL, NULL, NULL) : NULL;
    const char *kept_file = file && !region->d.file[0] ? keep_copy(f, file) : NULL;
    if (!kept_file) return;
    region->d.file = kept_file;
    region->d.line = line > 0 ? (uint32_t)line : 0;
}

/* All regions of one module, with one look at its file. */
static void name_module(struct fdr_file *f, const struct fdri_reader_definition *module)
{
    struct fdri_reader_definitions *regions = &f->definitions[FDR_DEF_REGION];
    const struct fdri_reader_definition *its;
    Dwfl_Module *m = NULL;
    Dwfl *dwfl = NULL;
    GElf_Addr bias = 0;
    for (size_t i = 0; i < regions->count; i++) {
        struct fdri_reader_definition *r = &regions->row[i];
        if (!fdri_reader_symbol_wanted(f, r, &its) || its != module) continue;
        if (!dwfl) {
            dwfl = dwfl_begin(&callbacks);
            m = dwfl ? report(dwfl, module, &bias) : NULL;
        }
        if (!m) break;
        name_region(f, r, m, r->d.address - module->d.address + bias);
    }
    if (dwfl) dwfl_end(dwfl);
}

void fdr_file_symbolise(struct fdr_file *f)
{
    struct fdri_reader_definitions *modules = &f->definitions[FDR_DEF_MODULE];
    if (fdri_reader_symbols_allowed())
        for (size_t i = 0; i < modules->count; i++)
            if (modules->row[i].d.name[0] && modules->row[i].d.file[0]) name_module(f, &modules->row[i]);
    fdri_reader_symbols_fallback(f);
}
