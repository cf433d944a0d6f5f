/* SPDX-License-Identifier: MIT */
/* Numbers in settings. A program may have any locale when it starts the recorder; 2.5us is always 2.5us. */
#ifndef FDRI_BASE_TEXT_NUMBER_H
#define FDRI_BASE_TEXT_NUMBER_H
#include <stddef.h>

/* Digits with an optional sign, fraction and exponent, as strtod reads them in the C locale: *end is behind the number,
 * or `text` where there is none. Infinite where it is too large. Any thread; sets no errno. */
double fdri_text_number(const char *text, const char **end);
/* The number as text, with a point in any locale: `decimals` behind it, or nine digits in all where that is negative.
 * At least 32 bytes hold any number below 1e15. */
void fdri_text_print_number(char *text, size_t bytes, int decimals, double value);
#endif
