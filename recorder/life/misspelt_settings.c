/* SPDX-License-Identifier: MIT */
/* Variables of the environment that look like a setting's and are none: a letter wrong, and a recorder is found to have
 * run with its defaults when it is too late. Names that are not near any setting's are somebody else's. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/text/message.h"
#include "recorder/life/recording.h"

enum { PREFIX = 4 /* FDR_ */, LONGEST = 40, SHORT = PREFIX + 6 };

static uint32_t least3(uint32_t a, uint32_t b, uint32_t c) { return (uint32_t)fdri_bits_min(fdri_bits_min(a, b), c); }

/* Letters to be changed, left out, put in or swapped with their neighbour to make `a` (length n) of `b`; both of
 * LONGEST letters at most. */
static uint32_t letters_apart(const char *a, size_t n, const char *b)
{
    uint32_t row[3][LONGEST + 1]; /* of the last two letters of `a`, and of this one */
    size_t m = strlen(b);
    for (uint32_t j = 0; j <= m; j++) row[0][j] = j;
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least3(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = (uint32_t)fdri_bits_min(now[j], earlier[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

/* FDR_BUFFER_SIZE: the name of the setting, and more. */
static bool goes_on(const char *name, size_t length, const char *known)
{
    size_t n = strlen(known);
    return length > n && name[n] == '_' && !memcmp(name, known, n);
}

/* The setting that is meant; NULL: it is one, or none is near. */
static const char *meant(const char *name, size_t length, const char *const *known, size_t count)
{
    const char *near = NULL, *begins = NULL;
    uint32_t least = length > SHORT ? 3 : 2;
    for (size_t i = 0; i < count; i++) {
        uint32_t apart = letters_apart(name, length, known[i]);
        if (!apart) return NULL;
        if (apart < least) {
            least = apart;
            near = known[i];
        }
        if (goes_on(name, length, known[i]) && (!begins || strlen(known[i]) > strlen(begins))) begins = known[i];
    }
    return near ? near : begins;
}

void fdri_life_check_misspelt(const char *const *known, size_t count)
{
    if (getauxval(AT_SECURE)) return; /* as with secure_getenv */
    for (char **e = environ; e && *e; e++) {
        size_t length = strcspn(*e, "=");
        if (strncmp(*e, "FDR_", PREFIX) || length > LONGEST) continue;
        const char *setting = meant(*e, length, known, count);
        if (setting)
            fdri_text_message("%.*s: no setting of that name, ignored; did you mean %s?", (int)length, *e, setting);
    }
}
