/* SPDX-License-Identifier: MIT */
/* Names for addresses, found offline: from the file with the same build-id, else module and offset.
 *
 *   symbols.c, symbols_*.c   regions known by address     demangle*.c      names as the source has them
 *   source_line_*.c          lines, inlined functions     sample_places.c  addresses of samples
 *
 * Neighbours: file/ below; bundle/ and events/ request names. */
#ifndef FDRI_READER_SYMBOL_SYMBOLS_H
#define FDRI_READER_SYMBOL_SYMBOLS_H

#include <fdr/reader.h>
#include <stdbool.h>
#include <stdint.h>

#include "reader/file/file.h"

/* Does the region have an address but no name? *module: the module of the address, or NULL. */
bool fdri_symbol_wanted(const struct fdr_file *f, const struct fdri_file_definition *region,
                        const struct fdri_file_definition **module);
/* Returns false with FDR_SYMBOLS=0. */
bool fdri_symbol_symbols_allowed(void);
/* Opens a path that a recording names, for reading. Returns -1 if it is unreadable, or no regular file: opening such
 * a file may block or have effects. */
int fdri_symbol_symbols_fd(const char *path);
/* For each module, by index: does a newer module lie in its place? Free the result; NULL without memory. */
bool *fdri_symbol_modules_taken(const struct fdr_file *f);
/* Names every region without a name "module+0xoffset". */
void fdri_symbol_symbols_fallback(struct fdr_file *f);
/* Returns a demangled copy (malloc), or NULL. */
char *fdri_symbol_demangle(const char *name);
char *fdri_symbol_demangle_cxx(const char *name); /* C++ only */

/* ---- samples: any address, with the functions inlined there ---- */
struct fdri_symbol_symbols; /* the opened files, by module */
/* Returns NULL without memory, or if the build has no means to look names up. */
struct fdri_symbol_symbols *fdri_symbol_symbols_open(const struct fdr_file *f);
void fdri_symbol_symbols_close(struct fdri_symbol_symbols *s);
/* Fills the known fields of *out; strings live as long as the file. `address` is as recorded. */
void fdri_symbol_symbols_place(struct fdri_symbol_symbols *s, struct fdr_file *f,
                               const struct fdri_file_definition *module, uint64_t address, struct fdr_place *out);

void fdri_symbol_places_close(struct fdr_file *f);
#endif
