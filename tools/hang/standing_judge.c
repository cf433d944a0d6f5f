/* SPDX-License-Identifier: MIT */
/* The judgement on a thread that stands: it hangs, is idle or computes, or that cannot be known. A thread is accused
 * only by the kernel's view of it, by its stack, or by the watchdog, which saw both. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/crash.h"
#include "tools/hang/standing_threads.h"

const char *const standing_name[] = {"idle", "computes", "undecided", "hang"};

bool is_stopped(const struct fdr_task_info *t) { return t && (t->state == 'T' || t->state == 't' || t->frozen); }

static bool by_watchdog(const struct process *p, const struct fdr_location_info *l)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    return !strcmp(info->reason_kind, "watchdog") && info->trigger_location == l->id;
}

/* The process died of an instruction of this thread, so it ran. */
static bool ran_at_death(const struct process *p, const struct fdr_location_info *l)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    if (!info->has_cause) return false;
    struct fdr_crash_cause_info c = main_cause(p->file);
    return c.tid == l->tid && (!c.sent || c.sender_pid == info->pid);
}

/* It waited anew between two looks. */
static bool woke_up(const struct process *p, const struct fdr_task_info *t)
{
    const struct fdr_task_info *before = t && p->earlier ? task_of(p->earlier, t->tid) : NULL;
    return before && before->waits != t->waits;
}

static bool has_stack(const struct process *p, uint32_t tid)
{
    const struct fdr_crash_thread_info *t;
    for (size_t i = 0, n = fdr_crash_threads(p->file, &t); i < n; i++)
        if (t[i].tid == tid && t[i].answered) return true;
    return false;
}

static enum standing_judgement by_state_and_stack(const struct process *p, size_t index)
{
    int idle = fdr_location_idle(p->file, index);
    return idle == 1 ? STANDS_IDLE : idle == 0 ? STANDS_HANGS : STANDS_UNKNOWN;
}

enum standing_judgement judge_standing(const struct process *p, size_t index, bool time_was_given)
{
    const struct fdr_location_info *l = fdr_location_info(p->file, index);
    const struct fdr_task_info *t = task_of(p->file, l->tid);
    if (is_stopped(t) || by_watchdog(p, l)) return STANDS_HANGS;
    if (ran_at_death(p, l)) return STANDS_COMPUTES;
    if (!t && !has_stack(p, l->tid)) return STANDS_UNKNOWN;
    if (time_was_given) return by_state_and_stack(p, index);
    if (t && (t->state == 'R' || woke_up(p, t))) return STANDS_COMPUTES;
    return by_state_and_stack(p, index);
}

const char *why_unknown(const struct stuck *s, char text[160])
{
    const char *waits_for = s->task ? s->task->waits_for : "";
    if (!s->task && stack_of(s) == SIZE_MAX) return "no state and no stack of it is here, so it may wait for work";
    if (!waits_for[0]) return "what it waits for is not known, so it may wait for work";
    snprintf(text, 160, "it may wait for work: it waits for %s, where it has not often waited before", waits_for);
    return text;
}
