/* SPDX-License-Identifier: MIT */
/* Names of functions as the source has them, from their symbols. */
#ifndef FDRI_BASE_ELF_SHOWN_NAME_H
#define FDRI_BASE_ELF_SHOWN_NAME_H
#include <stdbool.h>
#include <stddef.h>

/* Cuts a symbol to the source's name. It loses the version of a library's symbol, and the suffixes for compiler-made
 * copies and parts of a function: f.constprop.0, f.isra.0, f.part.1, f.cold. */
void fdri_elf_cut_to_source(char *symbol);
/* "module::procedure" for a procedure of a Fortran module, which gfortran names __module_MOD_procedure in small
 * letters. malloc'd; NULL: the symbol is none, or there is no memory. */
char *fdri_elf_fortran_name(const char *symbol);
bool fdri_elf_is_mangled(const char *symbol); /* for a demangler of C++ */
bool fdri_elf_is_coded(const char *symbol);   /* may the shown name differ from the symbol? */
/* Both of these, or by a demangler of C++ (as __cxa_demangle; NULL: there is none). malloc'd; NULL: no memory. */
char *fdri_elf_shown_name(const char *symbol, char *(*demangle)(const char *, char *, size_t *, int *));
/* The part of a demangled name without result type and parameters. */
struct fdri_elf_brief {
    size_t begin, bytes;
};
struct fdri_elf_brief fdri_elf_brief_name(const char *shown);

#endif
