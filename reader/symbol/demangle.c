/* SPDX-License-Identifier: MIT */
/* Demangles names: C++ names by the demangler of the build, and Fortran module procedures, which gfortran names
 * __module_MOD_procedure in small letters. */
#include "reader/symbol/symbols.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static char *of_module(const char *name)
{
    const char *mark = strncmp(name, "__", 2) ? NULL : strstr(name, "_MOD_");
    size_t module = mark ? (size_t)(mark - name) - 2 : 0;
    if (!mark || mark < name + 3 || !mark[5]) return NULL;
    char *plain = malloc(strlen(name));
    if (!plain) return NULL;
    memcpy(plain, name + 2, module);
    memcpy(plain + module, "::", 2);
    strcpy(plain + module + 2, mark + 5);
    return plain;
}

char *fdri_symbol_demangle(const char *name)
{
    char *plain = of_module(name);
    return plain ? plain : fdri_symbol_demangle_cxx(name);
}
