/* SPDX-License-Identifier: MIT */
/* Regions known by address only get names offline: from the file with the same build-id, or module + offset. */
#ifndef FDR_READER_SYMBOLS_H
#define FDR_READER_SYMBOLS_H

#include "reader/reader.h"

/* A region has an address and no name; *module is what it lies in, or NULL. */
bool fdri_reader_symbol_wanted(const struct fdr_file *f, const struct fdri_reader_definition *region,
                               const struct fdri_reader_definition **module);
/* FDR_SYMBOLS=0 says no. */
bool fdri_reader_symbols_allowed(void);
/* Names every region that has none yet "module+0xoffset". */
void fdri_reader_symbols_fallback(struct fdr_file *f);
/* A demangled copy (malloc), or NULL. */
char *fdri_reader_demangle(const char *name);

#endif
