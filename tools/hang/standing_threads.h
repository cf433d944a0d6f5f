/* SPDX-License-Identifier: MIT */
/* The processes that fdr hang looks at, and the threads of them that stand: standing_threads.c finds and shows them,
 * standing_judge.c judges them, threads_json.c writes JSON. */
#ifndef FDRI_TOOLS_HANG_THREADS_H
#define FDRI_TOOLS_HANG_THREADS_H

#include "tools/common/job_ranks.h"
#include "tools/common/verbs.h"

#define NOT_SAID UINT64_MAX
enum { UNDECIDED_STATUS = 3 };

struct process {
    struct fdr_file *file;
    const struct fdr_file *earlier; /* of a process that runs: the look before; NULL: none */
    const char *path;
    uint64_t end_real_ns;  /* the newest moment known of the process, since 1970 */
    size_t threads, stuck; /* live threads with open regions; those of them without progress */
    /* further threads, whose times come from the caller: their time without progress is unknown */
    size_t unknown_threads;
    uint64_t processor_before, before_ns; /* processor time at the first look, and when that was */
    bool superseded;                      /* another file of this process is better */
    bool looked_at;                       /* it runs, and the kernel's view of its threads is known */
    char unseen[320];                     /* what the kernel did not show of it */
};
/* The judgement on a thread without events for the limit. */
enum standing_judgement { STANDS_IDLE, STANDS_COMPUTES, STANDS_UNKNOWN, STANDS_HANGS };
struct stuck {
    enum standing_judgement judgement;
    const struct process *process;
    const struct fdr_location_info *location;
    const struct fdr_task_info *task; /* NULL: not known */
    char region[256];
    uint64_t stood_ns, since_real_ns;
};
struct standing {
    struct process *process; /* followed by the files left out, of the same processes */
    size_t processes, left_out;
    struct stuck *stuck; /* those that hang, then those of which that is not known */
    size_t count, hanging;
    struct stuck *quiet; /* those that are idle or compute */
    size_t quiet_count;
    struct ranks ranks;
    bool names_off; /* FDR_SYMBOLS is 0 because there are many files */
};

/* ns since 1970 of a time of the recording; the newest moment known of its process. */
uint64_t real_of(const struct fdr_file_info *info, uint64_t ns);
uint64_t end_of(const struct fdr_file_info *info);
/* A process by a recording of it that is open, before anything else is known. */
struct process process_of(struct fdr_file *file, const char *path);
/* True for a file left by a kill: its threads may have stood longer than the file shows. */
bool killed_unseen(const struct process *p);
/* Keeps one file of each process, the newest. */
void leave_out_older(struct standing *v);
void set_end_from_host(struct standing *v);
const struct fdr_task_info *task_of(const struct fdr_file *file, uint32_t tid);
bool is_stopped(const struct fdr_task_info *t);
void print_unseen(const struct standing *v);
void print_left_out(const struct standing *v);
/* Finds the threads that stand for the limit (NOT_SAID: the usual one). Again after a second look. */
void find_stuck_threads(struct standing *v, uint64_t limit_ns);
/* Shows them. The exit code: of a hang, of what is not known, or of the output. */
int show_standing(struct standing *v, bool json);
void free_standing(struct standing *v);
/* Does a thread of the process stand in this region? The region in which threads of most processes stand; NULL: none
 * stands. The index of the thread's native stack, if the watchdog took one; else SIZE_MAX. */
bool stands_in(const struct standing *v, const struct process *p, const char *region);
const char *most_common_region(const struct standing *v);
size_t stack_of(const struct stuck *s);
int print_standing_json(const struct standing *v); /* threads_json.c */
/* ---- standing_judge.c ---- */
/* time_was_given: --for; a thread that runs then hangs, too. */
enum standing_judgement judge_standing(const struct process *p, size_t index, bool time_was_given);
/* Why a thread is undecided. */
const char *why_unknown(const struct stuck *s, char text[160]);
extern const char *const standing_name[];

#endif
