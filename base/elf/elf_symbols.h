/* SPDX-License-Identifier: MIT */
/* Symbol tables of ELF files, read while the program runs. Files: elf_symbols (this header: the functions of one file),
 * elf_file.h (sections, build ids, separate debug files), shown_name.h (names as the source has them). Neighbours:
 * recorder/names/ asks for the names of code addresses; below: base/fd/.
 *
 * A file may be damaged, or change while it is read: every offset is checked, and nothing is mapped from it. */
#ifndef FDRI_BASE_ELF_ELF_SYMBOLS_H
#define FDRI_BASE_ELF_ELF_SYMBOLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf/elf_file.h"

/* Address space for symbols, touched as they come. Symbols in it stay, and do not move. */
struct fdri_elf_space {
    char *base;
    size_t used, bytes; /* at most 4 GiB */
};
bool fdri_elf_space_make(struct fdri_elf_space *s, size_t bytes);
void fdri_elf_space_cut(struct fdri_elf_space *s, size_t used); /* gives back all behind that */

struct fdri_elf_symbol {
    uint64_t begin; /* address in the file */
    uint32_t bytes; /* at least 1 */
    uint32_t rank;  /* of several at one address readers show the least */
    /* places in the space: as linked; as shown; that without result type and parameters. The last two are atomic */
    uint32_t name, shown, brief;
};
/* The functions of one file, by address. */
struct fdri_elf_symbols {
    struct fdri_elf_symbol *row;
    size_t count;
};

enum fdri_elf_result {
    FDRI_ELF_READ = 0,
    FDRI_ELF_NO_SYMBOLS, /* the file has none */
    FDRI_ELF_TOO_LARGE   /* the space is too small */
};
/* Reads the functions of an open file into the space. */
enum fdri_elf_result fdri_elf_symbols_read(const struct fdri_elf_file *f, struct fdri_elf_space *s,
                                           struct fdri_elf_symbols *to);

/* How names are shown. demangle: as __cxa_demangle; NULL: there is none. worth: which mangled names are demangled.
 * stop (may be NULL): true ends the work early. most: the largest number of names to demangle; count: how many were. */
struct fdri_elf_showing {
    char *(*demangle)(const char *, char *, size_t *, int *);
    bool (*worth)(const char *mangled);
    bool (*stop)(void);
    size_t most, count;
};
/* Sets `shown` and `brief` of the functions, while others read them. False: not of all, because of `stop`, `most`, the
 * space or memory. */
bool fdri_elf_symbols_show(struct fdri_elf_symbols *t, struct fdri_elf_space *s, struct fdri_elf_showing *how);
/* The first function that contains the address in the file; those behind it in the table may begin at the same address.
 * NULL: none. */
const struct fdri_elf_symbol *fdri_elf_symbols_find(const struct fdri_elf_symbols *t, uint64_t address);

#endif
