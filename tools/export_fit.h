/* SPDX-License-Identifier: MIT */
/* fdr export --fit: what is left out so that the output has at most a given size. The shortest calls go first, as in
 * reductions; then the oldest time. */
#ifndef FDRI_TOOLS_EXPORT_FIT_H
#define FDRI_TOOLS_EXPORT_FIT_H

#include "tools/common/verbs.h"

struct fit {
    uint64_t most;     /* bytes; 0: no limit */
    uint64_t call[64]; /* [i]: calls of 2^i ns to less than twice that; [0] also of 0 ns, and calls without an end */
    uint64_t points;
    unsigned level; /* 0: nothing is left out; then calls below 2^level ns; then also half of the time, and so on */
};

/* Counts what the selections choose. Returns the number of events. */
uint64_t fit_count(struct fit *f, struct fdr_file *const *files, const struct fdr_select *select, size_t count);
/* Chooses the first level whose output should fit. */
void fit_start(struct fit *f, uint32_t call_bytes);
/* After an output of so many bytes: a higher level. False: there is none. */
bool fit_more(struct fit *f, uint64_t bytes);
/* Narrows the selections by the level. */
void fit_narrow(const struct fit *f, struct fdr_file *const *files, const struct fdr_select *from,
                struct fdr_select *to, size_t count);
/* Says what was left out. */
void fit_say(const struct fit *f, const char *out);

#endif
