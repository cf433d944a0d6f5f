/* SPDX-License-Identifier: MIT */
/* fdr info: what made room in the buffer. */
#include <stdio.h>
#include <string.h>

#include "tools/common/verbs.h"
#include "tools/info.h"

static const char *meaning(const char *step)
{
    if (strcmp(step, "duration") == 0) return "the shortest calls were given back";
    if (strcmp(step, "depth") == 0) return "the deepest calls were given back";
    if (strcmp(step, "class") == 0) return "the least important class was given back";
    if (strcmp(step, "epoch") == 0) return "the oldest stretch of time was given back";
    if (strcmp(step, "stop") == 0) return "storing stopped: the buffer was full";
    if (strcmp(step, "claim") == 0) return "given to a location with less than its share";
    if (strcmp(step, "thin") == 0) return "every second one of evenly spread events was given back";
    return "given back";
}

static void print_reduction(const struct fdr_file *file, const struct fdr_reduction_info *r)
{
    char a[HUMAN_BYTES], b[HUMAN_BYTES], c[HUMAN_BYTES], d[HUMAN_BYTES], e[HUMAN_BYTES];
    uint64_t first = fdr_file_info(file)->first_ns;
    const char *name = location_name(file, r->location);
    printf("  at %s location %u%s%s: %s (%s)\n", human_since(a, r->time_ns, first), r->location, name[0] ? " " : "",
           plain_name(name), r->what, meaning(r->step));
    if (strcmp(r->step, "stop") == 0) {
        printf("      missing from %s on\n", human_since(d, r->from_ns, first));
        return;
    }
    printf("      %s events, %s", human_count(b, r->events), human_bytes(c, r->bytes));
    /* earlier versions did not count them */
    if (r->steps) printf(", in %u step%s", r->steps, r->steps == 1 ? "" : "s");
    if (r->to_ns)
        printf("; missing between %s and %s", human_since(d, r->from_ns, first), human_since(e, r->to_ns, first));
    printf("%s\n", r->gone ? "; none are left and none are stored since" : "");
}

/* True if events were given back and the reduction log is damaged, or was when the file was recovered. */
static bool reductions_lost(struct fdr_file *file)
{
    const struct fdr_ledger_row *rows;
    bool reduced = false;
    for (size_t i = 0, n = fdr_ledger(file, &rows); i < n && !reduced; i++) reduced = rows[i].reduced != 0;
    return reduced && (fdr_file_damage_count(file) || fdr_file_info(file)->accounts_anew);
}

void print_reductions(struct fdr_file *file, bool all)
{
    const struct fdr_reduction_info *rows;
    size_t count = fdr_reductions(file, &rows);
    if (count == 0) {
        printf(reductions_lost(file)
                   ? "\nthe log of reductions is damaged: events were given back, the reasons are unknown\n"
                   : "\nno reductions: nothing that was stored had to be given back\n");
        return;
    }
    printf("\n%zu reduction%s made room, as the strategy asks: what is oldest, deepest and shortest goes first, and "
           "totals "
           "count all of it\n",
           count, count == 1 ? "" : "s");
    if (!all) printf("  --all lists them: when, what, how much\n");
    for (size_t i = 0; all && i < count; i++) print_reduction(file, &rows[i]);
}
