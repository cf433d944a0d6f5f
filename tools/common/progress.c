/* SPDX-License-Identifier: MIT */
#include "tools/common/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "tools/common/verbs.h"

void progress_now(struct progress *p, uint64_t done)
{
    char count[HUMAN_BYTES];
    uint64_t now = now_ns();
    if (p->started_ns == 0) {
        p->started_ns = p->shown_ns = now;
        p->disabled = !isatty(STDERR_FILENO);
    }
    if (p->disabled || now - p->started_ns < 1000000000u || now - p->shown_ns < 200000000u) return;
    p->shown_ns = now;
    p->shown = true;
    fprintf(stderr, "\rfdr: %s: %s events ", p->what, human_count(count, done));
}

void progress_at(struct progress *p, uint64_t done)
{
    if ((done & 0xffff) == 0 && !p->disabled) progress_now(p, done);
}

void progress_end(struct progress *p)
{
    if (p->shown) fputs("\r\033[K", stderr);
    p->shown = false;
}
