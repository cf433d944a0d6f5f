/* SPDX-License-Identifier: MIT */
/* Symbols of modules: the names of functions, for rules and triggers while the program runs. module_symbols.c reads
 * them, in fdr's own thread where that takes long; demangle_worth.c says which of them are worth demangling. */
#ifndef FDRI_RECORDER_NAMES_MODULE_SYMBOLS_H
#define FDRI_RECORDER_NAMES_MODULE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/names/names.h"

/* Do rules or triggers need the names of functions? */
bool fdri_names_symbols_wanted(void);
/* A new recording: reads the symbols of the executable and of its libraries, as long as that takes little time. */
void fdri_names_symbols_begin(void);
/* Are the symbols of this module there? If nobody has read them yet, asks fdr's own thread to do it. */
bool fdri_names_symbols_ready(uint32_t module);
/* For the dumper thread: does a function of the files read so far match this pattern? Unknown while no function was
 * called, and while files are still to be read. */
enum fdri_names_match { FDRI_NAMES_MATCH_UNKNOWN, FDRI_NAMES_MATCH_NONE, FDRI_NAMES_MATCH_SOME };
enum fdri_names_match fdri_names_symbols_match(const char *pattern);
/* The names of a function. Unchanged if the symbols are not read yet. If the function has none: one empty name, unless
 * it has a name already. Takes no lock; the texts stay as long as the process. */
void fdri_names_symbols_of(uint32_t module, uint64_t address, struct fdri_names_called *called);
/* For the dumper thread. The time of the next call; and a name for messages, "": none. */
uint64_t fdri_names_symbols_poll(uint64_t now_ns);
void fdri_names_symbols_name(uint32_t module, uint64_t address, char *name, size_t bytes);
/* There are triggers on regions, or none. And one more was added: more names may have to be demangled. One thread at a
 * time. */
void fdri_names_symbols_watched(bool regions);
void fdri_names_symbols_watch(const char *pattern);
/* For the thread that reads symbols. Collects the patterns of rules; returns how many texts each name is searched for.
 * Then tells which mangled names a pattern may match. */
uint32_t fdri_names_worth_collect(void);
bool fdri_names_worth(const char *mangled);
void fdri_names_worth_add(const char *pattern); /* of a trigger */
void fdri_names_worth_reset(void);              /* no triggers any more */
uint32_t fdri_names_symbols_missing(void);      /* of how many modules the symbols were asked for in vain so far */

#endif
