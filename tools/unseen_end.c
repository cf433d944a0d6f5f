/* SPDX-License-Identifier: MIT */
/* Only a wait status proves a signal, and only the kernel's counter that it killed for want of memory. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/unseen_end.h"
#include "tools/common/verbs.h"
#include "tools/info.h"

const char *replaced_handlers(const struct fdr_file_info *i, char *text, size_t bytes)
{
    char name[HUMAN_BYTES];
    size_t used = 0;
    text[0] = 0;
    for (int s = 1; s <= 64; s++)
        if (i->handlers_lost >> (s - 1) & 1 && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", signal_name(s, name));
    return text;
}

const char *unseen_end(const struct fdr_file_info *i, char *text, size_t bytes)
{
    char name[HUMAN_BYTES], kills[96] = "", others[64] = "";
    int replaced = __builtin_popcountll(i->handlers_lost);
    bool known = i->has_end && i->end_status != INT_MIN;
    if (i->has_end && i->end_oom_kills)
        snprintf(kills, sizeof kills, "; the kernel killed %u process%s of its control group for want of memory",
                 i->end_oom_kills, i->end_oom_kills == 1 ? "" : "es");
    if (replaced)
        snprintf(others, sizeof others, ", or %d signal%s with later handlers", replaced, replaced == 1 ? "" : "s");
    if (known && WIFSIGNALED(i->end_status))
        snprintf(text, bytes, "%s%s", signal_name(WTERMSIG(i->end_status), name), kills);
    else if (known) snprintf(text, bytes, "_exit or exec, status %d%s", WEXITSTATUS(i->end_status), kills);
    else if (!i->handlers) snprintf(text, bytes, "an unknown cause: fdr had no handlers (FDR_CRASH=0)%s", kills);
    else snprintf(text, bytes, "an unseen cause, no handler ran: SIGKILL, the OOM killer or _exit%s%s", others, kills);
    return text;
}

void print_replaced_handlers(const struct fdr_file_info *i)
{
    char others[256];
    if (*replaced_handlers(i, others, sizeof others))
        printf("handlers   later ones replaced fdr's for %s: no bundle (FDR_CRASH=first keeps fdr's)\n", others);
}

void print_counted_deaths(const struct fdr_file_info *i)
{
    if (i->alike)
        printf("alike      %llu more death%s of the same cause, place and build; their bundles are gone\n",
               (unsigned long long)i->alike, i->alike > 1 ? "s" : "");
}
