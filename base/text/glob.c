/* SPDX-License-Identifier: MIT */
/* A matcher of patterns with bounded steps and no allocation. */
#include "base/text/glob.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

/* Returns the character at *s and advances *s past it. A byte that is not UTF-8 counts as a character of its own,
 * beyond all of Unicode. */
static uint32_t next_char(const char **s)
{
    const unsigned char *p = (const unsigned char *)*s;
    uint32_t bytes = p[0] < 0xc2 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 1;
    uint32_t c = bytes == 1 ? p[0] : p[0] & (0x7fu >> bytes);
    for (uint32_t i = 1; i < bytes; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            ++*s;
            return p[0] | 0x80000000u;
        }
        c = c << 6 | (p[i] & 0x3f);
    }
    *s += bytes;
    return bytes == 1 && c >= 0x80 ? c | 0x80000000u : c;
}

static bool in_class(const char *name, size_t bytes, uint32_t c)
{
    static const struct {
        char name[8];
        int (*is)(int);
    } class_[] = {{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
                  {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
                  {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit}};
    for (size_t i = 0; i < sizeof class_ / sizeof *class_; i++)
        if (strlen(class_[i].name) == bytes && !memcmp(class_[i].name, name, bytes))
            return c < 0x80 && class_[i].is((int)c);
    return false;
}

static uint32_t escaped(const char **s)
{
    if (**s == '\\' && (*s)[1]) ++*s;
    return next_char(s);
}

/* True if c is in the set behind `[`. Advances *s past the `]`; *s is NULL if there is none. */
static bool in_set(const char **s, uint32_t c)
{
    const char *p = *s;
    bool without = *p == '!' || *p == '^', in = false;
    p += without;
    for (bool first = true; *p && (*p != ']' || first); first = false) {
        const char *end = p[0] == '[' && p[1] == ':' ? strstr(p + 2, ":]") : NULL;
        if (end) {
            in |= in_class(p + 2, (size_t)(end - p - 2), c);
            p = end + 2;
            continue;
        }
        uint32_t low = escaped(&p), high = low;
        if (p[0] == '-' && p[1] && p[1] != ']') {
            p++;
            high = escaped(&p);
        }
        in |= low <= c && c <= high;
    }
    *s = *p ? p + 1 : NULL;
    return in != without;
}

/* True if the first item of the pattern matches the first character of the text. Advances both. */
static bool match_item(const char **pattern, const char **text)
{
    const char *p = *pattern + 1;
    uint32_t c = next_char(text);
    if (**pattern == '?') {
        *pattern = p;
        return true;
    }
    if (**pattern == '[') {
        bool in = in_set(&p, c);
        if (p) {
            *pattern = p;
            return in;
        }
    }
    return escaped(pattern) == c;
}

bool fdri_text_glob(const char *pattern, const char *text)
{
    const char *star = NULL, *from = NULL; /* behind the newest `*`; the end of the text that it stands for so far */
    while (*text || *pattern) {
        if (*pattern == '*') {
            star = ++pattern;
            from = text;
            continue;
        }
        if (*text && *pattern && match_item(&pattern, &text)) continue;
        if (!star || !*from) return false;
        next_char(&from);
        pattern = star;
        text = from;
    }
    return true;
}
