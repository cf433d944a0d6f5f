/* SPDX-License-Identifier: MIT */
/* Reading and printing numbers without the locale. */
#include "base/text/number.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static bool digit(char c) { return c >= '0' && c <= '9'; }

/* Adds digits to *value; digits beyond 64 bits only move the point. Returns by how many places to move it. */
static int add_digits(const char **at, uint64_t *value)
{
    int point = 0;
    for (; digit(**at); ++*at) {
        if (*value < UINT64_MAX / 10 - 1) *value = *value * 10 + (uint64_t)(**at - '0');
        else point += point < 1000;
    }
    return point;
}

/* Reads an exponent. Returns 0 and leaves *at if there is none. */
static int exponent(const char **at)
{
    int n = 0;
    if (**at != 'e' && **at != 'E') return 0;
    const char *p = *at + 1;
    bool minus = *p == '-';
    if (*p == '-' || *p == '+') p++;
    if (!digit(*p)) return 0;
    for (; digit(*p); p++) n = n < 1000 ? n * 10 + (*p - '0') : n;
    *at = p;
    return minus ? -n : n;
}

double fdri_text_number(const char *text, const char **end)
{
    const char *at = text + (*text == '-' || *text == '+');
    uint64_t digits = 0;
    *end = text;
    if (!digit(*at) && !(*at == '.' && digit(at[1]))) return 0;
    int point = add_digits(&at, &digits);
    if (*at == '.') {
        const char *first = ++at;
        int dropped = add_digits(&at, &digits);
        point -= (int)(at - first < 1000 ? at - first : 1000) - dropped;
    }
    point += exponent(&at);
    *end = at;
    long double value = (long double)digits;
    for (; point > 0 && digits; point--) value *= 10;
    for (; point < 0 && value > 0; point++) value /= 10;
    return (double)(*text == '-' ? -value : value);
}

void fdri_text_print_number(char *text, size_t bytes, int decimals, double value)
{
    char *to = text;
    if (decimals < 0) snprintf(text, bytes, "%.9g", value);
    else snprintf(text, bytes, "%.*f", decimals, value);
    for (const char *p = text; *p; p++) { /* the point of a locale may have several bytes */
        bool plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || *p == '-' || *p == '+';
        if (plain) *to++ = *p;
        else if (to == text || to[-1] != '.') *to++ = '.';
    }
    *to = 0;
}
