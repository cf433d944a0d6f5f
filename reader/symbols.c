/* SPDX-License-Identifier: MIT */
/* What the ways to name addresses share. */
#include "reader/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fdri_reader_symbols_allowed(void)
{
    const char *said = getenv("FDR_SYMBOLS");
    return !said || strcmp(said, "0") != 0;
}

bool fdri_reader_symbol_wanted(const struct fdr_file *f, const struct fdri_reader_definition *region,
                               const struct fdri_reader_definition **module)
{
    const struct fdri_reader_definitions *all = &f->definitions[FDR_DEF_MODULE];
    *module = NULL;
    if (region->d.name[0] || !region->d.address) return false;
    for (size_t i = 0; i < all->count && region->module; i++)
        if (all->row[i].d.id == region->module && all->row[i].d.address <= region->d.address) *module = &all->row[i];
    return true;
}

static void name_one(struct fdr_file *f, struct fdri_reader_definition *region,
                     const struct fdri_reader_definition *module)
{
    const char *path = module ? module->d.name : "", *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t bytes = strlen(base) + 24;
    char *name = fdri_reader_keep(f, bytes);
    if (!name) return;
    if (*base) snprintf(name, bytes, "%s+0x%llx", base, (unsigned long long)(region->d.address - module->d.address));
    else snprintf(name, bytes, "0x%llx", (unsigned long long)region->d.address);
    region->d.name = name;
}

void fdri_reader_symbols_fallback(struct fdr_file *f)
{
    struct fdri_reader_definitions *regions = &f->definitions[FDR_DEF_REGION];
    const struct fdri_reader_definition *module;
    for (size_t i = 0; i < regions->count; i++)
        if (fdri_reader_symbol_wanted(f, &regions->row[i], &module)) name_one(f, &regions->row[i], module);
}
