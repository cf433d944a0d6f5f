/* SPDX-License-Identifier: MIT */
/* Names of functions as the source has them. */
#define _GNU_SOURCE
#include "base/elf/shown_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void fdri_elf_cut_to_source(char *symbol)
{
    static const char *const made[] = {".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm."};
    char *at = strchr(symbol, '@');
    if (at && at > symbol) *at = 0;
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if ((at = strstr(symbol, made[i])) && at > symbol) *at = 0;
}

char *fdri_elf_fortran_name(const char *symbol)
{
    const char *mark = strncmp(symbol, "__", 2) ? NULL : strstr(symbol, "_MOD_");
    size_t module = mark ? (size_t)(mark - symbol) - 2 : 0;
    if (!mark || mark < symbol + 3 || !mark[5]) return NULL;
    char *plain = malloc(strlen(symbol));
    if (!plain) return NULL;
    memcpy(plain, symbol + 2, module);
    memcpy(plain + module, "::", 2);
    strcpy(plain + module + 2, mark + 5);
    return plain;
}

bool fdri_elf_is_mangled(const char *symbol) { return symbol[0] == '_' && symbol[1] == 'Z'; }
bool fdri_elf_is_coded(const char *symbol)
{
    return (symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == '_')) || strpbrk(symbol, ".@");
}

char *fdri_elf_shown_name(const char *symbol, char *(*demangle)(const char *, char *, size_t *, int *))
{
    int status;
    char *name = strdup(symbol), *plain;
    if (!name) return NULL;
    fdri_elf_cut_to_source(name);
    plain = fdri_elf_fortran_name(name);
    if (!plain && demangle && fdri_elf_is_mangled(name)) plain = demangle(name, NULL, NULL, &status);
    if (plain) free(name);
    return plain ? plain : name;
}

/* Where the list of parameters begins: the bracket that belongs to the last closing one. */
static size_t parameters_at(const char *shown)
{
    const char *last = strrchr(shown, ')');
    size_t open = 0;
    for (const char *p = last; p && p >= shown; p--) {
        open += *p == ')';
        open -= *p == '(';
        if (!open) return (size_t)(p - shown);
    }
    return strlen(shown);
}

/* Where the name begins: behind the last blank outside of brackets. Blanks behind "operator" belong to the name. */
static size_t name_at(const char *shown, size_t end)
{
    size_t begin = 0, open = 0;
    for (size_t i = 0; i < end; i++) {
        bool word = i == 0 || (!isalnum((unsigned char)shown[i - 1]) && shown[i - 1] != '_');
        if (word && !strncmp(shown + i, "operator", 8)) break;
        if (strchr("<([{", shown[i])) open++;
        else if (open && strchr(">)]}", shown[i])) open--;
        else if (!open && shown[i] == ' ') begin = i + 1;
    }
    return begin;
}

struct fdri_elf_brief fdri_elf_brief_name(const char *shown)
{
    size_t end = parameters_at(shown), begin = end < strlen(shown) ? name_at(shown, end) : 0;
    return end > begin ? (struct fdri_elf_brief){begin, end - begin} : (struct fdri_elf_brief){0, strlen(shown)};
}
