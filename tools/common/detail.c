/* SPDX-License-Identifier: MIT */
/* How far back every call is kept, and what is kept of the time before. */
#include "tools/common/detail.h"

#include <stdio.h>

/* The newest time that is shown of a location. */
static uint64_t shown_to(const struct fdr_file *file, uint32_t location)
{
    for (size_t i = 0, n = fdr_location_count(file); i < n; i++)
        if (fdr_location_info(file, i)->id == location) return fdr_location_info(file, i)->to_ns;
    return UINT64_MAX;
}

/* Epochs that began after the copy of their location hold nothing that is shown. */
uint64_t complete_from(struct fdr_file *file)
{
    const struct fdr_epoch_info *e;
    uint64_t from = 0;
    for (size_t i = 0, n = fdr_epochs(file, &e); i < n; i++) {
        bool whole = true;
        for (int b = 0; b < 4; b++) whole = whole && e[i].complete_depth[b] >= e[i].deepest;
        if (whole || e[i].from_ns >= shown_to(file, e[i].location)) continue;
        if (e[i].to_ns > from) from = e[i].to_ns;
    }
    return from;
}

/* Calls from this length on are kept of the whole run; UINT64_MAX: of none that is known. */
static uint64_t kept_always(struct fdr_file *file)
{
    const struct fdr_epoch_info *e;
    int band = 0;
    for (size_t i = 0, n = fdr_epochs(file, &e); i < n; i++)
        while (e[i].from_ns < shown_to(file, e[i].location) && band < 4 && e[i].complete_depth[band] < e[i].deepest)
            band++;
    return band == 0 ? 0 : band == 4 ? UINT64_MAX : fdr_file_info(file)->band_edge_ns[band - 1];
}

struct sums {
    uint64_t presented, kept, filtered, reduced, lost;
};
static struct sums sums_of(struct fdr_file *file)
{
    const struct fdr_ledger_row *l;
    struct sums s = {0};
    for (size_t i = 0, n = fdr_ledger(file, &l); i < n; i++) {
        s.presented += l[i].presented, s.kept += l[i].kept, s.filtered += l[i].filtered;
        s.reduced += l[i].reduced, s.lost += l[i].lost;
    }
    return s;
}

static size_t say_age(struct fdr_file *file, char *text, size_t bytes)
{
    const struct fdr_epoch_info *e;
    const struct fdr_file_info *info = fdr_file_info(file);
    uint64_t whole = complete_from(file), always = kept_always(file), end = info->last_ns;
    char last[HUMAN_BYTES], least[HUMAN_BYTES];
    struct sums s = sums_of(file);
    int used = 0;
    if (!s.reduced && !s.lost && !s.filtered) used = snprintf(text, bytes, "Every call of the run is kept.");
    else if (whole && whole < end) {
        used = snprintf(text, bytes, "Every call of the last %s is kept; what is older is thinned",
                        human_time(last, end - whole));
        if (always < UINT64_MAX)
            used += snprintf(text + used, bytes - (size_t)used, ", calls of %s or more are kept of the whole run.",
                             human_time(least, always));
        else used += snprintf(text + used, bytes - (size_t)used, ".");
    } else if (fdr_epochs(file, &e) || s.reduced)
        used = snprintf(text, bytes, "Events reach back %s.",
                        human_time(last, end > info->first_ns ? end - info->first_ns : 0));
    return used > 0 ? (size_t)used : 0;
}

void detail_sentence(struct fdr_file *file, char *text, size_t bytes)
{
    char all[HUMAN_BYTES], kept[HUMAN_BYTES], lost[HUMAN_BYTES];
    struct sums s = sums_of(file);
    size_t used = say_age(file, text, bytes);
    used += (size_t)snprintf(text + used, bytes - used,
                             " %s of %s calls and events are kept one by one; totals count all of them.",
                             human_count(kept, s.kept), human_count(all, s.presented));
    if (s.lost) snprintf(text + used, bytes - used, " %s found no room and are lost.", human_count(lost, s.lost));
}
