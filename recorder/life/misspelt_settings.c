/* SPDX-License-Identifier: MIT */
/* Reports FDR_ variables of the environment whose names are close to a setting's. With one wrong letter a recorder runs
 * with its defaults, and the user would notice after the crash. Names far from any setting's belong to other
 * software. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/text/message.h"
#include "recorder/life/settings.h"

enum { PREFIX = 4 /* FDR_ */, LONGEST = 40, SHORT = PREFIX + 6 };

static uint32_t least3(uint32_t a, uint32_t b, uint32_t c) { return (uint32_t)fdri_bits_min(fdri_bits_min(a, b), c); }

/* Edit distance of a (length n) and b, both of at most LONGEST letters: changed, missing, additional letters, and swaps
 * of neighbours. */
static uint32_t letters_apart(const char *a, size_t n, const char *b)
{
    uint32_t row[3][LONGEST + 1]; /* for the last two letters of a, and the present one */
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

/* Does the name continue a setting's, as FDR_BUFFER_SIZE does? */
static bool extends_setting(const char *name, size_t length, const char *known)
{
    size_t n = strlen(known);
    return length > n && name[n] == '_' && !memcmp(name, known, n);
}

/* The setting probably meant; NULL: name is a setting, or none is close. */
static const char *closest_setting(const char *name, size_t length, const char *const *known, size_t count)
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
        if (extends_setting(name, length, known[i]) && (!begins || strlen(known[i]) > strlen(begins)))
            begins = known[i];
    }
    return near ? near : begins;
}

void fdri_life_check_misspelt(const char *const *known, size_t count)
{
    if (getauxval(AT_SECURE)) return; /* as with secure_getenv */
    for (char **e = environ; e && *e; e++) {
        size_t length = strcspn(*e, "=");
        if (strncmp(*e, "FDR_", PREFIX) || length > LONGEST) continue;
        const char *setting = closest_setting(*e, length, known, count);
        if (setting)
            fdri_text_message("%.*s: no setting of that name, ignored; did you mean %s?", (int)length, *e, setting);
    }
}
