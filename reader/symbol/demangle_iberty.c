/* SPDX-License-Identifier: MIT */
/* Demangles C++ names with libiberty. */
#include "reader/symbol/symbols.h"

#include <libiberty/demangle.h>

char *fdri_symbol_demangle_cxx(const char *name) { return cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO); }
