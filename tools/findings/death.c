/* SPDX-License-Identifier: MIT */
/* The process died: of what, and inside which call. */
#include "tools/findings/run_facts.h"

#include <signal.h>
#include <stdio.h>

#include "tools/common/short_names.h"
#include "tools/crash.h"

void find_death(const struct run_facts *f, struct findings *to)
{
    const struct fdr_file_info *info = fdr_file_info(f->file);
    char cause[256], thread[LABEL_BYTES] = "";
    if (!info->has_cause) return;
    struct fdr_crash_cause_info c = main_cause(f->file);
    const struct fdr_location_info *l = location_of_thread(f->file, c.tid);
    struct finding *row = add_finding(to, FINDING_CRASH, 100);
    if (!row) return;
    describe_cause(f->file, &c, cause, sizeof cause);
    row->sure = 1;
    row->from_ns = row->to_ns = info->cause_time_ns;
    if (l) add_location(row, l->id), thread_label(f->file, l->id, thread);
    if (l && l->open_count) row->region = l->open[l->open_count - 1].region;
    bool asked = c.signal == SIGTERM || c.signal == SIGINT || c.signal == SIGXCPU;
    say(row, "The process %s %.160s%s%s%s%.100s.", asked ? "was asked to end by" : "died of", cause, l ? " in " : "",
        thread, row->region != UINT32_MAX ? ", inside " : "",
        row->region != UINT32_MAX ? plain_shown(f->file, row->region) : "");
    add_evidence(row, "the process itself wrote the cause as it died; fdr crash shows the stacks");
}
