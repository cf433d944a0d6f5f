/* SPDX-License-Identifier: MIT */
/* Names of functions in tables for people: short, but no two functions share one. JSON, TSV and exports have whole
 * names. */
#ifndef FDRI_TOOLS_COMMON_SHORT_NAMES_H
#define FDRI_TOOLS_COMMON_SHORT_NAMES_H

#include "tools/common/verbs.h"

/* The option --full-names, as an argp child. */
extern const struct argp names_argp;

/* The name for a table. Only functions known by address are shortened: their names are those of the compiler. Remembers
 * the names of one file, until short_names_forget or another file. */
const char *shown_region(const struct fdr_file *file, uint32_t region);
/* The same as plain_region gives it. */
const char *plain_shown(const struct fdr_file *file, uint32_t region);
/* A function's name of a native stack in one line of a terminal: short, at most 100 columns, unless whole names are
 * asked for. Valid as plain_name's. */
const char *plain_function(const char *name);
const char *shown_event(const struct fdr_file *file, const struct fdr_read_event *event);
void short_names_forget(const struct fdr_file *file);
/* For each id, up to and with fdr_definition_count: the lowest id of the same function. Copies of an inline function
 * from several translation units have equal names, files and lines. To be freed; NULL: out of memory. */
uint32_t *same_functions(const struct fdr_file *file);

#endif
