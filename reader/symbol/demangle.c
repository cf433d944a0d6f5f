/* SPDX-License-Identifier: MIT */
/* Demangles names: C++ names by the demangler of the build, and Fortran module procedures. */
#include "reader/symbol/symbols.h"

#include "base/elf/shown_name.h"

char *fdri_symbol_demangle(const char *name)
{
    char *plain = fdri_elf_fortran_name(name);
    return plain ? plain : fdri_symbol_demangle_cxx(name);
}
