/* SPDX-License-Identifier: MIT */
/* What debug information says of an address of code: for symbols_dw.c and unwind_dw.c, which know the modules. */
#ifndef FDRI_READER_SYMBOL_SOURCE_LINE_H
#define FDRI_READER_SYMBOL_SOURCE_LINE_H

#include <stdint.h>

struct Dwfl;
struct Dwfl_Module;

enum { FDRI_SYMBOL_INLINED_MAX = 64 };

/* Strings are the debug information's and live as long as its Dwfl. */
struct fdri_symbol_inlined {
    const char *function; /* mangled where the compiler says so; NULL: not known */
    const char *file;     /* where it was called; NULL: not known */
    uint32_t line;
};
struct fdri_symbol_code {
    const char *function; /* the one that was not inlined; likewise */
    const char *file;     /* of the address itself; NULL: not known */
    uint32_t line;
    uint32_t count;
    struct fdri_symbol_inlined inlined[FDRI_SYMBOL_INLINED_MAX]; /* innermost first */
};

/* ---- code_*.c: addresses are those of the Dwfl ---- */
const char *fdri_symbol_code_line(struct Dwfl_Module *m, uint64_t address, uint32_t *line); /* NULL: not known */
void fdri_symbol_code_at(struct Dwfl_Module *m, uint64_t address, struct fdri_symbol_code *out);
/* Ends it, with what the calls above have put at its modules. */
void fdri_symbol_code_end(struct Dwfl *dwfl);

#endif
