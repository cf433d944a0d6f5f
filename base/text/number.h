/* SPDX-License-Identifier: MIT */
/* Numbers in settings, independent of the program's locale: 2.5us is always 2.5us. */
#ifndef FDRI_BASE_TEXT_NUMBER_H
#define FDRI_BASE_TEXT_NUMBER_H
#include <stddef.h>

/* Reads digits with an optional sign, fraction and exponent, as strtod in the C locale. *end is behind the number, or
 * `text` if there is none. A number that is too large becomes infinite. Any thread; does not set errno. */
double fdri_text_number(const char *text, const char **end);
/* Prints the number with a point in any locale: `decimals` digits behind it, or nine significant digits if negative. 32
 * bytes hold any number below 1e15. */
void fdri_text_print_number(char *text, size_t bytes, int decimals, double value);
#endif
