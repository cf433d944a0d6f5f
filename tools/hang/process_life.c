/* SPDX-License-Identifier: MIT */
/* One process: how it ended, when it was seen and when it moved last, what the kernel says of it. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/live_files.h"
#include "tools/crash.h"
#include "tools/hang/load.h"

enum { BUSY_PERCENT = 10 };
static const uint64_t look_apart_ns = 1100000000u;

uint32_t pid_of(const struct process *p)
{
    uint32_t pid = process_named(p->path);
    return pid ? pid : fdr_file_info(p->file)->pid;
}

uint64_t processor_time(uint32_t pid)
{
    char path[40], text[1024];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *behind_name = strrchr(text, ')');
    if (!behind_name ||
        sscanf(behind_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return UINT64_MAX;
    return (uint64_t)(user + system) * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* ---- the end ---- */

static bool is_fault(int signal)
{
    static const int fault[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    for (size_t i = 0; i < sizeof fault / sizeof *fault; i++)
        if (fault[i] == signal) return true;
    return false;
}

static void ended_by_signal(struct job_rank *r, int signal)
{
    char name[HUMAN_BYTES];
    r->end = is_fault(signal) ? FAULT : OUTSIDE;
    snprintf(r->cause, sizeof r->cause, "%s", signal_name(signal, name));
}

static bool is_of_this_host(const struct fdr_file_info *info)
{
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    return strcmp(host, info->host) == 0;
}

static void look_at_end(const struct process *p, struct job_rank *r)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    r->end_ns = p->end_real_ns;
    if (info->has_cause) {
        if (info->cause_realtime_ns) r->end_ns = info->cause_realtime_ns;
        if (info->cause_signal) ended_by_signal(r, info->cause_signal);
        else r->end = strcmp(ended_by(p->file), "exit") ? FAULT : LEFT;
        if (!info->cause_signal) snprintf(r->cause, sizeof r->cause, "%s", plain_name(ended_by(p->file)));
    } else if (info->has_end) {
        if (info->end_status != INT_MIN && WIFEXITED(info->end_status)) r->end = LEFT;
        else if (info->end_status != INT_MIN && WIFSIGNALED(info->end_status))
            ended_by_signal(r, WTERMSIG(info->end_status));
        else r->end = OUTSIDE;
    } else if (strcmp(info->reason_kind, "finalize") == 0) {
        r->end = LEFT;
    } else if (killed_unseen(p) && is_of_this_host(info) && !written_by(p->path, info)) {
        r->end = OUTSIDE;
    }
}

/* ---- progress ---- */

uint64_t newest_event(const struct fdr_file *file)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < fdr_location_count(file); i++) {
        const struct fdr_location_info *l = fdr_location_info(file, i);
        if (!l->given_times && !l->samples && l->moved_ns > newest) newest = l->moved_ns;
    }
    return newest;
}

static uint64_t calls_of_mpi(const struct fdr_file *file)
{
    const struct fdr_tally_row *row;
    struct fdr_mpi_thread_state s;
    uint64_t calls = 0;
    for (size_t i = 0, n = fdr_tallies(file, &row); i < n; i++)
        if (fdr_mpi_thread_state(file, &row[i], &s)) calls += s.calls + s.in_call;
    return calls;
}

/* Two looks: the process moves if a thread had an event after the first, or a call of MPI began or ended. */
static void compare(const struct process *p, const struct fdr_file *earlier, struct job_rank *r)
{
    bool moved = newest_event(p->file) > fdr_file_info(earlier)->taken_ns;
    r->moves = moved || calls_of_mpi(p->file) != calls_of_mpi(earlier) ? YES : NO;
    uint64_t before = p->processor_before, now = processor_time(pid_of(p));
    if (before == UINT64_MAX || now == UINT64_MAX || now < before) return;
    bool much = (now - before) * 100 > (now_ns() - p->before_ns) * BUSY_PERCENT;
    bool some = now > before && r->doing == COMPUTES; /* others may have the processors */
    r->busy = much || some ? YES : NO;
}

