/* SPDX-License-Identifier: MIT */
/* Does the name of a region say that its thread waits, and that it waits for others? */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "policies/idle.h"

/* As strcasestr. */
static const char *find(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) i++;
        if (!part[i]) return text;
    }
    return NULL;
}

/* True if a word continues from one letter to the next. Not in "_l", "4l" or "dL". */
static bool word_continues(char letter, char next)
{
    if (!isalpha((unsigned char)letter)) return false;
    return islower((unsigned char)next) || (isupper((unsigned char)next) && isupper((unsigned char)letter));
}

/* True for a mangled name, which has its length in front, as in "_Z4lockv". */
static bool is_counted(const char *name, const char *p, size_t n)
{
    bool digit = p > name && isdigit((unsigned char)p[-1]),
         more = digit && p - 1 > name && isdigit((unsigned char)p[-2]);
    return digit && !more && (size_t)(p[-1] - '0') == n;
}

/* True if a word begins at p; also behind capitals: "RWLock". */
static bool word_begins(const char *name, const char *p)
{
    return p == name || !word_continues(p[-1], p[0]) || (isupper((unsigned char)p[0]) && islower((unsigned char)p[1]));
}

/* "readLock", "mutex_lock", "_Z4lockv"; not "block", "clock" or "lockstep". */
static bool has_word(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = name; (p = find(p, word)); p++)
        if (word_begins(name, p) && (is_counted(name, p, n) || !word_continues(p[n - 1], p[n]))) return true;
    return false;
}

enum fdri_policies_meaning fdri_policies_meaning_of(const char *name)
{
    static const struct {
        const char *text;
        bool whole_word;
        enum fdri_policies_meaning meaning;
    } parts[] = {{"MPI_", false, FDRI_POLICIES_MEANS_OTHERS},     {"barrier", false, FDRI_POLICIES_MEANS_OTHERS},
                 {"lock", true, FDRI_POLICIES_MEANS_OTHERS},      {"trylock", true, FDRI_POLICIES_MEANS_OTHERS},
                 {"timedlock", true, FDRI_POLICIES_MEANS_OTHERS}, {"clocklock", true, FDRI_POLICIES_MEANS_OTHERS},
                 {"rdlock", true, FDRI_POLICIES_MEANS_OTHERS},    {"wrlock", true, FDRI_POLICIES_MEANS_OTHERS},
                 {"spinlock", true, FDRI_POLICIES_MEANS_OTHERS},  {"spin", true, FDRI_POLICIES_MEANS_OTHERS},
                 {"spinning", true, FDRI_POLICIES_MEANS_OTHERS},  {"wait", false, FDRI_POLICIES_MEANS_WAITING},
                 {"recv", false, FDRI_POLICIES_MEANS_WAITING},    {"join", true, FDRI_POLICIES_MEANS_WAITING},
                 {"poll", true, FDRI_POLICIES_MEANS_WAITING},     {"ppoll", true, FDRI_POLICIES_MEANS_WAITING},
                 {"polling", true, FDRI_POLICIES_MEANS_WAITING}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].whole_word ? has_word(name, parts[i].text) : find(name, parts[i].text) != NULL)
            return parts[i].meaning;
    return FDRI_POLICIES_MEANS_NOTHING;
}
