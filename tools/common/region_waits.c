/* SPDX-License-Identifier: MIT */
/* Which regions wait, by the words of their names. */
#include "tools/common/region_waits.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* True if one of the words that make up the name is `word`: "sync_all", "syncAll", "Sync::all" have the word sync. */
static bool has_word(const char *name, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = name; (at = strcasestr(at, word)); at++) {
        bool begins = at == name || !isalpha((unsigned char)at[-1]) ||
                      (isupper((unsigned char)at[0]) && !isupper((unsigned char)at[-1]));
        bool ends = !islower((unsigned char)at[length]) || isupper((unsigned char)at[length]);
        if (begins && ends) return true;
    }
    return false;
}

/* Calls of MPI wait for others, apart from those that only begin something or ask. */
static bool in_mpi(const char *name)
{
    static const char *const quick[] = {"Init", "Finalize", "Isend", "Irecv", "Comm_", "Type_", "Wtime", "Get_"};
    if (strncmp(name, "MPI_", 4)) return false;
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        if (!strncmp(name + 4, quick[i], strlen(quick[i]))) return false;
    return true;
}

bool name_waits(const char *name)
{
    static const char *const word[] = {"wait",   "waitall",   "waitany", "waiting", "timedwait", "barrier",    "sleep",
                                       "usleep", "nanosleep", "lock",    "join",    "poll",      "epoll",      "idle",
                                       "futex",  "sync",      "recv",    "accept",  "acquire",   "synchronize"};
    const char *parameters = strchr(name, '('); /* of C++: types are no clue */
    char own[256];
    snprintf(own, sizeof own, "%.*s", parameters && parameters != name ? (int)(parameters - name) : 255, name);
    if (strstr(own, "unlock") || strstr(own, "Unlock")) return false;
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (has_word(own, word[i])) return true;
    return in_mpi(own);
}
