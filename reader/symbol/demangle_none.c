/* SPDX-License-Identifier: MIT */
/* Without libiberty: C++ names stay mangled. */
#include "reader/symbol/symbols.h"

#include <stddef.h>

char *fdri_symbol_demangle_cxx(const char *name)
{
    (void)name;
    return NULL;
}