/* One file: the heartbeat has the processor time since the newest event. */
static void look_at_heartbeat(const struct fdr_file_info *info, uint64_t newest_ns, struct job_rank *r)
{
    if (!info->alive_ns || info->alive_ns <= newest_ns) return;
    r->busy = info->still_cpu_ns * 100 > (info->alive_ns - newest_ns) * BUSY_PERCENT ? YES : NO;
}

/* ---- the kernel ---- */

static enum hang_doing doing_of(const struct fdr_task_info *t)
{
    static const char *const io[] = {"input", "events"}, *const time[] = {"time", "sleep"};
    if (!t) return NOT_SEEN;
    if (t->state == 'D') return IN_IO;
    if (t->state == 'R') return COMPUTES;
    if (strcmp(t->waits_for, "lock") == 0) return ON_LOCK;
    for (size_t i = 0; i < sizeof io / sizeof *io; i++)
        if (strcmp(t->waits_for, io[i]) == 0) return IN_IO;
    for (size_t i = 0; i < sizeof time / sizeof *time; i++)
        if (strcmp(t->waits_for, time[i]) == 0) return SLEEPS;
    return STANDS;
}

const struct fdr_location_info *told_location(const struct fdr_file *file, uint32_t tid)
{
    const struct fdr_location_info *l = location_of_thread(file, tid ? tid : fdr_file_info(file)->pid);
    return l ? l : fdr_location_info(file, 0);
}

static void look_at_tasks(const struct process *p, struct job_rank *r)
{
    const struct fdr_task_info *t;
    size_t count = fdr_tasks(p->file, &t), stopped = 0;
    for (size_t i = 0; i < count; i++) stopped += is_stopped(&t[i]);
    r->stopped = count && stopped == count;
    r->doing = doing_of(task_of(p->file, fdr_file_info(p->file)->pid));
}

void look_at_life(const struct process *p, const struct fdr_file *earlier, struct job_rank *r)
{
    const struct fdr_file_info *info = fdr_file_info(p->file);
    uint64_t newest = newest_event(p->file);
    r->seen_ns = p->end_real_ns;
    r->moved_ns = real_of(info, newest);
    r->longest_still_ns = info->longest_still_ns;
    look_at_end(p, r);
    if (r->end != GOES_ON && r->end_ns > r->seen_ns) r->seen_ns = r->end_ns;
    r->looked_twice = r->end == GOES_ON && earlier != NULL;
    look_at_tasks(p, r);
    if (r->looked_twice) compare(p, earlier, r);
    else if (r->moves == UNKNOWN) look_at_heartbeat(info, newest, r);
}

/* ---- the second look ---- */

static bool runs(const struct process *p) { return strcmp(fdr_file_info(p->file)->reason, "live") == 0; }

void ask_kernel(struct process *p)
{
    p->looked_at = fdr_process_look(p->file, pid_of(p), p->unseen, sizeof p->unseen) == 0;
}

void look_again(struct process *process, struct fdr_file **earlier, size_t count)
{
    size_t running = 0;
    for (size_t i = 0; i < count; i++) {
        earlier[i] = NULL;
        process[i].processor_before = UINT64_MAX;
        if (!runs(&process[i])) continue;
        running++;
        process[i].before_ns = now_ns();
        process[i].processor_before = processor_time(pid_of(&process[i]));
    }
    struct timespec apart = {(time_t)(look_apart_ns / 1000000000u), (long)(look_apart_ns % 1000000000u)};
    while (running && nanosleep(&apart, &apart) && errno == EINTR) {}
    for (size_t i = 0; i < count; i++) {
        struct fdr_file *again = NULL;
        if (!runs(&process[i])) continue;
        if (fdr_process_open(pid_of(&process[i]), false, &again, NULL, 0) == FDR_UNREADABLE || !again) continue;
        earlier[i] = process[i].file;
        process[i].file = again;
        process[i].end_real_ns = end_of(fdr_file_info(again));
        ask_kernel(&process[i]);
    }
}
