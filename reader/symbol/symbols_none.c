/* SPDX-License-Identifier: MIT */
/* Without elfutils: an address is named by its module and offset. */
#include <fdr/reader.h>
#include <stddef.h>
#include <stdint.h>

#include "reader/file/file.h"
#include "reader/symbol/symbols.h"

struct fdri_symbol_symbols *fdri_symbol_symbols_open(const struct fdr_file *f)
{
    (void)f;
    return NULL;
}
void fdri_symbol_symbols_close(struct fdri_symbol_symbols *s) { (void)s; }
void fdri_symbol_symbols_place(struct fdri_symbol_symbols *s, struct fdr_file *f,
                               const struct fdri_file_definition *module, uint64_t address, struct fdr_place *out)
{
    (void)s, (void)f, (void)module, (void)address, (void)out;
}

void fdr_file_symbolise(struct fdr_file *f) { fdri_symbol_symbols_fallback(f); }
