/* SPDX-License-Identifier: MIT */
/* Numbers in settings. A program may have any locale when it starts the recorder; 2.5us is always 2.5us. */
#ifndef FDR_BASE_NUMBER_H
#define FDR_BASE_NUMBER_H
/* Digits with an optional sign, fraction and exponent, as strtod reads them in the C locale: *end is behind the number, or
 * `text` where there is none. Infinite where it is too large. Any thread; sets no errno. */
double fdri_number(const char *text, const char **end);
#endif
