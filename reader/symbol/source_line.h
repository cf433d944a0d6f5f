/* SPDX-License-Identifier: MIT */
/* Debug information for a code address: used by symbols_dw.c and unwind_dw.c, which know the modules. */
#ifndef FDRI_READER_SYMBOL_SOURCE_LINE_H
#define FDRI_READER_SYMBOL_SOURCE_LINE_H

#include <stdint.h>

struct Dwfl;
struct Dwfl_Module;

enum { FDRI_SYMBOL_INLINED_MAX = 64 };

/* Strings belong to the debug information and live as long as its Dwfl. */
struct fdri_symbol_inlined {
    const char *function; /* mangled if the compiler gave that name; NULL: unknown */
    const char *file;     /* place of the call; NULL: unknown */
    uint32_t line;
};
struct fdri_symbol_code {
    const char *function; /* the function that is not inlined; likewise */
    const char *file;     /* of the address itself; NULL: unknown */
    uint32_t line;
    uint32_t count;
    struct fdri_symbol_inlined inlined[FDRI_SYMBOL_INLINED_MAX]; /* innermost first */
};

/* ---- source_line_*.c: addresses are those of the Dwfl ---- */
const char *fdri_symbol_code_line(struct Dwfl_Module *m, uint64_t address, uint32_t *line); /* NULL: unknown */
void fdri_symbol_code_at(struct Dwfl_Module *m, uint64_t address, struct fdri_symbol_code *out);
/* Ends the Dwfl, and frees the data that the calls above attached to its modules. */
void fdri_symbol_code_end(struct Dwfl *dwfl);

#endif
