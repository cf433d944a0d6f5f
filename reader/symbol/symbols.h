/* SPDX-License-Identifier: MIT */
/* Names for addresses, found offline: from the file with the same build-id, else module and offset.
 *
 *   symbols.c, symbols_*.c   regions known by address     demangle*.c      names as the source has them
 *   source_line_*.c          lines, inlined functions     sample_places.c  addresses of samples
 *
 * Neighbours: file/ below; bundle/ and events/ ask. */
#ifndef FDRI_READER_SYMBOL_SYMBOLS_H
#define FDRI_READER_SYMBOL_SYMBOLS_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stdint.h>

#include "reader/file/file.h"

/* A region has an address and no name; *module is what it lies in, or NULL. */
bool fdri_symbol_wanted(const struct fdr_file *f, const struct fdri_file_definition *region,
                        const struct fdri_file_definition **module);
/* FDR_SYMBOLS=0 says no. */
bool fdri_symbol_symbols_allowed(void);
/* A path that a recording names, for reading; -1: it is no regular file, which may block or do anything when it is
 * opened, or cannot be read. */
int fdri_symbol_symbols_fd(const char *path);
/* By module, at its index: does a newer one lie where it lay? Malloc'd; NULL without memory. */
bool *fdri_symbol_modules_taken(const struct fdr_file *f);
/* Names every region that has none yet "module+0xoffset". */
void fdri_symbol_symbols_fallback(struct fdr_file *f);
/* A demangled copy (malloc), or NULL. */
char *fdri_symbol_demangle(const char *name);
char *fdri_symbol_demangle_cxx(const char *name); /* C++ alone */

/* ---- samples: any address, with what is inlined there ---- */
struct fdri_symbol_symbols; /* the files that were opened, by module */
/* NULL: no memory, or nothing to look names up with. */
struct fdri_symbol_symbols *fdri_symbol_symbols_open(const struct fdr_file *f);
void fdri_symbol_symbols_close(struct fdri_symbol_symbols *s);
/* Fills what is found; strings are kept with the file. `address` is as recorded. */
void fdri_symbol_symbols_place(struct fdri_symbol_symbols *s, struct fdr_file *f,
                               const struct fdri_file_definition *module, uint64_t address, struct fdr_place *out);

void fdri_symbol_places_close(struct fdr_file *f);
#endif
