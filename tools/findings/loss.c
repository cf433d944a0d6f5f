/* SPDX-License-Identifier: MIT */
/* Events that found no room. Events that a reduction gave back are no finding: the buffer works like this. */
#include "tools/findings/run_facts.h"

#include <stdio.h>

void find_loss(const struct run_facts *f, struct findings *to)
{
    const struct fdr_ledger_row *l;
    const struct fdr_file_info *info = fdr_file_info(f->file);
    uint64_t lost = info->lost_unattached, presented = info->lost_unattached;
    char count[HUMAN_BYTES];
    for (size_t i = 0, n = fdr_ledger(f->file, &l); i < n; i++) lost += l[i].lost, presented += l[i].presented;
    if (!lost) return;
    double share = (double)lost / (double)(presented ? presented : 1);
    struct finding *row = add_finding(to, FINDING_LOSS, 0.02 * share + (share > 0.01 ? share : 0));
    if (!row) return;
    row->value = (double)lost;
    row->unit = "events";
    row->sure = 1;
    say(row, "%s events found no room and are lost (%.2g %% of all).", human_count(count, lost), 100.0 * share);
    add_evidence(row, "the ledger, column lost: fdr info --ledger");
}
