/* SPDX-License-Identifier: MIT */
/* fdr export --fit. The number of calls by duration foretells the size; the size of each output corrects that. */
#include "tools/export_fit.h"

/* Below 2^24 ns calls are left out by their duration; each further level halves the time. */
enum { DURATIONS = 24, LEVELS = 64 };

static unsigned log2_of(uint64_t ns) { return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0; }

uint64_t fit_count(struct fit *f, struct fdr_file *const *files, const struct fdr_select *select, size_t count)
{
    struct fdr_read_event e;
    uint64_t done = 0;
    for (size_t i = 0; i < count; i++) {
        struct fdr_iter *iter = fdr_iter_open(files[i], &select[i]);
        while (iter && fdr_iter_next(iter, &e)) {
            done++;
            if (e.kind == FDR_LEAVE) f->call[log2_of(e.duration_ns)]++;
            else if (e.kind != FDR_ENTER) f->points++;
        }
        fdr_iter_close(iter);
    }
    return done;
}

/* Events that are left at a level; a call is two. */
static double events_at(const struct fit *f, unsigned level)
{
    double events = 0;
    for (unsigned i = level < DURATIONS ? level : DURATIONS; i < 64; i++) events += 2.0 * (double)f->call[i];
    events += (double)f->points;
    for (unsigned i = DURATIONS; i < level; i++) events /= 2;
    return events;
}

static void reach(struct fit *f, double events)
{
    while (f->level < LEVELS && events_at(f, f->level) > events) f->level++;
}

void fit_start(struct fit *f, uint32_t call_bytes) { reach(f, (double)f->most * 2 / call_bytes); }

bool fit_more(struct fit *f, uint64_t bytes)
{
    double now = events_at(f, f->level);
    if (f->level == LEVELS) return false;
    f->level++;
    reach(f, now * (double)f->most / (double)bytes);
    return true;
}

void fit_narrow(const struct fit *f, struct fdr_file *const *files, const struct fdr_select *from,
                struct fdr_select *to, size_t count)
{
    unsigned duration = f->level < DURATIONS ? f->level : DURATIONS;
    uint64_t least = f->level ? (uint64_t)1 << duration : 0;
    for (size_t i = 0; i < count; i++) {
        const struct fdr_file_info *info = fdr_file_info(files[i]);
        uint64_t first = from[i].from_ns ? from[i].from_ns : info->first_ns;
        uint64_t last = from[i].to_ns && from[i].to_ns < info->last_ns ? from[i].to_ns : info->last_ns;
        to[i] = from[i];
        if (least > to[i].min_duration_ns) to[i].min_duration_ns = least;
        if (f->level > DURATIONS && last > first) to[i].from_ns = last - ((last - first) >> (f->level - DURATIONS));
    }
}

void fit_say(const struct fit *f, const char *out)
{
    char left_out[HUMAN_BYTES], all[HUMAN_BYTES], least[HUMAN_BYTES], rest[80] = "";
    uint64_t gone = 0, calls = 0;
    unsigned duration = f->level < DURATIONS ? f->level : DURATIONS;
    if (!f->level) return;
    for (unsigned i = 0; i < 64; i++) {
        calls += f->call[i];
        if (i < duration) gone += f->call[i];
    }
    if (f->level > DURATIONS)
        snprintf(rest, sizeof rest, ", and of the rest all but the last 1/%llu of the time",
                 1ull << (f->level - DURATIONS > 63 ? 63 : f->level - DURATIONS));
    complain("%s: --fit left out %s of %s calls, those shorter than %s%s", out, human_count(left_out, gone),
             human_count(all, calls), human_time(least, (uint64_t)1 << duration), rest);
}
