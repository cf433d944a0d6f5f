/* SPDX-License-Identifier: MIT */
/* Standard output: a terminal with so many columns and perhaps colours, or a pipe. */
#ifndef FDRI_TOOLS_COMMON_TERMINAL_H
#define FDRI_TOOLS_COMMON_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Columns of the terminal, from COLUMNS if set, at least 40; 100 for a pipe. */
unsigned terminal_columns(void);
/* Columns that a table must fit; 0: a pipe, where programs read and nothing is cut. COLUMNS counts for both. */
unsigned table_columns(void);
/* Standard output is a terminal, TERM is not dumb, and NO_COLOR is not set. */
bool terminal_colours(void);
/* "\033[1m" or "": begins bold text, or ends all styles. */
const char *bold(void);
const char *plain_again(void);
/* Sends standard output through FDR_PAGER, PAGER or less, if a person sits at the terminal; less ends at once if all
 * fits. */
void start_pager(void);

/* Prints `text` behind a label of 11 columns; longer texts go on below, as wide as the terminal. label "": no label. */
void print_wrapped(const char *label, const char *text);
/* On a terminal: what to ask next. verbs: ended by NULL. Call out_finish before, if the verb uses fast_output. */
void print_hint(const char *const *verbs, const char *path);
/* One character of eight heights, for a value against the greatest. */
const char *spark(double value, double greatest);

#endif
