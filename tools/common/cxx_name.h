/* SPDX-License-Identifier: MIT */
/* Names of C++ functions as a demangler prints them: "RETURN SCOPE::NAME<ARGUMENTS>(PARAMETERS) const". */
#ifndef FDRI_TOOLS_COMMON_CXX_NAME_H
#define FDRI_TOOLS_COMMON_CXX_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The qualified name inside the text: without result type and parameters, with template arguments. */
struct cxx_name {
    size_t begin, end;
    bool parameters; /* a list of parameters follows */
    bool local;      /* in the scope of a function, or a lambda */
    bool converts;   /* "operator TYPE" */
};
/* Any text is a name; linear in its length. */
struct cxx_name cxx_name_parse(const char *text);

/* These return malloc'd text, NULL without memory. */

/* For people: "std::string" for its whole template, no default arguments such as std::allocator<int>, no result type.
 * parameters false: without the list of parameters. */
char *cxx_name_short(const char *text, bool parameters);
/* The qualified name, as gcc prints it apart from template arguments. */
char *cxx_name_qualified(const char *text);
/* A substring of the name in the form in which gcc compares it with -finstrument-functions-exclude-function-list. It is
 * the longest part that contains the function's own name and that gcc surely prints in the same words. *none: there is
 * no such part, as for lambdas. It has no comma. */
char *cxx_name_gcc_item(const char *text, bool *none);

#endif
